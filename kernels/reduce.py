"""Reductions over axes: sums, means, extremes, norms. Sums of floats are accumulated in float32 (float64 stays)."""

from collections.abc import Callable
from typing import Any

from .call import Call
from .registry import kernel
from .shape import ints

#: Reduces an array over axes, which stay with size 1 if the last argument says so.
Reduction = Callable[[Any, Any, tuple[int, ...], bool], Any]


def _reduced(call: Call, function: Reduction, x: Any, axes: Any) -> Any:
    axes = call.attr("axes") if axes is None else axes
    places = None if axes is None else ints(axes)
    if not places:
        places = [] if call.attr("noop_with_empty_axes", 0) else list(range(x.ndim))
    return function(call.xp, x, tuple(places), bool(call.attr("keepdims", 1)))


def _register(op_type: str) -> Callable[[Reduction], Reduction]:
    def register(function: Reduction) -> Reduction:
        kernel(op_type)(lambda call, x, axes=None: _reduced(call, function, x, axes))
        return function

    return register


@_register("ReduceSum")
def total(xp: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Sum, in the dtype of the elements."""
    return xp.sum(x, axes, dtype=x.dtype, keepdims=keepdims)


@_register("ReduceProd")
def product(xp: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Product, in the dtype of the elements."""
    return xp.prod(x, axes, dtype=x.dtype, keepdims=keepdims)


@_register("ReduceMean")
def mean(xp: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Mean: the sum, divided once."""
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    summed = total(xp, x, axes, keepdims)
    if x.dtype.kind == "f":
        return summed / x.dtype.type(count)
    return xp.trunc(summed / count).astype(x.dtype) if count else summed


def _least(dtype: Any) -> Any:
    import numpy as np

    return False if dtype.kind == "b" else -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _most(dtype: Any) -> Any:
    import numpy as np

    return True if dtype.kind == "b" else np.inf if dtype.kind == "f" else np.iinfo(dtype).max


@_register("ReduceMax")
def greatest(xp: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Greatest element; of none, the least that the dtype has."""
    return xp.max(x, axes, keepdims=keepdims, initial=_least(x.dtype))


@_register("ReduceMin")
def smallest(xp: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Smallest element; of none, the greatest that the dtype has."""
    return xp.min(x, axes, keepdims=keepdims, initial=_most(x.dtype))


@_register("ReduceL1")
def _l1(xp: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    return total(xp, xp.abs(x), axes, keepdims)


@_register("ReduceSumSquare")
def _sum_square(xp: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    return total(xp, x * x, axes, keepdims)


@_register("ReduceL2")
def _l2(xp: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    return xp.sqrt(_sum_square(xp, x, axes, keepdims)).astype(x.dtype, copy=False)


@_register("ReduceLogSum")
def _log_sum(xp: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    return xp.log(total(xp, x, axes, keepdims)).astype(x.dtype, copy=False)


@_register("ReduceLogSumExp")
def log_sum_exp(xp: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Logarithm of the sum of exponentials; the largest element is taken out first, so that nothing overflows."""
    wide = x if x.dtype.kind == "f" else x.astype(xp.float64)
    most = greatest(xp, wide, axes, True)
    shift = xp.where(xp.isfinite(most), most, 0)
    result = xp.log(total(xp, xp.exp(wide - shift), axes, True)) + shift
    return (result if keepdims else result.squeeze(axes)).astype(x.dtype, copy=False)
