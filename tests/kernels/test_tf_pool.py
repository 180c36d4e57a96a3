"""TensorFlow's pools: the numbers that TensorFlow 2.21 gives for odd windows, and gradients against differences."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.tf_node import run_tf, slope

# They make arrays of lists, too.
F32: Any = np.float32
I32: Any = np.int32
I64: Any = np.int64

RNG = np.random.default_rng(12)
PAIRS = {"ksize": [1, 1, 2, 1], "strides": [1, 1, 2, 1], "padding": "VALID"}
TRIPLES = {"ksize": [1, 1, 3, 1], "strides": [1, 1, 3, 1], "padding": "VALID"}
NAN, INF = np.nan, np.inf


def row(*numbers: float) -> np.ndarray:
    """Return an image of one row and one channel."""
    return F32(numbers).reshape(1, 1, -1, 1)


def test_not_a_number_is_the_lowest_number() -> None:
    x = row(NAN, NAN, -INF, -INF, NAN, 1)
    lowest = np.finfo(np.float32).min
    assert run_tf("MaxPool", x, **PAIRS).ravel().tolist() == [lowest, lowest, 1]
    assert run_tf("MaxPool", x.astype(np.float16), **PAIRS).ravel().tolist() == [-65504, -65504, 1]
    best, index = run_tf("MaxPoolWithArgmax", x, results=2, **PAIRS)
    np.testing.assert_array_equal(best.ravel(), [NAN, -INF, NAN])
    assert index.ravel().tolist() == [0, 2, 4]


def test_the_first_of_equal_elements_gets_all_but_in_volumes() -> None:
    x, y, dy = row(1, 1, 0, 2, 2, 2), row(1, 2), row(5, 7)
    assert run_tf("MaxPoolGrad", x, y, dy, **TRIPLES).ravel().tolist() == [5, 0, 0, 7, 0, 0]
    assert run_tf("MaxPoolGradGrad", x, y, row(*range(6)), **TRIPLES).ravel().tolist() == [0, 3]
    deep = {"ksize": [1, 1, 1, 3, 1], "strides": [1, 1, 1, 3, 1], "padding": "VALID"}
    found = run_tf("MaxPool3DGrad", x[:, None], y[:, None], dy[:, None], **deep)
    assert found.ravel().tolist() == [5, 5, 0, 7, 7, 7]


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("shape", [(2, 4, 6, 3), (1, 5, 7, 2)])
def test_windows_side_by_side_hand_back_to_the_first_greatest(layout: str, shape: Any) -> None:
    first = layout == "NCHW"
    sizes = [1, 1, 2, 3] if first else [1, 2, 3, 1]
    given = {"ksize": sizes, "strides": sizes, "padding": "VALID", "data_format": layout}
    x = F32(RNG.integers(0, 3, shape))
    for special in (None, NAN, -INF):
        if special is not None:
            x[0, 0, 1, 0] = special  # the second of its window
            x[0, 2:4, :3, 1] = special  # a whole window
        turned = np.moveaxis(x, -1, 1) if first else x
        y = run_tf("MaxPool", turned, **given)
        dy = F32(RNG.standard_normal(y.shape))
        dy.flat[0] = INF
        found = run_tf("MaxPoolGrad", turned, y, dy, **given)
        found, dy = (np.moveaxis(a, 1, -1) if first else a for a in (found, dy))
        wanted = np.zeros_like(x)
        for n, i, j, c in np.ndindex(*dy.shape):
            window = x[n, 2 * i : 2 * i + 2, 3 * j : 3 * j + 3, c]
            best = (0, 0)
            for at in np.ndindex(2, 3):
                best = at if window[at] > window[best] else best
            wanted[n, 2 * i + best[0], 3 * j + best[1], c] = dy[n, i, j, c]
        np.testing.assert_array_equal(found, wanted)


def test_pools_along_the_channels() -> None:
    x = np.arange(8, dtype=np.float32).reshape(1, 1, 2, 4)
    y = run_tf("MaxPool", x, ksize=[1, 1, 1, 2], strides=[1, 1, 1, 2], padding="VALID")
    assert y.tolist() == [[[[1, 3], [5, 7]]]]


@pytest.mark.parametrize("in_batch", [False, True])
def test_places_are_those_in_the_image_or_in_the_batch(in_batch: bool) -> None:
    x = np.arange(16, dtype=np.float32).reshape(2, 2, 2, 2)
    given = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME", "include_batch_in_index": in_batch}
    best, index = run_tf("MaxPoolWithArgmax", x, results=2, **given)
    assert best.ravel().tolist() == [6, 7, 14, 15]
    assert index.ravel().tolist() == ([6, 7, 14, 15] if in_batch else [6, 7, 6, 7])
    dx = run_tf("MaxPoolGradWithArgmax", x, best, index, **given)
    assert dx.ravel().tolist() == [0] * 6 + [6, 7] + [0] * 6 + [14, 15]
    assert run_tf("MaxPoolGradGradWithArgmax", x, 2 * x, index, **given).ravel().tolist() == [12, 14, 28, 30]


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_gradients_are_slopes(padding: str, layout: str) -> None:
    x = RNG.permutation(80).reshape(2, 5, 4, 2) / 8.0
    x = np.moveaxis(x, -1, 1) if layout == "NCHW" else x
    sizes = ([1, 1, 3, 2], [1, 1, 2, 1]) if layout == "NCHW" else ([1, 3, 2, 1], [1, 2, 1, 1])
    given = {"ksize": sizes[0], "strides": sizes[1], "padding": padding, "data_format": layout}
    y = run_tf("MaxPool", x, **given)
    dy = RNG.standard_normal(y.shape)
    np.testing.assert_allclose(
        run_tf("MaxPoolGrad", x, y, dy, **given), slope(lambda v: run_tf("MaxPool", v, **given), x, dy), atol=1e-7
    )
    np.testing.assert_array_equal(run_tf("MaxPoolGradGrad", x, y, x, **given), y)
    np.testing.assert_allclose(
        run_tf("AvgPoolGrad", I32(x.shape), dy, **given),
        slope(lambda v: run_tf("AvgPool", v, **given), x, dy),
        atol=1e-7,
    )


def test_sizes_may_be_operands() -> None:
    x = RNG.standard_normal((1, 4, 4, 2))
    y = run_tf("MaxPoolV2", x, I32([1, 2, 2, 1]), I32([1, 2, 2, 1]), padding="VALID")
    np.testing.assert_array_equal(y, x.reshape(1, 2, 2, 2, 2, 2).max((2, 4)))


def test_what_does_not_fit_is_an_error() -> None:
    with pytest.raises(KernelError, match="positive integer for each axis"):
        run_tf("MaxPool", row(1, 2), ksize=[1, 1, 2], strides=[1, 1, 1, 1], padding="VALID")
    with pytest.raises(KernelError, match="should have the shape"):
        run_tf("AvgPoolGrad", I32([1, 1, 4, 1]), row(1, 2, 3), **PAIRS)
    with pytest.raises(KernelError, match="argmax lies outside"):
        run_tf("MaxPoolGradWithArgmax", row(1, 2), row(1), I64([[[[2]]]]), **PAIRS)
