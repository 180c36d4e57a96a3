"""Reductions along constant axes, and ops that search along an axis."""

from typing import TYPE_CHECKING

from ..types import Dim
from .dims import Conflict, Dims, axis_index, replaced

if TYPE_CHECKING:
    from .call import Call, Rule


def reduction(call: "Call") -> list[Dims]:
    """The operand without the axes that operand 1 holds, or with 1 in their place."""
    dims, axes = call.shape(0), call.known(1)
    keep = call.flag("keep_dims")
    axes_shape = call.shape(1)
    if axes_shape is not None and len(axes_shape) > 1:
        raise Conflict("the axes of a reduction should be a scalar or a vector")
    if dims is None:
        return [None]
    if keep is None:
        return [None]
    if axes is None:
        count = 1 if axes_shape == () else axes_shape[0] if axes_shape else None
        if keep:
            return [(None,) * len(dims)]
        if count == 0:
            return [dims]
        # All axes of a vector: only reducing over its axis is left.
        return [() if len(dims) == 1 and count == 1 else None]
    gone = {axis_index(axis, len(dims)) for axis in axes}
    if keep:
        return [tuple(1 if i in gone else dim for i, dim in enumerate(dims))]
    return [tuple(dim for i, dim in enumerate(dims) if i not in gone)]


def arg_reduction(call: "Call") -> list[Dims]:
    """The operand without one axis."""
    dims, axis = call.shape(0), call.scalar(1)
    if dims is None:
        return [None]
    if not isinstance(axis, int):
        return [(None,) * (len(dims) - 1) if dims else None]
    i = axis_index(axis, len(dims))
    return [dims[:i] + dims[i + 1 :]]


def top_k(call: "Call") -> list[Dims]:
    """The ``k`` largest along the last axis, and their indices."""
    dims = call.shape(0)
    k: Dim = call.integer("k") if call.node.op_type == "TopK" else call.scalar(1)
    if dims is None:
        return [None, None]
    if not dims:
        raise Conflict("the operand should have at least one dimension")
    if isinstance(k, int):
        if k < 0:
            raise Conflict(f"k should not be negative, but is {k}")
        if isinstance(dims[-1], int) and dims[-1] < k:
            raise Conflict(f"the last dimension has {dims[-1]} elements, fewer than k = {k}")
    return [replaced(dims, len(dims) - 1, k)] * 2


def nth_element(call: "Call") -> list[Dims]:
    """One element along the last axis."""
    dims = call.shape(0)
    return [dims[:-1] if dims else None]


RULES: "dict[str, Rule]" = {
    **dict.fromkeys(["All", "Any", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum"], reduction),
    "ArgMax": arg_reduction,
    "ArgMin": arg_reduction,
    "NthElement": nth_element,
    "TopK": top_k,
    "TopKV2": top_k,
}
