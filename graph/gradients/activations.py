"""Activations, and the ops that are their gradients."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..graph import Node, Value
from .builder import Builder, operands, same_attributes
from .elementwise import Slope, unary

if TYPE_CHECKING:
    from .rules import Rule

_SLOPES: dict[str, Slope] = {
    "Elu": lambda b, x, y, dy: b.op("EluGrad", dy, y),
    "Relu": lambda b, x, y, dy: b.op("ReluGrad", dy, y),
    "Relu6": lambda b, x, y, dy: b.op("Relu6Grad", dy, y),
    "Selu": lambda b, x, y, dy: b.op("SeluGrad", dy, y),
    "Softplus": lambda b, x, y, dy: b.mul(dy, b.op("Sigmoid", x)),
    "Softsign": lambda b, x, y, dy: b.op("SoftsignGrad", dy, x),
}

#: By its second operand ``z``, the gradient of an op ``OpGrad(dy, z)``; given are builder, ``dy``, ``z`` and its result's gradient.
_CURVES: dict[str, Callable[[Builder, Value, Value, Value], Value]] = {
    "EluGrad": lambda b, dy, y, dd: b.where(b.op("Less", y, 0.0), b.mul(dd, dy), 0.0),
    "LeakyReluGrad": lambda b, dy, x, dd: b.zeros_like(x),
    "Relu6Grad": lambda b, dy, y, dd: b.zeros_like(y),
    "ReluGrad": lambda b, dy, y, dd: b.zeros_like(y),
    "SeluGrad": lambda b, dy, y, dd: b.where(b.op("Less", y, 0.0), b.mul(dd, dy), 0.0),
    "SoftplusGrad": lambda b, dy, x, dd: b.op("SigmoidGrad", b.op("Sigmoid", x), b.mul(dd, dy)),
    "SoftsignGrad": lambda b, dy, x, dd: b.mul(
        b.mul(b.mul(dd, dy), b.mul(b.op("Sign", x), -2.0)), b.op("Pow", b.add(b.op("Abs", x), 1.0), -3.0)
    ),
}


def _gradient_op(curve: Callable[[Builder, Value, Value, Value], Value]) -> "Rule":
    """Make the rule of an op ``OpGrad(dy, z)``, linear in ``dy``."""

    def rule(b: Builder, node: Node, dd: Value) -> Sequence[Value | None]:
        dy, z = operands(node)
        return [b.op(node.op_type, dd, z, **same_attributes(node)), curve(b, dy, z, dd)]

    return rule


def _leaky_relu(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    return [b.node("LeakyReluGrad", [dy, *operands(node)], same_attributes(node)).outputs[0]]


def _softmax(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """``(dy - sum(dy · y)) · y``, the sum along the last axis."""
    y = node.outputs[0]
    return [b.mul(b.sub(dy, b.sum(b.mul(dy, y), [-1], keep_dims=True)), y)]


def _log_softmax(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """``dy - sum(dy) · exp(y)``, the sum along the last axis."""
    return [b.sub(dy, b.mul(b.sum(dy, [-1], keep_dims=True), b.op("Exp", node.outputs[0])))]


RULES: dict[str, "Rule"] = {
    **{op: unary(slope) for op, slope in _SLOPES.items()},
    **{op: _gradient_op(curve) for op, curve in _CURVES.items()},
    "LeakyRelu": _leaky_relu,
    "LogSoftmax": _log_softmax,
    "Softmax": _softmax,
}
