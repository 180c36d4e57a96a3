"""The options of ``ampgraph rewrite`` that calibrate, and the progress they show."""

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from ampgraph.cli.feeds import read_arrays
from ampgraph.cli.program import ArgumentError, Failure

if TYPE_CHECKING:
    from ampgraph.calibration.result import CalibrationResult, Progress
    from ampgraph.graph import Graph
    from ampgraph.rewrite import Policy


class Calibration:
    """The options as given.

    Args:
        data: Files and folders.
        rtol, low_share, time_limit: As for :func:`ampgraph.calibrate`; None where not given.
        save_policy: Where the policy goes.
    """

    def __init__(
        self,
        data: tuple[str, ...],
        rtol: float | None,
        low_share: float | None,
        time_limit: float | None,
        save_policy: str | None,
    ) -> None:
        self.data = data
        self.save_policy = save_policy
        given = {"rtol": rtol, "low_share": low_share, "time_limit": time_limit}
        self.numbers = {name: number for name, number in given.items() if number is not None}
        if not data and (self.numbers or save_policy is not None):
            name = next(iter(self.numbers), "save_policy").replace("_", "-")
            raise click.UsageError(f"--{name} is for a calibration, which needs data: --calibrate FILE.")

    def check_outputs(self, **outputs: str | None) -> None:
        """Refuse to replace the data by something that is written.

        Args:
            outputs: Files by the options that ask for them.

        Raises:
            click.UsageError: If one is a file with data.
        """
        data = {os.path.realpath(path) for path in self._files()} if any(outputs.values()) else ()
        for option, path in outputs.items():
            if path is not None and os.path.realpath(path) in data:
                raise click.UsageError(f"Data is read from {path!r}. Received: --{option.replace('_', '-')} {path}")

    def feeds(self, graph: "Graph") -> list[dict[str, Any]]:
        """Return the feeds of each run.

        Raises:
            ArgumentError: If a file fits no input, or an input has no array.
            Failure: If a file cannot be read, a folder holds none, or an array has another dtype or shape than its input.
        """
        return [_feeds(path, graph) for path in self._files()]

    def _files(self) -> Iterator[str]:
        for path in self.data:
            if not os.path.isdir(path):
                yield path
                continue
            names = sorted(name for name in os.listdir(path) if name.endswith((".npz", ".npy")))
            if not names:
                raise Failure(f"{path} holds no file that ends in .npz or .npy.")
            yield from (os.path.join(path, name) for name in names)

    def advice(self, found: "CalibrationResult") -> str:
        """Return what to try where outputs are not within the bound; begins with a space unless empty."""
        from ampgraph.calibration.loop import LOW_SHARE

        if not found.missed or found.stopped == "interrupted":
            return ""
        if found.stopped == "time":
            return " A longer --time-limit lets it search on."
        return " A lower --low-share lets more stay float32." if self.numbers.get("low_share", LOW_SHARE) > 0 else ""

    def run(self, graph: "Graph", policy: "Policy") -> "CalibrationResult":
        """Calibrate a graph on the data."""
        from ampgraph.calibration.loop import TIME_LIMIT, calibrate

        feeds = self.feeds(graph)
        with _bar(self.numbers.get("time_limit", TIME_LIMIT)) as progress:
            return calibrate(graph, feeds, policy, progress=progress, **self.numbers)


def calibrate_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of calibration; it receives them as ``calibration``, a :class:`Calibration`."""

    @click.option(
        "--calibrate",
        "data",
        multiple=True,
        metavar="FILE",
        help="Run on this data, and keep in float32 what makes results wrong: a .npz file with an array for each input, a .npy "
        "file where there is one input, or a folder of such; repeatable, each file is a run.",
    )
    @click.option(
        "--rtol",
        metavar="ERROR",
        type=click.FloatRange(0, min_open=True),
        help="Largest error of an output, as share of its largest magnitude. [0.01]",
    )
    @click.option(
        "--low-share",
        metavar="SHARE",
        type=click.FloatRange(0, 1),
        help="Share of the FLOPs of MatMul, Gemm and Conv that stays low. [0.9]",
    )
    @click.option("--time-limit", type=click.FloatRange(0), metavar="SECONDS", help="When calibrating ends at the latest. [45]")
    @click.option("--save-policy", metavar="FILE", help="Write what was found as a policy: --policy FILE needs no data.")
    @functools.wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        given = [kwargs.pop(name) for name in ("data", "rtol", "low_share", "time_limit", "save_policy")]
        return command(*args, calibration=Calibration(*given), **kwargs)

    return wrapper


def _feeds(path: str, graph: "Graph") -> dict[str, Any]:
    """Return the feeds for one run from one file."""
    from ampgraph.graph.errors import KernelError, did_you_mean
    from ampgraph.kernels.feeds import check_feed
    from ampgraph.kernels.pruning import has_default, inputs_of

    inputs = inputs_of(graph)
    names = [value.name for value in inputs]
    wanted = [value.name for value in inputs if not has_default(value)]
    if path.endswith(".npy") and len(wanted) != 1:
        raise ArgumentError(f"{path} is one array, but the graph has inputs {', '.join(wanted) or '(none)'}: give a .npz file.")
    found = read_arrays(path, wanted[0] if path.endswith(".npy") else "", names)
    for name in found:
        if name not in names:
            known = f"{', '.join(names) or 'there are none'}.{did_you_mean(name, names)}"
            raise ArgumentError(f"{path} has an array {name!r}, which is no input: {known}")
    missing = [name for name in wanted if name not in found]
    if missing:
        raise ArgumentError(f"{path} has no array for input {', '.join(missing)}. Received: {', '.join(found) or 'no arrays'}")
    try:
        for value in inputs:
            if value.name in found:
                check_feed(found[value.name], value)
    except KernelError as error:
        raise Failure(f"{path} does not fit: {error}") from error
    return found


@contextlib.contextmanager
def _bar(limit: float) -> "Iterator[Callable[[Progress], None] | None]":
    """Show on a terminal's stderr how far a calibration is; yield what takes its progress."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("calibrating"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("measuring", total=limit)

        def show(now: "Any") -> None:
            state = "within the bound" if now.is_met else "not within the bound"
            best = f"trial {now.trials}; best so far: error {now.error:.2g}, {state}, {now.kept} kept (Ctrl-C takes it)"
            bar.update(task, completed=min(now.seconds, limit), description=best)

        yield show
