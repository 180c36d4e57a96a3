"""Running sums and products."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..graph import Node, Value
from .builder import Builder, operands

if TYPE_CHECKING:
    from .rules import Rule


def _scan(b: Builder, op: str, node: Node, x: Value, flip: bool) -> Value:
    """Return a scan along the axis of ``node``, in the other direction if ``flip``."""
    attributes = {"exclusive": bool(node.attr("exclusive")), "reverse": bool(node.attr("reverse")) != flip}
    return b.node(op, [x, operands(node)[1]], attributes).outputs[0]


def _cumsum(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """Summed from the other end."""
    return [_scan(b, "Cumsum", node, dy, flip=True)]


def _cumprod(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """Products times ``dy`` summed from the other end, divided by ``x``; 0 where ``x`` is."""
    out = _scan(b, "Cumsum", node, b.mul(node.outputs[0], dy), flip=True)
    return [b.op("DivNoNan", out, operands(node)[0])]


def _cumulative_logsumexp(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """As of a sum of exponentials, positive and negative gradients on their own so that logarithms can be taken."""
    x, y = operands(node)[0], node.outputs[0]
    # The logarithm of 0, finite so that differences of it are.
    least = -3e4 if dy.dtype is not None and dy.dtype.name == "float16" else -1e38
    parts = []
    for sign in (dy, b.neg(dy)):
        positive = b.op("Greater", sign, 0.0)
        log = b.where(positive, b.op("Log", b.where(positive, sign, 1.0)), least)
        parts.append(b.op("Exp", b.add(_scan(b, "CumulativeLogsumexp", node, b.sub(log, y), flip=True), x)))
    return [b.sub(*parts)]


RULES: dict[str, "Rule"] = {
    "Cumprod": _cumprod,
    "Cumsum": _cumsum,
    "CumulativeLogsumexp": _cumulative_logsumexp,
}
