"""Functions of NumPy that choose elements, by conditions or by indices, and that round them."""

from typing import Any

import numpy as np

from ..errors import TraceError
from .functions import implements
from .operations import apply, axis_of, cast, common_dtype, kind_of, rank, static_shape, symbolic
from .shapes import moveaxis, ravel


@implements("where")
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """Elements of one array where a condition holds, of another elsewhere."""
    if x is None or y is None:
        raise TraceError("numpy.where(condition) has a shape that depends on elements. Use numpy.where(condition, x, y).")
    kind = common_dtype(x, y)
    return apply("SelectV2", symbolic(condition, bool), symbolic(x, kind), symbolic(y, kind))


@implements("clip")
def clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    """Elements moved to the nearer of two bounds where they are outside."""
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    if low is not None:
        a = np.maximum(a, low)
    return symbolic(a if high is None else np.minimum(a, high))


@implements("round", "around")
def round_(a: Any, decimals: int = 0) -> Any:
    """The nearest numbers with so many decimals, the even ones of two."""
    x = symbolic(a)
    if x.dtype.kind != "f":
        if decimals < 0:
            raise TraceError(f"numpy.round on symbolic integers keeps them as they are. Received: decimals={decimals}")
        return x
    if not decimals:
        return apply("Rint", x)
    scale = np.asarray(10.0 ** abs(decimals), x.dtype)
    up, down = ("Mul", "RealDiv") if decimals > 0 else ("RealDiv", "Mul")
    return apply(down, apply("Rint", apply(up, x, scale)), scale)


@implements("nan_to_num")
def nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Numbers in place of what is none."""
    a = symbolic(x)
    if a.dtype.kind != "f":
        return a
    info = np.finfo(a.dtype)
    top = np.asarray(info.max if posinf is None else posinf, a.dtype)
    bottom = np.asarray(info.min if neginf is None else neginf, a.dtype)
    inf = np.asarray(np.inf, a.dtype)
    a = apply("SelectV2", apply("IsNan", a), np.asarray(nan, a.dtype), a)
    return apply("SelectV2", apply("Equal", a, inf), top, apply("SelectV2", apply("Equal", a, -inf), bottom, a))


@implements("isclose")
def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Whether two elements are nearly equal."""
    near = np.less_equal(np.abs(np.subtract(a, b)), atol + rtol * np.abs(b)) & np.isfinite(b)
    found = near | np.equal(a, b)
    return found | (np.not_equal(a, a) & np.not_equal(b, b)) if equal_nan else found


@implements("diff")
def diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    """What each element is above the one before it."""
    x = symbolic(a)
    i = axis_of(axis, rank(x))
    for _ in range(n):
        later, earlier = ((slice(None),) * i + (part,) for part in (slice(1, None), slice(None, -1)))
        x = x[later] != x[earlier] if x.dtype.kind == "b" else x[later] - x[earlier]
    return x


@implements("take")
def take(a: Any, indices: Any, axis: Any = None) -> Any:
    """Elements at indices along an axis, or among all."""
    if axis is None:
        a, axis = ravel(a), 0
    i = axis_of(axis, rank(a))
    return apply("GatherV2", a, from_front(indices, static_shape(a)[i], a, i), np.asarray(i, np.int32))


@implements("take_along_axis")
def take_along_axis(arr: Any, indices: Any, axis: int = -1) -> Any:
    """For each place along an axis, the element that an index at the same place names."""
    i = axis_of(axis, rank(arr))
    last = rank(arr) - 1
    places = from_front(indices, static_shape(arr)[i], arr, i)
    found = apply("GatherV2", moveaxis(arr, i, last), moveaxis(places, i, last), np.asarray(last, np.int32), batch_dims=last)
    return moveaxis(found, last, i)


def from_front(indices: Any, size: int | None, array: Any, axis: int) -> Any:
    """Return indices counted from the front: negative ones count from the end of an axis of ``array``.

    Raises:
        TraceError: If they are no integers.
        IndexError: If a known index is outside of a known size.
    """
    kind = np.dtype(kind_of(indices))
    if isinstance(indices, list | tuple) and not len(indices):
        kind = np.dtype(np.int64)
    if kind.kind not in "iu":
        raise TraceError(f"Indices are integers. Received: {kind}")
    if not hasattr(indices, "__array_ufunc__") or isinstance(indices, np.ndarray | np.generic):
        numbers = np.asarray(indices, np.int64)
        if size is not None and numbers.size and not (-size <= numbers.min() and numbers.max() < size):
            wrong = numbers.flat[((numbers < -size) | (numbers >= size)).argmax()]
            raise IndexError(f"index {wrong} is out of bounds for axis {axis} with size {size}")
        if not numbers.size or numbers.min() >= 0:
            return numbers.astype(np.int32 if not numbers.size or numbers.max() < 2**31 else np.int64)
        if size is not None:
            return (numbers % size).astype(np.int64)
        indices = numbers
    places = symbolic(indices)
    if kind.kind == "u":
        return cast(places, np.dtype(np.int64))
    if kind.itemsize < 4:
        places = cast(places, np.dtype(np.int32))
    length = symbolic(array.shape[axis] if size is None else size, places.dtype)
    return apply("SelectV2", apply("Less", places, np.zeros((), places.dtype)), apply("AddV2", places, length), places)
