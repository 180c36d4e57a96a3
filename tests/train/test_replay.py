"""Loss scales, counters, variables and slots move as other frameworks recorded them.

``tests/data/loss_scale/share.tar.xz`` holds a share of the recordings. ``AMPGRAPH_GOLDENS`` may name a folder with all of them.
"""

import copy
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.tools.replay_loss_scale import FRAMEWORKS, read_traces, run_trace

SHARE = Path(__file__).parents[1] / "data" / "loss_scale" / "share.tar.xz"


def _traces() -> dict[str, Any]:
    with tarfile.open(SHARE) as archive:
        files = {member.name: archive.extractfile(member) for member in archive}
        return {name.removesuffix(".json"): json.load(file) for name, file in files.items() if file is not None}


TRACES = _traces()


@pytest.mark.parametrize("name", TRACES)
def test_moves_as_recorded(name: str) -> None:
    assert run_trace(TRACES[name]) == []


def test_the_share_covers_every_framework_and_optimizer() -> None:
    for framework in FRAMEWORKS:
        traces = [trace for trace in TRACES.values() if trace["implementation"].startswith(framework)]
        assert len({trace["optimizer"] for trace in traces}) >= 2
        assert {step["applied"] for trace in traces for step in trace["steps"]} == {True, False}
    assert {trace["dynamic"] for trace in TRACES.values()} == {True, False}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("scale_after", "0x1p+3", "loss scale after"),
        ("good_steps_after", 7, "counter of good steps"),
        ("applied", False, "applied"),
        ("iterations_after", 9, "iterations"),
        ("vars_after", [["0x0p+0"] * 3, ["0x0p+0"] * 4], "a variable"),
        ("slots_after", {"v0_momentum": ["0x1p+0"] * 3, "v1_momentum": ["0x1p+0"] * 4}, "a slot"),
    ],
)
def test_a_difference_is_found(key: str, value: Any, message: str) -> None:
    trace = copy.deepcopy(TRACES["k3.growth1.momentum"])
    trace["steps"][1][key] = value
    assert any(f"step 1: {message} is" in line for line in run_trace(trace))


@pytest.mark.goldens
def test_moves_as_recorded_everywhere() -> None:
    root = Path(os.environ["AMPGRAPH_GOLDENS"])
    traces = read_traces(root / "loss_scale" if (root / "loss_scale").is_dir() else root)
    assert traces
    assert {name: differences for name, trace in traces.items() if (differences := run_trace(trace))} == {}
