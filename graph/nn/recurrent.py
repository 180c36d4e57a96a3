"""Recurrent layers over time: a loop whose steps read and write tensor lists, as Keras makes them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import TraceError
from ..tracing.control import while_loop
from ..tracing.operations import apply, ints, kind_of, rank, shape_of, size_operand, static_shape, symbolic
from .activation import sigmoid


def lstm(x: Any, kernel: Any, recurrent_kernel: Any, bias: Any, state: Any = None) -> tuple[Any, tuple[Any, Any]]:
    """Run a layer of long short-term memory over time.

    Args:
        x: [batch, time, features].
        kernel: [features, 4 * units]: for the input, forget, cell and output gates, in Keras's order.
        recurrent_kernel: [units, 4 * units].
        bias: [4 * units].
        state: The hidden state and the cell's at first, each [batch, units]; zeros when None.

    Returns:
        The hidden states of all steps, [batch, time, units], and the last hidden and cell state.

    Raises:
        TraceError: If ranks do not fit, or the state is no pair.

    Source of the method: Hochreiter and Schmidhuber, 1997; Gers and others, 2000.
    """
    units = _units(x, recurrent_kernel, 4)
    projected = np.matmul(x, kernel) + bias

    def step(inputs: Any, hidden: Any, cell: Any) -> tuple[Any, Any]:
        gates = np.split(inputs + np.matmul(hidden, recurrent_kernel), 4, axis=1)
        cell = sigmoid(gates[1]) * cell + sigmoid(gates[0]) * np.tanh(gates[2])
        return sigmoid(gates[3]) * np.tanh(cell), cell

    zeros = _zeros(x, units, projected.dtype)
    if state is None:
        state = (zeros, zeros)
    elif not isinstance(state, tuple | list) or len(state) != 2:
        raise TraceError(f"The state of lstm is a pair: the hidden state and the cell's. Received: {state!r}")
    outputs, last = _over_time(projected, tuple(state), step, units)
    return outputs, (last[0], last[1])


def gru(x: Any, kernel: Any, recurrent_kernel: Any, bias: Any, state: Any = None) -> tuple[Any, Any]:
    """Run a layer of gated recurrent units over time, with the reset gate behind the recurrent product.

    Args:
        x: [batch, time, features].
        kernel: [features, 3 * units]: for the update and reset gates and the new state, in Keras's order.
        recurrent_kernel: [units, 3 * units].
        bias: [2, 3 * units]: added to the products with each of both.
        state: The hidden state at first, [batch, units]; zeros when None.

    Returns:
        The hidden states of all steps, [batch, time, units], and the last one.

    Raises:
        TraceError: If ranks, or the bias's sizes, do not fit.

    Source of the method: Cho and others, 2014.
    """
    units = _units(x, recurrent_kernel, 3)
    if static_shape(bias) != (2, 3 * units):
        raise TraceError(f"The bias of gru is [2, 3 * units], for each of both products. Received: {list(static_shape(bias))}")
    projected = np.matmul(x, kernel) + bias[0]
    after = bias[1]

    def step(inputs: Any, hidden: Any) -> tuple[Any]:
        given = np.split(inputs, 3, axis=1)
        kept = np.split(np.matmul(hidden, recurrent_kernel) + after, 3, axis=1)
        update, reset = sigmoid(given[0] + kept[0]), sigmoid(given[1] + kept[1])
        new = np.tanh(given[2] + reset * kept[2])
        return (update * hidden + (1 - update) * new,)

    first = (_zeros(x, units, projected.dtype),) if state is None else (state,)
    outputs, last = _over_time(projected, first, step, units)
    return outputs, last[0]


def _units(x: Any, recurrent_kernel: Any, gates: int) -> int:
    units, width = static_shape(recurrent_kernel) if rank(recurrent_kernel) == 2 else (None, None)
    if rank(x) != 3 or units is None or width != gates * units:
        shapes = f"{list(static_shape(x))} and {list(static_shape(recurrent_kernel))}"
        raise TraceError(f"Inputs are [batch, time, features], recurrent kernels [units, {gates} * units]. Received: {shapes}")
    return units


def _zeros(x: Any, units: int, dtype: Any) -> Any:
    return apply("Fill", size_operand([shape_of(x)[0], units]), np.zeros((), dtype))


def _over_time(projected: Any, state: tuple[Any, ...], step: Callable[..., Any], units: int) -> tuple[Any, tuple[Any, ...]]:
    """Call ``step`` with the inputs of each time and the state; return all first states, [batch, time, units], and the last state."""
    batch, _, width = static_shape(projected)
    time = shape_of(projected)[1]
    dtype = np.dtype(kind_of(projected))
    inputs = apply("TensorListFromTensor", np.swapaxes(symbolic(projected), 0, 1), _element(batch, width))
    length = symbolic(time, np.int32)
    outputs = apply("TensorListReserve", _element(batch, units), length, types={"element_dtype": dtype})

    def body(i: Any, outputs: Any, *state: Any) -> tuple[Any, ...]:
        now = apply("TensorListGetItem", inputs, i, _element(batch, width), types={"element_dtype": dtype})
        state = tuple(step(now, *state))
        return i + 1, apply("TensorListSetItem", outputs, i, state[0]), *state

    loop_vars = (symbolic(0, np.int32), outputs, *(symbolic(item, dtype) for item in state))
    _, outputs, *last = while_loop(lambda i, *_: i < length, body, loop_vars)
    known = time if isinstance(time, int) else -1
    stacked = apply("TensorListStack", outputs, _element(batch, units), types={"element_dtype": dtype}, num_elements=known)
    return np.swapaxes(stacked, 0, 1), tuple(last)


def _element(batch: int | None, width: int | None) -> Any:
    return ints([-1 if dim is None else dim for dim in (batch, width)])
