"""Graphs that TensorFlow ran give the results that it recorded.

``tests/data/exec/share.tar.xz`` holds some of each kind, recorded with TensorFlow 2.21.0. ``AMPGRAPH_GOLDENS`` may name a folder
with all of them.
"""

import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.tools.replay_exec import REWRITTEN, failure, read_manifest

SHARE = Path(__file__).parents[1] / "data" / "exec" / "share.tar.xz"


#: Rewritten graphs that are farther off, and why.
FAR = {
    (
        "k3.mlp_lossscale_overflow_functional",
        "float16",
    ): "gradients times a loss scale of 1.7e38 are infinite, as the graph finds",
    (
        "model.resnetish_train",
        "bfloat16",
    ): "activations within rounding of 0 take the other side of a Relu, and gradients with them",
}


def _files() -> dict[str, bytes]:
    with tarfile.open(SHARE) as archive:
        return {member.name: file.read() for member in archive if (file := archive.extractfile(member)) is not None}


FILES = _files()
CASES = [json.loads(line) for line in FILES["manifest.jsonl"].splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exec")
    for name, data in FILES.items():
        (path / name).write_bytes(data)
    return path


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_gives_what_tensorflow_recorded(case: dict[str, Any], folder: Path) -> None:
    assert failure(folder, case) == ""


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("case", [case for case in CASES if case["kind"].startswith(REWRITTEN)], ids=lambda case: case["id"])
def test_stays_near_it_when_rewritten(case: dict[str, Any], dtype: str, folder: Path) -> None:
    assert bool(failure(folder, case, dtype)) == ((case["id"], dtype) in FAR)


@pytest.mark.goldens
@pytest.mark.parametrize("dtype", [None, "float16", "bfloat16"])
def test_gives_what_tensorflow_recorded_everywhere(dtype: str | None) -> None:
    root = Path(os.environ["AMPGRAPH_GOLDENS"])
    root = root / "exec" if (root / "exec").is_dir() else root
    cases = [case for case in read_manifest(root) if dtype is None or case["kind"].startswith(REWRITTEN)]
    assert cases
    failures = {case["id"]: why for case in cases if (why := failure(root, case, dtype))}
    assert {name: why for name, why in failures.items() if (name, dtype) not in FAR} == {}
