"""Conversions between dtypes: every bit as NumPy, ml_dtypes and exact arithmetic have it."""

import math
import struct
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ampgraph.graph.dtypes import cast_array, find_dtype
from ampgraph.graph.rounding import round_on_grid

F16, BF16, F32, F64 = map(find_dtype, ("float16", "bfloat16", "float32", "float64"))
pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in cast:RuntimeWarning")


def _patterns() -> Any:
    """Every exponent, sign and upper part of a float32's mantissa, with lower parts at and next to every tie."""
    upper = np.arange(1 << 19, dtype=np.uint32) << np.uint32(13)
    lower = np.array([0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF], np.uint32)
    return (upper[:, None] | lower).ravel().view(np.float32)


def test_every_float32_exponent_and_tie_rounds_to_float16_as_numpy_does() -> None:
    x = _patterns()
    assert (cast_array(x, F16).view(np.uint16) == x.astype(np.float16).view(np.uint16)).all()


def test_float32_patterns_all_over_round_to_float16_as_numpy_does() -> None:
    for start in range(0, 1 << 32, 1 << 28):
        x = np.arange(start, start + (1 << 28), 1009, dtype=np.uint64).astype(np.uint32).view(np.float32)
        assert (cast_array(x, F16).view(np.uint16) == x.astype(np.float16).view(np.uint16)).all()


@pytest.mark.parametrize("size", [512, 513, 3000, 8192, 8193])
@pytest.mark.parametrize("small", [0, 0.02, 0.5], ids="{:.0%} small".format)
def test_arrays_of_all_sizes_round_to_float16_as_numpy_does(size: int, small: float) -> None:
    x = np.random.default_rng(size).standard_normal(size).astype(np.float32)
    x[: int(small * size)] *= np.float32(1e-6)
    x[-1:] = np.nan
    x[-3:-1] = 65519, 1e9
    assert (cast_array(x, F16).view(np.uint16) == x.astype(np.float16).view(np.uint16)).all()


def test_every_float16_widens_exactly() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    expected = every.astype(np.float32).view(np.uint32)
    assert (cast_array(every, F32).view(np.uint32) == expected).all()
    assert (cast_array(every[:100].copy(), F32).view(np.uint32) == expected[:100]).all()
    assert (cast_array(every.reshape(256, 256).T, F32).view(np.uint32) == expected.reshape(256, 256).T).all()


@given(st.floats(width=64, allow_nan=False))
def test_float64_is_rounded_to_float16_once(number: float) -> None:
    try:
        expected = struct.unpack("<e", struct.pack("<e", number))[0]
    except OverflowError:
        expected = math.copysign(math.inf, number)
    found = float(cast_array(np.array([number]), F16)[0])
    assert found == expected
    assert math.copysign(1, found) == math.copysign(1, expected)


def test_float64_next_to_a_tie_is_not_rounded_twice() -> None:
    tie = 1 + 2.0**-11  # between two numbers of float16
    near = np.nextafter(tie, 2)
    assert np.float32(near) == np.float32(tie), "float32 does not tell them apart"
    assert cast_array(np.array([tie, near, -near]), F16).tolist() == [1.0, 1 + 2.0**-10, -1 - 2.0**-10]
    tie = 1 + 2.0**-8
    assert cast_array(np.array([tie, np.nextafter(tie, 2)]), BF16).astype(np.float32).tolist() == [1.0, 1 + 2.0**-7]


@given(st.integers(-(2**63), 2**63 - 1))
def test_integers_are_rounded_once(number: int) -> None:
    found = cast_array(np.array([number]), BF16).astype(np.float64)[0]
    shift = max(0, abs(number).bit_length() - 8)
    quotient = Fraction(abs(number), 1 << shift)
    expected = math.copysign(float(round(quotient)) * 2.0**shift, number) if number else 0.0  # round() takes ties to even
    assert found == expected


def test_all_of_bfloat16() -> None:
    x = _patterns()
    assert (cast_array(x, BF16).view(np.uint16) == x.astype(BF16.numpy).view(np.uint16)).all()
    every = np.arange(1 << 16, dtype=np.uint16)
    assert (cast_array(every.view(BF16.numpy), F32).view(np.uint32) == every.astype(np.uint32) << np.uint32(16)).all()


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float4_e2m1fn"])
def test_narrow_floats_take_the_nearest(name: str) -> None:
    dtype = find_dtype(name)
    count = 1 << dtype.bits
    every = np.arange(count, dtype=np.uint8).view(dtype.numpy).astype(np.float64)
    numbers = np.unique(every[np.isfinite(every)])
    middles = (numbers[1:] + numbers[:-1]) / 2
    assert (cast_array(np.nextafter(middles, np.inf), dtype).astype(np.float64) == numbers[1:]).all()
    assert (cast_array(np.nextafter(middles, -np.inf), dtype).astype(np.float64) == numbers[:-1]).all()


def test_the_same_dtype_is_not_copied() -> None:
    x = np.ones(3, np.float32)
    assert cast_array(x, F32) is x
    assert cast_array(np.zeros((0, 3), np.float32), F16).shape == (0, 3)
    assert cast_array(np.array(2, np.float32), F16).shape == ()


def test_other_conversions() -> None:
    assert cast_array(np.array([1.9, -1.9, 0.5], np.float16), find_dtype("int32")).tolist() == [1, -1, 0]
    assert cast_array(np.array([300, -1]), find_dtype("uint8")).tolist() == [44, 255]
    assert cast_array(np.array([3, -9]), find_dtype("int4")).astype(np.int32).tolist() == [3, 7]
    assert cast_array(np.array([2.5, -1.0], BF16.numpy), find_dtype("int64")).tolist() == [2, -1]


def test_rounding_on_the_grid_is_rounding_to_float16() -> None:
    x = _patterns()
    found = round_on_grid(x)
    expected = x.astype(np.float16).astype(np.float32)
    nan = np.isnan(x)
    assert np.isnan(found[nan]).all()
    assert (found[~nan].view(np.uint32) == expected[~nan].view(np.uint32)).all()


def test_small_and_large_numbers_take_no_longer() -> None:
    import timeit

    x = np.random.default_rng(0).standard_normal(1 << 18).astype(np.float32)

    def seconds(y: Any) -> float:
        return min(timeit.repeat(lambda: cast_array(y, F16), number=3, repeat=5))

    usual = seconds(x)
    assert max(seconds(x * np.float32(1e-6)), seconds(x * np.float32(1e6))) < 8 * usual  # NumPy: 15 times
