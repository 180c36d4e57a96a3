"""TensorFlow: functions of two and more numbers, comparisons, and choices between them. Operands are broadcast."""

import functools
import operator
from collections.abc import Callable
from typing import Any

from ..graph.errors import KernelError
from .binary import bind_broadcast, divide, float_power
from .call import Call
from .registry import bound, kernel
from .room import check_broadcast
from .values import as_declared, widened


def checked(call: Call, *operands: Any) -> tuple[Any, ...]:
    """Return the operands, which memory has room for when they are broadcast."""
    if any(operand.shape != operands[0].shape for operand in operands):
        check_broadcast(call.xp, *operands)
    return operands


def _plain(name: str) -> Callable[..., Any]:
    return lambda call, a, b: getattr(call.xp, name)(*checked(call, a, b))


def _inplace(name: str) -> Callable[..., Any]:
    return lambda call, a, b: getattr(call.xp, name)(*checked(call, a, b), out=call.out)


for _op, _name in {
    "Add": "add",
    "AddV2": "add",
    "Maximum": "maximum",
    "Minimum": "minimum",
    "Mul": "multiply",
    "Sub": "subtract",
}.items():
    kernel(f"tf:{_op}", inplace=True)(_inplace(_name))
    bound(f"tf:{_op}")(bind_broadcast(_name))

for _op, _name in {
    "Atan2": "arctan2",
    "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
    "Greater": "greater",
    "GreaterEqual": "greater_equal",
    "Less": "less",
    "LessEqual": "less_equal",
    "LogicalAnd": "logical_and",
    "LogicalOr": "logical_or",
    "NextAfter": "nextafter",
}.items():
    kernel(f"tf:{_op}", elementwise=True)(_plain(_name))
    bound(f"tf:{_op}")(bind_broadcast(_name))


def _equality(name: str) -> Callable[..., Any]:
    def compare(call: Call, a: Any, b: Any) -> Any:
        if not call.attr("incompatible_shape_error", True):
            try:
                call.xp.broadcast_shapes(a.shape, b.shape)
            except ValueError:  # then one answer for all
                return call.xp.asarray(name == "not_equal")
        return getattr(call.xp, name)(*checked(call, a, b)).astype(bool, copy=False)

    return compare


kernel("tf:Equal", elementwise=True)(_equality("equal"))
kernel("tf:NotEqual", elementwise=True)(_equality("not_equal"))


@kernel("tf:ApproximateEqual", elementwise=True)
def _approximate_equal(call: Call, a: Any, b: Any) -> Any:
    return call.xp.abs(a - b) <= call.xp.asarray(call.attr("tolerance")).astype(a.dtype)


def _divisor(call: Call, b: Any) -> Any:
    """Return a divisor, which is not 0 if it is an integer."""
    if b.dtype.kind in "iu" and b.size and not b.all():
        raise KernelError(f"{call.node.op_type}: integers are not divided by 0.")
    return b


@kernel("tf:Div", "tf:RealDiv", "tf:TruncateDiv", elementwise=True)
def _div(call: Call, a: Any, b: Any) -> Any:
    a, b = checked(call, a, _divisor(call, b))
    quotient = _flushed(call.xp, divide(call.xp, a, b))
    return call.xp.trunc(quotient) if call.node.op_type == "TruncateDiv" and a.dtype.kind == "f" else quotient


@kernel("tf:FloorDiv", elementwise=True)
def _floor_div(call: Call, a: Any, b: Any) -> Any:
    a, b = checked(call, a, _divisor(call, b))
    xp = call.xp
    if a.dtype.kind in "iu":
        return xp.floor_divide(a, b)
    quotient = as_declared(_flushed(xp, a / b), call.dtypes[0])  # TensorFlow rounds it before it takes the floor
    return xp.floor(widened(quotient))


def _flushed(xp: Any, quotient: Any) -> Any:
    """Return quotients with 0 for those below the normal numbers, as TensorFlow has it: 1 divided by a huge loss scale is 0."""
    if quotient.dtype.kind != "f":
        return quotient
    return xp.where(xp.abs(quotient) < xp.finfo(quotient.dtype).tiny, 0 * quotient, quotient)


@kernel("tf:Mod", "tf:TruncateMod", elementwise=True)
def _truncate_mod(call: Call, a: Any, b: Any) -> Any:
    return call.xp.fmod(*checked(call, a, _divisor(call, b)))


@kernel("tf:FloorMod", elementwise=True)
def _floor_mod(call: Call, a: Any, b: Any) -> Any:
    xp = call.xp
    a, b = checked(call, a, _divisor(call, b))
    if a.dtype.kind in "iu":
        return xp.mod(a, b)
    rest = xp.fmod(a, b)
    return xp.where((rest != 0) & ((b < 0) != (rest < 0)), rest + b, rest)


@kernel("tf:Pow", elementwise=True)
def _pow(call: Call, a: Any, b: Any) -> Any:
    if b.dtype.kind == "i" and b.size and b.min() < 0:
        raise KernelError("Pow: integers have no negative powers.")
    if a.dtype.kind not in "iu":
        checked(call, a, b)
        return call.xp.power(a, b) if a.dtype.kind == "c" else float_power(call.xp, a, b)
    checked(call, a, b)
    return call.xp.power(a.astype(call.xp.uint64), b.astype(call.xp.uint64)).astype(a.dtype)  # right modulo 2**64


@kernel("tf:SquaredDifference", elementwise=True)
def _squared_difference(call: Call, a: Any, b: Any) -> Any:
    a, b = checked(call, a, b)
    difference = a - b
    return difference * difference.conj() if difference.dtype.kind == "c" else call.xp.square(difference)


def _unless(is_zero: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of two numbers that is 0 where one of them is, whatever the other."""

    def compute(call: Call, a: Any, b: Any) -> Any:
        pair = checked(call, a, b)
        return call.xp.where(pair[is_zero] == 0, a.dtype.type(0), function(call.xp, a, b))

    return compute


kernel("tf:DivNoNan", elementwise=True)(_unless(1, lambda xp, a, b: a / b))
kernel("tf:MulNoNan", elementwise=True)(_unless(1, lambda xp, a, b: a * b))
kernel("tf:Xdivy", elementwise=True)(_unless(0, lambda xp, a, b: a / b))
kernel("tf:Xlogy", elementwise=True)(_unless(0, lambda xp, a, b: a * xp.log(b)))
kernel("tf:Xlog1py", elementwise=True)(_unless(0, lambda xp, a, b: a * xp.log1p(b)))


@kernel("tf:LeftShift", "tf:RightShift", elementwise=True)
def _shift(call: Call, a: Any, b: Any) -> Any:
    """Shift bits, at least by none and at most by all but one."""
    a, b = checked(call, a, b)
    count = call.xp.clip(b, 0, 8 * b.dtype.itemsize - 1)
    return call.xp.left_shift(a, count) if call.node.op_type == "LeftShift" else call.xp.right_shift(a, count)


@kernel("tf:Complex")
def _complex(call: Call, real: Any, imaginary: Any) -> Any:
    real, imaginary = checked(call, real, imaginary)
    result = call.xp.empty(call.xp.broadcast_shapes(real.shape, imaginary.shape), dtype=call.dtype("Tout").numpy)
    result.real, result.imag = real, imaginary
    return result


@kernel("tf:AddN", "tf:AccumulateNV2", elementwise=True)
def _add_n(call: Call, *operands: Any) -> Any:
    return functools.reduce(operator.add, operands)  # lists of tensors, too


@kernel("tf:ClipByValue")
def _clip_by_value(call: Call, x: Any, low: Any, high: Any) -> Any:
    return call.xp.maximum(call.xp.minimum(x, high), low)


@kernel("tf:Select", moves=True)
def _select(call: Call, condition: Any, a: Any, b: Any) -> Any:
    """Choose rows, where the condition is a vector, or elements."""
    if condition.ndim == 1 and a.ndim > 1:
        condition = condition.reshape(-1, *[1] * (a.ndim - 1))
    return call.xp.where(condition, a, b)


@kernel("tf:SelectV2", moves=True, elementwise=True)
def _select_v2(call: Call, condition: Any, a: Any, b: Any) -> Any:
    return call.xp.where(*checked(call, condition, a, b))
