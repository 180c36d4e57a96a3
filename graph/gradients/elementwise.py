"""Functions of one number, and the ops that are gradients of some."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..errors import GraphError
from ..graph import Node, Value
from .builder import Builder, operands

if TYPE_CHECKING:
    from .rules import Rule

#: The gradient of ``y = f(x)``, given builder, ``x``, ``y`` and the gradient of ``y``.
Slope = Callable[[Builder, Value, Value, Value], Value]


def unary(slope: Slope) -> "Rule":
    """Make a rule of the slope of a function."""

    def rule(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
        return [slope(b, operands(node)[0], node.outputs[0], dy)]

    return rule


def _reciprocal_sqrt(b: Builder, x: Value) -> Value:
    """``1 / sqrt(1 - x²)``."""
    return b.op("Rsqrt", b.sub(1.0, b.op("Square", x)))


def _gauss(b: Builder, x: Value, dy: Value) -> Value:
    """The gradient of the error function: ``dy · 2/sqrt(pi) · exp(-x²)``."""
    return b.mul(dy, b.mul(b.op("Exp", b.neg(b.op("Square", x))), 2 / math.sqrt(math.pi)))


def _bessel_i1(b: Builder, x: Value, y: Value, dy: Value) -> Value:
    zero = b.op("Equal", x, 0.0)
    safe = b.where(zero, 1.0, x)
    return b.mul(dy, b.where(zero, 1.0 / 2, b.sub(b.op("BesselI0", safe), b.div(y, safe))))


def _bessel_i1e(b: Builder, x: Value, y: Value, dy: Value) -> Value:
    zero = b.op("Equal", x, 0.0)
    safe = b.where(zero, 1.0, x)
    slope = b.sub(b.op("BesselI0e", safe), b.mul(y, b.add(b.op("Sign", safe), b.op("Reciprocal", safe))))
    return b.mul(dy, b.where(zero, 1.0 / 2, slope))


_SLOPES: dict[str, Slope] = {
    "Abs": lambda b, x, y, dy: b.mul(dy, b.op("Sign", x)),
    "Acos": lambda b, x, y, dy: b.neg(b.mul(dy, _reciprocal_sqrt(b, x))),
    "Acosh": lambda b, x, y, dy: b.div(dy, b.op("Sinh", y)),
    "Asin": lambda b, x, y, dy: b.mul(dy, _reciprocal_sqrt(b, x)),
    "Asinh": lambda b, x, y, dy: b.div(dy, b.op("Cosh", y)),
    "Atan": lambda b, x, y, dy: b.mul(dy, b.op("Reciprocal", b.add(b.op("Square", x), 1.0))),
    "Atanh": lambda b, x, y, dy: b.mul(dy, b.op("Reciprocal", b.sub(1.0, b.op("Square", x)))),
    "BesselI0": lambda b, x, y, dy: b.mul(dy, b.op("BesselI1", x)),
    "BesselI0e": lambda b, x, y, dy: b.mul(dy, b.sub(b.op("BesselI1e", x), b.mul(b.op("Sign", x), y))),
    "BesselI1": _bessel_i1,
    "BesselI1e": _bessel_i1e,
    "Cos": lambda b, x, y, dy: b.neg(b.mul(dy, b.op("Sin", x))),
    "Cosh": lambda b, x, y, dy: b.mul(dy, b.op("Sinh", x)),
    "Digamma": lambda b, x, y, dy: b.mul(dy, b.op("Polygamma", b.op("OnesLike", x), x)),
    "Erf": lambda b, x, y, dy: _gauss(b, x, dy),
    "Erfc": lambda b, x, y, dy: b.neg(_gauss(b, x, dy)),
    "Erfinv": lambda b, x, y, dy: b.mul(dy, b.mul(b.op("Exp", b.op("Square", y)), math.sqrt(math.pi) / 2)),
    "Exp": lambda b, x, y, dy: b.mul(dy, y),
    "Expm1": lambda b, x, y, dy: b.mul(dy, b.op("Exp", x)),
    "Inv": lambda b, x, y, dy: b.op("ReciprocalGrad", y, dy),
    "Lgamma": lambda b, x, y, dy: b.mul(dy, b.op("Digamma", x)),
    "Log": lambda b, x, y, dy: b.mul(dy, b.op("Reciprocal", x)),
    "Log1p": lambda b, x, y, dy: b.mul(dy, b.op("Reciprocal", b.add(x, 1.0))),
    "Ndtri": lambda b, x, y, dy: b.mul(dy, b.mul(b.op("Exp", b.mul(b.op("Square", y), 0.5)), math.sqrt(2 * math.pi))),
    "Neg": lambda b, x, y, dy: b.neg(dy),
    "Reciprocal": lambda b, x, y, dy: b.op("ReciprocalGrad", y, dy),
    "Rsqrt": lambda b, x, y, dy: b.op("RsqrtGrad", y, dy),
    "Sigmoid": lambda b, x, y, dy: b.op("SigmoidGrad", y, dy),
    "Sign": lambda b, x, y, dy: b.zeros_like(x),
    "Sin": lambda b, x, y, dy: b.mul(dy, b.op("Cos", x)),
    "Sinh": lambda b, x, y, dy: b.mul(dy, b.op("Cosh", x)),
    "Sqrt": lambda b, x, y, dy: b.op("SqrtGrad", y, dy),
    "Square": lambda b, x, y, dy: b.mul(dy, b.mul(x, 2.0)),
    "Tan": lambda b, x, y, dy: b.mul(dy, b.op("Square", b.op("Reciprocal", b.op("Cos", x)))),
    "Tanh": lambda b, x, y, dy: b.op("TanhGrad", y, dy),
}


def _slope_of_y(curve: Slope) -> "Rule":
    """Make the rule of an op ``OpGrad(y, dy)``, linear in ``dy``; ``curve`` is its gradient by ``y``."""

    def rule(b: Builder, node: Node, dd: Value) -> Sequence[Value | None]:
        y, dy = operands(node)
        return [curve(b, y, dy, dd), b.op(node.op_type, y, dd)]

    return rule


_CURVES: dict[str, Slope] = {
    "InvGrad": lambda b, y, dy, dd: b.mul(b.mul(dd, -2.0), b.mul(dy, y)),
    "ReciprocalGrad": lambda b, y, dy, dd: b.mul(b.mul(dd, -2.0), b.mul(dy, y)),
    "RsqrtGrad": lambda b, y, dy, dd: b.mul(b.mul(dd, -1.5), b.mul(dy, b.op("Square", y))),
    "SigmoidGrad": lambda b, y, dy, dd: b.mul(b.mul(dd, dy), b.sub(1.0, b.mul(y, 2.0))),
    "SqrtGrad": lambda b, y, dy, dd: b.neg(b.mul(b.div(dd, y), b.op("SqrtGrad", y, dy))),
    "TanhGrad": lambda b, y, dy, dd: b.mul(b.mul(dd, -2.0), b.mul(dy, y)),
}


def hand_on(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """What comes in goes out."""
    return [dy]


def _cast(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The gradient in the dtype that the operand had."""
    return [b.cast(dy, node.types["SrcT"])]


def _check_numerics(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The gradient is checked as the value was."""
    message = b"Not a number (NaN) or infinity (Inf) values detected in gradient. "
    return [b.op("CheckNumerics", dy, message=message + (node.attr("message") or b""))]


def _prevent(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    raise GraphError(f"Node {node} says that it has no gradient: {(node.attr('message') or b'').decode('utf-8', 'replace')}")


def _polygamma(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The next polygamma; there is no gradient by which one it is."""
    a, x = operands(node)
    return [None, b.sum_to(b.mul(dy, b.op("Polygamma", b.add(a, 1.0), x)), x)]


RULES: dict[str, "Rule"] = {
    **{op: unary(slope) for op, slope in _SLOPES.items()},
    **{op: _slope_of_y(curve) for op, curve in _CURVES.items()},
    **dict.fromkeys(["EnsureShape", "Identity", "PlaceholderWithDefault", "Print", "RefIdentity", "Snapshot"], hand_on),
    "Cast": _cast,
    "CheckNumerics": _check_numerics,
    "Polygamma": _polygamma,
    "PreventGradient": _prevent,
}
