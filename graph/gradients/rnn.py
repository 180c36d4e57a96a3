"""Recurrent layers and their cells."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import GraphError
from ..graph import Node, Value
from .builder import Builder, operands, same_attributes

if TYPE_CHECKING:
    from .rules import Rule


def _filled(b: Builder, value: Value, dy: Value | None) -> Value:
    return b.zeros_like(value) if dy is None else dy


def _block_lstm(b: Builder, node: Node, *dys: Value | None) -> Sequence[Value | None]:
    """The op that is the gradient; it takes that of the cells (result 1) and of the outputs (6)."""
    attributes = {"use_peephole": bool(node.attr("use_peephole"))}
    given = [_filled(b, node.outputs[k], dys[k]) for k in (1, 6)]
    found = b.node(node.op_type.replace("LSTM", "LSTMGrad"), [*operands(node), *node.outputs, *given], attributes)
    return [None, *found.outputs]


def _lstm_cell(b: Builder, node: Node, *dys: Value | None) -> Sequence[Value | None]:
    """The op that is the gradient of the gates; from them, by products of matrices, those of inputs and weights."""
    x, cells, h, w, *peepholes, bias = operands(node)
    given = [_filled(b, node.outputs[k], dys[k]) for k in (1, 6)]
    attributes = {"use_peephole": bool(node.attr("use_peephole"))}
    i, cs, f, o, ci, co, _ = node.outputs
    by_cells, gates, *by_peepholes = b.node(
        "LSTMBlockCellGrad", [x, cells, h, w, *peepholes, bias, i, cs, f, o, ci, co, *given], attributes
    ).outputs
    dx, dh, dw = _by_product(b, x, h, w, gates)
    if not attributes["use_peephole"]:
        by_peepholes = [b.zeros_like(value) for value in peepholes]
    return [dx, by_cells, dh, dw, *by_peepholes, b.sum(gates, [0])]


def _by_product(b: Builder, x: Value, h: Value, w: Value, dy: Value) -> list[Value]:
    """Return the gradients of ``[x, h] @ w`` by ``x``, ``h`` and ``w``."""
    joined = b.node("MatMul", [dy, w], {"transpose_b": True}).outputs[0]
    shapes = [b.shape(x), b.shape(h)]
    begins = [b.vector([0, 0]), b.concat([b.vector([0]), b.ends(shapes[0], 1)], 0)]
    parts = [b.node("Slice", [joined, *at]).outputs[0] for at in zip(begins, shapes, strict=True)]
    return [*parts, b.node("MatMul", [b.concat([x, h], 1), dy], {"transpose_a": True}).outputs[0]]


def _gru_cell(b: Builder, node: Node, *dys: Value | None) -> Sequence[Value | None]:
    """The op that is the gradient of the gates, taking that of the new state (result 3); from them those of the weights."""
    if any(dy is not None for dy in dys[:3]):
        raise GraphError(f"Of GRU cell {node} only the last result, its state, has a gradient.")
    x, h, w_ru, w_c, b_ru, b_c = operands(node)
    r, u, c, _ = node.outputs
    dh = _filled(b, node.outputs[3], dys[3])
    dx, dh_prev, d_c, d_ru = b.node("GRUBlockCellGrad", [x, h, w_ru, w_c, b_ru, b_c, r, u, c, dh]).outputs

    def weights(state: Value, gates: Value) -> Value:
        return b.node("MatMul", [b.concat([x, state], 1), gates], {"transpose_a": True}).outputs[0]

    return [dx, dh_prev, weights(h, d_ru), weights(b.mul(h, r), d_c), b.sum(d_ru, [0]), b.sum(d_c, [0])]


def _cudnn(b: Builder, node: Node, *dys: Value | None) -> Sequence[Value | None]:
    """The op that is the gradient, of what the forward op kept for it."""
    if node.attr("is_training") is False:
        raise GraphError(f"{node} keeps nothing for its gradient, because its attribute is_training is false.")
    given = [_filled(b, value, dy) for value, dy in zip(node.outputs[:3], dys, strict=False)]
    op = node.op_type.replace("CudnnRNN", "CudnnRNNBackprop")
    values = [*operands(node), *node.outputs[:3], *given, *node.outputs[3:]]
    return b.node(op, values, same_attributes(node, "is_training")).outputs


RULES: dict[str, "Rule"] = {
    **dict.fromkeys(["BlockLSTM", "BlockLSTMV2"], _block_lstm),
    **dict.fromkeys(["CudnnRNN", "CudnnRNNV2", "CudnnRNNV3"], _cudnn),
    "GRUBlockCell": _gru_cell,
    "LSTMBlockCell": _lstm_cell,
}
