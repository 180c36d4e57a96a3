"""What all benchmarks share: statistics, the facts of the machine, the table of limits and the JSON file."""

import argparse
import contextlib
import dataclasses
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import ampgraph

ROOT = Path(__file__).resolve().parent.parent


@dataclasses.dataclass(frozen=True)
class Limit:
    """A measured number beside the most it may be.

    Attributes:
        what: What was measured.
        value: The number.
        most: The largest value that is all right.
        unit: Printed after both numbers.
    """

    what: str
    value: float
    most: float
    unit: str = ""

    @property
    def ok(self) -> bool:
        """Whether the value is within the limit."""
        return self.value <= self.most


def check_counts(options: argparse.Namespace, *names: str) -> None:
    """Refuse options, numbers or lists of them, that are less than 1.

    Raises:
        ValueError: If one is.
    """
    for name in names:
        given = getattr(options, name)
        if min(given if isinstance(given, list) else [given]) < 1:
            raise ValueError(f"--{name} is at least 1. Received: {given}")


def median(samples: Iterable[float]) -> float:
    """Return the median."""
    return statistics.median(samples)


def growth(sizes: Sequence[float], times: Sequence[float]) -> float:
    """Return the exponent ``a`` of the power law ``time = c * size**a`` (least squares on logarithms).

    Raises:
        ValueError: If there are fewer than two sizes.
    """
    if len(set(sizes)) < 2:
        raise ValueError(f"An exponent needs at least two sizes. Received: {list(sizes)}")
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def machine() -> dict[str, Any]:
    """Return the facts that a time depends on: processor, cores, load, versions, revision of the code, date (UTC)."""
    versions = {"ampgraph": ampgraph.__version__}
    for name in ("numpy", "networkx", "protobuf", "ml_dtypes"):
        versions[name] = importlib.metadata.version(name)
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": versions,
        "revision": _revision(),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _revision() -> str:
    """Return the commit of the checkout, with a + if files differ from it; empty outside of git."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=12", "--dirty=+"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table whose first column is text and whose other columns are numbers."""
    result = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for i, column in enumerate(columns):
        result.add_column(column, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        result.add_row(*row)
    return result


def limits_table(limits: Iterable[Limit]) -> Table:
    """Return the table of limits, with ``ok`` or ``over`` beside each."""
    rows = [
        (limit.what, f"{limit.value:,.4g}{limit.unit}", f"{limit.most:,.4g}{limit.unit}", "ok" if limit.ok else "over")
        for limit in limits
    ]
    return table("Limits", ("what", "measured", "at most", ""), rows)


def markdown_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table with a heading, in Markdown."""
    cells = [columns, ["---"] + ["---:"] * (len(columns) - 1), *rows]
    return [f"## {title}", "", *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells), ""]


def made_by(command: str, facts: dict[str, Any]) -> str:
    """Return a sentence about a run, for a page of its results."""
    return (
        f"Made by `python -m bench {command}`, which says with `--help` what is measured. {facts['date']}, revision "
        f"{facts['revision']}, {facts['processor']}, {facts['cores']} cores, load {facts['load']}, Python {facts['python']}."
    )


@contextlib.contextmanager
def progress(count: int) -> Iterator[Callable[[str, int], None]]:
    """Show a bar on standard error, if that is a terminal; yield how to name what is at work and how to move on."""
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    screen = Console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("", total=count)
        yield lambda name, done: bar.update(task, advance=done, description=name)


def console() -> Console:
    """Return the console for results; wide enough for the tables where the output is no terminal."""
    screen = Console()
    return screen if screen.is_terminal else Console(width=150)


def write(path: str | os.PathLike[str], benchmark: str, facts: dict[str, Any], limits: Iterable[Limit], **measured: Any) -> None:
    """Write what a benchmark measured as JSON, with the facts of the machine when it began."""
    content = {
        "benchmark": benchmark,
        "machine": facts,
        "limits": [{**dataclasses.asdict(limit), "ok": limit.ok} for limit in limits],
        **measured,
    }
    Path(path).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
