"""Softmax, losses, biases, dropout-like and recurrent cells: ops of neural networks without windows."""

from typing import TYPE_CHECKING

from ..types import Dim
from .dims import Conflict, Dims, broadcast, merge, merge_dim, mul_dim, replaced, with_rank

if TYPE_CHECKING:
    from .call import Call, Rule


def softmax(call: "Call") -> list[Dims]:
    """Like the operand, of rank 1 at least."""
    dims = call.shape(0)
    if dims == ():
        raise Conflict("the operand should have at least one dimension")
    return [dims]


def cross_entropy(call: "Call") -> list[Dims]:
    """A loss per row, and the gradient of the logits."""
    logits = broadcast(call.shape(0), call.shape(1))
    logits = with_rank(logits, 2)
    return [(logits[0],), logits]


def sparse_cross_entropy(call: "Call") -> list[Dims]:
    """A loss per row, and the gradient of the logits; labels are a vector."""
    logits, labels = call.ranked(0, 2), call.ranked(1, 1)
    rows = merge_dim(logits[0], labels[0])
    return [(rows,), (rows, logits[1])]


def bias_add(call: "Call") -> list[Dims]:
    """Like the first operand; the bias is a vector over the channels."""
    dims, size = call.shape(0), call.ranked(1, 1)[0]
    if dims is None:
        return [None]
    channels_first = call.text("data_format").startswith("NC")
    if len(dims) < 2:
        raise Conflict(f"the operand should have at least {3 if channels_first else 2} dimensions")
    axis = 1 if channels_first else len(dims) - 1
    return [replaced(dims, axis, merge_dim(dims[axis], size))]


def bias_add_grad(call: "Call") -> list[Dims]:
    """A vector over the channels."""
    dims = call.shape(0)
    if dims is None:
        return [(None,)]
    if not dims:
        raise Conflict("the gradient should have at least one dimension")
    channels_first = call.text("data_format").startswith("NC") and len(dims) > 1
    return [(dims[1 if channels_first else -1],)]


def l2_loss(call: "Call") -> list[Dims]:
    """A scalar."""
    return [()]


def lstm_cell(call: "Call") -> list[Dims]:
    """``[batch, cells]`` for all seven results."""
    batch, cells = merge_dim(call.ranked(0, 2)[0], call.ranked(1, 2)[0]), call.ranked(1, 2)[1]
    return [(batch, cells)] * 7


def lstm_cell_grad(call: "Call") -> list[Dims]:
    """Gradients of the state, of the gates, of the three peepholes."""
    batch, cells = merge_dim(call.ranked(0, 2)[0], call.ranked(1, 2)[0]), call.ranked(1, 2)[1]
    return [(batch, cells), (batch, mul_dim(cells, 4)), *(call.shape(i) for i in (4, 5, 6))]


def block_lstm(call: "Call") -> list[Dims]:
    """``[time, batch, cells]`` for all seven results; operand 1 is ``[time, batch, features]``, operand 8 has 4 * cells."""
    time, batch, _ = call.ranked(1, 3)
    bias = call.ranked(8, 1)[0]
    cells: Dim = call.ranked(2, 2)[1]
    if cells is None and isinstance(bias, int):
        cells = bias // 4
    return [(time, batch, cells)] * 7


def block_lstm_grad(call: "Call") -> list[Dims]:
    """A gradient for each of the eight operands after the first."""
    return [call.shape(i) for i in range(1, 9)]


def gru_cell(call: "Call") -> list[Dims]:
    """``[batch, cells]`` for all four results."""
    batch, cells = merge_dim(call.ranked(0, 2)[0], call.ranked(1, 2)[0]), call.ranked(1, 2)[1]
    return [(batch, cells)] * 4


def gru_cell_grad(call: "Call") -> list[Dims]:
    """Gradients of the features, of the state, of the candidate, of both gates."""
    batch, cells = merge_dim(call.ranked(0, 2)[0], call.ranked(1, 2)[0]), call.ranked(1, 2)[1]
    return [(batch, call.ranked(0, 2)[1]), (batch, cells), (batch, cells), (batch, mul_dim(cells, 2))]


def cudnn_rnn(call: "Call") -> list[Dims]:
    """``[time, batch, directions * cells]``, the final states, and memory that only the gradient reads."""
    features, state = call.ranked(0, 3), call.ranked(1, 3)
    directions = {"unidirectional": 1, "bidirectional": 2}.get(call.text("direction"))
    cells = None if directions is None else mul_dim(state[2], directions)
    cell_state = call.shape(2) if call.text("rnn_mode") == "lstm" else None
    results: list[Dims] = [(features[0], features[1], cells), state, cell_state]
    return results + [None] * (len(call.node.outputs) - 3)


def cudnn_rnn_grad(call: "Call") -> list[Dims]:
    """A gradient for each of the first four operands."""
    return [call.shape(i) for i in range(4)]


def lrn_grad(call: "Call") -> list[Dims]:
    """Like all three operands."""
    return [merge(merge(call.ranked(0, 4), call.ranked(1, 4)), call.ranked(2, 4))]


RULES: "dict[str, Rule]" = {
    "BiasAdd": bias_add,
    "BiasAddGrad": bias_add_grad,
    "BiasAddV1": bias_add,
    "BlockLSTM": block_lstm,
    "BlockLSTMGrad": block_lstm_grad,
    "BlockLSTMGradV2": block_lstm_grad,
    "BlockLSTMV2": block_lstm,
    **dict.fromkeys(["CudnnRNN", "CudnnRNNV2", "CudnnRNNV3"], cudnn_rnn),
    **dict.fromkeys(["CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3"], cudnn_rnn_grad),
    "GRUBlockCell": gru_cell,
    "GRUBlockCellGrad": gru_cell_grad,
    "L2Loss": l2_loss,
    "LRNGrad": lrn_grad,
    "LSTMBlockCell": lstm_cell,
    "LSTMBlockCellGrad": lstm_cell_grad,
    "LogSoftmax": softmax,
    "Softmax": softmax,
    "SoftmaxCrossEntropyWithLogits": cross_entropy,
    "SparseSoftmaxCrossEntropyWithLogits": sparse_cross_entropy,
}
