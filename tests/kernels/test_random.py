"""Random numbers."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.one_node import run_op


def test_a_seed_fixes_the_numbers_and_none_does_not() -> None:
    def draw(**seed: Any) -> Any:
        return run_op("RandomNormal", types={"T": "float32"}, shape=[8], **seed).tolist()

    assert draw(seed=1.5) == draw(seed=1.5) != draw(seed=2.5)
    assert draw() != draw()


def test_a_whole_seed_gives_the_documented_stream_of_numpy() -> None:
    """The first numbers of the Mersenne twister of seed 0, as its documentation has shown them for years."""
    y = run_op("RandomUniform", types={"T": "float64"}, shape=[3], seed=0.0)
    np.testing.assert_allclose(y, [0.5488135, 0.71518937, 0.60276338], rtol=1e-7)


@pytest.mark.parametrize("op", ["RandomNormal", "RandomNormalLike"])
def test_normal_numbers_have_their_mean_and_deviation(op: str) -> None:
    x = [np.zeros((100, 100), np.float16)] if op.endswith("Like") else []
    shape: dict[str, Any] = {} if x else {"shape": [100, 100]}
    y = run_op(op, *x, types={} if x else {"T": "float16"}, mean=3.0, scale=2.0, seed=7.0, **shape)
    assert y.dtype == np.float16
    assert abs(float(y.astype(float).mean()) - 3) < 0.1
    assert abs(float(y.astype(float).std()) - 2) < 0.1


def test_uniform_numbers_fill_their_range() -> None:
    y = run_op("RandomUniformLike", np.zeros(10_000, np.int32), types={"T2": "float32"}, low=-2.0, high=6.0, seed=7.0)
    assert y.dtype == np.float32
    assert (y.min() >= -2) & (y.max() <= 6)
    assert np.abs(np.quantile(y, [0.25, 0.5, 0.75]) - [0, 2, 4]).max() < 0.2


def test_ones_come_with_their_probability() -> None:
    p = np.repeat(np.array([[0.0], [0.25], [1.0]], np.float32), 10_000, axis=1)
    y = run_op("Bernoulli", p, types={"T2": "int32"}, seed=3.0)
    assert y.dtype == np.int32
    assert np.abs(y.mean(axis=1) - [0, 0.25, 1]).max() < 0.02


def test_classes_come_with_their_unnormalized_probability() -> None:
    logits = np.log([[1, 2, 1], [1e-9, 1e-9, 5]]) + 700
    y = run_op("Multinomial", logits, sample_size=10_000, seed=3.0)
    assert y.dtype == np.int32
    assert np.abs(np.bincount(y[0], minlength=3) / 10_000 - [0.25, 0.5, 0.25]).max() < 0.02
    assert (y[1] == 2).all()
    with pytest.raises(KernelError, match="at least one class"):
        run_op("Multinomial", np.zeros((2, 0), np.float32))


X = np.full((100, 100), 3, np.float16)


def test_without_training_dropout_hands_its_operand_on() -> None:
    for operands, version in (([X], 7), ([X], 10), ([X, np.array(0.9, np.float16)], 12)):
        y, mask = run_op("Dropout", *operands, results=2, version=version)
        assert y.tobytes() == X.tobytes()
        assert mask.all()
        assert mask.dtype == (np.float16 if version == 7 else bool)


@pytest.mark.parametrize("version", [6, 13])
def test_in_training_dropout_zeroes_a_share_and_scales_the_rest(version: int) -> None:
    more: tuple[Any, ...] = (np.array(0.25, np.float32), np.array(True)) if version > 6 else ()
    attributes: dict[str, Any] = {"seed": 5} if version > 6 else {"ratio": 0.25}
    y, mask = run_op("Dropout", X, *more, results=2, version=version, **attributes)
    assert y.dtype == np.float16
    assert set(np.unique(y)) == {0, 4}
    assert abs(float((y == 0).mean()) - 0.25) < 0.03
    assert ((y != 0) == (mask != 0)).all()


def test_not_everything_can_be_dropped() -> None:
    with pytest.raises(KernelError, match=r"less than 1\. Received: 1\.0"):
        run_op("Dropout", X, np.array(1, np.float32), np.array(True))
