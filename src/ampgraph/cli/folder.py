"""``ampgraph rewrite FOLDER``: every ONNX model of a folder, one after the other."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from ampgraph.cli.program import Failure, message_of

if TYPE_CHECKING:
    from pathlib import Path

    from ampgraph.rewrite import Policy, RewriteReport


def is_model_folder(path: str, format: str | None) -> bool:
    """Whether ``path`` is a folder with ONNX models, and not a SavedModel."""
    if path == "-" or format not in (None, "onnx") or not os.path.isdir(path):
        return False
    names = os.listdir(path)
    return not {"saved_model.pb", "saved_model.pbtxt"}.intersection(names) and (format == "onnx" or any(map(_is_model, names)))


def _is_model(name: str) -> bool:
    return name.lower().endswith(".onnx") and not name.startswith(".")


def rewrite_folder(
    folder: str, out: str | None, policy: "Policy", *, external_data: bool | None, quiet: bool, with_reports: bool, debug: bool
) -> tuple[list[dict[str, Any]], int]:
    """Rewrite the models of a folder; one that cannot be handled does not stop the others.

    Args:
        folder: Where they are; folders inside are not looked into.
        out: The folder for the results, made if missing; None = write nothing.
        policy: What to rewrite for.
        external_data: As for :func:`~ampgraph.graph.formats.files.save`.
        quiet: Print the line about each model on stderr.
        with_reports: Whether to return whole reports.
        debug: Let errors through.

    Returns:
        For each model its report (or error) as plain data, with its name and the seconds it took; and how many failed.

    Raises:
        Failure: If there is no model, or the folder for the results cannot be made.
    """
    from pathlib import Path

    paths = sorted(path for path in Path(folder).iterdir() if _is_model(path.name) and path.is_file())
    if not paths:
        raise Failure(f"{folder} holds no file that ends in .onnx.")
    if out is not None:
        _make_folder(folder, out)
    width = max(len(path.name) for path in paths)
    rows: list[dict[str, Any]] = []
    failed = 0
    with _bar(len(paths), quiet) as (advance, say):
        for path in paths:
            advance(path.name, 0)
            row: dict[str, Any] = {"file": path.name}
            start = time.perf_counter()
            try:
                report = _rewrite(path, None if out is None else Path(out, path.name), policy, external_data)
                seconds = time.perf_counter() - start
                line = _line(report, seconds)
                row |= {"seconds": round(seconds, 3), **(report.json() if with_reports else {})}
            except Exception as error:
                if debug:
                    raise
                failed += 1
                row["error"] = message_of(error).removeprefix(f"{path}: ")
                line = f"failed: {row['error']}"
            rows.append(row)
            say(f"{path.name:<{width}}  {line}")
            advance(path.name, 1)
    return rows, failed


def _make_folder(folder: str, out: str) -> None:
    if os.path.realpath(folder) == os.path.realpath(out):
        raise click.UsageError(f"The models are read from {folder!r}, so the results need another folder. Received: -o {out}")
    try:
        os.makedirs(out, exist_ok=True)
    except OSError as error:
        raise Failure(f"{out} cannot be made a folder for {folder}: {error.strerror or error}.") from error


def _rewrite(path: "Path", target: "Path | None", policy: "Policy", external_data: bool | None) -> "RewriteReport":
    from ampgraph.cli.streams import file_bytes
    from ampgraph.graph.formats.files import load, save
    from ampgraph.rewrite import auto_mixed_precision

    graph = load(path, format="onnx")
    result = auto_mixed_precision(graph, policy)
    if target is not None:
        save(result.graph, target, format="onnx", external_data=external_data)
        result.report.file_bytes = file_bytes(graph, str(path), str(target))
    return result.report


def _line(report: "RewriteReport", seconds: float) -> str:
    from ampgraph.graph.wording import plural

    sizes = report.file_bytes
    ratio = f"{sizes[1] / max(sizes[0], 1):>5.0%}" if sizes else "    -"
    return (
        f"{report.low:>5} {report.target.short} {report.kept:>5} f32 {plural(report.casts, 'Cast'):>9} {ratio} {seconds:>6.2f} s"
    )


@contextlib.contextmanager
def _bar(count: int, quiet: bool) -> Iterator[tuple[Callable[[str, int], None], Callable[[str], None]]]:
    """Show a progress bar where stderr is a terminal; yield how to move it on, and how to print a line meanwhile."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda name, done: None, lambda line: click.echo(line, err=quiet)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.text import Text

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=count)

        def advance(name: str, done: int) -> None:
            progress.update(task, advance=done, description=name)

        def say(line: str) -> None:
            if quiet or sys.stdout.isatty():  # the bar stays below
                console.print(Text(line), soft_wrap=True)
            else:
                click.echo(line)

        yield advance, say
