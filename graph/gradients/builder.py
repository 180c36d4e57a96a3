"""What a rule builds with: nodes are added to the graph with their shapes, and known shapes become constants."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ..dtypes import DTYPES, DType
from ..errors import GraphError
from ..graph import Graph, Node, Value
from ..infer.control import NOTHING, Fact
from ..infer.dims import Dims, Element
from ..infer.engine import Library, Scope
from ..types import Shape, Tensor

INT32 = DTYPES["int32"]
FLOAT32 = DTYPES["float32"]
VARIANT = DTYPES["variant"]

#: An operand of a new node; a number becomes a constant of the other operands' dtype.
Operand = Value | float


class Builder:
    """Adds the nodes of a gradient to a graph.

    Attributes:
        graph: The graph.
        added: The nodes added, in order.
        active: The values whose gradient is wanted.
    """

    def __init__(self, graph: Graph, facts: Sequence[Fact] | None = None) -> None:
        """Infer shapes in the graph, for inputs of which this much is known."""
        self.graph = graph
        self.added: dict[Node, None] = {}
        self.active: Collection[Value] = ()
        self._scope = Scope(graph, Library(graph.functions), [NOTHING] * len(graph.inputs) if facts is None else list(facts))
        self._scope.run()
        self._constants: dict[tuple[str, Any, DType], Value] = {}
        self._sizes: dict[tuple[Value, DType], Value] = {}
        self._prefix, self._device = "gradients/", ""

    def at(self, node: Node) -> None:
        """Name what follows after a node, and place it where the node is."""
        self._prefix, self._device = f"gradients/{node.name}_grad/", node.device

    # ---- what is known ------------------------------------------------------------------------------------------

    def dims(self, value: Value) -> Dims:
        """Return the shape of a value as far as known."""
        return self._scope.facts.get(value, NOTHING)[0]

    def facts(self, values: Iterable[Value]) -> list[Fact]:
        """Return what is known about values, whatever integers they hold."""
        found = (self._scope.facts.get(value, NOTHING) for value in values)
        return [(dims, content if isinstance(content, Element) else None) for dims, content in found]

    def rank(self, value: Value) -> int | None:
        """Return the number of dimensions, or None if it is not known."""
        dims = self.dims(value)
        return None if dims is None else len(dims)

    def sizes(self, value: Value) -> tuple[int, ...] | None:
        """Return the shape of a value if all of it is known."""
        return _whole(self.dims(value))

    def ints(self, value: Value) -> list[int] | None:
        """Return the elements of an integer value if all of them are known."""
        content = self._scope.facts.get(value, NOTHING)[1]
        if isinstance(content, Element):
            return None
        found = _whole(content)
        return None if found is None else list(found)

    def held(self, handle: Value) -> Dims:
        """Return the shape of what a handle holds, as far as known."""
        content = self._scope.facts.get(handle, NOTHING)[1]
        return content.dims if isinstance(content, Element) else None

    def follow(self, node: Node) -> None:
        """Infer the shapes of what a new or changed node computes."""
        self._scope.follow(node)
        for value in node.outputs:
            dims = self.dims(value)
            if dims is not None:
                value.shape = Shape(dims)

    # ---- nodes --------------------------------------------------------------------------------------------------

    def node(
        self,
        op_type: str,
        inputs: Sequence[Value],
        attributes: Mapping[str, Any] | None = None,
        types: Mapping[str, DType] | None = None,
    ) -> Node:
        """Add a node."""
        node = self.graph.add(
            op_type,
            inputs,
            name=self.graph.fresh_name(self._prefix + op_type),
            attributes=attributes or {},
            types=types,
            device=self._device,
        )
        self.added[node] = None
        self.follow(node)
        return node

    def leave(self, value: Value) -> None:
        """Let what computes a value, added before, belong to the graph that is differentiated, not to the gradient."""
        stack = [value.producer]
        while stack:
            node = stack.pop()
            if node in self.added:
                del self.added[node]
                stack += [operand.producer for operand in operands(node)]

    def op(self, op_type: str, *operands: Operand, types: Mapping[str, DType] | None = None, **attributes: Any) -> Value:
        """Add a node and return its first result."""
        dtype = next((x.dtype for x in operands if isinstance(x, Value)), None)
        inputs = [x if isinstance(x, Value) else self.number(x, dtype) for x in operands]
        return self.node(op_type, inputs, attributes, types).outputs[0]

    def constant(self, array: Any, dtype: DType) -> Value:
        """Return a constant, one for all uses of the same."""
        tensor = Tensor.of(array, dtype)
        data = tensor.array()
        key = (str(data.shape), data.tobytes(), dtype)
        found = self._constants.get(key)
        if found is None:
            prefix, device = self._prefix, self._device
            self._prefix, self._device = "gradients/", ""
            found = self._constants[key] = self.node("Const", [], {"value": tensor}, {"dtype": dtype}).outputs[0]
            self._prefix, self._device = prefix, device
        return found

    def number(self, x: float, dtype: DType | None) -> Value:
        """Return a scalar constant."""
        if dtype is None:
            raise GraphError("A constant of unknown dtype was asked for.")
        return self.constant(x, dtype)

    def vector(self, items: Sequence[int], dtype: DType = INT32) -> Value:
        """Return a constant vector of integers."""
        return self.constant(list(items), dtype)

    # ---- arithmetic ---------------------------------------------------------------------------------------------

    def add(self, a: Operand, b: Operand) -> Value:
        """Return ``a + b``."""
        return self.op("AddV2", a, b)

    def sub(self, a: Operand, b: Operand) -> Value:
        """Return ``a - b``."""
        return self.op("Sub", a, b)

    def mul(self, a: Operand, b: Operand) -> Value:
        """Return ``a * b``."""
        return self.op("Mul", a, b)

    def div(self, a: Operand, b: Operand) -> Value:
        """Return ``a / b``."""
        return self.op("RealDiv", a, b)

    def neg(self, x: Value) -> Value:
        """Return ``-x``."""
        return self.op("Neg", x)

    def where(self, condition: Value, a: Operand, b: Operand) -> Value:
        """Return ``a`` where the condition holds, else ``b``."""
        dtype = next((x.dtype for x in (a, b) if isinstance(x, Value)), None)
        a, b = (x if isinstance(x, Value) else self.number(x, dtype) for x in (a, b))
        return self.node("SelectV2", [condition, a, b]).outputs[0]

    def cast(self, x: Value, dtype: DType) -> Value:
        """Return ``x`` in another dtype."""
        return x if x.dtype is dtype else self.op("Cast", x, types={"DstT": dtype})

    def sum(self, x: Value, axes: Value | Sequence[int], keep_dims: bool = False) -> Value:
        """Return sums along axes."""
        axes = axes if isinstance(axes, Value) else self.vector(axes)
        return self.op("Sum", x, axes, keep_dims=keep_dims) if keep_dims else self.op("Sum", x, axes)

    def total(self, values: Sequence[Value]) -> Value:
        """Return the sum of values of one shape, or lists of tensors of one length."""
        return values[0] if len(values) == 1 else self.op("AddN", *values, N=len(values))

    # ---- shapes -------------------------------------------------------------------------------------------------

    def shape(self, x: Value, dtype: DType = INT32) -> Value:
        """Return the shape of a value: a constant if it is known."""
        sizes = self.sizes(x)
        if sizes is not None:
            return self.vector(sizes, dtype)
        found = self._sizes.get((x, dtype))
        if found is None:
            found = self._sizes[x, dtype] = self.op("Shape", x, types={"out_type": dtype})
        return found

    def ends(self, x: Value, start: int, stop: int | None = None) -> Value:
        """Return part of a vector, as ``x[start:stop]``."""
        masks = {"begin_mask": int(start == 0), "end_mask": int(stop is None)}
        begin, end = self.vector([start]), self.vector([0 if stop is None else stop])
        return self.node("StridedSlice", [x, begin, end, self.vector([1])], masks).outputs[0]

    def reshape(self, x: Value, shape: Value | Sequence[int]) -> Value:
        """Return ``x`` in another shape."""
        return self.op("Reshape", x, shape if isinstance(shape, Value) else self.vector(shape))

    def reshape_like(self, x: Value, like: Value) -> Value:
        """Return ``x`` in the shape of ``like``."""
        sizes = self.sizes(like)
        return x if sizes is not None and self.sizes(x) == sizes else self.reshape(x, self.shape(like))

    def transpose(self, x: Value, perm: Value | Sequence[int]) -> Value:
        """Return ``x`` with its axes in another order."""
        return self.op("Transpose", x, perm if isinstance(perm, Value) else self.vector(perm))

    def broadcast_like(self, x: Value, like: Value) -> Value:
        """Return ``x`` broadcast to the shape of ``like``."""
        dims = self.dims(like)
        if dims is not None and None not in dims and self.dims(x) == dims:
            return x
        return self.op("BroadcastTo", x, self.shape(like))

    def concat(self, values: Sequence[Value], axis: int | Value) -> Value:
        """Return values joined along an axis."""
        axis = axis if isinstance(axis, Value) else self.constant(axis, INT32)
        return values[0] if len(values) == 1 else self.op("ConcatV2", *values, axis, N=len(values))

    def zeros_like(self, x: Value) -> Value:
        """Return zeros of the shape of ``x``, or a list of them."""
        return self.op("ZerosLike", x)

    def sum_to(self, x: Value, like: Value) -> Value:
        """Sum ``x`` over the axes along which ``like`` was broadcast to it: the gradient of broadcasting.

        Where shapes are known this is a sum over known axes, or nothing at all.
        """
        wide, narrow = self.dims(x), self.dims(like)
        if wide is not None and narrow is not None and len(narrow) <= len(wide):
            lead = len(wide) - len(narrow)
            pairs = list(enumerate(zip(wide[lead:], narrow, strict=True), lead))
            if all(b == 1 or (b is not None and a == b) for _, (a, b) in pairs):
                axes = [axis for axis, (a, b) in pairs if a != b]
                x = self.sum(x, axes, keep_dims=True) if axes else x
                return self.sum(x, range(lead)) if lead else x
        axes_value = self.node("BroadcastGradientArgs", [self.shape(like), self.shape(x)]).outputs[0]
        return self.reshape(self.sum(x, axes_value), self.shape(like))


def operands(node: Node) -> list[Value]:
    """Return the operands of a TensorFlow node, none of which is ever omitted."""
    return [value for value in node.inputs if value is not None]


def needed(results: Iterable[Value], known: Iterable[Value]) -> list[Node]:
    """Return the nodes that compute values of others, each after those it depends on."""
    given = set(known)
    order: list[Node] = []
    seen: set[Node] = set()
    stack = [(value.producer, False) for value in results if value not in given]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(value.producer, False) for value in operands(node) if value not in given]
    return order


def same_attributes(node: Node, *but: str) -> dict[str, Any]:
    """Return the attributes of a node that its gradient shares with it."""
    return {name: value for name, value in node.attributes.items() if name not in but and not name.startswith("_")}


def _whole(items: Sequence[Any] | None) -> tuple[int, ...] | None:
    if items is None or any(item.__class__ is not int for item in items):
        return None
    return tuple(items)
