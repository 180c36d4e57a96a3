"""Weights that are all one number, as test models have them: made random, so that no executor profits from filters that are equal."""

from typing import Any

import numpy as np

from ampgraph.graph import Graph, Value
from bench.executor.built import add_constant
from bench.executor.kinds import constant_of

#: Filled constants of fewer elements are no weights.
_LEAST = 16
_HEAVY = {"Conv", "ConvTranspose", "MatMul", "Gemm"}


def draw_filled(graph: Graph) -> int:
    """Make what a model fills with a number other than 0 random; return how many weights that were.

    These are the results of ConstantOfShape, and constants of convolutions and products with two and more axes. Matrices and
    kernels are drawn as large as those of a layer with so many inputs, vectors within half of the number.
    """
    random = np.random.default_rng(0)
    found: dict[Value, Any] = {}
    for node in graph.nodes:
        if node.op_type == "ConstantOfShape":
            found[node.outputs[0]] = _filled(node.inputs[0], node.attributes.get("value"))
        elif node.op_type in _HEAVY and len(node.inputs) > 1 and node.inputs[1] is not None:
            array = constant_of(node.inputs[1])
            if array is not None and array.ndim > 1 and array.size >= _LEAST and (array == array.flat[0]).all():
                found[node.inputs[1]] = array
    drawn = {value: array for value, array in found.items() if array is not None and array.dtype == np.float32 and array.any()}
    for value, array in drawn.items():
        graph.replace_all_uses_with(value, add_constant(graph, "drawn", _draw(random, array)))
    return len(drawn)


def _filled(shape: Value | None, value: Any) -> Any:
    """Return the result of a ConstantOfShape whose shape is a constant."""
    sizes = constant_of(shape)
    if sizes is None or value is None:
        return None
    return np.full(sizes, value.array().flat[0]) if np.prod(sizes) >= _LEAST else None


def _draw(random: np.random.Generator, array: Any) -> Any:
    if array.ndim < 2:
        return (array * random.uniform(0.5, 1.5, array.shape)).astype(np.float32)
    inputs = array[0].size if array.ndim > 2 else array.shape[0]
    return (random.standard_normal(array.shape) * inputs**-0.5).astype(np.float32)
