"""Ops that TensorFlow fuses: a convolution or a normalization with what stands before or behind it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .elementwise import sigmoid
from .registry import kernel
from .tf_activation import elu, relu6
from .tf_batchnorm import batch_norm_grad, bias_add
from .tf_conv import conv, depthwise
from .tf_windows import channels_last

if TYPE_CHECKING:
    from .call import Call


def _finished(call: "Call", y: Any, operands: Sequence[Any]) -> Any:
    """Return a convolution with a bias, a sum, a normalization or an activation behind it, as ``fused_ops`` says."""
    xp = call.xp
    rest = iter(operands)
    for name in call.attr("fused_ops", None) or ():
        if name == "BiasAdd":
            y = bias_add(call, y, next(rest))
        elif name == "Add":
            y = y + next(rest)
        elif name == "FusedBatchNorm":
            scale, offset, mean, variance = (next(rest) for _ in range(4))
            factor = scale / xp.sqrt(variance + variance.dtype.type(call.attr("epsilon", 1e-4)))
            column = factor.reshape(-1, *(1,) * (y.ndim - 2)) if not channels_last(call) else factor
            y = bias_add(call, y * column, offset - mean * factor)
        elif name == "Relu":
            y = xp.maximum(y, 0)
        elif name == "Relu6":
            y = relu6(call, y)
        elif name == "Elu":
            y = elu(call, y)
        elif name == "LeakyRelu":
            y = xp.where(y > 0, y, y * y.dtype.type(call.attr("leakyrelu_alpha", 0.2)))
        elif name == "Tanh":
            y = xp.tanh(y)
        elif name == "Sigmoid":
            y = sigmoid(xp, y)
        elif name == "_FusedSwish":
            y = y * sigmoid(xp, y)
        elif name == "_FusedHardSwish":
            y = y * xp.clip(y + 3, 0, 6) / 6
        else:
            raise KernelError(f"{call.node.op_type} does not know one of its fused_ops. Received: {name!r}")
    return y


@kernel("tf:_FusedConv2D", "tf:_FusedConv3D")
def fused_conv(call: "Call", x: Any, w: Any, *operands: Any) -> Any:
    """A convolution and what is fused to it."""
    if call.attr("filter_format", "HWIO") != "HWIO":
        raise KernelError(f"Filters are read in the format HWIO only. Received: {call.attr('filter_format')!r}")
    return _finished(call, conv(call, x, w), operands)


@kernel("tf:_FusedDepthwiseConv2dNative")
def fused_depthwise(call: "Call", x: Any, w: Any, *operands: Any) -> Any:
    """A depthwise convolution and what is fused to it."""
    return _finished(call, depthwise(call, x, w), operands)


@kernel("tf:_FusedBatchNormGradEx")
def activated_batch_norm_grad(
    call: "Call", dy: Any, x: Any, scale: Any, mean: Any, variance: Any, _: Any, offset: Any, y: Any
) -> tuple[Any, ...]:
    """The gradient of a batch normalization with a sum and an activation behind it, which let through where the result is not 0."""
    if call.attr("activation_mode", "Identity") == "Relu":
        dy = dy * (y > 0)
    return *batch_norm_grad(call, dy, x, scale, mean, variance), dy
