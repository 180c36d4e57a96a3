"""Functions of NumPy that join arrays and take them apart."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import TraceError
from .array import SymbolicArray
from .functions import implements
from .operations import apply, apply_all, axis_of, common_dtype, ints, rank, static_shape, symbolic
from .shapes import atleast_2d, expand_dims, reshape


def _together(arrays: Sequence[Any], dtype: Any = None) -> list[SymbolicArray]:
    kind = common_dtype(*arrays) if dtype is None else np.dtype(dtype)
    return [symbolic(x, kind) for x in arrays]


@implements("concatenate", "concat")
def concatenate(arrays: Sequence[Any], /, axis: Any = 0, *, dtype: Any = None) -> Any:
    """Arrays one after another along an axis."""
    if axis is None:
        arrays, axis = [reshape(x, (-1,)) for x in arrays], 0
    found = _together(list(arrays), dtype)
    return apply("ConcatV2", *found, ints(axis_of(axis, rank(found[0]))), N=len(found)) if len(found) > 1 else found[0]


@implements("stack")
def stack(arrays: Sequence[Any], axis: int = 0, *, dtype: Any = None) -> Any:
    """Arrays one after another along a new axis."""
    found = _together(list(arrays), dtype)
    return apply("Pack", *found, N=len(found), axis=axis_of(axis, rank(found[0]) + 1))


@implements("vstack")
def vstack(tup: Sequence[Any], *, dtype: Any = None) -> Any:
    """Rows below each other."""
    return concatenate([atleast_2d(x) for x in tup], dtype=dtype)


@implements("hstack")
def hstack(tup: Sequence[Any], *, dtype: Any = None) -> Any:
    """Arrays beside each other."""
    return concatenate(list(tup), 0 if rank(tup[0]) == 1 else 1, dtype=dtype)


@implements("column_stack")
def column_stack(tup: Sequence[Any]) -> Any:
    """Vectors as columns, matrices beside each other."""
    return concatenate([expand_dims(x, 1) if rank(x) == 1 else x for x in tup], 1)


@implements("split")
def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    """Parts of an axis: equal ones, or those between positions."""
    i = axis_of(axis, rank(ary))
    if isinstance(indices_or_sections, int | np.integer):
        size = static_shape(ary)[i]
        if size is not None and size % indices_or_sections:
            raise ValueError("array split does not result in an equal division")
        return list(apply_all("Split", ints(i), ary, num_split=int(indices_or_sections)))
    return array_split(ary, indices_or_sections, axis)


@implements("array_split")
def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    """Parts of an axis, the first ones longer by one where it has no equal parts."""
    i = axis_of(axis, rank(ary))
    size = static_shape(ary)[i]
    if size is None:
        raise TraceError(f"numpy.array_split needs a known size of axis {i}. Received: {ary!r}")
    parts = [len(part) for part in np.array_split(np.empty(size, np.bool_), indices_or_sections)]
    return list(apply_all("SplitV", ary, np.asarray(parts, np.int64), ints(i), num_split=len(parts)))


@implements("unstack")
def unstack(x: Any, /, *, axis: int = 0) -> Any:
    """The slices along an axis."""
    i = axis_of(axis, rank(x))
    size = static_shape(x)[i]
    if size is None:
        raise TraceError(f"numpy.unstack needs a known size of axis {i}. Received: {x!r}")
    return apply_all("Unpack", x, num=size, axis=i)


@implements("pad")
def pad(array: Any, pad_width: Any, mode: Any = "constant", *, constant_values: Any = 0) -> Any:
    """The array with more elements around it: a constant, or its own, mirrored (``reflect``, ``symmetric``)."""
    widths = ints(np.broadcast_to(np.asarray(pad_width), (rank(array), 2)))
    x = symbolic(array)
    if mode in ("reflect", "symmetric"):
        return apply("MirrorPad", x, widths, mode=mode.upper())
    if mode != "constant" or np.ndim(constant_values):
        raise TraceError(
            f"numpy.pad on symbolic arrays takes mode constant (one number), reflect or symmetric. Received: {mode!r}"
        )
    if isinstance(constant_values, int | float) and not constant_values:
        return apply("Pad", x, widths)
    return apply("PadV2", x, widths, symbolic(constant_values, x.dtype))
