"""How many FLOPs of a run each matrix product and convolution has, by the shapes that values really have."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from ..graph.graph import Graph, Node, Value

#: The ops that are counted.
ONNX_OPS = frozenset(["Conv", "ConvTranspose", "MatMul", "Gemm"])
TF_OPS = frozenset(
    [
        *("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "_FusedMatMul"),
        *("Conv2D", "Conv3D", "DepthwiseConv2dNative", "_FusedConv2D"),
        *("Conv2DBackpropInput", "Conv2DBackpropFilter", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"),
    ]
)


class FlopCounter:
    """Counts the FLOPs of matrix products and convolutions, two for a multiply-add; give :meth:`see` to a program.

    Args:
        graph: The graph that will run.
        feeds: What it will run on.

    Attributes:
        by_node: FLOPs of each node, as often as it ran.
    """

    def __init__(self, graph: Graph, feeds: Mapping[str, Any]) -> None:
        import numpy as np

        self.by_node: Counter[Node] = Counter()
        self._shapes: dict[Value, Sequence[int]] = {
            value: np.shape(feeds[value.name]) for value in graph.inputs if value.name in feeds
        }
        self._outer = _captured(graph)

    def see(self, value: Value, array: Any) -> None:
        """Take note of a value that was computed."""
        if not hasattr(array, "shape"):
            return
        self._shapes[value] = array.shape
        node = value.producer
        if not value.index and node.op_type in {"": ONNX_OPS, "tf": TF_OPS}.get(node.domain, ()):
            products = self._onnx if not node.domain else self._tf
            self.by_node[node] += 2 * products(node, array.shape)

    def _onnx(self, node: Node, result: Sequence[int]) -> int:
        """Return how many products a node of an ONNX model computes."""
        first, second = (self._shape(operand) for operand in node.inputs[:2])
        size = prod(result)
        if node.op_type in ("Conv", "ConvTranspose"):
            kernel = node.attributes.get("kernel_shape") or (second or ())[2:]
            if not first or not kernel:
                return 0
            groups: int = node.attributes.get("group", 1)
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

    def _tf(self, node: Node, result: Sequence[int]) -> int:
        """Do what :meth:`_onnx` does; filters are (height, width, inputs, outputs)."""
        op = node.op_type
        if "MatMul" in op:
            first = self._shape(node.inputs[0])
            flipped = node.attributes.get("transpose_a") is True or node.attributes.get("adj_x") is True
            return prod(result) * first[-2 if flipped else -1] if first and len(first) > 1 else 0
        gradient = self._shape(node.inputs[2]) if "Backprop" in op else result
        weights = result if "BackpropFilter" in op else self._shape(node.inputs[1])
        if gradient is None or not weights:
            return 0
        return prod(gradient) * prod(weights[:-2] if "Depthwise" in op else weights[:-1])

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
