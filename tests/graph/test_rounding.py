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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 100, 101, 4000, 4001, 70_000])
def test_arrays_of_all_lengths_round_to_float16_as_numpy_does(count: int, dtype: Any) -> None:
    x = np.random.default_rng(count).standard_normal(count)
    x[::3] *= 1e-6
    for special in (x, x * 1e5, np.where(x > 1, np.nan, x), np.where(x < 0, -np.inf, 0.0), -np.abs(x) - 1):
        special = special.astype(dtype)
        assert (cast_array(special, F16).view(np.uint16) == special.astype(np.float16).view(np.uint16)).all()


def test_nans_keep_sign_and_the_upper_part_of_the_mantissa() -> None:
    exponents = np.array([0x7FF, 0xFFF], np.uint64) << np.uint64(52)
    mantissas = np.uint64(1) << np.arange(52, dtype=np.uint64)
    x = (exponents[:, None] | mantissas).ravel().view(np.float64)
    assert np.isnan(x).all()
    found = cast_array(x, F16).view(np.uint16)
    assert (found == x.astype(np.float16).view(np.uint16)).all()
    assert found[[0, 41, 42, 51, 52]].tolist() == [0x7C01, 0x7C01, 0x7C01, 0x7E00, 0xFC01]


@given(st.permutations(range(3)), st.lists(st.sampled_from([1, 2, -1, -3]), min_size=3, max_size=3))
def test_results_lie_in_memory_like_the_array(axes: list[int], steps: list[int]) -> None:
    whole = np.random.default_rng(0).standard_normal((5, 6, 17)).astype(np.float32)
    x = whole[tuple(slice(None, None, step) for step in steps)].transpose(axes)
    half = cast_array(x, F16)
    assert half.tolist() == x.astype(np.float16).tolist()
    assert np.argsort(half.strides).tolist() == np.argsort(np.abs(x.strides)).tolist()
    assert round_on_grid(x).tolist() == half.tolist()
    assert cast_array(half, F32).tolist() == half.tolist()


def test_bytes_the_other_way_round() -> None:
    x = np.linspace(-2, 2, 1000).astype(np.float32)
    swapped = cast_array(x.astype(x.dtype.newbyteorder()), F16)
    assert swapped.tolist() == x.astype(np.float16).tolist()
    halves = x.astype(np.float16)
    assert cast_array(halves.astype(halves.dtype.newbyteorder()), F32).tolist() == halves.tolist()


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


@pytest.mark.parametrize("count", [50, 5000, 100_000])
def test_rounding_on_the_grid_in_place(count: int) -> None:
    x = np.random.default_rng(count).standard_normal(count).astype(np.float32)
    x[::7] *= np.float32(1e6)
    x[::5] *= np.float32(-1e-12)
    expected = x.astype(np.float16).astype(np.float32)
    assert np.shares_memory(round_on_grid(x, x), x)
    assert (x.view(np.uint32) == expected.view(np.uint32)).all()


def test_small_and_large_numbers_take_no_longer() -> None:
    import timeit

    x = np.random.default_rng(0).standard_normal(1 << 18).astype(np.float32)

    def seconds(y: Any) -> float:
        return min(timeit.repeat(lambda: cast_array(y, F16), number=3, repeat=5))

    usual = seconds(x)
    assert max(seconds(x * np.float32(1e-6)), seconds(x * np.float32(1e6))) < 3 * usual  # NumPy: 25 times
