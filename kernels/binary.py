"""Functions of two and more numbers: arithmetic, comparisons, logic and bits. Operands are broadcast."""

import functools
from collections.abc import Callable
from typing import Any

from .call import Call
from .registry import bound, kernel
from .room import FEW, check_broadcast


def _aligned(call: Call, a: Any, b: Any) -> Any:
    """Return ``b`` as versions before 7 align it with ``a``: at ``axis``, where broadcasting is asked for."""
    axis = call.attr("axis") if call.opset < 7 and call.attr("broadcast") else None
    if axis is None or not b.ndim:
        return b
    axis %= a.ndim
    return b.reshape(*b.shape, *[1] * (a.ndim - axis - b.ndim))


def _operands(call: Call, a: Any, b: Any) -> tuple[Any, Any]:
    b = _aligned(call, a, b)
    if a.shape != b.shape:
        check_broadcast(call.xp, a, b)
    return a, b


def bind_broadcast(name: str) -> Callable[..., Any]:
    """Return what binds a kernel that calls a function of the array module on two operands, which are broadcast."""

    def bind(call: Call) -> Any:
        function = getattr(call.xp, name)
        size = call.node.outputs[0].shape.size
        if size is not None and size <= FEW:
            return function
        if any(constant is not None and constant.size == 1 for constant in (call.constant(0), call.constant(1))):
            return function

        def compute(a: Any, b: Any) -> Any:
            if a.size * b.size > FEW and a.shape != b.shape:
                check_broadcast(call.xp, a, b)
            return function(a, b)

        return compute

    return bind


def _bind(name: str) -> Callable[..., Any]:
    """Return what binds a kernel as :func:`bind_broadcast`, but in versions that broadcast in another way."""
    bind = bind_broadcast(name)
    return lambda call: None if call.opset < 7 else bind(call)


def _binary(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda call, a, b: function(call.xp, *_operands(call, a, b))


def _plain(name: str) -> Callable[..., Any]:
    return lambda xp, a, b: getattr(xp, name)(a, b)


def _shift(call: Call, a: Any, b: Any) -> Any:
    """Shifting by all bits or more gives 0, or -1 for negative numbers to the right: NumPy says so where C leaves it open."""
    return call.xp.left_shift(a, b) if call.attr("direction") == "LEFT" else call.xp.right_shift(a, b)


def divide(xp: Any, a: Any, b: Any, out: Any = None) -> Any:
    """Return the quotient; that of integers is cut off towards zero."""
    if a.dtype.kind not in "iu":
        return xp.true_divide(a, b, out=out)
    quotient = xp.floor_divide(a, b)
    if a.dtype.kind == "i":
        quotient += ((a < 0) != (b < 0)) & (quotient * b != a) & (b != 0)
    return quotient


def float_power(xp: Any, a: Any, b: Any) -> Any:
    """Return the power of floats of one dtype, whose bits do not depend on how the operands lie in memory.

    NumPy has other functions for squares, roots and reciprocals, and takes them where the exponents happen to be one element of
    memory. Here every element has them.
    """
    known = ((2, xp.square), (0.5, lambda x: xp.where(x == -xp.inf, -x, xp.sqrt(x) + 0)), (-1, xp.reciprocal))  # (-0)**0.5 is 0
    if b.size == 1 and b.ndim <= a.ndim:
        function = next((function for exponent, function in known if b == exponent), None)
        return xp.power(a, b) if function is None else function(a)
    result = xp.power(a, b)
    for exponent, function in known:
        there = b == exponent
        if there.any():
            result = xp.where(there, function(a), result)
    return result


def _power(xp: Any, a: Any, b: Any) -> Any:
    """Return the power: of integers to floating powers computed in float64, to integers modulo 2 to their number of bits.

    A negative power of an integer is a fraction, cut off to 0, except of 1 and -1.
    """
    if a.dtype.kind not in "iu":
        return float_power(xp, a, b.astype(a.dtype, copy=False))
    if b.dtype.kind == "f":
        return xp.trunc(xp.power(a.astype(xp.float64), b.astype(xp.float64))).astype(a.dtype)
    result = xp.power(a.astype(xp.uint64), b.astype(xp.uint64)).astype(a.dtype)  # right modulo 2**64, so in fewer bits too
    if b.dtype.kind == "u" or not (b < 0).any():
        return result
    inverse = xp.where(b % 2 == 0, a * a, a)  # of 1 and -1, the only integers that have one
    return xp.where(b < 0, xp.where(xp.abs(a) == 1, inverse, 0), result).astype(a.dtype)


def _modulo(call: Call, a: Any, b: Any) -> Any:
    """The sign is the dividend's with ``fmod``, else the divisor's."""
    return call.xp.fmod(a, b) if call.attr("fmod", 0) else call.xp.mod(a, b)


for _op, _name in {
    "And": "logical_and",
    "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
    "Equal": "equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
    "Less": "less",
    "LessOrEqual": "less_equal",
    "Or": "logical_or",
    "Xor": "logical_xor",
}.items():
    kernel(_op, elementwise=True)(_binary(_plain(_name)))
    bound(_op)(_bind(_name))


def _arithmetic(name: str) -> Callable[..., Any]:
    return lambda call, a, b: getattr(call.xp, name)(*_operands(call, a, b), out=call.out)


for _op, _name in {"Add": "add", "Mul": "multiply", "Sub": "subtract"}.items():
    kernel(_op, inplace=True)(_arithmetic(_name))
    bound(_op)(_bind(_name))
kernel("Div", inplace=True)(lambda call, a, b: divide(call.xp, *_operands(call, a, b), call.out))
kernel("Pow", elementwise=True)(_binary(_power))
kernel("BitShift", elementwise=True)(_shift)
kernel("Mod", elementwise=True)(_modulo)


def _folded(call: Call, name: str, operands: tuple[Any, ...]) -> Any:
    check_broadcast(call.xp, *operands)
    return functools.reduce(getattr(call.xp, name), operands)


def _many(name: str) -> Callable[..., Any]:
    return lambda call, *operands: _folded(call, name, operands)


for _op, _name in {"Max": "maximum", "Min": "minimum", "Sum": "add"}.items():
    kernel(_op, elementwise=True)(_many(_name))


@kernel("Mean", elementwise=True)
def _mean(call: Call, *operands: Any) -> Any:
    total = _folded(call, "add", operands)
    return total / total.dtype.type(len(operands))
