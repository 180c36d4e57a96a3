"""Convolutions: each of the three ops, forward, by input and by filter, has the other two as its gradients."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..graph import Node, Value
from .builder import Builder, operands, same_attributes

if TYPE_CHECKING:
    from .rules import Rule

#: Forward, gradient by the input, gradient by the filter.
_FAMILIES = (
    ("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"),
    ("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"),
    ("DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"),
)


def _rules(forward: str, by_input: str, by_filter: str) -> "dict[str, Rule]":
    def conv(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
        """By the input and by the filter."""
        x, w = operands(node)
        attributes = same_attributes(node)
        dx = b.node(by_input, [b.shape(x), w, dy], attributes).outputs[0]
        return [dx, b.node(by_filter, [x, b.shape(w), dy], attributes).outputs[0]]

    def input_grad(b: Builder, node: Node, dd: Value) -> Sequence[Value | None]:
        """By the filter and by the gradient; the first operand is a shape."""
        _, w, dy = operands(node)
        attributes = same_attributes(node)
        dw = b.node(by_filter, [dd, b.shape(w), dy], attributes).outputs[0]
        return [None, dw, b.node(forward, [dd, w], attributes).outputs[0]]

    def filter_grad(b: Builder, node: Node, dd: Value) -> Sequence[Value | None]:
        """By the input and by the gradient; the second operand is a shape."""
        x, _, dy = operands(node)
        attributes = same_attributes(node)
        dx = b.node(by_input, [b.shape(x), dd, dy], attributes).outputs[0]
        return [dx, None, b.node(forward, [x, dd], attributes).outputs[0]]

    return {forward: conv, by_input: input_grad, by_filter: filter_grad}


def _dilation(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """By the input and by the filter."""
    x, w = operands(node)
    attributes = same_attributes(node)
    return [b.node(f"Dilation2DBackprop{which}", [x, w, dy], attributes).outputs[0] for which in ("Input", "Filter")]


RULES: dict[str, "Rule"] = {"Dilation2D": _dilation}
for _family in _FAMILIES:
    RULES.update(_rules(*_family))
