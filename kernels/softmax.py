"""Softmax and its relatives. Before version 13 the axis splits the operand in two, and all behind it counts as one axis."""

from collections.abc import Callable
from typing import Any

from .call import Call
from .registry import kernel


def softmax(xp: Any, x: Any, axis: int = -1) -> Any:
    """Return ``exp(x) / sum(exp(x))`` along an axis; the largest element is taken out first, so that nothing overflows."""
    result = x - xp.max(x, axis, keepdims=True, initial=-xp.inf)
    xp.exp(result, out=result)
    result /= xp.sum(result, axis, keepdims=True)
    return result


def bind_softmax(call: Call) -> Any:
    """Bind the softmax of rows, that is along the last axis."""
    xp = call.xp
    if xp.__name__ != "numpy":
        return None

    def compute(x: Any) -> Any:
        result = xp.subtract(x, xp.maximum.reduce(x, -1, None, None, True)) if x.size else xp.empty_like(x)
        xp.exp(result, result)
        return xp.divide(result, xp.add.reduce(result, -1, None, None, True), result)

    return compute


def log_softmax(xp: Any, x: Any, axis: int = -1) -> Any:
    """Return the logarithm of :func:`softmax`."""
    shifted = x - xp.max(x, axis, keepdims=True, initial=-xp.inf)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis, keepdims=True))


def hardmax(xp: Any, x: Any, axis: int = -1) -> Any:
    """Return 1 for the first largest element along an axis, 0 for all others."""
    places = xp.arange(x.shape[axis]).reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
    return (xp.expand_dims(xp.argmax(x, axis), axis) == places).astype(x.dtype)


def _along_axis(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(call: Call, x: Any) -> Any:
        if call.opset >= 13:
            return function(call.xp, x, call.attr("axis", -1)) if x.size else x
        axis = call.attr("axis", 1)
        axis += x.ndim if axis < 0 else 0
        rows = 1
        for size in x.shape[:axis]:
            rows *= size
        return function(call.xp, x.reshape(rows, -1), -1).reshape(x.shape) if x.size else x

    return run


kernel("Softmax")(_along_axis(softmax))
kernel("LogSoftmax")(_along_axis(log_softmax))
kernel("Hardmax")(_along_axis(hardmax))
