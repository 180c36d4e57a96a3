"""Time training steps beside the same steps written by hand in NumPy, and what a step costs before it runs.

A row is a step: forward, gradients and an update by SGD. First three steps in float32 are compared with those by hand; a row whose
weights or loss differ by more than 1e-5 has no times. Then all sides make turns in one process, of as many steps as take some
milliseconds, in processor time; ratios are medians over the turns. float16 and bfloat16 are computed in float32 and rounded, as
everywhere on a CPU without them. Set the number of threads before, as in OPENBLAS_NUM_THREADS=1.

Memory is planned: what has to be kept until its last use, in the order of the graph and in the dtypes of the graph, variables not
counted. The last number is the time to trace a step of a small transformer, to differentiate it and to rewrite it.
"""

import argparse
import gc
import time
from pathlib import Path
from typing import Any

from bench.results import Limit, check_counts, console, limits_table, machine, made_by, markdown_table, median, table, write
from bench.train.cases import CASES, Case, data, difference, traced, written
from bench.train.planned import planned_peak
from bench.train.transformer import specialized

DTYPES = ("float32", "float16", "bfloat16")
#: By how much results may differ from those by hand.
_CLOSE = 1e-5
_COLUMNS = ("step", "by hand, ms", "float32, ms", "float32 / by hand", "float16 / float32", "bfloat16 / float32")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), help="rows [all]")
    parser.add_argument("--repeat", type=int, default=15, help="how many turns [15]")
    parser.add_argument("--json", metavar="OUT", help="also write everything measured to this file")
    parser.add_argument("--markdown", metavar="OUT", help="also write the tables to this file")


def run(options: argparse.Namespace) -> None:
    """Measure and print.

    Raises:
        ValueError: If an option makes no sense.
    """
    check_counts(options, "repeat")
    facts = machine()
    results = [{"name": name, **_measure(CASES[name], options.repeat)} for name in options.only]
    memory = {dtype: _peak(CASES["CNN"], dtype) for dtype in ("float32", "float16")}
    before = _transformer()
    limits = [
        Limit(f"{result['name']}: float32 / by hand", result["ratios"]["float32"], CASES[result["name"]].most)
        for result in results
        if "ratios" in result
    ]
    limits.append(Limit("CNN: planned memory, float16 / float32", memory["float16"] / memory["float32"], 0.65))
    title = "Training steps: processor time and ratios, medians of the turns"
    rows = [_row(result) for result in results]
    others = [
        ("CNN: planned peak of float32", f"{memory['float32'] / 1e6:,.1f} MB"),
        ("CNN: planned peak of float16", f"{memory['float16'] / 1e6:,.1f} MB"),
        (f"transformer, {before['nodes']:,} nodes: trace, gradient, rewrite", f"{min(before['seconds']):.2f} s"),
    ]
    screen = console()
    screen.print(table(title, _COLUMNS, rows), "", table("Before a step", ("what", "measured"), others), "", limits_table(limits))
    for result in results:
        if "failed" in result:
            screen.print(f"{result['name']}: {result['failed']}", highlight=False)
    if options.json:
        write(options.json, "train", facts, limits, repeat=options.repeat, steps=results, planned=memory, transformer=before)
    if options.markdown:
        text = ["# Training", "", made_by("train", facts), "", *markdown_table(title, _COLUMNS, rows)]
        text += markdown_table("Before a step", ("what", "measured"), others)
        Path(options.markdown).write_text("\n".join(text), encoding="utf-8")


def _measure(case: Case, repeat: int) -> dict[str, Any]:
    """Return ``seconds`` of a step by side, one for each turn, and ``ratios`` by dtype; or ``failed``, a sentence."""
    differs = difference(case)
    if not differs <= _CLOSE:
        return {"failed": f"differs from the step by hand by {differs:.2g}"}
    x, y = data(case)
    sides = {dtype: traced(case, dtype) for dtype in DTYPES}
    steps = {"by hand": written(case, sides["float32"][1])[0], **{dtype: step for dtype, (step, _) in sides.items()}}
    times: dict[str, list[float]] = {side: [] for side in steps}
    for turn in range(-1, repeat):
        for side, step in steps.items():
            gc.collect()
            for _ in range(3):  # the first traces; a program is at its fastest after some runs
                step(x, y)
            start = time.process_time()
            for _ in range(case.steps):
                step(x, y)
            if turn >= 0:
                times[side].append((time.process_time() - start) / case.steps)
    ratios = {dtype: _ratio(times[dtype], times["by hand" if dtype == "float32" else "float32"]) for dtype in DTYPES}
    return {"differs": differs, "seconds": times, "ratios": ratios}


def _ratio(above: list[float], below: list[float]) -> float:
    return median([a / b for a, b in zip(above, below, strict=True)])


def _row(result: dict[str, Any]) -> tuple[str, ...]:
    if "failed" in result:
        return (result["name"], *["-"] * 5)
    times = [f"{1000 * median(result['seconds'][side]):.3g}" for side in ("by hand", "float32")]
    return (result["name"], *times, *(f"{result['ratios'][dtype]:.3g}" for dtype in DTYPES))


def _peak(case: Case, dtype: str) -> int:
    step, _ = traced(case, dtype)
    return planned_peak(step.specialize(*data(case)).program)


def _transformer() -> dict[str, Any]:
    """Return the ``seconds`` that three steps of a transformer take before they can run, and how many ``nodes`` one has."""
    seconds, nodes = [], 0
    for _ in range(3):
        gc.collect()
        start = time.process_time()
        found = specialized()
        seconds.append(time.process_time() - start)
        nodes = len(found.program.graph)
    return {"nodes": nodes, "seconds": seconds}
