"""Gradients that somebody gave for a part of a graph: see :mod:`~ampgraph.graph.tracing.own_gradient`.

The part ends in an ``IdentityN`` whose attribute names a function. The operands of the node are the results of the part, then the
arguments that have a gradient, then what else the function uses. The function takes all these and the gradients of the results, and
returns those of the arguments.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import GraphError
from ..graph import Graph, Node, Value
from .builder import Builder, needed, operands
from .functions import CUSTOM, function_of

if TYPE_CHECKING:
    from .rules import Rule


def _identity_n(b: Builder, node: Node, *dys: Value | None) -> Sequence[Value | None]:
    """Operand k is result k, where no function says otherwise."""
    reference = node.attributes.get(CUSTOM)
    if reference is None:
        return dys
    function = node.graph.functions[function_of(node, reference)]
    values = operands(node)
    results, arguments = len(function.inputs) - len(values), len(function.outputs)
    if results < 0 or results + arguments > len(values):
        raise GraphError(
            f"The gradient of {node} takes its {len(values)} operands and the gradients of those that are results, and gives those of "
            f"others. Received: function {function.name!r} from {len(function.inputs)} to {arguments}"
        )
    pairs = zip(values[:results], dys, strict=False)
    values += [b.zeros_like(y) if dy is None else dy for y, dy in pairs]
    for value, formal in zip(values, function.inputs, strict=True):
        if value.dtype is not formal.dtype:
            raise GraphError(
                f"The gradient of {node} is a function of {formal.dtype}, where the node has {value.dtype}. Differentiate a graph "
                "before it is rewritten."
            )
    return [*[None] * results, *_copy(b, function, values)]


def _copy(b: Builder, function: Graph, values: Sequence[Value]) -> list[Value]:
    """Add the nodes of a function, applied to values; return its results."""
    known = dict(zip(function.inputs, values, strict=True))
    for node in needed(function.outputs, function.inputs):
        twin = b.node(node.op_type, [known[value] for value in operands(node)], node.attributes, node.types)
        known.update(zip(node.outputs, twin.outputs, strict=True))
    return [known[value] for value in function.outputs]


RULES: dict[str, "Rule"] = {"IdentityN": _identity_n}
