"""Losses over classes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..graph import Node, Value
from .builder import INT32, Builder, operands

if TYPE_CHECKING:
    from .rules import Rule


def _column(b: Builder, x: Value) -> Value:
    return b.node("ExpandDims", [x, b.constant(-1, INT32)]).outputs[0]


def _by_logits(b: Builder, node: Node, dy: Value | None, dd: Value | None) -> Value | None:
    """Return the gradient by the logits.

    Args:
        b: The builder.
        node: A loss whose second result is its gradient by the logits.
        dy: Gradient of the loss, one per row.
        dd: Gradient of the second result, where a gradient is differentiated.
    """
    logits, backprop = operands(node)[0], node.outputs[1]
    found = None if dy is None else b.sum_to(b.mul(_column(b, dy), backprop), logits)
    if dd is not None:
        softmax = b.op("Softmax", logits)
        curved = b.sum_to(b.mul(b.sub(dd, b.sum(b.mul(dd, softmax), [-1], keep_dims=True)), softmax), logits)
        found = curved if found is None else b.add(found, curved)
    return found


def _cross_entropy(b: Builder, node: Node, dy: Value | None, dd: Value | None) -> Sequence[Value | None]:
    """By the logits, and by the labels: minus their logarithms."""
    logits, labels = operands(node)
    by_labels = None if dd is None else b.neg(b.sum_to(dd, labels))
    if dy is not None:
        from_loss = b.sum_to(b.mul(_column(b, dy), b.neg(b.op("LogSoftmax", logits))), labels)
        by_labels = from_loss if by_labels is None else b.add(from_loss, by_labels)
    return [_by_logits(b, node, dy, dd), by_labels]


def _sparse_cross_entropy(b: Builder, node: Node, dy: Value | None, dd: Value | None) -> Sequence[Value | None]:
    """By the logits; labels are integers."""
    return [_by_logits(b, node, dy, dd)]


def _ctc(b: Builder, node: Node, dy: Value | None, _: Value | None) -> Sequence[Value | None]:
    """The second result, for each of the batch times its gradient; that result has no gradient itself."""
    if dy is None:
        return []
    message = {"message": b"the gradient of CTCLoss cannot be differentiated, because one op computes both."}
    once = b.node("PreventGradient", [node.outputs[1]], message).outputs[0]
    return [b.mul(b.reshape(dy, [1, -1, 1]), once)]


RULES: dict[str, "Rule"] = {
    "CTCLoss": _ctc,
    "SoftmaxCrossEntropyWithLogits": _cross_entropy,
    "SparseSoftmaxCrossEntropyWithLogits": _sparse_cross_entropy,
}
