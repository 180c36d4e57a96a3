"""Recurrent layers against their formulas, written out for one sequence and one step at a time in float64."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.one_node import run_op

T, N, I, H = 5, 3, 4, 6
LENS = np.array([5, 2, 4], np.int32)


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed + sum(shape)).normal(size=shape).astype(np.float32)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def cell_of(op: str, w: Any, r: Any, b: Any, p: Any = None, reset_last: bool = False) -> Callable[..., tuple[Any, ...]]:
    """Return the formula of one step of one sequence."""
    w, r, wb, rb = w.astype(float), r.astype(float), *np.split(b.astype(float), 2)
    gate = [slice(k * H, (k + 1) * H) for k in range(4)]

    def lstm(x: Any, h: Any, c: Any) -> tuple[Any, ...]:
        zi, zo, zf, zc = (w[g] @ x + r[g] @ h + wb[g] + rb[g] for g in gate)
        pi, po, pf = (0, 0, 0) if p is None else np.split(p.astype(float), 3)
        new = sigmoid(zf + pf * c) * c + sigmoid(zi + pi * c) * np.tanh(zc)
        return sigmoid(zo + po * new) * np.tanh(new), new

    def gru(x: Any, h: Any) -> tuple[Any, ...]:
        z, reset = (sigmoid(w[g] @ x + r[g] @ h + wb[g] + rb[g]) for g in gate[:2])
        g = gate[2]
        inner = reset * (r[g] @ h + rb[g]) if reset_last else r[g] @ (reset * h) + rb[g]
        return ((1 - z) * np.tanh(w[g] @ x + wb[g] + inner) + z * h,)

    def rnn(x: Any, h: Any) -> tuple[Any, ...]:
        return (np.tanh(w @ x + r @ h + wb + rb),)

    return {"LSTM": lstm, "GRU": gru, "RNN": rnn}[op]


def expected(cells: Sequence[Any], x: Any, lens: Any, starts: Sequence[Any], backwards: Sequence[bool]) -> list[Any]:
    y = np.zeros((T, len(cells), N, H))
    last = [np.zeros((len(cells), N, H)) for _ in starts]
    for d, cell in enumerate(cells):
        for n in range(N):
            states = [start[d, n].astype(float) for start in starts]
            steps = range(lens[n])
            for t in reversed(steps) if backwards[d] else steps:
                states = cell(x[t, n].astype(float), *states)
                y[t, d, n] = states[0]
            for k, state in enumerate(states):
                last[k][d, n] = state
    return [y, *last]


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("lens", [None, LENS])
@pytest.mark.parametrize("op", ["LSTM", "GRU", "GRU reset last", "RNN"])
def test_layers(op: str, lens: Any, direction: str) -> None:
    op, _, late = op.partition(" ")
    gates, states, count = {"LSTM": 4, "GRU": 3, "RNN": 1}[op], 2 if op == "LSTM" else 1, 2 if direction == "bidirectional" else 1
    x, w, r, b = normal(T, N, I), normal(count, gates * H, I), normal(count, gates * H, H), normal(count, 2 * gates * H)
    starts = [normal(count, N, H, seed=k) for k in range(states)]
    p = normal(count, 3 * H) if op == "LSTM" else None
    options: dict[str, Any] = {"hidden_size": H, "direction": direction.encode()}
    if late:
        options["linear_before_reset"] = 1
    got = run_op(op, x, w, r, b, lens, *starts, *([p] if op == "LSTM" else []), results=1 + states, **options)
    cells = [cell_of(op, w[d], r[d], b[d], None if p is None else p[d], bool(late)) for d in range(count)]
    backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    for a, e in zip(got, expected(cells, x, [T] * N if lens is None else lens, starts, backwards), strict=True):
        np.testing.assert_allclose(a, e, atol=2e-6)


def test_batch_first_is_another_order_of_axes() -> None:
    x, w, r = normal(T, N, I), normal(1, H, I), normal(1, H, H)
    y, last = run_op("RNN", x, w, r, results=2, hidden_size=H)
    rows, rows_last = run_op("RNN", x.swapaxes(0, 1), w, r, results=2, hidden_size=H, layout=1)
    np.testing.assert_array_equal(rows, y.transpose(2, 0, 1, 3))
    np.testing.assert_array_equal(rows_last, last.swapaxes(0, 1))


def test_activations_take_their_parameters_in_turn() -> None:
    """Only functions that have a parameter take one: HardSigmoid the first alpha and beta, LeakyRelu the second alpha."""
    x, w, r = normal(T, N, I), normal(1, 4 * H, I), np.zeros((1, 4 * H, H), np.float32)
    names = [b"HardSigmoid", b"Tanh", b"LeakyRelu"]
    y = run_op("LSTM", x, w, r, activations=names, activation_alpha=[0.3, 0.05], activation_beta=[0.4], hidden_size=H)
    i, o, _, c = np.split(x[0].astype(float) @ w[0].T.astype(float), 4, axis=1)
    cell = np.clip(0.3 * i + 0.4, 0, 1) * np.tanh(c)
    np.testing.assert_allclose(y[0, 0], np.clip(0.3 * o + 0.4, 0, 1) * np.where(cell < 0, 0.05 * cell, cell), atol=1e-6)


def test_clip_and_coupled_gates() -> None:
    one = np.full((1, 1, 1), 100, np.float32)
    assert run_op("RNN", one, one, one, activations=[b"Affine"], hidden_size=1, clip=3.0).tolist() == [[[[3]]]]
    w, r, c = np.zeros((1, 4, 1), np.float32), np.zeros((1, 4, 1), np.float32), np.full((1, 1, 1), 8, np.float32)
    w[0, 0] = 1  # the input gate is open, so the coupled forget gate is shut
    state = run_op("LSTM", one, w, r, None, None, None, c, results=3, hidden_size=1, input_forget=1)[2]
    assert state.tolist() == [[[0]]]


def test_half_gates_do_not_overflow() -> None:
    """300 * 300 is no float16, but a gate takes the sum in float32."""
    x, w, r = np.full((1, 1, 1), 300, np.float16), np.full((1, 1, 1), 300, np.float16), np.zeros((1, 1, 1), np.float16)
    y = run_op("RNN", x, w, r, hidden_size=1, activations=[b"Softsign"])
    assert y.dtype == np.float16
    assert y.tolist() == [[[[1]]]]


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("per_column", [False, True])
def test_quantized_weights(dtype: Any, per_column: bool) -> None:
    """The layer of the weights' real values, less than what 8 bits of the input and the state lose."""
    rng = np.random.default_rng(1)
    w, r = (rng.integers(*((0, 256) if dtype is np.uint8 else (-128, 128)), (1, n, 4 * H)).astype(dtype) for n in (I, H))
    shape = (1, 4 * H) if per_column else (1,)
    scales = [rng.uniform(0.002, 0.004, shape).astype(np.float32) for _ in range(2)]
    zeros = [np.full(shape, 100, dtype)] * 2
    x, b = normal(T, N, I), normal(1, 8 * H)
    got = run_op(
        "com.microsoft:DynamicQuantizeLSTM",
        *(x, w, r, b, None, None, None, None, scales[0], zeros[0], scales[1], zeros[1]),
        version=1,
        results=3,
        hidden_size=H,
    )
    wide = [(q[0].astype(float) - 100) * s[0] for q, s in zip((w, r), scales, strict=True)]
    cell = cell_of("LSTM", wide[0].T, wide[1].T, b[0])
    for a, e in zip(got, expected([cell], x, [T] * N, [np.zeros((1, N, H))] * 2, [False]), strict=True):
        np.testing.assert_allclose(a, e, atol=0.02)


def test_no_steps_and_no_sequences() -> None:
    w, r, h = normal(1, H, I), normal(1, H, H), normal(1, N, H)
    y, last = run_op("RNN", np.zeros((0, N, I), np.float32), w, r, None, None, h, results=2, hidden_size=H)
    assert y.shape == (0, 1, N, H)
    np.testing.assert_array_equal(last, h)
    assert run_op("RNN", np.zeros((T, 0, I), np.float32), w, r, hidden_size=H).shape == (T, 1, 0, H)


def test_mistakes_are_named() -> None:
    x, w, r = normal(T, N, I), normal(1, H, I), normal(1, H, H)
    with pytest.raises(KernelError, match=r"direction 'bidirectional' cannot have weights for 1 directions"):
        run_op("RNN", x, w, r, hidden_size=H, direction=b"bidirectional", activations=[b"Tanh", b"Tanh"])
    with pytest.raises(KernelError, match=r"Unknown activation function. Did you mean 'tanh'\? Received: 'Tanhh'"):
        run_op("RNN", x, w, r, hidden_size=H, activations=[b"Tanhh"])
