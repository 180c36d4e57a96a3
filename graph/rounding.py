"""Rounding to float16, and to types that have no direct conversion, with bits: as exact as NumPy's, but without its slow cases."""

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

#: Elements worked on at a time: they and their scratch stay in the cache.
_BLOCK = 1 << 15
#: Up to so many, NumPy's conversion and back is faster.
_FEWEST = 256
#: As many where less of it is in use.
_LINE = 1 << 14
#: Up to so many, NumPy's conversion takes no longer even in its slow cases.
_FEW = 512


def round_to_half(array: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Round float32 to float16: the exponent is moved with integer arithmetic, small numbers by adding one whose last bit is theirs."""
    import numpy as np

    if array.size <= _FEW:
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


def round_on_grid(array: "np.ndarray[Any, Any]", in_place: bool = False) -> "np.ndarray[Any, Any]":
    """Round float32 numbers to those that float16 has, but leave them float32; over the array itself where that is allowed.

    Adding and taking away a power of two, 2**13 times as large as the number, leaves the 11 bits that float16 has, and fewer
    below its least normal number, 2**-14. NumPy's warnings of what is too large are to be off.
    """
    import numpy as np

    if not isinstance(array, np.ndarray) or array.size <= _FEWEST:
        return array.astype(np.float16).astype(np.float32)
    source, result = _lines(array, in_place)
    sign, exponent, large, add, up, down = _grid_constants()
    least = _least_powers()
    powers, signs = np.empty((2, min(_LINE, source.size)), np.uint32)
    for start in range(0, source.size, _LINE):
        x, r = source[start : start + _LINE], result[start : start + _LINE]
        bits, p, s = x.view(np.uint32), powers[: x.size], signs[: x.size]
        np.bitwise_and(bits, sign, out=s)
        np.bitwise_and(bits, exponent, out=p)
        is_large = np.maximum.reduce(p) >= large
        if is_large:
            np.minimum(p, large, out=p)
        np.maximum(p, least[: x.size], out=p)
        np.add(p, add, out=p)
        power = p.view(np.float32)
        np.add(x, power, out=r)
        np.subtract(r, power, out=r)
        bits = r.view(np.uint32)
        np.bitwise_or(bits, s, out=bits)  # of a zero
        if is_large:  # from 2**16 on, infinity
            r *= up
            r *= down
    return result if result is array else result.reshape(array.shape)


def round_on_bfloat16_grid(array: "np.ndarray[Any, Any]", in_place: bool = False) -> "np.ndarray[Any, Any]":
    """Round float32 numbers to those that bfloat16 has, the upper halves of their bits, but leave them float32."""
    import numpy as np

    if not isinstance(array, np.ndarray):
        bits = array.view(np.uint32)
        rounded = (bits + (bits >> 16 & 1) + 0x7FFF & 0xFFFF0000).astype(np.uint32).view(np.float32)
        return np.where(np.isnan(array), array, rounded)
    source, result = _lines(array, in_place)
    odd = np.empty(min(_LINE, source.size), np.uint32)
    for start in range(0, source.size, _LINE):
        bits, r = source[start : start + _LINE].view(np.uint32), result[start : start + _LINE].view(np.uint32)
        last = odd[: bits.size]
        nan = np.isnan(bits.view(np.float32))
        np.right_shift(bits, np.uint32(16), out=last)
        last &= np.uint32(1)
        last += np.uint32(0x7FFF)
        np.add(bits, last, out=r)
        r &= np.uint32(0xFFFF0000)
        if nan.any():
            r[nan] = np.uint32(0x7FC00000)
    return result if result is array else result.reshape(array.shape)


def _lines(array: "np.ndarray[Any, Any]", in_place: bool) -> "tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]":
    """Return the elements in a line, and where the results go: the same if they may and lie together."""
    import numpy as np

    line = np.ascontiguousarray(array).reshape(-1)
    if in_place and array.flags.c_contiguous and array.flags.writeable:
        return line, line
    return line, np.empty_like(line)


@functools.cache
def _grid_constants() -> "tuple[Any, ...]":
    """Return the bits of the sign and of the exponent; 2**15, from which on numbers may overflow, as bits; what makes of a power
    1.5 * 2**13 times as much; and factors that make infinity of 2**16 and leave smaller numbers as they are.
    """
    import numpy as np

    bits = (0x80000000, 0x7F800000, 0x47000000, 13 << 23 | 0x400000)
    return *map(np.uint32, bits), np.float32(2.0**112), np.float32(2.0**-112)


@functools.cache
def _least_powers() -> "np.ndarray[Any, Any]":
    """Return the bits of float16's least normal number, as float32, many times: NumPy is slow with a single one."""
    import numpy as np

    return np.full(_LINE, 0x38800000, np.uint32)


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
