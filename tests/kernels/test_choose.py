"""Choosing and counting elements."""

import ml_dtypes
import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.one_node import run_op


@pytest.mark.parametrize(("op", "first", "last"), [("ArgMax", 1, 3), ("ArgMin", 0, 2)])
def test_of_equal_extremes_the_first_or_the_last(op: str, first: int, last: int) -> None:
    x = np.array([[0, 2, 0, 2]], ml_dtypes.bfloat16)
    assert run_op(op, x, axis=1).tolist() == [[first]]
    assert run_op(op, x, axis=-1, keepdims=0, select_last_index=1).tolist() == [last]
    assert run_op(op, x, axis=1).dtype == np.int64


def test_no_elements_have_no_extreme() -> None:
    with pytest.raises(KernelError, match="has no extreme"):
        run_op("ArgMax", np.zeros((2, 0), np.float32), axis=1)
    assert run_op("ArgMax", np.zeros((0, 2), np.float32), axis=1).shape == (0, 1)


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint64])
def test_top_k_keeps_equals_in_order(dtype: type) -> None:
    """The least integers have no negative, and unsigned ones none at all: nothing may be negated to sort downwards."""
    least = np.iinfo(dtype).min if np.issubdtype(dtype, np.integer) else -np.inf
    x = np.array([least, 3, 1, 3, least], dtype)
    values, places = run_op("TopK", x, np.array([4]), results=2)
    assert values.dtype == x.dtype
    assert places.tolist() == [1, 3, 2, 0]
    assert run_op("TopK", x, np.array([3]), results=2, largest=0)[1].tolist() == [0, 4, 2]
    assert values.tolist() == x[places].tolist()


def test_top_k_as_attribute_along_an_inner_axis_and_with_nan() -> None:
    x = np.array([[1, 5], [np.nan, 4], [3, 6]], np.float32)
    values, places = run_op("TopK", x, results=2, version=1, k=2, axis=0)
    assert places.tolist() == [[1, 2], [2, 0]]
    assert np.isnan(values[0, 0])
    with pytest.raises(KernelError, match=r"the size of the axis, 2\. Received: k=3"):
        run_op("TopK", x, np.array([3]), results=2)


def test_non_zero_of_vectors_scalars_and_nan() -> None:
    assert run_op("NonZero", np.array([[0, np.nan], [2, 0]], np.float32)).tolist() == [[0, 1], [1, 0]]
    assert run_op("NonZero", np.array(3, np.int32)).shape == (0, 1)
    assert run_op("NonZero", np.zeros((0, 2), bool)).shape == (2, 0)


def test_unique_in_order_of_first_occurrence() -> None:
    y, first, inverse, counts = run_op("Unique", np.array(["b", "a", "b", "c"], object), results=4, sorted=0)
    assert (y.tolist(), first.tolist(), inverse.tolist(), counts.tolist()) == (
        ["b", "a", "c"],
        [0, 1, 3],
        [0, 1, 0, 2],
        [2, 1, 1],
    )


def test_unique_rows_of_strings_and_numbers() -> None:
    rows = [["b", "a"], ["a", "b"], ["b", "a"]]
    y, first, inverse, counts = run_op("Unique", np.array(rows, object), results=4, axis=0)
    assert (y.tolist(), first.tolist(), inverse.tolist(), counts.tolist()) == (
        [["a", "b"], ["b", "a"]],
        [1, 0],
        [1, 0, 1],
        [1, 2],
    )
    columns = np.array([[2, 1, 2], [0, 5, 0]], np.float16)
    assert run_op("Unique", columns, results=4, axis=-1)[0].tolist() == [[1, 2], [5, 0]]


def test_one_hot_wraps_negative_indices_once_and_leaves_others_off() -> None:
    values = np.array([2, 7], np.float16)
    y = run_op("OneHot", np.array([-1, 3, -4, 0]), np.array(3), values)
    assert y.dtype == np.float16
    assert y.tolist() == [[2, 2, 7], [2, 2, 2], [2, 2, 2], [7, 2, 2]]
    assert run_op("OneHot", np.array([1.0], np.float32), np.array([2]), values, axis=0).tolist() == [[2], [7]]


def test_where_broadcasts_and_does_not_touch_the_other_branch() -> None:
    y = run_op("Where", np.array([[True], [False]]), np.array([1, 2], np.float16), np.array(np.nan, np.float16))
    np.testing.assert_array_equal(y, np.array([[1, 2], [np.nan, np.nan]], np.float16))


@pytest.mark.parametrize(
    ("k", "upper", "wanted"),
    [
        (0, 1, [[1, 2, 3], [0, 5, 6]]),
        (-1, 0, [[0, 0, 0], [4, 0, 0]]),
        (1, 1, [[0, 2, 3], [0, 0, 6]]),
        (2**62, 0, [[1, 2, 3], [4, 5, 6]]),
    ],
)
def test_triangles(k: int, upper: int, wanted: list[list[int]]) -> None:
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    assert run_op("Trilu", x, np.array(k), upper=upper).tolist() == wanted


def test_a_triangle_of_infinities_is_zero_elsewhere() -> None:
    """A product with a mask would make NaN of them."""
    assert run_op("Trilu", np.full((2, 2), np.inf, np.float32)).tolist() == [[np.inf, np.inf], [0, np.inf]]


def test_eye_like_takes_its_dtype_from_the_attribute_or_the_operand() -> None:
    x = np.zeros((2, 3), np.int32)
    assert run_op("EyeLike", x, k=1).dtype == np.int32
    y = run_op("EyeLike", x, k=1, types={"T2": "float16"})
    assert y.dtype == np.float16
    assert y.tolist() == [[0, 1, 0], [0, 0, 1]]
