"""Time single nodes in ampgraph's executor beside onnxruntime, and casts beside NumPy's and ml_dtypes'.

Nodes (convolutions of all kinds, pools, products, norms, reductions, elementwise ops) are models of one node, with float32 and
with float16 operands; onnxruntime runs those of float32. Each executor lives in a process of its own with one thread, and they run
in turns; times are the shortest of the processor.

Casts are timed on normal numbers, and on mixes with numbers that become subnormal, zero, infinite, or are NaN: "/normal" is what
cast_array takes for each second that NumPy (ml_dtypes, for bfloat16) takes for as many normal numbers, "/same" for the same
ones. "grid" is rounding to float16's numbers that leaves them float32.
"""

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import ampgraph as ag
from bench.executor.process import Process
from bench.executor.summary import best
from bench.executor.turns import OURS, peer_command, time_in_turns
from bench.onnx.arrays import write_arrays
from bench.ops.cases import CASES, Case, build
from bench.ops.casts import SIZES, limits, time_casts
from bench.results import check_counts, console, limits_table, machine, made_by, markdown_table, progress, table, write

_LIMIT = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    groups = [*dict.fromkeys(case.group for case in CASES), "casts"]
    parser.add_argument(
        "--only", nargs="+", choices=groups, default=groups, metavar="GROUP", help=f"of {', '.join(groups)} [all]"
    )
    parser.add_argument(
        "--sizes", nargs="+", type=int, default=list(SIZES), metavar="N", help="elements that are cast [10 1000 1000000]"
    )
    parser.add_argument("--peer", default=sys.executable, metavar="PYTHON", help="a Python with onnxruntime [this one]")
    parser.add_argument("--repeat", type=int, default=5, help="how often everything is timed [5]")
    parser.add_argument("--json", metavar="OUT", help="also write everything measured to this file")
    parser.add_argument("--markdown", metavar="OUT", help="also write the tables to this file")


def run(options: argparse.Namespace) -> None:
    """Measure and print.

    Raises:
        ValueError: If an option makes no sense.
        RuntimeError: If an executor's process does not start.
    """
    check_counts(options, "repeat", "sizes")
    facts = machine()
    screen = console()
    cases = [case for case in CASES if case.group in options.only]
    versions, nodes = _time_nodes(cases, options.peer, options.repeat)
    if cases and "onnxruntime" not in versions:
        screen.print(f"onnxruntime: left out, {options.peer} has none", highlight=False)
    casts = list(time_casts(options.sizes, options.repeat)) if "casts" in options.only else []
    found = limits(casts)
    packages = "".join(f", {name} {version}" for name, version in versions.items())
    made = f"{made_by('ops', facts)} NumPy {facts['versions']['numpy']}, ml_dtypes {facts['versions']['ml_dtypes']}{packages}."
    page = ["# Single nodes and casts", "", made, ""]
    for title, columns, rows in _tables(nodes, casts):
        screen.print(table(title, columns, rows), "")
        page += markdown_table(title, columns, rows)
    screen.print(limits_table(found))
    if options.json:
        write(options.json, "ops", facts, found, repeat=options.repeat, peers=versions, nodes=nodes, casts=casts)
    if options.markdown:
        Path(options.markdown).write_text("\n".join(page), encoding="utf-8")


def _time_nodes(cases: Sequence[Case], peer: str, repeat: int) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Return the versions of the peer's packages, and for each case its ``sides``: ``float32``, ``float16`` and ``onnxruntime``."""
    results: list[dict[str, Any]] = []
    if not cases:
        return {}, results
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        ours = stack.enter_context(Process(OURS, 1))
        theirs = stack.enter_context(Process(peer_command(peer), 1))
        advance = stack.enter_context(progress(len(cases)))
        for case in cases:
            advance(case.name, 0)
            questions = {}
            for dtype in ("float32", "float16"):
                graph, feeds = build(case, dtype)
                ag.save(graph, folder / f"{dtype}.onnx")
                write_arrays(folder / "feeds.npz", feeds)
                question = {"open": dtype, "path": str(folder / f"{dtype}.onnx"), "feeds": str(folder / "feeds.npz")}
                questions[dtype] = ours, question
            if "onnxruntime" in theirs.facts:
                questions["onnxruntime"] = theirs, questions["float32"][1] | {"open": "onnxruntime", "threads": 1}
            sides = time_in_turns(questions, repeat, _LIMIT)
            results.append({"group": case.group, "name": case.name, "op": case.op, "sides": sides})
            advance(case.name, 1)
        return theirs.facts, results


def _tables(
    nodes: Iterable[dict[str, Any]], casts: Sequence[dict[str, Any]]
) -> Iterable[tuple[str, Sequence[str], list[Sequence[str]]]]:
    rows: list[Sequence[str]] = []
    for node in nodes:
        ours, low, peer = (best(node["sides"].get(side), 1) for side in ("float32", "float16", "onnxruntime"))
        ratios = [f"{a / b:.2f}" if a and b else "-" for a, b in ((ours, peer), (low, ours))]
        rows.append((node["name"], node["op"], *(f"{1e6 * x:,.0f}" if x else "-" for x in (ours, low, peer)), *ratios))
    if rows:
        yield "Nodes, µs of the processor, one thread", ("node", "op", "f32", "f16", "ORT", "f32/ORT", "f16/f32"), rows
    for count in dict.fromkeys(row["count"] for row in casts):
        rows = [
            (
                row["cast"],
                row["values"],
                *(f"{1e6 * row[key]:,.1f}" for key in ("ours", "theirs")),
                *(f"{row['ours'] / row[key]:.2f}" for key in ("normal", "theirs")),
            )
            for row in casts
            if row["count"] == count
        ]
        yield f"Casts of {count:,} elements, µs of the processor", ("cast", "values", "ours", "astype", "/normal", "/same"), rows
