"""CudnnRNN: a layer against the formulas of its cell, and all gradients against differences."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.tf_node import run_tf, slope

# They make arrays of lists, too.
I32: Any = np.int32

RNG = np.random.default_rng(31)
GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


def size_of(mode: str, inputs: int, units: int, layers: int, directions: int) -> int:
    """Return how many weights and biases there are."""
    sizes = [inputs] + [units * directions] * (layers - 1)
    return sum(directions * GATES[mode] * units * (size + units + 2) for size in sizes)


def sigma(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("mode", GATES)
def test_a_layer_is_its_cell_step_by_step(mode: str) -> None:
    gates, units, inputs = GATES[mode], 3, 2
    x, h, c = RNG.standard_normal((4, 2, inputs)), RNG.standard_normal((1, 2, units)), RNG.standard_normal((1, 2, units))
    w, r = RNG.standard_normal((gates, units, inputs)), RNG.standard_normal((gates, units, units))
    bw, br = RNG.standard_normal((2, gates, units))
    params = np.concatenate([v.ravel() for v in (w, r, bw, br)])
    y, last, last_c = run_tf("CudnnRNN", x, h, c, params, results=4, rnn_mode=mode)[:3]
    state, cell = h[0], c[0]
    for t in range(4):
        a, q = (x[t] @ w[k].T + bw[k] for k in range(gates)), [state @ r[k].T + br[k] for k in range(gates)]
        if mode == "lstm":
            i, f, g, o = (one + other for one, other in zip(a, q, strict=True))
            cell = sigma(f) * cell + sigma(i) * np.tanh(g)
            state = sigma(o) * np.tanh(cell)
        elif mode == "gru":
            reset, update, new = a
            u = sigma(update + q[1])
            state = (1 - u) * np.tanh(new + sigma(reset + q[0]) * q[2]) + u * state
        else:
            state = next(a) + q[0]
            state = np.maximum(state, 0) if mode == "rnn_relu" else np.tanh(state)
        np.testing.assert_allclose(y[t], state)
    np.testing.assert_allclose(last[0], state)
    if mode == "lstm":
        np.testing.assert_allclose(last_c[0], cell)


def test_sequences_end_where_they_say() -> None:
    x, state = RNG.standard_normal((5, 2, 3)), RNG.standard_normal((2, 2, 4))
    params = RNG.standard_normal(size_of("gru", 3, 4, 1, 2))
    given: dict[str, Any] = {"rnn_mode": "gru", "direction": "bidirectional"}
    y, last, *_ = run_tf("CudnnRNNV3", x, state, state, params, I32([5, 2]), results=5, **given)
    short, short_last, *_ = run_tf("CudnnRNN", x[:2, 1:], state[:, 1:], state[:, 1:], params, results=4, **given)
    np.testing.assert_allclose(y[:2, 1], short[:, 0])
    np.testing.assert_array_equal(y[2:, 1], 0)
    np.testing.assert_allclose(last[:, 1], short_last[:, 0])
    turned = [v.swapaxes(0, 1) for v in (x, state, state)]
    z, *_ = run_tf("CudnnRNNV3", *turned, params, I32([5, 2]), results=5, time_major=False, **given)
    np.testing.assert_array_equal(z.swapaxes(0, 1), y)


@pytest.mark.parametrize("mode", GATES)
def test_gradients_are_slopes(mode: str) -> None:
    x, h, c = RNG.standard_normal((3, 2, 2)), RNG.standard_normal((4, 2, 2)), RNG.standard_normal((4, 2, 2))
    params, lengths = RNG.standard_normal(size_of(mode, 2, 2, 2, 2)), I32([2, 3])
    given = {"rnn_mode": mode, "direction": "bidirectional", "dropout": 0.5, "seed": 7}
    values = [x, h, c, params]
    results = run_tf("CudnnRNNV3", *values, lengths, results=5, **given)
    assert set(np.unique(results[3])) == {0, 2}
    dy, dh, dc = (RNG.standard_normal(v.shape) for v in results[:3])
    saved = (*results[:3], dy, dh, dc, *results[3:])
    found = run_tf("CudnnRNNBackpropV3", *values, lengths, *saved, results=4, **given)

    def total(*operands: Any) -> Any:
        y, last_h, last_c, *_ = run_tf("CudnnRNNV3", *operands, lengths, results=5, **given)
        return (y * dy).sum() + (last_h * dh).sum() + ((last_c * dc).sum() if mode == "lstm" else 0)

    for i in range(4 if mode == "lstm" else 2):
        wanted = slope(lambda v, i=i: total(*values[:i], v, *values[i + 1 :]), values[i], 1.0)
        np.testing.assert_allclose(found[i], wanted, atol=1e-7)
    np.testing.assert_allclose(found[3], slope(lambda v: total(x, h, c, v), params, 1.0), atol=1e-7)


@pytest.mark.parametrize("time_major", [True, False])
def test_gradients_of_whole_sequences(time_major: bool) -> None:
    x, h, c = RNG.standard_normal((3, 2, 2)), RNG.standard_normal((1, 2, 2)), RNG.standard_normal((1, 2, 2))
    params, lengths = RNG.standard_normal(size_of("lstm", 2, 2, 1, 1)), I32([3, 3])
    forwards = run_tf("CudnnRNNV2", x, h, c, params, results=5)
    saved = [*forwards[:3], *(RNG.standard_normal(v.shape) for v in forwards[:3]), *forwards[3:]]
    wanted = run_tf("CudnnRNNBackpropV2", x, h, c, params, *saved, results=4)
    turn = (lambda v: v) if time_major else (lambda v: v.swapaxes(0, 1) if v.ndim == 3 else v)
    values = [turn(v) for v in (x, h, c, params)]
    found = run_tf("CudnnRNNBackpropV3", *values, lengths, *(turn(v) for v in saved), results=4, time_major=time_major)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(turn(one), other)


def test_weights_of_another_size_are_refused() -> None:
    x, state = np.zeros((1, 1, 2)), np.zeros((1, 1, 3))
    with pytest.raises(KernelError, match="vector of 84"):
        run_tf("CudnnRNN", x, state, state, np.zeros(7), results=4)
    with pytest.raises(KernelError, match="skip_input"):
        run_tf("CudnnRNN", x, state, state, np.zeros(84), results=4, input_mode="skip_input")
