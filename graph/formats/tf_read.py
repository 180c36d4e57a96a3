"""Reading GraphDef messages.

One sweep builds nodes and resolves inputs that were defined before; what refers forward waits for a second, shorter one.
Equal type mappings and equal small attribute mappings become one shared object per graph.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..collector import paused_collector
from ..dtypes import BY_TF, DType
from ..errors import AmpgraphError, FormatError, did_you_mean
from ..graph import Graph, Node, Value
from ..schema import Formal, OpSchema, Signature, TypeVar, untyped_signature
from ..schemas import find_schema
from ..types import Placeholder, Shape
from .proto import message
from .tf_attributes import REF, read_attribute, read_dtype
from .tf_meta import GraphMeta, NodeMeta, without

# Nodes whose op nobody defined get as many outputs as are referred to; a hostile file must not make that billions.
_MAX_PORT = 65_535


def read_message(proto: Any, *, name: str = "graph", outputs: Sequence[str] | None = None) -> Graph:
    """Turn a ``GraphDef`` message into a graph; see :func:`.tensorflow.read_graph_def`."""
    with paused_collector():
        library = _Library(proto)
        for function in proto.library.function:
            _read_function(library, function)
        graph = Graph(name, library.functions)
        body = _Body(library, graph, f"graph {name!r}")
        body.read(proto.node)
        _set_versions(graph, proto)
        template = without(proto, "node", "library")
        if proto.HasField("library"):
            template.library.CopyFrom(without(proto.library, "function"))
        graph.meta = GraphMeta(_with_unknown(proto, template, library.has_unknown))
        choose_outputs(graph, outputs)
    return graph


def _with_unknown(proto: Any, template: Any, has_unknown: bool) -> Any:
    """Return the template, made the slow way (by copying everything) if there are unknown fields to keep."""
    if not has_unknown:
        return template
    copy = type(proto)()
    copy.CopyFrom(proto)
    if hasattr(copy, "library"):
        copy.ClearField("node")
        copy.library.ClearField("function") if copy.HasField("library") else None
    else:
        copy.ClearField("node_def")
    return copy


def _set_versions(graph: Graph, proto: Any) -> None:
    versions = proto.versions
    if versions.producer:
        graph.attributes["producer"] = versions.producer
    if versions.min_consumer:
        graph.attributes["min_consumer"] = versions.min_consumer
    if versions.bad_consumers:
        graph.attributes["bad_consumers"] = list(versions.bad_consumers)


def choose_outputs(graph: Graph, names: Sequence[str] | None, labels: Sequence[str] | None = None) -> None:
    """Set what ``graph`` is run for: the named values, or every result of the nodes that nobody waits for.

    Named nodes without results are only noted in ``graph.attributes["preserved"]``. ``labels`` are the ``output_names``;
    None takes ``names``.

    Raises:
        FormatError: If a name does not exist.
    """
    if names is None:
        used = {value.producer for node in graph.nodes for value in node.inputs if value is not None}
        used.update(source for node in graph.nodes for source in node.controls)
        graph.outputs = [value for node in graph.nodes if node not in used for value in node.outputs]
        graph.output_names = [value.name for value in graph.outputs]
        return
    by_name = {node.name: node for node in graph.nodes}
    for i, name in enumerate(names):
        stem, _, index = name.rpartition(":")
        if not stem or not index.isdecimal() or len(index) > 9:
            stem, index = name, "0"
        node = by_name.get(stem)
        if node is None:
            raise FormatError(f"The graph has no node {stem!r}, which was named as an output.{_similar(stem, by_name)}")
        if not node.outputs and stem == name:
            preserve(graph, [name])
            continue
        if int(index) >= len(node.outputs) and not (node.schema is None and int(index) == 0):
            raise FormatError(f"Output {name!r} does not exist: node {node} has {len(node.outputs)} outputs.")
        if not node.outputs:  # an op nobody defined, whose result nobody reads
            node.outputs = [Value(node, 0)]
            node.signature = untyped_signature(len(node.inputs), 1)
        graph.outputs.append(node.outputs[int(index)])
        graph.output_names.append(name.removesuffix(":0") if labels is None else labels[i])


def preserve(graph: Graph, names: Sequence[str]) -> None:
    """Add node names to ``graph.attributes["preserved"]``: nodes a rewrite must leave in place."""
    if names:
        graph.attributes["preserved"] = sorted({*graph.attributes.get("preserved", ()), *names})


def _similar(name: str, names: Mapping[str, Any]) -> str:
    """Suggest a near name; in large graphs only among those that start alike."""
    near = list(names) if len(names) <= 2000 else [other for other in names if other[:3] == name[:3]][:2000]
    return did_you_mean(name[:200], near)


class _Op:
    """What reading needs to know of an op, looked up once per graph."""

    __slots__ = ("entries", "lists", "numbers", "scalars", "schema")

    def __init__(self, schema: OpSchema | None) -> None:
        self.schema = schema
        variables = {} if schema is None else schema.type_vars
        self.scalars = frozenset(name for name, var in variables.items() if not var.is_list)
        self.lists = frozenset(name for name, var in variables.items() if var.is_list)
        formals = () if schema is None else schema.inputs + schema.outputs
        self.numbers = tuple(dict.fromkeys(formal.number for formal in formals if formal.number))
        #: What the type attributes of a node say -> everything that follows from them.
        self.entries: dict[tuple[Any, ...], _Typing] = {}


class _Typing:
    """What follows from the type attributes of a node."""

    __slots__ = ("implicit", "loose", "odd", "signature", "types")

    def __init__(
        self, types: Mapping[str, DType], implicit: frozenset[str], odd: dict[str, tuple[Any, Any]], loose: bool
    ) -> None:
        self.types = types
        self.implicit = implicit
        self.odd = odd
        self.loose = loose
        self.signature: Signature | None = None


class _Library:
    """What the main graph and all function bodies of a file share."""

    def __init__(self, proto: Any) -> None:
        self.functions: dict[str, Graph] = {}
        self.definitions: dict[str, Any] = {}
        for function in proto.library.function:
            name = function.signature.name
            if not name or name in self.definitions:
                raise FormatError(f"Function names must be unique and not empty. Received: {name!r}{' twice' if name else ''}")
            self.definitions[name] = function
        self.ops: dict[str, _Op] = {}
        self.types: dict[tuple[Any, ...], Mapping[str, DType]] = {}
        self.attributes: dict[tuple[Any, ...], Mapping[str, Any]] = {(): {}}
        self.metas: dict[frozenset[str], NodeMeta] = {}
        self.untyped: dict[tuple[int, int], Signature] = {}
        self.ranges: dict[Signature, dict[str, range]] = {}
        known = type(proto)()
        known.CopyFrom(proto)
        known.DiscardUnknownFields()
        self.has_unknown = known.ByteSize() != proto.ByteSize()
        nodes = len(proto.node) + sum(len(function.node_def) for function in proto.library.function)
        self.spare_outputs = 1_000_000 + 16 * nodes

    def op(self, op_type: str) -> _Op:
        found = self.ops.get(op_type)
        if found is None:
            schema = find_schema("tf", op_type)
            if schema is None and op_type in self.definitions:
                schema = _function_schema(self.definitions[op_type])
            found = self.ops[op_type] = _Op(schema)
        return found

    def untyped_signature(self, inputs: int, outputs: int) -> Signature:
        found = self.untyped.get((inputs, outputs))
        if found is None:
            found = self.untyped[inputs, outputs] = untyped_signature(inputs, outputs)
        return found

    def output_ranges(self, signature: Signature) -> dict[str, range]:
        found = self.ranges.get(signature)
        if found is None:
            assert signature.schema is not None
            found = self.ranges[signature] = signature.schema.split_outputs(signature)
        return found

    def spend_outputs(self, count: int) -> None:
        self.spare_outputs -= count
        if self.spare_outputs < 0:
            raise FormatError("The nodes of this file have more than a million outputs in excess; it is damaged or hostile.")

    def typing(self, op: _Op, key: tuple[Any, ...]) -> _Typing:
        """Return what follows from type attributes given as ``(name, number or numbers or None, name, …)``."""
        schema = op.schema
        assert schema is not None
        given = dict(zip(key[::2], key[1::2], strict=True))
        types: dict[str, DType] = {}
        implicit, odd, loose = [], {}, False
        for name, var in schema.type_vars.items():
            strange: list[Any] = []
            if name in given:
                numbers = given[name]
                if numbers is None:  # the function's caller decides
                    loose |= var.is_list
                    continue
                dtypes = [read_dtype(number, strange) for number in (numbers if var.is_list else (numbers,))]
                if None in dtypes:
                    raise FormatError(f"Type attribute {name!r} is not set (DT_INVALID).")
            elif var.default is None:
                raise FormatError(f"Type attribute {name!r} is missing, and the op has no default for it.")
            else:
                implicit.append(name)
                dtypes = list(var.default) if isinstance(var.default, tuple) else [var.default]
            if var.is_list:
                types.update({f"{name}[{i}]": dtype for i, dtype in enumerate(dtypes)})  # type: ignore[misc]
            else:
                types[name] = dtypes[0]  # type: ignore[assignment]
            if strange:
                proto = message("AttrValue")()
                proto.list.type.extend(given[name]) if var.is_list else setattr(proto, "type", given[name])
                odd[name] = (tuple(dtypes) if var.is_list else dtypes[0], proto)
        shared = self.types.setdefault(tuple(types.items()), types)
        entry = op.entries[key] = _Typing(shared, frozenset(implicit), odd, loose)
        if not loose and not op.numbers:
            entry.signature = schema.signature({}, shared)
        return entry


def _function_schema(function: Any) -> OpSchema | None:
    """Return the schema of calls of a function; None if the caller decides how many operands it has."""
    signature = function.signature

    def formals(args: Any) -> list[Formal] | None:
        result = []
        for arg in args:
            if arg.number_attr or arg.type_list_attr:
                return None
            if arg.type_attr:
                result.append(Formal(arg.name, var=arg.type_attr))
            else:
                result.append(Formal(arg.name, dtype=_arg_dtype(arg), is_ref=arg.is_ref or arg.type > REF))
        return result

    inputs, outputs = formals(signature.input_arg), formals(signature.output_arg)
    if inputs is None or outputs is None:
        return None
    variables = [TypeVar(attr.name) for attr in signature.attr if attr.type == "type"]
    declared = {var.name for var in variables}
    for formal in inputs + outputs:
        if formal.var is not None and formal.var not in declared:
            raise FormatError(f"Function {signature.name!r} uses a type attribute {formal.var!r} that it does not declare.")
    return OpSchema(signature.name, "tf", inputs, outputs, variables, is_call=True, stateful=True)


def _arg_dtype(arg: Any) -> DType:
    dtype = BY_TF.get(arg.type) or BY_TF.get(arg.type - REF)
    if dtype is None:
        raise FormatError(f"Function argument {arg.name!r} has dtype number {arg.type}, which TensorFlow does not define.")
    return dtype


def _read_function(library: _Library, function: Any) -> None:
    name = function.signature.name
    graph = library.functions[name] = Graph(name, library.functions)
    body = _Body(library, graph, f"function {name!r}", is_function=True)
    for i, arg in enumerate(function.signature.input_arg):
        generic = arg.type_attr or arg.number_attr or arg.type_list_attr
        if not arg.name or arg.name in body.names:
            raise FormatError(f"Function {name!r} has arguments with empty or repeated names. Received: {arg.name!r}")
        value = graph.add_input(arg.name, None if generic else _arg_dtype(arg))
        body.names[arg.name] = value.producer
        body.values[arg.name] = value
        if i in function.arg_attr and "_output_shapes" in function.arg_attr[i].attr:
            shapes = read_attribute(function.arg_attr[i].attr["_output_shapes"], [])
            _set_shapes([value], shapes)
    body.read(function.node_def)
    spelling: dict[str, str] = {}
    for arg in function.signature.output_arg:
        if arg.name not in function.ret:
            raise FormatError(f"Function {name!r} does not say which value its result {arg.name!r} is.")
        text = function.ret[arg.name]
        value, plain = body.resolve(text, f"Result {arg.name!r} of function {name!r}")
        if plain != text:
            spelling[plain] = text
        graph.outputs.append(value)
        graph.output_names.append(arg.name)
    body.finish()
    for target in function.control_ret.values():
        if target not in body.names:
            raise FormatError(f"Function {name!r} returns control of a node {target!r} that it does not have.")
    preserve(graph, list(function.control_ret.values()))
    template = _with_unknown(function, without(function, "node_def"), library.has_unknown)
    graph.meta = GraphMeta(template, spelling)


def _set_shapes(values: Sequence[Value], shapes: Any) -> None:
    if isinstance(shapes, list) and len(shapes) == len(values):
        for value, shape in zip(values, shapes, strict=True):
            if isinstance(shape, Shape):
                value.shape = shape


class _Body:
    """Reads the nodes of one graph or function body."""

    def __init__(self, library: _Library, graph: Graph, where: str, is_function: bool = False) -> None:
        self.library = library
        self.graph = graph
        self.where = where
        self.is_function = is_function
        self.names: dict[str, Node] = {}
        #: Values by their plain spelling.
        self.values: dict[str, Value] = {}
        #: Nodes whose outputs no schema tells, with the port of each output that a function body refers to.
        self.loose: dict[Node, dict[tuple[str, int], int]] = {}
        self.resolve: Callable[[str, str], tuple[Value, str]] = self._resolve_in_function if is_function else self._resolve

    def read(self, protos: Any) -> None:
        """Read all nodes; values that only results refer to may still be added until :meth:`finish`."""
        names, find_value, append = self.names, self.values.get, self.graph.append
        waiting: list[tuple[Node, Any]] = []
        for proto in protos:
            node = self._read_node(proto)
            name = node.name
            if name in names:
                raise FormatError(f"Two nodes of {self.where} are called {name!r}; names must be unique.")
            inputs = node.inputs
            for text in proto.input:
                value = find_value(text)
                if value is None:
                    inputs.clear()
                    if all((t[1:] if t[:1] == "^" else t.partition(":")[0]) in names for t in proto.input):
                        self._connect(node, proto)
                    else:
                        waiting.append((node, proto))
                    break
                inputs.append(value)
            else:
                self._check_arity(node)
            names[name] = node
            if not self.is_function and node.outputs:
                self.values[name] = node.outputs[0]
            append(node)
        for node, proto in waiting:
            self._connect(node, proto)
        if not self.is_function:
            self.finish()
        if waiting:  # only then something may refer forward
            self.graph.topological()  # raises on cycles

    def _connect(self, node: Node, proto: Any) -> None:
        """Resolve the inputs of a node the thorough way."""
        spelling: dict[int, tuple[str, str]] = {}
        controls: list[Node] = []
        find_value, names = self.values.get, self.names
        for slot, text in enumerate(proto.input):
            if text[:1] == "^":
                source = names.get(text[1:])
                if source is None:
                    raise FormatError(
                        f"Node {node} of {self.where} must wait for {text!r}, a node that does not exist.{_similar(text[1:], names)}"
                    )
                controls.append(source)
                continue
            if controls:
                raise FormatError(
                    f"Node {node} of {self.where} lists input {text!r} after control inputs; data inputs come first."
                )
            value = find_value(text)
            if value is None:
                value, plain = self.resolve(text, f"Input {slot} of node {node} in {self.where}")
                if plain != text:
                    spelling[slot] = (plain, text)
            node.inputs.append(value)
        node.controls = tuple(controls)
        self._check_arity(node)
        if spelling:
            old = node.meta or NodeMeta()
            node.meta = NodeMeta(old.implicit, spelling, old.odd, old.template, old.source)

    def _check_arity(self, node: Node) -> None:
        signature = node.signature
        if signature.schema is None:
            self.loose.setdefault(node, {})
        elif len(signature.inputs) != len(node.inputs):
            raise FormatError(
                f"Node {node} of {self.where} has {len(node.inputs)} data inputs; op {node.op_type} with these attributes takes "
                f"{len(signature.inputs)}."
            )

    def finish(self) -> None:
        """Give the nodes that no schema describes their final signatures."""
        for node in self.loose:
            node.signature = self.library.untyped_signature(len(node.inputs), len(node.outputs))

    # ---- names -> values ----------------------------------------------------------------------------------------

    def _resolve(self, text: str, who: str) -> tuple[Value, str]:
        stem, _, digits = text.rpartition(":")
        if not stem or not digits.isdecimal() or len(digits) > 9:
            stem, digits = text, "0"
        node, port = self.names.get(stem), int(digits)
        if node is None:
            raise FormatError(f"{who} is {text!r}, but there is no node {stem!r}.{_similar(stem, self.names)}")
        if port >= len(node.outputs):
            if node.signature.schema is not None or port > _MAX_PORT:
                raise FormatError(f"{who} is {text!r}, but node {node} has {len(node.outputs)} outputs.")
            self._grow(node, port + 1)
        plain = f"{stem}:{port}" if port else stem
        value = self.values[plain] = node.outputs[port]
        return value, plain

    def _resolve_in_function(self, text: str, who: str) -> tuple[Value, str]:
        if (known := self.values.get(text)) is not None:
            return known, text
        stem, *rest = text.split(":")
        node = self.names.get(stem)
        if node is None:
            raise FormatError(f"{who} is {text!r}, but there is no node or argument {stem!r}.{_similar(stem, self.names)}")
        if node.domain == "ampgraph":  # an argument
            if rest != ["0"]:
                raise FormatError(f"{who} is {text!r}, but argument {stem!r} is a single tensor.")
            return node.outputs[0], stem
        if len(rest) == 1:
            rest.append("0")
        if len(rest) != 2 or not rest[1].isdecimal() or len(rest[1]) > 9:
            raise FormatError(f"{who} is {text!r}; in a function values are spelled 'argument' or 'node:output:index'.")
        output, index = rest[0], int(rest[1])
        plain = f"{stem}:{output}:{index}"
        if node.signature.schema is None:
            ports = self.loose.setdefault(node, {})
            if (output, index) not in ports:
                ports[output, index] = len(ports)
                self._grow(node, len(ports))
                node.outputs[-1].name = plain
            value = node.outputs[ports[output, index]]
        else:
            ranges = self.library.output_ranges(node.signature)
            if index >= len(ranges.get(output, ())):
                raise FormatError(
                    f"{who} is {text!r}, but node {node} has no such output. It has: "
                    + (", ".join(f"{name} ({len(ports)})" for name, ports in ranges.items()) or "none")
                )
            value = node.outputs[ranges[output][index]]
        self.values[plain] = value
        return value, plain

    def _grow(self, node: Node, count: int) -> None:
        self.library.spend_outputs(count - len(node.outputs))
        node.outputs += [Value(node, i) for i in range(len(node.outputs), count)]
        node.signature = self.library.untyped_signature(0, count)

    # ---- one node -----------------------------------------------------------------------------------------------

    def _read_node(self, proto: Any) -> Node:
        name, op_type = proto.name, proto.op
        if not name or ":" in name or name[0] == "^":
            raise FormatError(f"A node (op {op_type!r}) of {self.where} must have a name without ':' and '^'. Received: {name!r}")
        if not op_type:
            raise FormatError(f"Node {name!r} of {self.where} has no op.")
        try:
            return self._make_node(proto, name, op_type)
        except AmpgraphError as error:
            raise FormatError(f"Node {name!r} ({op_type}) of {self.where}: {error}") from error

    def _make_node(self, proto: Any, name: str, op_type: str) -> Node:
        library = self.library
        op = library.ops.get(op_type) or library.op(op_type)
        scalars, lists = op.scalars, op.lists
        given: list[Any] = []  # name, number(s), name, …
        attributes: dict[str, Any] = {}
        key: list[Any] | None = []
        odd: dict[str, tuple[Any, Any]] = {}
        attrs = proto.attr
        for attr_name in sorted(attrs):
            attr = attrs[attr_name]
            kind = attr.WhichOneof("value")
            if kind == "type" and attr_name in scalars:
                given += (attr_name, attr.type)
                continue
            if attr_name in lists and kind == "list":
                given += (attr_name, tuple(attr.list.type))
                if len(attr.list.ListFields()) > bool(given[-1]):
                    raise FormatError(f"Attribute {attr_name!r} must be a list of types.")
                continue
            if attr_name in scalars or attr_name in lists:
                if kind != "placeholder":
                    raise FormatError(f"Attribute {attr_name!r} must be a type. Received: {kind or 'nothing'}")
                given += (attr_name, None)
            if kind == "i":
                value = attr.i
            elif kind == "b":
                value = attr.b
            elif kind == "s":
                value = attr.s
            else:
                strange: list[Any] = []
                value = read_attribute(attr, strange)
                if strange:
                    copy = type(attr)()
                    copy.CopyFrom(attr)
                    odd[attr_name] = (value, copy)
                attributes[attr_name] = value
                if key is not None:
                    if kind == "f":
                        key += (attr_name, repr(value))
                    elif kind == "list" and not odd and _is_plain(attr.list):
                        key += (attr_name, tuple(value))
                    elif kind == "shape" and not odd:
                        key += (attr_name, value)
                    else:
                        key = None
                continue
            attributes[attr_name] = value
            if key is not None:
                key += (attr_name, kind, value)
        shared = attributes if key is None else library.attributes.setdefault(tuple(key), attributes)
        return self._assemble(proto, name, op_type, op, tuple(given), shared, odd)

    def _assemble(
        self,
        proto: Any,
        name: str,
        op_type: str,
        op: _Op,
        given: tuple[Any, ...],
        attributes: Mapping[str, Any],
        odd: dict[str, tuple[Any, Any]],
    ) -> Node:
        library = self.library
        meta: NodeMeta | None = None
        types: Mapping[str, DType] = {}
        implicit: frozenset[str] = frozenset()
        signature: Signature | None = None
        if op.schema is not None:
            entry = op.entries.get(given) or library.typing(op, given)
            types, implicit, signature = entry.types, entry.implicit, entry.signature
            if entry.odd:
                odd = {**odd, **entry.odd}
            if signature is None and not entry.loose:
                signature = self._counted_signature(proto, op, attributes, types)
        if signature is None:
            signature = library.untyped_signature(0, 0)
        template = source = None
        if proto.HasField("experimental_debug_info") or proto.HasField("experimental_type"):
            template = without(proto, "name", "op", "input", "device", "attr")
        if library.has_unknown and _has_unknown(proto):
            source = proto
        if template is not None or source is not None or odd:
            meta = NodeMeta(implicit, odd=odd, template=template, source=source)
        elif implicit:
            meta = library.metas.get(implicit)
            if meta is None:
                meta = library.metas[implicit] = NodeMeta(implicit)
        node = Node(self.graph, op_type, "tf", name, signature, attributes, types, proto.device, meta)
        count = len(signature.outputs)
        if count == 1:
            node.outputs = [Value(node, 0)]
        elif count:
            if count > 16:
                library.spend_outputs(count)
            node.outputs = [Value(node, i) for i in range(count)]
        if "_output_shapes" in attributes:
            _set_shapes(node.outputs, attributes["_output_shapes"])
        return node

    def _counted_signature(
        self, proto: Any, op: _Op, attributes: Mapping[str, Any], types: Mapping[str, DType]
    ) -> Signature | None:
        """Return the signature of an op whose operands an integer attribute counts; None if the caller decides it."""
        assert op.schema is not None
        for number in op.numbers:
            count = attributes.get(number)
            if isinstance(count, Placeholder):
                return None
            if isinstance(count, int):
                if count > len(proto.input) and any(formal.number == number for formal in op.schema.inputs):
                    raise FormatError(f"Attribute {number!r} says {count} inputs, but there are {len(proto.input)}.")
                if count > 16:
                    self.library.spend_outputs(0 if count <= len(proto.input) else count)
        return op.schema.signature(attributes, types)


def _is_plain(proto: Any) -> bool:
    """Whether a list holds integers only or strings only, which are equal only if they are the same."""
    fields = proto.ListFields()
    return not fields or (len(fields) == 1 and fields[0][0].name in ("i", "s"))


def _has_unknown(proto: Any) -> bool:
    known = type(proto)()
    known.CopyFrom(proto)
    known.DiscardUnknownFields()
    return bool(known.ByteSize() != proto.ByteSize())
