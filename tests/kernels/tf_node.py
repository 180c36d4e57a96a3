"""Run a single TensorFlow op on arrays, and differentiate by differences."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ampgraph.graph import Graph
from ampgraph.graph.dtypes import dtype_of_array, find_dtype
from ampgraph.graph.schemas.tf import find
from ampgraph.graph.types import Shape
from ampgraph.kernels.program import Program, compile


def tf_program(op: str, *operands: Any, results: int = 1, types: Mapping[str, str] | None = None, **attributes: Any) -> Program:
    """Return a program of one op with inputs ``x0``, ``x1`` … and results ``y0``, ``y1`` ….

    Args:
        op: Its name.
        operands: Arrays that have the dtypes of its operands.
        results: Number of results.
        types: Type variables that neither operands nor defaults give.
        attributes: Attributes; a string may be ``str``.
    """
    graph, schema = Graph("one"), find(op)
    assert schema is not None
    dtypes = [dtype_of_array(np.asarray(operand).dtype) for operand in operands]
    known: dict[str, Any] = {name: variable.default for name, variable in schema.type_vars.items() if variable.default}
    for formal, dtype in zip(schema.inputs, dtypes, strict=False):
        if formal.var and not formal.is_list:
            known[formal.var] = dtype
    known |= {name: find_dtype(dtype) for name, dtype in (types or {}).items()}
    values = [graph.add_input(f"x{i}", dtype, Shape(None)) for i, dtype in enumerate(dtypes)]
    given = {name: value.encode() if isinstance(value, str) else value for name, value in attributes.items()}
    node = graph.add(op, values, domain="tf", attributes=given, types=known, outputs=results)
    graph.outputs = list(node.outputs)
    graph.output_names = [f"y{i}" for i in range(results)]
    return compile(graph)


def run_tf(op: str, *operands: Any, results: int = 1, types: Mapping[str, str] | None = None, **attributes: Any) -> Any:
    """Return the result of an op, or the list of its results if there are several; as :func:`tf_program` has it."""
    arrays = [np.asarray(operand) for operand in operands]
    program = tf_program(op, *arrays, results=results, types=types, **attributes)
    found = list(program({f"x{i}": x for i, x in enumerate(arrays)}).values())
    return found[0] if results == 1 else found


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
