"""Looking at a painted graph by values: what hazard rules ask about operands, constants, readers and ways through the graph."""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from ..graph.dtypes import DType
from ..graph.graph import Node, Value
from ..graph.types import Dim, Tensor
from .constants import constant_of, is_constant, tensor_of
from .typegraph import ALLOW, TypeGraph

#: Names of the standard that onnxruntime and TensorFlow call otherwise.
_SAME = {
    "com.microsoft:Gelu": "Gelu",
    "com.microsoft:FusedMatMul": "MatMul",
    "com.microsoft:TransposeMatMul": "MatMul",
    "com.microsoft:FusedConv": "Conv",
    "com.microsoft:NhwcConv": "Conv",
    "com.microsoft:FusedGemm": "Gemm",
}

#: Ops that multiply by weights and add up.
LINEAR = frozenset(["MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum"])
#: Elements looked at in one go: they stay in the cache.
_BLOCK = 1 << 16


class Stats:
    """The magnitudes of a constant's elements.

    Attributes:
        largest: The largest finite magnitude; 0 where all are 0 or there are none.
        smallest: The smallest magnitude that is not 0; infinite where there is none.
        size: Number of elements.
    """

    __slots__ = ("largest", "size", "smallest")

    def __init__(self, tensor: Tensor) -> None:
        flat = tensor.array().reshape(-1)
        self.size = flat.size
        self.largest, self.smallest = 0.0, np.inf
        with np.errstate(invalid="ignore"):
            for start in range(0, flat.size, _BLOCK):
                sizes = np.abs(flat[start : start + _BLOCK])
                largest, smallest = np.maximum.reduce(sizes), np.minimum.reduce(sizes)
                if not (smallest and largest < np.inf):  # among them are zeros, or numbers that are none
                    sizes = sizes[(sizes > 0) & (sizes < np.inf)]
                    largest, smallest = sizes.max(initial=0), sizes.min(initial=np.inf)
                self.largest = max(self.largest, float(largest))
                self.smallest = min(self.smallest, float(smallest))


class View:
    """A type graph seen by hazard rules.

    Attributes:
        graph: The type graph.
        low: The low dtype.
        nodes: Its nodes.
        ops: The name of each node's op.
    """

    def __init__(self, graph: TypeGraph, low: DType) -> None:
        self.graph = graph
        self.low = low
        self.nodes = graph.nodes
        names = [_SAME.get(profile.op_type, profile.op_type) for profile in graph.profiles]
        self.ops = [names[number] for number in graph.numbers]
        self.color: Sequence[int] = graph.color.tolist()
        self.is_float: Sequence[int] = graph.is_float.tolist()
        self.stats = functools.cache(lambda node: self._stats(node))

    def with_op(self, *ops: str) -> Iterator[int]:
        """Yield the numbers of the nodes with one of these ops."""
        wanted = {op for op in set(self.ops) if op in ops}
        return (i for i, op in enumerate(self.ops) if op in wanted) if wanted else iter(())

    def node_of(self, vertex: int) -> int:
        """Return the number of the node a vertex belongs to, or -1 for a result of a graph."""
        owner = self.graph.owner[vertex]
        return owner if owner < len(self.nodes) else -1

    def op(self, vertex: int) -> str:
        """Return the op of a vertex's node; ``"result"`` for a result of a graph."""
        number = self.node_of(vertex)
        return self.ops[number] if number >= 0 else "result"

    def operand(self, node: int, slot: int) -> Value | None:
        """Return an operand of node number ``node``; None where it is omitted."""
        inputs = self.nodes[node].inputs
        return inputs[slot] if slot < len(inputs) else None

    def source(self, value: Value | None) -> Value | None:
        """Return where a value comes from through bodies, identities and casts that change nothing."""
        seen = 0
        while value is not None and seen < 1000:
            seen += 1
            node = value.producer
            if node.op_type == "Identity" and not node.domain:
                value = node.inputs[0]
            elif node.op_type == "Input" and not is_constant(node):
                vertex = self.graph.vertex(value)
                outer = [v for v in self.graph.predecessors(vertex) if self.node_of(v) >= 0]
                sources = {id(x): x for v in outer for x in self._operands_at(v)}
                if len(sources) != 1:
                    return value
                value = next(iter(sources.values()))
            else:
                return value
        return value

    def _operands_at(self, vertex: int) -> Iterator[Value]:
        i = self.node_of(vertex)
        for slot, value in enumerate(self.nodes[i].inputs):
            if value is not None and self.graph.operand(i, slot) == vertex:
                yield value

    def constant(self, value: Value | None) -> Tensor | None:
        """Return the constant that a value is, or None."""
        return constant_of(self.source(value))

    def _stats(self, node: Node) -> Stats | None:
        tensor = tensor_of(node)
        return None if tensor is None or tensor.dtype.kind != "float" else Stats(tensor)

    def scalar(self, value: Value | None) -> float | None:
        """Return the number that a constant of one element is, or None."""
        tensor = self.constant(value)
        return float(tensor.array().reshape(-1)[0]) if tensor is not None and tensor.size == 1 else None

    def operands(self, node: int) -> Iterator[tuple[int, Value]]:
        """Yield (slot, value) of the float operands of a node that are given and no constants."""
        for slot, value in enumerate(self.nodes[node].inputs):
            if value is not None and self.is_float[self.graph.operand(node, slot)] and self.constant(value) is None:
                yield slot, value

    def walk(
        self,
        starts: Iterable[int],
        enter: Callable[[int], bool],
        *,
        up: bool = True,
        past: Callable[[int], bool] | None = None,
        most: int | None = None,
    ) -> list[int]:
        """Walk over float vertices along the edges, against their direction if ``up``; return the vertices entered.

        Args:
            starts: Where to start; these are not entered themselves.
            enter: Whether a vertex may be entered.
            up: Direction.
            past: Whether to go on from a vertex that was entered; always when None.
            most: How many vertices to enter at most.
        """
        step = self.graph.predecessors if up else self.graph.successors
        seen = set(starts)
        stack = list(seen)
        found: list[int] = []
        while stack and (most is None or len(found) < most):
            for other in step(stack.pop()):
                if other not in seen and self.is_float[other] and enter(other):
                    seen.add(other)
                    found.append(other)
                    if past is None or past(other):
                        stack.append(other)
        return found

    def is_fixed(self, vertex: int) -> bool:
        """Whether a vertex is a constant or an input of the model, which no rule concerns."""
        return self.op(vertex) in ("Initializer", "Constant", "ConstantOfShape") or not self.graph.processed[vertex]

    def constant_bytes(self, numbers: Iterable[int] | None = None) -> int:
        """Return the float constants that nodes with these numbers read, in bytes of float32; those of the model when None."""
        if numbers is None:
            held = {node for i in self.with_op("Initializer", "Constant", "Input") if is_constant(node := self.nodes[i])}
        else:
            sources = (self.source(value) for i in numbers for value in self.nodes[i].inputs)
            held = {value.producer for value in sources if value is not None and is_constant(value.producer)}
        tensors = (constant_of(node.outputs[0]) for node in held)
        return sum(4 * tensor.size for tensor in tensors if tensor is not None and tensor.dtype.kind == "float")

    def is_returned(self, vertex: int) -> bool:
        """Whether a result of the model, which keeps its dtype, is read from a vertex."""
        last = self.graph.count - len(self.graph.results)
        return any(other >= last and not self.graph.processed[other] for other in self.graph.successors(vertex))

    def is_linear(self, vertex: int) -> bool:
        """Whether a vertex belongs to an op that multiplies by weights and adds up, or is on the AllowList."""
        return self.color[vertex] == ALLOW or self.op(vertex) in LINEAR

    def depth(self, node: int) -> int | None:
        """Return how many products each element of a linear op's result adds up; None if it is not known."""
        return depth_of(self.nodes[node])

    def reduced(self, node: int) -> int | None:
        """Return how many elements a reduction or a pooling op folds into one; None if it is not known."""
        item = self.nodes[node]
        before, after = item.inputs[0], item.outputs[0]
        if self.ops[node] in ("AveragePool", "LpPool", "MaxPool"):
            sizes = item.attr("kernel_shape")
            return int(np.prod(sizes)) if isinstance(sizes, list) else None
        if before is None or before.shape.size is None or after.shape.size is None or not after.shape.size:
            return None
        return before.shape.size // after.shape.size


def _contracted(equation: object, shapes: Sequence[tuple[Dim, ...] | None]) -> tuple[Dim, ...] | None:
    """Return the sizes of the dimensions that an Einsum adds up over."""
    text = equation.decode() if isinstance(equation, bytes) else ""
    left, arrow, right = text.replace(" ", "").partition("->")
    if not arrow or "." in text:
        return None
    sizes: dict[str, Dim] = {}
    for letters, shape in zip(left.split(","), shapes, strict=False):
        sizes.update(zip(letters, (None,) * len(letters) if shape is None else shape, strict=False))
    return tuple(size for letter, size in sizes.items() if letter not in right)


def depth_of(node: Node) -> int | None:
    """Return how many products each element of a linear op's result adds up; None if it is not known."""
    op = _SAME.get(node.op_type if not node.domain else f"{node.domain}:{node.op_type}", node.op_type)
    shapes = [None if value is None else value.shape.dims for value in node.inputs]
    sizes: Sequence[Dim] | None
    if op in ("Conv", "ConvTranspose"):
        weights = shapes[1] if len(shapes) > 1 else None
        sizes = None if not weights else (weights[1:] if op == "Conv" else (weights[0], *weights[2:]))
    elif op == "Gemm":
        given = shapes[0]
        sizes = None if given is None or len(given) != 2 else (given[0 if node.attr("transA") else 1],)
    elif op == "MatMul":
        sizes = shapes[0][-1:] if shapes[0] else shapes[1][-2:-1] if len(shapes) > 1 and shapes[1] else None
    elif op == "Einsum":
        sizes = _contracted(node.attr("equation"), shapes)
    else:
        return None
    product = 1
    for size in (None,) if sizes is None else sizes:
        if not isinstance(size, int):
            return None
        product *= size
    return product
