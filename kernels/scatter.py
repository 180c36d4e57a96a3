"""Elements written by index: Scatter and its relatives, and TensorScatter, which writes into a cache.

The data are copied, then written. With a reduction, low precision data are widened first, so that any number of updates of
one element costs one rounding.
"""

import math
from typing import Any

from ..graph.dtypes import cast_array
from ..graph.errors import KernelError
from .call import Call
from .gather import axis_of, elements_at, outside
from .registry import kernel

_UFUNCS = {"add": "add", "mul": "multiply", "max": "maximum", "min": "minimum"}


def write(call: Call, data: Any, index: tuple[Any, ...], updates: Any) -> Any:
    """Return a copy of ``data`` with ``updates`` written, or reduced into it as the attribute says, at ``index``."""
    xp, reduction = call.xp, call.attr("reduction", "none")
    if reduction == "none":
        out = data.copy()
        out[index] = updates
        return out
    if reduction not in _UFUNCS:
        allowed = ", ".join(["none", *_UFUNCS])
        raise KernelError(f"{call.node.op_type}: the attribute reduction is one of {allowed}. Received: {reduction!r}")
    dtype = call.dtypes[0]
    low = dtype is not None and dtype.kind == "float" and dtype.bits < 32
    out = data.astype(xp.float32) if low else data.copy()
    getattr(xp, _UFUNCS[reduction]).at(out, index, updates.astype(out.dtype))
    return cast_array(out, dtype) if low and dtype is not None else out


@kernel("Scatter", "ScatterElements", moves=True)
def scatter_elements(call: Call, data: Any, indices: Any, updates: Any) -> Any:
    """Write one element per index: the index says where on one axis, its own position says where on the others."""
    axis = axis_of(call, call.attr("axis", 0), data.ndim)
    if indices.shape != updates.shape:
        raise KernelError(
            f"{call.node.op_type}: indices and updates have one shape. Received: {list(indices.shape)} and {list(updates.shape)}"
        )
    try:
        return write(call, data, elements_at(call, indices, axis), updates)
    except IndexError:
        raise outside(call, indices, data.shape[axis]) from None


@kernel("ScatterND", moves=True)
def scatter_nd(call: Call, data: Any, indices: Any, updates: Any) -> Any:
    """Write slices whose leading coordinates are the vectors along the last axis of ``indices``."""
    depth = indices.shape[-1]
    wanted = indices.shape[:-1] + data.shape[depth:]
    if depth > data.ndim or updates.shape != wanted:
        raise KernelError(
            f"ScatterND: indices of shape {list(indices.shape)} into data of shape {list(data.shape)} take updates of shape "
            f"{list(wanted)}. Received: {list(updates.shape)}"
        )
    try:
        if not depth:
            # No coordinate: each update is one of the whole.
            count = math.prod(indices.shape[:-1])
            lead = call.xp.zeros(count, dtype=int)
            flat = updates.reshape((count, *data.shape))
            return write(call, data[None], (lead,), flat)[0]
        return write(call, data, tuple(call.xp.moveaxis(indices, -1, 0)), updates)
    except IndexError:
        raise outside(call, indices, list(data.shape[:depth])) from None


@kernel("TensorScatter", moves=True)
def tensor_scatter(call: Call, cache: Any, update: Any, starts: Any = None) -> Any:
    """Write ``update`` into a cache, for each batch entry from its own start on; ``circular`` wraps at the end."""
    xp, batch = call.xp, cache.shape[0] if cache.ndim else 0
    axis = axis_of(call, call.attr("axis", -2), cache.ndim)
    if axis == 0:
        raise KernelError("TensorScatter: axis 0 is the batch and cannot be the sequence. Received: axis=0")
    size, length = cache.shape[axis], update.shape[axis]
    starts = xp.zeros(batch, dtype=xp.int64) if starts is None else starts
    steps = starts[:, None] + xp.arange(length)
    if call.attr("mode", "linear") == "circular":
        steps = steps % max(size, 1)
    if steps.size and not 0 <= int(steps.min()) <= int(steps.max()) < size:
        raise KernelError(
            f"TensorScatter: a write of {length} steps must end inside the cache of {size} steps, unless mode is 'circular'. "
            f"Received: write indices from {int(starts.min())} to {int(starts.max())}"
        )
    out = cache.copy()
    xp.moveaxis(out, axis, 1)[xp.arange(batch)[:, None], steps] = xp.moveaxis(update, axis, 1)
    return out
