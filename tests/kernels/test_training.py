"""Steps of optimizers, worked out by hand for round numbers."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.one_node import run_op


def step(op: str, rate: float, count: int, *tensors: list[float], **options: Any) -> list[Any]:
    arrays = [np.array(tensor, np.float32) for tensor in tensors]
    groups = {"Adagrad": 3, "Adam": 4, "Momentum": 3}[op]
    results = len(tensors) // groups * (groups - 1)
    name = f"ai.onnx.preview.training:{op}"
    found = run_op(name, np.array(rate, np.float32), np.array(count), *arrays, version=1, results=results, **options)
    return [x.tolist() for x in found]


def test_adagrad() -> None:
    x, squares = step("Adagrad", 1, 2, [1], [3], [0], decay_factor=0.5, epsilon=1.0, norm_coefficient=1.0)
    assert (x, squares) == ([pytest.approx(1 - 0.5 * 4 / 5)], [16])


def test_adam_corrects_its_first_steps() -> None:
    x, mean, squares = step("Adam", 0.5, 1, [1], [2], [0], [0], alpha=0.5, beta=0.75, epsilon=0.0, norm_coefficient_post=0.5)
    assert (mean, squares) == ([1], [1])
    assert x == [pytest.approx(0.5 * (1 - 0.5 * 0.25**0.5 / 0.5))]
    assert step("Adam", 0.5, 0, [1], [2], [0], [0], alpha=0.5, beta=0.75, epsilon=0.0)[0] == [0.5]


@pytest.mark.parametrize(
    ("mode", "count", "x", "speed"), [(b"standard", 0, -3, 4), (b"standard", 1, -1.5, 2.5), (b"nesterov", 0, -4, 4)]
)
def test_momentum(mode: bytes, count: int, x: float, speed: float) -> None:
    got = step("Momentum", 1, count, [1], [2], [2], alpha=0.5, beta=0.5, norm_coefficient=1.0, mode=mode)
    assert got == [[x], [speed]]


def test_results_come_group_by_group() -> None:
    got = step("Adagrad", 1, 0, [1], [10, 20], [1], [2, 2], [0], [0, 0], epsilon=0.0)
    assert got == [[0], [9, 19], [1], [4, 4]]
    with pytest.raises(KernelError, match=r"3 operands per tensor. Received: 4"):
        step("Adagrad", 1, 0, [1], [1], [1], [1])
    with pytest.raises(KernelError, match=r"standard and nesterov. Received: 'fast'"):
        step("Momentum", 1, 0, [1], [2], [2], alpha=0.5, beta=0.5, norm_coefficient=1.0, mode=b"fast")
