"""Time ampgraph's executor on ONNX models, beside onnxruntime, the standard's reference evaluator and plain NumPy.

Every model runs as float32, and rewritten to each --dtype with default settings. Each executor lives in a process of its own, whose
math library has as many threads as onnxruntime; they run in turns, so that all see the same machine. Without FOLDER, the models
are small ones made up (an MLP, a CNN, one with depthwise convolutions, a BERT encoder) and that of the demo; the made-up ones
also run as plain NumPy programs: windows and a product for a convolution, nothing fused or kept.

Times are the shortest of --repeat runs: of the processor with one thread, of the clock with more. Ratios are ours / theirs, and
what is below 1 is faster. The reference evaluator runs once, and is ended after --patience seconds.

Weights that a model fills with one number are made random, so that no executor profits from filters that are all equal. Feeds are
NAME.npz in --feeds or beside NAME.onnx, or made up.
"""

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ampgraph as ag
from ampgraph.cli.demo_model import demo_model
from ampgraph.graph.schemas.ampgraph import is_op
from bench.executor.built import build
from bench.executor.kinds import find_kind
from bench.executor.models import MODELS
from bench.executor.process import Process
from bench.executor.summary import markdown, tables
from bench.executor.turns import OURS, peer_command, time_in_turns
from bench.executor.weights import draw_filled
from bench.onnx.arrays import write_arrays
from bench.onnx.feeds import make_feeds
from bench.results import check_counts, console, machine, progress, table, write

DTYPES = ("float16", "bfloat16")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("folder", type=Path, nargs="?", metavar="FOLDER", help="the models: its .onnx files [made up]")
    parser.add_argument("--feeds", type=Path, metavar="FOLDER", help="feeds, NAME.npz [beside the models, or made up]")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="names of models, without .onnx [all]")
    parser.add_argument("--dtype", nargs="*", choices=DTYPES, default=list(DTYPES), help="what models are rewritten to [both]")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], metavar="N", help="numbers of threads [1 2]")
    parser.add_argument("--peer", default=sys.executable, metavar="PYTHON", help="a Python with onnx, onnxruntime [this one]")
    parser.add_argument("--repeat", type=int, default=5, help="how often everything is timed [5]")
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS", help="most for one answer of an executor [300]")
    parser.add_argument(
        "--patience", type=float, default=10, metavar="SECONDS", help="most for the reference; 0: without it [10]"
    )
    parser.add_argument("--json", metavar="OUT", help="also write everything measured to this file")
    parser.add_argument("--markdown", metavar="OUT", help="also write the tables to this file")


def run(options: argparse.Namespace) -> None:
    """Measure and print.

    Raises:
        ValueError: If an option makes no sense, or a model cannot be loaded or given feeds.
        RuntimeError: If an executor's process does not start.
    """
    check_counts(options, "repeat", "threads")
    facts = machine()
    screen = console()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        paths = _models(options.folder or _made(folder / "made"), options.only)
        theirs = peer_command(options.peer)
        executors = {}
        for threads in dict.fromkeys(options.threads):
            executors["ampgraph", threads] = stack.enter_context(Process(OURS, threads))
            executors["onnxruntime", threads] = stack.enter_context(Process(theirs, threads))
        versions = executors["onnxruntime", options.threads[0]].facts
        if options.patience and "onnx" in versions:
            executors["reference", 1] = stack.enter_context(Process(theirs, 1))
        if "onnxruntime" not in versions:
            screen.print(f"onnxruntime: left out, {options.peer} has none", highlight=False)
            executors = {key: process for key, process in executors.items() if key[0] != "onnxruntime"}
        with progress(len(paths)) as advance:
            results = []
            for path in paths:
                advance(path.stem, 0)
                results.append(_measure(path, folder, executors, options))
                advance(path.stem, 1)
    for title, columns, rows in tables(results):
        screen.print(table(title, columns, rows), "")
    for result in results:
        for side, found in result["sides"].items():
            if "failed" in found and not side.startswith("reference"):
                screen.print(f"{result['name']}, {side}: {found['failed']}", highlight=False, markup=False)
    if options.json:
        write(options.json, "run", facts, [], repeat=options.repeat, peers=versions, models=results)
    if options.markdown:
        Path(options.markdown).write_text(markdown(facts, versions, results), encoding="utf-8")


def _made(folder: Path) -> Path:
    folder.mkdir()
    for name, model in MODELS.items():
        ag.save(build(name, model), folder / f"{name}.onnx")
    ag.save(demo_model(), folder / "demo.onnx")
    return folder


def _models(folder: Path, only: Sequence[str] | None) -> list[Path]:
    paths = sorted(path for path in folder.glob("*.onnx") if only is None or path.stem in only)
    missing = sorted({*(only or ())} - {path.stem for path in paths})
    if missing or not paths:
        raise ValueError(f"{folder} holds no model {', '.join(f'{name}.onnx' for name in missing) or 'that ends in .onnx'}.")
    return paths


def _measure(path: Path, folder: Path, executors: dict[tuple[str, int], Process], options: argparse.Namespace) -> dict[str, Any]:
    """Time all executors on a model.

    Returns:
        Facts of the model, and ``sides``: by what ran it and with how many threads, as in ``"float16, 2"``, lists of ``wall`` and
        ``cpu`` seconds, or ``failed``, a sentence.
    """
    try:
        graph = ag.load(path)
    except ag.AmpgraphError as error:
        raise ValueError(f"{error}") from error
    feeds = (options.feeds or path.parent) / f"{path.stem}.npz"
    made = not feeds.is_file()
    if made:
        feeds = folder / feeds.name
        write_arrays(feeds, make_feeds(graph))
    drawn = draw_filled(graph)
    file = path
    if drawn:
        file = folder / path.name
        ag.save(graph, file)
    question = {"path": str(file.absolute()), "feeds": str(feeds.absolute()), "model": path.stem}
    questions = {}
    for (executor, threads), process in executors.items():
        for side in _sides(executor, path.stem, options.dtype):
            given = question | {"open": side, "threads": threads} | ({"dtype": side} if side in DTYPES else {})
            if side == "reference":
                given |= {"once": True, "limit": options.patience}
            questions[f"{side}, {threads}"] = process, given
    sides = time_in_turns(questions, options.repeat, options.limit)
    return {
        "name": path.stem,
        "kind": MODELS[path.stem].kind if path.stem in MODELS else find_kind(graph),
        "nodes": sum(is_op(node) for part in graph.all_graphs() for node in part.nodes),
        "drawn": drawn,
        "feeds": "made up" if made else feeds.name,
        "sides": sides,
    }


def _sides(executor: str, model: str, dtypes: Sequence[str]) -> list[str]:
    """Return what a process of an executor is asked to run."""
    if executor != "ampgraph":
        return [executor]
    return ["float32", *dtypes, *(["plain"] if model in MODELS else [])]
