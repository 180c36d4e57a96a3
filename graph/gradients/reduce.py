"""Reductions along axes."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..graph import Node, Value
from .builder import INT32, Builder, operands

if TYPE_CHECKING:
    from .rules import Rule


def _axes(b: Builder, node: Node) -> list[int] | None:
    """Return the axes reduced, counted from the front and sorted, if they are known."""
    x, axes = operands(node)[:2]
    found, rank = b.ints(axes), b.rank(x)
    return None if found is None or rank is None else sorted({axis % rank for axis in found} if rank else ())


def _from_front(b: Builder, axes: Value, rank: Value) -> Value:
    """Return axes as a vector, counted from the front; of a scalar there are none."""
    modulus = b.op("Maximum", rank, b.constant(1, INT32))
    return b.reshape(b.op("FloorMod", b.op("AddV2", b.cast(axes, INT32), rank), modulus), [-1])


def _with_ones(b: Builder, node: Node, *values: Value) -> list[Value]:
    """Return results, or gradients of them, with the axes that were reduced kept as axes of size 1."""
    if node.attr("keep_dims"):
        return list(values)
    x, axes = operands(node)[:2]
    dims, reduced = b.dims(x), _axes(b, node)
    if dims is None or reduced is None:
        shape = b.shape(x)
        rank = b.op("Size", shape)
        places = b.op("Range", b.constant(0, INT32), rank, b.constant(1, INT32))
        axes = _from_front(b, axes, rank)
        ones = b.op("Fill", b.op("Shape", axes), b.constant(1, INT32))
        shape = b.op("DynamicStitch", places, axes, shape, ones, N=2)
        return [b.reshape(value, shape) for value in values]
    kept = [1 if axis in reduced else dim for axis, dim in enumerate(dims)]
    if sum(not isinstance(dim, int) for dim in kept) <= 1:
        return [b.reshape(value, [dim if isinstance(dim, int) else -1 for dim in kept]) for value in values]
    found = []
    for value in values:
        for axis in reduced:
            value = b.node("ExpandDims", [value, b.constant(axis, INT32)]).outputs[0]
        found.append(value)
    return found


def _sum(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The same for all that were added up."""
    [dy] = _with_ones(b, node, dy)
    return [b.broadcast_like(dy, operands(node)[0])]


def _mean(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """As for a sum, divided by the number of elements."""
    x = operands(node)[0]
    assert dy.dtype is not None
    dims, reduced = b.dims(x), _axes(b, node)
    counted = None if dims is None or reduced is None else [dims[axis] for axis in reduced]
    sizes = None if counted is None else [size for size in counted if isinstance(size, int)]
    if sizes is not None and counted is not None and len(sizes) == len(counted):
        count = b.number(float(max(math.prod(sizes), 1)), dy.dtype)
    else:
        ratio = b.op("FloorDiv", b.op("Size", x), b.op("Maximum", b.op("Size", dy), b.constant(1, INT32)))
        count = b.cast(ratio, dy.dtype)
    found = _sum(b, node, dy)[0]
    assert found is not None
    return [b.div(found, count)]


def _extreme(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """Shared evenly among all that are the largest, or smallest."""
    x, axes = operands(node)[:2]
    y, dy = _with_ones(b, node, node.outputs[0], dy)
    assert dy.dtype is not None
    chosen = b.cast(b.op("Equal", y, x), dy.dtype)
    count = b.node("Sum", [chosen, axes], {"keep_dims": True}).outputs[0]
    return [b.mul(b.div(chosen, count), dy)]


def _prod(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """For each element the product of the others: of those before it and those behind it."""
    x, axes = operands(node)[:2]
    [dy] = _with_ones(b, node, dy)
    rank, reduced = b.rank(x), _axes(b, node)
    if rank is not None and reduced is not None:
        order = [*reduced, *(axis for axis in range(rank) if axis not in reduced)]
        perm, back = b.vector(order), b.vector(sorted(range(rank), key=order.__getitem__))
        count = b.constant(len(reduced), INT32)
    else:
        size = b.op("Rank", x)
        axes = _from_front(b, axes, size)
        places = b.op("Range", b.constant(0, INT32), size, b.constant(1, INT32))
        perm = b.concat([axes, b.op("ListDiff", places, axes)], 0)
        back, count = b.op("InvertPermutation", perm), b.op("Size", axes)
    moved = b.transpose(x, perm)
    shape = b.shape(moved)
    span = [b.vector([0]), b.reshape(count, [1]), b.vector([1])]
    of_reduced = b.node("StridedSlice", [shape, *span], {"begin_mask": 1}).outputs[0]
    flat = b.reshape(moved, b.concat([b.op("Prod", of_reduced, b.vector([0]), keep_dims=True), b.vector([-1])], 0))
    first = b.constant(0, INT32)
    before = b.node("Cumprod", [flat, first], {"exclusive": True}).outputs[0]
    behind = b.node("Cumprod", [flat, first], {"exclusive": True, "reverse": True}).outputs[0]
    others = b.transpose(b.reshape(b.mul(before, behind), shape), back)
    return [b.mul(dy, others)]


def _norm(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """``dy · x / y``."""
    y, dy = _with_ones(b, node, node.outputs[0], dy)
    return [b.mul(operands(node)[0], b.div(dy, y))]


def _l2_loss(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """``x · dy``."""
    return [b.mul(operands(node)[0], dy)]


RULES: dict[str, "Rule"] = {
    "EuclideanNorm": _norm,
    "L2Loss": _l2_loss,
    "Max": _extreme,
    "Mean": _mean,
    "Min": _extreme,
    "Prod": _prod,
    "Sum": _sum,
}
