"""Conversion with ampgraph: timed in this process, and once as the whole command."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import ampgraph as ag
from ampgraph.rewrite import convert

STEPS = ("load", "rewrite", "save")
_T = TypeVar("_T")


def convert_file(path: Path, out: Path, dtype: str, repeat: int, limit: float) -> dict[str, Any]:
    """Convert a model with default settings.

    Args:
        path, out: The model and the file to write.
        dtype: The low dtype.
        repeat: How often it is timed.
        limit: Seconds after which the command is ended.

    Returns:
        ``steps``, the times of each of :data:`STEPS`, and ``seconds``, their sums; ``command``, seconds of the command; and what
        the report says: ``hazards`` by kind, nodes ``low`` and in ``float``. Or ``failed``, a sentence.
    """
    steps: dict[str, list[float]] = {step: [] for step in STEPS}
    policy = ag.Policy(dtype=dtype)
    report: dict[str, Any] = {}
    try:
        for _ in range(repeat):
            graph = _timed(steps["load"], lambda: ag.load(path))
            result = _timed(steps["rewrite"], lambda graph=graph: convert(graph, policy))
            _timed(steps["save"], lambda result=result: ag.save(result.graph, out))
            if not report:
                report = result.report.json()
            del graph, result
    except Exception as error:  # noqa: BLE001 - a model that makes it raise anything does not end the benchmark
        return {"failed": f"{type(error).__name__}: {error}"}
    command = [sys.executable, "-m", "ampgraph", "rewrite", str(path), "-o", str(out), "--dtype", dtype]
    start = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"failed": f"the command was not done after {limit:g} s"}
    seconds = time.perf_counter() - start
    if done.returncode:
        return {"failed": f"the command failed: {done.stderr.strip()[-300:]}"}
    hazards: dict[str, int] = {}
    for hazard in report["hazards"]:
        hazards[hazard["code"]] = hazards.get(hazard["code"], 0) + 1
    return {
        "steps": steps,
        "seconds": [sum(times) for times in zip(*steps.values(), strict=True)],
        "command": seconds,
        "low": report["low"],
        "float": report["float"],
        "hazards": hazards,
    }


def _timed(times: list[float], action: Callable[[], _T]) -> _T:
    start = time.perf_counter()
    result = action()
    times.append(time.perf_counter() - start)
    return result
