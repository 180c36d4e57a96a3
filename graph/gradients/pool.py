"""Pooling. The largest of a window counts as chosen for good: the gradient of a gradient does not go to the choice."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..graph import Node, Value
from .builder import Builder, operands, same_attributes

if TYPE_CHECKING:
    from .rules import Rule


def _max_pool(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """To the largest of each window; to the first of several."""
    x, *window = operands(node)
    op = {"MaxPool": "MaxPoolGrad", "MaxPoolV2": "MaxPoolGradV2", "MaxPool3D": "MaxPool3DGrad"}[node.op_type]
    return [b.node(op, [x, node.outputs[0], dy, *window], same_attributes(node)).outputs[0]]


#: For an op on the input, the result and a gradient: the op that is its gradient by the last.
_TWINS = {
    "MaxPool3DGrad": "MaxPool3DGradGrad",
    "MaxPool3DGradGrad": "MaxPool3DGrad",
    "MaxPoolGrad": "MaxPoolGradGrad",
    "MaxPoolGradGrad": "MaxPoolGrad",
    "MaxPoolGradGradV2": "MaxPoolGradV2",
    "MaxPoolGradV2": "MaxPoolGradGradV2",
}


def _twin(b: Builder, node: Node, dd: Value) -> Sequence[Value | None]:
    """By the gradient only."""
    x, y, _, *window = operands(node)
    attributes = same_attributes(node, "explicit_paddings")
    found = b.node(_TWINS[node.op_type], [x, y, dd, *window], attributes).outputs[0]
    return [b.zeros_like(x), b.zeros_like(y), found]


def _with_argmax(b: Builder, node: Node, dy: Value | None, _: Value | None) -> Sequence[Value | None]:
    """To the largest of each window, as the second result names them."""
    if dy is None:
        return []
    return [b.node("MaxPoolGradWithArgmax", [*operands(node), dy, node.outputs[1]], same_attributes(node)).outputs[0]]


def _avg_pool(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """Shared evenly in each window."""
    return [b.node(f"{node.op_type}Grad", [b.shape(operands(node)[0]), dy], same_attributes(node)).outputs[0]]


def _avg_pool_grad(b: Builder, node: Node, dd: Value) -> Sequence[Value | None]:
    """The mean of each window."""
    return [None, b.node(node.op_type.removesuffix("Grad"), [dd], same_attributes(node)).outputs[0]]


RULES: dict[str, "Rule"] = {
    **dict.fromkeys(_TWINS, _twin),
    **dict.fromkeys(["AvgPool", "AvgPool3D"], _avg_pool),
    **dict.fromkeys(["AvgPool3DGrad", "AvgPoolGrad"], _avg_pool_grad),
    **dict.fromkeys(["MaxPool", "MaxPool3D", "MaxPoolV2"], _max_pool),
    "MaxPoolWithArgmax": _with_argmax,
}
