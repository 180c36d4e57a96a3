"""Functions of one number: roots, exponentials, trigonometry, activations."""

import functools
import math
from collections.abc import Callable
from typing import Any

from .call import Call
from .registry import bound, kernel
from .values import number, wide_dtype

#: ONNX's op -> the function of NumPy that it is. TensorFlow calls most of them the same.
UNARY = {
    "Acos": "arccos",
    "Acosh": "arccosh",
    "Asin": "arcsin",
    "Asinh": "arcsinh",
    "Atan": "arctan",
    "Atanh": "arctanh",
    "BitwiseNot": "invert",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Exp": "exp",
    "Floor": "floor",
    "IsNaN": "isnan",
    "Log": "log",
    "Neg": "negative",
    "Not": "logical_not",
    "Reciprocal": "reciprocal",
    "Round": "rint",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
}


def in_place(name: str) -> Callable[..., Any]:
    """Return the kernel that calls a function of the array module, over its operand where that is free."""
    return lambda call, x: getattr(call.xp, name)(x, out=call.out)


def bind_function(name: str) -> Callable[..., Any]:
    """Return what binds a kernel that calls a function of the array module on its operand."""
    return lambda call: getattr(call.xp, name)


for _op, _name in UNARY.items():
    kernel(_op, inplace=_op not in ("IsNaN", "Not"), elementwise=True)(in_place(_name))
    bound(_op)(bind_function(_name))


@kernel("Abs", elementwise=True)
def _abs(call: Call, x: Any) -> Any:
    return x if x.dtype.kind == "u" else call.xp.abs(x)


@kernel("IsInf", elementwise=True)
def _is_inf(call: Call, x: Any) -> Any:
    found = call.xp.isinf(x)
    if not call.attr("detect_positive", 1):
        found &= x < 0
    if not call.attr("detect_negative", 1):
        found &= x > 0
    return found


#: Elements from which on a row of a number is faster than one.
_LONG = 1 << 12


@functools.lru_cache(16)
def _row(bound: str, dtype: Any) -> Any:
    """Return a row of a number, given in hexadecimal: 0 and -0 are not the same."""
    import numpy as np

    return np.full(1 << 14, float.fromhex(bound), dtype)


def bounded(xp: Any, name: str, x: Any, bound: float, out: Any = None) -> Any:
    """Return ``maximum(x, bound)``, or ``minimum``, for one number ``bound``.

    NumPy takes three times as long with one number as with a row of them, which stands against every row of ``x``.
    """
    function = getattr(xp, name)
    if xp.__name__ != "numpy" or x.size < _LONG or x.dtype.char != "f" or not x.flags.c_contiguous:
        return function(x, x.dtype.type(bound), out=out)
    length, i = 1, x.ndim
    while i and length * x.shape[i - 1] <= 1 << 14:
        i -= 1
        length *= x.shape[i]
    lines = x.reshape(-1, length)
    result = xp.empty_like(x) if out is None else out
    function(lines, _row(float(bound).hex(), x.dtype)[:length], out=result.reshape(lines.shape))
    return result


def bind_relu(call: Call) -> Any:
    """Bind ``max(x, 0)`` of floats."""
    xp, dtype = call.xp, call.operand_dtypes[0]
    if dtype is None or dtype.kind != "float":
        return None
    zero = number(xp, 0, wide_dtype(dtype).numpy)
    return lambda x: xp.maximum(x, zero) if x.size < _LONG else bounded(xp, "maximum", x, 0)


def sigmoid(xp: Any, x: Any, out: Any = None) -> Any:
    """Return ``1 / (1 + exp(-x))``."""
    y = xp.asarray(xp.negative(x, out=out))  # of a scalar array NumPy makes a number
    xp.exp(y, out=y)
    y += 1
    return xp.reciprocal(y, out=y)


def softplus(xp: Any, x: Any) -> Any:
    """Return ``log(1 + exp(x))`` without overflow."""
    return xp.maximum(x, 0) + xp.log1p(xp.exp(-xp.abs(x)))


# erf(x) / x as a quotient of polynomials in x**2 for |x| <= 4, highest power first; fitted to math.erf by least squares.
_ERF_P = (1.98683468e-06, 0.000284561303, 0.00388310201, 0.0531009883, 0.193539295, 1.12837914)
_ERF_Q = (3.74204842e-05, 0.00118551437, 0.0152067609, 0.115347622, 0.504852291, 1.0)


def erf(xp: Any, x: Any) -> Any:
    """Return the error function, to some 3e-7 of its value for float32; to 1e-15 for float64.

    Source of the method for float64: Abramowitz and Stegun, 7.1.6, a series of positive terms.
    """
    if x.dtype == xp.float64:
        near = xp.clip(x, -6, 6)
        square = 2 * near * near
        term = near * xp.exp(-near * near) * (2 / math.sqrt(math.pi))
        total = term.copy()
        for n in range(1, 160):
            term = term * square / (2 * n + 1)
            total += term
        return xp.where(xp.abs(x) < 6, total, xp.sign(x))
    near = xp.clip(x, -4, 4)
    square = near * near
    return xp.clip(near * _polynomial(xp, _ERF_P, square) / _polynomial(xp, _ERF_Q, square), -1, 1)


def _polynomial(xp: Any, coefficients: tuple[float, ...], x: Any) -> Any:
    result = x * x.dtype.type(coefficients[0])
    for c in coefficients[1:-1]:
        result += x.dtype.type(c)
        result *= x
    result += x.dtype.type(coefficients[-1])
    return result


kernel("Erf", elementwise=True)(lambda call, x: erf(call.xp, x))
kernel("Sigmoid", inplace=True)(lambda call, x: sigmoid(call.xp, x, call.out))
kernel("Softplus", elementwise=True)(lambda call, x: softplus(call.xp, x))
kernel("Relu", inplace=True)(lambda call, x: bounded(call.xp, "maximum", x, 0, call.out))
bound("Relu")(bind_relu)
kernel("Softsign", elementwise=True)(lambda call, x: x / (1 + call.xp.abs(x)))
kernel("Mish", elementwise=True)(lambda call, x: x * call.xp.tanh(softplus(call.xp, x)))
kernel("HardSwish", elementwise=True)(lambda call, x: x * call.xp.clip(x / 6 + 0.5, 0, 1))


@kernel("Swish", elementwise=True)
def _swish(call: Call, x: Any) -> Any:
    return x * sigmoid(call.xp, x * x.dtype.type(call.attr("alpha", 1.0)))


@kernel("SwiGLU", elementwise=True)
def _swiglu(call: Call, gate: Any, x: Any) -> Any:
    return gate * sigmoid(call.xp, gate * gate.dtype.type(call.attr("alpha", 1.0))) * x


@kernel("LeakyRelu", elementwise=True)
def _leaky_relu(call: Call, x: Any) -> Any:
    return leaky_relu(call.xp, x, call.attr("alpha", 0.01))


def leaky_relu(xp: Any, x: Any, alpha: float) -> Any:
    """Return ``x``, times ``alpha`` where it is negative."""
    y = x * x.dtype.type(alpha)
    return xp.maximum(x, y, out=y if y.ndim else None) if 0 < alpha <= 1 else xp.where(x < 0, y, x)


@kernel("PRelu", elementwise=True)
def _prelu(call: Call, x: Any, slope: Any) -> Any:
    if call.opset < 7 and slope.ndim == 1 and slope.size > 1:  # one slope for each channel
        slope = slope.reshape(-1, *[1] * (x.ndim - 2))
    return call.xp.where(x < 0, x * slope, x)


@kernel("ThresholdedRelu", elementwise=True)
def _thresholded_relu(call: Call, x: Any) -> Any:
    return call.xp.where(x > x.dtype.type(call.attr("alpha", 1.0)), x, x.dtype.type(0))


@kernel("Elu", elementwise=True)
def _elu(call: Call, x: Any) -> Any:
    return call.xp.where(x > 0, x, call.xp.expm1(call.xp.minimum(x, 0)) * x.dtype.type(call.attr("alpha", 1.0)))


@kernel("Selu", elementwise=True)
def _selu(call: Call, x: Any) -> Any:
    alpha, gamma = (x.dtype.type(call.attr(name)) for name in ("alpha", "gamma"))
    return gamma * call.xp.where(x > 0, x, call.xp.expm1(call.xp.minimum(x, 0)) * alpha)


@kernel("Celu", elementwise=True)
def _celu(call: Call, x: Any) -> Any:
    alpha = x.dtype.type(call.attr("alpha", 1.0))
    return call.xp.maximum(x, 0) + call.xp.minimum(0, alpha * call.xp.expm1(x / alpha))


@kernel("HardSigmoid", elementwise=True)
def _hard_sigmoid(call: Call, x: Any) -> Any:
    return call.xp.clip(x * x.dtype.type(call.attr("alpha")) + x.dtype.type(call.attr("beta")), 0, 1)


@kernel("Shrink", elementwise=True)
def _shrink(call: Call, x: Any) -> Any:
    limit, bias = call.attr("lambd", 0.5), call.attr("bias", 0.0)
    xp = call.xp
    return xp.where(x < -limit, x + bias, xp.where(x > limit, x - bias, xp.zeros_like(x)))


def gelu(xp: Any, x: Any, is_tanh: bool = False) -> Any:
    """Return ``x * Phi(x)``, where Phi is the normal distribution, or its usual approximation with tanh."""
    half = x.dtype.type(0.5)
    if is_tanh:
        inner = x * x * x * x.dtype.type(0.044715) + x
        return half * x * (1 + xp.tanh(inner * x.dtype.type(math.sqrt(2 / math.pi))))
    return half * x * (1 + erf(xp, x * x.dtype.type(math.sqrt(0.5))))


@kernel("Gelu", elementwise=True)
def _gelu(call: Call, x: Any) -> Any:
    return gelu(call.xp, x, call.attr("approximate", "none") == "tanh")


@kernel("Clip", inplace=True)
def _clip(call: Call, x: Any, low: Any = None, high: Any = None) -> Any:
    if call.opset < 11:
        low, high = (None if call.attr(name) is None else x.dtype.type(call.attr(name)) for name in ("min", "max"))
    if low is not None and high is not None:
        return call.xp.clip(x, low, high, out=call.out)
    name, bound = ("maximum", low) if high is None else ("minimum", high)
    if bound is None:
        return x
    return bounded(call.xp, name, x, bound, call.out) if bound.dtype == "float32" else getattr(call.xp, name)(x, bound)
