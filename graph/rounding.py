"""Rounding to float16, and to types that have no direct conversion, with bits: as exact as NumPy's, but without its slow cases.

A number is rounded by adding a power of two, as many times larger as leaves the bits to be kept: processors take ties to even.
"""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

#: Elements worked on at a time: they and their scratch stay in the cache.
_BLOCK = 1 << 14
#: Up to so many, NumPy's conversion takes no longer even in its slow cases.
_FEW = 100


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
    width = 8 * array.itemsize
    mantissa, bias = (23, 127) if width == 32 else (52, 1023)
    dropped, infinity, too_large = mantissa - 10, (2 * bias + 1) << mantissa, (bias + 16) << mantissa
    power = (dropped << mantissa) + (
        (14 - bias - dropped << 10) & 0xFFFF
    )  # with what the exponents are off by, for the last bits
    flat = array.reshape(-1)
    words = np.dtype(f"u{array.itemsize}")
    result = np.empty(flat.shape, np.uint16)
    least_normal = _block_of(words, (bias - 14) << mantissa)
    magnitudes, exponents = np.empty((2, min(_BLOCK, flat.size)), words)
    for start in range(0, flat.size, _BLOCK):
        bits = flat[start : start + _BLOCK].view(words)
        a, e = magnitudes[: bits.size], exponents[: bits.size]
        np.bitwise_and(bits, (1 << width - 1) - 1, out=a)
        largest, payloads = a.max(), None
        if largest >= too_large:
            payloads = _payloads(a, infinity, dropped) if largest > infinity else None
            np.minimum(a, _block_of(words, too_large)[: a.size], out=a)
        np.bitwise_and(a, infinity, out=e)
        np.maximum(e, least_normal[: e.size], out=e)
        e += power
        np.add(a.view(array.dtype), e.view(array.dtype), out=a.view(array.dtype))
        e >>= dropped
        a += e
        if payloads is not None:
            a += payloads
        np.right_shift(bits, width - 16, out=e)
        e &= 0x8000
        a |= e
        result[start : start + _BLOCK] = a
    return result.view(np.float16).reshape(array.shape)


def _payloads(magnitudes: "np.ndarray[Any, Any]", infinity: int, dropped: int) -> Any:
    """Return what NaNs have in their mantissas, cut to float16's and at least 1; 0 for numbers."""
    import numpy as np

    payloads = np.maximum(magnitudes, _block_of(magnitudes.dtype, infinity)[: magnitudes.size])
    payloads -= infinity
    ones = np.minimum(payloads, _block_of(magnitudes.dtype, 1)[: magnitudes.size])
    payloads >>= dropped
    return np.maximum(payloads, ones, out=payloads)


def round_on_grid(array: "np.ndarray[Any, Any]", out: "np.ndarray[Any, Any] | None" = None) -> "np.ndarray[Any, Any]":
    """Round float32 numbers to those that float16 has, but leave them float32; the result lies in memory like the array.

    Args:
        array: The numbers.
        out: Where the result goes, in C order like the array; it may be the array itself. A new array by default.
    """
    import numpy as np

    if not isinstance(array, np.ndarray):
        return array.astype(np.float16).astype(np.float32)
    if not array.flags.c_contiguous:
        return _in_memory_order(round_on_grid, array)
    flat = array.reshape(-1)
    result = np.empty_like(flat) if out is None else out.reshape(-1)
    least_normal = _block_of(np.dtype(np.uint32), 0x38800000)
    powers, signs = np.empty((2, min(_BLOCK, flat.size)), np.uint32)
    with np.errstate(all="ignore"):  # numbers that are none, and those near the largest
        for start in range(0, flat.size, _BLOCK):
            x = flat[start : start + _BLOCK]
            r, t, s = result[start : start + _BLOCK], powers[: x.size], signs[: x.size]
            bits, rounded = x.view(np.uint32), r.view(np.uint32)
            np.bitwise_and(bits, 0x80000000, out=s)  # a sum of zero has lost its sign
            np.bitwise_and(bits, 0x7F800000, out=t)
            too_large = np.abs(x) >= 65520 if t.max() >= 0x47000000 else None
            np.maximum(t, least_normal[: t.size], out=t)
            t += (13 << 23) + 0x400000  # half as much again, so that no sum reaches the next power
            np.add(x, t.view(np.float32), out=r)
            r -= t.view(np.float32)
            rounded |= s
            if too_large is not None:
                s |= 0x7F800000
                np.copyto(rounded, s, where=too_large)
    return result.reshape(array.shape)


def _in_memory_order(
    function: "Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]", array: "np.ndarray[Any, Any]"
) -> "np.ndarray[Any, Any]":
    """Apply a function that wants C order to an array whose axes lie in memory in any order, and keep that order."""
    import numpy as np

    axes = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
    result = function(np.ascontiguousarray(array.transpose(axes)))
    return result.transpose(sorted(range(array.ndim), key=axes.__getitem__))


@functools.cache
def _block_of(words: "np.dtype[Any]", value: int) -> "np.ndarray[Any, Any]":
    """Return a block full of a number: NumPy finds larger ones of two arrays in half the time that it takes with a single number."""
    import numpy as np

    return np.full(_BLOCK, value, words)


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
