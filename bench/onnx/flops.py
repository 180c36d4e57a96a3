"""How many FLOPs of a run are computed in which dtype, by the shapes that values really have."""

from collections import Counter
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ampgraph.graph import Graph, Node, Value

#: The ops that are counted.
HEAVY = {"Conv", "ConvTranspose", "MatMul", "Gemm"}


class FlopCounter:
    """Counts the FLOPs of Conv, ConvTranspose, MatMul and Gemm, two for a multiply-add; give :meth:`see` to a program.

    Args:
        graph: The graph that will run.
        feeds: What it will run on.

    Attributes:
        by_dtype: FLOPs by the widest float dtype among the first two operands; nodes as often as they ran.
    """

    def __init__(self, graph: Graph, feeds: dict[str, Any]) -> None:
        self.by_dtype: Counter[str] = Counter()
        self._shapes: dict[Value, Sequence[int]] = {
            value: np.shape(feeds[value.name]) for value in graph.inputs if value.name in feeds
        }
        self._outer = _captured(graph)

    def see(self, value: Value, array: Any) -> None:
        """Take note of a value that was computed."""
        self._shapes[value] = np.shape(array)
        node = value.producer
        if node.op_type not in HEAVY or node.domain or value.index:
            return
        operands = node.inputs[:2]
        dtypes = [operand.dtype for operand in operands if operand is not None]
        widest = max((dtype for dtype in dtypes if dtype is not None), key=lambda dtype: dtype.bits, default=None)
        self.by_dtype["unknown" if widest is None else widest.name] += 2 * self._products(node, np.shape(array))

    def _products(self, node: Node, result: Sequence[int]) -> int:
        """Return how many products are computed."""
        first, second = (self._shape(operand) for operand in node.inputs[:2])
        size = prod(result)
        if node.op_type in ("Conv", "ConvTranspose"):
            kernel = node.attributes.get("kernel_shape") or (second or ())[2:]
            if not first or not kernel:
                return 0
            groups = node.attributes.get("group", 1)
            if node.op_type == "Conv":
                return size * first[1] // groups * prod(kernel)
            return prod(first) * result[1] // groups * prod(kernel)
        if node.op_type == "Gemm":
            if first:
                return size * first[0 if node.attributes.get("transA", 0) else 1]
            return size * second[1 if node.attributes.get("transB", 0) else 0] if second else 0
        if first:
            return size * first[-1]
        return size * second[-2] if second and len(second) > 1 else 0

    def _shape(self, value: Value | None) -> Sequence[int] | None:
        while value is not None:
            if value in self._shapes:
                return self._shapes[value]
            constant = value.producer.attributes.get("value")
            dims = getattr(constant, "shape", None) if not value.producer.inputs else None
            if dims is not None:
                return tuple(dims)
            if value.shape.dims is not None and all(isinstance(dim, int) for dim in value.shape.dims):
                return tuple(dim for dim in value.shape.dims if isinstance(dim, int))
            value = self._outer.get(value)
        return None


def _captured(graph: Graph) -> dict[Value, Value]:
    """Return for each input of a body that stands for an outer value the operand of the body's owner that it is."""
    found: dict[Value, Value] = {}
    for part in graph.all_graphs():
        for node, _, body in part.bodies():
            by_label = {value.name: value for value in node.inputs if value is not None}
            for value, label in zip(body.inputs[len(body.inputs) - len(body.captures) :], body.captures, strict=True):
                if label in by_label:
                    found[value] = by_label[label]
    return found
