"""Functions of two numbers or more, which broadcast: the gradient is summed back to the shape of each operand."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..graph import Node, Value
from .builder import Builder, operands

if TYPE_CHECKING:
    from .rules import Rule

#: The gradients by ``x`` and ``y`` of ``z = f(x, y)`` before they are summed; given are builder, ``x``, ``y``, ``z``, that of ``z``.
Slopes = Callable[[Builder, Value, Value, Value, Value], Sequence[Value | None]]


def _binary(slopes: Slopes) -> "Rule":
    def rule(b: Builder, node: Node, dz: Value) -> Sequence[Value | None]:
        x, y = operands(node)
        found = slopes(b, x, y, node.outputs[0], dz)
        return [None if g is None else b.sum_to(g, operand) for g, operand in zip(found, (x, y), strict=True)]

    return rule


def _chosen(compare: str) -> Slopes:
    """The gradient goes to ``x`` where the comparison holds, else to ``y``."""

    def slopes(b: Builder, x: Value, y: Value, z: Value, dz: Value) -> Sequence[Value | None]:
        first = b.op(compare, x, y)
        return [b.where(first, dz, 0.0), b.where(first, 0.0, dz)]

    return slopes


def _quotient(divide: str) -> Slopes:
    """``dz/y`` and ``-dz · x/y/y``."""

    def slopes(b: Builder, x: Value, y: Value, z: Value, dz: Value) -> Sequence[Value | None]:
        return [b.op(divide, dz, y), b.mul(dz, b.op(divide, b.op(divide, b.neg(x), y), y))]

    return slopes


def _squared_difference(b: Builder, x: Value, y: Value, z: Value, dz: Value) -> Sequence[Value | None]:
    dx = b.mul(b.mul(dz, 2.0), b.sub(x, y))
    return [dx, b.neg(dx)]


def _pow(b: Builder, x: Value, y: Value, z: Value, dz: Value) -> Sequence[Value | None]:
    """The logarithm counts as 0 where ``x`` is not positive."""
    positive = b.op("Greater", x, 0.0)
    log = b.where(positive, b.op("Log", b.where(positive, x, 1.0)), 0.0)
    return [b.mul(b.mul(dz, y), b.op("Pow", x, b.sub(y, 1.0))), b.mul(dz, b.mul(z, log))]


def _floor_mod(b: Builder, x: Value, y: Value, z: Value, dz: Value) -> Sequence[Value | None]:
    """``x - floor(x/y) · y``, whose floor counts as a constant."""
    return [dz, b.neg(b.mul(dz, b.op("FloorDiv", x, y)))]


def _atan2(b: Builder, y: Value, x: Value, z: Value, dz: Value) -> Sequence[Value | None]:
    part = b.div(dz, b.add(b.op("Square", x), b.op("Square", y)))
    return [b.mul(x, part), b.neg(b.mul(y, part))]


def _not_zero(b: Builder, x: Value) -> Value:
    assert x.dtype is not None
    return b.cast(b.op("NotEqual", x, 0.0), x.dtype)


def _xlogy(b: Builder, x: Value, y: Value, z: Value, dz: Value) -> Sequence[Value | None]:
    return [b.mul(dz, b.op("Xlogy", _not_zero(b, x), y)), b.mul(dz, b.op("Xdivy", x, y))]


def _xlog1py(b: Builder, x: Value, y: Value, z: Value, dz: Value) -> Sequence[Value | None]:
    return [b.mul(dz, b.op("Xlog1py", _not_zero(b, x), y)), b.mul(dz, b.op("Xdivy", x, b.add(y, 1.0)))]


def _xdivy(b: Builder, x: Value, y: Value, z: Value, dz: Value) -> Sequence[Value | None]:
    by_y = b.op("Xdivy", b.neg(x), b.op("Square", y))
    return [b.mul(dz, b.op("Xdivy", _not_zero(b, x), y)), b.mul(dz, by_y)]


def _mul_no_nan(b: Builder, x: Value, y: Value, z: Value, dz: Value) -> Sequence[Value | None]:
    return [b.op("MulNoNan", dz, y), b.op("MulNoNan", x, dz)]


_SLOPES: dict[str, Slopes] = {
    "Add": lambda b, x, y, z, dz: [dz, dz],
    "AddV2": lambda b, x, y, z, dz: [dz, dz],
    "Atan2": _atan2,
    "Div": _quotient("RealDiv"),
    "DivNoNan": _quotient("DivNoNan"),
    "FloorMod": _floor_mod,
    "Maximum": _chosen("GreaterEqual"),
    "Minimum": _chosen("LessEqual"),
    "Mul": lambda b, x, y, z, dz: [b.mul(dz, y), b.mul(x, dz)],
    "MulNoNan": _mul_no_nan,
    "Pow": _pow,
    "RealDiv": _quotient("RealDiv"),
    "SquaredDifference": _squared_difference,
    "Sub": lambda b, x, y, z, dz: [dz, b.neg(dz)],
    "Xdivy": _xdivy,
    "Xlog1py": _xlog1py,
    "Xlogy": _xlogy,
}


def _add_n(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The same for every operand."""
    return [dy] * len(node.inputs)


def _clip(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """To ``x`` between the bounds, else to the bound."""
    x, low, high = operands(node)
    below, above = b.op("Less", x, low), b.op("Greater", x, high)
    return [
        b.where(b.op("LogicalOr", below, above), 0.0, dy),
        b.sum_to(b.where(below, dy, 0.0), low),
        b.sum_to(b.where(above, dy, 0.0), high),
    ]


def _select(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The condition, which may be one for each row, chooses again."""
    condition = operands(node)[0]
    zeros = b.zeros_like(dy)
    chosen = (b.node("Select", [condition, *pair]).outputs[0] for pair in ((dy, zeros), (zeros, dy)))
    return [None, *chosen]


def _select_v2(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The condition chooses again, and broadcasting is undone."""
    condition, x, y = operands(node)
    return [None, b.sum_to(b.where(condition, dy, 0.0), x), b.sum_to(b.where(condition, 0.0, dy), y)]


RULES: dict[str, "Rule"] = {
    **{op: _binary(slopes) for op, slopes in _SLOPES.items()},
    "AccumulateNV2": _add_n,
    "AddN": _add_n,
    "ClipByValue": _clip,
    "Select": _select,
    "SelectV2": _select_v2,
}
