"""Pools against the definition: a window at a time."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from ampgraph.kernels import pool
from tests.kernels.one_node import run_op

RNG = np.random.default_rng(3)

CASES = [
    ((2, 3, 9), (3,), (2,), (1,), (1, 0)),
    ((2, 3, 9), (1,), (2,), (1,), (0, 0)),
    ((1, 2, 7, 6), (3, 2), (2, 1), (1, 2), (1, 1, 0, 1)),
    ((2, 2, 8, 5), (5, 4), (1, 1), (1, 1), (2, 3, 2, 0)),
    ((1, 2, 4, 5, 6), (2, 3, 1), (2, 1, 3), (1, 1, 1), (0, 1, 0, 1, 1, 0)),
]


def windows_of(x: Any, kernel: Any, strides: Any, dilations: Any, pads: Any) -> Any:
    """Yield each window's position and elements, NaN for padding."""
    rank = len(kernel)
    x = np.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)], constant_values=np.nan)
    counts = [(x.shape[2 + i] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(rank)]
    for at in product(*map(range, counts)):
        part = tuple(slice(p * s, p * s + (k - 1) * d + 1, d) for p, s, k, d in zip(at, strides, kernel, dilations, strict=True))
        yield at, x[(..., *part)].reshape(*x.shape[:2], -1)


@pytest.mark.parametrize("block", [1, 1 << 19])
@pytest.mark.parametrize("op", ["max", "mean", "padded mean", "norm", "3-norm"])
@pytest.mark.parametrize(("shape", "kernel", "strides", "dilations", "pads"), CASES)
def test_pools_are_what_the_definition_says(
    monkeypatch: pytest.MonkeyPatch, op: str, block: int, shape: Any, kernel: Any, strides: Any, dilations: Any, pads: Any
) -> None:
    monkeypatch.setattr(pool, "_BLOCK", block)
    x = RNG.standard_normal(shape)
    given: dict[str, Any] = {
        "kernel_shape": list(kernel),
        "strides": list(strides),
        "dilations": list(dilations),
        "pads": list(pads),
    }
    names = {"max": "MaxPool", "mean": "AveragePool", "padded mean": "AveragePool", "norm": "LpPool", "3-norm": "LpPool"}
    if op == "3-norm":
        given["p"] = 3
    if op == "padded mean":
        given["count_include_pad"] = 1
    result = run_op(names[op], x, version=22, **given)
    for at, window in windows_of(x, kernel, strides, dilations, pads):
        wanted = {
            "max": lambda w: np.nanmax(w, -1),
            "mean": lambda w: np.nanmean(w, -1),
            "padded mean": lambda w: np.nan_to_num(w).mean(-1),
            "norm": lambda w: np.sqrt(np.nansum(w * w, -1)),
            "3-norm": lambda w: np.nansum(abs(w) ** 3, -1) ** (1 / 3),
        }[op](window)
        np.testing.assert_allclose(result[(..., *at)], wanted, rtol=1e-12)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize(("shape", "kernel", "strides", "dilations", "pads"), CASES)
def test_indices_say_where_the_maximum_stands(
    order: int, shape: Any, kernel: Any, strides: Any, dilations: Any, pads: Any
) -> None:
    x = RNG.standard_normal(shape)
    best, index = run_op(
        "MaxPool",
        x,
        version=22,
        results=2,
        kernel_shape=list(kernel),
        strides=list(strides),
        dilations=list(dilations),
        pads=list(pads),
        storage_order=order,
    )
    flat = x.transpose(0, 1, *range(x.ndim - 1, 1, -1)).ravel() if order else x.ravel()
    assert (flat[index] == best).all()


def test_the_first_of_equal_maxima_is_named_and_padding_never() -> None:
    x = np.full((1, 1, 3), -np.inf, np.float32)
    _, index = run_op("MaxPool", x, results=2, kernel_shape=[3], pads=[1, 1])
    assert index.ravel().tolist() == [0, 0, 1]


def test_unpooling_puts_maxima_back() -> None:
    x = RNG.standard_normal((2, 2, 4, 6)).astype(np.float32)
    best, index = run_op("MaxPool", x, results=2, kernel_shape=[2, 2], strides=[2, 2])
    back = run_op("MaxUnpool", best, index, kernel_shape=[2, 2], strides=[2, 2])
    assert back.shape == x.shape
    assert (back[back != 0] == x[back != 0]).all()
    assert np.count_nonzero(back) == best.size
    with pytest.raises(KernelError, match="outside"):
        run_op("MaxUnpool", best, index + 1000, kernel_shape=[2, 2], strides=[2, 2])


@pytest.mark.parametrize(("size", "count"), [(6, 3), (5, 2)])
def test_ceil_mode_adds_windows_that_start_inside(size: int, count: int) -> None:
    """With stride 3 and a window of 2, the window at 6 of 5 + 1 padded elements would see padding only."""
    x = np.arange(1.0, size + 1, dtype=np.float32).reshape(1, 1, size)
    y = run_op("AveragePool", x, version=19, kernel_shape=[2], strides=[3], pads=[1, 0], ceil_mode=1, count_include_pad=1)
    assert y.shape[-1] == count
    assert y[0, 0, 0] == 0.5
    if size == 6:
        assert y[0, 0, 2] == 6  # what ceil_mode adds does not count as padding


def test_nan_wins_and_integers_stay() -> None:
    x = np.array([[[1, np.nan, 2, 3]]], np.float32)
    assert np.isnan(run_op("MaxPool", x, kernel_shape=[2])).tolist() == [[[True, True, False]]]
    y, index = run_op("MaxPool", x, results=2, kernel_shape=[2])
    assert np.isnan(y).tolist() == [[[True, True, False]]]
    assert index.ravel().tolist() == [1, 1, 3]
    small = run_op("MaxPool", np.array([[[-5, -7]]], np.int8), kernel_shape=[2], pads=[1, 1])
    assert small.dtype == np.int8
    assert small.ravel().tolist() == [-5, -5, -7]


def test_float16_means_are_sums_in_float32() -> None:
    x = np.full((1, 1, 4), 40000, np.float16)
    assert (run_op("AveragePool", x, kernel_shape=[2]) == 40000).all()
    assert (run_op("GlobalAveragePool", x) == 40000).all()
    assert np.isinf(run_op("GlobalLpPool", x, p=1)).all()


def test_global_pools_over_nothing_and_batches_of_nothing() -> None:
    assert run_op("GlobalMaxPool", np.zeros((0, 3, 4, 4), np.float32)).shape == (0, 3, 1, 1)
    assert run_op("MaxPool", np.zeros((0, 3, 4, 4), np.float32), kernel_shape=[2, 2]).shape == (0, 3, 3, 3)


def test_channels_may_come_last() -> None:
    x = np.arange(16, dtype=np.uint8).reshape(1, 4, 2, 2)
    y = run_op("com.microsoft:NhwcMaxPool", x, version=1, kernel_shape=[2, 2], strides=[2, 2])
    assert y.tolist() == [[[[6, 7]], [[14, 15]]]]
