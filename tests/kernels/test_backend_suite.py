"""The ONNX standard's own test suite, all of it: what fails is exactly what the reviewed list says."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import onnx
import pytest

TOOL = Path(__file__).parents[1] / "tools" / "backend_suite.py"
REVIEWED = tomllib.loads((TOOL.parents[1] / "data" / "onnx" / "backend_failures.toml").read_text(encoding="utf-8"))
#: The version of the suite that the list is for, and how many cases it has.
VERSION, CASES, HALF_CASES = "1.23.2", 2033, 884


def listed(kind: str) -> set[str]:
    return {case for row in REVIEWED[kind] for case in row["cases"]}


def run_suite(*options: str) -> dict[str, str]:
    """Run the suite, a share in each of a few processes; return what became of every case."""
    count = min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    shards: list[Any] = [
        subprocess.Popen(
            [sys.executable, TOOL, *options, "--shard", f"{i}/{count}"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for i in range(count)
    ]
    results: dict[str, str] = {}
    for shard in shards:
        out, error = shard.communicate()
        assert shard.returncode == 0, error.decode()[-2000:]
        results |= json.loads(out)
    return results


def check(results: dict[str, str], expected: set[str]) -> None:
    unstable = listed("unstable")
    failed = {name: why for name, why in results.items() if why and name not in expected | unstable}
    assert not failed
    if onnx.__version__ == VERSION:
        assert expected <= set(results)
        passed = {name for name in expected if not results[name]}
        assert not passed, "these pass now: take them off the list"


def test_every_case_passes_but_the_listed() -> None:
    results = run_suite()
    check(results, listed("reason"))
    if onnx.__version__ == VERSION:
        assert len(results) == CASES
        assert unlisted_passes(results) > 2006  # what ONNX's own evaluator passes


def test_every_case_in_float16_passes_but_the_listed() -> None:
    results = run_suite("--half")
    check(results, listed("half"))
    if onnx.__version__ == VERSION:
        assert len(results) == HALF_CASES
        assert unlisted_passes(results) > 870


def unlisted_passes(results: dict[str, str]) -> int:
    return sum(not why for why in results.values())


def test_every_listed_case_has_a_reason_and_stands_there_once() -> None:
    every = [case for rows in REVIEWED.values() for row in rows for case in row["cases"]]
    assert len(every) == len(set(every))
    assert all(len(row["why"]) > 40 for rows in REVIEWED.values() for row in rows)


@pytest.mark.parametrize("share", ["reason", "unstable", "half"])
def test_the_list_is_short(share: str) -> None:
    assert len(listed(share)) <= 20
