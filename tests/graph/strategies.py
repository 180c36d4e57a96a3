"""Hypothesis strategies of random, valid graphs over the TensorFlow vocabulary.

The graphs have right types and edges; shapes do not fit together, so they are not for running.
"""

import functools
from collections.abc import Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from ampgraph.graph import FunctionRef, Graph, Node, OpSchema, Shape, Tensor, Value
from ampgraph.graph.dtypes import DTYPES, DType, bfloat16, bool_, float16, float32, int32, int64, string
from ampgraph.graph.schema import REQUIRED
from ampgraph.graph.schemas import find_schema
from ampgraph.graph.schemas.tf import op_types

Item = TypeVar("Item")

_FLOATS = (float32, float16, bfloat16)
_CONSTANTS = (*_FLOATS, int32, int64, bool_, string, *(DTYPES[name] for name in ("float64", "uint8", "int8", "complex64")))
_SCOPES = ("", "dense/", "gradients/dense/", "a.b-c/")
_DEVICES = ("", "", "", "/device:GPU:0", "/job:w/replica:0/task:0/device:CPU:0")


def _is_simple(schema: OpSchema) -> bool:
    """Whether the builder can satisfy every operand and attribute, and the op has something to do with floats."""
    if schema.op_type.startswith("_") or not schema.inputs or not schema.outputs:
        return False
    if any(spec.default is REQUIRED and ("func" in spec.kind or "tensor" in spec.kind) for spec in schema.attributes.values()):
        return False
    if any(formal.is_ref or (formal.dtype is not None and formal.dtype not in _CONSTANTS) for formal in schema.inputs):
        return False
    if not all(any(map(var.allows, _CONSTANTS)) for var in schema.type_vars.values()):
        return False
    return any(var.allows(float32) for var in schema.type_vars.values())


@functools.cache
def simple_ops() -> tuple[str, ...]:
    """The ops that :func:`graphs` draws from unless told otherwise."""
    schemas = {op: find_schema("tf", op) for op in op_types()}
    left_out = ("Enter", "Exit", "NextIteration", "Merge", "Switch", "Placeholder")  # these stand in loops only
    return tuple(sorted(op for op, schema in schemas.items() if schema and op not in left_out and _is_simple(schema)))


class _Builder:
    """Adds random nodes to one graph."""

    def __init__(self, draw: Any, graph: Graph, ops: Sequence[str]) -> None:
        self.draw = draw
        self.graph = graph
        self.ops = ops
        self.values: dict[DType, list[Value]] = {}
        self.count = 0

    def choose(self, items: Sequence[Item]) -> Item:
        return items[self.draw(st.integers(0, len(items) - 1))]

    def add(self, op: str, inputs: Sequence[Value] = (), **options: Any) -> Node:
        self.count += 1
        name = f"{self.choose(_SCOPES)}{op}_{self.count}"
        controls: Sequence[Node] = ()
        nodes = list(self.graph.nodes)
        if nodes and self.choose((False,) * 9 + (True,)):
            controls = [self.choose(nodes)]
        node = self.graph.add(op, inputs, name=name, device=self.choose(_DEVICES), controls=controls, **options)
        for value in node.outputs:
            if value.dtype is not None and value.dtype.kind != "handle":
                self.values.setdefault(value.dtype, []).append(value)
        return node

    def value(self, dtype: DType) -> Value:
        """Return some value of this dtype; a new constant or placeholder if there is none."""
        known = self.values.get(dtype)
        if known and self.choose((True, True, True, False)):
            return self.choose(known)
        if dtype.kind == "float" and self.choose((True, False)):
            return self.add("Placeholder", types={"dtype": dtype}, attributes={"shape": Shape((None, 4))}).outputs[0]
        data: Any = {"bool": True, "string": b"s"}.get(dtype.kind, 1)
        if self.choose((True, False)):
            data = [data] * self.choose((0, 2, 20))
        return self.add("Const", attributes={"value": Tensor.of(data, dtype)}).outputs[0]

    def operation(self) -> None:
        """Add any op of the vocabulary, its type variables and required attributes drawn too."""
        # Scattered, because Hypothesis prefers small numbers and would mostly take the first ops.
        number: int = self.draw(st.integers(0, 2**16)) * 40503
        schema = find_schema("tf", self.ops[number % len(self.ops)])
        assert schema is not None
        attributes: dict[str, Any] = {}
        for name, spec in schema.attributes.items():
            if spec.default is REQUIRED:
                attributes[name] = _attribute(spec.kind, spec.minimum, spec.allowed)
            elif spec.kind == "bool" and self.choose((True, False, False)):
                attributes[name] = self.choose((True, False))
        types: dict[str, DType] = {}
        for var in schema.type_vars.values():
            dtypes = [dtype for dtype in _CONSTANTS if var.allows(dtype)]
            if float32 in dtypes:
                dtypes += [float32] * 10
            if var.is_list:
                types.update({f"{var.name}[{i}]": self.choose(dtypes) for i in range(max(var.minimum, self.choose((1, 2))))})
            else:
                types[var.name] = self.choose(dtypes)
        ports = schema.signature(attributes, types).inputs
        operands = [self.value(types[port] if isinstance(port, str) else port or float32) for port in ports]
        self.add(schema.op_type, operands, types=types, attributes=attributes)

    def cast(self) -> None:
        source, target = self.choose((*_FLOATS, int32)), self.choose((*_FLOATS, int32))
        self.add("Cast", [self.value(source)], types={"DstT": target})

    def chain(self, value: Value) -> Value:
        """Some unary float ops behind each other."""
        for _ in range(self.choose((1, 2, 3))):
            op = self.choose(("Relu", "Exp", "Identity", "MatMul", "Neg", "Tanh"))
            value = self.add(op, [value] * (2 if op == "MatMul" else 1)).outputs[0]
        return value

    def loop(self) -> None:
        """A loop of dataflow control: one float, and sometimes a tensor list, go around."""
        frame = {"frame_name": f"frame_{self.count}".encode()}
        condition = self.add("LoopCond", [self.value(bool_)]).outputs[0]
        float_exit = self.add("Enter", [self.value(float32)], attributes=frame)
        self.carry(float_exit.outputs[0], condition, self.chain)
        if self.choose((True, False)):
            enter = self.add("Enter", [self.list_handle(float32)], attributes=frame)
            index, item = self.value(int32), self.value(float32)
            step = lambda handle: self.add("TensorListSetItem", [handle, index, item]).outputs[0]
            handle = self.carry(enter.outputs[0], condition, step)
            self.add("TensorListStack", [handle, self.value(int32)], types={"element_dtype": float32})

    def carry(self, start: Value, condition: Value, body: Any) -> Value:
        merge = self.add("Merge", [start, start], attributes={"N": 2})
        switch = self.add("Switch", [merge.outputs[0], condition])
        result = body(self.add("Identity", [switch.outputs[1]]).outputs[0])
        self.graph.set_input(merge, 1, self.add("NextIteration", [result]).outputs[0])
        return self.add("Exit", [switch.outputs[0]]).outputs[0]

    def list_handle(self, dtype: DType) -> Value:
        node = self.add("TensorListReserve", [self.value(int32), self.value(int32)], types={"element_dtype": dtype})
        return node.outputs[0]

    def tensor_list(self) -> None:
        dtype = self.choose(_FLOATS)
        handle = self.list_handle(dtype)
        for _ in range(self.choose((0, 1, 2))):
            handle = self.add("TensorListSetItem", [handle, self.value(int32), self.value(dtype)]).outputs[0]
        handle = self.add("Identity", [handle]).outputs[0]
        self.add("TensorListGetItem", [handle, self.value(int32), self.value(int32)], types={"element_dtype": dtype})

    def function(self, inputs: Sequence[DType], outputs: Sequence[DType], nodes: int = 3) -> str:
        """Add a function of this signature to the library."""
        name = f"fn_{len(self.graph.functions)}"
        body = Graph(name, self.graph.functions)
        self.graph.functions[name] = body
        builder = _Builder(self.draw, body, self.ops)
        for i, dtype in enumerate(inputs):
            builder.values.setdefault(dtype, []).append(body.add_input(f"arg_{i}", dtype))
        for _ in range(nodes):
            self.choose((builder.operation, builder.operation, builder.cast))()
        body.outputs = [builder.value(dtype) for dtype in outputs]
        body.output_names = [f"ret_{i}" for i in range(len(outputs))]
        return name

    def call(self) -> None:
        inputs = [self.choose((*_FLOATS, int32)) for _ in range(self.choose((1, 2)))]
        outputs = [self.choose((float32, float32, float16, int32)) for _ in range(self.choose((1, 2)))]
        operands = [self.value(dtype) for dtype in inputs]
        name = self.function(inputs, outputs)
        types = {f"{key}[{i}]": dtype for key, dtypes in (("Tin", inputs), ("Tout", outputs)) for i, dtype in enumerate(dtypes)}
        kind = self.choose(("PartitionedCall", "direct", "If", "While"))
        if kind == "PartitionedCall":
            self.add(kind, operands, types=types, attributes={"f": FunctionRef(name)})
        elif kind == "direct":
            self.add(name, operands)
        elif kind == "If":
            branches = {"then_branch": FunctionRef(name), "else_branch": FunctionRef(self.function(inputs, outputs))}
            self.add("If", [self.value(bool_), *operands], types=types, attributes=branches)
        else:
            body = {"body": FunctionRef(self.function(inputs, inputs)), "cond": FunctionRef(self.function(inputs, [bool_]))}
            self.add("While", operands, attributes=body)


def _attribute(kind: str, minimum: int | None, allowed: Any) -> Any:
    if kind.startswith("list("):
        return [_attribute(kind[5:-1], None, allowed)] * max(minimum or 0, 4)
    plain: dict[str, Any] = {"float": 0.5, "bool": True, "string": b"x", "shape": Shape((2, None))}
    if kind == "int":
        return max(minimum or 0, 2)
    return min(allowed) if allowed else plain[kind]


@st.composite
def graphs(draw: Any, max_nodes: int = 12, ops: Sequence[str] | None = None, functions: bool = True) -> Graph:
    """Random graphs that ``verify`` accepts, as a GraphDef would hold them.

    Args:
        max_nodes: Number of building steps; one step adds an op with its operands, or a whole loop.
        ops: TensorFlow ops to draw from; None takes all whose operands can be made.
        functions: Whether to add functions and calls of them.
    """
    vocabulary = simple_ops() if ops is None else [op for op in ops if op in set(simple_ops())]
    builder = _Builder(draw, Graph("random"), vocabulary)
    steps = [builder.operation] * 8 + [builder.cast, builder.tensor_list, builder.loop]
    if functions:
        steps.append(builder.call)
    for _ in range(draw(st.integers(1, max_nodes))):
        builder.choose(steps)()
    graph = builder.graph
    produced = [value for node in graph.nodes for value in node.outputs]
    graph.outputs = [builder.choose(produced) for _ in range(draw(st.integers(1, 2)))]
    graph.output_names = [value.name for value in graph.outputs]
    graph.attributes = {"producer": 2474}
    return graph
