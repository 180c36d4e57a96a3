"""Writing ONNX models: graphs become messages again.

Every graph is written from its template with the IR's values filled in. Names are settled first: outputs carry their names,
values of a body do not shadow those of the graphs around, and captured values are referred to by their names there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..collector import paused_collector
from ..dtypes import DType
from ..errors import FormatError
from ..graph import Graph, Node, Value
from ..schemas.onnx_schema import OnnxSchema, capture_labels
from ..types import Placeholder, Tensor, ValueType
from .onnx_attributes import INT, TENSOR, read_type, update_type, write_attribute, write_type
from .onnx_meta import GraphMeta, NodeMeta
from .onnx_read import plain_domain
from .onnx_tensor import write_tensor

#: Writes an initializer into an empty TensorProto or SparseTensorProto.
Store = Callable[[Tensor, Any], None]

_NO_META = NodeMeta(None)


@paused_collector()
def write_message(graph: Graph, store: Store = write_tensor, *, constants: Store | None = None) -> Any:
    """Turn a graph into a ``ModelProto``; see :func:`.onnx.write_model`.

    ``store`` decides where initializers' bytes go, ``constants`` where those of ``Constant`` nodes go: into the message if None.
    """
    from onnx import IR_VERSION, ModelProto

    if not graph.opsets:
        raise FormatError("Only a graph of ONNX ops, with versions of their domains in 'opsets', can be saved as ONNX.")
    model = ModelProto()
    meta = graph.meta if isinstance(graph.meta, GraphMeta) else GraphMeta(None)
    if meta.model is not None:
        model.CopyFrom(meta.model)
    else:
        model.ir_version = min(IR_VERSION, 10)
        model.producer_name = "ampgraph"
    version = graph.attributes.get("ir_version")
    if isinstance(version, int):
        model.ir_version = version
    _write_opsets(graph.opsets, model.opset_import)
    writer = _Writer(store, constants)
    writer.write_graph(graph, model.graph, ())
    for name, function in graph.functions.items():
        writer.write_function(name, function, model.functions.add())
    return model


def _write_opsets(opsets: Mapping[str, int], target: Any) -> None:
    written = set()
    for entry in target:
        domain = plain_domain(entry.domain)
        written.add(domain)
        if domain in opsets:
            entry.version = opsets[domain]
    for domain, version in opsets.items():
        if domain not in written:
            entry = target.add()
            entry.domain = domain
            entry.version = version


class _Names:
    """The names that a graph's values get in the file.

    Attributes:
        of: Value -> name.
        taken: All names, those of the graph itself only.
        outputs: Name of each output.
        copies: Outputs that need an ``Identity`` node, because their value has another name that must stay: (value, name).
    """

    def __init__(self, graph: Graph, outer: Sequence[set[str]], captured: Mapping[Value, str]) -> None:
        self.outer = outer
        self.of: dict[Value, str] = {}
        self.taken: set[str] = set()
        self.copies: list[tuple[Value, str]] = []
        self.outputs: list[str] = []
        fixed: set[Value] = set()
        if not outer:  # a model's inputs, and initializers that might be outputs, are known by name
            fixed.update(graph.inputs)
        claims = self._claim(graph, fixed, captured)
        owners = {name: value for value, name in claims.items()}
        for value in graph.inputs:
            if value in captured:
                self.of[value] = captured[value]
            else:
                self._name(graph, value, claims, owners)
        for node in graph.nodes:
            for value in node.outputs:
                name = value.name
                if outer or not name or name in owners or name in self.taken or value in claims:
                    self._name(graph, value, claims, owners)
                else:
                    self.taken.add(name)
                    self.of[value] = name
        for value, name in zip(graph.outputs, graph.output_names, strict=True):
            given = self.of[value]
            if value in captured or given == name or outer:
                self.outputs.append(given)
            else:
                self.outputs.append(name)
                if (value, name) not in self.copies:
                    self.copies.append((value, name))
        for _, name in self.copies:
            if name in self.taken:
                raise FormatError(f"Graph {graph.name!r} returns {name!r}, which is also the name of another value.")
            self.taken.add(name)

    @staticmethod
    def _claim(graph: Graph, fixed: set[Value], captured: Mapping[Value, str]) -> dict[Value, str]:
        """Give outputs' values the names of the outputs; the first of several, and none where the value's name must stay."""
        claims: dict[Value, str] = {value: value.name for value in fixed}
        names = set(claims.values())
        for value, name in zip(graph.outputs, graph.output_names, strict=True):  # exact matches first
            if value.name == name and name not in names and value not in captured:
                claims[value] = name
                names.add(name)
        for value, name in zip(graph.outputs, graph.output_names, strict=True):
            if value not in claims and value not in captured and name not in names:
                claims[value] = name
                names.add(name)
        return claims

    def _name(self, graph: Graph, value: Value, claims: Mapping[Value, str], owners: Mapping[str, Value]) -> None:
        name = claims.get(value, value.name)
        is_free = owners.get(name, value) is value and not (self.outer and any(name in names for names in self.outer))
        if not is_free or not name:
            name = self._fresh(name or "value", owners)
        if name in self.taken:
            raise FormatError(f"Graph {graph.name!r} has two values called {name!r}; ONNX needs unique names.")
        self.taken.add(name)
        self.of[value] = name

    def _fresh(self, base: str, owners: Mapping[str, Value]) -> str:
        k, name = 0, base
        while name in self.taken or name in owners or any(name in names for names in self.outer):
            k += 1
            name = f"{base}_{k}"
        return name


class _Writer:
    def __init__(self, store: Store, constants: Store | None) -> None:
        self.store = store
        self.constants = constants

    def write_graph(
        self, graph: Graph, proto: Any, outer: tuple[set[str], ...], captured: Mapping[Value, str] | None = None
    ) -> None:
        """Fill an empty ``GraphProto``. ``captured`` names the inputs that are values of the graphs around."""
        meta = graph.meta if isinstance(graph.meta, GraphMeta) else GraphMeta(None)
        if meta.template is not None:
            proto.CopyFrom(meta.template)
        proto.name = graph.name
        captured = captured or {}
        names = _Names(graph, outer, captured)
        for value in graph.inputs:
            if value not in captured:
                info = proto.input.add()
                _write_info(value, names.of[value], meta.inputs.get(value.name), info)
        self._write_initializers(graph, names, meta, proto)
        self._write_nodes(graph, names, proto.node)
        for value, name, said in zip(graph.outputs, names.outputs, graph.output_names, strict=True):
            _write_info(value, name, meta.outputs.get(said), proto.output.add())
        self._write_infos(names, meta, proto.value_info)
        if len(proto.quantization_annotation):
            kept = [item for item in proto.quantization_annotation if item.tensor_name in names.taken]
            if len(kept) < len(proto.quantization_annotation):
                copies = [_copy(item) for item in kept]
                proto.ClearField("quantization_annotation")
                proto.quantization_annotation.extend(copies)

    def write_function(self, name: str, function: Graph, proto: Any) -> None:
        meta = function.meta if isinstance(function.meta, GraphMeta) else GraphMeta(None)
        if meta.template is not None:
            proto.CopyFrom(meta.template)
        else:
            domain, _, rest = name.partition(":")
            proto.domain = domain
            proto.name, _, overload = rest.partition(":")
            if overload:
                proto.overload = overload
            proto.attribute.extend(item.decode() for item in function.attributes.get("parameters", ()))
        _write_opsets(function.opsets, proto.opset_import)
        names = _Names(function, (), {})
        proto.input.extend(names.of[value] for value in function.inputs)
        self._write_nodes(function, names, proto.node, constants=True)
        proto.output.extend(names.outputs)
        self._write_infos(names, meta, proto.value_info)

    @staticmethod
    def _write_infos(names: _Names, meta: GraphMeta, target: Any) -> None:
        by_name = {name: value for value, name in names.of.items()}
        for info, said in meta.infos:
            value = by_name.get(info.name)
            if value is not None:
                _write_info(value, info.name, (info, said), target.add())
            elif info.name in meta.dangling:
                target.add().CopyFrom(info)

    def _write_initializers(self, graph: Graph, names: _Names, meta: GraphMeta, proto: Any) -> None:
        rows = [
            (value, tensor) for value in graph.inputs if isinstance(tensor := value.producer.attributes.get("default"), Tensor)
        ]
        for node in graph.nodes:
            if node.op_type == "Initializer" and node.domain == "ampgraph":
                tensor = node.attributes.get("value")
                if not isinstance(tensor, Tensor):
                    raise FormatError(f"Initializer {node.name!r} must have a tensor as its value. Received: {tensor!r}")
                rows.append((node.outputs[0], tensor))
        last = len(meta.initializers)
        rows.sort(key=lambda row: meta.initializers.get(row[0].name, last))
        for value, tensor in rows:
            if hasattr(tensor.source, "indices"):
                sparse = proto.sparse_initializer.add()
                self.store(tensor, sparse)
                sparse.values.name = names.of[value]
            else:
                target = proto.initializer.add()
                self.store(tensor, target)
                target.name = names.of[value]

    # ---- nodes ------------------------------------------------------------------------------------------------------

    def _write_nodes(self, graph: Graph, names: _Names, target: Any, *, constants: bool = False) -> None:
        used: set[Value | None] = set()
        if any(isinstance(node.meta, NodeMeta) and node.meta.omitted for node in graph.nodes):
            used.update(graph.outputs, *[node.inputs for node in graph.nodes])
        known: dict[Any, str] = {None: ""}
        known.update(names.of)
        find = known.__getitem__
        same: list[Any] = []  # the file's own messages, next to be copied as they are
        for node in graph.topological():
            if node.domain == "ampgraph":
                if node.op_type == "Initializer" and constants:  # a function has no initializers
                    proto = target.add()
                    proto.op_type = "Constant"
                    proto.output.append(names.of[node.outputs[0]])
                    write_attribute("value", node.attributes["value"], proto.attribute.add(), _no_graph)
                elif node.op_type not in ("Initializer", "Input"):
                    raise FormatError(f"ONNX has no op for node {node} of domain 'ampgraph'.")
                continue
            if node.domain == "tf":
                raise FormatError(f"Node {node} is a TensorFlow op; ONNX cannot hold it.")
            if node.controls:
                raise FormatError(f"Node {node} has control edges; ONNX cannot hold them.")
            if self.constants is not None and node.op_type == "Constant" and not node.domain:
                tensor = node.attributes.get("value")
                if isinstance(tensor, Tensor):
                    proto = target.add(op_type="Constant", output=map(find, node.outputs))
                    self.constants(tensor, proto.attribute.add(name="value", type=TENSOR).t)
                    continue
            meta = node.meta if isinstance(node.meta, NodeMeta) else _NO_META
            labels = capture_labels(node.attributes)
            operands = [*map(find, node.inputs[: len(node.inputs) - len(labels)] if labels else node.inputs)]
            results = [*map(find, node.outputs)]
            for i in meta.omitted:
                if i < len(results) and node.outputs[i] not in used:
                    results[i] = ""
            if _is_unchanged(node, meta, operands, results):
                same.append(meta.template)
                continue
            target.extend(same)
            same.clear()
            proto = target.add()
            _write_head(node, meta, operands, results, proto)
            outer = {}
            for label, operand in zip(labels, node.inputs[len(operands) :], strict=True):
                if operand is None:
                    raise FormatError(f"Node {node} hands nothing to its bodies for {label!r}.")
                outer[label] = names.of[operand]
            self._write_attributes(node, meta, outer, (*names.outer, names.taken), proto)
        target.extend(same)
        for value, name in names.copies:
            proto = target.add()
            proto.op_type = "Identity"
            proto.input.append(names.of[value])
            proto.output.append(name)

    def _write_attributes(
        self, node: Node, meta: NodeMeta, outer: Mapping[str, str], around: tuple[set[str], ...], proto: Any
    ) -> None:
        """Write the attributes; bodies use the names ``outer`` for the values of their labels, and none of those ``around``."""

        def write_body(body: Graph, target: Any) -> None:
            formals = len(body.inputs) - len(body.captures)
            captured = {value: outer[label] for label, value in zip(body.captures, body.inputs[formals:], strict=True)}
            self.write_graph(body, target, around, captured)

        types = _type_attributes(node)
        for name in dict.fromkeys((*meta.attributes, *node.attributes, *types)):
            before, source = meta.attributes.get(name, (None, None))
            if name in node.attributes:
                _write_attribute(name, node.attributes[name], before, source, proto, write_body)
            elif name in types:
                _write_type_attribute(name, node, before, source, proto)


def _write_head(node: Node, meta: NodeMeta, operands: list[str], results: list[str], proto: Any) -> None:
    """Write all of a node but its attributes."""
    if meta.template is not None:
        proto.CopyFrom(meta.template)
        for field in ("input", "output", "attribute"):
            proto.ClearField(field)
    if proto.name != node.name:
        proto.name = node.name
    op_type, _, overload = node.op_type.partition(":")
    proto.op_type = op_type
    if proto.overload != overload:
        proto.overload = overload
    if plain_domain(proto.domain) != node.domain:
        proto.domain = node.domain
    proto.input.extend(operands)
    proto.output.extend(results)


def _is_unchanged(node: Node, meta: NodeMeta, operands: list[str], results: list[str]) -> bool:
    """Whether a node's message in the file still says all, so that it can be copied as it is."""
    if (
        meta.template is None
        or meta.head != (node.op_type, node.name, node.domain)
        or meta.operands != operands
        or meta.results != results
    ):
        return False
    attributes, said = node.attributes, meta.attributes
    for name, value in attributes.items():
        if name not in said or value is not said[name][0] or isinstance(value, Graph) or _is_graphs(value):
            return False
    types = _type_attributes(node)
    if len(attributes) == len(said) and not types:
        return True
    for name in (*said, *types):
        before, source = said.get(name, (None, None))
        if name not in attributes and (name not in types or _said_type(name, node, before, source) is not source):
            return False
    return True


def _type_attributes(node: Node) -> Mapping[str, Any]:
    """Return the attributes of a node's op that are type variables."""
    schema = node.schema
    return schema.type_attributes if isinstance(schema, OnnxSchema) else {}


def _write_attribute(
    name: str, value: Any, before: Any, source: Any, proto: Any, write_body: Callable[[Graph, Any], None]
) -> None:
    target = proto.attribute.add()
    if source is not None and isinstance(value, Graph) and isinstance(before, Graph):
        target.CopyFrom(source)
        write_body(value, target.g)
    elif source is not None and isinstance(value, list) and _is_graphs(value) and _is_graphs(before):
        target.CopyFrom(source)
        for body in value:
            write_body(body, target.graphs.add())
    elif source is not None and value is before:
        target.CopyFrom(source)
    elif isinstance(value, Placeholder):
        target.name = name
        target.ref_attr_name = value.name
        target.type = 0 if source is None else source.type
    else:
        write_attribute(name, value, target, write_body)
        if source is not None and source.HasField("doc_string"):
            target.doc_string = source.doc_string


def _is_graphs(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Graph)


def _write_type_attribute(name: str, node: Node, before: Any, source: Any, proto: Any) -> None:
    said = _said_type(name, node, before, source)
    if isinstance(said, DType):
        if not said.onnx:
            raise FormatError(f"ONNX has no dtype {said}, which node {node} gives.")
        target = proto.attribute.add()
        target.name = name
        target.type = INT
        target.i = said.onnx
    elif said is not None:
        proto.attribute.add().CopyFrom(said)


def _said_type(name: str, node: Node, before: Any, source: Any) -> Any:
    """Return what a type attribute becomes by ``node.types``: the file's own message where it says the same, a dtype, or None
    where nothing need be said."""
    schema = node.schema
    assert isinstance(schema, OnnxSchema)
    variable = schema.type_attributes[name][0]
    dtype = node.types.get(variable)
    implied = variable in node.signature.inputs or dtype is schema.derived(name, node.types)
    if source is not None and (before is dtype or (before is None and implied) or dtype is None):
        return source
    return dtype if source is not None or not implied else None


def _write_info(value: Value, name: str, before: tuple[Any, ValueType | None] | None, proto: Any) -> None:
    dtype = value.dtype
    if before is not None:
        template, said = before
        proto.CopyFrom(template)
        if said is None and template.HasField("type"):  # what has this name now is none of the file's values
            said = read_type(template.type, "A value")
        if said is not None and (said.dtype is not dtype or said.shape != value.shape):
            update_type(dtype, value.shape, said, proto.type)
    elif dtype is not None:
        write_type(dtype, value.shape, proto.type)
    proto.name = name


def _copy(proto: Any) -> Any:
    copy = type(proto)()
    copy.CopyFrom(proto)
    return copy


def _no_graph(graph: Graph, proto: Any) -> None:
    raise FormatError("A constant holds no graph.")


def initializers_of(graph: Graph) -> Iterable[Tensor]:
    """Iterate over the initializers of a graph and of all bodies in it, functions not."""
    parts = [graph]
    for part in parts:  # grows while it is walked
        parts += [body for _, _, body in part.bodies()]
        for value in part.inputs:
            if isinstance(tensor := value.producer.attributes.get("default"), Tensor):
                yield tensor
        for node in part.nodes:
            if node.domain == "ampgraph" and isinstance(tensor := node.attributes.get("value"), Tensor):
                yield tensor
