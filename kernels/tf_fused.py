"""Ops that TensorFlow fuses: a product, a convolution or a normalization with what stands before or behind it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .elementwise import gelu, leaky_relu, sigmoid
from .registry import kernel
from .tf_activation import elu, relu, relu6
from .tf_batchnorm import batch_norm_grad, bias_add
from .tf_conv import conv, depthwise
from .tf_matmul import matmul
from .tf_windows import channels_last

if TYPE_CHECKING:
    from .call import Call


#: Activations by their names in ``fused_ops``.
_ACTIVATIONS: dict[str, Callable[["Call", Any], Any]] = {
    "Relu": relu,
    "Relu6": relu6,
    "Elu": elu,
    "LeakyRelu": lambda call, y: leaky_relu(call.xp, y, call.attr("leakyrelu_alpha")),
    "Tanh": lambda call, y: call.xp.tanh(y),
    "Sigmoid": lambda call, y: sigmoid(call.xp, y),
    "GeluApproximate": lambda call, y: gelu(call.xp, y, True),
    "GeluExact": lambda call, y: gelu(call.xp, y),
    "_FusedSwish": lambda call, y: y * sigmoid(call.xp, y),
    "_FusedHardSwish": lambda call, y: y * call.xp.clip(y + 3, 0, 6) / 6,
}


def _finished(call: "Call", y: Any, operands: Sequence[Any]) -> Any:
    """Return a product or a convolution with a bias, a sum, a normalization or an activation behind it, as ``fused_ops`` says.

    Raises:
        KernelError: If one of these ops is not known.
    """
    rest = iter(operands)
    for name in call.attr("fused_ops", ()):
        if name == "BiasAdd":
            y = bias_add(call, y, next(rest))
        elif name == "Add":
            y = y + next(rest)
        elif name == "FusedBatchNorm":
            scale, offset, mean, variance = (next(rest) for _ in range(4))
            factor = scale / call.xp.sqrt(variance + variance.dtype.type(call.attr("epsilon")))
            column = factor if channels_last(call) else factor.reshape(-1, *(1,) * (y.ndim - 2))
            y = bias_add(call, y * column, offset - mean * factor)
        elif name in _ACTIVATIONS:
            y = _ACTIVATIONS[name](call, y)
        else:
            raise KernelError(f"{call.node.op_type} does not know one of its fused_ops. Received: {name!r}")
    return y


@kernel("tf:_FusedMatMul")
def fused_matmul(call: "Call", a: Any, b: Any, *operands: Any) -> Any:
    """A product of matrices and what is fused to it."""
    return _finished(call, matmul(call, a, b), operands)


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
