"""Ops on shapes, products, reductions, softmax and quantized numbers: numbers made by hand, and earlier versions of the ops."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError

from .one_node import run_op

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def ints(*values: int) -> Any:
    return np.array(values, np.int64)


# ---- shapes -----------------------------------------------------------------------------------------------------------------


def test_reshape() -> None:
    assert run_op("Reshape", A, ints(0, -1)).shape == (2, 12)
    assert run_op("Reshape", A, version=1, shape=[6, 4]).shape == (6, 4)
    empty = np.zeros((0, 3), np.float32)
    assert run_op("Reshape", empty, ints(3, 0), allowzero=1).shape == (3, 0)
    with pytest.raises(KernelError, match=r"A size of 0 copies one of an operand of shape \[0, 3\]"):
        run_op("Reshape", empty, ints(0, 3, 0))
    with pytest.raises(KernelError, match="cannot reshape array of size 24"):
        run_op("Reshape", A, ints(5, -1))


def test_axes_are_attributes_or_operands() -> None:
    assert run_op("Unsqueeze", A, version=11, axes=[0, 4]).shape == (1, 2, 3, 4, 1)
    assert run_op("Unsqueeze", A, ints(-1, 0)).shape == (1, 2, 3, 4, 1)
    with pytest.raises(KernelError, match=r"within 5 axes. Received: \[0, -5\]"):
        run_op("Unsqueeze", A, ints(0, -5))
    assert run_op("Squeeze", A[:1], version=11, axes=[0]).shape == (3, 4)
    assert run_op("Squeeze", A[:1, :, :1], ints(-1)).shape == (1, 3)
    assert run_op("Squeeze", A[:1, :, :1]).shape == (3,)
    assert run_op("Flatten", A, axis=-1).shape == (6, 4)
    assert run_op("Flatten", A, axis=0).shape == (1, 24)
    assert (run_op("Transpose", A) == A.T).all()


def test_split() -> None:
    parts = run_op("Split", np.arange(7), version=18, results=3, num_outputs=3)
    assert [part.tolist() for part in parts] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [part.shape for part in run_op("Split", A, version=11, results=2, axis=-1, split=[1, 3])] == [(2, 3, 1), (2, 3, 3)]
    assert [part.shape for part in run_op("Split", A, ints(3, 0), results=2, axis=1)] == [(2, 3, 4), (2, 0, 4)]
    with pytest.raises(KernelError, match=r"Axis 1 of an operand of shape \[2, 3, 4\] cannot be split. Received: \[1, 1\]"):
        run_op("Split", A, ints(1, 1), results=2, axis=1)


@pytest.mark.parametrize(
    ("start", "end", "step", "expected"),
    [
        (1, 4, 1, [1, 2, 3]),
        (-2, 100, 1, [4, 5]),
        (0, -1, 2, [0, 2, 4]),
        (5, 0, -2, [5, 3, 1]),
        (100, -100, -1, [5, 4, 3, 2, 1, 0]),
        (-1, -(2**63), -1, [5, 4, 3, 2, 1, 0]),
        (4, 2, 1, []),
        (2**63 - 1, -(2**63), -3, [5, 2]),
    ],
)
def test_slice(start: int, end: int, step: int, expected: list[int]) -> None:
    assert run_op("Slice", np.arange(6), ints(start), ints(end), None, ints(step)).tolist() == expected
    assert run_op("Slice", np.zeros((0, 2)), ints(start), ints(end), ints(0), ints(step)).shape == (0, 2)


def test_slice_by_attributes() -> None:
    assert (run_op("Slice", A, version=9, starts=[1, -2], ends=[3, 9], axes=[1, 2]) == A[:, 1:3, -2:]).all()


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (b"constant", [9, 9, 1, 2, 3, 9]),
        (b"edge", [1, 1, 1, 2, 3, 3]),
        (b"reflect", [3, 2, 1, 2, 3, 2]),
        (b"wrap", [2, 3, 1, 2, 3, 1]),
    ],
)
def test_pad(mode: bytes, expected: list[int]) -> None:
    x, nine = np.array([1, 2, 3], np.int32), np.array(9, np.int32)
    assert run_op("Pad", x, ints(2, 1), nine, mode=mode).tolist() == expected
    assert run_op("Pad", x[None], ints(2, 1), nine, ints(-1), mode=mode).tolist() == [expected]


def test_pad_of_earlier_versions_and_negative_padding() -> None:
    x = np.array([[1, 2], [3, 4]], np.float32)
    assert run_op("Pad", x, version=2, pads=[0, 1, 0, 0], value=7.0).tolist() == [[7, 1, 2], [7, 3, 4]]
    assert run_op("Pad", x, ints(0, -1, 1, 0)).tolist() == [[2], [4], [0]]
    assert run_op("Pad", np.array([1, 2, 3, 4]), ints(7, 0), mode=b"reflect").tolist() == [2, 1, 2, 3, 4, 3, 2, 1, 2, 3, 4]


def test_tile_expand_and_concat() -> None:
    assert run_op("Tile", np.array([[1, 2]]), ints(2, 2)).tolist() == [[1, 2, 1, 2]] * 2
    assert run_op("Expand", A[:, :1], ints(5, 1, 3, 1)).shape == (5, 2, 3, 4)
    assert run_op("Concat", A, A[:, :1], axis=-2).shape == (2, 4, 4)
    assert run_op("Concat", np.array(["a"], object), np.array(["b"], object), axis=0).tolist() == ["a", "b"]


def test_ranges_do_not_add_up_errors() -> None:
    assert run_op("Range", np.array(3), np.array(-4), np.array(-3)).tolist() == [3, 0, -3]
    found = run_op("Range", *(np.array(value, np.float32) for value in (0, 1000, 0.1)))
    np.testing.assert_allclose(found, np.arange(10000) * np.float64(np.float32(0.1)), rtol=1e-7)


def test_shapes_of_a_part() -> None:
    assert run_op("Shape", A, start=-2).tolist() == [3, 4]
    assert run_op("Shape", A, start=1, end=-1).tolist() == [3]
    assert run_op("Size", A).tolist() == 24


# ---- products ---------------------------------------------------------------------------------------------------------------


def test_gemm() -> None:
    a, b, c = A[0, :, :2], A[1, :, 1:3], np.array([[1.0], [2.0]], np.float32)
    expected = 2 * a.T.astype(np.float64) @ b + 0.5 * c
    np.testing.assert_allclose(run_op("Gemm", a, b, c, alpha=2.0, beta=0.5, transA=1), expected, rtol=1e-6)
    assert (run_op("Gemm", a, b, transB=1) == a @ b.T).all()
    assert run_op("Gemm", np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32)).tolist() == [[0] * 3] * 2


def test_products_of_stacks_and_vectors() -> None:
    assert run_op("MatMul", A, np.ones(4, np.float32)).tolist() == A.sum(2).tolist()
    assert run_op("MatMul", np.ones(3, np.float32), A).tolist() == A.sum(1).tolist()
    assert run_op("Einsum", A, A, equation=b"bij, bkj -> bik").tolist() == (A @ A.transpose(0, 2, 1)).tolist()
    assert run_op("Einsum", A[0, :, :3], equation=b"ii").tolist() == np.trace(A[0, :, :3])
    with pytest.raises(KernelError, match=r"\(MatMul\) on \(float32, float32\) failed"):
        run_op("MatMul", A, A)


def test_integer_products_have_zero_points_for_rows_and_columns() -> None:
    a, b = np.array([[1, 2], [3, 4]], np.uint8), np.array([[5, 6, 7], [8, 9, 10]], np.uint8)
    rows, columns = np.array([1, 2], np.uint8), np.array([5, 6, 7], np.uint8)
    expected = (a.astype(int) - rows.astype(int)[:, None]) @ (b.astype(int) - columns.astype(int))
    assert (run_op("MatMulInteger", a, b, rows, columns) == expected).all()


# ---- reductions ---------------------------------------------------------------------------------------------------------------


def test_reductions() -> None:
    x = A.astype(np.float64) - 7
    for op, expected in {
        "ReduceSum": x.sum((0, 2)),
        "ReduceMean": x.mean((0, 2)),
        "ReduceMax": x.max((0, 2)),
        "ReduceMin": x.min((0, 2)),
        "ReduceProd": x.prod((0, 2)),
        "ReduceL1": np.abs(x).sum((0, 2)),
        "ReduceL2": np.sqrt((x**2).sum((0, 2))),
        "ReduceSumSquare": (x**2).sum((0, 2)),
        "ReduceLogSumExp": np.log(np.exp(x).sum((0, 2))),
    }.items():
        np.testing.assert_allclose(run_op(op, A - 7, ints(0, -1), keepdims=0), expected, rtol=1e-6)
        np.testing.assert_allclose(run_op(op, A - 7, version=11, axes=[0, 2])[0, :, 0], expected, rtol=1e-6)
    np.testing.assert_allclose(run_op("ReduceLogSum", A, ints(0, -1), keepdims=0), np.log(A.sum((0, 2))), rtol=1e-6)


def test_reductions_over_no_axes_and_no_elements() -> None:
    assert (run_op("ReduceSum", A, ints(), noop_with_empty_axes=1) == A).all()
    assert run_op("ReduceSum", A, ints()).tolist() == [[[276]]]
    empty = np.zeros((2, 0), np.float32)
    for op, expected in {
        "ReduceSum": 0,
        "ReduceProd": 1,
        "ReduceMax": -np.inf,
        "ReduceMin": np.inf,
        "ReduceLogSumExp": -np.inf,
    }.items():
        assert run_op(op, empty, ints(1), keepdims=0).tolist() == [expected] * 2
    assert run_op("ReduceMax", np.zeros((1, 0), np.uint8), ints(1)).tolist() == [[0]]
    assert run_op("ReduceMax", np.array([[True, False]]), ints(1)).tolist() == [[True]]


def test_large_exponents() -> None:
    assert run_op("ReduceLogSumExp", np.array([1000, 1000], np.float32)).tolist() == [pytest.approx(1000 + np.log(2))]
    assert run_op("ReduceLogSumExp", np.array([-np.inf, -np.inf], np.float32)).tolist() == [-np.inf]
    assert run_op("Softmax", np.array([1e30, 0, -1e30], np.float32)).tolist() == [1, 0, 0]
    assert run_op("LogSoftmax", np.array([0.0, 200], np.float32)).tolist() == [-200, 0]


def test_softmax_before_version_13_takes_all_behind_the_axis_together() -> None:
    x = A / 10
    power = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(run_op("Softmax", x, version=11), power / power.sum((1, 2), keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(run_op("Softmax", x, axis=1), power / power.sum(1, keepdims=True), rtol=1e-6)
    assert run_op("Hardmax", np.array([[3, 3, 1]], np.float32)).tolist() == [[1, 0, 0]]
    assert run_op("Softmax", np.zeros((2, 0), np.float32)).shape == (2, 0)


# ---- quantized numbers ------------------------------------------------------------------------------------------------------


def test_scales_for_each_place_of_an_axis_and_for_blocks() -> None:
    x = np.array([[1, 2, 3, 4], [10, 20, 30, 40]], np.float32)
    scale = np.array([1, 10], np.float32)
    assert run_op("QuantizeLinear", x, scale, np.zeros(2, np.int8), axis=0).tolist() == [[1, 2, 3, 4]] * 2
    blocks = np.array([[1, 2], [10, 20]], np.float32)
    zero = np.array([[0, 1], [0, 1]], np.int8)
    quantized = run_op("QuantizeLinear", x, blocks, zero, axis=1, block_size=2)
    assert quantized.tolist() == [[1, 2, 3, 3]] * 2
    assert run_op("DequantizeLinear", quantized, blocks, zero, axis=1, block_size=2).tolist() == [[1, 2, 4, 4], [10, 20, 40, 40]]


def test_4_bit_numbers_stay_in_their_range() -> None:
    scale, four = np.array(1, np.float32), {"T2": "int4"}
    found = run_op("QuantizeLinear", np.array([-100, -8, 3.5, 100], np.float32), scale, types=four)
    assert found.dtype.name == "int4"
    assert found.astype(int).tolist() == [-8, -8, 4, 7]
    assert run_op("DequantizeLinear", found, scale).tolist() == [-8, -8, 4, 7]


def test_dynamic_quantization() -> None:
    y, scale, zero = run_op("DynamicQuantizeLinear", np.array([0, 2, -3, -2.5, 1.34, 0.5], np.float32), version=11, results=3)
    assert y.tolist() == [153, 255, 0, 26, 221, 179]  # the example of the standard
    assert float(scale) == pytest.approx(0.0196078438)
    assert int(zero) == 153
    flat, scale, zero = run_op("DynamicQuantizeLinear", np.zeros(3, np.float32), version=11, results=3)
    assert (flat.tolist(), float(scale), int(zero)) == ([0, 0, 0], 0.0, 0)


def test_quantized_matrix_product() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 256, (4, 300), np.uint8), rng.integers(-128, 128, (300, 6), np.int8)
    scales = [np.array(value, np.float32) for value in (0.02, 0.01, 0.5)]
    found = run_op("QLinearMatMul", a, scales[0], np.uint8(120), b, scales[1], np.int8(3), scales[2], np.uint8(99))
    exact = (a.astype(int) - 120) @ (b.astype(int) - 3) * (0.02 * 0.01 / 0.5)
    assert np.abs(found.astype(int) - np.clip(np.rint(exact) + 99, 0, 255)).max() <= 1
    assert (found.astype(int) != np.clip(np.rint(exact) + 99, 0, 255)).mean() < 0.05
