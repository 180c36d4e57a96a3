"""Normalization: elements less a mean, over a deviation, scaled and shifted; the ops differ in what they take the mean of.

Means and deviations are taken in two passes, so that a large mean costs no digits.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .registry import kernel

if TYPE_CHECKING:
    from .call import Call


def standardize(xp: Any, x: Any, axes: Sequence[int], epsilon: float) -> tuple[Any, Any, Any]:
    """Return ``x`` with mean 0 and variance 1 over ``axes``, the mean and the inverse deviation (axes kept).

    Args:
        xp: Array module.
        x: Float array.
        axes: Over which axes.
        epsilon: Added to the variance.
    """
    mean = x.mean(tuple(axes), keepdims=True)
    y = x - mean
    inverse = 1 / xp.sqrt(xp.square(y).mean(tuple(axes), keepdims=True) + x.dtype.type(epsilon))
    y *= inverse
    return y, mean, inverse


def rms_scale(xp: Any, x: Any, axes: Sequence[int], epsilon: float) -> tuple[Any, Any]:
    """Return ``x`` over its root mean square along ``axes``, and the inverse of that (axes kept)."""
    inverse = 1 / xp.sqrt(xp.square(x).mean(tuple(axes), keepdims=True) + x.dtype.type(epsilon))
    return x * inverse, inverse


def affine(y: Any, scale: Any, bias: Any = None) -> Any:
    """Scale and shift, in place where the dtypes allow."""
    y = _into(y, scale, "__imul__", "__mul__")
    return y if bias is None else _into(y, bias, "__iadd__", "__add__")


def _into(y: Any, other: Any, inplace: str, plain: str) -> Any:
    fits = other.dtype == y.dtype and other.ndim <= y.ndim
    return getattr(y, inplace if fits else plain)(other)


def _axes_from(call: "Call", x: Any, default: int = -1) -> tuple[int, ...]:
    axis = int(call.attr("axis", default))
    if not -x.ndim <= axis < max(x.ndim, 1):
        raise KernelError(f"Attribute 'axis' must lie in [-{x.ndim}, {x.ndim}). Received: {axis}")
    return tuple(range(axis % x.ndim, x.ndim))


def _statistics(call: "Call", first: int, *values: Any) -> tuple[Any, ...]:
    """Return statistics in the dtypes that their results declare."""
    declared = [call.dtypes[first + i] if first + i < len(call.dtypes) else None for i in range(len(values))]
    return tuple(v if d is None or d.bits < 32 else v.astype(d.numpy, copy=False) for v, d in zip(values, declared, strict=True))


@kernel("LayerNormalization", "com.microsoft:LayerNormalization")
def layer_normalization(call: "Call", x: Any, scale: Any, bias: Any = None) -> tuple[Any, ...]:
    """Normalization over the axes from ``axis`` on; the mean and the inverse deviation are results, too."""
    y, mean, inverse = standardize(call.xp, x, _axes_from(call, x), call.attr("epsilon", 1e-5))
    return affine(y, scale, bias), *_statistics(call, 1, mean, inverse)


@kernel("RMSNormalization")
def rms_normalization(call: "Call", x: Any, scale: Any) -> Any:
    """Elements over their root mean square along the axes from ``axis`` on."""
    y, _ = rms_scale(call.xp, x, _axes_from(call, x), call.attr("epsilon", 1e-5))
    return affine(y, scale)


@kernel("SimplifiedLayerNormalization", "com.microsoft:SimplifiedLayerNormalization")
def simplified_layer_normalization(call: "Call", x: Any, scale: Any) -> tuple[Any, ...]:
    """RMSNormalization, which also returns the inverse deviation."""
    y, inverse = rms_scale(call.xp, x, _axes_from(call, x), call.attr("epsilon", 1e-5))
    return affine(y, scale), *_statistics(call, 1, inverse)


@kernel("com.microsoft:SkipLayerNormalization")
def skip_layer_normalization(call: "Call", x: Any, skip: Any, gamma: Any, beta: Any = None, bias: Any = None) -> tuple[Any, ...]:
    """Normalization of a sum, which is the last result."""
    total = x + skip if bias is None else x + skip + bias
    y, mean, inverse = standardize(call.xp, total, (-1,), call.attr("epsilon", 1e-12))
    return affine(y, gamma, beta), *_statistics(call, 1, mean, inverse), total


@kernel("com.microsoft:SkipSimplifiedLayerNormalization")
def skip_simplified_layer_normalization(call: "Call", x: Any, skip: Any, gamma: Any, bias: Any = None) -> tuple[Any, ...]:
    """Root mean square normalization of a sum, which is the last result."""
    total = x + skip if bias is None else x + skip + bias
    y, inverse = rms_scale(call.xp, total, (-1,), call.attr("epsilon", 1e-12))
    return affine(y, gamma), None, *_statistics(call, 2, inverse), total


@kernel("com.microsoft:EmbedLayerNormalization")
def embed_layer_normalization(
    call: "Call",
    ids: Any,
    segments: Any,
    words: Any,
    positions: Any,
    segment_table: Any,
    gamma: Any,
    beta: Any,
    mask: Any = None,
    position_ids: Any = None,
) -> tuple[Any, ...]:
    """Normalization of the sum of word, position and segment embeddings, ``[batch, length, width]``."""
    xp = call.xp
    at = xp.arange(ids.shape[1])[None] if position_ids is None else position_ids
    total = words[ids] + positions[at]
    if segments is not None and segment_table is not None:
        total = total + segment_table[segments]
    y, _, _ = standardize(xp, total, (-1,), call.attr("epsilon", 1e-12))
    counts = xp.zeros(ids.shape[0], xp.int32) if mask is None else (mask != 0).sum(-1).astype(xp.int32)
    return affine(y, gamma, beta), counts, total


def column(value: Any, rank: int) -> Any:
    """Return one value per channel, shaped to stand against ``[N, C, ...]``."""
    return value.reshape((-1, *(1,) * (rank - 2))) if rank > 1 else value


@kernel("BatchNormalization", elementwise=True)
def batch_normalization(call: "Call", x: Any, scale: Any, bias: Any, mean: Any, variance: Any) -> Any:
    """Normalization of each channel: with the given statistics, or, in training, with those of the batch.

    Before version 14 a node trains when it has more than one result. In training, the running statistics are results too, and
    before version 14 the batch's own.
    """
    xp = call.xp
    epsilon = call.attr("epsilon", 1e-5)
    training = call.attr("training_mode", 0) if call.opset >= 14 else call.results > 1
    spatial = call.opset >= 9 or call.attr("spatial", 1)
    if not training:
        factor = scale / xp.sqrt(variance + variance.dtype.type(epsilon))
        shift = bias - mean * factor
        if spatial:
            factor, shift = column(factor, x.ndim), column(shift, x.ndim)
        y = x * factor
        y += shift
        return y.astype(x.dtype, copy=False)
    axes = tuple(i for i in range(x.ndim) if i != 1) if spatial else (0,)
    y, now, _ = standardize(xp, x, axes, epsilon)
    spread = xp.square(x - now).mean(axes).reshape(variance.shape)
    now = now.reshape(mean.shape)
    if spatial:
        scale, bias = column(scale, x.ndim), column(bias, x.ndim)
    momentum = mean.dtype.type(call.attr("momentum", 0.9))
    running = mean * momentum + now * (1 - momentum), variance * momentum + spread * (1 - momentum)
    return affine(y, scale, bias), *running, now, spread


@kernel("InstanceNormalization")
def instance_normalization(call: "Call", x: Any, scale: Any, bias: Any) -> Any:
    """Normalization of each channel of each element of the batch."""
    y, _, _ = standardize(call.xp, x, range(2, x.ndim), call.attr("epsilon", 1e-5))
    return affine(y, column(scale, x.ndim), column(bias, x.ndim))


def group_standardize(xp: Any, x: Any, groups: int, epsilon: float) -> Any:
    """Return ``x [N, C, ...]`` with mean 0 and variance 1 in each group of channels of each element of the batch."""
    n, c = x.shape[:2]
    if groups < 1 or c % groups:
        raise KernelError(f"{c} channels do not fall into groups. Received: {groups} groups")
    y, _, _ = standardize(xp, x.reshape(n, groups, c // groups, *x.shape[2:]), range(2, x.ndim + 1), epsilon)
    return y.reshape(x.shape)


@kernel("GroupNormalization")
def group_normalization(call: "Call", x: Any, scale: Any, bias: Any) -> Any:
    """Normalization of groups of channels; before version 21 one scale and bias stood for a group."""
    groups = int(call.attr("num_groups", 1))
    y = group_standardize(call.xp, x, groups, call.attr("epsilon", 1e-5))
    if call.opset < 21 and scale.size == groups:
        scale, bias = (call.xp.repeat(v, x.shape[1] // groups) for v in (scale, bias))
    return affine(y, column(scale, x.ndim), column(bias, x.ndim))


@kernel("com.microsoft:GroupNorm", "com.microsoft:SkipGroupNorm")
def group_norm(call: "Call", x: Any, gamma: Any, beta: Any, skip: Any = None, bias: Any = None) -> tuple[Any, ...]:
    """Normalization of groups of channels, the last axis unless ``channels_last`` is 0; then SiLU if asked."""
    xp = call.xp
    last = bool(call.attr("channels_last", 1))
    total = x
    if skip is not None:
        lead = (slice(None), *(None,) * (x.ndim - 2))
        if skip.ndim == 2:
            skip = skip[lead] if last else skip[(..., *(None,) * (x.ndim - 2))]
        total = x + skip
        if bias is not None:
            total = total + (bias if last else column(bias, x.ndim))
    first = xp.moveaxis(total, -1, 1) if last else total
    y = group_standardize(xp, first, int(call.attr("groups", 1)), call.attr("epsilon", 1e-5))
    y = affine(y, column(gamma, x.ndim), column(beta, x.ndim))
    if call.attr("activation", 0):
        y = y / (1 + xp.exp(-y))
    return (xp.moveaxis(y, 1, -1) if last else y), total


@kernel("MeanVarianceNormalization")
def mean_variance_normalization(call: "Call", x: Any) -> Any:
    """Elements less their mean over their deviation along ``axes``, which is kept from 0 by a billionth."""
    xp = call.xp
    axes = tuple(int(a) for a in call.attr("axes", None) or (0, 2, 3))
    y = x - x.mean(axes, keepdims=True)
    y /= xp.sqrt(xp.square(y).mean(axes, keepdims=True)) + x.dtype.type(1e-9)
    return y


@kernel("LpNormalization")
def lp_normalization(call: "Call", x: Any) -> Any:
    """Elements over their 1- or 2-norm along ``axis``; zeros where that is zero."""
    xp = call.xp
    axis = int(call.attr("axis", -1))
    norm = xp.abs(x).sum(axis, keepdims=True) if call.attr("p", 2) == 1 else xp.sqrt(xp.square(x).sum(axis, keepdims=True))
    return xp.where(norm == 0, x.dtype.type(0), x / norm)


@kernel("LRN")
def local_response_normalization(call: "Call", x: Any) -> Any:
    """Elements over a power of the sum of squares in the channels around."""
    xp = call.xp
    size = int(call.attr("size", 1))
    before, channels = (size - 1) // 2, x.shape[1]
    squares, total = xp.square(x), xp.zeros_like(x)
    for shift in range(max(-before, 1 - channels), min(size - before, channels)):
        total[:, max(0, -shift) : channels - max(0, shift)] += squares[:, max(0, shift) : channels + min(0, shift)]
    number = x.dtype.type
    total *= number(call.attr("alpha", 1e-4) / size)
    total += number(call.attr("bias", 1.0))
    return x / total ** number(call.attr("beta", 0.75))
