"""Run recorded TensorFlow graphs with ampgraph and compare their results: ``python tests/tools/replay_exec.py FOLDER``.

The folder holds ``manifest.jsonl``, a line for each case, and the graphs (``.pb.gz``) and arrays (``.npz``) that it names.
"""

import argparse
import collections
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import ampgraph as ag


def main() -> int:
    """Run the cases; return 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=[], metavar="TEXT", help="cases whose id or kind contains one of these")
    parser.add_argument("--ops", action="store_true", help="list the ops without a kernel instead")
    options = parser.parse_args()
    lines = (options.folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    if options.only:
        cases = [case for case in cases if any(text in case["id"] or text in case["kind"] for text in options.only)]
    failures = {case["id"]: why for case in cases if (why := failure(options.folder, case))}
    for name, why in failures.items():
        print(f"FAIL {name}: {why}")
    kinds = collections.Counter(case["kind"] for case in cases if case["id"] in failures)
    print(f"{len(cases) - len(failures)} passed, {len(failures)} failed of {len(cases)}", dict(kinds) or "")
    return int(bool(failures))


def failure(folder: Path, case: dict[str, Any]) -> str:
    """Run a case; return what is wrong, or an empty text."""
    names = [fetch["name"] for fetch in case["fetches"]]
    arrays = np.load(folder / case["npz"])
    try:
        graph = ag.load(folder / case["pb"], outputs=names)
        feeds = {feed["name"]: typed(arrays[feed["key"]], feed["dtype"]) for feed in case["feeds"]}
        results = list(ag.compile(graph)(feeds).values())
    except ag.AmpgraphError as error:
        return str(error)
    for fetch, result in zip(case["fetches"], results, strict=True):
        if why := difference(np.asarray(result), typed(arrays[fetch["key"]], fetch["dtype"]), case["tol"], fetch):
            return f"{fetch['name']}: {why}"
    return ""


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
