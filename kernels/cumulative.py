"""Running sums and products along an axis."""

from typing import Any

from ..graph.errors import KernelError
from .call import Call
from .gather import axis_of
from .registry import kernel


def accumulate(call: Call, ufunc: Any, start: float, x: Any, axis: Any) -> Any:
    """Return the running results of ``ufunc`` along an axis, of the dtype of ``x``.

    ``exclusive`` leaves an element out of its own result, which is then that of its predecessor and never a difference;
    ``reverse`` runs from the end.
    """
    if axis.size != 1:
        raise KernelError(f"{call.node.op_type}: axis is one number. Received: shape {list(axis.shape)}")
    k = axis_of(call, int(axis.reshape(-1)[0]), x.ndim)
    x = call.xp.moveaxis(x, k, 0)
    if call.attr("reverse", 0):
        x = x[::-1]
    if call.attr("exclusive", 0):
        out = call.xp.full(x.shape, start, dtype=x.dtype)
        out[1:] = ufunc(x[:-1], axis=0, dtype=x.dtype)
    else:
        out = ufunc(x, axis=0, dtype=x.dtype)
    if call.attr("reverse", 0):
        out = out[::-1]
    return call.xp.moveaxis(out, 0, k)


@kernel("CumSum")
def cum_sum(call: Call, x: Any, axis: Any) -> Any:
    """Return running sums; integers wrap."""
    return accumulate(call, call.xp.cumsum, 0, x, axis)


@kernel("CumProd")
def cum_prod(call: Call, x: Any, axis: Any) -> Any:
    """Return running products; integers wrap."""
    return accumulate(call, call.xp.cumprod, 1, x, axis)
