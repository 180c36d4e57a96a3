"""Ops that move elements without choosing among them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..graph import Node, Value
from .builder import Builder, operands, same_attributes

if TYPE_CHECKING:
    from .rules import Rule


def _reshaped(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """Back to the operand's shape."""
    return [b.reshape_like(dy, operands(node)[0])]


def _transpose(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The inverse permutation."""
    perm = operands(node)[1]
    known = b.ints(perm)
    if known is None:
        return [b.transpose(dy, b.op("InvertPermutation", perm))]
    known = [axis % len(known) for axis in known]
    return [b.transpose(dy, sorted(range(len(known)), key=known.__getitem__))]


def _broadcast_to(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The sum of all copies."""
    return [b.sum_to(dy, operands(node)[0])]


def _tile(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The sum of all copies, which lie side by side."""
    x, multiples = operands(node)
    sizes, counts = b.sizes(x), b.ints(multiples)
    if sizes is not None and counts is not None:
        split = [n for pair in zip(counts, sizes, strict=True) for n in pair]
        return [b.sum(b.reshape(dy, split), range(0, len(split), 2))]
    dtype = multiples.dtype
    assert dtype is not None
    pairs = b.op("Pack", multiples, b.shape(x, dtype), N=2, axis=1)
    shape = b.reshape(pairs, [-1])
    axes = b.op("Range", 0, b.op("Size", shape), 2)
    return [b.sum(b.reshape(dy, shape), axes)]


def _fill(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The sum of all copies."""
    rank = b.rank(dy)
    axes = b.vector(range(rank)) if rank is not None else b.op("Range", 0, b.op("Rank", dy), 1)
    return [None, b.sum(dy, axes)]


def _again(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The op itself: it is its own inverse."""
    return [b.node(node.op_type, [dy, *operands(node)[1:]], same_attributes(node)).outputs[0]]


def _roll(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """Rolled back."""
    _, shift, axis = operands(node)
    return [b.node("Roll", [dy, b.neg(shift), axis]).outputs[0]]


def _matrix_diag_part(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """Zeros around the diagonal."""
    return [b.op("MatrixSetDiag", b.zeros_like(operands(node)[0]), dy)]


def _matrix_set_diag(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """To the matrix all but the diagonal, which goes to the other operand."""
    return [b.op("MatrixSetDiag", dy, b.zeros_like(operands(node)[1])), b.op("MatrixDiagPart", dy)]


def _inverse(op: str) -> "Rule":
    """Make the rule of an op that another one, of the same operands and attributes, undoes."""

    def rule(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
        return [b.node(op, [dy, *operands(node)[1:]], same_attributes(node)).outputs[0]]

    return rule


_INVERSES = {
    "BatchToSpace": "SpaceToBatch",
    "BatchToSpaceND": "SpaceToBatchND",
    "DepthToSpace": "SpaceToDepth",
    "Diag": "DiagPart",
    "DiagPart": "Diag",
    "MatrixDiag": "MatrixDiagPart",
    "MirrorPad": "MirrorPadGrad",
    "SpaceToBatch": "BatchToSpace",
    "SpaceToBatchND": "BatchToSpaceND",
    "SpaceToDepth": "DepthToSpace",
    # Its own gradient mirrors the padding again.
    "MirrorPadGrad": "MirrorPad",
}

RULES: dict[str, "Rule"] = {
    **{op: _inverse(other) for op, other in _INVERSES.items()},
    **dict.fromkeys(["ExpandDims", "Reshape", "Squeeze"], _reshaped),
    **dict.fromkeys(["MatrixBandPart", "Reverse", "ReverseSequence", "ReverseV2"], _again),
    "BroadcastTo": _broadcast_to,
    "Fill": _fill,
    "MatrixDiagPart": _matrix_diag_part,
    "MatrixSetDiag": _matrix_set_diag,
    "Roll": _roll,
    "Tile": _tile,
    "Transpose": _transpose,
}
