"""Branches made of Switch and Merge."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..graph import Node, Value
from .builder import INT32, Builder, operands
from .variables import zeros_of

if TYPE_CHECKING:
    from .rules import Rule


def _merge(b: Builder, node: Node, dy: Value | None, _: Value | None) -> Sequence[Value | None]:
    """To the operand that came in: the gradient of the others is in a branch that is not taken."""
    if dy is None:
        return []
    came = node.outputs[1]
    return [b.node("Switch", [dy, b.op("Equal", came, b.constant(k, INT32))]).outputs[1] for k in range(len(node.inputs))]


def _switch(b: Builder, node: Node, *dys: Value | None) -> Sequence[Value | None]:
    """From the branch that was taken; zeros where that one does not use the value."""
    data, condition = operands(node)
    given = [dy for dy in dys if dy is not None]
    if len(given) < len(dys):
        handle = data.dtype is not None and data.dtype.name == "resource"
        nothing = zeros_of(b, data, given[0].dtype) if handle else b.zeros_like(data)
        empty = b.node("Switch", [nothing, condition]).outputs
        given = [zeros if dy is None else dy for zeros, dy in zip(empty, dys, strict=True)]
    return [b.node("Merge", given, {"N": len(given)}).outputs[0]]


RULES: dict[str, "Rule"] = {
    **dict.fromkeys(["Merge", "RefMerge"], _merge),
    **dict.fromkeys(["RefSwitch", "Switch"], _switch),
}
