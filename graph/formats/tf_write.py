"""Writing GraphDef messages, equal to the ones read where nothing was changed."""

from collections.abc import Mapping
from typing import Any

from ..dtypes import DType
from ..errors import AmpgraphError, FormatError
from ..graph import Graph, Node, Value
from ..schema import OpSchema, Signature
from .proto import message
from .tf_attributes import number_of, write_attribute, write_shape
from .tf_meta import GraphMeta, NodeMeta

_NO_META = NodeMeta()


def write_message(graph: Graph) -> Any:
    """Turn a graph into a ``GraphDef`` message; see :func:`.tensorflow.write_graph_def`."""
    proto = message("GraphDef")()
    if isinstance(graph.meta, GraphMeta):
        proto.CopyFrom(graph.meta.template)
    _write_versions(graph, proto)
    writer = _Writer(graph, f"graph {graph.name!r}")
    _check_inputs(graph, f"graph {graph.name!r}")
    for value in graph.inputs:
        _write_placeholder(value, proto.node.add())
    for node in graph.nodes:
        writer.write_node(node, proto.node.add())
    for name, function in graph.functions.items():
        _write_function(name, function, proto.library.function.add())
    return proto


def _write_versions(graph: Graph, proto: Any) -> None:
    attributes = graph.attributes
    for name in ("producer", "min_consumer"):
        if attributes.get(name, 0) != getattr(proto.versions, name):
            setattr(proto.versions, name, attributes.get(name, 0))
    if list(attributes.get("bad_consumers", ())) != list(proto.versions.bad_consumers):
        proto.versions.bad_consumers[:] = attributes.get("bad_consumers", ())


def _check_name(node: Node, where: str) -> None:
    """Refuse a node name that cannot be told from the spelling of an input."""
    if ":" in node.name or node.name[0] == "^":
        raise FormatError(f"A GraphDef cannot hold node {node} of {where}: its name has ':' or starts with '^'.")


def _check_inputs(graph: Graph, where: str) -> None:
    names: set[str] = set()
    for value in graph.inputs:
        name = value.producer.name
        if not name or name in names:
            raise FormatError(f"Names of inputs must be unique and not empty. Received: {name!r} in {where}")
        _check_name(value.producer, where)
        names.add(name)


def _write_placeholder(value: Value, proto: Any) -> None:
    """Write a formal input of the main graph, which a GraphDef can only have as a node."""
    if value.dtype is None:
        raise FormatError(f"Graph input {value.name!r} has no known dtype, so a GraphDef cannot hold it.")
    proto.name, proto.op = value.producer.name, "Placeholder"
    proto.attr["dtype"].type = number_of(value.dtype)
    write_shape(value.shape, proto.attr["shape"].shape)


def _write_function(name: str, graph: Graph, proto: Any) -> None:
    spelling: Mapping[str, str] = {}
    if isinstance(graph.meta, GraphMeta):
        proto.CopyFrom(graph.meta.template)
        spelling = graph.meta.spelling
    if not name:
        raise FormatError("A GraphDef cannot hold a function without a name.")
    proto.signature.name = name
    _check_inputs(graph, f"function {name!r}")
    if len(set(graph.output_names)) != len(graph.output_names):
        raise FormatError(f"Function {name!r} has several results of the same name, which a GraphDef cannot say.")
    _write_arguments(proto.signature.input_arg, [value.producer.name for value in graph.inputs], graph.inputs, name)
    _write_arguments(proto.signature.output_arg, graph.output_names, graph.outputs, name)
    writer = _Writer(graph, f"function {name!r}", is_function=True)
    for node in graph.nodes:
        writer.write_node(node, proto.node_def.add())
    for output, value in zip(graph.output_names, graph.outputs, strict=True):
        text = writer.spell(value)
        proto.ret[output] = spelling.get(text, text)
    for target in proto.control_ret.values():
        if target not in writer.names and not graph.has_node(target):
            raise FormatError(f"Function {name!r} returns control of node {target!r}, which is no longer there.")


def _write_arguments(args: Any, names: list[str], values: list[Value], function: str) -> None:
    """Make the arguments of a signature fit; untouched where they do."""
    if [arg.name for arg in args] != names:
        del args[:]
        for name in names:
            args.add().name = name
    for arg, value in zip(args, values, strict=True):
        generic = arg.type_attr or arg.number_attr or arg.type_list_attr
        if value.dtype is not None and not generic and arg.type % 100 != value.dtype.tf:
            arg.type = number_of(value.dtype)
        if not generic and not arg.type:
            raise FormatError(
                f"Argument or result {arg.name!r} of function {function!r} has no known dtype, which it needs here."
            )


class _Writer:
    """Writes the nodes of one graph or function body."""

    def __init__(self, graph: Graph, where: str, is_function: bool = False) -> None:
        self.where = where
        self.is_function = is_function
        self.names = {value.producer.name for value in graph.inputs}
        self.spellings: dict[Value, str] = {}
        self.ports: dict[Signature, list[str]] = {}
        self.plans: dict[tuple[int, int], tuple[Any, list[tuple[str, int]], list[tuple[str, list[int]]]]] = {}

    def spell(self, value: Value) -> str:
        """Return the plain spelling of a value as a node's input."""
        found = self.spellings.get(value)
        if found is None:
            found = self.spellings[value] = self._spell(value)
        return found

    def _spell(self, value: Value) -> str:
        node, index = value.producer, value.index
        if node.domain == "ampgraph":
            return node.name
        if not self.is_function:
            return f"{node.name}:{index}" if index else node.name
        schema = node.signature.schema
        if schema is None:  # read from a file, such a value has the file's spelling as its name
            return value.name if value.name.count(":") == 2 else f"{node.name}:output:{index}"
        ports = self.ports.get(node.signature)
        if ports is None:
            ranges = schema.split_outputs(node.signature)
            ports = self.ports[node.signature] = [f"{name}:{i}" for name, span in ranges.items() for i in range(len(span))]
        return f"{node.name}:{ports[index]}"

    def write_node(self, node: Node, proto: Any) -> None:
        """Fill the empty ``NodeDef``."""
        name = node.name
        if node.domain != "tf":
            raise FormatError(
                f"Node {node} of {self.where} is of domain {node.domain!r}; a GraphDef holds TensorFlow ops only. "
                "Save as .json, which holds any graph."
            )
        if not name or name in self.names:
            raise FormatError(f"Node names in a GraphDef must be unique and not empty. Received: {name!r} in {self.where}")
        _check_name(node, self.where)
        if not node.op_type:
            raise FormatError(f"Node {name!r} of {self.where} has no op.")
        self.names.add(name)
        meta: NodeMeta = node.meta if isinstance(node.meta, NodeMeta) else _NO_META
        try:
            proto.name = name
            proto.op = node.op_type
            if node.device:
                proto.device = node.device
        except ValueError as error:
            raise FormatError(f"Node {name!r} ({node.op_type!r}) of {self.where} has text that is no Unicode: {error}") from error
        inputs = self._inputs(node)
        for slot, (plain, text) in meta.spelling.items():
            if slot < len(node.inputs) and inputs[slot] == plain:
                inputs[slot] = text
        if inputs:
            proto.input.extend(inputs)
        try:
            self._write_attributes(node, meta, proto.attr)
        except AmpgraphError as error:
            raise FormatError(f"Node {node} of {self.where}: {error}") from error
        if meta.template is not None:
            proto.MergeFrom(meta.template)
        if meta.source is not None:
            _restore_unknown(proto, meta.source)

    def _inputs(self, node: Node) -> list[str]:
        known = self.spellings.get
        inputs: list[str] = []
        for value in node.inputs:
            if value is None:
                raise FormatError(f"Node {node} of {self.where} omits an operand, which a GraphDef cannot say.")
            inputs.append(known(value) or self.spell(value))
        inputs += [f"^{source.name}" for source in node.controls]
        return inputs

    def _write_attributes(self, node: Node, meta: NodeMeta, attrs: Any) -> None:
        schema, odd, implicit = node.signature.schema, meta.odd, meta.implicit
        _, scalars, lists = self._plan(node.types, schema)
        for name, number in scalars:
            if name in implicit and _is_default(schema, name, number):
                continue
            attrs[name].type = number
        for name, numbers in lists:
            if name in implicit and _is_default(schema, name, numbers):
                continue
            attrs[name].list.type.extend(numbers)
            attrs[name].list.SetInParent()
        for name, value in node.attributes.items():
            if name in odd and odd[name][0] is value:
                attrs[name].CopyFrom(odd[name][1])
            else:
                write_attribute(name, value, attrs[name])
        for name, (value, source) in odd.items():
            if name not in node.attributes and name in attrs and _current(node.types, name, value) == value:
                attrs[name].CopyFrom(source)

    def _plan(self, types: Mapping[str, DType], schema: OpSchema | None) -> tuple[Any, list[Any], list[Any]]:
        """Return the type attributes to write: scalars and lists. Mappings are shared, so this is looked up, mostly."""
        found = self.plans.get((id(types), id(schema)))
        if found is None:
            scalars: list[tuple[str, int]] = []
            lists: dict[str, list[int]] = {}
            if schema is not None:
                lists = {name: [] for name, var in schema.type_vars.items() if var.is_list}
            for key, dtype in types.items():
                name, bracket, _ = key.partition("[")
                if bracket:
                    lists.setdefault(name, []).append(number_of(dtype))
                else:
                    scalars.append((key, number_of(dtype)))
            found = self.plans[id(types), id(schema)] = ((types, schema), scalars, list(lists.items()))
        return found


def _is_default(schema: OpSchema | None, name: str, written: int | list[int]) -> bool:
    variable = None if schema is None else schema.type_vars.get(name)
    default = None if variable is None else variable.default
    if isinstance(default, tuple):
        return [dtype.tf for dtype in default] == written
    return default is not None and default.tf == written


def _current(types: Mapping[str, DType], name: str, like: Any) -> Any:
    if isinstance(like, tuple):
        return tuple(types.get(f"{name}[{i}]") for i in range(len(like)))
    return types.get(name)


def _restore_unknown(proto: Any, source: Any) -> None:
    """Bring the unknown fields of ``source`` back, wherever ``proto`` still says what the source's known fields say."""
    known = type(source)()
    known.CopyFrom(source)
    known.DiscardUnknownFields()
    result = type(source)()
    result.CopyFrom(source)
    for field in source.DESCRIPTOR.fields:
        new, old = getattr(proto, field.name), getattr(known, field.name)
        if field.name == "attr":
            for name in {*new, *old}:
                if name not in new:
                    del result.attr[name]
                elif name not in old or new[name] != old[name]:
                    result.attr[name].CopyFrom(new[name])
        elif new != old:
            result.ClearField(field.name)
            if field.name == "input":
                result.input.extend(new)
            elif field.message_type is not None:
                getattr(result, field.name).CopyFrom(new)
            else:
                setattr(result, field.name, new)
    proto.CopyFrom(result)
