"""Recurrent layers: RNN, LSTM, GRU, and the LSTM with quantized weights.

One function runs one direction of any of them: the gates' input parts are one matrix product for all time steps, then
a loop over the steps multiplies the state. Weights come as functions from rows to rows, so that quantized weights differ
only in how a row is multiplied.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .activations import find_activations
from .qlinear import dynamic_quantize
from .registry import kernel

if TYPE_CHECKING:
    from .call import Call

#: From rows to rows: the product with a weight.
Product = Callable[[Any], Any]
#: One time step: (gates' input part, states) -> new states, the first of which is the output.
Step = Callable[[Any, tuple[Any, ...]], tuple[Any, ...]]


@kernel("LSTM")
def lstm(
    call: "Call", x: Any, w: Any, r: Any, b: Any = None, lens: Any = None, h: Any = None, c: Any = None, p: Any = None
) -> tuple[Any, ...]:
    """Gates i, o, f, c; see :func:`_lstm`."""
    return _lstm(call, x, _products(w), _products(r), r.shape[2], b, lens, h, c, p)


@kernel("com.microsoft:DynamicQuantizeLSTM")
def dynamic_quantize_lstm(
    call: "Call",
    x: Any,
    w: Any,
    r: Any,
    b: Any,
    lens: Any,
    h: Any,
    c: Any,
    p: Any,
    w_scale: Any,
    w_zero: Any,
    r_scale: Any,
    r_zero: Any,
) -> tuple[Any, ...]:
    """LSTM with integer weights ``w[D, I, 4H]`` and ``r[D, H, 4H]``; its input and state are quantized as they come."""
    wide = call.kept(lambda: (_less(call.xp, w, w_zero), _less(call.xp, r, r_zero)), 1, 2, 9, 11)
    weights, recurrence = (
        [partial(_quantized_product, call.xp, part, scale[d]) for d, part in enumerate(parts)]
        for parts, scale in zip(wide, (w_scale, r_scale), strict=True)
    )
    return _lstm(call, x, weights, recurrence, r.shape[1], b, lens, h, c, p)


def _lstm(
    call: "Call", x: Any, w: Sequence[Product], r: Sequence[Product], size: int, b: Any, lens: Any, h: Any, c: Any, p: Any
) -> tuple[Any, ...]:
    xp, clip, directions = call.xp, call.attr("clip"), len(w)
    names = call.attr("activations") or ["Sigmoid", "Tanh", "Tanh"] * directions
    functions = _functions(call, names, 3 * directions)
    coupled = call.attr("input_forget", 0)

    def direction(d: int) -> tuple[Product, Step]:
        f, g, out = functions[3 * d : 3 * d + 3]
        bias = None if b is None else b[d, : 4 * size] + b[d, 4 * size :]
        pi, po, pf = (None, None, None) if p is None else (p[d, :size], p[d, size : 2 * size], p[d, 2 * size :])

        def step(gates: Any, states: tuple[Any, ...]) -> tuple[Any, ...]:
            hidden, cell = states
            gates = gates + r[d](hidden)
            if p is None and not coupled and not clip:
                three = f(xp, gates[:, : 3 * size])
                cell = three[:, 2 * size :] * cell + three[:, :size] * g(xp, gates[:, 3 * size :])
                return three[:, size : 2 * size] * out(xp, cell), cell
            gi, go, gf, gc = (gates[:, k * size : (k + 1) * size] for k in range(4))
            i = f(xp, _clip(xp, gi if pi is None else gi + pi * cell, clip))
            forget = 1 - i if coupled else f(xp, _clip(xp, gf if pf is None else gf + pf * cell, clip))
            cell = forget * cell + i * g(xp, _clip(xp, gc, clip))
            o = f(xp, _clip(xp, go if po is None else go + po * cell, clip))
            return o * out(xp, cell), cell

        return (lambda rows: w[d](rows) if bias is None else w[d](rows) + bias), step

    return _run(call, x, [direction(d) for d in range(directions)], size, lens, (h, c))


@kernel("GRU")
def gru(call: "Call", x: Any, w: Any, r: Any, b: Any = None, lens: Any = None, h: Any = None) -> tuple[Any, ...]:
    """Gates z, r, h."""
    xp, clip, directions, size = call.xp, call.attr("clip"), w.shape[0], r.shape[2]
    functions = _functions(call, call.attr("activations") or ["Sigmoid", "Tanh"] * directions, 2 * directions)
    reset_last = call.attr("linear_before_reset", 0)
    if b is None:
        b = xp.zeros((directions, 6 * size), x.dtype)

    def direction(d: int) -> tuple[Product, Step]:
        f, g = functions[2 * d : 2 * d + 2]
        bias = b[d, : 3 * size].copy()
        bias[: 2 * size] += b[d, 3 * size : 5 * size]
        late = b[d, 5 * size :]
        wt, rt = w[d].T, r[d].T

        def step(gates: Any, states: tuple[Any, ...]) -> tuple[Any, ...]:
            (hidden,) = states
            product = hidden @ (rt if reset_last else rt[:, : 2 * size])
            zr = f(xp, _clip(xp, gates[:, : 2 * size] + product[:, : 2 * size], clip))
            z, reset = zr[:, :size], zr[:, size:]
            part = product[:, 2 * size :] if reset_last else (reset * hidden) @ rt[:, 2 * size :]
            part += late
            if reset_last:
                part *= reset
            part += gates[:, 2 * size :]
            new = g(xp, _clip(xp, part, clip))
            mixed = hidden - new
            mixed *= z
            mixed += new
            return (mixed,)

        return (lambda rows: rows @ wt + bias), step

    return _run(call, x, [direction(d) for d in range(directions)], size, lens, (h,))


@kernel("RNN")
def rnn(call: "Call", x: Any, w: Any, r: Any, b: Any = None, lens: Any = None, h: Any = None) -> tuple[Any, ...]:
    """A single gate."""
    xp, clip, directions, size = call.xp, call.attr("clip"), w.shape[0], r.shape[2]
    functions = _functions(call, call.attr("activations") or ["Tanh"] * directions, directions)

    def direction(d: int) -> tuple[Product, Step]:
        bias = None if b is None else b[d, :size] + b[d, size:]
        wt, rt = w[d].T, r[d].T

        def step(gates: Any, states: tuple[Any, ...]) -> tuple[Any, ...]:
            return (functions[d](xp, _clip(xp, gates + states[0] @ rt, clip)),)

        return (lambda rows: rows @ wt if bias is None else rows @ wt + bias), step

    return _run(call, x, [direction(d) for d in range(directions)], size, lens, (h,))


def _products(weight: Any) -> list[Product]:
    """Return, for each direction, the product of rows with the transposed weight ``[gates, size]``."""
    return [partial(_product, part.T) for part in weight]


def _product(weight: Any, rows: Any) -> Any:
    return rows @ weight


def _less(xp: Any, weight: Any, zero: Any) -> list[Any]:
    """Return the weight of each direction less its zero point, as float32."""
    return [part.astype(xp.float32) - offset.astype(xp.float32) for part, offset in zip(weight, zero, strict=True)]


def _quantized_product(xp: Any, weight: Any, scale: Any, rows: Any) -> Any:
    quantized, row_scale, row_zero = dynamic_quantize(xp, rows)
    return ((quantized.astype(xp.float32) - row_zero.astype(xp.float32)) @ weight) * (row_scale * scale)


def _functions(call: "Call", names: Sequence[str], count: int) -> list[Callable[[Any, Any], Any]]:
    if len(names) < count:
        raise KernelError(
            f"Op {call.node.op_type} needs {count} activation functions for its directions. Received: {list(names)}"
        )
    return find_activations(names[:count], call.attr("activation_alpha"), call.attr("activation_beta"))


def _clip(xp: Any, x: Any, limit: float | None) -> Any:
    return x if not limit else xp.clip(x, -limit, limit)


def _run(
    call: "Call", x: Any, directions: Sequence[tuple[Product, Step]], size: int, lens: Any, initial: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Run all directions.

    Args:
        x: Input ``[T, N, I]``; ``[N, T, I]`` with attribute ``layout`` 1, which also puts the batch of all states first.
        directions: For each direction, the input part of its gates, and its step.
        lens: Length of each sequence, or None when all are T long. Beyond its length a state stays and the output is 0.
        initial: First states ``[D, N, H]``, None for zeros.

    Returns:
        All outputs ``[T, D, N, H]`` and the last states ``[D, N, H]``.
    """
    xp, batch_first = call.xp, call.attr("layout", 0)
    which = call.attr("direction", "forward")
    expected = {"forward": 1, "reverse": 1, "bidirectional": 2}.get(which)
    if expected != len(directions):
        raise KernelError(
            f"Op {call.node.op_type} with direction {which!r} cannot have weights for {len(directions)} directions."
        )
    if batch_first:
        x = x.swapaxes(0, 1)
        initial = tuple(None if state is None else state.swapaxes(0, 1) for state in initial)
    steps, batch = x.shape[:2]
    if lens is not None and bool((lens >= steps).all()):
        lens = None
    ys, lasts = [], []
    for d, (project, step) in enumerate(directions):
        order = _reversal(xp, steps, batch, lens) if which == "reverse" or d == 1 else None
        rows = x if order is None else x[order, xp.arange(batch)]
        gates = project(rows.reshape(steps * batch, x.shape[2]))
        gates = gates.reshape(steps, batch, gates.shape[-1])
        states = tuple(xp.zeros((batch, size), x.dtype) if state is None else state[d] for state in initial)
        y = xp.zeros((steps, batch, size), x.dtype)
        for t in range(steps):
            new = step(gates[t], states)
            if lens is None:
                y[t], states = new[0], new
            else:
                live = (t < lens)[:, None]
                y[t] = xp.where(live, new[0], 0)
                states = tuple(xp.where(live, one, old) for one, old in zip(new, states, strict=True))
        ys.append(y if order is None else y[order, xp.arange(batch)])
        lasts.append(states)
    y = xp.stack(ys, axis=1)
    last = [xp.stack([states[k] for states in lasts]) for k in range(len(initial))]
    if batch_first:
        return y.transpose(2, 0, 1, 3), *(state.swapaxes(0, 1) for state in last)
    return y, *last


def _reversal(xp: Any, steps: int, batch: int, lens: Any) -> Any:
    """Return, ``[T, N]``, which time step stands where when each sequence is read backwards; padding stays where it is."""
    t = xp.arange(steps)[:, None]
    if lens is None:
        return xp.broadcast_to(steps - 1 - t, (steps, batch))
    return xp.where(t < lens, lens - 1 - t, t)
