"""Run a layer of TensorFlow on arrays, and differentiate by differences."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ampgraph.graph.dtypes import DType, dtype_of_array
from ampgraph.graph.schemas.tf import find
from tests.kernels.one_node import run_op


def run_layer(op: str, *operands: Any, results: int = 1, **attributes: Any) -> Any:
    """Return the result of an op, or the list of its results if there are several; its types are those of the operands.

    Args:
        op: Its name.
        operands: Arrays, or what becomes one.
        results: Number of results.
        attributes: Attributes, strings as ``str``.
    """
    schema = find(op)
    assert schema is not None
    arrays = [np.asarray(operand) for operand in operands]
    types = {name: variable.default.name for name, variable in schema.type_vars.items() if isinstance(variable.default, DType)}
    types |= {formal.var: dtype_of_array(x.dtype).name for formal, x in zip(schema.inputs, arrays, strict=False) if formal.var}
    given: dict[str, Any] = {name: value.encode() if isinstance(value, str) else value for name, value in attributes.items()}
    return run_op(f"tf:{op}", *arrays, results=results, types=types, **given)


def slope(function: Callable[[Any], Any], x: Any, dy: Any, step: float = 1e-6) -> Any:
    """Return the gradient of ``sum(function(x) * dy)`` by ``x``, by differences."""
    result = np.zeros(x.size)
    for i in range(x.size):
        ends = []
        for sign in (1, -1):
            moved = x.astype(np.float64).ravel()
            moved[i] += sign * step
            ends.append(float((function(moved.reshape(x.shape)) * dy).sum()))
        result[i] = (ends[0] - ends[1]) / (2 * step)
    return result.reshape(x.shape)
