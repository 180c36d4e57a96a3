"""Elements chosen by index: the gradient is added up where they came from."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import GraphError
from ..graph import Node, Value
from .builder import INT32, Builder, operands

if TYPE_CHECKING:
    from .rules import Rule


def gathered(b: Builder, dy: Value, indices: Value, shape: Value, axis: int, batch: int, rank: int | None) -> Value:
    """Return the gradient of a gather with respect to what it chose from.

    Args:
        b: The builder.
        dy: The gradient of the result.
        indices: What was chosen.
        shape: Shape of what was chosen from, a vector of int32.
        axis: The axis of choice, counted from the front.
        batch: Number of leading axes that both operands share.
        rank: Length of ``shape``, needed where ``axis`` or ``batch`` are not 0.
    """
    flat = b.reshape(indices, [-1])
    if axis == 0:
        rows = b.ends(shape, 0, 1)
        values = b.reshape(dy, b.concat([b.vector([-1]), b.ends(shape, 1)], 0))
        return b.op("UnsortedSegmentSum", values, flat, b.reshape(rows, []))
    assert rank is not None
    # The axis of choice goes right behind the batch, and one long axis is made of both.
    order = [*range(batch), axis, *range(batch, axis), *range(axis + 1, rank)]
    parts = [b.ends(shape, 0, axis), b.vector([-1]), b.ends(shape, axis + 1)]
    values = b.transpose(b.reshape(dy, b.concat(parts, 0)), order)
    moved = b.node("GatherV2", [shape, b.vector(order), b.constant(0, INT32)]).outputs[0]
    size = b.ends(moved, batch, batch + 1)
    if batch:
        lead = b.op("Prod", b.ends(moved, 0, batch), b.vector([0]))
        starts = b.op("Mul", b.op("Range", b.constant(0, INT32), lead, b.constant(1, INT32)), b.reshape(size, []))
        assert indices.dtype is not None
        starts = b.cast(b.reshape(starts, [-1, 1]), indices.dtype)
        flat = b.reshape(b.op("AddV2", b.reshape(indices, b.concat([b.reshape(lead, [1]), b.vector([-1])], 0)), starts), [-1])
        values = b.reshape(values, b.concat([b.vector([-1]), b.ends(moved, batch + 1)], 0))
        size = b.op("Mul", b.reshape(lead, [1]), size)
    summed = b.reshape(b.op("UnsortedSegmentSum", values, flat, b.reshape(size, [])), moved)
    return b.transpose(summed, sorted(range(rank), key=order.__getitem__))


def _gather(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The slices added up, each to where it came from."""
    x, indices = operands(node)[:2]
    rank, batch = b.rank(x), node.attr("batch_dims") or 0
    known = b.ints(operands(node)[2]) if len(node.inputs) > 2 else [0]
    index_rank = b.rank(indices)
    if known is None or ((known[0] or batch) and rank is None) or (batch < 0 and index_rank is None):
        raise GraphError(f"The gradient of {node} asks for a known axis, and for known ranks where axis or batch is not 0.")
    batch = batch + (index_rank or 0) if batch < 0 else batch
    axis = known[0] if rank is None else known[0] % rank
    return [gathered(b, dy, indices, b.shape(x), axis, batch, rank)]


def _gather_nd(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The slices added up, each to where it came from."""
    x, indices = operands(node)
    assert indices.dtype is not None
    return [b.op("ScatterNd", indices, dy, b.shape(x, indices.dtype))]


def _picked(b: Builder, dy: Value, indices: Value) -> Value:
    return b.node("GatherNd", [dy, indices]).outputs[0]


def _scatter_nd(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """To each update what became of it."""
    return [None, _picked(b, dy, operands(node)[0])]


def _scatter_add(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """To the tensor all of it, to each update what became of it."""
    picked = _picked(b, dy, operands(node)[1])
    return [dy, None, b.neg(picked) if node.op_type.endswith("Sub") else picked]


def _scatter_update(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """To the tensor what was not replaced."""
    _, indices, updates = operands(node)
    kept = b.node("TensorScatterUpdate", [dy, indices, b.zeros_like(updates)]).outputs[0]
    return [kept, None, _picked(b, dy, indices)]


def _scatter_extreme(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """Shared evenly among all that are the largest, or smallest: the tensor's own and the updates."""
    x, indices, updates = operands(node)
    y = node.outputs[0]
    assert dy.dtype is not None
    from_x = b.cast(b.op("Equal", x, y), dy.dtype)
    from_updates = b.cast(b.op("Equal", updates, _picked(b, y, indices)), dy.dtype)
    count = b.node("TensorScatterAdd", [from_x, indices, from_updates]).outputs[0]
    shared = b.div(dy, count)
    return [b.mul(from_x, shared), None, b.mul(from_updates, _picked(b, shared, indices))]


def _top_k(b: Builder, node: Node, dy: Value, _: Value | None) -> Sequence[Value | None]:
    """Each goes back to where it was along the last axis."""
    x, indices = operands(node)[0], node.outputs[1]
    sizes, found = b.sizes(x), b.sizes(indices)
    if sizes is not None and found is not None:
        rows = math.prod(sizes[:-1])
        k = b.vector([rows, found[-1]])
        starts = b.constant([[i * sizes[-1]] for i in range(rows)], INT32) if rows else b.constant(0, INT32)
        total = b.vector([math.prod(sizes)])
    else:
        shape = b.shape(x)
        last = b.reshape(b.ends(shape, -1), [])
        size = b.op("Size", x)
        k = b.concat([b.vector([-1]), b.ends(b.op("Shape", indices), -1)], 0)
        starts = b.reshape(b.op("Range", b.constant(0, INT32), size, last), [-1, 1])
        total = b.reshape(size, [1])
    flat = b.op("AddV2", b.cast(b.reshape(indices, k), INT32), starts)
    spread = b.op("ScatterNd", b.reshape(flat, [-1, 1]), b.reshape(dy, [-1]), total)
    return [b.reshape_like(spread, x)]


RULES: dict[str, "Rule"] = {
    **dict.fromkeys(["ScatterNdNonAliasingAdd", "TensorScatterAdd", "TensorScatterSub"], _scatter_add),
    **dict.fromkeys(["TensorScatterMax", "TensorScatterMin"], _scatter_extreme),
    "Gather": _gather,
    "GatherNd": _gather_nd,
    "GatherV2": _gather,
    "ScatterNd": _scatter_nd,
    "TensorScatterUpdate": _scatter_update,
    "TopK": _top_k,
    "TopKV2": _top_k,
}
