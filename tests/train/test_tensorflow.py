"""Training graphs of all kinds do in TensorFlow what they do here, and Grappler decides on them as preset ``grappler`` does."""

import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from tests.contract.modules import ROOT
from tests.tools.training_graphs import CASES, make, run
from tests.tools.validate_training import BOUNDS, MODES, compare, decide, validate

RECORDED = ("mlp", "mlp_accumulated", "cnn", "lstm", "transformer", "loop")
#: Where Grappler's own graph does not run: a tensor list turns float16 in the main graph, and stays float32 in the body of a loop.
BROKEN = {("lstm", "cuda_fp16")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("training")
    with tarfile.open(ROOT / "tests" / "data" / "training" / "recorded.tar.xz") as archive:
        archive.extractall(path, filter="data")
    return path


@pytest.mark.parametrize("name", RECORDED)
def test_steps_are_those_of_tensorflow(name: str, folder: Path) -> None:
    """Losses, every gradient, new variables, loss scales and counters."""
    case = next(case for case in CASES if case.name == name)
    ours = run(make(case, None))
    theirs = dict(np.load(folder / f"{name}.float32.npz"))
    assert len(theirs) == sum(map(len, ours))
    assert compare(ours, theirs, BOUNDS["float32"])[1] == ""


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", RECORDED)
def test_rewritten_steps_are_near_those_of_tensorflow_in_float32(name: str, dtype: str, folder: Path) -> None:
    case = next(case for case in CASES if case.name == name)
    theirs = dict(np.load(folder / f"{name}.float32.npz"))
    assert compare(run(make(case, dtype)), theirs, BOUNDS[dtype])[1] == ""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", RECORDED)
def test_decisions_are_those_of_grappler(name: str, mode: str, folder: Path) -> None:
    differences, said = decide(folder / f"{name}.float32.pb", folder / f"{name}.{mode}.pb", mode)
    assert bool(differences) == said == ((name, mode) in BROKEN), differences


@pytest.mark.tensorflow
def test_tensorflow_itself_agrees(tmp_path: Path) -> None:
    lines, failed = validate(tmp_path, CASES, sys.executable)
    assert not failed, "\n".join(lines)
