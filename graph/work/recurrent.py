"""Recurrent layers: at every step, the input and the state are each multiplied by a matrix, of all gates together."""

from typing import TYPE_CHECKING

from ..types import Dim
from .sizes import Rule, ShapeOf, Work, dims_of, known_product, operand

if TYPE_CHECKING:
    from ..graph import Node

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def _work(batch: Dim, inputs: Dim, hidden: Dim, *repeats: Dim, layers: int = 1, directions: int = 1) -> Work:
    """Return the work of a recurrent layer, or of several, each of which reads all directions of the one before."""
    upper = (((layers - 1) * directions, ("batch", "hidden size", "hidden size")),) if layers > 1 else ()
    return Work(
        {"batch": batch, "input size": inputs, "hidden size": hidden},
        known_product(repeats),
        (
            (1, ("batch", "input size", "hidden size")),
            (layers, ("batch", "hidden size", "hidden size")),
            *upper,
        ),
    )


def _onnx(node: "Node", shape_of: ShapeOf) -> Work:
    """Return the work of a layer: input (steps, batch, size), or the batch first; weights (directions, gates x hidden, size)."""
    x = dims_of(operand(node, shape_of, 0), 3)
    weights, state = dims_of(operand(node, shape_of, 1), 3), dims_of(operand(node, shape_of, 2), 3)
    steps, batch = (x[1], x[0]) if node.attributes.get("layout") == 1 else (x[0], x[1])
    hidden = state[2] if state[2] is not None else node.attributes.get("hidden_size")
    inputs = x[2] if weights[2] is None else weights[2]
    directions = 2 if node.attributes.get("direction") == b"bidirectional" else 1
    return _work(batch, inputs, hidden, steps, _GATES[node.op_type], directions)


def _block(node: "Node", shape_of: ShapeOf) -> Work:
    """Return the work of TensorFlow's cells, and of its layer over (steps, batch, size)."""
    op = node.op_type
    layer = op.startswith("BlockLSTM")
    x = dims_of(operand(node, shape_of, 1 if layer else 0), 3 if layer else 2)
    state = dims_of(operand(node, shape_of, 2 if layer else 1), 2)
    steps = x[0] if layer else 1
    gradients = 2 if layer and "Grad" in op else 1  # of what is multiplied and of the weights; cells leave the latter to others
    return _work(x[-2], x[-1], state[1], steps, _GATES["LSTM" if "LSTM" in op else "GRU"], gradients)


def _cudnn(node: "Node", shape_of: ShapeOf) -> Work:
    """Return the work of layers over (steps, batch, size) whose states are (layers x directions, batch, hidden)."""
    x, state = dims_of(operand(node, shape_of, 0), 3), dims_of(operand(node, shape_of, 1), 3)
    first = node.attributes.get("time_major") is False
    steps, batch = (x[1], x[0]) if first else (x[0], x[1])
    deep = state[1 if first else 0]
    directions = 2 if node.attributes.get("direction") == b"bidirectional" else 1
    gates = _GATES.get({b"lstm": "LSTM", b"gru": "GRU"}.get(node.attr("rnn_mode"), "RNN"))
    layers = deep // directions if isinstance(deep, int) else None
    gradients = 2 if "Backprop" in node.op_type else 1
    repeats = (steps, gates, directions, gradients) if layers else (None,)
    return _work(batch, x[2], state[2], *repeats, layers=layers or 1, directions=directions)


RULES: dict[tuple[str, str], Rule] = {
    **{("", op): _onnx for op in ("LSTM", "GRU", "RNN")},
    **{("tf", op): _block for op in ("BlockLSTM", "BlockLSTMV2", "BlockLSTMGrad", "BlockLSTMGradV2", "LSTMBlockCell")},
    **{("tf", op): _block for op in ("GRUBlockCell", "GRUBlockCellGrad")},
    **{("tf", f"CudnnRNN{version}"): _cudnn for version in ("", "V2", "V3", "Backprop", "BackpropV2", "BackpropV3")},
}
