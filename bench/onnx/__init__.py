"""Convert the ONNX models of a folder, beside other converters, and judge every file.

ampgraph converts each model with default settings, in this process and warm (median of load + rewrite + save), and once as a
whole command. Each --peer is a converter with a Python that has it: onnxconverter-common, onnxruntime (its
transformers.float16), autocast and autocast-calibrated (modelopt, without and with the feeds to calibrate on), convert_to_f16
(modelopt), onnxslim; all told to keep inputs and outputs, where they can be told. Without one it is left out.

Every file is judged in processes of their own: onnx.checker; strict shape inference; onnxruntime loads and runs it (float16
only; its CPU provider has no kernels for bfloat16); inputs and outputs kept; and the outputs, on the same feeds, against the
float32 model's: max|y-y32| / max|y32| "honest", by ampgraph's executor, which rounds after every op, and in onnxruntime, which
does not. A file is right when all of that holds, outputs are finite where the float32 model's are, integers are equal, and
the honest error is at most 1e-2 (5e-2 for bfloat16) or twice the floor: the error when only operands and results of Conv and MatMul
are rounded. "low" is the share of their FLOPs that the file computes in the low dtype, counted in the honest run.

Feeds are NAME.npz beside NAME.onnx, or made up.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

import ampgraph as ag
from ampgraph.graph.schemas.ampgraph import is_op
from bench.onnx.arrays import write_arrays
from bench.onnx.feeds import make_feeds
from bench.onnx.judge import BOUNDS, Source
from bench.onnx.known import add_peers
from bench.onnx.ours import convert_file
from bench.onnx.programs import ask
from bench.onnx.summary import limits, markdown, tables
from bench.results import check_counts, console, limits_table, machine, table, write

#: The peers, and the dtypes that they can be asked for.
PEERS = {
    "onnxconverter-common": ("float16",),
    "onnxruntime": ("float16",),
    "autocast": ("float16", "bfloat16"),
    "autocast-calibrated": ("float16", "bfloat16"),
    "convert_to_f16": ("float16",),
    "onnxslim": ("float16",),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the models: its .onnx files")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON", help=f"one of {', '.join(PEERS)}")
    parser.add_argument("--judge", default=sys.executable, metavar="PYTHON", help="a Python with onnx and onnxruntime [this one]")
    parser.add_argument("--dtype", nargs="+", default=["float16"], metavar="DTYPE", help="float16, bfloat16 or both [float16]")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="names of models, without .onnx [all]")
    parser.add_argument("--repeat", type=int, default=3, help="how often conversions are timed [3]")
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS", help="most for one conversion or judgement [300]")
    parser.add_argument("--reference", action="store_true", help="a second opinion on errors: onnx.reference, slow")
    parser.add_argument("--peers-from", type=Path, metavar="JSON", help="take peers that do not run now from an earlier result")
    parser.add_argument("--json", metavar="OUT", help="also write everything measured to this file")
    parser.add_argument("--markdown", metavar="OUT", help="also write the tables to this file")


def run(options: argparse.Namespace) -> None:
    """Measure and print.

    Raises:
        ValueError: If an option makes no sense, or a model cannot be loaded or given feeds.
        RuntimeError: If the judge's Python does not run, or has no onnx.
    """
    dtypes = _dtypes(options.dtype)
    peers = _peers(options.peer)
    check_counts(options, "repeat")
    paths = _models(options.folder, options.only)
    facts = machine()
    screen = console()
    versions = _versions(peers, options, screen)
    results = []
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        convert_file(min(paths, key=lambda path: path.stat().st_size), folder / "warm.onnx", dtypes[0], 1, options.limit)
        known = {path: _prepare(path, folder) for path in paths}
        results = [_measure(path, known[path], folder, dtypes, peers, versions, options) for path in _shown(paths)]
    if options.peers_from:
        add_peers(options.peers_from, results, versions)
    found = limits(results)
    for title, columns, rows in tables(results):
        screen.print(table(title, columns, rows), "")
    _print_wrong(results, screen)
    screen.print(limits_table(found))
    if options.json:
        write(options.json, "onnx", facts, found, repeat=options.repeat, peers=versions, models=results)
    if options.markdown:
        Path(options.markdown).write_text(markdown(facts, versions, results, found), encoding="utf-8")


def _dtypes(given: Iterable[str]) -> list[str]:
    found = list(dict.fromkeys(ag.find_dtype(name).name for name in given))
    if wrong := [name for name in found if name not in BOUNDS]:
        raise ValueError(f"--dtype is float16 or bfloat16. Received: {', '.join(wrong)}")
    return found


def _peers(given: Iterable[str]) -> dict[str, str]:
    found = {}
    for item in given:
        name, _, python = item.partition("=")
        if name not in PEERS or not python:
            raise ValueError(f"--peer is NAME=PYTHON with a name of {', '.join(PEERS)}. Received: {item!r}")
        found[name] = python
    return {name: found[name] for name in PEERS if name in found}


def _models(folder: Path, only: list[str] | None) -> list[Path]:
    paths = sorted(path for path in folder.glob("*.onnx") if only is None or path.stem in only)
    missing = sorted({*(only or ())} - {path.stem for path in paths})
    if missing or not paths:
        raise ValueError(f"{folder} holds no model {', '.join(f'{name}.onnx' for name in missing) or 'that ends in .onnx'}.")
    return paths


def _versions(peers: dict[str, str], options: argparse.Namespace, screen: Console) -> dict[str, dict[str, str]]:
    """Ask for the versions of the judge's packages and the peers'; say which peers are missing and take them off the list."""
    judge = ask(options.judge, "judge_program.py", {"steps": ["versions"]}, options.limit)
    if "onnx" not in judge:
        raise RuntimeError(f"The Python that judges, {options.judge}, needs onnx: {judge.get('failed')}")
    if judge["onnxruntime"] is None:
        screen.print(f"{options.judge} has no onnxruntime: no file is run in it.", highlight=False)
    found = {"judge": judge}
    for name in PEERS:
        if name not in peers:
            screen.print(f"{name}: left out, there is no --peer {name}=PYTHON", highlight=False)
            continue
        answer = ask(peers[name], "peer_program.py", {"peer": name, "versions": True}, options.limit)
        if "versions" in answer:
            found[name] = answer["versions"]
        else:
            screen.print(f"{name}: left out, {answer['failed']}", highlight=False, markup=False)
            del peers[name]
    return found


def _shown(paths: list[Path]) -> Iterator[Path]:
    """Yield the models; on a terminal, say on standard error which one is at work."""
    with Console(stderr=True).status("") as line:
        for path in paths:
            line.update(path.name)
            yield path


def _prepare(path: Path, folder: Path) -> tuple[Path, int]:
    """Return the file with the feeds of a model, and how many nodes the model has."""
    try:
        graph = ag.load(path)
    except ag.AmpgraphError as error:
        raise ValueError(f"{error}") from error
    feeds = path.with_suffix(".npz")
    if not feeds.exists():
        feeds = folder / f"{path.stem}.npz"
        write_arrays(feeds, make_feeds(graph))
    return feeds, sum(is_op(node) for part in graph.all_graphs() for node in part.nodes)


def _measure(
    path: Path,
    known: tuple[Path, int],
    folder: Path,
    dtypes: list[str],
    peers: dict[str, str],
    versions: dict[str, dict[str, str]],
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Convert a model in all ways and judge the files."""
    feeds, nodes = known
    source = Source(path, feeds, folder, options.judge, versions["judge"]["onnxruntime"] is not None, options.limit)
    files = []
    for dtype in dtypes:
        source.find_floor(dtype)
        for name in ("ampgraph", *peers):
            if dtype not in PEERS.get(name, dtypes):
                continue
            out = folder / name / path.name
            _clear(out.parent)
            if name == "ampgraph":
                file = convert_file(path, out, dtype, options.repeat, options.limit)
            else:
                question = {"peer": name, "path": str(path), "out": str(out), "dtype": dtype, "feeds": str(feeds)}
                file = ask(peers[name], "peer_program.py", question | {"repeat": options.repeat}, options.limit)
                file.pop("versions", None)
            if "failed" in file:
                file["wrong"] = [f"conversion: {file['failed']}"]
            else:
                file |= source.judge(out, dtype, options.reference)
            files.append({"converter": name, "dtype": dtype, **file})
            _clear(out.parent)
    return {
        "name": path.stem,
        "bytes": path.stat().st_size,
        "nodes": nodes,
        "feeds": "made up" if feeds.parent == folder else feeds.name,
        **source.facts,
        "floors": source.floors,
        "files": files,
    }


def _clear(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()


def _print_wrong(results: list[dict[str, Any]], screen: Console) -> None:
    for result in results:
        for file in result["files"]:
            if file["converter"] == "ampgraph" and file["wrong"]:
                text = "; ".join(file["wrong"])
                screen.print(f"{result['name']}, {file['dtype']}: {text}", highlight=False, markup=False)
