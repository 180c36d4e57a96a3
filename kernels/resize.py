"""Resize and Upsample: every result is a weighted sum of neighbours, one axis after another."""

from collections.abc import Callable
from math import ceil, floor
from typing import TYPE_CHECKING, Any, NamedTuple

from ..graph.errors import KernelError
from .registry import kernel
from .room import check_room

if TYPE_CHECKING:
    from .call import Call


class Axis(NamedTuple):
    """How one axis is resized.

    Attributes:
        axis: Which axis.
        size: Length of the operand.
        result: Length of the result.
        scale: Ratio of the lengths, as given.
        start, end: The part of the operand that is resized, in ``tf_crop_and_resize``, as fractions of its length.
    """

    axis: int
    size: int
    result: int
    scale: float
    start: float
    end: float


@kernel("Resize", "Upsample")
def resize(call: "Call", x: Any, *operands: Any) -> Any:
    """Resize an array by interpolation: nearest, linear or cubic, with or without antialiasing."""
    axes = _axes(call, x, *operands)
    mode = str(call.attr("mode", "nearest"))
    if any(axis.result and not axis.size for axis in axes):
        raise KernelError(f"Nothing can be enlarged to something. Received: shape {list(x.shape)}")
    if mode == "nearest":
        return _outside(call, _nearest(call, x, axes), axes)
    if mode not in ("linear", "bilinear", "cubic"):
        raise KernelError(f"Resize knows the modes nearest, linear and cubic. Received: {mode!r}")
    dtype = x.dtype if x.dtype.kind == "f" else call.xp.dtype(call.xp.float32)
    y = x.astype(dtype, copy=False)
    for axis in sorted(axes, key=lambda axis: axis.result / max(axis.size, 1)):  # those that shrink first
        if not _untouched(call, axis):
            y = _interpolate(call, y, axis, cubic=mode == "cubic")
    y = _outside(call, y, axes)
    if dtype is not x.dtype and dtype != x.dtype:
        limits = call.xp.iinfo(x.dtype)
        y = call.xp.clip(call.xp.trunc(y), limits.min, limits.max).astype(x.dtype)
    return y


def _axes(call: "Call", x: Any, *operands: Any) -> list[Axis]:
    """Return the axes to resize, from ``scales`` or ``sizes``, wherever this version of the op keeps them.

    A scale gives the size that the standard's shape inference declares, ``floor(size * scale)`` in float32, also in
    ``tf_crop_and_resize``: the standard's text once says ``floor(size * (end - start) * scale)``, and once that the scale is the
    ratio of the lengths; inference, the reference and ONNX Runtime agree on the latter.
    """
    roi: Any = None
    scales: Any = None
    sizes: Any = None
    if call.node.op_type == "Upsample":
        scales = operands[0] if operands else call.attr("scales", None)
        if scales is None:  # version 1
            scales = [1.0, 1.0, call.attr("height_scale", 1.0), call.attr("width_scale", 1.0)]
    elif call.opset < 11:
        scales = operands[0]
    else:
        roi, scales, sizes = (*operands, None, None, None)[:3]
    chosen = [int(a) % x.ndim for a in call.attr("axes", None) or range(x.ndim)]
    cropped = call.attr("coordinate_transformation_mode", "") == "tf_crop_and_resize"
    if cropped and (roi is None or roi.size != 2 * len(chosen)):
        raise KernelError(f"tf_crop_and_resize needs a roi of {2 * len(chosen)} numbers. Received: {roi}")
    starts = [float(v) for v in roi[: len(chosen)]] if cropped else [0.0] * len(chosen)
    ends = [float(v) for v in roi[len(chosen) :]] if cropped else [1.0] * len(chosen)
    given = scales if scales is not None and len(scales) else sizes
    if given is None or len(given) != len(chosen):
        raise KernelError(f"Resize needs scales or sizes for {len(chosen)} axes. Received: {given}")
    shape = [x.shape[a] for a in chosen]
    if given is scales:
        factors = [float(v) for v in given]
        if min(factors, default=1) <= 0:
            raise KernelError(f"Resize needs positive scales. Received: {factors}")
        results = [floor(_in_float32(n, f)) for n, f in zip(shape, factors, strict=True)]
    else:
        results = [int(v) for v in given]
        factors = [r / n if n else 1.0 for r, n in zip(results, shape, strict=True)]
        policy = call.attr("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            factors = [(min if policy == "not_larger" else max)(factors)] * len(factors)
            results = [floor(_in_float32(n, f) + 0.5) for n, f in zip(shape, factors, strict=True)]
    if min(results, default=0) < 0:
        raise KernelError(f"Resize needs sizes that are not negative. Received: {results}")
    check_room(call.xp, [*results, *(size for i, size in enumerate(x.shape) if i not in chosen)], x.itemsize)
    return [Axis(*fields) for fields in zip(chosen, shape, results, factors, starts, ends, strict=True)]


def _in_float32(size: int, scale: float) -> float:
    import numpy as np  # for one number

    return float(np.float32(size) * np.float32(scale))


def _untouched(call: "Call", axis: Axis) -> bool:
    return axis.size == axis.result and axis.scale == 1 and (axis.start, axis.end) == (0, 1)


def _coordinates(call: "Call", axis: Axis) -> Any:
    """Return where each result stands in the operand, as float64."""
    xp = call.xp
    at = xp.arange(axis.result, dtype=xp.float64)
    mode = call.attr("coordinate_transformation_mode", "half_pixel") if call.opset >= 11 else "asymmetric"
    size, scale = axis.size, axis.scale
    width = scale * size  # with a fraction, where the scale is given
    if call.node.op_type == "Upsample" or mode == "asymmetric":
        return at / scale
    if mode == "align_corners":
        return at * 0 if width == 1 else at * (size - 1) / (width - 1)
    if mode == "pytorch_half_pixel" and axis.result == 1:
        return at * 0
    if mode == "tf_half_pixel_for_nn":
        return (at + 0.5) / scale
    if mode == "tf_crop_and_resize":
        if axis.result == 1:
            return at + 0.5 * (axis.start + axis.end) * (size - 1)
        return axis.start * (size - 1) + at * (axis.end - axis.start) * (size - 1) / max(axis.result - 1, 1)
    found = (at + 0.5) / scale - 0.5
    if mode == "half_pixel_symmetric":
        return found + size / 2 * (1 - axis.result / width)
    return found


def _nearest(call: "Call", x: Any, axes: list[Axis]) -> Any:
    xp = call.xp
    rounding: Callable[[Any], Any] = {
        "round_prefer_floor": lambda at: xp.ceil(at - 0.5),
        "round_prefer_ceil": lambda at: xp.floor(at + 0.5),
        "floor": xp.floor,
        "ceil": xp.ceil,
    }[str(call.attr("nearest_mode", "round_prefer_floor"))]
    for axis in sorted(axes, key=lambda axis: (axis.result / max(axis.size, 1), -axis.axis)):  # rows are copied last
        if _untouched(call, axis):
            continue
        at = _coordinates(call, axis)
        if call.opset < 11 or call.node.op_type == "Upsample":  # these versions do not say
            at = xp.ceil(at) if axis.scale < 1 else xp.floor(at)
        else:
            at = rounding(at)
        x = xp.take(x, xp.clip(at, 0, axis.size - 1).astype(xp.int64), axis.axis)
    return x


def _interpolate(call: "Call", x: Any, axis: Axis, cubic: bool) -> Any:
    """Resize one axis: for each tap, what it takes times its weight."""
    xp = call.xp
    at = _coordinates(call, axis)
    low = xp.floor(at)
    squeeze = min(axis.scale, 1.0) if call.attr("antialias", 0) else 1.0
    reach = ceil((2 if cubic else 1) / squeeze)
    taps = xp.arange(1 - reach, reach + 1)
    distance = xp.abs((taps - (at - low)[:, None]) * squeeze)
    weights = _cubic(xp, distance, call.attr("cubic_coeff_a", -0.75)) if cubic else xp.maximum(1 - distance, 0)
    index = low[:, None] + taps
    if squeeze < 1:
        weights = weights / weights.sum(-1, keepdims=True)
    if call.attr("exclude_outside", 0):
        weights = xp.where((index >= 0) & (index < axis.size), weights, 0)
        weights = weights / weights.sum(-1, keepdims=True)
    index = xp.clip(index, 0, axis.size - 1).astype(xp.int64)
    column = (-1, *(1,) * (x.ndim - 1 - axis.axis))
    weights = weights.astype(x.dtype)
    result = None
    for tap in range(len(taps)):
        if not weights[:, tap].any():
            continue
        part = xp.take(x, index[:, tap], axis.axis)
        part *= weights[:, tap].reshape(column)
        result = part if result is None else xp.add(result, part, out=result)
    return xp.take(x, index[:, 0], axis.axis) * 0 if result is None else result


def _cubic(xp: Any, d: Any, a: float) -> Any:
    """Return the weights of Keys' cubic convolution at distances ``d``."""
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return xp.where(d <= 1, near, xp.where(d < 2, far, 0))


def _outside(call: "Call", y: Any, axes: list[Axis]) -> Any:
    """In ``tf_crop_and_resize``, give what lies outside of the operand the extrapolation value."""
    if call.attr("coordinate_transformation_mode", "") != "tf_crop_and_resize":
        return y
    value = call.attr("extrapolation_value", 0.0)
    for axis in axes:
        at = _coordinates(call, axis)
        out = (at < 0) | (at > axis.size - 1)
        if out.any():
            y[(*(slice(None),) * axis.axis, out)] = value
    return y
