"""Ops that only give the elements another shape or order; results share memory with operands where NumPy can."""

from collections.abc import Sequence
from typing import Any

from ..graph.errors import KernelError
from .call import Call
from .registry import kernel
from .room import check_room


def ints(values: Any) -> list[int]:
    """Return an integer array, or list, as a list of Python integers."""
    return [int(value) for value in values.ravel()] if hasattr(values, "ravel") else [int(value) for value in values]


@kernel("Identity", moves=True)
def _identity(call: Call, x: Any) -> Any:
    return x


@kernel("Reshape", moves=True)
def _reshape(call: Call, x: Any, shape: Any = None) -> Any:
    wanted = ints(call.attr("shape") if shape is None else shape)
    if not call.attr("allowzero", 0):
        if any(size == 0 and i >= x.ndim for i, size in enumerate(wanted)):
            raise KernelError(f"A size of 0 copies one of an operand of shape {list(x.shape)}. Received: {wanted}")
        wanted = [x.shape[i] if size == 0 else size for i, size in enumerate(wanted)]
    return x.reshape(wanted)


@kernel("Flatten", moves=True)
def _flatten(call: Call, x: Any) -> Any:
    axis = call.attr("axis", 1)
    axis += x.ndim if axis < 0 else 0
    rows = 1
    for size in x.shape[:axis]:
        rows *= size
    columns = 1
    for size in x.shape[axis:]:
        columns *= size
    return x.reshape(rows, columns)


@kernel("Squeeze", moves=True)
def _squeeze(call: Call, x: Any, axes: Any = None) -> Any:
    axes = call.attr("axes") if axes is None else axes
    return x.squeeze() if axes is None else x.squeeze(tuple(ints(axes)))


@kernel("Unsqueeze", moves=True)
def _unsqueeze(call: Call, x: Any, axes: Any = None) -> Any:
    wanted = ints(call.attr("axes") if axes is None else axes)
    rank = x.ndim + len(wanted)
    places = {axis + rank if axis < 0 else axis for axis in wanted}
    if len(places) != len(wanted) or not places <= set(range(rank)):
        raise KernelError(
            f"The axes put into an operand of rank {x.ndim} are different and within {rank} axes. Received: {wanted}"
        )
    sizes = iter(x.shape)
    return x.reshape([1 if i in places else next(sizes) for i in range(rank)])


@kernel("Transpose", moves=True)
def _transpose(call: Call, x: Any) -> Any:
    return x.transpose(call.attr("perm"))


@kernel("Expand", moves=True)
def _expand(call: Call, x: Any, shape: Any) -> Any:
    xp = call.xp
    sizes = xp.broadcast_shapes(x.shape, tuple(ints(shape)))
    check_room(xp, sizes, x.itemsize)  # only a view, but whoever reads it needs room
    return xp.broadcast_to(x, sizes)


@kernel("Tile", moves=True)
def _tile(call: Call, x: Any, repeats: Any, axis: Any = None) -> Any:
    counts = ints(repeats)
    if axis is not None:  # version 1
        counts = [1] * x.ndim
        counts[int(axis.ravel()[0])] = int(repeats.ravel()[0])
    check_room(call.xp, [*x.shape, *counts], x.itemsize)
    return call.xp.tile(x, counts)


@kernel("Concat", moves=True)
def _concat(call: Call, *operands: Any) -> Any:
    return call.xp.concatenate(operands, axis=call.attr("axis", 1))


@kernel("Split", moves=True)
def _split(call: Call, x: Any, split: Any = None) -> Any:
    axis = call.attr("axis", 0) % x.ndim
    split = call.attr("split") if split is None else split
    if split is None:
        parts = call.attr("num_outputs", call.results)
        size = -(-x.shape[axis] // parts)
        sizes = [max(0, min(size, x.shape[axis] - i * size)) for i in range(min(parts, call.results))]
    else:
        sizes = ints(split)
    if min(sizes, default=0) < 0 or (split is not None and sum(sizes) != x.shape[axis]):
        raise KernelError(f"Axis {axis} of an operand of shape {list(x.shape)} cannot be split. Received: {sizes}")
    return parts_of(x, sizes, axis)


def parts_of(x: Any, sizes: Sequence[int], axis: int) -> tuple[Any, ...]:
    """Return views of an array, one behind the other along an axis, of these sizes."""
    results, start = [], 0
    for size in sizes:
        results.append(x[(slice(None),) * axis + (slice(start, start + size),)])
        start += size
    return tuple(results)


@kernel("Slice", moves=True)
def _slice(call: Call, x: Any, starts: Any = None, ends: Any = None, axes: Any = None, steps: Any = None) -> Any:
    if starts is None:
        starts, ends, axes = call.attr("starts"), call.attr("ends"), call.attr("axes")
    first, last = ints(starts), ints(ends)
    places = list(range(len(first))) if axes is None else ints(axes)
    strides = [1] * len(first) if steps is None else ints(steps)
    index = [slice(None)] * x.ndim
    for axis, start, end, step in zip(places, first, last, strides, strict=True):
        size = x.shape[axis]
        index[axis] = _part(size, start, end, step)
    return x[tuple(index)]


def _part(size: int, start: int, end: int, step: int) -> slice:
    """Return Python's slice for one of ONNX, whose ends are brought into range after the size is added to negative ones."""
    start += size if start < 0 else 0
    end += size if end < 0 else 0
    if step > 0:
        return slice(min(max(start, 0), size), min(max(end, 0), size), step)
    start, end = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
    return slice(start, None if end < 0 else end, step) if size else slice(0, 0, step)


@kernel("Pad", moves=True)
@kernel("com.microsoft:Pad", moves=True)
def _pad(call: Call, x: Any, pads: Any = None, value: Any = None, axes: Any = None) -> Any:
    if pads is None:
        pads = call.attr("pads") or call.attr("paddings")  # version 1
        value = call.attr("value", 0.0)
    amounts = ints(pads)
    places = [axis % x.ndim for axis in (range(x.ndim) if axes is None else ints(axes))]
    count = len(places)
    if len(amounts) != 2 * count:
        raise KernelError(f"Padding of {count} axes has {2 * count} sizes. Received: {amounts}")
    widths = [(0, 0)] * x.ndim
    for i, axis in enumerate(places):
        widths[axis] = (amounts[i], amounts[i + count])
    # Negative padding takes elements away.
    x = x[tuple(slice(max(0, -a), size - max(0, -b)) for (a, b), size in zip(widths, x.shape, strict=True))]
    widths = [(max(0, a), max(0, b)) for a, b in widths]
    mode = call.attr("mode", "constant")
    xp = call.xp
    sizes = [a + size + b for (a, b), size in zip(widths, x.shape, strict=True)]
    check_room(xp, sizes, x.itemsize)
    if mode == "constant":
        result = xp.full(sizes, _scalar(value, x.dtype), x.dtype)
        result[tuple(slice(a, a + size) for (a, _), size in zip(widths, x.shape, strict=True))] = x
        return result
    for axis, (before, after) in enumerate(widths):
        if before or after:
            x = xp.take(x, xp.asarray(_mirrored(mode, x.shape[axis], before, after)), axis=axis)
    return x


def _scalar(value: Any, dtype: Any) -> Any:
    if value is None:
        return "" if dtype.kind == "O" else 0
    return value.ravel()[0] if hasattr(value, "ravel") else value


def _mirrored(mode: str, size: int, before: int, after: int) -> list[int]:
    """Return which element of an axis stands at each place of the padded one."""
    places = range(-before, size + after)
    if mode == "edge":
        return [min(max(place, 0), size - 1) for place in places]
    if mode == "wrap":
        return [place % size for place in places]
    period = max(1, 2 * size - 2)  # reflect
    return [min(place % period, period - place % period) for place in places]
