"""Quantized numbers: integers, or 8- and 4-bit floats, with a scale and a zero point. All is computed in float32."""

from typing import Any

from ..graph.dtypes import DTYPES, DType
from .call import Call
from .cast import known, saturated
from .matmul import centred, integer_product, kept_integers
from .registry import kernel


def range_of(dtype: DType) -> tuple[int, int]:
    """Return the least and the largest integer of a dtype."""
    return (-(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1) if dtype.kind == "int" else (0, (1 << dtype.bits) - 1)


def round_to_integer(xp: Any, x: Any, zero_point: Any, dtype: DType) -> Any:
    """Return ``x`` rounded to the nearest integer (ties to even), plus the zero point, within the range of ``dtype``; NaN as 0.

    ``x`` is written over. The result is as wide as kernels compute: int8 for int4 and int2, uint8 for uint4 and uint2.
    """
    least, most = range_of(dtype)
    result = xp.asarray(x)
    xp.rint(result, out=result)
    if zero_point is not None:
        result += zero_point.astype(result.dtype)
    nan = xp.isnan(result)
    if nan.any():
        result[nan] = 0
    xp.clip(result, least, most, out=result)
    return result.astype(dtype.numpy if dtype.bits >= 8 else xp.int8 if dtype.kind == "int" else xp.uint8)


def spread(xp: Any, scale: Any, shape: tuple[int, ...], axis: int, block: int) -> Any:
    """Return a scale or zero point in a shape that broadcasts with ``shape``: one number, one for each place of an axis, or one
    for each ``block`` places of it.
    """
    if scale is None or (scale.size == 1 and scale.ndim <= 1):
        return None if scale is None else scale.reshape(())
    axis %= len(shape)
    if scale.ndim == 1 and not (block and len(shape) == 1):
        return scale.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    block = block or -(-shape[axis] // scale.shape[axis])
    return xp.repeat(scale, block, axis)[(slice(None),) * axis + (slice(shape[axis]),)]


@kernel("QuantizeLinear", "com.microsoft:QuantizeLinear")
def _quantize(call: Call, x: Any, scale: Any, zero_point: Any = None) -> Any:
    xp, axis, block = call.xp, call.attr("axis", 1), call.attr("block_size", 0)
    scale, zero_point = (spread(xp, value, x.shape, axis, block) for value in (scale, zero_point))
    dtype = call.dtypes[0] or DTYPES["uint8"]
    quotient = x.astype(scale.dtype, copy=False) / scale
    if dtype.kind != "float":
        return round_to_integer(xp, quotient, zero_point, dtype)
    quotient = quotient if zero_point is None else quotient + zero_point
    return saturated(quotient, dtype) if dtype.bits == 8 and call.attr("saturate", 1) else quotient


@kernel("DequantizeLinear", "com.microsoft:DequantizeLinear")
def dequantize(call: Call, x: Any, scale: Any, zero_point: Any = None) -> Any:
    """Return ``(x - zero_point) * scale``."""
    xp, axis, block = call.xp, call.attr("axis", 1), call.attr("block_size", 0)
    scale, zero_point = (spread(xp, value, x.shape, axis, block) for value in (scale, zero_point))
    if zero_point is not None and x.dtype.itemsize >= 4 and x.dtype.kind != "f":
        x, zero_point = x.astype(xp.int64) - zero_point.astype(xp.int64), None
    y = xp.asarray(x.astype(scale.dtype))  # integers below 2**17 are exact, and their differences
    if zero_point is not None:
        y -= zero_point.astype(y.dtype)
    y *= scale
    return y


@kernel("DynamicQuantizeLinear")
def dynamic_quantize(call: Call, x: Any) -> tuple[Any, Any, Any]:
    """Quantize to uint8 with the scale that just fits; return the numbers, the scale and the zero point."""
    xp = call.xp
    least = xp.min(x, initial=0).astype(xp.float32)
    most = xp.max(x, initial=0).astype(xp.float32)
    scale = (most - least) / xp.float32(255)
    zero_point = xp.clip(xp.rint(xp.where(scale == 0, 0, -least / scale)), 0, 255).astype(xp.uint8)
    quotient = xp.where(scale == 0, xp.float32(0), x / scale)
    return round_to_integer(xp, quotient, zero_point, DTYPES["uint8"]), scale, zero_point


def requantize(xp: Any, total: Any, multiplier: Any, zero_point: Any, dtype: DType) -> Any:
    """Return sums of products as quantized numbers.

    Args:
        xp: The array module.
        total: The sums, integers.
        multiplier: Product of the operands' scales over the result's scale.
        zero_point: The result's.
        dtype: The result's.
    """
    return round_to_integer(xp, total.astype(xp.float32) * xp.asarray(multiplier, xp.float32), zero_point, dtype)


@kernel("QLinearMatMul")
def _qlinear_matmul(
    call: Call, a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any, y_scale: Any, y_zero: Any
) -> Any:
    xp, dtype = call.xp, known(call, call.dtypes[0])
    total = integer_product(xp, centred(xp, a, a_zero, -2), kept_integers(call, b, b_zero, 3, 5))
    if a_scale.ndim == 1 and a_scale.size > 1:
        a_scale = a_scale.reshape(-1, 1)
    scales = [scale.reshape(()) if scale.size == 1 else scale for scale in (a_scale, b_scale, y_scale)]
    return requantize(xp, total, scales[0] * scales[1] / scales[2], y_zero, dtype)
