"""Elements compared or counted to choose among them: arg-extrema, TopK, Unique, NonZero, Where, OneHot and their kin."""

from typing import Any

from ..graph.errors import KernelError
from .call import Call
from .gather import axis_of
from .registry import kernel
from .room import check_broadcast, check_room


@kernel("Where", moves=True, elementwise=True)
def where(call: Call, condition: Any, x: Any, y: Any) -> Any:
    """Return ``x`` where the condition holds, else ``y``."""
    check_broadcast(call.xp, condition, x, y)
    return call.xp.where(condition, x, y)


def arg_extreme(call: Call, name: str, x: Any) -> Any:
    """Return where along an axis the extreme is: the first, or with ``select_last_index`` the last of equals."""
    axis = axis_of(call, call.attr("axis", 0), max(x.ndim, 1))
    x = call.xp.atleast_1d(x)
    if not x.shape[axis]:
        raise KernelError(f"{call.node.op_type}: an axis without elements has no extreme. Received: shape {list(x.shape)}")
    find = getattr(call.xp, name)
    if call.attr("select_last_index", 0):
        found = x.shape[axis] - 1 - find(call.xp.flip(x, axis), axis=axis)
    else:
        found = find(x, axis=axis)
    found = call.xp.asarray(found).astype(call.xp.int64)
    return call.xp.expand_dims(found, axis) if call.attr("keepdims", 1) else found


@kernel("ArgMax")
def arg_max(call: Call, x: Any) -> Any:
    """Return where the maximum is; the first NaN counts as one."""
    return arg_extreme(call, "argmax", x)


@kernel("ArgMin")
def arg_min(call: Call, x: Any) -> Any:
    """Return where the minimum is; the first NaN counts as one."""
    return arg_extreme(call, "argmin", x)


@kernel("TopK")
def top_k(call: Call, x: Any, k: Any = None) -> tuple[Any, Any]:
    """Return the ``k`` greatest (or least) elements along an axis and where they were; of equals, the first come first.

    The result is always sorted. A NaN counts as greater than any number.
    """
    xp = call.xp
    axis = axis_of(call, call.attr("axis", -1), x.ndim)
    count, size = int(call.attr("k", 0) if k is None else k.reshape(-1)[0]), x.shape[axis]
    if not 0 <= count <= size:
        raise KernelError(f"TopK: k is at least 0 and at most the size of the axis, {size}. Received: k={count}")
    x = xp.moveaxis(x, axis, -1)
    if call.attr("largest", 1):
        # A stable sort of the reversed elements, read backwards: descending, and equals in their own order.
        order = (size - 1 - xp.argsort(x[..., ::-1], axis=-1, kind="stable"))[..., ::-1][..., :count]
    else:
        order = xp.argsort(x, axis=-1, kind="stable")[..., :count]
    values = xp.take_along_axis(x, order, axis=-1)
    return xp.moveaxis(values, -1, axis), xp.moveaxis(order.astype(xp.int64), -1, axis)


@kernel("NonZero", moves=True)
def non_zero(call: Call, x: Any) -> Any:
    """Return the coordinates of the elements that are not zero, one column each; a scalar's have no rows."""
    xp = call.xp
    if not x.ndim:
        return xp.zeros((0, int(x != 0)), dtype=xp.int64)
    return xp.stack(xp.nonzero(x != ("" if x.dtype.kind in "OSU" else 0))).astype(xp.int64)


@kernel("Unique")
def unique(call: Call, x: Any) -> tuple[Any, Any, Any, Any]:
    """Return the distinct elements (or slices along an axis), first occurrences, where each element went, and counts."""
    xp, axis = call.xp, call.attr("axis", None)
    if axis is None:
        data, axis = x.reshape(-1), 0
    else:
        axis = axis_of(call, axis, x.ndim)
        data = x
    first, inverse, counts = distinct(xp, data, axis, by_value=bool(call.attr("sorted", 1)))
    return xp.take(data, first, axis=axis), *(part.astype(xp.int64) for part in (first, inverse, counts))


def distinct(xp: Any, data: Any, axis: int, *, by_value: bool, equal_nan: bool = True) -> tuple[Any, Any, Any]:
    """Return which slices along an axis are distinct.

    Args:
        xp: The array module.
        data: At least a vector.
        axis: The axis.
        by_value: Whether they are in rising order, not in that of their first occurrence.
        equal_nan: Whether NaNs are one value.

    Returns:
        Where each occurs first, which of them every slice is, and how often each occurs.
    """
    keys = data
    if data.dtype.kind == "V" or (data.ndim > 1 and data.dtype.kind == "O"):
        # Rows of objects cannot be compared, rows of numbers can: texts are told apart by their rank.
        keys = data.astype(xp.float32) if data.dtype.kind == "V" else xp.unique(data, return_inverse=True)[1].reshape(data.shape)
    options = {"return_index": True, "return_inverse": True, "return_counts": True, "axis": axis, "equal_nan": equal_nan}
    first, inverse, counts = xp.unique(keys, **options)[1:]
    inverse = inverse.reshape(-1)
    if not by_value:
        order = xp.argsort(first)
        rank = xp.empty_like(order)
        rank[order] = xp.arange(order.size)
        first, inverse, counts = first[order], rank[inverse], counts[order]
    return first, inverse, counts


def row_places(xp: Any, rows: Any, values: Any, side: str) -> Any:
    """Return where values go into sorted rows, in int64.

    Args:
        xp: The array module.
        rows: Sorted rows ``[rows, columns]``.
        values: What goes into each: ``[rows, values]``.
        side: Of equal elements, before the first (``"left"``) or behind the last (``"right"``).
    """
    places = xp.empty(values.shape, dtype=xp.int64)
    for row in range(len(rows)):
        places[row] = xp.searchsorted(rows[row], values[row], side=side)
    return places


@kernel("OneHot", moves=True)
def one_hot(call: Call, indices: Any, depth: Any, values: Any) -> Any:
    """Return ``values[1]`` at the positions that ``indices`` name on a new axis, else ``values[0]``."""
    xp, count = call.xp, int(depth.reshape(-1)[0])
    axis = axis_of(call, call.attr("axis", -1), indices.ndim + 1)
    if count < 0:
        raise KernelError(f"OneHot: depth cannot be negative. Received: {count}")
    indices = indices.astype(xp.int64)
    indices = xp.expand_dims(xp.where(indices < 0, indices + count, indices), axis)
    check_room(xp, [indices.size, count], values.itemsize)
    ruler = xp.arange(count).reshape([-1 if i == axis else 1 for i in range(indices.ndim)])
    return xp.where(indices == ruler, values[1], values[0])


@kernel("EyeLike", moves=True)
def eye_like(call: Call, x: Any) -> Any:
    """Return a matrix of the shape of ``x`` with ones on the ``k``-th diagonal."""
    if x.ndim != 2:
        raise KernelError(f"EyeLike takes a matrix. Received: shape {list(x.shape)}")
    dtype = call.dtypes[0]
    return call.xp.eye(*x.shape, k=call.attr("k", 0)).astype(x.dtype if dtype is None else dtype.numpy)


@kernel("Trilu", "com.microsoft:Trilu", moves=True)
def trilu(call: Call, x: Any, k: Any = None) -> Any:
    """Return the upper (or lower) triangle of each matrix, bounded by the ``k``-th diagonal; zeros elsewhere."""
    xp = call.xp
    if x.ndim < 2:
        raise KernelError(f"Trilu takes matrices. Received: shape {list(x.shape)}")
    rows, columns = x.shape[-2:]
    shift = 0 if k is None else min(max(int(k.reshape(-1)[0]), -rows - 1), columns + 1)
    offset = xp.arange(columns) - xp.arange(rows)[:, None]
    kept = offset >= shift if call.attr("upper", 1) else offset <= shift
    return xp.where(kept, x, xp.zeros((), dtype=x.dtype))
