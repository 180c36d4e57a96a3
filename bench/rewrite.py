"""Time loading, rewriting, verifying and saving graphs, beside TensorFlow's Grappler.

Each graph is loaded from a GraphDef on disk, rewritten ("pass": copy, decide and apply), verified and saved, several
times; the table has medians in milliseconds of wall time, processor time of the pass beside them. With --tensorflow
PYTHON, an interpreter that has TensorFlow, Grappler's pass runs on the same graphs in turns with ours, so that both see
the same machine; "ratio" is ours / Grappler's. Growth exponents are fitted to processor times of graphs of 10,000 and more
nodes; memory is the peak of a process of its own that does all four steps.
"""

import argparse
import gc
import math
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from ampgraph.graph import Graph
from ampgraph.graph.formats.files import load, save
from ampgraph.graph.verify import verify
from ampgraph.rewrite import Policy, convert
from bench.peer import Grappler
from bench.results import ROOT, Limit, check_counts, console, growth, limits_table, machine, median, table, write
from bench.synthetic import KINDS
from bench.workloads import TENSORLIST_NODES, Workload, default_graphs, real, synthetic

_T = TypeVar("_T")
STEPS = ("load", "pass", "verify", "save")
_LARGE = 100_000
#: Grappler is not run on longer chains of tensor lists: 100,000 nodes would take it hours.
_MOST_TENSORLIST = TENSORLIST_NODES
#: When its runs on one graph have taken so long together, it is not run on that graph again.
_PATIENCE_MS = 30_000
_POLICIES = {
    "cuda_fp16": "preset=grappler,dtype=float16,target=gpu",
    "cpu_fp16": "preset=grappler,dtype=float16,target=cpu",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument(
        "--graphs", nargs="*", type=Path, metavar="PATH", help="GraphDef files or folders of them [those of the repository]"
    )
    parser.add_argument("--sizes", nargs="*", type=int, default=[1000, 10_000, _LARGE], help="nodes of synthetic graphs")
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=list(KINDS), help="kinds of synthetic graphs [all]")
    parser.add_argument("--repeat", type=int, default=5, help="how often everything is timed [5]")
    parser.add_argument("--tensorflow", metavar="PYTHON", help="a Python with TensorFlow, to compare with Grappler")
    parser.add_argument("--json", metavar="OUT", help="also write everything measured to this file")


def run(options: argparse.Namespace) -> None:
    """Measure and print.

    Raises:
        ValueError: If an option makes no sense.
        RuntimeError: If TensorFlow does not run.
    """
    check_counts(options, "repeat")
    facts = machine()
    screen = console()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        workloads = real(default_graphs() if options.graphs is None else options.graphs, folder)
        workloads += synthetic(options.kinds, options.sizes, folder)
        peer = stack.enter_context(Grappler(options.tensorflow, folder / "log")) if options.tensorflow else None
        policy = Policy.parse(_POLICIES[peer.mode if peer else "cuda_fp16"])
        results = [_measure(w, policy, peer, options.repeat) for w in _shown(_warmed(workloads, policy, peer, folder), screen)]
        largest = [w for w in workloads if w.size and w.size == max(options.sizes)]
        memory = {workload.name: _peak_bytes(workload, policy) for workload in _shown(largest, screen)}
    exponents = _exponents(results)
    limits = _limits(results, exponents, memory)
    screen.print(_table(results))
    if peer is not None:
        screen.print(
            f"\nGrappler of TensorFlow {peer.version}, mode {peer.mode}; ratio = pass / Grappler's pass.", highlight=False
        )
        _print_agreement(results, screen)
    screen.print()
    screen.print(limits_table(limits))
    if options.json:
        settings = {"policy": str(policy), "repeat": options.repeat}
        settings |= {"tensorflow": peer.version, "mode": peer.mode} if peer else {}
        write(options.json, "rewrite", facts, limits, **settings, graphs=results, exponents=exponents, peak_bytes=memory)


def _shown(workloads: Iterable[Workload], screen: Console) -> Iterable[Workload]:
    """Yield the workloads; on a terminal, say on standard error which one is at work."""
    status = Console(stderr=True)
    with status.status("") as line:
        for workload in workloads:
            line.update(workload.name)
            yield workload


def _warmed(workloads: Sequence[Workload], policy: Policy, peer: Grappler | None, folder: Path) -> Sequence[Workload]:
    """Return the workloads, after a graph that loads what is loaded at first use (schemas, lists, kernels)."""
    (small,) = synthetic(["chain"], [100], folder)
    _measure(small, policy, peer, 1)
    return workloads


def _measure(workload: Workload, policy: Policy, peer: Grappler | None, repeat: int) -> dict[str, Any]:
    """Time the steps, and Grappler in turns with them.

    Returns:
        For each of :data:`STEPS`, ``wall_ms`` and ``cpu_ms``, lists of ``repeat`` times; sizes before and after; and if
        the peer ran, the same of Grappler with the ``ratio`` of the medians of the pass.
    """
    times: dict[str, dict[str, list[float]]] = {step: {"wall_ms": [], "cpu_ms": []} for step in STEPS}
    runs: list[dict[str, float]] = []
    against = peer if workload.kind != "tensorlist" or workload.size <= _MOST_TENSORLIST else None
    before = after = (0, 0)
    for _ in range(repeat):
        graph = _timed(times["load"], lambda: load(workload.path, outputs=workload.fetch))
        result = _timed(times["pass"], lambda graph=graph: convert(graph, policy))
        _timed(times["verify"], lambda result=result: verify(result.graph))
        _timed(times["save"], lambda result=result: save(result.graph, workload.path.with_suffix(".out.pb")))
        before, after = _count(graph), _count(result.graph)
        fetch = [*graph.output_names, *graph.attributes.get("preserved", ())]
        del graph, result
        if against is not None and sum(found["pass_ms"] for found in runs) < _PATIENCE_MS:
            runs.append(against.time(workload.path, workload.fetch or fetch))
    measured: dict[str, Any] = {
        "name": workload.name,
        "kind": workload.kind,
        "nodes": before[0],
        "nodes_after": after[0],
        "casts_after": after[1],
        "steps": times,
    }
    if runs:
        ours = times["pass"]["wall_ms"]
        pass_ms = [found["pass_ms"] for found in runs]
        measured["grappler"] = {
            "pass_ms": pass_ms,
            "whole_ms": [found["whole_ms"] for found in runs],
            "whole_cpu_ms": [found["whole_cpu_ms"] for found in runs],
            "nodes_after": runs[-1]["nodes"],
            "casts_after": runs[-1]["casts"],
        }
        measured["ratio"] = median(ours) / median(pass_ms)
        measured["ratio_of_best"] = min(ours) / min(pass_ms)
    return measured


def _timed(times: dict[str, list[float]], action: Callable[[], _T]) -> _T:
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    result = action()
    times["wall_ms"].append(1000 * (time.perf_counter() - wall))
    times["cpu_ms"].append(1000 * (time.process_time() - cpu))
    return result


def _count(graph: Graph) -> tuple[int, int]:
    """Return how many nodes, and how many of them Casts, a graph and its functions have."""
    nodes = [node for body in (graph, *graph.functions.values()) for node in body.nodes]
    return len(nodes), sum(node.op_type == "Cast" for node in nodes)


def _peak_bytes(workload: Workload, policy: Policy) -> int:
    """Return the peak memory of a new process that loads, rewrites, verifies and saves a graph."""
    command = [sys.executable, "-m", "bench.memory", str(workload.path), str(policy), *(workload.fetch or ())]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"The process that measures memory on {workload.name} failed: {done.stderr[-1000:]}")
    return int(done.stdout)


def _exponents(results: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Fit the growth of the pass, by kind of synthetic graph, where there are two sizes or more from 10,000 nodes on."""
    points: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for result in results:
        if result["kind"] != "real" and result["nodes"] >= 9_900:
            points[result["kind"]].append((result["nodes"], median(result["steps"]["pass"]["cpu_ms"])))
    return {kind: growth(*zip(*found, strict=True)) for kind, found in points.items() if len(found) > 1}


def _limits(results: Sequence[dict[str, Any]], exponents: dict[str, float], memory: dict[str, int]) -> list[Limit]:
    """Return the goals that this run says something about."""
    most: dict[str, float] = {"resnet50_train": 2, f"tensorlist {TENSORLIST_NODES:,}": 0.05}
    most |= {f"{kind} {_LARGE:,}": 1 for kind in KINDS}
    limits = [
        Limit(f"{result['name']}: pass / Grappler's", result["ratio"], most[result["name"]])
        for result in results
        if "ratio" in result and result["name"] in most
    ]
    limits += [Limit(f"{kind}: growth exponent of the pass", value, 1.2) for kind, value in exponents.items()]
    limits += [
        Limit(f"{name}: peak memory", value / 1e6, 1000, " MB") for name, value in memory.items() if name.endswith(f" {_LARGE:,}")
    ]
    return limits


def _table(results: Iterable[dict[str, Any]]) -> Any:
    rows = []
    for result in results:
        steps = result["steps"]
        peer = result.get("grappler")
        rows.append(
            (
                result["name"],
                f"{result['nodes']:,}",
                *(_number(median(steps[step]["wall_ms"])) for step in STEPS),
                _number(median(steps["pass"]["cpu_ms"])),
                _number(median(peer["pass_ms"])) if peer else "",
                f"{result['ratio']:.3g}" if peer else "",
            )
        )
    return table("Milliseconds", ("graph", "nodes", *STEPS, "pass, CPU", "Grappler", "ratio"), rows)


def _number(value: float) -> str:
    """Return about three digits, without an exponent."""
    return f"{value:,.{max(0, 2 - math.floor(math.log10(value)))}f}" if value else "0"


def _print_agreement(results: Iterable[dict[str, Any]], screen: Console) -> None:
    """Say where the results have different sizes: then the times are not of the same work."""
    for result in results:
        peer = result.get("grappler")
        if peer and (peer["nodes_after"], peer["casts_after"]) != (result["nodes_after"], result["casts_after"]):
            screen.print(
                f"{result['name']}: ours has {result['nodes_after']:,} nodes ({result['casts_after']:,} Casts), "
                f"Grappler's {peer['nodes_after']:,} ({peer['casts_after']:,})",
                highlight=False,
            )
