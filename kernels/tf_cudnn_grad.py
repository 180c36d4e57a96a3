"""The gradient of TensorFlow's CudnnRNN: the layers run again, then every step backwards from the last."""

from typing import TYPE_CHECKING, Any

from .registry import kernel
from .tf_cudnn import Cell, Stack, Weights, arrange, order_of, run_layer

if TYPE_CHECKING:
    from .call import Call


def _step_back(xp: Any, mode: str, cell: Cell, dh: Any, dc: Any) -> tuple[Any, Any, Any, Any]:
    """Return the gradients of a step by the input's and by the state's part of the gates, and directly by ``h`` and ``c``."""
    if mode == "lstm":
        i, f, g, o = cell.gates
        tanh = xp.tanh(cell.more)
        inner = dc + dh * o * (1 - tanh * tanh)
        parts = (inner * g * i * (1 - i), inner * cell.c * f * (1 - f), inner * i * (1 - g * g), dh * tanh * o * (1 - o))
        da = xp.concatenate(parts, 1)
        return da, da, xp.zeros_like(dh), inner * f
    if mode == "gru":
        r, z, n = cell.gates
        dn = dh * (1 - z) * (1 - n * n)
        dz = dh * (cell.h - n) * z * (1 - z)
        dr = dn * cell.more * r * (1 - r)
        return xp.concatenate([dr, dz, dn], 1), xp.concatenate([dr, dz, dn * r], 1), dh * z, None
    (y,) = cell.gates
    da = dh * (y > 0) if mode == "rnn_relu" else dh * (1 - y * y)
    return da, da, xp.zeros_like(dh), None


def _direction_back(
    xp: Any, stack: Stack, x: Any, dy: Any, weights: Weights, cells: list[Cell], dh: Any, dc: Any
) -> tuple[Any, Any, Any, Weights]:
    """Return the gradients of one direction of a layer by its input, first states and weights; time is in reading order."""
    steps, batch = x.shape[:2]
    by_a = xp.zeros((steps, batch, weights.w.shape[0]), x.dtype)
    dr, dbr = xp.zeros_like(weights.r), xp.zeros_like(weights.br)
    for t in reversed(range(steps)):
        cell = cells[t]
        da, dq, direct, new_c = _step_back(xp, stack.mode, cell, dh + dy[t], dc)
        da, dq = xp.where(cell.live, da, 0), xp.where(cell.live, dq, 0)
        dr += dq.T @ cell.h
        dbr += dq.sum(0)
        by_a[t] = da
        dh = xp.where(cell.live, direct + dq @ weights.r, dh)
        dc = None if dc is None else xp.where(cell.live, new_c, dc)
    rows = by_a.reshape(steps * batch, -1)
    dx = (rows @ weights.w).reshape(x.shape)
    return dx, dh, dc, Weights(rows.T @ x.reshape(steps * batch, -1), dr, rows.sum(0), dbr)


def _layer_back(
    xp: Any, stack: Stack, x: Any, dy: Any, layer: int, cells: list[list[Cell]], dh: Any, dc: Any
) -> tuple[Any, list[Any], list[Any], list[Weights]]:
    """Return the gradients of a layer by its input, and those of each direction by first states and weights."""
    columns, units = xp.arange(x.shape[1]), stack.h.shape[2]
    dx = xp.zeros_like(x)
    hs, cs, by_weights = [], [], []
    for d, weights in enumerate(stack.layers[layer]):
        place = layer * len(stack.layers[layer]) + d
        order = order_of(xp, stack, d)
        gone = dy[order, columns][:, :, d * units : (d + 1) * units]
        state = None if stack.c is None else dc[place]
        part, h, c, by = _direction_back(xp, stack, x[order, columns], gone, weights, cells[d], dh[place], state)
        dx += part[order, columns]
        hs.append(h)
        cs.append(c)
        by_weights.append(by)
    return dx, hs, cs, by_weights


def _gradient(
    call: "Call", x: Any, h: Any, c: Any, params: Any, lengths: Any, dy: Any, dh: Any, dc: Any, saved: Any
) -> tuple[Any, ...]:
    """Return the gradients by the input, both first states and the weights."""
    xp, major = call.xp, call.attr("time_major", True)
    stack = arrange(call, x, h, c, params, lengths)
    if not major:
        dy, dh, dc = (v.swapaxes(0, 1) if v.ndim == 3 else v for v in (dy, dh, dc))
    masks = saved.reshape(len(stack.layers) - 1, *stack.x.shape[:2], -1) if saved.size else None
    inputs, cells, y = [], [], stack.x
    for layer in range(len(stack.layers)):
        inputs.append(y if masks is None or not layer else y * masks[layer - 1])
        y, *_, seen = run_layer(xp, stack, inputs[-1], layer)
        cells.append(seen)
    hs: list[Any] = []
    cs: list[Any] = []
    by_weights: list[Weights] = []
    for layer in reversed(range(len(stack.layers))):
        dy, h_parts, c_parts, by = _layer_back(xp, stack, inputs[layer], dy, layer, cells[layer], dh, dc)
        if masks is not None and layer:
            dy = dy * masks[layer - 1]
        hs, cs, by_weights = h_parts + hs, c_parts + cs, by + by_weights
    flat = [part.reshape(-1) for one in by_weights for part in one[:2]] + [part for one in by_weights for part in one[2:]]
    first_h, first_c = xp.stack(hs), xp.zeros_like(c) if stack.c is None else xp.stack(cs)
    if not major:
        dy, first_h = dy.swapaxes(0, 1), first_h.swapaxes(0, 1)
        first_c = first_c if stack.c is None else first_c.swapaxes(0, 1)
    return dy, first_h, first_c, xp.concatenate(flat)


@kernel("tf:CudnnRNNBackprop", "tf:CudnnRNNBackpropV2")
def cudnn_rnn_grad(call: "Call", x: Any, h: Any, c: Any, params: Any, *rest: Any) -> tuple[Any, ...]:
    """The gradients by the input, both first states and the weights; results of the node itself are not needed."""
    dy, dh, dc, saved = rest[3:7]
    return _gradient(call, x, h, c, params, None, dy, dh, dc, saved)


@kernel("tf:CudnnRNNBackpropV3")
def cudnn_rnn_grad_v3(call: "Call", x: Any, h: Any, c: Any, params: Any, lengths: Any, *rest: Any) -> tuple[Any, ...]:
    """The same for sequences of several lengths."""
    dy, dh, dc, saved = rest[3:7]
    return _gradient(call, x, h, c, params, lengths, dy, dh, dc, saved)
