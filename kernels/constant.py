"""Ops that make tensors of numbers known before any element is computed: constants, shapes, ranges."""

from math import ceil
from typing import Any

from ..graph.errors import KernelError
from .call import Call, text_array
from .registry import kernel
from .room import check_room
from .shape import ints


@kernel("Constant", moves=True)
def _constant(call: Call) -> Any:
    xp = call.xp
    for name in ("value", "sparse_value"):
        if (value := call.attr(name)) is not None:
            return value
    for name, dtype in (("value_float", xp.float32), ("value_int", xp.int64)):
        for each in (name, f"{name}s"):
            if (value := call.attr(each)) is not None:
                return xp.asarray(value, dtype)
    import numpy as np

    text = call.attr("value_string")
    if text is None and call.attr("value_strings") is None:
        raise KernelError("Constant has one of the attributes that say its value. Received: none")
    return text_array(np.array(call.attr("value_strings") if text is None else text, object))


@kernel("ConstantOfShape", moves=True)
def _constant_of_shape(call: Call, shape: Any) -> Any:
    """One element, seen at every place."""
    xp, sizes, value = call.xp, ints(shape), call.attr("value")
    element = xp.zeros((), xp.float32) if value is None else value.reshape(-1)[0]
    check_room(xp, sizes, element.dtype.itemsize)
    return xp.broadcast_to(element, sizes)


@kernel("Shape", moves=True)
def _shape(call: Call, x: Any) -> Any:
    return call.xp.asarray(x.shape[call.attr("start", 0) : call.attr("end")], call.xp.int64)


@kernel("Size", moves=True)
def _size(call: Call, x: Any) -> Any:
    return call.xp.asarray(x.size, call.xp.int64)


@kernel("Range", "com.microsoft:Range")
def _range(call: Call, start: Any, limit: Any, delta: Any = None) -> Any:
    """Every element is ``start + i * delta``, so that errors do not add up."""
    xp, dtype = call.xp, start.dtype
    first, last, step = (1 if value is None else value.ravel()[0].item() for value in (start, limit, delta))
    if not step:
        raise KernelError(f"Range takes a step that is not 0. Received: {step}")
    if dtype.kind in "iu":
        check_room(xp, [len(range(first, last, step))], 8)
        return xp.arange(first, last, step, dtype)
    length = (last - first) / step
    if not abs(length) < float("inf"):
        raise KernelError(f"Range takes finite numbers. Received: {first}, {last} and {step}")
    count = max(0, ceil(length))
    check_room(xp, [count], 8)
    return (xp.arange(count) * step + first).astype(dtype)
