"""Variables: what was read of one has its gradient at the handle, where all reads are added up."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..dtypes import DType
from ..errors import GraphError
from ..graph import Node, Value
from .builder import INT32, Builder, operands
from .elementwise import hand_on
from .index import gathered

if TYPE_CHECKING:
    from .rules import Rule


def _shape(b: Builder, handle: Value) -> Value:
    """Return the shape of what a variable holds."""
    dims = b.held(handle)
    sizes = None if dims is None else [dim for dim in dims if isinstance(dim, int)]
    if sizes is not None and dims is not None and len(sizes) == len(dims):
        return b.vector(sizes)
    return b.op("VariableShape", handle)


def zeros_of(b: Builder, handle: Value, dtype: DType | None) -> Value:
    """Return zeros of the shape of a variable."""
    return b.op("Fill", _shape(b, handle), b.number(0.0, dtype))


def _gather(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The slices added up, each to where it came from."""
    handle, indices = operands(node)
    dims, batch = b.held(handle), node.attr("batch_dims") or 0
    if batch and dims is None:
        raise GraphError(
            f"The gradient of {node} asks for the rank of its variable, because the attribute batch_dims is {batch}."
        )
    return [gathered(b, dy, indices, _shape(b, handle), batch, batch, None if dims is None else len(dims))]


def _gather_nd(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The slices added up, each to where it came from."""
    handle, indices = operands(node)
    return [b.op("ScatterNd", b.cast(indices, INT32), dy, _shape(b, handle))]


RULES: dict[str, "Rule"] = {
    "ReadVariableOp": hand_on,
    "ResourceGather": _gather,
    "ResourceGatherNd": _gather_nd,
}
