"""Dtype inference: type variables that a node leaves out follow from its operands and its op's definition."""

from typing import TYPE_CHECKING

from ..graph import complete_types

if TYPE_CHECKING:
    from ..graph import Graph, Node


def infer_dtypes(graph: "Graph") -> "list[Node]":
    """Fill in the type variables that nodes of ``graph`` and of its functions leave out.

    A variable takes the dtype of the first operand that has it, else the tensor's of a constant, else the op
    definition's default. What is stated is never changed; what remains unknown is left out, and ``verify`` reports it.

    Returns:
        The nodes that were changed, in topological order.

    Raises:
        GraphError: If the graph has a cycle that is no loop.
    """
    changed: list[Node] = []
    for part in {graph: None, **dict.fromkeys(graph.functions.values())}:
        if not any(map(_incomplete, part.nodes)):
            continue
        for node in part.topological():
            schema = node.signature.schema
            if schema is None or not _incomplete(node):
                continue
            types = complete_types(schema, node.types, node.attributes, node.inputs)
            if types != node.types:
                node.types = types
                changed.append(node)
    return changed


def _incomplete(node: "Node") -> bool:
    return not node.types.keys() >= set(node.signature.keys)
