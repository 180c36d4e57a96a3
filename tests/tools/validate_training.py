"""Run traced training graphs in TensorFlow too, and compare: ``python -m tests.tools.validate_training --python PYTHON``.

PYTHON is an interpreter that has TensorFlow; the one that runs this, if it has it itself. Each training graph is exported, in float32 and
rewritten to float16 and bfloat16, and runs some steps here and there. Losses, gradients, variables, loss scales and counters are
compared: by the norm of their difference, relative to their own; in low precision, gradients relative to all gradients of the step. On
the float32 graph TensorFlow's auto_mixed_precision is run, too, and
its graph compared with that of preset ``grappler``, node for node: for CPUs, and for GPUs where that TensorFlow is one built with CUDA.
Where the report of the preset says that it differs from Grappler for good reason, TensorFlow must fail to run its own graph.

``--record FILE`` writes what TensorFlow gave, as tests without TensorFlow read it:

    python -m tests.tools.validate_training --python PYTHON --only mlp lstm --record FILE
"""

import argparse
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import ampgraph as ag
from tests.tools.goldens import compare_graphs
from tests.tools.training_graphs import CASES, Made, TrainingGraph, make, run

#: By how much results may differ, relative to the norm of each.
BOUNDS = {"float32": 1e-5, "float16": 5e-3, "bfloat16": 5e-2}
#: Grappler's modes, and what they are for here.
MODES = {"cpu_fp16": "cpu", "cuda_fp16": "gpu"}
_RUNNER = Path(__file__).with_name("run_tensorflow.py")


def main() -> int:
    """Run, compare and print; return 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has TensorFlow")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="these cases")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write what TensorFlow gave")
    options = parser.parse_args()
    chosen = [case for case in CASES if not options.only or case.name in options.only]
    if not chosen:
        parser.error(f"there are the cases {', '.join(case.name for case in CASES)}. Received: {options.only}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        lines, failed = validate(folder, chosen, options.python)
        print("\n".join(lines))
        if options.record is not None:
            record(folder, chosen, options.record)
    return int(failed)


def validate(folder: Path, cases: list[TrainingGraph], python: str) -> tuple[list[str], bool]:
    """Compare cases with TensorFlow; return a table, and whether something differs."""
    made = {(case.name, dtype): make(case, None if dtype == "float32" else dtype) for case in cases for dtype in BOUNDS}
    answers = ask(folder, made, python)
    lines = [
        f"TensorFlow {answers['tensorflow']}",
        f"{'graph':<16} {'nodes':>5} {'low':>4} {'float32':>9} {'float16':>9} {'bfloat16':>9}  Grappler",
    ]
    failed = False
    for case in cases:
        cells, problems = [], []
        for dtype, bound in BOUNDS.items():
            problem, error = answers[f"{case.name}.{dtype}"], 0.0
            if not problem:
                theirs = dict(np.load(folder / f"{case.name}.{dtype}.npz"))
                error, problem = compare(run(made[case.name, dtype]), theirs, bound)
            cells.append(f"{error:9.1e}" if not problem else "  differs" if error else "        -")
            failed |= bool(problem) and not problem.startswith("no kernel")
            problems += [f"    {dtype}: {problem}"] if problem else []
        decisions = []
        for mode in MODES if answers["cuda"] else ["cpu_fp16"]:
            before, theirs = folder / f"{case.name}.float32.pb", folder / f"{case.name}.{mode}.pb"
            if not theirs.exists():
                found, differs = [answers[f"{case.name}.{mode}"]], False
            else:
                found, differs = decide(before, theirs, mode)
            safer = differs and bool(answers[f"{case.name}.{mode}"])
            decisions.append(f"{mode} {'safer' if safer else 'differs' if found else 'equal'}")
            failed |= bool(found) and not safer
            problems += [f"    {mode}: {line}" for line in found[:5] if not safer]
        nodes, low = len(exported(made[case.name, "float32"])), low_nodes(exported(made[case.name, "float16"]))
        failed |= not low
        lines += [f"{case.name:<16} {nodes:5} {low:4} {' '.join(cells)}  {', '.join(decisions)}", *problems]
    return lines, failed


def exported(made: Made) -> ag.Graph:
    """Return a case's graph for TensorFlow."""
    return made.step.specialize(*made.batches[0]).export()


def low_nodes(graph: ag.Graph) -> int:
    """Return how many nodes compute in low precision."""
    nodes = [node for part in graph.all_graphs() for node in part.nodes if node.op_type != "Cast"]
    return sum(any(dtype.name in ("float16", "bfloat16") for dtype in node.types.values()) for node in nodes)


def ask(folder: Path, made: dict[tuple[str, str], Made], python: str) -> dict[str, Any]:
    """Let TensorFlow run all graphs, whose results then lie in the folder; return what it says about each."""
    jobs: list[dict[str, Any]] = []
    for (name, dtype), case in made.items():
        job = f"{name}.{dtype}"
        graph = exported(case)
        ag.save(graph, folder / f"{job}.pb")
        inputs = [node.name for node in graph.nodes if node.op_type == "Placeholder"]
        feeds = {f"{k}/{x}": a for k, batch in enumerate(case.batches) for x, a in zip(inputs, batch, strict=True)}
        np.savez(folder / f"{job}.feeds.npz", **feeds)
        files = {"graph": f"{job}.pb", "feeds": f"{job}.feeds.npz", "fetches": graph.output_names}
        jobs.append({"id": job, **files})
        if dtype == "float32":
            jobs += [{"id": f"{name}.{mode}", "mode": mode, **files} for mode in MODES]
    (folder / "jobs.json").write_text(json.dumps(jobs), encoding="utf-8")
    subprocess.run([python, "-I", str(_RUNNER), str(folder)], check=True, capture_output=True, timeout=600)
    answers: dict[str, Any] = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
    return answers


def compare(ours: list[dict[str, Any]], theirs: dict[str, Any], bound: float) -> tuple[float, str]:
    """Return the largest difference between results of steps, and where it is too large.

    Where a step is not finite, only what it leaves behind is compared, and that both are not.
    """
    worst, where = 0.0, ""
    for k, row in enumerate(ours):
        for name, got in row.items():
            wanted = theirs[f"{k}/{name}"]
            if got.shape != wanted.shape or got.dtype != wanted.dtype:
                return 1.0, f"{name} of step {k} is {wanted.dtype}{wanted.shape} in TensorFlow, not {got.dtype}{got.shape}"
            finite = np.isfinite(wanted).all()
            if finite != np.isfinite(got).all():
                return 1.0, f"{name} of step {k} is {'finite' if finite else 'not finite'} in TensorFlow only"
            if not finite:
                continue
            length = float(np.linalg.norm(wanted.astype(np.float64)))
            if name.startswith("gradients/") and bound > BOUNDS["float32"]:
                length = max(length, float(theirs[f"{k}/grad_norm"]))
            error = float(np.linalg.norm(got.astype(np.float64) - wanted)) / (length or 1.0)
            if error > worst:
                worst, where = error, f"{name} of step {k} differs by {error:.1e}"
    return worst, where if worst > bound else ""


def decide(before: Path, theirs: Path, mode: str) -> tuple[list[str], bool]:
    """Rewrite a graph as Grappler does.

    Returns:
        How the result differs from the graph that Grappler made, and whether the report says that it does.
    """
    outputs = fetched(before)
    policy = ag.Policy(preset="grappler", dtype="float16", target=MODES[mode], preserve=("init",))
    result = ag.auto_mixed_precision(ag.load(before, outputs=outputs), policy)
    differs = any(note.startswith("unlike Grappler") for note in result.report.notes)
    return compare_graphs(result.graph, ag.load(theirs, outputs=outputs)), differs


def fetched(path: Path) -> list[str]:
    """Return the names of the outputs of an exported training graph."""
    return [value.name for value in ag.load(path).outputs if value.producer.op_type == "Identity"]


def record(folder: Path, cases: list[TrainingGraph], target: Path) -> None:
    """Pack what TensorFlow gave in float32, the float32 graphs, and what Grappler made of them."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(target, "w:xz") as archive:
        for case in cases:
            for name in (f"{case.name}.float32.npz", f"{case.name}.float32.pb", *(f"{case.name}.{mode}.pb" for mode in MODES)):
                if (folder / name).exists():
                    data = (folder / name).read_bytes()
                    entry = tarfile.TarInfo(name)
                    entry.size = len(data)
                    archive.addfile(entry, io.BytesIO(data))


if __name__ == "__main__":
    sys.exit(main())
