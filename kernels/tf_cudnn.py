"""TensorFlow's CudnnRNN: layers of LSTM, GRU or plain cells, in one or both directions, whose weights are one vector.

The vector has, for each layer and direction, the gates' weights of the input and then those of the state, each ``[units, inputs]``;
after all of them come the biases in the same order. Gates are i, f, g, o of an LSTM and r, z, n of a GRU.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..graph.errors import KernelError
from .elementwise import sigmoid
from .registry import kernel

if TYPE_CHECKING:
    from .call import Call

#: Number of gates of each mode.
GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


class Weights(NamedTuple):
    """Of one layer and direction: weights ``[gates * units, inputs]`` and ``[gates * units, units]``, biases of both."""

    w: Any
    r: Any
    bw: Any
    br: Any


class Cell(NamedTuple):
    """What one step leaves for its gradient: its input and states, what its gates let through, and whose sequences go on.

    Attributes:
        h: Output before, ``[batch, units]``.
        c: Cell state before.
        gates: Gates, ``[batch, units]`` each.
        more: LSTM: the cell state; GRU: the part of n that r is for; else nothing.
        live: ``[batch, 1]``.
    """

    h: Any
    c: Any
    gates: tuple[Any, ...]
    more: Any
    live: Any


class Stack(NamedTuple):
    """The layers of a node: inputs, time first, first states, weights by layer and direction, and lengths of the sequences."""

    mode: str
    x: Any
    h: Any
    c: Any
    layers: list[list[Weights]]
    lengths: Any


def shapes(mode: str, inputs: int, units: int, layers: int, directions: int) -> list[Weights]:
    """Return the shapes of all weights, layer by layer and, in it, by direction."""
    rows = GATES[mode] * units
    sizes = [inputs] + [units * directions] * (layers - 1)
    return [Weights((rows, size), (rows, units), (rows,), (rows,)) for size in sizes for _ in range(directions)]


def unpack(params: Any, wanted: Sequence[Weights]) -> list[Weights]:
    """Return views of the weights in a vector.

    Raises:
        KernelError: If it is not as long as they are.
    """
    flat = [shape for one in wanted for shape in one[:2]] + [shape for one in wanted for shape in one[2:]]
    sizes = [shape[0] * (shape[1] if len(shape) > 1 else 1) for shape in flat]
    if params.shape != (sum(sizes),):
        raise KernelError(f"The weights of this CudnnRNN are a vector of {sum(sizes)}. Received: shape {list(params.shape)}")
    parts, start = [], 0
    for shape, size in zip(flat, sizes, strict=True):
        parts.append(params[start : start + size].reshape(shape))
        start += size
    half = 2 * len(wanted)
    return [Weights(*parts[2 * i : 2 * i + 2], *parts[half + 2 * i : half + 2 * i + 2]) for i in range(len(wanted))]


def arrange(call: "Call", x: Any, h: Any, c: Any, params: Any, lengths: Any) -> Stack:
    """Return the layers of a node.

    Raises:
        KernelError: If operands do not fit, or an attribute asks for what is not known here.
    """
    mode, xp = call.attr("rnn_mode", "lstm"), call.xp
    directions = 2 if call.attr("direction", "unidirectional") == "bidirectional" else 1
    if mode not in GATES or call.attr("num_proj", 0):
        raise KernelError(
            f"A CudnnRNN is one of {', '.join(GATES)}, without projection. "
            f"Received: {mode!r}, num_proj={call.attr('num_proj', 0)}"
        )
    if not call.attr("time_major", True):
        x, h, c = (v.swapaxes(0, 1) if v.ndim == 3 else v for v in (x, h, c))
    if x.ndim != 3 or h.ndim != 3 or h.shape[0] % directions or not h.shape[0] or h.shape[1] != x.shape[1]:
        raise KernelError(
            f"A CudnnRNN takes sequences [time, batch, inputs] and states [layers * directions, batch, units]. "
            f"Received: {list(x.shape)} and {list(h.shape)}"
        )
    if mode == "lstm" and c.shape != h.shape:
        raise KernelError(f"Cell states have the shape {list(h.shape)} of the outputs. Received: {list(c.shape)}")
    units, skip = h.shape[2], call.attr("input_mode", "linear_input")
    if skip == "skip_input" or (skip == "auto_select" and x.shape[2] == units):
        raise KernelError(f"A CudnnRNN has weights for its input here. Received: input_mode={skip!r}")
    weights = unpack(params, shapes(mode, x.shape[2], units, h.shape[0] // directions, directions))
    layers = [weights[i : i + directions] for i in range(0, len(weights), directions)]
    if lengths is None:
        lengths = xp.full(x.shape[1], x.shape[0], xp.int64)
    if lengths.shape != x.shape[1:2]:
        raise KernelError(f"A length is needed for each of {x.shape[1]} sequences. Received: shape {list(lengths.shape)}")
    return Stack(mode, x, h, c if mode == "lstm" else None, layers, lengths)


def order_of(xp: Any, stack: Stack, direction: int) -> Any:
    """Return which time step of each sequence is read when, ``[time, batch]``; reading backwards starts at its end."""
    t = xp.broadcast_to(xp.arange(stack.x.shape[0])[:, None], stack.x.shape[:2])
    return xp.where(t < stack.lengths, stack.lengths - 1 - t, t) if direction else t


def step(xp: Any, mode: str, a: Any, h: Any, c: Any, weights: Weights, live: Any) -> tuple[Any, Any, Cell]:
    """Return output, cell state and what the gradient needs, given the input's part of the gates."""
    q = h @ weights.r.T + weights.br
    units = h.shape[1]
    ins, outs = ([v[:, i * units : (i + 1) * units] for i in range(GATES[mode])] for v in (a, q))
    if mode == "lstm":
        i, f, g, o = (x + y for x, y in zip(ins, outs, strict=True))
        i, f, g, o = sigmoid(xp, i), sigmoid(xp, f), xp.tanh(g), sigmoid(xp, o)
        new_c = f * c + i * g
        new, cell = o * xp.tanh(new_c), Cell(h, c, (i, f, g, o), new_c, live)
        return xp.where(live, new, h), xp.where(live, new_c, c), cell
    if mode == "gru":
        r, z = sigmoid(xp, ins[0] + outs[0]), sigmoid(xp, ins[1] + outs[1])
        n = xp.tanh(ins[2] + r * outs[2])
        return xp.where(live, (1 - z) * n + z * h, h), None, Cell(h, None, (r, z, n), outs[2], live)
    y = xp.maximum(a + q, 0) if mode == "rnn_relu" else xp.tanh(a + q)
    return xp.where(live, y, h), None, Cell(h, None, (y,), None, live)


def run_layer(xp: Any, stack: Stack, x: Any, layer: int) -> tuple[Any, list[Any], list[Any], list[list[Cell]]]:
    """Return a layer's outputs ``[time, batch, directions * units]``, last outputs and cell states, and steps by direction."""
    steps, batch = x.shape[:2]
    columns = xp.arange(batch)
    ys, hs, cs, cells = [], [], [], []
    for d, weights in enumerate(stack.layers[layer]):
        order, place = order_of(xp, stack, d), layer * len(stack.layers[layer]) + d
        rows = x[order, columns].reshape(steps * batch, -1) @ weights.w.T + weights.bw
        rows = rows.reshape(steps, batch, -1)
        h, c = stack.h[place], None if stack.c is None else stack.c[place]
        y, seen = xp.zeros((steps, *h.shape), x.dtype), []
        for t in range(steps):
            live = (t < stack.lengths)[:, None]
            h, c, cell = step(xp, stack.mode, rows[t], h, c, weights, live)
            y[t] = xp.where(live, h, 0)
            seen.append(cell)
        ys.append(y[order, columns])
        hs.append(h)
        cs.append(c)
        cells.append(seen)
    return xp.concatenate(ys, 2), hs, cs, cells


def dropped(call: "Call", stack: Stack) -> Any:
    """Return what the inputs of the layers after the first are multiplied by, ``[layers - 1, time, batch, columns]``, or None."""
    rate = float(call.attr("dropout", 0.0))
    if not rate or not call.attr("is_training", True) or len(stack.layers) < 2:
        return None
    seed = call.attr("seed", 0) or call.attr("seed2", 0)
    shape = (len(stack.layers) - 1, *stack.x.shape[:2], stack.layers[1][0].w.shape[1])
    return call.xp.asarray(call.rng(seed or None).random_sample(shape) >= rate).astype(stack.x.dtype) / (1 - rate)


@kernel("tf:CudnnRNN", "tf:CudnnRNNV2", "tf:CudnnRNNV3")
def cudnn_rnn(call: "Call", x: Any, h: Any, c: Any, params: Any, lengths: Any = None) -> tuple[Any, ...]:
    """The outputs, the last states of all layers, and what was dropped for the gradient."""
    xp = call.xp
    stack = arrange(call, x, h, c, params, lengths)
    masks, y, hs, cs = dropped(call, stack), stack.x, [], []
    for layer in range(len(stack.layers)):
        y, last, cells, _ = run_layer(xp, stack, y if masks is None or not layer else y * masks[layer - 1], layer)
        hs += last
        cs += cells
    saved = xp.zeros(0, y.dtype) if masks is None else masks.reshape(-1)
    last_h, last_c = xp.stack(hs), xp.zeros_like(c) if stack.c is None else xp.stack(cs)
    if not call.attr("time_major", True):
        y, last_h = y.swapaxes(0, 1), last_h.swapaxes(0, 1)
        last_c = last_c if stack.c is None else last_c.swapaxes(0, 1)
    return y, last_h, last_c, saved, xp.zeros(0, xp.int8)
