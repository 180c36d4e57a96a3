"""Models as ONNX graphs."""

from typing import Any

import numpy as np

from ampgraph.graph import Graph, Shape, Tensor, Value, find_dtype
from bench.executor.models import Model, Weights


def build(name: str, model: Model) -> Graph:
    """Return a model as a graph of opset 20, from ``x`` to ``y``."""
    maker = _Build(name)
    x = maker.graph.add_input("x", find_dtype("float32"), Shape(model.shape))
    y = model.write(maker, x)
    y.name = "y"
    maker.graph.outputs, maker.graph.output_names = [y], ["y"]
    return maker.graph


class _Build:
    """Writes nodes; see :class:`bench.executor.models.Maker`."""

    def __init__(self, name: str) -> None:
        self.graph = Graph(name, opsets={"": 20})
        self._weights = Weights()

    def conv(self, x: Value, before: int, after: int, size: int, *, stride: int = 1, depthwise: bool = False) -> Value:
        inputs = 1 if depthwise else before
        w = self._constant(self._weights.draw(after, inputs, size, size, inputs=inputs * size * size))
        b = self._constant(self._weights.draw(after))
        pads, group = [size // 2] * 4, before if depthwise else 1
        return self._op("Conv", x, w, b, kernel_shape=[size, size], pads=pads, strides=[stride, stride], group=group)

    def relu(self, x: Value) -> Value:
        return self._op("Relu", x)

    def max_pool(self, x: Value) -> Value:
        return self._op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])

    def mean_pool(self, x: Value) -> Value:
        return self._op("Flatten", self._op("GlobalAveragePool", x))

    def dense(self, x: Value, before: int, after: int) -> Value:
        w = self._constant(self._weights.draw(before, after, inputs=before))
        return self.add(self.matmul(x, w), self._constant(self._weights.draw(after)))

    def matmul(self, a: Value, b: Value) -> Value:
        return self._op("MatMul", a, b)

    def add(self, a: Value, b: Value) -> Value:
        return self._op("Add", a, b)

    def scale(self, x: Value, factor: float) -> Value:
        return self._op("Mul", x, self._constant(np.float32(factor)))

    def gelu(self, x: Value) -> Value:
        return self._op("Gelu", x, approximate=b"tanh")

    def softmax(self, x: Value) -> Value:
        return self._op("Softmax", x, axis=-1)

    def layer_norm(self, x: Value, width: int) -> Value:
        scale, shift = self._weights.draw(width, mean=1.0), self._weights.draw(width)
        return self._op("LayerNormalization", x, self._constant(scale), self._constant(shift), axis=-1, epsilon=1e-5)

    def reshape(self, x: Value, *shape: int) -> Value:
        return self._op("Reshape", x, self._constant(np.array(shape, np.int64)))

    def transpose(self, x: Value, *axes: int) -> Value:
        return self._op("Transpose", x, perm=[*axes])

    def _op(self, op_type: str, *inputs: Value, **attributes: Any) -> Value:
        return self.graph.add(op_type, inputs, domain="", name=self.graph.fresh_name(op_type), attributes=attributes).outputs[0]

    def _constant(self, array: Any) -> Value:
        return add_constant(self.graph, "weight", np.asarray(array))


def add_constant(graph: Graph, name: str, array: Any) -> Value:
    """Add an initializer to a graph of an ONNX model."""
    dtype = find_dtype(str(array.dtype))
    attributes = {"value": Tensor.of(array, dtype)}
    return graph.add(
        "Initializer", domain="ampgraph", name=graph.fresh_name(name), attributes=attributes, types={"T": dtype}
    ).outputs[0]
