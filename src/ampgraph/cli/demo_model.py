"""The model of ``ampgraph demo``: pictures and words in, scores out, with made-up weights.

It has what exporters write and what makes mixed precision more than a change of types: folded batch norms, a residual block, an
embedding, attention with a mask of ``finfo.min``, and layer norms spelled out with an epsilon.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from ampgraph.graph import Graph, Value

WORDS, LENGTH, WIDTH, HEADS, CLASSES = 2000, 16, 64, 4, 10
_OPSET = 17


def demo_model(seed: int = 0) -> "Graph":
    """Return the model: ``image`` f32[1,3,32,32], ``words`` and ``mask`` i64[1,16] to ``scores`` f32[1,10]."""
    return _Builder(seed).build()


class _Builder:
    def __init__(self, seed: int) -> None:
        import numpy as np

        from ampgraph.graph import Graph

        self.random = np.random.default_rng(seed)
        self.graph: Graph = Graph("demo", opsets={"": _OPSET})

    def build(self) -> "Graph":
        from ampgraph.graph import Shape, find_dtype

        graph = self.graph
        image = graph.add_input("image", find_dtype("f32"), Shape((1, 3, 32, 32)))
        words = graph.add_input("words", find_dtype("i64"), Shape((1, LENGTH)))
        mask = graph.add_input("mask", find_dtype("i64"), Shape((1, LENGTH)))

        x = self.conv("stem", image, 3, 16, stride=2)
        y = self.conv("block/conv1", x, 16, 16)
        x = self.op("Relu", "block/relu", self.op("Add", "block/add", self.conv("block/conv2", y, 16, 16, relu=False), x))
        x = self.op("Flatten", "flatten", self.op("GlobalAveragePool", "pool", x))
        x = self.op("Gemm", "project", x, self.weight("project/weight", 16, WIDTH), self.weight("project/bias", WIDTH))
        picture = self.op("Unsqueeze", "picture", x, self.ints("axis_1", [1]))

        table = self.weight("embedding/weight", WORDS, WIDTH, scale=1.0)
        x = self.op("Add", "with_picture", self.op("Gather", "embedding", table, words), picture)
        x = self.op("Add", "attention/residual", x, self.attention(self.layer_norm("norm1", x), mask))
        x = self.layer_norm("norm2", x)
        x = self.op("ReduceMean", "mean_word", x, axes=[1], keepdims=0)
        bias = self.weight("head/bias", CLASSES)
        scores = self.op("Gemm", "head", x, self.weight("head/weight", WIDTH, CLASSES), bias)
        scores = self.op("Softmax", "scores", scores, axis=-1)
        scores.shape = Shape((1, CLASSES))
        graph.outputs, graph.output_names = [scores], ["scores"]
        return graph

    def conv(self, name: str, x: "Value", before: int, after: int, *, stride: int = 1, relu: bool = True) -> "Value":
        """A convolution whose weights and bias hold the batch norm that followed it."""
        weight = self.weight(f"{name}/weight", after, before, 3, 3)
        attributes = {"pads": [1, 1, 1, 1], "strides": [stride, stride]}
        x = self.op("Conv", name, x, weight, self.weight(f"{name}/bias", after), **attributes)
        return self.op("Relu", f"{name}/relu", x) if relu else x

    def layer_norm(self, name: str, x: "Value") -> "Value":
        centered = self.op("Sub", f"{name}/center", x, self.op("ReduceMean", f"{name}/mean", x, axes=[-1]))
        square = self.op("Pow", f"{name}/square", centered, self.floats(f"{name}/two", 2.0))
        variance = self.op("ReduceMean", f"{name}/variance", square, axes=[-1])
        guarded = self.op("Add", f"{name}/guard", variance, self.floats(f"{name}/epsilon", 1e-12))
        x = self.op("Div", f"{name}/divide", centered, self.op("Sqrt", f"{name}/deviation", guarded))
        return self.op("Mul", f"{name}/scale", x, self.weight(f"{name}/weight", WIDTH, scale=1.0))

    def attention(self, x: "Value", mask: "Value") -> "Value":
        import numpy as np

        from ampgraph.graph import find_dtype

        size = WIDTH // HEADS
        shape = self.ints("attention/split", [1, LENGTH, HEADS, size])
        heads = []
        for name, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])):
            product = self.op("MatMul", f"attention/{name}", x, self.weight(f"attention/{name}/weight", WIDTH, WIDTH))
            split = self.op("Reshape", f"attention/{name}/split", product, shape)
            heads.append(self.op("Transpose", f"attention/{name}/heads", split, perm=order))
        query, key, value = heads
        scores = self.op("MatMul", "attention/scores", query, key)
        scores = self.op("Div", "attention/scaled", scores, self.floats("attention/root", size**0.5))
        given = self.graph.add("Cast", [mask], domain="", name="mask/float", types={"T2": find_dtype("f32")}).outputs[0]
        hidden = self.op("Sub", "mask/hidden", self.floats("mask/one", 1.0), given)
        lowest = self.floats("mask/lowest", float(np.finfo(np.float32).min))
        added = self.op("Unsqueeze", "mask/added", self.op("Mul", "mask/weighted", hidden, lowest), self.ints("axes_1_2", [1, 2]))
        chances = self.op("Softmax", "attention/softmax", self.op("Add", "attention/masked", scores, added), axis=-1)
        mixed = self.op("Transpose", "attention/join", self.op("MatMul", "attention/mixed", chances, value), perm=[0, 2, 1, 3])
        joined = self.op("Reshape", "attention/joined", mixed, self.ints("attention/whole", [1, LENGTH, WIDTH]))
        return self.op("MatMul", "attention/output", joined, self.weight("attention/output/weight", WIDTH, WIDTH))

    def op(self, op_type: str, name: str, *inputs: "Value", **attributes: Any) -> "Value":
        return self.graph.add(op_type, inputs, domain="", name=name, attributes=attributes).outputs[0]

    def weight(self, name: str, first: int, *rest: int, scale: float = 0.0) -> "Value":
        """Random weights of shape ``(first, *rest)``; as large as those of a trained layer, unless ``scale`` says otherwise."""
        import math

        import numpy as np

        inputs = math.prod(rest) if len(rest) > 1 else first
        size = scale or inputs**-0.5
        return self.constant(name, (self.random.standard_normal((first, *rest)) * size).astype(np.float32))

    def floats(self, name: str, value: float) -> "Value":
        import numpy as np

        return self.constant(name, np.array(value, np.float32))

    def ints(self, name: str, values: list[int]) -> "Value":
        import numpy as np

        return self.constant(name, np.array(values, np.int64))

    def constant(self, name: str, array: "np.ndarray[Any, Any]") -> "Value":
        from ampgraph.graph import Tensor, find_dtype

        dtype = find_dtype(str(array.dtype))
        attributes = {"value": Tensor.of(array, dtype)}
        node = self.graph.add("Initializer", domain="ampgraph", name=name, attributes=attributes, types={"T": dtype})
        return node.outputs[0]
