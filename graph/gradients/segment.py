"""Reductions by segment: rows with the same id."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..graph import Node, Value
from .builder import INT32, Builder, operands

if TYPE_CHECKING:
    from .rules import Rule


def _rows(b: Builder, values: Value, ids: Value) -> Value:
    return b.node("GatherV2", [values, ids, b.constant(0, INT32)]).outputs[0]


def _shared(b: Builder, dy: Value, count: Value) -> Value:
    """Divide by a count, which is 0 for a segment without rows."""
    return b.div(dy, b.op("Maximum", count, 1.0))


def _sum(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """To each row that of its segment."""
    return [_rows(b, dy, operands(node)[1])]


def _mean(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """To each row that of its segment, divided by the number of rows."""
    x, ids = operands(node)[:2]
    count = b.node("SegmentSum", [b.op("OnesLike", x), ids]).outputs[0]
    return [_rows(b, _shared(b, dy, count), ids)]


def _extreme(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """Shared evenly among all that are the largest, or smallest, of their segment."""
    x, ids = operands(node)[:2]
    assert dy.dtype is not None
    chosen = b.op("Equal", x, _rows(b, node.outputs[0], ids))
    count = b.node("SegmentSum", [b.cast(chosen, dy.dtype), ids]).outputs[0]
    return [b.where(chosen, _rows(b, _shared(b, dy, count), ids), 0.0)]


def _segment_prod(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """As for numbered segments, whose number the result has."""
    x, ids = operands(node)[:2]
    count = b.reshape(b.ends(b.op("Shape", node.outputs[0]), 0, 1), [])
    return [_product(b, node, x, ids, count, dy)]


class _Ids:
    """Ids of which some may be negative, their rows dropped."""

    def __init__(self, b: Builder, x: Value, ids: Value) -> None:
        """Find which rows are kept, and ids that can be looked up."""
        assert ids.dtype is not None
        self.b = b
        self.lookup = b.op("Maximum", ids, 0)
        kept = b.op("GreaterEqual", ids, 0)
        ranks = b.rank(x), b.rank(ids)
        if None not in ranks:
            shape = b.shape(ids)
            lack = (ranks[0] or 0) - (ranks[1] or 0)
            kept = b.reshape(kept, b.concat([shape, b.vector([1] * lack)], 0)) if lack else kept
        else:
            lack_of = b.reshape(b.op("Sub", b.op("Rank", x), b.op("Rank", ids)), [1])
            kept = b.reshape(kept, b.concat([b.shape(ids), b.op("Fill", lack_of, b.constant(1, INT32))], 0))
        self.kept = kept

    def rows(self, values: Value) -> Value:
        """Return for each id its row; zeros for a negative one."""
        return self.b.where(self.kept, _rows(self.b, values, self.lookup), 0.0)


def _unsorted_sum(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """To each row that of its segment; nothing to rows that were dropped."""
    x, ids = operands(node)[:2]
    return [_Ids(b, x, ids).rows(dy)]


def _unsorted_extreme(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """Shared evenly among all that are the largest, or smallest, of their segment."""
    x, ids, count = operands(node)
    known = _Ids(b, x, ids)
    assert dy.dtype is not None
    chosen = b.op("LogicalAnd", b.op("Equal", x, _rows(b, node.outputs[0], known.lookup)), known.kept)
    shares = b.node("UnsortedSegmentSum", [b.cast(chosen, dy.dtype), ids, count]).outputs[0]
    return [b.where(chosen, _rows(b, _shared(b, dy, shares), known.lookup), 0.0)]


def _unsorted_prod(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The product of the other rows."""
    x, ids, count = operands(node)
    return [_product(b, node, x, ids, count, dy)]


def _product(b: Builder, node: Node, x: Value, ids: Value, count: Value, dy: Value) -> Value:
    """Return the gradient of products: without its zeros, a segment's product is divided by the row.

    Where a row is 0 and no other is, its gradient is the product of the others; with two zeros there is none at all.
    """
    assert dy.dtype is not None
    known = _Ids(b, x, ids)
    zero = b.op("Equal", x, 0.0)

    def by_segment(op: str, values: Value) -> Value:
        return b.node(op, [values, ids, count]).outputs[0]

    zeros = by_segment("UnsortedSegmentSum", b.cast(zero, INT32))
    dy = b.where(b.op("Greater", zeros, 1), 0.0, dy)
    filled = b.where(zero, 1.0, x)
    others = _rows(b, by_segment("UnsortedSegmentProd", filled), known.lookup)
    product = _rows(b, node.outputs[0], known.lookup)
    return b.mul(known.rows(dy), b.where(zero, others, b.div(product, filled)))


def _sparse(kind: str) -> "Rule":
    """Make the rule of a sum, mean or the like over chosen rows."""

    def rule(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
        """Added up where the rows came from."""
        x, indices, ids = operands(node)[:3]
        rows = b.reshape(b.ends(b.shape(x), 0, 1), [])
        return [b.node(f"SparseSegment{kind}Grad", [dy, indices, ids, rows]).outputs[0]]

    return rule


def _sparse_grad(kind: str) -> "Rule":
    """Make the rule of the gradient of such a sum or mean: it is linear, and this undoes it."""

    def rule(b: Builder, node: Node, dd: Value) -> Sequence[Value | None]:
        """The sum or mean again."""
        dy, indices, ids, _ = operands(node)
        count = b.reshape(b.ends(b.shape(dy), 0, 1), [])
        return [b.node(f"SparseSegment{kind}WithNumSegments", [dd, indices, ids, count]).outputs[0]]

    return rule


RULES: dict[str, "Rule"] = {
    **{f"SparseSegment{kind}Grad": _sparse_grad(kind) for kind in ("Mean", "SqrtN", "Sum")},
    **{f"SparseSegment{kind}{more}": _sparse(kind) for kind in ("Mean", "SqrtN", "Sum") for more in ("", "WithNumSegments")},
    **dict.fromkeys(["SegmentMax", "SegmentMin"], _extreme),
    **dict.fromkeys(["UnsortedSegmentMax", "UnsortedSegmentMin"], _unsorted_extreme),
    "SegmentMean": _mean,
    "SegmentProd": _segment_prod,
    "SegmentSum": _sum,
    "UnsortedSegmentProd": _unsorted_prod,
    "UnsortedSegmentSum": _unsorted_sum,
}
