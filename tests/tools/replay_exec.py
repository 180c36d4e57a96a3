"""Run recorded TensorFlow graphs with ampgraph and compare their results: ``python tests/tools/replay_exec.py FOLDER``.

The folder holds ``manifest.jsonl``, a line for each case, and the graphs and arrays (``.npz``) that it names. With
``--rewrite`` it is the graphs' mixed precision forms that run, held to bounds for low precision: an output's error, its
root mean square, may be so much of its largest magnitude; it must be finite where it was, and integers are equal.
"""

import argparse
import collections
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import ampgraph as ag

#: How far outputs of rewritten graphs may be from what was recorded, relative to the largest magnitude of each.
BOUNDS = {"float16": 2e-2, "bfloat16": 1e-1}
#: Graphs with something to rewrite; single ops are left alone.
REWRITTEN = ("amp/", "cf/", "model/", "train/")


def main() -> int:
    """Run the cases; return 1 if one fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=[], metavar="TEXT", help="cases whose id or kind contains one of these")
    parser.add_argument("--rewrite", choices=BOUNDS, help="run the graphs rewritten to this dtype")
    options = parser.parse_args()
    cases = read_manifest(options.folder)
    if options.only:
        cases = [case for case in cases if any(text in case["id"] or text in case["kind"] for text in options.only)]
    elif options.rewrite:
        cases = [case for case in cases if case["kind"].startswith(REWRITTEN)]
    if not cases:
        parser.error(f"no case is chosen. Received: --only {' '.join(options.only)}")
    failures = {case["id"]: why for case in cases if (why := failure(options.folder, case, options.rewrite))}
    for name, why in failures.items():
        print(f"FAIL {name}: {why}")
    kinds = collections.Counter(case["kind"] for case in cases if case["id"] in failures)
    print(f"{len(cases) - len(failures)} passed, {len(failures)} failed of {len(cases)}", dict(kinds) or "")
    return int(bool(failures))


def read_manifest(folder: Path) -> list[dict[str, Any]]:
    """Return the cases of a folder."""
    return [json.loads(line) for line in (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines()]


def failure(folder: Path, case: dict[str, Any], dtype: str | None = None) -> str:
    """Run a case, rewritten if a dtype is given; return what is wrong, or an empty text."""
    names = [fetch["name"] for fetch in case["fetches"]]
    arrays = np.load(folder / case["npz"])
    try:
        graph = ag.load(folder / case["pb"], outputs=names)
        if dtype is not None:
            graph = ag.auto_mixed_precision(graph, dtype=dtype).graph
        feeds = {feed["name"]: typed(arrays[feed["key"]], feed["dtype"]) for feed in case["feeds"]}
        results = list(ag.compile(graph)(feeds).values())
    except ag.AmpgraphError as error:
        return str(error)
    for fetch, result in zip(case["fetches"], results, strict=True):
        got, wanted = np.asarray(result), typed(arrays[fetch["key"]], fetch["dtype"])
        if dtype is not None and wanted.dtype.kind in "fcV":
            why = "" if fetch.get("noise") else distance(got, wanted, BOUNDS[dtype])
        else:
            why = difference(got, wanted, case["tol"], fetch)
        if why:
            return f"{fetch['name']}: {why}"
    return ""


def distance(got: Any, wanted: Any, bound: float) -> str:
    """Return by how much a result in low precision differs, if by more than it may, or an empty text."""
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f"it is {got.dtype}{list(got.shape)}, not {wanted.dtype}{list(wanted.shape)}"
    a, r = (x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in (got, wanted))
    finite = np.isfinite(r)
    if not np.isfinite(a[finite]).all():
        return f"{int((~np.isfinite(a[finite])).sum())} elements are no longer finite"
    largest = float(np.abs(r[finite]).max(initial=0))
    error = float(np.linalg.norm(a[finite] - r[finite]) / max(np.sqrt(finite.sum()), 1))
    return f"its error is {error / largest if largest else error:.3g} of its largest magnitude" if error > bound * largest else ""


def typed(array: Any, dtype: str) -> Any:
    """Return a recorded array with its own dtype: bfloat16 is recorded by its bits."""
    return array.view(ag.find_dtype(dtype).numpy) if dtype == "bfloat16" else array


def difference(got: Any, wanted: Any, tolerance: dict[str, Any], fetch: dict[str, Any]) -> str:
    """Return how a result differs from what was recorded by more than it may, or an empty text."""
    if got.shape != wanted.shape:
        return f"its shape is {got.shape}, not {wanted.shape}"
    if got.dtype != wanted.dtype and wanted.dtype.kind not in "OSU":
        return f"its dtype is {got.dtype}, not {wanted.dtype}"
    if wanted.dtype.kind not in "fcV":
        same = np.array_equal(got.astype(wanted.dtype) if wanted.dtype.kind in "OSU" else got, wanted)
        return "" if same else f"its elements differ: {got.ravel()[:4]}, not {wanted.ravel()[:4]}"
    a, r = (x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in (got, wanted))
    if fetch.get("noise"):
        rms = float(np.sqrt(np.mean(np.abs(a) ** 2))) if a.size else 0.0
        return "" if rms < tolerance["noise_rms"] else f"it should be 0 but for noise, and its root mean square is {rms:g}"
    odd = ~np.isfinite(r)
    if not np.array_equal(odd, ~np.isfinite(a)) or not np.array_equal(a[odd], r[odd], equal_nan=True):
        return f"infinities and NaNs stand elsewhere: {a[odd | ~np.isfinite(a)][:4]}, not {r[odd | ~np.isfinite(a)][:4]}"
    error = np.abs(a[~odd] - r[~odd])
    if tolerance.get("compare") == "elementwise":
        bad = error > tolerance["rtol"] * np.abs(r[~odd]) + tolerance["atol"]
        return f"{a[~odd][bad][:4]}, not {r[~odd][bad][:4]}" if bad.any() else ""
    limit = tolerance["rel_norm"] * np.linalg.norm(r[~odd]) + (
        tolerance["abs_rms"] * np.sqrt(error.size) if tolerance["rel_norm"] else 0
    )
    norm = float(np.linalg.norm(error))
    return f"its error is {norm:.3g}, not at most {limit:.3g}" if norm > limit else ""


if __name__ == "__main__":
    sys.exit(main())
