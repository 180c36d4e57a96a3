"""The dtypes of all values of an ONNX model that was just read.

They follow from the schemas, from inputs towards outputs; what the file declares is taken where nothing else says it, and must
not contradict. Bodies are looked at when their owner is. A model-local function is typed anew for each different call; what
all calls agree on stays.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from ..dtypes import DTYPES, DType
from ..errors import FormatError, GraphError
from ..graph import Graph, Node, Value
from ..schema import untyped_signature
from ..schemas.onnx_schema import OnnxSchema, capture_labels
from ..types import Shape, ValueType

_MAX_CALLS = 100
_NONE: Mapping[str, DType] = {}
_Dtypes = tuple[DType | None, ...]


class Typing:
    """Completes the types of a model.

    Args:
        graph: The main graph.
        given: Node -> type variables that its attributes give.
        declared: Value -> the type that the file declares.
        functions: The model-local functions.
    """

    def __init__(
        self,
        graph: Graph,
        given: Mapping[Node, Mapping[str, DType]],
        declared: Mapping[Value, ValueType],
        functions: Mapping[str, Graph],
    ) -> None:
        self.graph = graph
        self.given = given
        self.declared = declared
        self.functions = functions
        self.schemas: dict[tuple[int, str, str], OnnxSchema | None] = {}
        self.orders: dict[Graph, list[Node]] = {}
        self.results: dict[tuple[str, _Dtypes], _Dtypes] = {}
        self.calls: dict[str, _Dtypes] = {}
        self.was_given: dict[str, list[bool]] = {}
        self.current: dict[str, _Dtypes] = {}
        self.depth = 0
        self.final = False

    def run(self) -> None:
        """Type the main graph, then the functions as their callers agree.

        Raises:
            FormatError: If dtypes contradict, functions call each other in a circle, operand counts are wrong, or functions and
                bodies are nested too deep.
        """
        order = list(_callers_first(self.functions))
        for value in self.graph.inputs:
            self._set(value, None)
        try:
            self._type_nodes(self.graph)
            self.final = True
            for name in order:
                wanted = self.calls.get(name, (None,) * len(self.functions[name].inputs))
                if self.current.get(name) != wanted:
                    self._type_function(name, wanted)
        except RecursionError:
            raise FormatError(
                f"Functions and bodies of graph {self.graph.name!r} are nested deeper than Python's stack: inline some of them."
            ) from None
        self._check_outputs(self.graph)

    # ---- values -----------------------------------------------------------------------------------------------------

    def _set(self, value: Value, dtype: DType | None, shape: Shape | None = None) -> None:
        """Give an input, or another value of no type variable, its dtype: as it follows, else as declared."""
        said = self.declared.get(value)
        found = dtype or (None if said is None else said.dtype)
        if said is not None and said.dtype is not None and found is not said.dtype:
            raise FormatError(
                f"Value {value.name!r} of graph {value.producer.graph.name!r} is declared {said.dtype}, but is {dtype}."
            )
        node = value.producer
        if node.signature.schema is None:
            value._dtype = found
        elif "default" in node.attributes:
            default = node.attributes["default"].dtype
            if found is not None and found is not default:
                raise FormatError(f"Input {value.name!r} is {found}, but its initializer is {default}.")
            node.types = {"T": default}
        else:
            node.types = _NONE if found is None else {"T": found}
        if shape is not None and said is None:
            value.shape = shape

    def _check_outputs(self, graph: Graph) -> None:
        for value in graph.outputs:
            said, dtype = self.declared.get(value), value.dtype
            if said is not None and said.dtype is not None and dtype is not None and said.dtype is not dtype:
                raise FormatError(f"Output {value.name!r} of graph {graph.name!r} is declared {said.dtype}, but is {dtype}.")

    # ---- nodes ------------------------------------------------------------------------------------------------------

    def _type_nodes(self, graph: Graph) -> None:
        order = self.orders.get(graph)
        if order is None:
            try:
                order = graph.topological()
            except GraphError as error:
                raise FormatError(str(error)) from error
            order = self.orders[graph] = [node for node in order if node.domain != "ampgraph" or node.op_type != "Input"]
        for node in order:
            if node.op_type == "Initializer" and node.domain == "ampgraph":
                for value in node.outputs:
                    self._compare(node, value, node.types["T"])
            else:
                self._type_node(node)

    def _find(self, node: Node) -> OnnxSchema | None:
        key = (id(node.graph.opsets), node.domain, node.op_type)
        if key not in self.schemas:
            schema = node.graph.find_schema(node.domain, node.op_type)
            self.schemas[key] = schema if isinstance(schema, OnnxSchema) else None
        return self.schemas[key]

    def _type_node(self, node: Node) -> None:
        schema = self._find(node)
        labels = capture_labels(node.attributes) if len(node.inputs) > len(node.meta.operands) else ()
        if schema is None or (labels and not schema.has_bodies):
            self._type_unknown(node, labels)
            return
        bodies = (
            [(name, value) for name, value in node.attributes.items() if isinstance(value, Graph)] if schema.has_bodies else []
        )
        for name, body in bodies:
            self._type_body(node, name, body, labels)
        types: dict[str, DType] = dict(self.given.get(node, _NONE))
        if schema.is_call:
            self._type_call(node, schema, types)
        try:
            signature = schema.signature(node.attributes, types, node.inputs, len(node.outputs))
            types = schema.complete_for(signature, types, node.attributes, node.inputs)
        except GraphError as error:
            if node.domain == "com.microsoft":  # a newer definition than ours
                self._type_unknown(node, labels)
                return
            raise FormatError(f"Node {_label(node)}: {error}") from error
        for value in node.outputs:
            port = signature.outputs[value.index]
            said = self.declared.get(value)
            if isinstance(port, str) and port not in types and said is not None and said.dtype is not None:
                types[port] = said.dtype
        node.signature = signature
        node.types = types
        self._check_operands(node)
        for value in node.outputs:
            value._dtype = None
            if signature.outputs[value.index] is None:
                self._set(value, None)
            dtype = value.dtype
            if dtype is not None:
                self._compare(node, value, dtype)
            if self.declared.get(value) is None or (not value.container and value.shape.dims is None):
                self._set_container(node, schema, value)

    def _type_unknown(self, node: Node, labels: Sequence[str]) -> None:
        node.signature = untyped_signature(len(node.inputs), len(node.outputs))
        node.types = _NONE
        for value in node.outputs:
            self._set(value, None)
        for name, attribute in node.attributes.items():
            for body in attribute if isinstance(attribute, list) else (attribute,):
                if isinstance(body, Graph):
                    self._type_body(node, name, body, labels)

    def _compare(self, node: Node, value: Value, dtype: DType) -> None:
        said = self.declared.get(value)
        if said is not None and said.dtype is not None and said.dtype is not dtype:
            raise FormatError(f"Value {value.name!r} is declared {said.dtype}, but node {_label(node)} gives {dtype}.")

    def _check_operands(self, node: Node) -> None:
        types = node.types
        for slot, (port, value) in enumerate(zip(node.signature.inputs, node.inputs, strict=True)):
            wanted = types.get(port) if isinstance(port, str) else port
            found = None if value is None else value.dtype
            if wanted is not None and found is not None and wanted is not found:
                assert value is not None
                raise FormatError(f"Node {_label(node)} reads {value.name!r} at input {slot} as {wanted}, but it is {found}.")

    # ---- containers ---------------------------------------------------------------------------------------------------

    def _set_container(self, node: Node, schema: OnnxSchema, value: Value) -> None:
        """Say what holds the tensors of a result that the file declares no type for."""
        formal = schema.formal_of(value.index, result=True)
        container = "" if formal is None else formal.container
        if container is None:
            container = self._follow(node, schema, value)
        if container != value.container:
            value.shape = Shape(value.shape.dims, container)

    def _follow(self, node: Node, schema: OnnxSchema, value: Value) -> str:
        """Return the container of a result that may be one of several."""
        first = next((operand for operand in node.inputs if operand is not None), None)
        source = "" if first is None else first.container
        if node.op_type == "Optional":
            declared = node.attributes.get("type")
            inner = declared.shape.container if isinstance(declared, ValueType) else source
            return f"optional({inner})" if inner else "optional"
        if node.op_type == "OptionalGetElement":
            match = re.fullmatch(r"optional(?:\((.*)\))?", source)
            return source if match is None else match[1] or ""
        if schema.is_call:
            outputs = self.functions[f"{node.domain}:{node.op_type}"].outputs
            return outputs[value.index].container if value.index < len(outputs) else ""
        if schema.has_bodies:
            body = next((body for body in node.attributes.values() if isinstance(body, Graph)), None)
            place = value.index + (1 if node.op_type == "Loop" else 0)
            return body.outputs[place].container if body is not None and place < len(body.outputs) else ""
        port = node.signature.outputs[value.index]
        for other, operand in zip(node.signature.inputs, node.inputs, strict=True):
            if other == port and operand is not None:
                return operand.container
        return ""

    # ---- bodies -----------------------------------------------------------------------------------------------------

    def _type_body(self, node: Node, name: str, body: Graph, labels: Sequence[str]) -> None:
        """Give the inputs of a body the dtypes of what its owner hands to it, then type its nodes."""
        count = len(node.inputs) - len(labels)
        formals = body.inputs[: len(body.inputs) - len(body.captures)]
        handed = self._handed(node, count) if node.domain == "" else []
        for i, value in enumerate(formals):
            dtype, shape = handed[i] if i < len(handed) else (None, None)
            try:
                self._set(value, dtype, shape)
            except FormatError as error:
                raise FormatError(f"Node {_label(node)}, {name}: {error}") from error
        outer = dict(zip(labels, node.inputs[count:], strict=True))
        for label, value in zip(body.captures, body.inputs[len(formals) :], strict=True):
            source = outer[label]
            assert source is not None
            self._set(value, source.dtype)
            value.shape = source.shape
        self._type_nodes(body)
        self._check_outputs(body)

    def _handed(self, node: Node, count: int) -> list[tuple[DType | None, Shape | None]]:
        """Return what the standard's control flow ops hand to the formal inputs of their bodies."""
        operands = [
            (None, None) if value is None else (value.dtype, Shape(None, value.container) if value.container else None)
            for value in node.inputs[:count]
        ]
        if node.op_type == "Loop":
            return [(DTYPES["int64"], Shape(())), (DTYPES["bool"], None), *operands[2:]]
        if node.op_type == "Scan":
            scanned = node.attributes.get("num_scan_inputs", 0)
            body = node.attributes.get("body")
            wanted = len(body.inputs) - len(body.captures) if isinstance(body, Graph) else scanned
            return list(operands[count - wanted :] if 0 <= wanted <= count else operands)
        if node.op_type == "SequenceMap":
            return [
                (None if value is None else value.dtype, Shape(None) if value is not None and value.container == "seq" else None)
                for value in node.inputs[:count]
            ]
        return []

    # ---- functions ----------------------------------------------------------------------------------------------------

    def _type_call(self, node: Node, schema: OnnxSchema, types: dict[str, DType]) -> None:
        name = f"{node.domain}:{node.op_type}"
        function = self.functions[name]
        given = [None if value is None else value.dtype for value in node.inputs]
        dtypes = tuple([*given, *[None] * len(function.inputs)][: len(function.inputs)])
        if not self.final:
            is_given = [i < len(node.inputs) and node.inputs[i] is not None for i in range(len(function.inputs))]
            before = self.calls.get(name)
            if before is None:
                self.calls[name], self.was_given[name] = dtypes, is_given
            else:  # what a call leaves out contradicts nothing
                was_given = self.was_given[name]
                rows = zip(before, dtypes, was_given, is_given, strict=True)
                self.calls[name] = tuple(a if a is b or not now else b if not was else None for a, b, was, now in rows)
                self.was_given[name] = [was or now for was, now in zip(was_given, is_given, strict=True)]
        for formal, dtype in zip(schema.outputs, self._type_function(name, dtypes), strict=True):
            if formal.var is not None and dtype is not None:
                types.setdefault(formal.var, dtype)

    def _type_function(self, name: str, dtypes: _Dtypes) -> _Dtypes:
        found = self.results.get((name, dtypes))
        if found is not None and not (self.final and self.current.get(name) != dtypes and self.calls.get(name) == dtypes):
            return found
        self.depth += 1
        if self.depth > _MAX_CALLS:
            raise FormatError(f"Calls of model-local functions are nested more than {_MAX_CALLS} deep, down to {name!r}.")
        function = self.functions[name]
        for value, dtype in zip(function.inputs, dtypes, strict=True):
            self._set(value, dtype)
        try:
            self._type_nodes(function)
        except FormatError as error:
            if self.depth > _MAX_CALLS or str(error).startswith("Function "):  # the innermost one is named
                raise
            raise FormatError(f"Function {name!r}: {error}") from error
        self.depth -= 1
        self.current[name] = dtypes
        result = tuple(value.dtype for value in function.outputs)
        self.results[name, dtypes] = result
        return result


def _callers_first(functions: Mapping[str, Graph]) -> Iterator[str]:
    """Order functions so that each comes after all that call it.

    Raises:
        FormatError: If they call each other in a circle.
    """
    called: dict[str, list[str]] = {}
    waiting = dict.fromkeys(functions, 0)
    for name, function in functions.items():
        parts, ops = [function], dict[str, None]()
        for part in parts:  # grows while it is walked
            parts += [body for _, _, body in part.bodies()]
            ops.update(dict.fromkeys(f"{node.domain}:{node.op_type}" for node in part.nodes))
        called[name] = [op for op in ops if op in functions]
        for op in called[name]:
            waiting[op] += 1
    ready = [name for name, count in waiting.items() if not count]
    for name in ready:  # grows while it is walked
        yield name
        for op in called[name]:
            waiting[op] -= 1
            if not waiting[op]:
                ready.append(op)
    circle = [name for name, count in waiting.items() if count]
    if circle:
        raise FormatError(f"Model-local functions call each other in a circle: {', '.join(circle[:8])}.")


def _label(node: Node) -> str:
    name = node.name or next((value.name for value in node.outputs), "")
    return f"{name[:200]!r} ({node.op_type[:200]})"
