"""Indexing: slices and integers are one StridedSlice, arrays of integers are gathered."""

from typing import Any

import numpy as np

from ..errors import TraceError
from .array import SymbolicArray
from .choosing import from_front
from .operations import apply, ints, is_symbolic, kind_of, rank, size_operand, static_shape, symbolic
from .shapes import transpose


def get_item(x: Any, index: Any) -> SymbolicArray:
    """Return a part of an array.

    Args:
        x: A symbolic array.
        index: Slices, integers, None, an Ellipsis, arrays of integers, and constant arrays of truth values; or several of them.

    Raises:
        TraceError: If the shape of the result would depend on elements, or the index is something else.
        IndexError: If there are more indices than dimensions, or a known one is outside.
    """
    items = _expanded(x, index if isinstance(index, tuple) else (index,))
    advanced = any(_is_array(item) for item in items)
    if not advanced:
        return _strided(x, items)
    basic = [slice(None) if _is_array(item) or _is_integer(item) else item for item in items]
    part = x if all(_is_full(item) for item in basic) else _strided(x, basic)
    chosen = {i: item for i, item in enumerate(items) if _is_array(item) or _is_integer(item)}
    return _gathered(symbolic(part), chosen)


def _is_full(item: Any) -> bool:
    return isinstance(item, slice) and item.start is None and item.stop is None and item.step is None


def _is_integer(item: Any) -> bool:
    if isinstance(item, bool | np.bool_):
        return False
    if isinstance(item, int | np.integer):
        return True
    return (is_symbolic(item) or isinstance(item, np.ndarray)) and rank(item) == 0 and np.dtype(kind_of(item)).kind in "iu"


def _is_array(item: Any) -> bool:
    return not _is_integer(item) and (is_symbolic(item) or isinstance(item, np.ndarray | list))


def _expanded(x: Any, items: tuple[Any, ...]) -> list[Any]:
    """Return one item for each dimension and None for new ones: masks become integers and the Ellipsis full slices."""
    found: list[Any] = []
    for item in items:
        if isinstance(item, list) and not any(is_symbolic(each) for each in item):
            item = np.asarray(item, None if item else np.int64)
        if isinstance(item, bool | np.bool_) or (_is_array(item) and np.dtype(kind_of(item)).kind == "b"):
            if is_symbolic(item):
                raise TraceError(
                    f"The shape of x[mask] depends on the elements of {item!r}. Use numpy.where(mask, x, other), or multiply by it."
                )
            if rank(item) == 0:
                raise TraceError(f"An index is no single truth value. Received: {item!r}")
            found += np.nonzero(np.asarray(item))
        elif item is None or item is Ellipsis or isinstance(item, slice) or _is_integer(item) or _is_array(item):
            found.append(item)
        else:
            raise TraceError(f"An index is a slice, an integer, None, ... or an array of integers. Received: {item!r}")
    ndim, used = rank(x), sum(item is not None and item is not Ellipsis for item in found)
    if used > ndim:
        raise IndexError(f"too many indices for array: array is {ndim}-dimensional, but {used} were indexed")
    dots = [i for i, item in enumerate(found) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    place = dots[0] if dots else len(found)
    found[place : place + len(dots)] = [slice(None)] * (ndim - used)
    return found


def _strided(x: Any, items: list[Any]) -> SymbolicArray:
    """Return the part of an array that slices, integers and new axes say."""
    if all(_is_full(item) for item in items):
        return symbolic(x)
    dims = static_shape(x)
    begin: list[Any] = []
    end: list[Any] = []
    step: list[Any] = []
    masks = dict.fromkeys(("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    axis = 0
    for i, item in enumerate(items):
        start, stop, stride = 0, 0, 1
        if item is None:
            masks["new_axis_mask"] |= 1 << i
        elif isinstance(item, slice):
            stride = 1 if item.step is None else item.step
            masks["begin_mask"] |= (item.start is None) << i
            masks["end_mask"] |= (item.stop is None) << i
            start, stop = (0 if bound is None else bound for bound in (item.start, item.stop))
        else:
            size = dims[axis]
            if not is_symbolic(item) and size is not None and not -size <= item < size:
                raise IndexError(f"index {item} is out of bounds for axis {axis} with size {size}")
            start, stop = item, item + 1
            masks["shrink_axis_mask"] |= 1 << i
        begin.append(start)
        end.append(stop)
        step.append(stride)
        axis += item is not None
    operands = [size_operand(bounds) for bounds in (begin, end, step)]
    kind = np.int32 if all(np.dtype(kind_of(operand)) == np.int32 for operand in operands) else np.int64
    return apply("StridedSlice", x, *(symbolic(operand, kind) for operand in operands), **masks)


def _gathered(x: SymbolicArray, chosen: dict[int, Any]) -> SymbolicArray:
    """Return the elements that arrays of integers name along axes, in NumPy's order of axes."""
    dims = static_shape(x)
    axes = list(chosen)
    places = [from_front(chosen[i], dims[i], x, i) for i in axes]
    if len(axes) == 1:
        return apply("GatherV2", x, places[0], ints(axes[0]))
    ndim = max(rank(place) for place in places)
    together = sum((symbolic(place, np.int64) * 0 for place in places[1:]), symbolic(places[0], np.int64) * 0)
    index = apply("Pack", *(apply("AddV2", symbolic(place, np.int64), together) for place in places), N=len(places), axis=ndim)
    rest = [i for i in range(len(dims)) if i not in chosen]
    found = apply("GatherNd", transpose(x, [*axes, *rest]), index)
    if axes[-1] - axes[0] != len(axes) - 1 or not axes[0]:
        return found  # separated by others: in front
    before = list(range(ndim, ndim + axes[0]))
    return symbolic(transpose(found, [*before, *range(ndim), *range(ndim + axes[0], rank(found))]))
