"""Quantized ops of ONNX Runtime, on numbers with known results."""

from typing import Any

import numpy as np
import pytest

from tests.kernels.one_node import run_op

U8, I8 = np.uint8, np.int8


def run(op: str, *operands: Any, **options: Any) -> Any:
    return run_op(f"com.microsoft:{op}", *operands, version=1, **options)


def f(x: Any) -> Any:
    return np.array(x, np.float32)


def u(x: Any) -> Any:
    return np.array(x, U8)


def test_sums_and_products_are_rounded_to_even_and_saturate() -> None:
    a, b = u([10, 10, 255, 0]), u([3, 1, 255, 0])
    # (a - 1) / 2 + (b - 2) / 4 in steps of 1/2 from 5
    assert run("QLinearAdd", a, f(0.5), u(1), b, f(0.25), u(2), f(0.5), u(5)).tolist() == [15, 13, 255, 3]
    a, b = u([10, 11, 255, 0]), u([3, 4, 255, 0])
    # (a - 10) / 2 * (b - 2) / 4 in steps of 1/8 from 7
    assert run("QLinearMul", a, f(0.5), u(10), b, f(0.25), u(2), f(0.125), u(7)).tolist() == [7, 9, 255, 27]


def test_functions_of_one_operand() -> None:
    x = np.array([-128, 0, 127], I8)
    assert run("QLinearLeakyRelu", x, f(1), I8(0), f(1), I8(0), alpha=0.25).tolist() == [-32, 0, 127]
    assert run("QLinearSigmoid", x, f(1), I8(0), f(1 / 256), I8(-128)).tolist() == [-128, 0, 127]
    x = u([[1, 1, 1, 1], [0, 0, 0, 255]])
    assert run("QLinearSoftmax", x, f(1), u(0), f(1 / 256), u(0), opset=13).tolist() == [[64] * 4, [0, 0, 0, 255]]
    assert run("QLinearSoftmax", u([[1, 1], [1, 1]]), f(1), u(0), f(1 / 256), u(0), opset=11, axis=0).tolist() == [
        [64, 64],
        [64, 64],
    ]


def test_means() -> None:
    x = u(np.arange(16).reshape(1, 1, 4, 4))
    assert run("QLinearGlobalAveragePool", x, f(1), u(0), f(0.5), u(1)).tolist() == [[[[16]]]]
    rows = x.reshape(1, 4, 4, 1)
    assert run("QLinearGlobalAveragePool", rows, f(1), u(0), f(0.5), u(1), channels_last=1).tolist() == [[[[16]]]]
    pooled = run("QLinearAveragePool", x, f(1), u(0), f(0.5), u(0), kernel_shape=[2, 2], strides=[2, 2])
    assert pooled.tolist() == [[[[5, 9], [21, 25]]]]
    last = run("QLinearAveragePool", rows, f(1), u(0), f(0.5), u(0), kernel_shape=[2, 2], strides=[2, 2], channels_last=1)
    assert last.reshape(-1).tolist() == [5, 9, 21, 25]
    assert run("QLinearReduceMean", x, f(1), u(0), f(0.5), u(0), axes=[2, 3], keepdims=0).tolist() == [[15]]


def test_joining_and_choosing() -> None:
    y = run("QLinearConcat", f(0.5), u(10), u([[1, 2]]), f(1), u(0), u([[8]]), f(0.25), u(4), axis=1)
    assert y.tolist() == [[12, 14, 12]]
    y = run("QLinearWhere", np.array([True, False]), u([1, 2]), f(1), u(0), u([8, 8]), f(0.25), u(4), f(0.5), u(10))
    assert y.tolist() == [12, 12]


@pytest.mark.parametrize(("left", "right"), [(U8, U8), (U8, I8), (I8, I8)])
def test_integer_products_are_exact(left: Any, right: Any) -> None:
    """Also where 8-bit pairs overflow 16 bits, which some processors' instructions do."""
    rng = np.random.default_rng(0)
    a = rng.integers(np.iinfo(left).min, np.iinfo(left).max + 1, (3, 500)).astype(left)
    b = rng.integers(np.iinfo(right).min, np.iinfo(right).max + 1, (500, 4)).astype(right)
    bias, columns = f([1, 2, 3, 4]), f([0.5, 0.25, 2, 1])
    exact = (a.astype(int) - 3) @ (b.astype(int) - 5)
    y = run("MatMulIntegerToFloat", a, b, f(0.5), columns, left(3), right(5), bias)
    np.testing.assert_allclose(y, exact * 0.5 * columns + bias, rtol=1e-6)
    y = run(
        "QGemm",
        a,
        f(0.5),
        left(3),
        np.ascontiguousarray(b.T),
        columns,
        np.full(4, 5, right),
        np.arange(4, dtype=np.int32),
        transB=1,
        alpha=2.0,
    )
    np.testing.assert_allclose(y, (exact + np.arange(4)) * columns, rtol=1e-6)
    y = run("QGemm", a, f(0.5), left(3), b, f(1), right(5), None, f(1000), left(1))
    limits = np.iinfo(left)
    assert y.tolist() == np.clip(np.rint(exact / 2000) + 1, limits.min, limits.max).tolist()


def test_sums_of_16_bit_products_wrap() -> None:
    a = np.full((1, 4), -32768, np.int16)
    assert run("MatMulInteger16", a, np.full((4, 1), -32768, np.int16)).tolist() == [[0]]
    assert run("MatMulInteger16", a[:, :2], np.full((2, 1), -32768, np.int16)).tolist() == [[-(2**31)]]


def test_the_left_operand_is_quantized_as_it_comes() -> None:
    """Its range, widened to hold 0, has 255 steps: here of 1/51, with zero point 102."""
    a = f([[-2, 3, 0.5, 0.006]])
    y = run("DynamicQuantizeMatMul", a, np.eye(4, dtype=np.int8), f(1))
    np.testing.assert_allclose(y, np.array([[-102, 153, 26, 0]]) / 51, rtol=1e-6)
    assert run("DynamicQuantizeMatMul", np.zeros((1, 4), np.float32), np.eye(4, dtype=np.int8), f(1)).tolist() == [[0, 0, 0, 0]]
