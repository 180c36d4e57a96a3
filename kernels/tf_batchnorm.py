"""TensorFlow's batch and response normalization, their gradients, and biases."""

from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .registry import bound, kernel
from .tf_windows import channels_last

if TYPE_CHECKING:
    from .call import Call


def _along(call: "Call", x: Any) -> tuple[list[int], tuple[int, ...]]:
    """Return how one value per channel is shaped to stand against images, and the axes of the others."""
    axis = x.ndim - 1 if channels_last(call) else 1
    return [-1 if i == axis else 1 for i in range(x.ndim)], tuple(i for i in range(x.ndim) if i != axis)


@kernel("tf:BiasAdd", "tf:BiasAddV1")
def bias_add(call: "Call", x: Any, bias: Any) -> Any:
    """A number for each channel is added.

    Raises:
        KernelError: If there are not as many numbers as channels.
    """
    axis = x.ndim - 1 if channels_last(call) else 1
    if x.ndim < 2 or bias.shape != x.shape[axis : axis + 1]:
        raise KernelError(f"A bias needs a number for each channel of {list(x.shape)}. Received: shape {list(bias.shape)}")
    return x + bias.reshape(_along(call, x)[0])


@bound("tf:BiasAdd")
def bind_bias_add(call: "Call") -> Any:
    """Bind :func:`bias_add` to the last axis."""
    if not channels_last(call):
        return None
    add = call.xp.add
    sizes, bias_sizes = (None if value is None else value.shape.dims for value in call.node.inputs)
    if sizes is not None and len(sizes) > 1 and isinstance(sizes[-1], int) and bias_sizes == sizes[-1:]:
        return add

    def compute(x: Any, bias: Any) -> Any:
        if x.ndim < 2 or bias.shape != x.shape[-1:]:
            raise KernelError("The kernel says what is wrong.")
        return add(x, bias)

    return compute


@kernel("tf:BiasAddGrad")
def bias_add_grad(call: "Call", dy: Any) -> Any:
    """The sum over all but the channels."""
    return dy.sum(_along(call, dy)[1], dtype=dy.dtype)


@bound("tf:BiasAddGrad")
def bind_bias_add_grad(call: "Call") -> Any:
    """Bind :func:`bias_add_grad` of floats to the last axis."""
    dtype = call.operand_dtypes[0]
    if not channels_last(call) or dtype is None or dtype.kind != "float" or call.xp.__name__ != "numpy":
        return None
    add = call.xp.add.reduce
    return lambda dy: add(dy, 0 if dy.ndim == 2 else tuple(range(dy.ndim - 1)))


@kernel("tf:FusedBatchNorm", "tf:FusedBatchNormV2", "tf:FusedBatchNormV3", "tf:_FusedBatchNormEx")
def batch_norm(call: "Call", x: Any, scale: Any, offset: Any, mean: Any, variance: Any, *side: Any) -> tuple[Any, ...]:
    """Normalization of each channel, with the statistics of the batch in training, else with the given ones.

    In training, new running statistics are results, the variance as an estimate for more than the batch, and the statistics that
    the gradient needs. What TensorFlow leaves undefined are the given statistics here.
    """
    xp = call.xp
    shape, axes = _along(call, x)
    epsilon = scale.dtype.type(call.attr("epsilon", 1e-4))
    if call.attr("is_training", True):
        count = x.size // max(x.shape[shape.index(-1)], 1)
        if not count:
            nothing = xp.full_like(scale, xp.nan)
            return x, nothing, nothing, nothing, nothing, scale.dtype.type(0)
        now = x.mean(axes, dtype=scale.dtype)
        y = x - now.reshape(shape)
        spread = xp.square(y).mean(axes, dtype=scale.dtype)
        y *= (scale / xp.sqrt(spread + epsilon)).reshape(shape)
        factor = scale.dtype.type(call.attr("exponential_avg_factor", 1.0))
        new = now, spread * scale.dtype.type(count / max(count - 1, 1))
        if factor != 1:
            new = tuple((1 - factor) * old + factor * one for old, one in zip((mean, variance), new, strict=True))
        statistics = *new, now, spread
    else:
        y = x - mean.reshape(shape)
        y *= (scale / xp.sqrt(variance + epsilon)).reshape(shape)
        statistics = mean, variance, mean, variance
    y += offset.reshape(shape)
    if side:
        y += side[0]
    if call.attr("activation_mode", "Identity") == "Relu":
        y = xp.maximum(y, 0)
    return y, *statistics, xp.zeros((), scale.dtype)


@kernel("tf:FusedBatchNormGrad", "tf:FusedBatchNormGradV2", "tf:FusedBatchNormGradV3")
def batch_norm_grad(call: "Call", dy: Any, x: Any, scale: Any, mean: Any, variance: Any, _: Any = None) -> tuple[Any, ...]:
    """The gradient of a batch normalization by its images, scale and offset, given the statistics that it used."""
    xp = call.xp
    shape, axes = _along(call, x)
    count = x.size // max(x.shape[shape.index(-1)], 1)
    nothing = xp.zeros(0, scale.dtype)
    inverse = 1 / xp.sqrt(variance + variance.dtype.type(call.attr("epsilon", 1e-4)))
    centered = x - mean.reshape(shape)
    offset_gradient = dy.sum(axes, dtype=scale.dtype)
    products = (dy * centered).sum(axes, dtype=scale.dtype)
    scale_gradient = products * inverse
    if call.attr("is_training", True) and count:
        dx = dy - (offset_gradient / count).reshape(shape)
        centered *= (inverse * inverse * products / count).reshape(shape)
        dx -= centered
        dx *= (scale * inverse).reshape(shape)
    else:
        dx = dy * (scale * inverse).reshape(shape)
    return dx, scale_gradient, offset_gradient, nothing, nothing


@kernel("tf:BatchNormWithGlobalNormalization")
def global_batch_norm(call: "Call", x: Any, mean: Any, variance: Any, beta: Any, gamma: Any) -> Any:
    """Normalization of each channel, the last axis, with the given statistics."""
    factor = 1 / call.xp.sqrt(variance + variance.dtype.type(call.attr("variance_epsilon")))
    if call.attr("scale_after_normalization"):
        factor = factor * gamma
    return (x - mean) * factor + beta


@kernel("tf:LRN")
def response_norm(call: "Call", x: Any) -> Any:
    """Elements over a power of the sum of squares in the channels around."""
    number = x.dtype.type
    return x / _response(call, x) ** number(call.attr("beta", 0.5))


def _response(call: "Call", x: Any) -> Any:
    number = x.dtype.type
    return number(call.attr("bias", 1.0)) + number(call.attr("alpha", 1.0)) * _around(call, call.xp.square(x))


def _around(call: "Call", x: Any) -> Any:
    """Return the sums over the last axis of as many elements on both sides as ``depth_radius`` says."""
    radius, channels = min(int(call.attr("depth_radius", 5)), x.shape[-1]), x.shape[-1]
    total = x.copy()
    for shift in range(1, min(radius, channels - 1) + 1):
        total[..., shift:] += x[..., :-shift]
        total[..., :-shift] += x[..., shift:]
    return total


@kernel("tf:LRNGrad")
def response_norm_grad(call: "Call", dy: Any, x: Any, y: Any) -> Any:
    """The gradient of a response normalization."""
    number = x.dtype.type
    alpha, beta = number(call.attr("alpha", 1.0)), number(call.attr("beta", 0.5))
    total = _response(call, x)
    return dy * total**-beta - 2 * alpha * beta * x * _around(call, dy * y / total)
