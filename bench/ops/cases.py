"""The nodes that are timed one by one."""

import dataclasses
from typing import Any

import numpy as np

from ampgraph.graph import Graph, Shape, find_dtype
from bench.executor.built import add_constant


@dataclasses.dataclass(frozen=True)
class Case:
    """A node.

    Attributes:
        group: What it is listed under.
        name: What tables call it.
        op: Its op.
        shapes: Of its inputs.
        constants: Of its further operands: shapes of random weights, or lists of integers.
        attributes: Its attributes.
    """

    group: str
    name: str
    op: str
    shapes: tuple[tuple[int, ...], ...]
    constants: tuple[tuple[int, ...] | list[int], ...] = ()
    attributes: dict[str, Any] = dataclasses.field(default_factory=dict)


def _conv(name: str, x: tuple[int, ...], w: tuple[int, ...], op: str = "Conv", **attributes: Any) -> Case:
    """A convolution that keeps the size, as far as strides and dilations allow."""
    dilations = attributes.get("dilations", [1] * (len(x) - 2))
    pads = [size // 2 * dilation for size, dilation in zip(w[2:], dilations, strict=True)] * 2
    biases = (w[1] if op == "ConvTranspose" else w[0],)
    return Case("convolution", name, op, (x,), (w, biases), {"kernel_shape": list(w[2:]), "pads": pads, **attributes})


_PICTURE = (1, 64, 56, 56)
_WORDS = (8, 128, 256)

CASES = (
    _conv("1x1", _PICTURE, (128, 64, 1, 1)),
    _conv("3x3", _PICTURE, (64, 64, 3, 3)),
    _conv("3x3, few pixels", (1, 256, 14, 14), (256, 256, 3, 3)),
    _conv("7x7, stride 2, 3 channels", (1, 3, 224, 224), (32, 3, 7, 7), strides=[2, 2]),
    _conv("3x3, stride 2", _PICTURE, (64, 64, 3, 3), strides=[2, 2]),
    _conv("depthwise 3x3", _PICTURE, (64, 1, 3, 3), group=64),
    _conv("depthwise 3x3, stride 2", _PICTURE, (64, 1, 3, 3), group=64, strides=[2, 2]),
    _conv("depthwise 5x5", _PICTURE, (64, 1, 5, 5), group=64),
    _conv("3x3, 4 groups", _PICTURE, (64, 16, 3, 3), group=4),
    _conv("3x3, dilation 2", _PICTURE, (64, 64, 3, 3), dilations=[2, 2]),
    _conv("transposed 4x4, stride 2", (1, 64, 28, 28), (64, 32, 4, 4), "ConvTranspose", strides=[2, 2], pads=[1, 1, 1, 1]),
    _conv("1-D, 9", (1, 128, 1000), (128, 128, 9)),
    _conv("3-D, 3x3x3", (1, 16, 16, 28, 28), (16, 16, 3, 3, 3)),
    Case("pool", "max 2x2", "MaxPool", (_PICTURE,), (), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    Case(
        "pool", "max 3x3, stride 2", "MaxPool", (_PICTURE,), (), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    ),
    Case("pool", "mean 3x3", "AveragePool", (_PICTURE,), (), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    Case("pool", "global mean", "GlobalAveragePool", (_PICTURE,)),
    Case("product", "512 x 512 x 512", "MatMul", ((512, 512),), ((512, 512),)),
    Case("product", "1 x 1024 x 1024", "MatMul", ((1, 1024),), ((1024, 1024),)),
    Case("product", "[8,128,256] x 256 x 1024", "MatMul", (_WORDS,), ((256, 1024),)),
    Case("product", "32 of 128 x 64 x 128", "MatMul", ((4, 8, 128, 64), (4, 8, 64, 128))),
    Case("product", "Gemm 64 x 512 x 512, bias", "Gemm", ((64, 512),), ((512, 512), (512,)), {"transB": 1}),
    Case("norm", "softmax of 128", "Softmax", ((4, 8, 128, 128),), (), {"axis": -1}),
    Case("norm", "softmax of 1000", "Softmax", ((32, 1000),), (), {"axis": -1}),
    Case("norm", "layer norm of 256", "LayerNormalization", (_WORDS,), ((256,), (256,)), {"axis": -1}),
    Case("norm", "instance norm", "InstanceNormalization", (_PICTURE,), ((64,), (64,))),
    Case("reduction", "sum of the last axis", "ReduceSum", (_WORDS,), ([-1],)),
    Case("reduction", "mean of the first axis", "ReduceMean", (_WORDS,), ([0],)),
    Case("reduction", "largest of two axes", "ReduceMax", (_PICTURE,), ([2, 3],)),
    Case("reduction", "ArgMax of the last axis", "ArgMax", (_WORDS,), (), {"axis": -1}),
    Case("elementwise", "Add", "Add", (_WORDS, _WORDS)),
    Case("elementwise", "Add of a vector", "Add", (_WORDS,), ((256,),)),
    Case("elementwise", "Mul by a channel", "Mul", (_PICTURE, (1, 64, 1, 1))),
    Case("elementwise", "Relu", "Relu", (_WORDS,)),
    Case("elementwise", "Sigmoid", "Sigmoid", (_WORDS,)),
    Case("elementwise", "Tanh", "Tanh", (_WORDS,)),
    Case("elementwise", "Erf", "Erf", (_WORDS,)),
    Case("elementwise", "Gelu", "Gelu", (_WORDS,)),
    Case("elementwise", "HardSwish", "HardSwish", (_PICTURE,)),
    Case("elementwise", "Relu of 100", "Relu", ((100,),)),
    Case("moves", "Transpose", "Transpose", ((8, 128, 4, 64),), (), {"perm": [0, 2, 1, 3]}),
    Case("moves", "Concat", "Concat", (_PICTURE, _PICTURE), (), {"axis": 1}),
)


def build(case: Case, dtype: str) -> tuple[Graph, dict[str, Any]]:
    """Return a model of one node whose floats have a dtype, and its feeds: random numbers around 0, as float32."""
    random = np.random.default_rng(0)
    graph = Graph("one", opsets={"": 20})
    wanted = find_dtype(dtype)
    feeds = {f"x{i}": random.standard_normal(shape).astype(np.float32) for i, shape in enumerate(case.shapes)}
    operands = [graph.add_input(name, wanted, Shape(array.shape)) for name, array in feeds.items()]
    for constant in case.constants:
        if isinstance(constant, list):
            operands.append(add_constant(graph, "numbers", np.array(constant, np.int64)))
        else:
            array = random.standard_normal(constant) * np.prod(constant[1:]) ** -0.5
            operands.append(add_constant(graph, "weight", array.astype(wanted.numpy)))
    result = graph.add(case.op, operands, domain="", name="node", attributes=case.attributes).outputs[0]
    graph.outputs, graph.output_names = [result], ["y"]
    return graph, feeds
