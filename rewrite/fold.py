"""Casts of constants to float32 that the low dtype cannot hold: the constant is stored in float32 instead.

Exporters write ``-1e30`` as a float64 constant, or a large integer, with a Cast behind it. Hazard rules see numbers only where they
are float32 constants, and a Cast that became low would make infinity of them.
"""

import numpy as np

from ..graph.dtypes import DType, float32
from ..graph.graph import Graph, Node
from ..graph.types import Tensor
from .constants import constant_of
from .hazards_constants import LIMITS

#: Larger constants of other dtypes are tables, not numbers that somebody wrote down.
_MOST_ELEMENTS = 1024


def fold_large_constants(graph: Graph, low: DType) -> None:
    """Replace such Casts, in place, by constants with their names."""
    infinite = LIMITS[low][0]
    sources: set[Node] = set()
    for node in [node for node in graph.nodes if node.op_type == "Cast" and not node.domain]:
        tensor = constant_of(node.inputs[0])
        if tensor is None or tensor.size > _MOST_ELEMENTS or node.types.get("T2") is not float32 or tensor.dtype is float32:
            continue
        if tensor.dtype.kind not in ("float", "int", "uint"):
            continue
        with np.errstate(over="ignore"):
            array = tensor.array().astype(np.float32)
        if np.abs(array).max(initial=0) >= infinite:
            schema = graph.find_schema("", "Constant")
            assert schema is not None
            sources.update(value.producer for value in node.inputs if value is not None)
            graph.set_inputs(node, [])
            node.op_type, node.attributes, node.types = "Constant", {"value": Tensor.of(array)}, {"T": float32}
            node.signature = schema.signature(node.attributes, node.types)
    if sources:
        read = {value for node in graph.nodes for value in node.inputs}.union(graph.outputs)
        graph.remove_all(node for node in sources if node.op_type != "Input" and read.isdisjoint(node.outputs))
