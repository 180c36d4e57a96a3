"""Odd arguments of ``ampgraph.nn`` and ``ampgraph.random``: NumPy's dtypes, or a sentence that says what is wrong."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph import nn as typed_nn
from ampgraph import random as typed_random

from ..tracing.running import run_graph

#: What is called with arguments that their types forbid.
nn: Any = typed_nn
random: Any = typed_random

X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(1, 4, 4, 2)
W, B = np.linspace(0, 1, 18).reshape(3, 3, 2, 1), np.array([1 / 3, -1 / 3])
FLAT = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    ("function", "operands"),
    [
        (nn.conv2d, (X, W)),
        (nn.conv2d, (X, W.astype(np.float16))),
        (nn.depthwise_conv2d, (X, W)),
        (nn.bias_add, (X, B)),
        (nn.bias_add, (X.astype(np.float16), B.astype(np.float32))),
    ],
)
def test_operands_are_promoted_as_numpy_does(function: Callable[..., Any], operands: tuple[Any, Any]) -> None:
    dtype = np.result_type(*operands)
    found = run_graph(function, operands)[0]
    alike = run_graph(function, tuple(operand.astype(dtype) for operand in operands))[0]
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, alike)


def test_statistics_are_promoted_among_themselves() -> None:
    def normalized(x: Any) -> Any:
        ones = np.ones(3, np.float16)
        return nn.batch_norm(x, np.array([1, 2, 3], np.float32), ones, ones, ones)[0]

    np.testing.assert_allclose(run_graph(normalized, (FLAT,))[0], np.ones((2, 3)))


def test_steps_may_be_numpys_integers() -> None:
    expected = run_graph(lambda x: nn.conv2d(x, W, 2), (X,))[0]
    np.testing.assert_array_equal(run_graph(lambda x: nn.conv2d(x, W, np.int64(2)), (X,))[0], expected)
    np.testing.assert_array_equal(run_graph(lambda x: nn.conv2d(x, W, [np.int32(2), 2]), (X,))[0], expected)


def test_a_mask_of_numbers_may_go_with_causal() -> None:
    x, mask = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2), np.tri(3, dtype=np.float32)
    expected = run_graph(lambda x: nn.attention(x, x, x, causal=True), (x,))[0]
    found = run_graph(lambda x, m: nn.attention(x, x, x, m, causal=True), (x, mask))[0]
    np.testing.assert_array_equal(found, expected)


def test_shapes_and_bounds_of_random_numbers() -> None:
    assert run_graph(lambda x: random.uniform(3, 2, 5), (FLAT,))[0].shape == (3,)
    found = run_graph(lambda x: random.uniform([500], x[0, 0], x[0, 0] + 1), (FLAT,))[0]
    assert 1 <= found.min() < 1.1
    assert 1.9 < found.max() < 2


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: nn.conv2d(x, W, 1.5), "one positive integer, or two .* Received: 1.5"),
        (lambda x: nn.conv2d(x, W, True), "one positive integer, or two .* Received: True"),
        (lambda x: nn.conv2d(x, W, None), "one positive integer, or two .* Received: None"),
        (lambda x: nn.conv2d(x, W, padding=1), "two pairs of integers .* Received: 1"),
        (lambda x: nn.conv2d(x, W, padding=((-1, 0), (0, 0))), r"not negative, .* Received: \(\(-1, 0\), \(0, 0\)\)"),
        (lambda x: nn.softmax(x, axis=None), "An axis is an integer. Received: None"),
        (lambda x: nn.softmax(x, axis=(0, 1)), r"An axis is an integer. Received: \(0, 1\)"),
        (lambda x: nn.attention(x, x[0, 0, 0], x), r"2 dimensions at least. Received: \[1, 4, 4, 2\], \[2\], \[1, 4, 4, 2\]"),
        (lambda x: nn.lstm(x[0], np.ones((2, 8)), np.ones((2, 8)), np.ones(8), np.ones((4, 2))), "state of lstm is a pair"),
        (
            lambda x: nn.gru(x[0], np.ones((2, 6)), np.ones((2, 6)), np.ones(6)),
            r"bias of gru is \[2, 3 \* units\].* Received: \[6\]",
        ),
        (lambda x: random.uniform([2, -1]), r"sizes of random numbers are not negative. Received: \[2, -1\]"),
        (lambda x: x + None, "holds numbers, truth values or text. Received: None"),
    ],
)
def test_what_makes_no_sense_is_refused(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(ag.TraceError, match=message):
        ag.trace(function, X)


def test_rows_are_counted_from_the_front() -> None:
    with pytest.raises(ag.KernelError, match=r"the least that is allowed is 0, .* Received: indices from -1 to 1"):
        run_graph(lambda x: nn.embedding(x, [1, -1]), (FLAT,))
