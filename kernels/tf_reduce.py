"""TensorFlow: reductions over axes, the places of extremes, and running sums. Sums of floats are accumulated in float32."""

from collections.abc import Callable
from typing import Any

from ..graph.dtypes import DType
from ..graph.errors import KernelError
from . import reduce
from .call import Call
from .cumulative import accumulate, cum_prod, cum_sum
from .gather import axis_of
from .reduce import Reduction
from .registry import bound, kernel
from .shape import ints
from .values import number, wide_dtype


def _reduction(function: Reduction) -> Callable[..., Any]:
    def compute(call: Call, x: Any, axes: Any) -> Any:
        places = tuple(dict.fromkeys(axis_of(call, axis, x.ndim) for axis in ints(axes)))
        return function(call.xp, x, places, call.attr("keep_dims", False))

    return compute


def _mean(xp: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Return the mean; that of integers, summed up in 64 bits, is cut off towards zero."""
    if x.dtype.kind in "iu":
        summed = xp.sum(x, axes, dtype=xp.uint64 if x.dtype.kind == "u" else xp.int64, keepdims=keepdims)
        count = summed.dtype.type(x.size // max(summed.size, 1))
        return (xp.sign(summed) * (xp.abs(summed) // count)).astype(x.dtype)
    summed = reduce.total(xp, x, axes, keepdims)
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    return summed / x.real.dtype.type(count)


def _euclidean_norm(xp: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Return the root of the sum of squares, which wraps as the integers do."""
    summed = reduce.total(xp, (x * x.conj()).real, axes, keepdims)
    if x.dtype.kind not in "iu":
        return xp.sqrt(summed).astype(x.dtype)
    return xp.sqrt(xp.maximum(summed, 0).astype(xp.float64)).astype(x.dtype)


kernel("tf:Sum")(_reduction(reduce.total))
kernel("tf:Mean")(_reduction(_mean))
kernel("tf:Prod")(_reduction(reduce.product))
kernel("tf:Max")(_reduction(reduce.greatest))
kernel("tf:Min")(_reduction(reduce.smallest))
kernel("tf:EuclideanNorm")(_reduction(_euclidean_norm))
kernel("tf:All")(_reduction(lambda xp, x, axes, keepdims: xp.all(x, axes, keepdims=keepdims)))
kernel("tf:Any")(_reduction(lambda xp, x, axes, keepdims: xp.any(x, axes, keepdims=keepdims)))


def _bind_sum(call: Call) -> Any:
    """Bind a sum or a mean of floats over axes that are constants."""
    xp, axes, dtype = call.xp, call.constant(1), call.operand_dtypes[0]
    if axes is None or dtype is None or dtype.kind != "float" or xp.__name__ != "numpy":
        return None
    add, wide, keepdims = xp.add.reduce, wide_dtype(dtype).numpy, bool(call.attr("keep_dims", False))
    places = tuple(ints(axes))
    if len({axis >= 0 for axis in places}) > 1 or len(set(places)) < len(places):  # one axis may be meant twice
        return None
    if call.node.op_type == "Sum":
        return lambda x, axes: add(x, places, None, None, keepdims)

    counts: dict[int, Any] = {}

    def compute(x: Any, axes: Any) -> Any:
        summed = add(x, places, None, None, keepdims)
        many = x.size // summed.size
        count = counts.get(many)
        if count is None:
            counts.clear()  # sizes may change from run to run
            count = counts[many] = number(xp, many, wide)
        return summed / count

    return compute


bound("tf:Sum", "tf:Mean")(_bind_sum)


def _place(name: str) -> Callable[..., Any]:
    def compute(call: Call, x: Any, dimension: Any) -> Any:
        """Return where the first greatest, or smallest, element is; NaN is never it, nor what no finite number exceeds."""
        axis = axis_of(call, int(dimension), x.ndim)
        if not x.shape[axis]:
            raise KernelError(f"{call.node.op_type}: axis {axis} has no elements. Received: shape {list(x.shape)}")
        if x.dtype.kind == "f":
            worst = x.dtype.type(lowest_finite(call.dtype("T")) * (1 if name == "argmax" else -1))
            x = call.xp.where(x > worst if name == "argmax" else x < worst, x, worst)
        return getattr(call.xp, name)(x, axis)

    return compute


kernel("tf:ArgMax")(_place("argmax"))
kernel("tf:ArgMin")(_place("argmin"))
kernel("tf:Cumsum")(cum_sum)
kernel("tf:Cumprod")(cum_prod)


@kernel("tf:CumulativeLogsumexp")
def _cumulative_logsumexp(call: Call, x: Any, axis: Any) -> Any:
    """Return running logarithms of sums of exponentials."""
    return accumulate(call, call.xp.logaddexp.accumulate, -float("inf"), x, axis)


def lowest_finite(dtype: DType) -> Any:
    """Return the lowest finite number of a dtype."""
    import numpy as np

    if dtype.kind in ("int", "uint"):
        return np.iinfo(dtype.numpy).min
    if dtype.name == "bfloat16":
        return -(2.0**128 - 2.0**120)
    return np.finfo(dtype.numpy).min
