"""TensorFlow's functions of numbers: float64 formulas, numbers that TensorFlow 2.21 printed, gradients by differences."""

import math
from typing import Any

import numpy as np
import pytest

from ampgraph.graph.dtypes import find_dtype
from ampgraph.graph.errors import KernelError

from .tf_node import run_tf

I32 = np.int32


@pytest.mark.parametrize(
    ("op", "exact"),
    [
        ("Erf", math.erf),
        ("Erfc", math.erfc),
        ("Lgamma", math.lgamma),
        ("Exp", math.exp),
        ("Log1p", math.log1p),
        ("Expm1", math.expm1),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_formula(op: str, exact: Any, dtype: Any) -> None:
    x = np.concatenate([np.linspace(-0.97, 5.03, 301), [1e-9, 9.7, 20.25]]).astype(dtype)
    wanted = [exact(v) for v in x.astype(np.float64)]
    np.testing.assert_allclose(run_tf(op, x), wanted, rtol=3e-6 if dtype == np.float32 else 1e-11, atol=1e-40)


def test_digamma_is_the_slope_of_lgamma() -> None:
    x = np.array([-3.5, -0.3, 0.2, 1.0, 2.5, 30.0])
    step = 1e-5
    slope = [(math.lgamma(v + step) - math.lgamma(v - step)) / (2 * step) for v in x]
    np.testing.assert_allclose(run_tf("Digamma", x), slope, rtol=1e-7)


def test_inverses_of_the_error_function() -> None:
    x = np.array([-5.0, -1.2, -0.2, 0.0, 1e-8, 0.3, 2.0])
    np.testing.assert_allclose(run_tf("Erfinv", np.array([math.erf(v) for v in x[1:]])), x[1:], rtol=1e-12)
    np.testing.assert_allclose(run_tf("Ndtri", np.array([math.erfc(-v / math.sqrt(2)) / 2 for v in x])), x, rtol=1e-9, atol=1e-15)
    assert run_tf("Ndtri", np.array([0.0, 1.0])).tolist() == [-np.inf, np.inf]


FUNCTIONS = {
    "TanhGrad": np.tanh,
    "SigmoidGrad": lambda x: 1 / (1 + np.exp(-x)),
    "InvGrad": lambda x: 1 / x,
    "ReciprocalGrad": lambda x: 1 / x,
    "RsqrtGrad": lambda x: x**-0.5,
    "SqrtGrad": np.sqrt,
}


@pytest.mark.parametrize("op", FUNCTIONS)
def test_gradient(op: str) -> None:
    function, x, dy, step = FUNCTIONS[op], np.linspace(0.3, 2, 9), np.linspace(-1, 3, 9), 1e-6
    slope = (function(x + step) - function(x - step)) / (2 * step)
    np.testing.assert_allclose(run_tf(op, function(x), dy), dy * slope, rtol=1e-8)


def test_division_of_integers() -> None:
    a, b = np.array([7, -7, 7, -7], I32), np.array([3, 3, -3, -3], I32)
    assert run_tf("Div", a, b).tolist() == run_tf("TruncateDiv", a, b).tolist() == [2, -2, -2, 2]
    assert run_tf("FloorDiv", a, b).tolist() == [2, -3, -3, 2]
    assert run_tf("FloorMod", a, b).tolist() == [1, 2, -2, -1]
    assert run_tf("TruncateMod", a, b).tolist() == run_tf("Mod", a, b).tolist() == [1, -1, 1, -1]
    with pytest.raises(KernelError, match="not divided by 0"):
        run_tf("FloorDiv", a, np.zeros(4, I32))
    with pytest.raises(KernelError, match="no negative powers"):
        run_tf("Pow", a, b)


def test_zero_that_wins() -> None:
    zero, odd = np.zeros(3, np.float32), np.array([np.nan, np.inf, 0], np.float32)
    for op in ("Xlogy", "Xdivy", "Xlog1py"):
        assert run_tf(op, zero, odd).tolist() == [0, 0, 0]
    for op in ("DivNoNan", "MulNoNan"):
        assert run_tf(op, odd, zero).tolist() == [0, 0, 0]


def test_comparison_of_shapes_that_do_not_fit() -> None:
    a, b = np.zeros(2, np.float32), np.zeros(3, np.float32)
    assert run_tf("Equal", a, b, incompatible_shape_error=False) == np.array(False)
    assert run_tf("NotEqual", a, b, incompatible_shape_error=False) == np.array(True)
    with pytest.raises(KernelError, match="Equal"):
        run_tf("Equal", a, b)


def test_shifts_stay_within_the_bits() -> None:
    x, count = np.array([-8, 1, 1], np.int8), np.array([70, -3, 9], np.int8)
    assert run_tf("RightShift", x, count).tolist() == [-1, 1, 0]
    assert run_tf("LeftShift", x, count).tolist() == [0, 1, -128]


@pytest.mark.parametrize(
    ("dtype", "near", "cut"),
    [
        ("float16", [np.inf, 65504, 1.0, 1 + 2**-9], [65504, 65504, 1.0, 1 + 2**-10]),
        ("bfloat16", [65536, 65536, 1, 1], [65280, 65280, 1, 1]),
    ],
)
def test_cast_rounds_or_cuts(dtype: str, near: list[float], cut: list[float]) -> None:
    x = np.array([65520, 65519, 1 + 2**-11, 1 + 2**-10 + 2**-11], np.float32)
    assert run_tf("Cast", x, types={"DstT": dtype}).astype(np.float64).tolist() == near
    assert run_tf("Cast", x, types={"DstT": dtype}, Truncate=True).astype(np.float64).tolist() == cut


def test_cast_to_and_from_everything() -> None:
    x = np.array([0, 1, 1.5, -2.75])
    assert run_tf("Cast", x, types={"DstT": "int32"}).tolist() == [0, 1, 1, -2]
    assert run_tf("Cast", x, types={"DstT": "bool"}).tolist() == [False, True, True, True]
    assert run_tf("Cast", x + 1j, types={"DstT": "float32"}).tolist() == x.tolist()
    assert run_tf("Cast", x > 1, types={"DstT": "float8_e5m2"}).astype(int).tolist() == [0, 0, 1, 0]
    assert np.isnan(run_tf("Cast", x + 1e4, types={"DstT": "float8_e4m3fn"}).astype(np.float32)).all()
    large = np.array([300, -1.5, -300, np.nan], np.float32).astype(find_dtype("bfloat16").numpy)
    assert run_tf("Cast", large, types={"DstT": "uint8"}).tolist() == [255, 0, 0, 0]


def test_bitcast_changes_the_last_axis() -> None:
    x = np.array([[1.0, -2.0]], np.float32)
    assert run_tf("Bitcast", x, types={"type": "int32"}).tolist() == [[0x3F800000, -0x40000000]]
    halves = run_tf("Bitcast", x, types={"type": "uint16"})
    assert halves.tolist() == [[[0, 0x3F80], [0, 0xC000]]]
    np.testing.assert_array_equal(run_tf("Bitcast", halves, types={"type": "float32"}), x)
    with pytest.raises(KernelError, match="last axis"):
        run_tf("Bitcast", halves.reshape(4), types={"type": "float32"})


def test_numbers_that_are_not_finite() -> None:
    with pytest.raises(KernelError, match="found NaN: the loss"):
        run_tf("CheckNumerics", np.array([1, np.nan], np.float32), message=b"the loss")


def test_bits_and_parts() -> None:
    assert run_tf("PopulationCount", np.array([-1, 0, 5], np.int16)).tolist() == [16, 0, 2]
    z = run_tf("Complex", np.array([3.0, 0.0]), np.array([4.0]), types={"Tout": "complex128"})
    assert z.tolist() == [3 + 4j, 4j]
    assert run_tf("ComplexAbs", z, types={"Tout": "float64"}).tolist() == [5, 4]
    assert run_tf("Select", np.array([True, False]), np.ones((2, 2), I32), np.zeros((2, 2), I32)).tolist() == [[1, 1], [0, 0]]
