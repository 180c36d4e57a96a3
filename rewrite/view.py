"""Looking at a painted graph by values: what hazard rules ask about operands, constants, readers and ways through the graph."""

import functools
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from math import isfinite

import numpy as np

from ..graph.dtypes import DType
from ..graph.graph import Node, Value
from ..graph.types import Dim, Shape, Tensor
from .constants import constant_of, is_constant, tensor_of
from .tf_names import NAMES as _TF
from .typegraph import ALLOW, CLEAR, GRAY, TypeGraph

#: Names of the standard that onnxruntime and TensorFlow call otherwise.
_SAME = {
    "com.microsoft:Gelu": "Gelu",
    "com.microsoft:FusedMatMul": "MatMul",
    "com.microsoft:TransposeMatMul": "MatMul",
    "com.microsoft:FusedConv": "Conv",
    "com.microsoft:NhwcConv": "Conv",
    "com.microsoft:FusedGemm": "Gemm",
    "com.microsoft:GridSample": "GridSample",
}

#: Ops that multiply by weights and add up.
LINEAR = frozenset(["MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum"])
#: How many bodies and identities a value is followed through.
_LONGEST_WAY = 1000
#: Elements looked at in one go: they stay in the cache.
_BLOCK = 1 << 16


#: By color: whether an op of a TensorFlow graph may become low. (Those of ONNX models go with their constants, too.)
_MAY_BE_LOW = np.isin(np.arange(5), (ALLOW, GRAY, CLEAR))


class Stats:
    """The magnitudes of a constant's elements.

    Attributes:
        largest: The largest finite magnitude; 0 where all are 0 or there are none.
        smallest: The smallest magnitude that is not 0; infinite where there is none.
        shape: The constant's shape.
        size: Number of elements.
    """

    __slots__ = ("largest", "shape", "size", "smallest")

    def __init__(self, tensor: Tensor) -> None:
        self.shape = tensor.shape
        flat = tensor.array().reshape(-1)
        self.size = flat.size
        if self.size == 1 and isfinite(number := abs(float(flat.item()))):
            self.largest, self.smallest = number, number or np.inf
            return
        self.largest, self.smallest = 0.0, np.inf
        with np.errstate(invalid="ignore"):
            for start in range(0, flat.size, _BLOCK):
                sizes = np.abs(flat[start : start + _BLOCK])
                largest, smallest = sizes[sizes.argmax()], sizes[sizes.argmin()]  # half the time of max() and min()
                if not (smallest and largest < np.inf):  # among them are zeros, or numbers that are none
                    sizes = sizes[(sizes > 0) & (sizes < np.inf)]
                    largest, smallest = sizes.max(initial=0), sizes.min(initial=np.inf)
                self.largest = max(self.largest, float(largest))
                self.smallest = min(self.smallest, float(smallest))

    @property
    def is_even(self) -> bool:
        """Whether all elements that are not 0 have one magnitude."""
        return 0 < self.smallest == self.largest


class View:
    """A type graph seen by hazard rules.

    Attributes:
        graph: The type graph.
        low: The low dtype.
        nodes: Its nodes.
        ops: The name of each node's op, that of ONNX for an op of TensorFlow that does the same; then ``"result"`` for each
            result of a graph that has a vertex.
        is_tf: Whether it is a TensorFlow graph.
    """

    def __init__(self, graph: TypeGraph, low: DType) -> None:
        self.graph = graph
        self.low = low
        self.nodes = graph.nodes
        self.is_tf = not graph.parts[0].opsets
        same = _TF if self.is_tf else _SAME
        names = [same.get(profile.op_type, profile.op_type) for profile in graph.profiles]
        self.ops = [names[number] for number in graph.numbers] + ["result"] * len(graph.results)
        self._profiles: dict[str, list[int]] = {}
        for number, name in enumerate(names):
            self._profiles.setdefault(name, []).append(number)
        self.color: Sequence[int] = graph.color.tolist()
        self.is_float: Sequence[int] = graph.is_float.tolist()
        self._stats: dict[Node, Stats | None] = {}

    def with_op(self, *ops: str) -> list[int]:
        """Return the numbers of the nodes with one of these ops, in order."""
        return self.graph.with_profile([number for op in ops for number in self._profiles.get(op, ())])

    def node_of(self, vertex: int) -> int:
        """Return the number of the node a vertex belongs to, or -1 for a result of a graph."""
        owner = self.graph.owner[vertex]
        return owner if owner < len(self.nodes) else -1

    def op(self, vertex: int) -> str:
        """Return the op of a vertex's node; ``"result"`` for a result of a graph."""
        return self.ops[self.graph.owner[vertex]]

    def op_of(self, value: Value) -> str:
        """Return the op that a value comes from."""
        return self.op(self.graph.vertex(value))

    @functools.cached_property
    def inputs(self) -> list[int]:
        """The vertices of what the graph is given when it runs, constants and variables aside."""
        part = self.graph.parts[0]
        if self.is_tf and not part.is_function:
            return [self.graph.vertex(self.nodes[i].outputs[0]) for i in self.with_op("Input")]
        return [self.graph.vertex(value) for value in part.inputs if not is_constant(value.producer)]

    @functools.cached_property
    def constants(self) -> list[Node]:
        """The nodes that hold a float32 constant which an op reads, in TensorFlow graphs an op that may become low."""
        graph = self.graph
        if self.is_tf:
            read = graph.sources[(graph.sources >= 0) & _MAY_BE_LOW[graph.color[graph.targets]]]
            heard = np.zeros(graph.count, bool)
            heard[read] = graph.is_float[read] != 0
            return [self.nodes[i] for i in self.with_op("Constant") if heard[graph.first[i]]]
        nodes = (self.nodes[i] for i in self.with_op("Initializer", "Constant", "Input", "ConstantOfShape"))
        held = (node for node in nodes if node.outputs and (is_constant(node) or node.op_type == "ConstantOfShape"))
        return [node for node in held if self.is_float[v := graph.vertex(node.outputs[0])] and graph.successors(v)]

    def operand(self, node: int, slot: int) -> Value | None:
        """Return an operand of node number ``node``; None where it is omitted."""
        inputs = self.nodes[node].inputs
        return inputs[slot] if slot < len(inputs) else None

    def source(self, value: Value | None) -> Value | None:
        """Return where a value comes from through bodies, identities and casts that change nothing.

        Not more than :data:`_LONGEST_WAY` steps: the state of a loop may lead back to itself.
        """
        for _ in range(_LONGEST_WAY):
            if value is None:
                break
            node = value.producer
            if self.is_tf:
                if self.op_of(value) != "Identity" or not node.inputs:
                    return value
                value = node.inputs[0]
            elif node.op_type == "Identity" and not node.domain:
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

    def stats(self, node: Node) -> Stats | None:
        """Return the magnitudes of the constant that a node holds; None if it holds none, or none of floats."""
        if node not in self._stats:
            tensor = tensor_of(node)
            self._stats[node] = None if tensor is None or tensor.dtype.kind != "float" else Stats(tensor)
        return self._stats[node]

    def scalar(self, value: Value | None) -> float | None:
        """Return the number that a constant of one element is, or None."""
        tensor = self.constant(value)
        return float(tensor.array().reshape(-1)[0]) if tensor is not None and tensor.size == 1 else None

    def operands(self, node: int, besides: Container[int] = ()) -> Iterator[tuple[int, Value]]:
        """Yield (slot, value) of the float operands of a node that are given and no constants or variables.

        ``besides``: vertices whose values are passed over.
        """
        for slot, value in enumerate(self.nodes[node].inputs):
            if value is not None and self.graph.vertex(value) not in besides and self.is_float[self.graph.operand(node, slot)]:
                source = self.source(value)
                if constant_of(source) is None and not (self.is_tf and source is not None and self.op_of(source) == "Variable"):
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
        graph, is_float = self.graph, self.is_float
        first, edges = (graph.in_first, graph.in_edges) if up else (graph.out_first, graph.out_edges)
        seen = set(starts)
        stack = list(seen)
        found: list[int] = []
        while stack and (most is None or len(found) < most):
            vertex = stack.pop()
            for other in edges[first[vertex] : first[vertex + 1]]:
                if other not in seen and is_float[other] and enter(other):
                    seen.add(other)
                    found.append(other)
                    if past is None or past(other):
                        stack.append(other)
        return found

    def is_fixed(self, vertex: int) -> bool:
        """Whether a vertex is a constant or an input of the model, which no rule concerns."""
        return self.op(vertex) in ("Initializer", "Constant", "ConstantOfShape", "Variable") or not self.graph.processed[vertex]

    def constants_of(self, numbers: Iterable[int]) -> set[Node]:
        """Return the constants that nodes with these numbers read."""
        sources = (self.source(value) for i in numbers for value in self.nodes[i].inputs)
        return {value.producer for value in sources if value is not None and is_constant(value.producer)}

    def is_returned(self, vertex: int) -> bool:
        """Whether a result of the model, which keeps its dtype, is read from a vertex."""
        last = self.graph.count - len(self.graph.results)
        return any(other >= last and not self.graph.processed[other] for other in self.graph.successors(vertex))

    def is_linear(self, vertex: int) -> bool:
        """Whether a vertex belongs to an op that multiplies by weights and adds up, or is on the AllowList."""
        return self.color[vertex] == ALLOW or self.op(vertex) in LINEAR

    def depth(self, node: int) -> int | None:
        """Return how many products each element of a linear op's result adds up; None if it is not known."""
        return self._tf_depth(node) if self.is_tf else depth_of(self.nodes[node])

    def _tf_depth(self, node: int) -> int | None:
        """Do what :meth:`depth` does where filters are (height, width, inputs, outputs) and operands may be transposed."""
        item, op = self.nodes[node], self.ops[node]
        if op == "Conv":
            weights = self._dims(node, 1)
            sizes: tuple[Dim, ...] = (None,) if not weights else weights[:-2] if "Depthwise" in item.op_type else weights[:-1]
            return Shape(sizes).size
        if op == "Einsum":
            dims = _contracted(item.attr("equation"), [self._dims(node, slot) for slot in range(len(item.inputs))])
            return None if dims is None else Shape(dims).size
        left, right = (self._dims(node, slot) if op == "MatMul" and slot < len(item.inputs) else None for slot in (0, 1))
        flips = [any(item.attributes.get(f"{name}_{side}") is True for name in ("transpose", "adj")) for side in "ab"]
        flips = [flip or item.attributes.get(f"adj_{side}") is True for flip, side in zip(flips, "xy", strict=True)]
        if right is not None and len(right) > 1:
            return Shape((right[-1 if flips[1] else -2],)).size
        return Shape((left[-2 if flips[0] else -1],)).size if left is not None and len(left) > 1 else None

    def _dims(self, node: int, slot: int) -> tuple[Dim, ...] | None:
        """Return an operand's dimensions as the graph gives them, or None."""
        value = self.nodes[node].inputs[slot]
        constant = self.constant(value)
        return constant.shape if constant is not None else None if value is None else value.shape.dims

    def reduced(self, node: int) -> int | None:
        """Return how many elements a reduction or a pooling op folds into one; None if it is not known."""
        item = self.nodes[node]
        before, after = item.inputs[0], item.outputs[0]
        if self.ops[node] in ("AveragePool", "LpPool", "MaxPool"):
            sizes = item.attr("ksize" if self.is_tf else "kernel_shape")
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
