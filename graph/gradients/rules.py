"""The table of all rules, put together from the op families."""

import functools
from collections.abc import Callable, Mapping, Sequence

from ..errors import GraphError
from ..graph import Node, Value

#: Takes a builder, a node and the gradient of each of its results; returns the gradients of its operands.
Rule = Callable[..., Sequence[Value | None]]

#: Ops whose results do not change, or not smoothly, with their operands: the gradient is nothing.
CONSTANT = frozenset(
    [
        "Ceil",
        "Floor",
        "FloorDiv",
        "OneHot",
        "OnesLike",
        "Rint",
        "Round",
        "StopGradient",
        "TensorListConcatLists",
        "TensorListPushBackBatch",
        "TruncateDiv",
        "ZerosLike",
    ]
)


@functools.cache
def rules() -> Mapping[str, Rule]:
    """Return the rules of all ops."""
    from . import (
        activations,
        binary,
        conv,
        elementwise,
        functions,
        image,
        index,
        join,
        lists,
        loops,
        losses,
        matmul,
        norm,
        own,
        pool,
        reduce,
        rnn,
        scan,
        segment,
        shape_ops,
        slices,
        switch,
        variables,
    )

    found: dict[str, Rule] = {}
    for family in (
        *(activations, binary, conv, elementwise, functions, image, index, join, lists, loops, losses, matmul, norm, own),
        *(pool, reduce, rnn, scan, segment, shape_ops, slices, switch, variables),
    ):
        found.update(family.RULES)
    return found


def find_rule(node: Node) -> Rule:
    """Return the rule of a node's op.

    Raises:
        GraphError: If there is none.
    """
    found = rules().get(node.op_type if node.domain == "tf" else "")
    if found is None and node.op_type in node.graph.functions:
        found = rules()["PartitionedCall"]
    if found is None:
        raise GraphError(
            f"Op {node.op_type} has no gradient, and node {node} of graph {node.graph.name!r} lies on the way. If it should "
            f"count as a constant, put its results in stop_gradients."
        )
    return found
