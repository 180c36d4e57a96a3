"""TensorFlow's fused cells: LSTM, with peepholes if asked, and GRU, forwards and backwards."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..graph.errors import KernelError
from .elementwise import sigmoid
from .registry import kernel

if TYPE_CHECKING:
    from .call import Call


class Gates(NamedTuple):
    """What one step of an LSTM computes, each ``[batch, units]``: gates, cell state, and its and the cell input's tanh."""

    i: Any
    cs: Any
    f: Any
    o: Any
    ci: Any
    co: Any
    h: Any


#: Which of the four columns of the weights hold i, f, o and ci.
_ICFO = (0, 2, 3, 1)
_IFCO = (0, 1, 3, 2)


def _order(call: "Call") -> tuple[int, int, int, int]:
    return _IFCO if call.node.op_type in ("BlockLSTMV2", "BlockLSTMGradV2") else _ICFO


def _check(x: Any, cs: Any, h: Any, w: Any) -> None:
    inputs, units = x.shape[-1], cs.shape[-1]
    if w.shape != (inputs + units, 4 * units) or h.shape != cs.shape or x.shape[-2] != cs.shape[0]:
        raise KernelError(
            f"An LSTM of {units} units on {inputs} inputs has weights of shape {[inputs + units, 4 * units]}. "
            f"Received: {list(w.shape)}, x of shape {list(x.shape)}, states of shapes {list(cs.shape)} and {list(h.shape)}"
        )


def _step(call: "Call", gates: Any, cs: Any, peepholes: Sequence[Any]) -> Gates:
    """Return one step, given the gates before their functions, ``[batch, 4 * units]``, and the cell state."""
    xp, units = call.xp, cs.shape[-1]
    i, f, o, ci = (gates[:, k * units : (k + 1) * units] for k in _order(call))
    f = f + f.dtype.type(call.attr("forget_bias", 0.0))
    if peepholes:
        i, f = i + cs * peepholes[0], f + cs * peepholes[1]
    i, f, ci = sigmoid(xp, i), sigmoid(xp, f), xp.tanh(ci)
    cs = ci * i + cs * f
    clip = call.attr("cell_clip", 0.0)
    if clip > 0:
        cs = xp.clip(cs, -cs.dtype.type(clip), cs.dtype.type(clip))
    o = sigmoid(xp, o + cs * peepholes[2] if peepholes else o)
    co = xp.tanh(cs)
    return Gates(i, cs, f, o, ci, co, co * o)


@kernel("tf:LSTMBlockCell")
def lstm_cell(call: "Call", x: Any, cs: Any, h: Any, w: Any, wci: Any, wcf: Any, wco: Any, b: Any) -> Gates:
    """One step of an LSTM."""
    _check(x, cs, h, w)
    peepholes = (wci, wcf, wco) if call.attr("use_peephole", False) else ()
    return tuple(_step(call, call.xp.concatenate([x, h], 1) @ w + b, cs, peepholes))  # type: ignore[return-value]


@kernel("tf:BlockLSTM", "tf:BlockLSTMV2")
def block_lstm(
    call: "Call", length: Any, x: Any, cs: Any, h: Any, w: Any, wci: Any, wcf: Any, wco: Any, b: Any
) -> tuple[Any, ...]:
    """The steps of an LSTM on ``x [time, batch, inputs]``; zeros beyond the greatest length of a sequence."""
    xp = call.xp
    _check(x, cs, h, w)
    steps, inputs = x.shape[0], x.shape[2]
    peepholes = (wci, wcf, wco) if call.attr("use_peephole", False) else ()
    results = Gates(*(xp.zeros((steps, *cs.shape), x.dtype) for _ in Gates._fields))
    rows = (
        xp.matmul(x.reshape(-1, inputs), w[:inputs]).reshape(steps, -1, w.shape[1])
        if x.size
        else xp.zeros((steps, 1, 1), x.dtype)
    )
    for t in range(min(int(length), steps)):
        step = _step(call, rows[t] + h @ w[inputs:] + b, cs, peepholes)
        for whole, part in zip(results, step, strict=True):
            whole[t] = part
        cs, h = step.cs, step.h
    return tuple(results)


def _back(
    call: "Call", gates: Gates, before: Any, cs_gradient: Any, h_gradient: Any, peepholes: Sequence[Any]
) -> tuple[Any, Any, tuple[Any, ...]]:
    """Return the gradient of one step by the earlier cell state, by the gates' columns, and by the peepholes.

    Args:
        call: The call.
        gates: What the step computed.
        before: The cell state before it.
        cs_gradient: Gradient of the cell state.
        h_gradient: Gradient of the output.
        peepholes: Their weights, or nothing.
    """
    xp, units = call.xp, before.shape[-1]
    i, cs, f, o, ci, co, _ = gates
    do = o * (1 - o) * h_gradient * co
    dcs = (1 - co * co) * h_gradient * o + cs_gradient
    if peepholes:
        dcs = dcs + do * peepholes[2]
    di, df, dci = i * (1 - i) * dcs * ci, f * (1 - f) * dcs * before, (1 - ci * ci) * dcs * i
    columns = xp.empty((len(before), 4 * units), before.dtype)
    for k, part in zip(_order(call), (di, df, do, dci), strict=True):
        columns[:, k * units : (k + 1) * units] = part
    earlier = dcs * f
    if not peepholes:
        nothing = xp.zeros(units, before.dtype)
        return earlier, columns, (nothing, nothing, nothing)
    earlier = earlier + di * peepholes[0] + df * peepholes[1]
    return earlier, columns, ((di * before).sum(0), (df * before).sum(0), (do * cs).sum(0))


@kernel("tf:LSTMBlockCellGrad")
def lstm_cell_grad(
    call: "Call", x: Any, cs: Any, h: Any, w: Any, wci: Any, wcf: Any, wco: Any, b: Any, *saved: Any
) -> tuple[Any, ...]:
    """The gradient of one step by the earlier cell state, the gates' columns and the peepholes."""
    _check(x, cs, h, w)
    i, new, f, o, ci, co, cs_gradient, h_gradient = saved
    peepholes = (wci, wcf, wco) if call.attr("use_peephole", False) else ()
    earlier, columns, by_peepholes = _back(call, Gates(i, new, f, o, ci, co, None), cs, cs_gradient, h_gradient, peepholes)
    return earlier, columns, *by_peepholes


@kernel("tf:BlockLSTMGrad", "tf:BlockLSTMGradV2")
def block_lstm_grad(
    call: "Call", length: Any, x: Any, cs: Any, h: Any, w: Any, wci: Any, wcf: Any, wco: Any, b: Any, *saved: Any
) -> tuple[Any, ...]:
    """The gradient of the steps of an LSTM by everything that they read."""
    xp = call.xp
    _check(x, cs, h, w)
    steps, inputs = x.shape[0], x.shape[2]
    *gates, cs_gradient, h_gradient = saved
    peepholes = (wci, wcf, wco) if call.attr("use_peephole", False) else ()
    dx, dw, db = xp.zeros_like(x), xp.zeros_like(w), xp.zeros_like(b)
    d_peepholes: tuple[Any, ...] = tuple(xp.zeros_like(v) for v in (wci, wcf, wco))
    dcs, dh = xp.zeros_like(cs), xp.zeros_like(h)
    for t in reversed(range(min(int(length), steps))):
        here = Gates(*(whole[t] for whole in gates))
        before, output = (gates[1][t - 1], gates[6][t - 1]) if t else (cs, h)
        dcs, columns, parts = _back(call, here, before, dcs + cs_gradient[t], dh + h_gradient[t], peepholes)
        rows = columns @ w.T
        dx[t], dh = rows[:, :inputs], rows[:, inputs:]
        dw += xp.concatenate([x[t], output], 1).T @ columns
        db += columns.sum(0)
        if peepholes:
            d_peepholes = tuple(old + new for old, new in zip(d_peepholes, parts, strict=True))
    return dx, dcs, dh, dw, *d_peepholes, db


@kernel("tf:GRUBlockCell")
def gru_cell(call: "Call", x: Any, h: Any, w_ru: Any, w_c: Any, b_ru: Any, b_c: Any) -> tuple[Any, ...]:
    """One step of a GRU."""
    xp, units = call.xp, h.shape[-1]
    ru = sigmoid(xp, xp.concatenate([x, h], 1) @ w_ru + b_ru)
    r, u = ru[:, :units], ru[:, units:]
    c = xp.tanh(xp.concatenate([x, h * r], 1) @ w_c + b_c)
    return r, u, c, u * h + (1 - u) * c


@kernel("tf:GRUBlockCellGrad")
def gru_cell_grad(
    call: "Call", x: Any, h: Any, w_ru: Any, w_c: Any, b_ru: Any, b_c: Any, r: Any, u: Any, c: Any, dh: Any
) -> tuple[Any, ...]:
    """The gradient of one step of a GRU by its input, the earlier state, and the arguments of its functions."""
    inputs = x.shape[-1]
    dc = dh * (1 - u) * (1 - c * c)
    du = dh * (h - c) * u * (1 - u)
    by_c = dc @ w_c.T
    dr = by_c[:, inputs:] * h * r * (1 - r)
    dru = call.xp.concatenate([dr, du], 1)
    by_ru = dru @ w_ru.T
    return by_c[:, :inputs] + by_ru[:, :inputs], by_c[:, inputs:] * r + by_ru[:, inputs:] + dh * u, dc, dru
