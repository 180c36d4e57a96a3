"""Shapes, parts and choices of TensorFlow's ops, beside what NumPy and TensorFlow 2.21.0 say."""

from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph.graph.types import Shape
from tests.kernels.tf_node import run_tf

# They make arrays of lists, too.
F32: Any = np.float32
F16: Any = np.float16

X = np.arange(60, dtype=np.float32).reshape(4, 3, 5)
INT: Any = np.int32


def part(x: Any, begin: Any, end: Any, strides: Any, **masks: Any) -> Any:
    return run_tf("StridedSlice", x, *(INT(v) for v in (begin, end, strides)), **masks)


@pytest.mark.parametrize(
    ("begin", "end", "strides", "masks", "wanted"),
    [
        ([1], [0], [1], {"shrink_axis_mask": 1}, X[1]),
        ([-1, 1], [0, 3], [1, 1], {"shrink_axis_mask": 1}, X[-1, 1:3]),
        ([0, 0], [0, 0], [1, 1], {"ellipsis_mask": 1, "shrink_axis_mask": 2}, X[..., 0]),
        ([0, 0, 7], [0, 0, -9], [1, 1, -1], {"begin_mask": 1, "end_mask": 1, "new_axis_mask": 2}, X[:, None, ::-1]),
        ([0, 1, 0, -1], [0, 0, 0, 0], [1, 1, 1, -2], {"ellipsis_mask": 5, "shrink_axis_mask": 2}, None),
        ([2, 0, 0], [0, 0, 0], [1, 1, 1], {"shrink_axis_mask": 1, "ellipsis_mask": 2, "new_axis_mask": 4}, X[2, ..., None]),
        ([-9], [9], [1], {}, X),
        ([9], [99], [1], {}, X[9:]),
        ([3], [0], [-2], {}, X[3:0:-2]),
        ([0, 1, 2], [0, 0, 0], [1, 1, 1], {"shrink_axis_mask": 7}, X[0, 1, 2]),
    ],
)
def test_parts_are_those_of_numpy(begin: Any, end: Any, strides: Any, masks: dict[str, Any], wanted: Any) -> None:
    if wanted is None:
        with pytest.raises(ag.KernelError, match="at most one index is an ellipsis"):
            part(X, begin, end, strides, **masks)
        return
    found = part(X, begin, end, strides, **masks)
    assert found.shape == np.shape(wanted)
    assert found.tolist() == wanted.tolist()
    sizes = (INT(v) for v in (X.shape, begin, end, strides))
    gradient = run_tf("StridedSliceGrad", *sizes, np.ones_like(found), **masks)
    assert gradient.sum() == found.size
    assert part(gradient, begin, end, strides, **masks).min(initial=1) == 1
    changed = run_tf("TensorStridedSliceUpdate", X, *(INT(v) for v in (begin, end, strides)), found - 100, **masks)
    assert (changed < 0).sum() == found.size


def test_a_single_index_lies_inside() -> None:
    with pytest.raises(ag.KernelError, match=r"axis 0 of shape \[4, 3, 5\] has no such slice. Received: 4"):
        part(X, [4], [5], [1], shrink_axis_mask=1)


def test_a_batch_of_choices() -> None:
    x, indices = X.reshape(2, 2, 15), INT([[[1, 0], [2, 2]], [[14, 3], [0, 0]]])
    found = run_tf("GatherV2", x, indices, INT(2), batch_dims=2)
    assert found.tolist() == np.take_along_axis(x, indices, axis=2).tolist()
    found = run_tf("GatherV2", X, INT([[1, 0], [2, 2], [0, 1], [1, 1]]), INT(-1), batch_dims=1)
    assert found.shape == (4, 3, 2)
    assert found[2].tolist() == X[2][:, [0, 1]].tolist()


@pytest.mark.parametrize("index", [-1, 4])
def test_an_index_outside_is_refused_or_ignored(index: int) -> None:
    for op, shape in (("GatherV2", ()), ("GatherNd", (1,))):
        with pytest.raises(ag.KernelError, match="an index lies outside the data"):
            run_tf(op, X, INT(index).reshape(shape), *([INT(0)] if op == "GatherV2" else []))
    found = run_tf("GatherNd", X[:, 0, 0], INT([[1], [index]]), bad_indices_policy="IGNORE")
    assert found.tolist() == [15, 0]
    found = run_tf(
        "TensorScatterUpdate",
        X[0, 0],
        INT([[1], [index - 1 if index < 0 else 9]]),
        F32([7, 8]),
        bad_indices_policy="IGNORE",
    )
    assert found.tolist() == [0, 7, 2, 3, 4]


@pytest.mark.parametrize(
    ("op", "wanted"),
    [("Update", [1, 9, 3]), ("Add", [1, 2 + 5 + 9, 3]), ("Sub", [1, 2 - 5 - 9, 3]), ("Max", [1, 9, 3]), ("Min", [1, 2, 3])],
)
def test_updates_of_one_place_are_all_done(op: str, wanted: list[float]) -> None:
    found = run_tf(f"TensorScatter{op}", F32([1, 2, 3]), INT([[1], [1]]), F32([5, 9]))
    assert found.tolist() == wanted


def test_sums_of_half_updates_are_rounded_once() -> None:
    # In float16 1 added to 2048 is lost each time.
    found = run_tf("TensorScatterAdd", F16([2048]), np.zeros((4, 1), INT), np.ones(4, np.float16))
    assert found.dtype == np.float16
    assert found.tolist() == [2052]


@pytest.mark.parametrize(
    ("a", "b", "first", "second"),
    [
        ((2, 3), (2, 3), [], []),
        ((2, 1), (2, 3), [1], []),
        ((1, 1), (1, 1), [], []),
        ((1,), (2, 3), [0, 1], []),
        ((1, 2, 1), (1, 1), [0, 2], [0, 1, 2]),
        ((), (1,), [0], [0]),
        ((3, 1, 2), (1, 2), [1], [0, 1]),
        ((1, 3), (1, 1), [0], [0, 1]),
    ],
)
def test_axes_of_a_gradient_are_those_of_tensorflow(a: Any, b: Any, first: list[int], second: list[int]) -> None:
    found = run_tf("BroadcastGradientArgs", np.array(a, INT), np.array(b, INT), results=2)
    assert [axes.tolist() for axes in found] == [first, second]


@pytest.mark.parametrize(
    ("shape", "wanted", "found"),
    [((0, 3), (3, -1), (3, 0)), ((0, 3), (0, -1), (0, 3)), ((2, 3), (-1, 2), (3, 2)), ((1,), (), ())],
)
def test_an_open_size_beside_a_size_of_0(shape: Any, wanted: Any, found: Any) -> None:
    assert run_tf("Reshape", np.zeros(shape, np.float32), np.array(wanted, INT)).shape == found


def test_the_largest_beside_nan() -> None:
    x = F32([1, np.nan, 3, 2])
    values, places = run_tf("TopKV2", x, INT(1), results=2)
    assert (values.tolist(), places.tolist()) == ([3], [2])
    values, places = run_tf("TopKV2", x, INT(2), results=2)
    assert (np.isnan(values).tolist(), places.tolist()) == ([True, False], [1, 2])


def test_distinct_elements_as_they_come() -> None:
    values, places = run_tf("Unique", F32([3, 1, 3, np.nan, np.nan, 0.0, -0.0]), results=2)
    assert values.tolist()[:2] == [3, 1]
    assert places.tolist() == [0, 1, 0, 2, 3, 4, 4]
    rows, places = run_tf("UniqueV2", F32([[1, 2], [0, 0], [1, 2]]), INT([0]), results=2)
    assert (rows.tolist(), places.tolist()) == ([[1, 2], [0, 0]], [0, 1, 0])


def test_sequences_turn_around_along_any_axes() -> None:
    x = X.transpose(2, 0, 1)  # time, entries, batch
    found = run_tf("ReverseSequence", x, np.array([0, 5, 2]), seq_dim=0, batch_dim=2)
    assert found[:, :, 0].tolist() == x[:, :, 0].tolist()
    assert found[:, :, 1].tolist() == x[::-1, :, 1].tolist()
    assert found[:, :, 2].tolist() == x[[1, 0, 2, 3, 4], :, 2].tolist()


def test_indices_outside_are_cold() -> None:
    found = run_tf("OneHot", INT([[0, -1], [5, 1]]), INT(3), F16(2), F16(-1), axis=0)
    assert found.shape == (3, 2, 2)
    assert found[:, 0, 0].tolist() == [2, -1, -1]
    assert found[:, 0, 1].tolist() == found[:, 1, 0].tolist() == [-1, -1, -1]
    assert found[:, 1, 1].tolist() == [-1, 2, -1]


def test_joined_and_turned_around() -> None:
    x, y = X[0], X[1]
    np.testing.assert_array_equal(run_tf("Concat", INT(1), x, y, N=2), np.hstack([x, y]))
    np.testing.assert_array_equal(run_tf("ParallelConcat", x[:1], y[:1], N=2, shape=Shape((2, 5))), np.vstack([x[:1], y[:1]]))
    np.testing.assert_array_equal(run_tf("Reverse", x, np.array([True, False])), x[::-1])
    np.testing.assert_array_equal(run_tf("Gather", X, INT([2, 0])), X[[2, 0]])
    z = x + 1j * y
    np.testing.assert_array_equal(run_tf("ConjugateTranspose", z, INT([1, 0])), z.conj().T)
    np.testing.assert_array_equal(run_tf("ConjugateTranspose", x, INT([1, 0])), x.T)
    assert run_tf("Rank", X) == 3
    assert run_tf("Empty", INT([2, 3]), types={"dtype": "float16"}).tolist() == [[0] * 3] * 2


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rows_updated_in_copies(dtype: str) -> None:
    x = F32([[1, 2], [3, 4]]).astype(ag.find_dtype(dtype).numpy)
    for op, wanted in (("InplaceUpdate", [[3, 4], [3, 4]]), ("InplaceAdd", [[5, 8], [3, 4]]), ("InplaceSub", [[-3, -4], [3, 4]])):
        found = run_tf(op, x, INT([0, 0]), x)
        assert (found.dtype, found.astype(np.float32).tolist()) == (x.dtype, wanted)
    assert x.astype(np.float32).tolist() == [[1, 2], [3, 4]]


def test_gradients_of_tiles_and_places_of_the_largest() -> None:
    tiled = run_tf("Tile", X[0], INT([2, 3]))
    np.testing.assert_array_equal(run_tf("TileGrad", tiled, INT([2, 3])), 6 * X[0])
    values, places = run_tf("TopK", F32([[1, 3, 2]]), k=2, results=2)
    assert (values.tolist(), places.tolist()) == ([[3, 2]], [[1, 2]])


@pytest.mark.parametrize(
    ("op", "operands", "given", "message"),
    [
        ("Unpack", [X], {"axis": 1, "num": 2, "results": 2}, r"axis 1 of shape \[4, 3, 5\] has not as many slices\. Received: 2"),
        (
            "Split",
            [INT(0), X],
            {"num_split": 3, "results": 3},
            r"axis 0 of shape \[4, 3, 5\] has no such equal parts\. Received: 3",
        ),
        ("SplitV", [X, INT([1, 2]), INT(0)], {"num_split": 2, "results": 2}, r"cannot be so divided\. Received: \[1, 2\]"),
        ("ReverseV2", [X, INT([0, -3])], {}, r"axes are different\. Received: \[0, -3\]"),
        ("OneHot", [INT([0]), INT(-1), F32(1), F32(0)], {}, r"depth cannot be negative\. Received: -1"),
        ("Tile", [X, INT([2])], {}, r"a number for each of 3 axes\. Received: \[2\]"),
        ("Range", [INT(0), INT(9), INT(-1)], {}, r"from its start to its limit\. Received: 0, 9, -1"),
        ("LinSpace", [F32(0), F32(1), INT(0)], {}, r"at least one number\. Received: 0"),
        ("InvertPermutation", [INT([0, 0])], {}, r"each number once\. Received: \[0 0\]"),
        ("TopKV2", [X, INT(6)], {"results": 2}, r"has not so many\. Received: k=6"),
    ],
)
def test_what_does_not_fit_is_named(op: str, operands: list[Any], given: dict[str, Any], message: str) -> None:
    with pytest.raises(ag.KernelError, match=message):
        run_tf(op, *operands, **given)
