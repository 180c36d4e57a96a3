"""Biases and normalizations."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..graph import Node, Value
from .builder import FLOAT32, Builder, operands, same_attributes

if TYPE_CHECKING:
    from .rules import Rule


def _bias_add(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The gradient itself, and its sum over all axes but that of the channels."""
    return [dy, b.node("BiasAddGrad", [dy], same_attributes(node)).outputs[0]]


def _bias_add_v1(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """As :func:`_bias_add`, the channels last."""
    return [dy, b.op("BiasAddGrad", dy)]


def _bias_add_grad(b: Builder, node: Node, dd: Value) -> Sequence[Value | None]:
    """One per channel, for all of them."""
    dy = operands(node)[0]
    if _channels_first(node):
        rank = b.rank(dy)
        after = b.vector([1] * (rank - 2)) if rank is not None else b.op("OnesLike", b.ends(b.shape(dy), 2))
        dd = b.reshape(dd, b.concat([b.vector([-1]), after], 0))
    return [b.broadcast_like(dd, dy)]


def _channels_first(node: Node) -> bool:
    return node.attr("data_format") in (b"NCHW", b"NCDHW")


def _batch_norm(b: Builder, node: Node, dy: Value | None, *_: Value | None) -> Sequence[Value | None]:
    """The op that is the gradient, of what the forward op kept for it, or of the statistics given to it."""
    if dy is None:
        return []
    x, scale, _offset, mean, variance = operands(node)
    kept = [mean, variance] if node.attr("is_training") is False else node.outputs[3:5]
    op = node.op_type.replace("FusedBatchNorm", "FusedBatchNormGrad")
    kept = [*kept, *node.outputs[5:]]
    return b.node(op, [dy, x, scale, *kept], same_attributes(node, "exponential_avg_factor")).outputs[:3]


def _batch_norm_grad(b: Builder, node: Node, *dds: Value | None) -> Sequence[Value | None]:
    """The gradient of the gradient, which is written out in simple ops and differentiated."""
    from .sweep import differentiate

    dy, x, scale, mean, variance = operands(node)[:5]
    first = _channels_first(node)
    rank = 5 if node.attr("data_format") in (b"NDHWC", b"NCDHW") else 4
    axes = [0, *range(2, rank)] if first else list(range(rank - 1))

    def column(v: Value) -> Value:
        return b.reshape(v, [-1, *[1] * (rank - 2)]) if first else v

    # Names of their own, at which the differentiation in here ends.
    start = [b.op("Identity", value) for value in (dy, x, scale, mean, variance)]
    dy, x, scale, mean, variance = start
    dy32, x32 = b.cast(dy, FLOAT32), b.cast(x, FLOAT32)
    epsilon: float = node.attr("epsilon")
    if node.attr("is_training") is not False:
        middle = b.op("Mean", x32, b.vector(axes), keep_dims=True)
        off = b.sub(x32, middle)
        spread = b.op("Mean", b.op("Square", off), b.vector(axes), keep_dims=True)
        factor = b.op("Rsqrt", b.add(spread, epsilon))
        dy_off = b.sub(dy32, b.op("Mean", dy32, b.vector(axes), keep_dims=True))
        along = b.op("Mean", b.mul(dy32, off), b.vector(axes), keep_dims=True)
        dx = b.mul(b.mul(column(scale), factor), b.sub(dy_off, b.mul(b.mul(along, off), b.op("Square", factor))))
    else:
        off = b.sub(x32, column(mean))
        factor = b.op("Rsqrt", b.add(column(variance), epsilon))
        dx = b.mul(dy32, b.mul(column(scale), factor))
    by_scale = b.sum(b.mul(dy32, b.mul(off, factor)), axes)
    ys = [b.cast(dx, node.types["T"]), by_scale, b.sum(dy32, axes)]
    return differentiate(b, ys, start, dds[:3], set(start))


def _lrn(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The op that is the gradient."""
    return [b.node("LRNGrad", [dy, operands(node)[0], node.outputs[0]], same_attributes(node)).outputs[0]]


RULES: dict[str, "Rule"] = {
    **{f"FusedBatchNorm{version}": _batch_norm for version in ("", "V2", "V3")},
    **{f"FusedBatchNormGrad{version}": _batch_norm_grad for version in ("", "V2", "V3")},
    "BiasAdd": _bias_add,
    "BiasAddGrad": _bias_add_grad,
    "BiasAddV1": _bias_add_v1,
    "LRN": _lrn,
}
