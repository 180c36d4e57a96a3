"""Reading ONNX models: messages become graphs, then every value gets its dtype.

A graph is read in two sweeps: all nodes are made, so that the file's order does not matter; then operands are linked. The
bodies of If, Loop and the like are read when their owner is linked: what they use of the graphs around becomes an operand
of the owner. Graphs are taken out of the messages, and what remains is kept (:mod:`.onnx_meta`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..collector import paused_collector
from ..dtypes import DType
from ..errors import FormatError, GraphError, did_you_mean
from ..graph import Graph, Node, Value
from ..schema import OpSchema, untyped_signature
from ..schemas.ampgraph import find as find_own
from ..schemas.onnx import dtype_of, find, latest
from ..schemas.onnx_schema import OnnxSchema, capture_labels
from ..types import UNKNOWN, Placeholder, Tensor, ValueType
from .onnx_attributes import INT, read_attribute, read_type_once
from .onnx_meta import GraphMeta, NodeMeta
from .onnx_tensor import Folder, check_text, read_sparse, read_tensor
from .onnx_types import Typing

#: A body inside a body inside … so many times is nobody's model.
_MAX_NESTING = 64
_NONE: Mapping[int, memoryview] = {}


def read_message(model: Any, folder: Folder, elements: Mapping[int, memoryview]) -> Graph:
    """Turn a ``ModelProto``, which is taken apart, into a graph; see :func:`.onnx.read_model`.

    ``elements``: those of the main graph's initializers at these places, which were taken out of the message.
    """
    with paused_collector():
        reader = _Reader(folder, model.functions)
        proto, functions = model.graph, list(model.functions)
        has_graph = model.HasField("graph")
        opsets = _read_opsets(model.opset_import, "The model")
        model.ClearField("graph")
        model.ClearField("functions")
        if not has_graph:
            raise FormatError("The model holds no graph. Is this file an ONNX model?")
        if not opsets:
            raise FormatError("The model does not say of which version of the ONNX ops it is (opset_import).")
        check_text(proto.name)
        for function in functions:
            reader.read_function(function)
        graph = reader.read_graph(proto, None, Graph(proto.name, reader.functions, opsets=opsets), elements)
        graph.meta.model = model
        graph.meta.external = folder.is_used
        if model.ir_version:
            graph.attributes["ir_version"] = model.ir_version
        Typing(graph, reader.given, reader.declared, reader.functions).run()
    return graph


def _read_opsets(imports: Iterable[Any], where: str) -> dict[str, int]:
    opsets: dict[str, int] = {}
    for entry in imports:
        check_text(entry.domain)
        domain = plain_domain(entry.domain)
        if opsets.setdefault(domain, entry.version) != entry.version:
            raise FormatError(
                f"{where} asks for versions {opsets[domain]} and {entry.version} of domain {domain or 'ai.onnx'!r}."
            )
        newest = latest(domain)
        if newest and not 1 <= entry.version <= newest:
            raise FormatError(
                f"{where} asks for version {entry.version} of domain {domain or 'ai.onnx'!r}; the installed onnx package knows "
                f"1 to {newest}. Update onnx, or convert the model."
            )
    return opsets


def plain_domain(domain: str) -> str:
    """Return the one spelling of a domain: the standard's own may be called ``ai.onnx`` too."""
    return "" if domain == "ai.onnx" else domain


def function_key(domain: str, name: str, overload: str) -> str:
    """Return the name of a model-local function in ``Graph.functions``."""
    return f"{plain_domain(domain)}:{name}" + (f":{overload}" if overload else "")


class _Scope:
    """A graph while it is read: its values by name, and the scope around."""

    def __init__(self, graph: Graph, outer: "_Scope | None") -> None:
        self.graph = graph
        self.outer = outer
        self.depth: int = 0 if outer is None else outer.depth + 1
        self.values: dict[str, Value] = {}

    def define(self, name: str, value: Value) -> None:
        if self.values.setdefault(name, value) is not value:
            raise FormatError(f"Graph {self.graph.name!r} defines value {name!r} twice; values must be unique.")

    def find(self, name: str, capture: bool = True) -> Value | None:
        """Return the value called ``name``; one of a scope around becomes an input of this graph."""
        found = self.values.get(name)
        if found is not None or self.outer is None or not capture or self.outer.find(name) is None:
            return found
        graph = self.graph
        value = graph.add_input(name, None)
        value.name = name
        graph.captures = (*graph.captures, name)
        self.values[name] = value
        return value


class _Reader:
    """Reads the graphs of one model.

    Attributes:
        functions: The model-local functions read so far.
        given: Node -> type variables that its attributes give.
        declared: Value -> the type that the file declares for it.
        types: Types read so far, by their bytes.
    """

    def __init__(self, folder: Folder, functions: Iterable[Any]) -> None:
        self.folder = folder
        self.functions: dict[str, Graph] = {}
        self.keys: set[str] = set()
        for function in functions:
            check_text(function.domain, function.name, function.overload)
            key = function_key(function.domain, function.name, function.overload)
            if not function.name or key in self.keys:
                raise FormatError(
                    f"Model-local functions must have unique names. Received: {key!r}{' twice' * bool(function.name)}"
                )
            self.keys.add(key)
        self.given: dict[Node, dict[str, DType]] = {}
        self.declared: dict[Value, Any] = {}
        self.types: dict[bytes, ValueType] = {}

    # ---- graphs -----------------------------------------------------------------------------------------------------

    def read_function(self, proto: Any) -> None:
        key = function_key(proto.domain, proto.name, proto.overload)
        graph = Graph(key, self.functions, opsets=_read_opsets(proto.opset_import, f"Function {key!r}"))
        self.functions[key] = graph
        scope = _Scope(graph, None)
        check_text(*proto.input, *proto.output, *proto.attribute, *[info.name for info in proto.value_info])
        for name in proto.input:
            self._add_input(scope, name)
        nodes = self._make_nodes(scope, list(proto.node))
        infos = self._read_infos(scope, list(proto.value_info))
        self._link(scope, nodes)
        self._set_outputs(scope, list(proto.output))
        if proto.attribute:
            graph.attributes["parameters"] = [name.encode() for name in proto.attribute]
        for field in ("input", "output", "node", "value_info"):
            proto.ClearField(field)
        graph.meta = GraphMeta(proto, infos=infos, dangling=_dangling(scope, infos))

    def read_graph(self, proto: Any, outer: _Scope | None, graph: Graph, elements: Mapping[int, memoryview] = _NONE) -> Graph:
        scope = _Scope(graph, outer)
        if scope.depth > _MAX_NESTING:
            raise FormatError(f"Graphs are nested more than {_MAX_NESTING} deep.")
        names = [info.name for infos in (proto.input, proto.output, proto.value_info) for info in infos]
        check_text(*names)
        defaults, order = self._read_initializers(proto, elements)
        inputs: dict[str, tuple[Any, ValueType | None]] = {}
        for info in proto.input:
            value = self._add_input(scope, info.name)
            inputs[info.name] = info, self._declare(value, info)
            if info.name in defaults:
                value.producer.attributes = {"default": defaults.pop(info.name)}
        initializer = find_own("Initializer")
        assert initializer is not None
        signature = initializer.signature({}, {})
        for name, tensor in defaults.items():
            types, attributes = {"T": tensor.dtype}, {"value": tensor}
            node = Node(graph, "Initializer", "ampgraph", name, signature, attributes, types, "", None)
            node.outputs = [Value(node, 0, name)]
            node.outputs[0].shape = _shape_of(tensor)
            scope.define(name, node.outputs[0])
            graph.append(node)
        nodes = self._make_nodes(scope, list(proto.node))
        infos = self._read_infos(scope, list(proto.value_info))
        self._link(scope, nodes)
        self._set_outputs(scope, [info.name for info in proto.output])
        outputs = {info.name: (info, self._declare(value, info)) for value, info in zip(graph.outputs, proto.output, strict=True)}
        for field in ("input", "output", "node", "value_info", "initializer", "sparse_initializer"):
            proto.ClearField(field)
        graph.meta = GraphMeta(
            proto,
            inputs=inputs,
            outputs=outputs,
            infos=infos,
            dangling=_dangling(scope, infos),
            initializers=order,
        )
        return graph

    def _read_initializers(self, proto: Any, elements: Mapping[int, memoryview]) -> tuple[dict[str, Tensor], dict[str, int]]:
        found: dict[str, Tensor] = {}
        rows = [(item.name, item, True) for item in proto.initializer]
        rows += [(item.values.name, item, False) for item in proto.sparse_initializer]
        for i, (name, item, is_dense) in enumerate(rows):
            check_text(name)
            if not name or name in found:
                raise FormatError(f"Initializers must have unique names. Received: {name!r}{' twice' if name else ''}")
            where = f"Initializer {name!r}"
            found[name] = (
                read_tensor(item, self.folder, where, elements.get(i)) if is_dense else read_sparse(item, self.folder, where)
            )
        return found, {name: i for i, name in enumerate(found)}

    def _add_input(self, scope: _Scope, name: str) -> Value:
        if not name:
            raise FormatError(f"An input of graph {scope.graph.name!r} has no name.")
        value = scope.graph.add_input(name, None)
        value.name = name
        scope.define(name, value)
        return value

    def _declare(self, value: Value, info: Any) -> ValueType | None:
        """Note the type that the file declares, where it declares one, and take the shape from it."""
        if not info.HasField("type"):
            return None
        said = read_type_once(info.type, f"Value {info.name!r}", self.types)
        before = self.declared.get(value)
        if before is not None and before.dtype is not said.dtype and None not in (before.dtype, said.dtype):
            raise FormatError(f"Value {info.name!r} is declared as {before.dtype} and as {said.dtype}.")
        if before is None or before.dtype is None:
            self.declared[value] = said
        if value.shape is UNKNOWN or (value.shape.dims is None and said.shape.dims is not None):
            value.shape = said.shape
        return said

    def _read_infos(self, scope: _Scope, infos: Sequence[Any]) -> list[tuple[Any, ValueType | None]]:
        values = [scope.values.get(info.name) for info in infos]
        return [(info, None if value is None else self._declare(value, info)) for info, value in zip(infos, values, strict=True)]

    def _set_outputs(self, scope: _Scope, names: Sequence[str]) -> None:
        for name in names:
            value = scope.find(name) if name else None
            if value is None:
                text = f"Graph {scope.graph.name!r} returns {name!r}, but no node, input or initializer defines it."
                raise FormatError(text + _similar(name, scope.values))
            scope.graph.outputs.append(value)
            scope.graph.output_names.append(name)

    # ---- nodes ------------------------------------------------------------------------------------------------------

    def _make_nodes(self, scope: _Scope, protos: Sequence[Any]) -> list[tuple[Node, list[str], list[tuple[str, Any]]]]:
        """Make nodes without operands; return with them the operands' names and the attributes."""
        made = []
        graph, values = scope.graph, scope.values
        for position, proto in enumerate(protos):
            names, results, pairs = proto.input[:], proto.output[:], [(item.name, item) for item in proto.attribute]
            op_type, overload, domain = proto.op_type, proto.overload, proto.domain
            check_text(*names, *results, op_type, proto.name, domain, overload, *[name for name, _ in pairs])
            if not op_type:
                raise FormatError(f"Node {proto.name!r} of graph {graph.name!r} has no op type.")
            if overload:
                op_type = f"{op_type}:{overload}"
            node = Node(
                graph,
                op_type,
                plain_domain(domain),
                proto.name,
                untyped_signature(len(names), len(results)),
                {},
                {},
                "",
                None,
            )
            omitted = []
            for i, name in enumerate(results):
                if not name:
                    omitted.append(i)
                    continue
                value = Value(node, i, name)
                node.outputs.append(value)
                if values.setdefault(name, value) is not value:
                    scope.define(name, value)
            for i in omitted:
                node.outputs.insert(i, Value(node, i, f"omitted:{position}:{i}"))
            node.meta = NodeMeta(proto, (op_type, node.name, node.domain), names, results, frozenset(omitted))
            graph.append(node)
            if len(pairs) > 1 and len(dict(pairs)) != len(pairs):
                raise FormatError(f"Node {_label(node)} has two attributes of the same name.")
            made.append((node, names, pairs))
        return made

    def _link(self, scope: _Scope, nodes: Sequence[tuple[Node, list[str], list[tuple[str, Any]]]]) -> None:
        """Connect operands and read attributes, with the bodies among them."""
        schemas: dict[tuple[str, str], OpSchema | None] = {}
        graph, values = scope.graph, scope.values
        for node, names, attributes in nodes:
            for slot, name in enumerate(names):
                value = values.get(name) or scope.find(name) if name else None
                if value is None and name:
                    text = f"Node {_label(node)} reads {name!r} at input {slot}, but no node, input or initializer defines it."
                    raise FormatError(text + _similar(name, scope.values))
                node.inputs.append(value)
            if not attributes:
                continue
            key = (node.domain, node.op_type)
            if key not in schemas:
                is_call = f"{node.domain}:{node.op_type}" in self.keys
                schemas[key] = (
                    None if is_call else find(*key, graph.opsets.get(node.domain, 0)) if key[0] in graph.opsets else None
                )
            schema = schemas[key]
            types = schema.type_attributes if isinstance(schema, OnnxSchema) else {}
            if self._read_attributes(scope, node, attributes, types):
                node.inputs += map(scope.find, capture_labels(node.attributes))

    def _read_attributes(
        self, scope: _Scope, node: Node, attributes: Sequence[tuple[str, Any]], types: Mapping[str, tuple[str, str]]
    ) -> bool:
        """Read the attributes of a node; return whether bodies are among them."""
        graph, has_bodies = scope.graph, False

        def body(proto: Any) -> Graph:
            nonlocal has_bodies
            has_bodies = True
            check_text(proto.name)
            return self.read_graph(proto, scope, Graph(proto.name, self.functions, opsets=graph.opsets))

        values: dict[str, Any] = {}
        kept: dict[str, tuple[Any, Any]] = {}
        for name, proto in attributes:

            def where(name: str = name) -> str:
                return f"Attribute {name!r} of node {_label(node)}"

            value = read_attribute(proto, self.folder, body, where)
            if name in types and not isinstance(value, Placeholder):
                if proto.type != INT and not isinstance(value, int):
                    raise FormatError(f"{where()} must be an integer, the number of a dtype. Received: {value!r}")
                if value:
                    try:
                        value = dtype_of(value, where())
                    except GraphError as error:
                        raise FormatError(str(error)) from error
                    self.given.setdefault(node, {})[types[name][0]] = value
                else:
                    value = None  # the number of "undefined": as if left out
            else:
                values[name] = value
            kept[name] = (value, proto)
        node.attributes = values
        node.meta.attributes = kept
        return has_bodies


def _shape_of(tensor: Tensor) -> Any:
    from ..types import Shape

    return Shape(tensor.shape)


def _dangling(scope: _Scope, infos: Iterable[tuple[Any, ValueType | None]]) -> frozenset[str]:
    return frozenset([info.name for info, _ in infos if info.name not in scope.values])


def _label(node: Node) -> str:
    """Name a node in messages; one without a name by its first result."""
    name = node.name or next((value.name for value in node.outputs), "")
    return f"{name[:200]!r} ({node.op_type[:200]})"


def _similar(name: str, values: Mapping[str, Any]) -> str:
    near = list(values) if len(values) <= 2000 else [other for other in values if other[:3] == name[:3]][:2000]
    return did_you_mean(name[:200], near)
