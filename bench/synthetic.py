"""Synthetic TensorFlow graphs of any size, written as GraphDef files; the same arguments give the same file.

- ``chain``: residual blocks (MatMul, BiasAdd, Relu, AddV2), one after another, a Softmax after every eighth.
- ``wide``: the same blocks in 64 lanes side by side, which exchange their residuals.
- ``mixed``: a random acyclic graph over ops of all four lists and some that are on none.
- ``tensorlist``: a chain of MatMuls, each result pushed to one TensorList: a single cluster as long as the graph.
"""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ampgraph.graph.formats.proto import message

_DIM = 64
_LANES = 64
_FLOAT, _INT32 = 1, 3  # the numbers of DT_FLOAT and DT_INT32

# How often an op is drawn in "mixed", and whether it takes one drawn operand or two.
_WEIGHTS = {
    "MatMul": 22,
    "BiasAdd": 14,
    "Relu": 18,
    "AddV2": 16,
    "Softmax": 6,
    "Tanh": 6,
    "Identity": 4,
    "ConcatV2": 4,
    "Exp": 3,
    "Mean": 2,
    "Sin": 2,
    "Rsqrt": 3,
}


class _Builder:
    """A GraphDef that grows node by node; ops without further attributes have only the type attribute T."""

    def __init__(self) -> None:
        self.graph: Any = message("GraphDef")()
        self.graph.versions.producer = 2000
        self.x = self.node("Placeholder", dtype=_FLOAT)
        self.graph.node[0].attr["shape"].shape.dim.add().size = _DIM
        self.graph.node[0].attr["shape"].shape.dim.add().size = _DIM
        self.weights = [self.floats(_DIM, _DIM) for _ in range(8)]
        self.bias = self.floats(_DIM)

    def __len__(self) -> int:
        return len(self.graph.node)

    def node(self, op: str, inputs: Sequence[str] = (), **attributes: int | bool | str) -> str:
        """Append a node; of the attributes, those in _TYPES are numbers of dtypes."""
        node = self.graph.node.add(name=f"{op.lower()}_{len(self)}", op=op, input=inputs)
        for name, value in attributes.items():
            attribute = node.attr[name]
            if name in ("T", "Tidx", "dtype", "element_dtype", "shape_type"):
                attribute.type = value
            elif isinstance(value, bool):
                attribute.b = value
            elif isinstance(value, int):
                attribute.i = value
            else:
                attribute.s = value.encode()
        return str(node.name)

    def floats(self, *shape: int) -> str:
        name = self.node("Const", dtype=_FLOAT)
        tensor = self.graph.node[-1].attr["value"].tensor
        tensor.dtype = _FLOAT
        tensor.float_val.append(0.01)
        for size in shape:
            tensor.tensor_shape.dim.add().size = size
        return name

    def ints(self, *values: int) -> str:
        name = self.node("Const", dtype=_INT32)
        tensor = self.graph.node[-1].attr["value"].tensor
        tensor.dtype = _INT32
        tensor.int_val.extend(values)
        tensor.tensor_shape.dim.add().size = len(values)
        return name

    def op(self, op: str, *inputs: str) -> str:
        return self.node(op, inputs, T=_FLOAT)

    def matmul(self, left: str, right: str) -> str:
        return self.node("MatMul", (left, right), T=_FLOAT, transpose_a=False, transpose_b=False)

    def add_n(self, inputs: Sequence[str]) -> str:
        return self.node("AddN", inputs, T=_FLOAT, N=len(inputs))

    def block(self, x: str, residual: str, k: int) -> str:
        hidden = self.op("BiasAdd", self.matmul(x, self.weights[k % 8]), self.bias)
        return self.op("AddV2", self.op("Relu", hidden), residual)


def _chain(b: _Builder, nodes: int) -> str:
    x, k = b.x, 0
    while len(b) < nodes - 1:
        x, k = b.block(x, x, k), k + 1
        if k % 8 == 0:
            x = b.op("Softmax", x)
    return x


def _wide(b: _Builder, nodes: int) -> str:
    lanes, k = [b.x] * _LANES, 0
    while len(b) < nodes - 2:
        i = k % _LANES
        lanes[i], k = b.block(lanes[i], lanes[(i + 1) % _LANES], k), k + 1
        if k % 16 == 0:
            lanes[i] = b.op("Softmax", lanes[i])
    return b.add_n(lanes)


def _mixed(b: _Builder, nodes: int) -> str:
    draw = random.Random(12345)
    pool, axis = [b.x], b.ints(1)
    ops, weights = list(_WEIGHTS), list(_WEIGHTS.values())

    def operand() -> str:
        return pool[-1 - draw.randrange(min(len(pool), 24))]

    while len(b) < nodes - 2:
        (op,) = draw.choices(ops, weights)
        if op == "MatMul":
            value = b.matmul(operand(), draw.choice(b.weights))
        elif op == "BiasAdd":
            value = b.op(op, operand(), b.bias)
        elif op == "AddV2":
            value = b.op(op, operand(), operand())
        elif op == "ConcatV2":
            value = b.node(op, (operand(), operand(), axis), T=_FLOAT, Tidx=_INT32, N=2)
        elif op == "Mean":
            value = b.node(op, (operand(), axis), T=_FLOAT, Tidx=_INT32, keep_dims=True)
        else:
            value = b.op(op, operand())
        pool.append(value)
    return b.add_n(pool[-32:])


def _tensorlist(b: _Builder, nodes: int) -> str:
    shape = b.ints(_DIM, _DIM)
    items = b.node("EmptyTensorList", (shape, b.ints(1)), element_dtype=_FLOAT, shape_type=_INT32)
    x = b.x
    while len(b) < nodes - 2:
        x = b.matmul(x, b.weights[0])
        items = b.node("TensorListPushBack", (items, x), element_dtype=_FLOAT)
    return b.node("TensorListStack", (items, shape), element_dtype=_FLOAT, num_elements=-1)


_KINDS: dict[str, Callable[[_Builder, int], str]] = {
    "chain": _chain,
    "wide": _wide,
    "mixed": _mixed,
    "tensorlist": _tensorlist,
}
KINDS = tuple(_KINDS)


def write_synthetic(kind: str, nodes: int, path: Path) -> str:
    """Write a graph of about ``nodes`` nodes (at least 100; a few more or less) as ``.pb``.

    Args:
        kind: One of :data:`KINDS`.
        nodes: How many nodes.
        path: The file.

    Returns:
        The name of the node whose value is the result of the graph.

    Raises:
        ValueError: If there is no such kind, or too few nodes are asked for.
    """
    if kind not in _KINDS:
        raise ValueError(f"There is no kind {kind!r} of synthetic graphs: there are {', '.join(KINDS)}.")
    if nodes < 100:
        raise ValueError(f"A synthetic graph has at least 100 nodes. Received: {nodes}")
    builder = _Builder()
    result = builder.op("Identity", _KINDS[kind](builder, nodes))
    path.write_bytes(builder.graph.SerializeToString(deterministic=True))
    return result
