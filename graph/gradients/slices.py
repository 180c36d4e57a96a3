"""Parts of a tensor, and tensors put into larger ones."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..graph import Node, Value
from .builder import Builder, operands, same_attributes

if TYPE_CHECKING:
    from .rules import Rule


def _slice(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """Zeros around it."""
    x, begin, _ = operands(node)
    full, part, first = b.sizes(x), b.sizes(node.outputs[0]), b.ints(begin)
    dtype = begin.dtype
    assert dtype is not None
    if full is not None and part is not None and first is not None:
        if full == part:
            return [dy]
        rows = [[f, n - f - p] for f, n, p in zip(first, full, part, strict=True)]
        return [b.op("Pad", dy, b.constant(rows, dtype))]
    behind = b.sub(b.sub(b.shape(x, dtype), b.shape(node.outputs[0], dtype)), begin)
    return [b.op("Pad", dy, b.op("Pack", begin, behind, N=2, axis=1))]


def _strided_slice(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """Zeros around it and in between."""
    x, begin, end, strides = operands(node)
    assert begin.dtype is not None
    shape = b.shape(x, begin.dtype)
    return [b.node("StridedSliceGrad", [shape, begin, end, strides, dy], same_attributes(node)).outputs[0]]


def _strided_slice_grad(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The slice of it."""
    _, begin, end, strides, _ = operands(node)
    return [*[None] * 4, b.node("StridedSlice", [dy, begin, end, strides], same_attributes(node)).outputs[0]]


def _pad(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The part inside; to the number around it the sum of the rest."""
    x, paddings = operands(node)[:2]
    known, rank, dtype = b.ints(paddings), b.rank(x), paddings.dtype
    assert dtype is not None
    if known is not None:
        begin = b.vector(known[::2], dtype)
    else:
        column = b.node("StridedSlice", [paddings, *(b.vector(at) for at in ([0, 0], [0, 1], [1, 1]))], _FIRST_COLUMN)
        begin = column.outputs[0]
    dx = b.node("Slice", [dy, begin, b.shape(x, dtype)]).outputs[0]
    if len(node.inputs) == 2:
        return [dx]
    axes = b.vector(range(rank)) if rank is not None else b.op("Range", 0, b.op("Rank", x), 1)
    return [dx, None, b.sub(b.sum(dy, axes), b.sum(dx, axes))]


#: ``[:, 0]``
_FIRST_COLUMN = {"begin_mask": 1, "end_mask": 1, "shrink_axis_mask": 2}


def _strided_slice_update(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """To the tensor where it was kept, to the update where it was put."""
    _, begin, end, strides, update = operands(node)
    attributes = same_attributes(node)
    outside = b.node("TensorStridedSliceUpdate", [dy, begin, end, strides, b.zeros_like(update)], attributes).outputs[0]
    return [outside, None, None, None, b.node("StridedSlice", [dy, begin, end, strides], attributes).outputs[0]]


RULES: dict[str, "Rule"] = {
    "Pad": _pad,
    "PadV2": _pad,
    "Slice": _slice,
    "StridedSlice": _strided_slice,
    "StridedSliceGrad": _strided_slice_grad,
    "TensorStridedSliceUpdate": _strided_slice_update,
}
