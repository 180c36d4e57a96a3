"""Elementwise ops against float64 formulas and numbers made by hand; earlier versions of the ops; casts."""

import math
from typing import Any

import numpy as np
import pytest

from ampgraph.graph.dtypes import find_dtype

from .one_node import run_op

X = np.concatenate([np.linspace(-9, 9, 721), [-100, 100, 1e-30, -1e-30, 0.0]])
F = np.float64
BF16 = find_dtype("bfloat16").numpy


def sigmoid(x: Any) -> Any:
    return np.exp(-np.logaddexp(0, -x))


@pytest.mark.parametrize(
    ("op", "attributes", "exact"),
    [
        ("Relu", {}, lambda x: np.maximum(x, 0)),
        ("LeakyRelu", {"alpha": 0.2}, lambda x: np.where(x < 0, np.float32(0.2) * x, x)),
        ("Elu", {"alpha": 2.0}, lambda x: np.where(x < 0, 2 * np.expm1(x), x)),
        ("Celu", {"alpha": 2.0}, lambda x: np.maximum(x, 0) + np.minimum(0, 2 * np.expm1(x / 2))),
        ("Selu", {}, lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543773 * np.expm1(np.minimum(x, 0)))),
        ("HardSigmoid", {}, lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
        ("HardSwish", {}, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
        ("Mish", {}, lambda x: x * np.tanh(np.logaddexp(0, x))),
        ("Softplus", {}, lambda x: np.logaddexp(0, x)),
        ("Softsign", {}, lambda x: x / (1 + np.abs(x))),
        ("Sigmoid", {}, sigmoid),
        ("Swish", {"alpha": 1.5}, lambda x: x * sigmoid(1.5 * x)),
        ("ThresholdedRelu", {"alpha": 2.0}, lambda x: np.where(x > 2, x, 0)),
        ("Shrink", {"lambd": 1.5, "bias": 1.0}, lambda x: np.where(x < -1.5, x + 1, np.where(x > 1.5, x - 1, 0))),
        ("Erf", {}, np.vectorize(math.erf)),
        ("Gelu", {}, np.vectorize(lambda x: x * math.erfc(-x / math.sqrt(2)) / 2)),
        (
            "Gelu",
            {"approximate": b"tanh"},
            lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        ),
    ],
)
def test_activations(op: str, attributes: dict[str, Any], exact: Any) -> None:
    version = 24 if op == "Swish" else 22
    single = X.astype(np.float32)
    expected = exact(single.astype(F))
    np.testing.assert_allclose(run_op(op, single, version=version, **attributes), expected, rtol=2e-6, atol=1e-6)
    if op not in ("Selu", "HardSigmoid", "LeakyRelu"):  # their attributes are float32
        np.testing.assert_allclose(run_op(op, X, version=version, **attributes), exact(X), rtol=1e-12, atol=1e-14)


def test_erf_keeps_its_relative_accuracy_near_zero() -> None:
    x = np.logspace(-30, 0.5, 500).astype(np.float32)
    expected = np.array([math.erf(v) for v in x.astype(F).tolist()])
    np.testing.assert_allclose(run_op("Erf", x), expected, rtol=5e-7)
    special = run_op("Erf", np.array([np.nan, np.inf, -np.inf, -0.0], np.float32))
    assert np.isnan(special[0])
    assert special[1:].tolist() == [1, -1, 0]


def test_clip_of_every_version() -> None:
    x = np.array([-3, 0, 3], np.float32)
    assert run_op("Clip", x, version=6, min=-1.0, max=2.0).tolist() == [-1, 0, 2]
    low, high = np.float32(-1).reshape(()), np.float32(2).reshape(())
    assert run_op("Clip", x, low, high, version=13).tolist() == [-1, 0, 2]
    assert run_op("Clip", x, None, high, version=13).tolist() == [-3, 0, 2]
    assert run_op("Clip", x, high, low, version=13).tolist() == [-1, -1, -1], "the upper end wins"
    assert run_op("Clip", x.astype(np.int8), np.int8(-1).reshape(()), version=13).tolist() == [-1, 0, 3]


def test_clipping_at_zeros_of_both_signs() -> None:
    zeros = np.full(5000, -0.0, np.float32)
    for bound in (0.0, -0.0, 0.0):
        low = np.float32(bound).reshape(())
        assert (np.signbit(run_op("Clip", zeros, low, version=13)) == np.signbit(np.maximum(zeros, low))).all()


def test_broadcasting_before_version_7_starts_at_an_axis() -> None:
    a = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    b = np.array([10, 20, 30], np.float32)
    assert (run_op("Add", a, b, version=6, broadcast=1, axis=1) == a + b[:, None]).all()
    assert (run_op("Mul", a, b.repeat(4).reshape(3, 4), version=6, broadcast=1) == a * b[:, None]).all()
    slope = np.array([1, 2, 3], np.float32)
    assert (run_op("PRelu", -a, slope, version=6) == -a * slope[:, None]).all()


def test_operands_are_broadcast_both_ways() -> None:
    a, b = np.arange(3, dtype=np.float32).reshape(3, 1), np.arange(4, dtype=np.float32)
    assert (run_op("Sub", a, b) == a - b).all()
    large = np.ones((100, 1, 60), np.float32)  # large enough to be written over, if it were of the result's shape
    assert run_op("Add", run_op("Neg", large), np.ones((70, 1), np.float32)).shape == (100, 70, 60)
    assert run_op("Max", a, b, np.float32(2).reshape(())).tolist() == [[2, 2, 2, 3]] * 3
    assert run_op("Mean", a, b[:1], a).tolist() == [[0], [pytest.approx(2 / 3)], [pytest.approx(4 / 3)]]
    assert run_op("Add", np.zeros((0, 3), np.float32), np.zeros(3, np.float32)).shape == (0, 3)


def test_powers_have_the_type_of_the_base() -> None:
    integers = np.array([2, -3, 4], np.int32)
    assert run_op("Pow", integers, np.array([10, 3, -1], np.int32)).tolist() == [1024, -27, 0]
    found = run_op("Pow", integers, np.array([0.5, 2, 0.5], np.float32))
    assert found.dtype == np.int32
    assert found[1:].tolist() == [9, 2]
    assert run_op("Pow", np.array([2.0, 9.0], np.float32), np.array([3, 2], np.int64)).dtype == np.float32
    assert run_op("Pow", np.array([9.0], np.float16), np.array([0.5], np.float16)).tolist() == [3]


def test_infinite_numbers_by_sign() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0], np.float32)
    assert run_op("IsInf", x).tolist() == [True, True, False, False]
    assert run_op("IsInf", x, detect_positive=0).tolist() == [False, True, False, False]
    assert run_op("IsInf", x, detect_negative=0).tolist() == [True, False, False, False]
    assert run_op("IsNaN", x.astype(np.float16)).tolist() == [False, False, True, False]


def test_signs_and_rounding() -> None:
    assert run_op("Round", np.array([0.5, 1.5, -0.5, 2.6], np.float32)).tolist() == [0, 2, 0, 3]
    assert run_op("Abs", np.array([-128, 5], np.int8)).tolist() == [-128, 5]
    assert run_op("Neg", np.array([-128, 5], np.int8)).tolist() == [-128, -5]
    assert run_op("Sign", np.array([-2.5, 0, 7], BF16)).astype(F).tolist() == [-1, 0, 1]
    assert run_op("BitwiseNot", np.array([0, 255], np.uint8)).tolist() == [255, 0]


# ---- casts ----------------------------------------------------------------------------------------------------------------


def cast(x: Any, to: str, **attributes: Any) -> Any:
    return run_op("Cast", x, version=24, types={"T2": to}, **attributes)


def test_casts_between_numbers() -> None:
    assert cast(np.array([1.9, -1.9]), "int32").tolist() == [1, -1]
    assert cast(np.array([200], np.int16), "int8").tolist() == [-56]
    assert cast(np.array([0.0, -0.0, 0.1, np.nan], np.float32), "bool").tolist() == [False, False, True, True]
    assert cast(np.array([True, False]), "float16").tolist() == [1, 0]
    assert cast(np.array([1e6], np.float32), "float16").tolist() == [math.inf]


@pytest.mark.parametrize(("name", "most"), [("float8_e4m3fn", 448), ("float8_e5m2", 57344), ("float8_e4m3fnuz", 240)])
def test_casts_to_8_bit_floats_saturate_unless_told(name: str, most: float) -> None:
    x = np.array([1e5, -1e5, np.inf, np.nan, 1.0], np.float32)
    assert cast(x, name).astype(F)[[0, 1, 2, 4]].tolist() == [most, -most, most, 1]
    assert np.isnan(cast(x, name).astype(F)[3])
    assert not np.isfinite(cast(x, name, saturate=0).astype(F)[:4]).any()


def test_casts_to_powers_of_two() -> None:
    x = np.array([1.0, 1.1, 1.5, 1.6, 0.75], np.float32)
    assert cast(x, "float8_e8m0fnu").astype(F).tolist() == [1, 2, 2, 2, 1]
    assert cast(x, "float8_e8m0fnu", round_mode=b"down").astype(F).tolist() == [1, 1, 1, 1, 0.5]
    assert cast(x, "float8_e8m0fnu", round_mode=b"nearest").astype(F).tolist() == [1, 1, 2, 2, 1]


def test_casts_of_text() -> None:
    words = np.array(["3.5", "-INF", "NaN", "1e-5"], object)
    found = cast(words, "float32")
    assert found[[0, 1]].tolist() == [3.5, -math.inf]
    assert np.isnan(found[2])
    assert cast(np.array(["-7", "12"], object), "int8").tolist() == [-7, 12]
    assert cast(np.array([0.1, -2], np.float16), "string").tolist() == ["0.1", "-2.0"]
    assert cast(np.array([2**63 - 1]), "string").tolist() == ["9223372036854775807"]


def test_cast_like_and_bit_cast() -> None:
    assert run_op("CastLike", np.array([2.7], np.float32), np.zeros(1, np.int64)).tolist() == [2]
    bits = run_op("BitCast", np.array([1.0, -2.0], np.float32), version=26, types={"T2": "uint32"})
    assert bits.tolist() == [0x3F800000, 0xC0000000]
