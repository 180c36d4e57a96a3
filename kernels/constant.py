"""Ops that make tensors of numbers known before any element is computed: constants, shapes, ranges."""

from typing import Any

from .call import Call, text_array
from .registry import kernel
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
    return text_array(np.array(call.attr("value_strings") if text is None else text, object))


@kernel("ConstantOfShape", moves=True)
def _constant_of_shape(call: Call, shape: Any) -> Any:
    value = call.attr("value")
    if value is None:
        return call.xp.zeros(ints(shape), call.xp.float32)
    return call.xp.full(ints(shape), value.ravel()[0], value.dtype)


@kernel("Shape", moves=True)
def _shape(call: Call, x: Any) -> Any:
    return call.xp.asarray(x.shape[call.attr("start", 0) : call.attr("end")], call.xp.int64)


@kernel("Size", moves=True)
def _size(call: Call, x: Any) -> Any:
    return call.xp.asarray(x.size, call.xp.int64)


@kernel("Range")
def _range(call: Call, start: Any, limit: Any, delta: Any) -> Any:
    """Every element is ``start + i * delta``, so that errors do not add up."""
    xp = call.xp
    start, limit, delta = (value.ravel()[0] for value in (start, limit, delta))
    if start.dtype.kind in "iu":
        return xp.arange(int(start), int(limit), int(delta), start.dtype)
    count = max(0, int(xp.ceil((float(limit) - float(start)) / float(delta))))
    return (xp.arange(count) * float(delta) + float(start)).astype(start.dtype)
