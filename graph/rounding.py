"""Rounding to float16, and to types that have no direct conversion, with bits: as exact as NumPy's, but without its slow cases."""

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

#: Elements worked on at a time: they and their scratch stay in the cache.
_BLOCK = 1 << 15
#: Up to so many, NumPy's conversion takes no longer even in its slow cases, and up to more if those are few.
_FEW, _MORE = 512, 1 << 13


def round_to_half(array: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Round float32 to float16: the exponent is moved with integer arithmetic, small numbers by adding one whose last bit is theirs."""
    import numpy as np

    few = array.size <= _FEW
    if not few and array.size <= _MORE:
        with np.errstate(invalid="ignore"):
            sizes = np.abs(array)
            few = int(np.count_nonzero((sizes > 2**-14) & (sizes < 65504))) > array.size - array.size // 16
    if few:
        with np.errstate(all="ignore"):
            return array.astype(np.float16)
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint32)
    result = np.empty(flat.shape, np.uint16)
    size = min(_BLOCK, flat.size)
    magnitudes, rounded, units, mask = np.empty((4, size), np.uint32)
    for start in range(0, flat.size, _BLOCK):
        bits = flat[start : start + _BLOCK]
        a, r = magnitudes[: bits.size], rounded[: bits.size]
        np.bitwise_and(bits, np.uint32(0x7FFFFFFF), out=a)
        np.right_shift(a, np.uint32(13), out=r)
        r &= np.uint32(1)
        r += a
        r += np.uint32(0x100000000 + 0xFFF - (112 << 23))
        r >>= np.uint32(13)
        np.minimum(r, np.uint32(0x7C00), out=r)
        if a.min() < 0x38800000:  # below 2**-14, the least normal float16
            u, m = units[: bits.size], mask[: bits.size]
            with np.errstate(all="ignore"):  # among the others are numbers that are none
                np.add(a.view(np.float32), np.float32(0.5), out=u.view(np.float32))
            u -= np.uint32(0x3F000000)
            np.subtract(a.view(np.int32), np.int32(0x38800000), out=m.view(np.int32))
            np.right_shift(m.view(np.int32), np.int32(31), out=m.view(np.int32))  # all bits where small
            u ^= r
            u &= m
            r ^= u
        if a.max() > 0x7F800000:
            nan = np.flatnonzero(a > np.uint32(0x7F800000))
            payload = a[nan] >> np.uint32(13) & np.uint32(0x3FF)
            r[nan] = np.uint32(0x7C00) | np.maximum(payload, np.uint32(1))
        np.right_shift(bits, np.uint32(16), out=a)
        a &= np.uint32(0x8000)
        r |= a
        result[start : start + _BLOCK] = r
    return result.view(np.float16).reshape(array.shape)


def round_on_grid(array: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Round float32 numbers to those that float16 has, but leave them float32.

    Adding and taking away a power of two, 2**13 times as large as the number, leaves the 11 bits that float16 has, and fewer
    below its least normal number, 2**-14.
    """
    import numpy as np

    if not isinstance(array, np.ndarray):
        return array.astype(np.float16).astype(np.float32)
    flat = np.ascontiguousarray(array).reshape(-1)
    result = np.empty_like(flat)
    scratch = np.empty(min(_BLOCK, flat.size), np.uint32)
    for start in range(0, flat.size, _BLOCK):
        x = flat[start : start + _BLOCK]
        r, t = result[start : start + _BLOCK], scratch[: x.size]
        np.bitwise_and(x.view(np.uint32), np.uint32(0x7F800000), out=t)
        is_large = t.max() >= 0x47000000  # from 2**15 on
        np.maximum(t, np.uint32(0x38800000), out=t)
        t += np.uint32(13 << 23)
        t |= np.uint32(0x400000)  # half as much again, so that no sum reaches the next power
        power = t.view(np.float32)
        with np.errstate(all="ignore"):  # numbers that are none, and those near the largest
            np.add(x, power, out=r)
            r -= power
        np.copysign(r, x, out=r)
        if is_large:
            sizes = np.abs(x)
            np.copyto(r, np.copysign(np.float32(np.inf), x), where=sizes >= 65520)
    return result.reshape(array.shape)


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
