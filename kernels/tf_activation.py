"""TensorFlow's activation functions and their gradients.

A gradient is multiplied by the slope, also where that is 0: what is not finite in it goes on as NaN.
"""

from typing import TYPE_CHECKING, Any

from .elementwise import bind_relu, bounded, leaky_relu, softplus
from .registry import bound, kernel
from .values import number, wide_dtype

if TYPE_CHECKING:
    from .call import Call

#: Scale and alpha of the self-normalizing ELU.
_SCALE = 1.0507009873554805
_ALPHA = 1.6732632423543772


@kernel("tf:Relu", inplace=True)
def relu(call: "Call", x: Any) -> Any:
    """``max(x, 0)``."""
    return bounded(call.xp, "maximum", x, 0, call.out)


bound("tf:Relu")(bind_relu)


@kernel("tf:Relu6", elementwise=True)
def relu6(call: "Call", x: Any) -> Any:
    """``min(max(x, 0), 6)``."""
    return call.xp.clip(x, x.dtype.type(0), x.dtype.type(6))


@kernel("tf:Elu", elementwise=True)
def elu(call: "Call", x: Any) -> Any:
    """``exp(x) - 1`` where negative, as TensorFlow computes it: 0 near 0."""
    return call.xp.where(x < 0, call.xp.exp(call.xp.minimum(x, 0)) - 1, x)


@kernel("tf:Selu", elementwise=True)
def selu(call: "Call", x: Any) -> Any:
    """A scaled ELU."""
    number = x.dtype.type
    low = number(_SCALE * _ALPHA) * (call.xp.exp(call.xp.minimum(x, 0)) - 1)
    return call.xp.where(x < 0, low, number(_SCALE) * x)


@kernel("tf:LeakyRelu", elementwise=True)
def tf_leaky_relu(call: "Call", x: Any) -> Any:
    """``alpha * x`` where not positive."""
    return leaky_relu(call.xp, x, call.attr("alpha", 0.2))


@kernel("tf:Softplus", elementwise=True)
def tf_softplus(call: "Call", x: Any) -> Any:
    """``log(1 + exp(x))``."""
    return softplus(call.xp, x)


@kernel("tf:Softsign", elementwise=True)
def softsign(call: "Call", x: Any) -> Any:
    """``x / (1 + |x|)``."""
    return x / (1 + call.xp.abs(x))


@kernel("tf:ReluGrad", elementwise=True)
def relu_grad(call: "Call", dy: Any, x: Any) -> Any:
    """The gradient of Relu, given its operand or its result."""
    return dy * (x > 0)


@bound("tf:ReluGrad")
def bind_relu_grad(call: "Call") -> Any:
    """Bind :func:`relu_grad` of floats."""
    dtype = call.operand_dtypes[1]
    if dtype is None or dtype.kind != "float":
        return None
    greater, multiply, zero = call.xp.greater, call.xp.multiply, number(call.xp, 0, wide_dtype(dtype).numpy)
    return lambda dy, x: multiply(dy, greater(x, zero))


@kernel("tf:Relu6Grad", elementwise=True)
def relu6_grad(call: "Call", dy: Any, x: Any) -> Any:
    """The gradient of Relu6, given its operand or its result: 0 at 6."""
    return dy * ((x > 0) & (x < 6))


@kernel("tf:LeakyReluGrad", elementwise=True)
def leaky_relu_grad(call: "Call", dy: Any, x: Any) -> Any:
    """The gradient of LeakyRelu."""
    return call.xp.where(x > 0, dy, dy * dy.dtype.type(call.attr("alpha", 0.2)))


@kernel("tf:EluGrad", elementwise=True)
def elu_grad(call: "Call", dy: Any, y: Any) -> Any:
    """The gradient of Elu, given its result."""
    return call.xp.where(y < 0, (y + 1) * dy, dy)


@kernel("tf:SeluGrad", elementwise=True)
def selu_grad(call: "Call", dy: Any, y: Any) -> Any:
    """The gradient of Selu, given its result."""
    number = dy.dtype.type
    return call.xp.where(y < 0, dy * (y + number(_SCALE * _ALPHA)), dy * number(_SCALE))


@kernel("tf:SoftplusGrad", elementwise=True)
def softplus_grad(call: "Call", dy: Any, x: Any) -> Any:
    """The gradient of Softplus."""
    return dy / (call.xp.exp(-x) + 1)


@kernel("tf:SoftsignGrad", elementwise=True)
def softsign_grad(call: "Call", dy: Any, x: Any) -> Any:
    """The gradient of Softsign."""
    return dy / call.xp.square(1 + call.xp.abs(x))
