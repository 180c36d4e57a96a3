"""Quantized arithmetic of ONNX Runtime: what it takes apart is real numbers ``scale * (q - zero point)``.

Elementwise ops on them are the float ops between :func:`dequantize` and :func:`quantize`; products are sums of integers.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .elementwise import sigmoid
from .registry import find_kernel, kernel

if TYPE_CHECKING:
    from .call import Call


def dequantize(xp: Any, x: Any, scale: Any, zero: Any) -> Any:
    """Return the float32 values of ``x``."""
    x = x.astype(xp.float32)
    return (x if zero is None else x - zero.astype(xp.float32)) * scale


def quantize(xp: Any, x: Any, scale: Any, zero: Any, dtype: Any) -> Any:
    """Return ``x`` on the grid of ``scale`` and ``zero``: rounded to nearest, ties to even, and saturated."""
    limits = xp.iinfo(dtype)
    q = xp.rint(x / scale) + (0 if zero is None else zero.astype(xp.float32))
    return xp.clip(q, limits.min, limits.max).astype(dtype)


def dynamic_quantize(xp: Any, x: Any) -> tuple[Any, Any, Any]:
    """Return ``x`` as uint8, the scale and the zero point that its range, which always holds 0, asks for."""
    low = xp.minimum(x.min(initial=0), 0).astype(xp.float32)
    high = xp.maximum(x.max(initial=0), 0).astype(xp.float32)
    scale = (high - low) / xp.float32(255)
    scale = xp.where(scale == 0, xp.float32(1), scale)
    zero = xp.clip(xp.rint(-low / scale), 0, 255).astype(xp.uint8)
    return quantize(xp, x, scale, zero, xp.uint8), scale, zero


@kernel("com.microsoft:QLinearAdd")
def qlinear_add(
    call: "Call", a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any, scale: Any, zero: Any = None
) -> Any:
    """Quantized sum."""
    xp = call.xp
    return quantize(xp, dequantize(xp, a, a_scale, a_zero) + dequantize(xp, b, b_scale, b_zero), scale, zero, a.dtype)


@kernel("com.microsoft:QLinearMul")
def qlinear_mul(
    call: "Call", a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any, scale: Any, zero: Any = None
) -> Any:
    """Quantized product."""
    xp = call.xp
    return quantize(xp, dequantize(xp, a, a_scale, a_zero) * dequantize(xp, b, b_scale, b_zero), scale, zero, a.dtype)


def _unary(xp: Any, x: Any, scale: Any, zero: Any, y_scale: Any, y_zero: Any, function: Callable[[Any], Any]) -> Any:
    return quantize(xp, function(dequantize(xp, x, scale, zero)), y_scale, y_zero, x.dtype)


@kernel("com.microsoft:QLinearSigmoid")
def qlinear_sigmoid(call: "Call", x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any = None) -> Any:
    """Quantized sigmoid."""
    return _unary(call.xp, x, x_scale, x_zero, y_scale, y_zero, lambda v: sigmoid(call.xp, v))


@kernel("com.microsoft:QLinearLeakyRelu")
def qlinear_leaky_relu(call: "Call", x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any = None) -> Any:
    """Quantized leaky ReLU."""
    alpha = call.attr("alpha", 0.01)
    return _unary(call.xp, x, x_scale, x_zero, y_scale, y_zero, lambda v: call.xp.where(v < 0, alpha * v, v))


@kernel("com.microsoft:QLinearSoftmax")
def qlinear_softmax(call: "Call", x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any) -> Any:
    """Quantized softmax along ``axis``; before opset 13 along all axes from it on."""
    xp, axis = call.xp, call.attr("axis", -1) % max(x.ndim, 1)

    def softmax(v: Any) -> Any:
        axes = tuple(range(axis, v.ndim)) if call.attr("opset", 13) < 13 else axis
        e = xp.exp(v - v.max(axis=axes, keepdims=True))
        return e / e.sum(axis=axes, keepdims=True)

    return _unary(xp, x, x_scale, x_zero, y_scale, y_zero, softmax)


@kernel("com.microsoft:QLinearReduceMean")
def qlinear_reduce_mean(call: "Call", x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any = None) -> Any:
    """Quantized mean."""
    axes, keep = tuple(call.attr("axes") or range(x.ndim)), bool(call.attr("keepdims", 1))
    return _unary(call.xp, x, x_scale, x_zero, y_scale, y_zero, lambda v: v.mean(axis=axes, keepdims=keep))


@kernel("com.microsoft:QLinearGlobalAveragePool")
def qlinear_global_average_pool(call: "Call", x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any) -> Any:
    """Quantized mean over the spatial axes."""
    axes = tuple(range(1, x.ndim - 1)) if call.attr("channels_last", 0) else tuple(range(2, x.ndim))
    return _unary(call.xp, x, x_scale, x_zero, y_scale, y_zero, lambda v: v.mean(axis=axes, keepdims=True))


@kernel("com.microsoft:QLinearAveragePool")
def qlinear_average_pool(call: "Call", x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any = None) -> Any:
    """Quantized mean over windows."""
    pool, move = find_kernel("", "AveragePool"), call.xp.moveaxis
    if pool is None:
        raise KernelError("Op QLinearAveragePool needs the kernel of AveragePool, which does not exist.")
    function, last = pool.function, call.attr("channels_last", 0)
    if last:
        return _unary(call.xp, x, x_scale, x_zero, y_scale, y_zero, lambda v: move(function(call, move(v, -1, 1)), 1, -1))
    return _unary(call.xp, x, x_scale, x_zero, y_scale, y_zero, lambda v: function(call, v))


@kernel("com.microsoft:QLinearConcat")
def qlinear_concat(call: "Call", y_scale: Any, y_zero: Any, *parts: Any) -> Any:
    """Concatenation of (tensor, scale, zero point) triples."""
    xp = call.xp
    values = [dequantize(xp, *parts[i : i + 3]) for i in range(0, len(parts), 3)]
    return quantize(xp, xp.concatenate(values, axis=call.attr("axis")), y_scale, y_zero, y_zero.dtype)


@kernel("com.microsoft:QLinearWhere")
def qlinear_where(
    call: "Call", condition: Any, x: Any, x_scale: Any, x_zero: Any, y: Any, y_scale: Any, y_zero: Any, z_scale: Any, z_zero: Any
) -> Any:
    """Choice between two quantized tensors."""
    xp = call.xp
    chosen = xp.where(condition, dequantize(xp, x, x_scale, x_zero), dequantize(xp, y, y_scale, y_zero))
    return quantize(xp, chosen, z_scale, z_zero, x.dtype)
