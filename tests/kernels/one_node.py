"""Run a single op on arrays."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ampgraph.graph import Graph
from ampgraph.graph.dtypes import DType, dtype_of_array, find_dtype
from ampgraph.graph.types import Shape
from ampgraph.kernels.program import compile


def run_op(
    op: str,
    *operands: Any,
    version: int = 21,
    results: int = 1,
    types: Mapping[str, str] | None = None,
    **attributes: Any,
) -> Any:
    """Return the result of an op, or the list of its results if there are several.

    Args:
        op: ``"Op"`` or ``"domain:Op"``.
        operands: Arrays; lists of arrays for sequences; None where omitted.
        version: Version of the op's domain.
        results: Number of results.
        types: Type variables that neither operands nor defaults give.
        attributes: Attributes, strings as bytes.
    """
    domain, _, op_type = op.rpartition(":")
    graph = Graph("one", opsets={domain: version})
    values, feeds = [], {}
    for i, operand in enumerate(operands):
        if operand is None:
            values.append(None)
            continue
        first = operand[0] if isinstance(operand, list) else operand
        name, container = f"x{i}", "seq" if isinstance(operand, list) else ""
        values.append(graph.add_input(name, dtype_of_array(np.asarray(first).dtype), Shape(None, container)))
        feeds[name] = operand
    found: dict[str, DType] = {name: find_dtype(dtype) for name, dtype in (types or {}).items()}
    node = graph.add(op_type, values, domain=domain, attributes=attributes, types=found, outputs=results)
    graph.outputs = list(node.outputs)
    graph.output_names = [f"y{i}" for i in range(results)]
    outputs = list(compile(graph)(feeds).values())
    return outputs[0] if results == 1 else outputs
