"""Rounding to float16, and to types that have no direct conversion, with bits: as exact as NumPy's, but without its slow cases.

A number is rounded by adding a power of two, as many times larger as leaves the bits to be kept: processors take ties to even.
"""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np

#: Bytes worked on at a time: they and their scratch stay in the cache.
_BLOCK = 1 << 18
#: Up to so many elements, NumPy's conversion takes no longer even in its slow cases; up to so many, only in these.
_FEW, _SOME = 100, 4000


def round_to_half(array: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Round float32 or float64 to float16; the result lies in memory like the array.

    The last bits of the sum are the mantissa, and its exponent is added to them. A NaN keeps the upper bits of its mantissa.
    """
    import numpy as np

    if array.size <= _FEW:
        with np.errstate(all="ignore"):
            return array.astype(np.float16)
    if not array.flags.c_contiguous:
        return _in_memory_order(round_to_half, array)
    k = _constants(array.itemsize)
    flat = array.reshape(-1)
    if array.size <= _SOME and not _is_slow(flat.view(k.words), k):
        return array.astype(np.float16)
    result = np.empty(flat.size, np.uint16)
    block = _BLOCK // array.itemsize
    magnitudes, exponents = np.empty((2, min(block, flat.size)), k.words)
    for start in range(0, flat.size, block):
        bits = flat[start : start + block].view(k.words)
        a, e = magnitudes[: bits.size], exponents[: bits.size]
        np.bitwise_and(bits, k.magnitude, a)
        largest, payloads = a[a.argmax()], None
        if largest >= k.too_large[0]:
            payloads = _payloads(a, k) if largest > k.infinity[0] else None
            np.minimum(a, k.too_large[: a.size], out=a)
        np.bitwise_and(a, k.infinity[0], e)
        np.maximum(e, k.least_normal[: e.size], out=e)
        np.add(e, k.power, e)
        np.add(a.view(array.dtype), e.view(array.dtype), a.view(array.dtype))
        np.right_shift(e, k.dropped, e)
        np.add(a, e, a)
        if payloads is not None:
            a += payloads
        np.right_shift(bits, k.above_half, e)
        np.bitwise_and(e, k.sign, e)
        np.bitwise_or(a, e, a)
        result[start : start + block] = a
    return result.view(np.float16).reshape(array.shape)


def _is_slow(bits: "np.ndarray[Any, Any]", k: "_Constants") -> bool:
    """Whether there are numbers other than 0 that float16 has no normal number for."""
    import numpy as np

    a = np.bitwise_and(bits, k.magnitude)
    if a[a.argmax()] >= k.overflows:
        return True
    a -= k.ones[0]  # of 0, the largest number
    return bool(a[a.argmin()] < k.least_normal[0] - k.ones[0])


def _payloads(magnitudes: "np.ndarray[Any, Any]", k: "_Constants") -> Any:
    """Return what NaNs have in their mantissas, cut to float16's and at least 1; 0 for numbers."""
    import numpy as np

    payloads = np.maximum(magnitudes, k.infinity[: magnitudes.size])
    payloads -= k.infinity[0]
    ones = np.minimum(payloads, k.ones[: magnitudes.size])
    payloads >>= k.dropped
    return np.maximum(payloads, ones, out=payloads)


class _Constants(NamedTuple):
    """The numbers that rounding float32 or float64 to float16 takes, as arrays: Python's take NumPy longer.

    Those of which maxima and minima are taken fill a block each: that takes half the time that it takes with one number.
    """

    words: "np.dtype[Any]"
    magnitude: Any
    infinity: Any
    too_large: Any
    least_normal: Any
    ones: Any
    power: Any
    dropped: Any
    above_half: Any
    sign: Any
    top: Any
    overflows: Any
    middle: Any


@functools.cache
def _constants(size: int) -> _Constants:
    """Return the constants for floats of so many bytes."""
    import numpy as np

    words = np.dtype(f"u{size}")
    mantissa, bias = (23, 127) if size == 4 else (52, 1023)
    dropped = mantissa - 10

    def one(number: int) -> Any:
        return np.array(number, words)

    def many(number: int) -> Any:
        return np.full(_BLOCK // size, number, words)

    return _Constants(
        words=words,
        magnitude=one((1 << 8 * size - 1) - 1),
        infinity=many((2 * bias + 1) << mantissa),
        too_large=many((bias + 16) << mantissa),
        least_normal=many((bias - 14) << mantissa),
        ones=many(1),
        # In its last 16 bits is what makes up for this exponent and the difference of the biases.
        power=one((dropped << mantissa) + ((14 - bias - dropped << 10) & 0xFFFF)),
        dropped=one(dropped),
        above_half=one(8 * size - 16),
        sign=one(0x8000),
        top=one(1 << 8 * size - 1),
        overflows=one((bias + 15) << mantissa),
        middle=one((dropped << mantissa) + (1 << mantissa - 1)),
    )


def round_on_grid(array: "np.ndarray[Any, Any]", out: "np.ndarray[Any, Any] | None" = None) -> "np.ndarray[Any, Any]":
    """Round float32 numbers to those that float16 has, but leave them float32; the result lies in memory like the array.

    Args:
        array: The numbers.
        out: Where the result goes, in C order like the array; it may be the array itself. A new array by default.
    """
    import numpy as np

    if not isinstance(array, np.ndarray):
        return array.astype(np.float16).astype(np.float32)
    if array.size <= _FEW and out is None:
        with np.errstate(all="ignore"):
            return array.astype(np.float16).astype(np.float32)
    if not array.flags.c_contiguous:
        return _in_memory_order(round_on_grid, array)
    k = _constants(4)
    flat = array.reshape(-1)
    result = np.empty_like(flat) if out is None else out.reshape(-1)
    block = _BLOCK // 4
    powers, signs = np.empty((2, min(block, flat.size)), np.uint32)
    with np.errstate(all="ignore"):  # numbers that are none, and those near the largest
        for start in range(0, flat.size, block):
            x = flat[start : start + block]
            r, t, s = result[start : start + block], powers[: x.size], signs[: x.size]
            bits, rounded, power = x.view(np.uint32), r.view(np.uint32), t.view(np.float32)
            np.bitwise_and(bits, k.top, s)  # a sum of zero has lost its sign
            np.bitwise_and(bits, k.infinity[0], t)
            is_large = t[t.argmax()] >= k.overflows
            if is_large:
                np.minimum(t, k.too_large[: t.size], out=t)
            np.maximum(t, k.least_normal[: t.size], out=t)
            np.add(t, k.middle, t)
            np.add(x, power, r)
            np.subtract(r, power, r)
            np.bitwise_or(rounded, s, rounded)
            if is_large:
                r *= np.float32(2.0**112)  # from 2**16 on, infinite
                r *= np.float32(2.0**-112)
    return result.reshape(array.shape)


def round_on_bfloat16_grid(array: "np.ndarray[Any, Any]", out: "np.ndarray[Any, Any] | None" = None) -> "np.ndarray[Any, Any]":
    """Round float32 numbers to those that bfloat16 has, the upper halves of their bits, but leave them float32.

    Args:
        array: The numbers.
        out: As for :func:`round_on_grid`.
    """
    import numpy as np

    if not isinstance(array, np.ndarray):
        bits = array.view(np.uint32)
        rounded = ((bits + (bits >> 16 & 1) + 0x7FFF) & 0xFFFF0000).astype(np.uint32).view(np.float32)
        return np.where(np.isnan(array), array, rounded)
    if not array.flags.c_contiguous:
        return _in_memory_order(round_on_bfloat16_grid, array)
    flat = array.reshape(-1)
    result = np.empty_like(flat) if out is None else out.reshape(-1)
    block = _BLOCK // 4
    odd = np.empty(min(block, flat.size), np.uint32)
    for start in range(0, flat.size, block):
        x, r = flat[start : start + block], result[start : start + block].view(np.uint32)
        bits, last = x.view(np.uint32), odd[: x.size]
        nan = np.isnan(x)
        np.right_shift(bits, np.uint32(16), out=last)
        last &= np.uint32(1)
        last += np.uint32(0x7FFF)
        np.add(bits, last, out=r)
        r &= np.uint32(0xFFFF0000)
        if nan.any():
            r[nan] = np.uint32(0x7FC00000)
    return result.reshape(array.shape)


def _in_memory_order(
    function: "Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]", array: "np.ndarray[Any, Any]"
) -> "np.ndarray[Any, Any]":
    """Apply a function that wants C order to an array whose axes lie in memory in any order, and keep that order as NumPy does."""
    import numpy as np

    strides = np.empty_like(array).strides
    axes = sorted(range(array.ndim), key=lambda axis: -strides[axis])
    result = function(np.ascontiguousarray(array.transpose(axes)))
    return result.transpose(sorted(range(array.ndim), key=axes.__getitem__))


def widen_half(array: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Return float16 numbers as float32: for many, faster than NumPy's conversion, and much faster for small numbers. The result
    lies in memory like the array, so that sums of it add up in the same order.
    """
    import numpy as np

    if array.size <= 256:
        return array.astype(np.float32)
    if not array.flags.c_contiguous:
        return _in_memory_order(widen_half, array)
    return halves().take(array.view(np.uint16), mode="clip")


@functools.cache
def halves() -> "np.ndarray[Any, Any]":
    """Return every float16, by its bits, as float32."""
    import numpy as np

    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


def round_to_odd(array: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Convert numbers to float32 such that rounding them once more gives what rounding them once would: inexact ones are cut
    off and get an odd last bit. Source of the method: Boldo and Melquiond, Emulation of FMA and correctly rounded sums (2008).
    """
    import numpy as np

    flat = array.reshape(-1)
    block = _BLOCK // 8
    if flat.size > block:
        return np.concatenate([round_to_odd(flat[i : i + block]) for i in range(0, flat.size, block)]).reshape(array.shape)
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        low = array & array.dtype.type(0x3FF)  # the rest is exact in float64, and of this only counts whether it is zero
        large = (array >= 1 << 53) if array.dtype.kind == "u" else (array >= 1 << 53) | (array <= -(1 << 53))
        large &= low != 0
        if large.any():
            array = np.where(large, array - low | array.dtype.type(0x400), array)
    exact = array.astype(np.float64, copy=False)
    near = exact.astype(np.float32)
    back = near.astype(np.float64)
    off = back != exact
    if not off.any():
        return near
    off &= ~np.isnan(exact)
    bits = near.view(np.uint32)
    cut = bits - (np.abs(back) > np.abs(exact)).astype(np.uint32)
    return np.where(off, cut | np.uint32(1), bits).view(np.float32)
