"""Ops that ONNX Runtime fuses: a product or a sum with an activation behind it."""

from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .activations import find_activations
from .conv import conv
from .elementwise import gelu, sigmoid
from .registry import kernel

if TYPE_CHECKING:
    from .call import Call


@kernel("com.microsoft:FusedMatMul", "com.microsoft:TransposeMatMul")
def fused_matmul(call: "Call", a: Any, b: Any) -> Any:
    """``alpha * A @ B``, each transposed, or with the batch axes between its two last, if so said."""
    a = _arranged(a, call.attr("transA", 0), call.attr("transBatchA", 0))
    b = _arranged(b, call.attr("transB", 0), call.attr("transBatchB", 0))
    return (a @ b) * a.dtype.type(call.attr("alpha", 1.0))


def _arranged(x: Any, transposed: int, batch: int) -> Any:
    if x.ndim < 2:
        return x
    if batch and x.ndim > 2:  # the first axis belongs behind the batch axes, before the last
        x = x.transpose(*range(1, x.ndim - 1), 0, x.ndim - 1)
    return x.swapaxes(-1, -2) if transposed else x


@kernel("com.microsoft:FusedMatMulActivation")
def fused_matmul_activation(call: "Call", a: Any, b: Any) -> Any:
    """``activation(alpha * A @ B)``, both arranged as in :func:`fused_matmul`."""
    return _activated(call, fused_matmul(call, a, b))


@kernel("com.microsoft:FusedGemm")
def fused_gemm(call: "Call", a: Any, b: Any, c: Any = None) -> Any:
    """``activation(alpha * A @ B + beta * C)``."""
    a = a.T if call.attr("transA", 0) else a
    b = b.T if call.attr("transB", 0) else b
    y = (a @ b) * a.dtype.type(call.attr("alpha", 1.0))
    return _activated(call, y if c is None else y + a.dtype.type(call.attr("beta", 1.0)) * c)


@kernel("com.microsoft:FusedConv")
def fused_conv(call: "Call", x: Any, w: Any, b: Any = None, z: Any = None) -> Any:
    """``activation(convolution + z)``."""
    y = conv(call, x, w, b)
    return _activated(call, y if z is None else y + z)


def _activated(call: "Call", y: Any) -> Any:
    """Apply the node's activation; ``activation_params``, or ``activation_alpha`` and ``_beta``, are its parameters."""
    name = call.attr("activation")
    if not name:
        return y
    params = call.attr("activation_params")
    if params is None:
        params = [value for value in (call.attr("activation_alpha"), call.attr("activation_beta")) if value is not None]
    if name == "Softmax":
        raise KernelError(f"Op {call.node.op_type} with activation Softmax has no kernel.")
    (function,) = find_activations([name], params[:1], params[1:2])
    return function(call.xp, y).astype(y.dtype)


@kernel("com.microsoft:Gelu", elementwise=True)
def runtime_gelu(call: "Call", x: Any) -> Any:
    """Gelu as it is."""
    return gelu(call.xp, x)


@kernel("com.microsoft:BiasGelu", elementwise=True)
def bias_gelu(call: "Call", x: Any, bias: Any) -> Any:
    """Gelu of a sum."""
    return gelu(call.xp, x + bias)


@kernel("com.microsoft:FastGelu", elementwise=True)
def runtime_fast_gelu(call: "Call", x: Any, bias: Any = None) -> Any:
    """Approximate gelu, of a sum if there is a bias."""
    return gelu(call.xp, x if bias is None else x + bias, True)


@kernel("com.microsoft:GemmFastGelu")
def gemm_fast_gelu(call: "Call", x: Any, w: Any, bias: Any = None) -> Any:
    """Approximate gelu of a product."""
    return gelu(call.xp, x @ w if bias is None else x @ w + bias, True)


@kernel("com.microsoft:QuickGelu", elementwise=True)
def quick_gelu(call: "Call", x: Any) -> Any:
    """``x * sigmoid(alpha * x)``."""
    return x * sigmoid(call.xp, x.dtype.type(call.attr("alpha", 1.702)) * x)


@kernel("com.microsoft:BiasSplitGelu")
def bias_split_gelu(call: "Call", x: Any, bias: Any) -> Any:
    """The left half of a sum times the gelu of the right half."""
    left, right = call.xp.split(x + bias, 2, axis=-1)
    return left * gelu(call.xp, right)


@kernel("com.microsoft:BiasAdd")
def bias_add(call: "Call", x: Any, bias: Any, skip: Any) -> Any:
    """A sum of three."""
    return x + bias + skip


@kernel("com.microsoft:BiasSoftmax")
def bias_softmax(call: "Call", x: Any, bias: Any) -> Any:
    """Softmax of a sum over all axes from ``axis`` on."""
    x = x + bias
    axes = tuple(range(call.attr("axis", 1) % x.ndim, x.ndim))
    e = call.xp.exp(x - x.max(axis=axes, keepdims=True))
    return e / e.sum(axis=axes, keepdims=True)


@kernel("com.microsoft:BiasDropout")
def bias_dropout(
    call: "Call", x: Any, bias: Any, residual: Any = None, ratio: Any = None, training: Any = None
) -> tuple[Any, Any]:
    """Dropout of a sum, and a residual."""
    xp, x = call.xp, x + bias
    share = 0.5 if ratio is None else float(ratio)
    if training is None or not bool(training) or share == 0:
        mask = xp.ones(x.shape, bool)
    else:
        mask = xp.asarray(call.rng(call.attr("seed")).random(x.shape) >= share)
        x = xp.where(mask, x / x.dtype.type(1 - share), 0)
    return x if residual is None else x + residual, mask
