"""docs/numerics.md, claim by claim."""

import math
from typing import Any

import numpy as np
import pytest

from ampgraph.graph.dtypes import find_dtype

from .one_node import run_op

BF16 = find_dtype("bfloat16").numpy
LOW = [np.dtype(np.float16), BF16]
rng = np.random.default_rng(0)


def f64(x: Any) -> Any:
    return x.astype(np.float64)


def rounded(x: Any, dtype: Any) -> Any:
    """Round float64 to a low dtype once: through float32 where that is exact, else with the last bit made odd."""
    near = x.astype(np.float32)
    bits = np.where(f64(near) == x, near.view(np.uint32), (near.view(np.uint32) - (np.abs(f64(near)) > np.abs(x))) | 1)
    with np.errstate(over="ignore"):
        return bits.astype(np.uint32).view(np.float32).astype(dtype)


def ulps(found: Any, exact: Any) -> Any:
    """Distance in units of the last place of the type."""
    size = found.dtype.itemsize
    a, b = (np.ascontiguousarray(x).view(f"i{size}").astype(np.int64) for x in (found, rounded(exact, found.dtype)))
    return np.abs(a - b)


# ---- rounding -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize(("op", "exact"), [("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Div", np.divide)])
def test_arithmetic_is_rounded_once(op: str, exact: Any, dtype: Any) -> None:
    a, b = ((rng.standard_normal(4000) * 10.0 ** rng.uniform(-3, 2, 4000)).astype(dtype) for _ in range(2))
    found = run_op(op, a, b)
    assert found.dtype == dtype
    assert (ulps(found, exact(f64(a), f64(b))) == 0).mean() > (0.999 if op == "Div" else 0.9999)


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize("op", ["Exp", "Log", "Sqrt", "Tanh", "Sin", "Sigmoid", "Erf", "Gelu", "Reciprocal", "Softplus"])
def test_functions_are_rounded_once(op: str, dtype: Any) -> None:
    exact = {
        "Exp": np.exp,
        "Log": np.log,
        "Sqrt": np.sqrt,
        "Tanh": np.tanh,
        "Sin": np.sin,
        "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
        "Erf": np.vectorize(math.erf),
        "Gelu": np.vectorize(lambda x: 0.5 * x * math.erfc(-x / math.sqrt(2))),
        "Reciprocal": lambda x: 1 / x,
        "Softplus": lambda x: np.log1p(np.exp(x)),
    }[op]
    x = np.linspace(0.01, 5, 3001).astype(dtype)
    distance = ulps(run_op(op, x), exact(f64(x)))
    assert distance.max() <= 1
    assert (distance == 0).mean() > 0.98  # the others lie next to a tie


def test_overflow_begins_half_a_step_above_the_largest_number() -> None:
    a = np.array([65504, 65504, -65504], np.float16)
    b = np.array([15, 16, -16], np.float16)
    assert run_op("Add", a, b).tolist() == [65504, math.inf, -math.inf]
    largest = np.array([3.3895313892515355e38], np.float64).astype(BF16)
    assert np.isinf(f64(run_op("Add", largest, largest)))


def test_subnormal_numbers_stay_and_less_becomes_a_signed_zero() -> None:
    x = np.array([2.0**-24, 2.0**-14, -(2.0**-24)], np.float16)
    half = np.array([0.5, 0.5, 0.25], np.float16)
    found = run_op("Mul", x, half)
    assert found.tolist() == [0, 2.0**-15, 0]
    assert np.signbit(found).tolist() == [False, False, True]
    assert run_op("Add", x, x).tolist() == [2.0**-23, 2.0**-13, -(2.0**-23)]


def test_what_is_no_number_spreads() -> None:
    x = np.array([np.nan, np.inf, -np.inf], np.float16)
    assert np.isnan(run_op("Sub", x, x)).all()
    assert np.isnan(run_op("Max", x, np.zeros(3, np.float16))).tolist() == [True, False, False]
    assert np.isnan(run_op("Relu", x)).tolist() == [True, False, False]
    assert np.isnan(run_op("ReduceMax", x[None])).all()


@pytest.mark.parametrize("op", ["Transpose", "Flatten", "Identity"])
def test_moving_changes_no_bit(op: str) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(256, 256)
    found = run_op(op, every)
    assert (np.sort(found.ravel().view(np.uint16)) == np.arange(1 << 16)).all()


# ---- families -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_products_add_up_in_float32(dtype: Any) -> None:
    a, b = rng.standard_normal((30, 2000)).astype(dtype), rng.standard_normal((2000, 20)).astype(dtype)
    found, exact = run_op("MatMul", a, b), f64(a) @ f64(b)
    summed = 2.0**-24 * np.linalg.norm(f64(a), axis=1)[:, None] * np.linalg.norm(f64(b), axis=0)  # what float32 may lose
    stored = 2.0 ** -(11 if dtype == np.float16 else 8) * np.abs(exact)
    assert (np.abs(f64(found) - exact) <= summed + stored).all()
    assert (ulps(found, exact) == 0).mean() > 0.99
    ones = np.ones((1, 5000), dtype)
    assert float(run_op("MatMul", ones, ones.T)[0, 0]) == float(np.float64(5000).astype(dtype))  # bfloat16 sums stop at 256


def test_gemm_rounds_after_the_bias() -> None:
    a = np.array([[300]], np.float16)
    c = np.array([[-60000]], np.float16)
    assert run_op("Gemm", a, a, c).tolist() == [[30000]]


def test_a_mean_does_not_overflow_where_its_sum_would() -> None:
    x = np.full((1, 1000), 60000, np.float16)
    assert run_op("ReduceMean", x).tolist() == [[60000]]
    assert np.isinf(run_op("ReduceSum", x))
    assert (
        float(run_op("ReduceSum", np.ones((1, 4097), BF16))[0, 0]) == 4096
    )  # 4,097 rounds to 4,096; adding up in bfloat16 gives 256


@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_softmax_is_rounded_once(dtype: Any) -> None:
    x = (10 * rng.standard_normal((20, 50))).astype(dtype)
    power = np.exp(f64(x) - f64(x).max(1, keepdims=True))
    exact = power / power.sum(1, keepdims=True)
    assert ulps(run_op("Softmax", x), exact).max() <= 1
    assert np.isfinite(run_op("ReduceLogSumExp", np.full((1, 9), 60000, np.float16))).all()


def test_a_norm_divides_by_the_exact_deviation() -> None:
    x = np.array([[600, -600, 500, -500]], np.float16)  # squares overflow float16
    found = run_op("LayerNormalization", x, np.ones(4, np.float16), None)
    exact = f64(x) / np.sqrt((f64(x) ** 2).mean() + 1e-5)
    assert ulps(found, exact).max() == 0


def test_quantized_numbers_take_the_nearest_and_ties_to_even() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, 200, -200], np.float32)
    one = np.float32(1).reshape(())
    assert run_op("QuantizeLinear", x, one, np.int8(3).reshape(())).tolist() == [3, 5, 5, 3, 127, -128]
    assert run_op(
        "DequantizeLinear", np.array([3, 5], np.int8), np.float16(0.1).reshape(()), np.int8(3).reshape(())
    ).tolist() == [
        0,
        float(np.float16(np.float32(np.float16(0.1)) * np.float32(2))),
    ]


def test_quantized_products_are_exact() -> None:
    a = rng.integers(0, 256, (7, 3000), np.uint8)
    b = rng.integers(-128, 128, (3000, 5), np.int8)
    found = run_op("MatMulInteger", a, b, np.uint8(255).reshape(()), np.int8(-128).reshape(()))
    assert (found == (a.astype(np.int64) - 255) @ (b.astype(np.int64) + 128)).all()
    assert found.dtype == np.int32


# ---- integers -----------------------------------------------------------------------------------------------------------------


def test_integers_wrap() -> None:
    x = np.array([2**31 - 1, -(2**31)], np.int32)
    assert run_op("Add", x, np.array([1, -1], np.int32)).tolist() == [-(2**31), 2**31 - 1]
    assert run_op("Mul", np.array([200], np.uint8), np.array([2], np.uint8)).tolist() == [144]
    assert run_op("MatMul", np.full((1, 2), 2**20, np.int32), np.full((2, 1), 2**11, np.int32)).tolist() == [[0]]
    assert run_op("ReduceSum", np.full((1, 2), 2**30, np.int32)).tolist() == [[-(2**31)]]


def test_quotients_are_cut_off_towards_zero() -> None:
    a, b = np.array([7, -7, 7, -7, 5, 6], np.int64), np.array([2, 2, -2, -2, 0, -3], np.int64)
    assert run_op("Div", a, b).tolist() == [3, -3, -3, 3, 0, -2]
    assert run_op("Mod", a[:4], b[:4]).tolist() == [1, 1, -1, -1]
    assert run_op("Mod", a[:4], b[:4], fmod=1).tolist() == [1, -1, 1, -1]


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint32, np.uint64])
def test_powers_of_integers_wrap_and_are_exact(dtype: Any) -> None:
    is_signed = np.issubdtype(dtype, np.signedinteger)
    bases = [0, 1, 2, 3, 7, 10, np.iinfo(dtype).max, *((-1, -2, -3) if is_signed else ())]
    powers = [0, 1, 2, 3, 39, 63, 100, 127, *((-1, -2, -3, -100) if is_signed else ())]
    a, b = (np.array(x, dtype) for x in zip(*[(base, power) for base in bases for power in powers], strict=True))

    def exact(base: int, power: int) -> int:
        if power >= 0:
            return base**power
        return {1: 1, -1: (-1) ** -power}.get(base, 0)

    wanted = np.array([exact(x, y) % 2**64 for x, y in zip(a.tolist(), b.tolist(), strict=True)], np.uint64)
    assert (run_op("Pow", a, b) == wanted.astype(dtype)).all()
    assert run_op("Pow", np.array([3, 2], dtype), np.array([40, -1])).tolist() == [int(np.array(3**40).astype(dtype)), 0]


def test_shifts_by_all_bits() -> None:
    x = np.array([-8, 8], np.int32)
    assert run_op("BitShift", x, np.array([40, 40], np.int32), version=28, direction=b"RIGHT").tolist() == [-1, 0]
    assert run_op("BitShift", np.array([8], np.uint32), np.array([32], np.uint32), direction=b"LEFT").tolist() == [0]
