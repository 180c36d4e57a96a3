"""Checkpoints are whole or refused, and refusing changes nothing."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph import DynamicLossScale, LossScaleOptimizer, train

from .variables import Box


def trained(scale: Any = "dynamic") -> tuple[LossScaleOptimizer, Box]:
    optimizer, box = LossScaleOptimizer(train.Adam(0.1), scale), Box("layer/w", [1.0, 2.0])
    optimizer.apply_gradients([(np.array([0.5, 1]), box)])
    optimizer.apply_gradients([(np.array([0.5, np.inf]), box)])
    return optimizer, box


def test_a_loss_scale_goes_on_with_every_field_of_its_state(tmp_path: Path) -> None:
    made = DynamicLossScale(64.0, hysteresis=4)
    optimizer, box = trained(made)
    optimizer.apply_gradients([(np.array([0.5, 1]), box)])
    train.save_checkpoint(tmp_path / "a.npz", [box], optimizer)
    other = LossScaleOptimizer(train.Adam(0.1), made)
    train.load_checkpoint(tmp_path / "a.npz", [Box("layer/w", [0.0, 0.0])], other)
    assert other.loss_scale == optimizer.loss_scale == DynamicLossScale(64.0, hysteresis=4, good_steps=1, bad_steps=1)


def test_a_failed_save_leaves_the_older_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    optimizer, box = trained()
    path = tmp_path / "a.npz"
    train.save_checkpoint(path, [box], optimizer)
    before = path.read_bytes()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    optimizer.apply_gradients([(np.array([0.5, 1]), box)])
    with pytest.raises(OSError, match="disk full"):
        train.save_checkpoint(path, [box], optimizer)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_two_variables_of_one_name_are_not_saved(tmp_path: Path) -> None:
    optimizer, box = trained()
    with pytest.raises(ag.TrainingError, match="Received: 'layer/w' twice"):
        train.save_checkpoint(tmp_path / "a.npz", [box, Box("layer/w", [0.0])], optimizer)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("make", "boxes", "message"),
    [
        (
            lambda: LossScaleOptimizer(train.Adam()),
            [Box("w", [0.0, 0.0])],
            r"holds the variables \['layer/w'\]. Received: \['w'\]",
        ),
        (lambda: LossScaleOptimizer(train.Adam()), [Box("layer/w", [0.0])], r"is float32\[1\], but float32\[2\] in"),
        (lambda: LossScaleOptimizer(train.SGD()), [Box("layer/w", [0.0, 0.0])], "goes on from a state of rule 'sgd'"),
        (lambda: train.Adam(), [Box("layer/w", [0.0, 0.0])], "goes on from a state of rule 'adam'. Received: .*'of no name'"),
        (lambda: LossScaleOptimizer(train.Adam(), 8), [Box("layer/w", [0.0, 0.0])], r"such a loss scale: \['scale'\]"),
        (
            lambda: LossScaleOptimizer(train.Adam(), DynamicLossScale(4.0, ceiling=8.0)),
            [Box("layer/w", [0.0, 0.0])],
            "scale between 1 and 8. Received: 16384",
        ),
    ],
)
def test_a_checkpoint_of_something_else_changes_nothing(
    make: Callable[[], Any], boxes: list[Box], message: str, tmp_path: Path
) -> None:
    optimizer, box = trained()
    train.save_checkpoint(tmp_path / "a.npz", [box], optimizer)
    other = make()
    before = {name: np.asarray(array).tobytes() for name, array in other.state_dict().items()}
    with pytest.raises(ag.TrainingError, match=message):
        train.load_checkpoint(tmp_path / "a.npz", boxes, other)
    assert {name: np.asarray(array).tobytes() for name, array in other.state_dict().items()} == before
    assert [box.assigned for box in boxes] == [0]


def _bytes_of_an_array() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.ones(3))
    return buffer.getvalue()


def _bytes_of_objects() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, np.array([{}], object))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "data", [b"", b"hello", b"PK\x03\x04 not quite", _bytes_of_an_array(), _bytes_of_objects()], ids=range(5)
)
def test_what_is_no_checkpoint_is_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(data)
    optimizer, box = trained()
    with pytest.raises(ag.TrainingError, match="is no checkpoint: "):
        train.load_checkpoint(tmp_path / "a.npz", [box], optimizer)


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    optimizer, box = trained()
    train.save_checkpoint(tmp_path / "a.npz", [box], optimizer)
    data = (tmp_path / "a.npz").read_bytes()
    for length in range(0, len(data), 97):
        (tmp_path / "b.npz").write_bytes(data[:length])
        with pytest.raises(ag.TrainingError, match="is no checkpoint: "):
            train.load_checkpoint(tmp_path / "b.npz", [box], optimizer)


def test_damaged_files_are_refused_or_read(tmp_path: Path) -> None:
    """Whatever byte is another: headers that do not parse, archives that say they are encrypted, wrong sums."""
    optimizer, box = trained()
    train.save_checkpoint(tmp_path / "a.npz", [box], optimizer)
    data = (tmp_path / "a.npz").read_bytes()
    refused = 0
    for at in range(0, len(data), 5):
        (tmp_path / "b.npz").write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        try:
            train.load_checkpoint(tmp_path / "b.npz", [box], optimizer)
        except ag.TrainingError:
            refused += 1
    assert refused > len(data) // 10
