"""From the statements of a parsed text to graphs.

First all nodes are made, so that a name may be used before the line that defines it; then operands and control edges are
linked; then types are completed, functions before their callers.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from .dtypes import DType
from .errors import GraphError, did_you_mean
from .graph import Graph, Node, Value, call_schema, complete_types
from .schema import OpSchema, Signature, untyped_signature
from .schemas import find_schema
from .schemas.onnx_schema import OnnxSchema
from .text_print import value_ref
from .types import Placeholder, Shape

#: Raises an error that points at a token.
Fail = Callable[[str, int], NoReturn]

#: Signatures of nodes not yet typed: their results have the dtypes that the text declares. By number of results.
_untyped = functools.cache(functools.partial(untyped_signature, 0))


@dataclass(slots=True)
class Result:
    """One result of a statement: ``%name#ordinal: dtype[shape]``, at token ``at``."""

    at: int
    name: str
    ordinal: int
    dtype: DType | None
    shape: Shape


@dataclass(slots=True)
class Statement:
    """One parsed node, whose op is token ``at``. ``untyped`` names type variables without (further) entries."""

    at: int
    results: list[Result]
    domain: str
    op_type: str
    types: dict[str, DType] = field(default_factory=dict)
    untyped: list[str] = field(default_factory=list)
    operands: list[tuple[int, tuple[str, int] | None]] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    name: str | None = None
    device: str = ""
    controls: list[tuple[int, str | int]] = field(default_factory=list)


@dataclass(slots=True)
class Block:
    """One parsed graph or function."""

    at: int
    is_function: bool
    name: str
    inputs: list[Statement] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    opsets: dict[str, int] = field(default_factory=dict)
    captures: list[str] = field(default_factory=list)
    returns: list[tuple[int, str | None, tuple[str, int]]] = field(default_factory=list)


def build(blocks: list[Block], fail: Fail) -> Graph:
    """Return the graph of the first block, with the functions of the others.

    Args:
        blocks: The parsed blocks.
        fail: Called with a message and a token's position when the blocks make no sense.
    """
    library: dict[str, Graph] = {}
    builders: dict[str, _Builder] = {}
    first: _Builder | None = None
    for block in blocks:
        builder = _Builder(block, Graph(block.name, library, opsets=block.opsets, captures=block.captures), fail)
        first = first or builder
        if block.is_function:
            if block.name in library:
                fail(f"Function {block.name!r} is defined twice.", block.at)
            library[block.name] = builder.graph
            builders[block.name] = builder
    assert first is not None
    for builder in {id(b): b for b in [first, *builders.values()]}.values():
        builder.make_nodes()
        builder.link()
    schemas: dict[str, OpSchema] = {}
    for builder in _callees_first([first, *builders.values()], builders):
        builder.set_types(schemas)
        if builder.block.is_function:
            schemas[builder.block.name] = call_schema(builder.graph)
    return first.graph


def _callees_first(roots: "list[_Builder]", library: "Mapping[str, _Builder]") -> "Iterator[_Builder]":
    """Order blocks so that a function comes before the nodes that call it; calls in a circle come in any order."""
    seen: set[int] = set()
    for root in roots:
        stack: list[tuple[_Builder, Iterator[str]]] = []
        if id(root) not in seen:
            seen.add(id(root))
            stack.append((root, root.called(library)))
        while stack:
            builder, calls = stack[-1]
            callee = next((library[name] for name in calls if id(library[name]) not in seen), None)
            if callee is None:
                stack.pop()
                yield builder
            else:
                seen.add(id(callee))
                stack.append((callee, callee.called(library)))


class _Builder:
    """Makes one block's graph."""

    def __init__(self, block: Block, graph: Graph, fail: Fail) -> None:
        self.block = block
        self.graph = graph
        self.fail = fail
        self.values: dict[tuple[str, int], Value] = {}
        self.nodes: list[tuple[Node, Statement]] = []
        self.reads_ahead = False
        self.bodies: dict[Node, list[_Builder]] = {}

    def called(self, library: Mapping[str, object]) -> Iterator[str]:
        """Return the functions of ``library`` that this block's nodes have as their op."""
        ops = dict.fromkeys(s.op_type for s in self.block.statements if s.domain == "tf")
        return iter([op for op in ops if op in library])

    def make_nodes(self) -> None:
        graph = self.graph
        graph.attributes = self.block.attributes
        for statement in self.block.inputs:
            result = statement.results[0]
            value = graph.add_input(result.name, result.dtype, result.shape)
            node = value.producer
            node.attributes = statement.attributes
            node.device = statement.device
            if statement.name is not None:
                node.name = statement.name
                value.name = None if result.name == node.name else result.name
            self.nodes.append((node, statement))
            self.define(value, result)
        for statement in self.block.statements:
            name = statement.name
            results = statement.results
            if name is None:
                name = results[0].name if results and statement.domain in ("tf", "ampgraph") else ""
            node = Node(
                graph,
                statement.op_type,
                statement.domain,
                name,
                _untyped(len(results)),
                statement.attributes,
                {},
                statement.device,
                None,
            )
            for i, result in enumerate(results):
                value = Value(node, i, None, result.shape, result.dtype)
                if result.name != (f"{name}:{i}" if i else name):
                    value.name = result.name
                node.outputs.append(value)
                self.define(value, result)
            self.nodes.append((node, statement))
            if any(isinstance(value, Block | list) for value in statement.attributes.values()):
                self.make_bodies(node, statement)
            graph.append(node)

    def make_bodies(self, node: Node, statement: Statement) -> None:
        """Turn the blocks among a node's attributes into graphs, all but the types."""

        def body(value: Any) -> Any:
            if isinstance(value, list):
                return [body(item) for item in value]
            if not isinstance(value, Block):
                return value
            builder = _Builder(
                value, Graph(value.name, self.graph.functions, opsets=self.graph.opsets, captures=value.captures), self.fail
            )
            builder.make_nodes()
            builder.link()
            if len(value.captures) > len(builder.graph.inputs):
                self.fail(f"Graph {value.name!r} has {len(value.captures)} captures, but fewer inputs.", value.at)
            self.bodies.setdefault(node, []).append(builder)
            return builder.graph

        statement.attributes = node.attributes = {name: body(value) for name, value in statement.attributes.items()}

    def define(self, value: Value, result: Result) -> None:
        key = (result.name, result.ordinal)
        if self.values.setdefault(key, value) is not value:
            self.fail(f"Value '{value_ref(result.name)}' is defined twice.", result.at)

    def link(self) -> None:
        """Connect operands, control edges and graph outputs."""
        values = self.values
        by_name: dict[str, Node] = {}
        for node, _ in self.nodes:
            if node.name:
                by_name.setdefault(node.name, node)
        ahead: set[Node] = {node for node, _ in self.nodes}
        for node, statement in self.nodes:
            for slot, (at, ref) in enumerate(statement.operands):
                value = None if ref is None else values.get(ref)
                if value is None and ref is not None:
                    reader = f"Node '{_label(statement)}' ({statement.op_type}) reads '{value_ref(ref[0])}' at input {slot}"
                    self.fail(f"{reader}, but no node or graph input defines it.{self.suggest(ref[0])}", at)
                if value is not None and value.producer in ahead:
                    self.reads_ahead = True
                node.inputs.append(value)
            ahead.discard(node)
            node.controls = tuple(self.control(by_name, wanted, at) for at, wanted in statement.controls)
        names = []
        for at, name, ref in self.block.returns:
            value = values.get(ref)
            if value is None:
                text = f"Graph {self.graph.name!r} returns '{value_ref(ref[0])}', but no node or graph input defines it."
                self.fail(text + self.suggest(ref[0]), at)
            self.graph.outputs.append(value)
            names.append(ref[0] if name is None else name)
        self.graph.output_names = names

    def suggest(self, name: str) -> str:
        return did_you_mean(value_ref(name), [value_ref(known) for known, _ in self.values])

    def control(self, by_name: Mapping[str, Node], wanted: str | int, at: int) -> Node:
        if isinstance(wanted, int):
            if wanted >= len(self.nodes):
                self.fail(f"Graph {self.graph.name!r} has {len(self.nodes)} inputs and nodes. Received: #{wanted}", at)
            return self.nodes[wanted][0]
        found = by_name.get(wanted)
        if found is None:
            self.fail(f"A control edge comes from {wanted!r}, but no node has that name.{did_you_mean(wanted, by_name)}", at)
        return found

    # ---- types ------------------------------------------------------------------------------------------------------

    def set_types(self, called: Mapping[str, OpSchema]) -> None:
        """Complete the types of all nodes; ``called`` holds the schemas of functions that are done."""
        statements = self.nodes
        if self.reads_ahead:
            try:
                order = self.graph.topological()
            except GraphError:
                pass  # a cycle: verify reports it; operands in it have no known dtype yet
            else:
                found = dict(self.nodes)
                statements = [(node, found[node]) for node in order]
        schemas: dict[tuple[str, str], OpSchema | None] = {}
        for node, statement in statements[0 if self.reads_ahead else len(self.block.inputs) :]:
            if node.op_type == "Input" and node.domain == "ampgraph" and node not in self.graph:
                continue
            for body in self.bodies.get(node, ()):
                body.set_types(called)
            key = (node.domain, node.op_type)
            if key not in schemas:
                schema = self.graph.find_schema(*key) if node.domain not in ("tf", "ampgraph") else find_schema(*key)
                schemas[key] = called.get(node.op_type) if schema is None and node.domain == "tf" else schema
            self.set_type(node, statement, schemas[key])

    def set_type(self, node: Node, statement: Statement, schema: OpSchema | None) -> None:
        results = statement.results
        if schema is None:
            node.types = statement.types
            node.signature = untyped_signature(len(node.inputs), len(results))
            return
        if _is_loose(schema, statement):
            node.types = statement.types
            node.signature = untyped_signature(len(node.inputs), len(results))
            return
        try:
            node.types = _complete(schema, statement, node)
            signature = schema.signature(node.attributes, node.types, node.inputs, len(results))
        except GraphError as error:
            self.fail(f"Node '{_label(statement)}': {error}", statement.at)
        if len(signature.outputs) != len(results):
            count = f"has {len(signature.outputs)} results. Received: {len(results)}"
            self.fail(f"Node '{_label(statement)}' ({node.op_type}) {count}", statement.at)
        node.signature = signature
        self.check_results(node, statement, signature)

    def check_results(self, node: Node, statement: Statement, signature: Signature) -> None:
        for value, result in zip(node.outputs, statement.results, strict=True):
            if signature.outputs[value.index] is not None:
                value._dtype = None
                found = value.dtype
                if result.dtype is not None and found is not None and found is not result.dtype:
                    text = f"Result '{value_ref(result.name)}' is declared {result.dtype.short}, but {node.op_type} gives"
                    self.fail(f"{text} {found.short}.", result.at)


def _is_loose(schema: OpSchema, statement: Statement) -> bool:
    """Whether the caller of the function around supplies a count, or the types of a generic function's call."""
    if schema.is_call and schema.domain == "tf":
        return bool(statement.types)
    return any(isinstance(statement.attributes.get(name), Placeholder) for name in schema._numbers + schema._lists)


def _complete(schema: OpSchema, statement: Statement, node: Node) -> Mapping[str, DType]:
    """Complete the type variables: as given, then from the declared results, then as :meth:`Graph.add` does."""
    types, untyped = statement.types, statement.untyped
    if isinstance(schema, OnnxSchema):
        completed = dict(schema.complete(types, node.attributes, node.inputs, len(statement.results)))
        ports = schema.signature(node.attributes, completed, node.inputs, len(statement.results)).outputs
        for port, result in zip(ports, statement.results, strict=True):
            if isinstance(port, str) and result.dtype is not None:
                completed.setdefault(port, result.dtype)
        return completed
    if not schema.type_vars or all(name in types or name in untyped for name in schema.type_vars):
        return types
    known = dict(types)
    formals, results = schema.outputs, statement.results
    if len(formals) == 1 and formals[0].is_list:
        var = formals[0].var
        if var not in untyped and f"{var}[0]" not in known and all(result.dtype is not None for result in results):
            known.update({f"{var}[{i}]": result.dtype for i, result in enumerate(results) if result.dtype is not None})
    elif len(formals) == len(results) and not any(formal.number or formal.is_list for formal in formals):
        for formal, result in zip(formals, results, strict=True):
            if formal.var is not None and result.dtype is not None and formal.var not in untyped:
                known.setdefault(formal.var, result.dtype)
    inferred = complete_types(schema, known, node.attributes, node.inputs)
    if untyped:
        marked = set(untyped)
        inferred = {key: dtype for key, dtype in inferred.items() if key in types or key.partition("[")[0] not in marked}
    return inferred


def _label(statement: Statement) -> str:
    """Name a node as the text does: by its first result."""
    return value_ref(statement.results[0].name) if statement.results else statement.name or statement.op_type
