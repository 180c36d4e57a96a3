"""Preset ``grappler`` decides what TensorFlow's own pass decided, node for node.

The recordings in ``tests/data/grappler`` were made with TensorFlow 2.21.0: all cases modelled on its unit tests, a fifth of
the random graphs and some real models. ``AMPGRAPH_GOLDENS`` may name a folder with all of them.
"""

import os
from pathlib import Path

import pytest

from tests.tools.goldens import Case, read_cases, run_case

SHARE = Path(__file__).parents[1] / "data" / "grappler"
CASES = list(read_cases(SHARE))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_decides_like_tensorflow(case: Case) -> None:
    assert run_case(case) == []


def test_the_share_covers_every_mode_and_kind() -> None:
    assert {(case.kind, case.mode) for case in CASES} == {
        (kind, mode) for kind in ("unit", "fuzz", "models") for mode in ("cuda_fp16", "onednn_bf16", "cpu_fp16")
    }
    assert any(case.expect["status"] == "error" for case in CASES)
    assert any(not case.tf_valid for case in CASES)


@pytest.mark.goldens
def test_decides_like_tensorflow_everywhere() -> None:
    folder = Path(os.environ["AMPGRAPH_GOLDENS"])
    cases = list(read_cases(folder / "grappler" if (folder / "grappler").is_dir() else folder))
    assert cases
    assert {case.id: differences for case in cases if (differences := run_case(case))} == {}
