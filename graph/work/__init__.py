"""How much a node multiplies: the sizes of the matrix products that it computes, by op, from the shapes of its operands.

:func:`work_of` knows matrix products, convolutions, recurrent layers and attention, with their gradients, of TensorFlow and ONNX. What
is counted are products: a multiply-add is two FLOPs.
"""

from typing import TYPE_CHECKING

from . import attention, convolution, matrices, recurrent
from .sizes import ShapeOf, Work

if TYPE_CHECKING:
    from ..graph import Node

__all__ = ["ShapeOf", "Work", "multiplies", "work_of"]

_RULES = {**matrices.RULES, **convolution.RULES, **recurrent.RULES, **attention.RULES}


def multiplies(node: "Node") -> bool:
    """Whether a node is one of the ops that are known here."""
    return (node.domain, node.op_type) in _RULES


def work_of(node: "Node", shape_of: ShapeOf) -> Work | None:
    """Return the matrix products that a node computes; None if it computes none, or none that are known.

    Args:
        node: The node.
        shape_of: Gives the dimensions of an operand or result, or None; it is called with None for an operand that is left out.
    """
    rule = _RULES.get((node.domain, node.op_type))
    return None if rule is None else rule(node, shape_of)
