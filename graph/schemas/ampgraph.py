"""The few ops of ampgraph's own."""

from typing import TYPE_CHECKING

from ..schema import REQUIRED, AttrSpec, Formal, OpSchema, TypeVar

if TYPE_CHECKING:
    from ..graph import Node

_SCHEMAS = {
    # A graph input: one node per input, so that every value has a producer.
    "Input": OpSchema("Input", "ampgraph", [], [Formal("output", var="T")], [TypeVar("T")]),
    # A constant of an ONNX model that is no node there.
    "Initializer": OpSchema(
        "Initializer", "ampgraph", [], [Formal("output", var="T")], [TypeVar("T")], {"value": AttrSpec("tensor", REQUIRED)}
    ),
}


def find(op_type: str) -> OpSchema | None:
    """Return the schema of one of ampgraph's own ops, or None."""
    return _SCHEMAS.get(op_type)


def is_op(node: "Node") -> bool:
    """Whether a node is an op of the model, and not a weight or an input, which are nodes in the IR only."""
    return node.domain != "ampgraph" or node.op_type not in ("Initializer", "Input")
