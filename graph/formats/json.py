"""The IR as JSON: any graph of any vocabulary, without loss of anything the IR knows.

What only a file format knows (``meta``: the spelling of inputs, defaults left out) is not in it. Values are referred to by
name; nodes that others wait for by their position among inputs and nodes, because names may be empty or repeated.
Attribute values that JSON lacks are objects with one telling key: ``{"dtype": "float32"}``, ``{"shape": [2, null]}``.
"""

import base64
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from ..collector import paused_collector
from ..dtypes import DTYPES, DType, find_dtype
from ..errors import AmpgraphError, FormatError
from ..graph import Graph, Node, Value
from ..schema import Formal, OpSchema, untyped_signature
from ..schemas import find_schema
from ..schemas.onnx_schema import call_schema
from ..types import UNKNOWN, FunctionRef, Placeholder, Shape, Tensor, ValueType, splat_of

FORMAT = "ampgraph"
VERSION = 1
#: The largest constant that is expanded from one repeated value, in bytes.
MAX_BYTES = 2**34


_SURROGATE = re.compile(r"\\ud[89a-f]", re.IGNORECASE)


# ---- writing ------------------------------------------------------------------------------------------------------


def print_json(graph: Graph) -> str:
    """Return a graph as JSON text, one node a line.

    Raises:
        FormatError: If two values of a graph have the same name, or a constant has no array form.
    """
    head = {"format": FORMAT, "version": VERSION, **_graph_to_json(graph)}
    head["functions"] = {name: _graph_to_json(function) for name, function in graph.functions.items()}
    text = "".join(_lines(head, "")) + "\n"
    if _SURROGATE.search(text):
        _check_unicode(json.loads(text))
    return text


def _lines(value: Any, indent: str) -> Iterable[str]:
    """Break lines inside graphs and their lists, nowhere else."""
    deeper = indent + " "
    if isinstance(value, dict) and value and ("nodes" in value or indent == " "):
        yield "{\n"
        for i, (key, item) in enumerate(value.items()):
            yield f"{deeper}{json.dumps(key)}: "
            yield from _lines(item, deeper)
            yield ",\n" if i < len(value) - 1 else "\n"
        yield indent + "}"
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        yield "[\n" + deeper + f",\n{deeper}".join(json.dumps(item, allow_nan=False) for item in value) + "\n" + indent + "]"
    else:
        yield json.dumps(value, allow_nan=False)


def _graph_to_json(graph: Graph, *, is_body: bool = False) -> dict[str, Any]:
    positions = {node: i for i, node in enumerate(graph.all_nodes())}
    names: set[str] = set()
    for node in positions:
        for value in node.outputs:
            if value.name in names:
                raise FormatError(f"Two values of graph {graph.name!r} are called {value.name!r}; names must be unique.")
            names.add(value.name)
    return {
        "name": graph.name,
        "attributes": _attributes_to_json(graph.attributes),
        **({"opsets": dict(graph.opsets)} if graph.opsets and not is_body else {}),
        **({"captures": list(graph.captures)} if graph.captures else {}),
        "inputs": [_input_to_json(value) for value in graph.inputs],
        "nodes": [_node_to_json(node, positions) for node in graph.nodes],
        "outputs": [
            {"name": name, "value": value.name, "dtype": value.dtype and value.dtype.name}
            for name, value in zip(graph.output_names, graph.outputs, strict=True)
        ],
    }


def _input_to_json(value: Value) -> dict[str, Any]:
    row: dict[str, Any] = {"name": value.producer.name}
    if value.name != value.producer.name:
        row["value"] = value.name
    if value.dtype is not None:
        row["dtype"] = value.dtype.name
    if value.shape.dims is not None:
        row["shape"] = list(value.shape.dims)
    if value.container:
        row["container"] = value.container
    if value.producer.attributes:
        row["attributes"] = _attributes_to_json(value.producer.attributes)
    return row


def _node_to_json(node: Node, positions: Mapping[Node, int]) -> dict[str, Any]:
    row: dict[str, Any] = {"op": node.op_type, "name": node.name}
    if node.domain != "tf":
        row["domain"] = node.domain
    row["inputs"] = [value and value.name for value in node.inputs]
    row["outputs"] = [_output_to_json(value) for value in node.outputs]
    if node.types:
        row["types"] = {key: dtype.name for key, dtype in node.types.items()}
    if node.attributes:
        row["attributes"] = _attributes_to_json(node.attributes)
    if node.controls:
        row["after"] = [positions[source] for source in node.controls]
    if node.device:
        row["device"] = node.device
    if node.signature.schema is None:
        row["untyped"] = True
    return row


def _output_to_json(value: Value) -> Any:
    untyped = value.producer.signature.outputs[value.index] is None
    if value.shape.dims is None and not (untyped and value.dtype) and not value.container:
        return value.name
    row: dict[str, Any] = {"name": value.name}
    if untyped and value.dtype:
        row["dtype"] = value.dtype.name
    if value.shape.dims is not None:
        row["shape"] = list(value.shape.dims)
    if value.container:
        row["container"] = value.container
    return row


def _attributes_to_json(attributes: Mapping[str, Any]) -> dict[str, Any]:
    result = {}
    for name, value in attributes.items():
        try:
            result[name] = _to_json(value)
        except AmpgraphError as error:
            raise FormatError(f"Attribute {name!r} cannot be written: {error}") from error
    return result


def _to_json(value: Any) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, bytes):
        text = value.decode("utf-8", errors="replace")
        return text if text.encode("utf-8") == value else {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    if isinstance(value, DType):
        return {"dtype": value.name}
    if isinstance(value, Shape):
        return {"shape": None if value.dims is None else list(value.dims)}
    if isinstance(value, Tensor):
        return {"tensor": _tensor_to_json(value)}
    if isinstance(value, FunctionRef):
        return {"function": value.name, "attributes": _attributes_to_json(value.attributes)}
    if isinstance(value, Placeholder):
        return {"placeholder": value.name}
    if isinstance(value, Graph):
        return {"graph": _graph_to_json(value, is_body=True)}
    if isinstance(value, ValueType):
        shape = None if value.shape.dims is None else list(value.shape.dims)
        return {"type": {"dtype": value.dtype and value.dtype.name, "shape": shape, "container": value.shape.container}}
    raise FormatError(f"JSON has no form for a {type(value).__name__}.")


def _tensor_to_json(tensor: Tensor) -> dict[str, Any]:
    row: dict[str, Any] = {"dtype": tensor.dtype.name, "shape": list(tensor.shape)}
    if tensor.dtype.kind == "handle":
        raise FormatError(f"a tensor of dtype {tensor.dtype} has no array form.")
    data = tensor.array()
    one = splat_of(data)
    if tensor.dtype.kind == "string":
        flat = (data if one is None else one).ravel().tolist()
        strings = [_to_json(item if isinstance(item, bytes) else str(item).encode()) for item in flat]
        return {**row, "strings": strings} if one is None else {**row, "splat": strings[0]}
    if data.dtype.byteorder == ">":
        data = data.astype(data.dtype.newbyteorder("<"))
    if data.size > 1:
        first = data.reshape(-1)[:1].tobytes() if one is None else one.tobytes()
        if one is not None or data.tobytes() == first * data.size:
            return {**row, "splat": base64.b64encode(first).decode()}
    return {**row, "base64": base64.b64encode(data.tobytes()).decode()}


# ---- reading ------------------------------------------------------------------------------------------------------


def parse_json(text: str) -> Graph:
    """Read what :func:`print_json` wrote; everything is checked.

    Raises:
        FormatError: If the text is no JSON, not of this format, or says something that makes no sense.
        GraphError: If the graph has a cycle.
    """
    try:
        data = json.loads(text, parse_constant=_no_constant)
        if _SURROGATE.search(text) or not text.isascii():
            _check_unicode(data)
        with paused_collector():
            return _read(data)
    except AmpgraphError:
        raise
    except ValueError as error:
        raise FormatError(f"This is not JSON: {error}.") from error
    except RecursionError as error:
        raise FormatError("The JSON is nested too deeply.") from error


def _check_unicode(data: Any) -> None:
    """Refuse halves of characters (surrogates), which no other file and no terminal takes."""
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        near = error.object[max(0, error.start - 20) : error.end + 20]
        raise FormatError(f"The graph has text that is no Unicode (a lone surrogate). Received: {near!r}") from error


def _no_constant(name: str) -> NoReturn:
    raise FormatError(f"{name} is not JSON; a number that is not finite is written as an object.")


def _read(data: Any) -> Graph:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise FormatError(f'This JSON is not a graph of ampgraph: it does not start with "format": "{FORMAT}".')
    if data.get("version") != VERSION:
        raise FormatError(f"This version of ampgraph reads graphs of version {VERSION}. Received: {data.get('version')!r}")
    rows = _get(data, "functions", dict, "The file")
    functions: dict[str, Graph] = {}
    calls = {name: _call_schema(name, row) for name, row in rows.items()}
    for name, row in rows.items():
        functions[name] = _GraphReader(row, functions, calls).graph
    return _GraphReader(data, functions, calls).graph


def _get(row: Any, key: str, kind: Any, where: str, default: Any = None) -> Any:
    """Return ``row[key]`` if it has the right JSON type."""
    if not isinstance(row, dict):
        raise FormatError(f"{where} must be a JSON object. Received: {_short(row)}")
    value = row.get(key, default)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        wanted = {dict: "an object", list: "a list", str: "a string", int: "an integer"}[kind]
        raise FormatError(f"{where} must have {key!r}, {wanted}. Received: {_short(value)}")
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _call_schema(name: str, row: Any) -> OpSchema:
    """Return the schema of calls of a function, from its declared inputs and outputs."""

    def formals(key: str) -> list[Formal]:
        where = f"Each of the {key} of function {name!r}"
        rows = _get(row, key, list, f"Function {name!r}")
        return [
            Formal(_get(item, "name", str, where), dtype=_dtype(item["dtype"]) if item.get("dtype") is not None else None)
            for item in rows
        ]

    if ":" in name and "opsets" in row:
        keys = ("inputs", "outputs")
        ins, outs = ([_get(item, "name", str, name) for item in _get(row, key, list, name)] for key in keys)
        return call_schema(name, ins, outs)
    return OpSchema(name, "tf", formals("inputs"), formals("outputs"), is_call=True, stateful=True)


def _dtype(name: Any) -> DType:
    if not isinstance(name, str) or name not in DTYPES:
        raise FormatError(f"Unknown dtype {_short(name)}.")
    return find_dtype(name)


def _shape(dims: Any) -> Shape:
    if dims is None:
        return Shape(None)
    if not isinstance(dims, list) or not all(
        dim is None or isinstance(dim, str) or (type(dim) is int and 0 <= dim < 2**63) for dim in dims
    ):
        raise FormatError(f"A shape must be null or a list of sizes, symbols and nulls. Received: {_short(dims)}")
    return Shape(dims)


def _contained(row: Mapping[str, Any]) -> Shape:
    """Return the shape in a row, with the container around it."""
    shape = _shape(row.get("shape"))
    container = _get(row, "container", str, "A value", "")
    return Shape(shape.dims, container) if container else shape if shape.dims is not None else UNKNOWN


def _opsets(row: Any, name: str) -> dict[str, int]:
    opsets = _get(row, "opsets", dict, f"Graph {name!r}", {})
    if not all(type(version) is int and 0 < version < 2**31 for version in opsets.values()):
        raise FormatError(f"Versions of domains must be positive integers. Received: {_short(opsets)}")
    return dict(opsets)


class _Body:
    """The row of a graph that an attribute holds, not yet read."""

    def __init__(self, row: Any) -> None:
        self.row = row


def _type_from_json(value: Mapping[str, Any]) -> ValueType:
    row = value["type"]
    _get(row, "container", str, "A type", "")
    dtype = row.get("dtype")
    return ValueType(None if dtype is None else _dtype(dtype), _contained(row))


class _GraphReader:
    """Reads one graph: inputs, then all nodes with their values, then the edges between them."""

    def __init__(
        self, row: Any, functions: dict[str, Graph], calls: Mapping[str, OpSchema], opsets: dict[str, int] | None = None
    ) -> None:
        self.graph = graph = Graph(_get(row, "name", str, "A graph"), functions)
        if opsets is None:
            graph.opsets.update(_opsets(row, graph.name))
        else:
            graph.opsets = opsets
        captures = _get(row, "captures", list, "A graph", [])
        if not all(isinstance(item, str) for item in captures):
            raise FormatError(f"Captures must be names. Received: {_short(captures)}")
        graph.captures = tuple(captures)
        self.where = f"graph {graph.name!r}"
        self.calls = calls
        self.values: dict[str, Value] = {}
        graph.attributes = dict(self._attributes(row, f"Attributes of {self.where}"))
        inputs = _get(row, "inputs", list, self.where)
        for item in inputs:
            name = _get(item, "name", str, f"An input of {self.where}")
            dtype = _dtype(item["dtype"]) if item.get("dtype") is not None else None
            value = graph.add_input(name, dtype, _contained(item))
            if "attributes" in item:
                value.producer.attributes = self._attributes(item, f"Input {name!r} of {self.where}")
            self._declare(value, item.get("value", name))
        if len(captures) > len(inputs):
            raise FormatError(f"{self.where} has {len(captures)} captures, but {len(inputs)} inputs.")
        rows = _get(row, "nodes", list, self.where)
        for item in rows:
            graph.append(self._node(item))
        nodes = list(graph.all_nodes())
        for node, item in zip(graph.nodes, rows, strict=True):
            self._connect(node, item, nodes)
        for item in _get(row, "outputs", list, self.where):
            name = _get(item, "name", str, f"An output of {self.where}")
            value = self._value(item.get("value"), f"Output {name!r} of {self.where}")
            if (value.dtype and value.dtype.name) != item.get("dtype"):
                raise FormatError(f"Output {name!r} of {self.where} is {value.dtype}. Received: {_short(item.get('dtype'))}")
            graph.output_names.append(name)
            graph.outputs.append(value)
        graph.topological()  # raises on cycles

    def _declare(self, value: Value, name: Any) -> None:
        if not isinstance(name, str) or name in self.values:
            raise FormatError(f"Value names of {self.where} must be strings, each used once. Received: {_short(name)}")
        if name != value.name:
            value.name = name
        self.values[name] = value

    def _value(self, name: Any, who: str) -> Value:
        found = self.values.get(name) if isinstance(name, str) else None
        if found is None:
            raise FormatError(f"{who} names a value that does not exist. Received: {_short(name)}")
        return found

    def _attributes(self, row: Any, where: str) -> dict[str, Any]:
        return {key: self._bodies(_from_json(value)) for key, value in _get(row, "attributes", dict, where, {}).items()}

    def _bodies(self, value: Any) -> Any:
        """Turn rows of graphs among an attribute's value into graphs."""
        if isinstance(value, _Body):
            return _GraphReader(value.row, self.graph.functions, self.calls, self.graph.opsets).graph
        return [self._bodies(item) for item in value] if isinstance(value, list) else value

    def _node(self, row: Any) -> Node:
        where = f"A node of {self.where}"
        name, op_type = _get(row, "name", str, where), _get(row, "op", str, where)
        where = f"Node {name!r} ({op_type}) of {self.where}"
        domain, device = _get(row, "domain", str, where, "tf"), _get(row, "device", str, where, "")
        inputs, outputs = _get(row, "inputs", list, where), _get(row, "outputs", list, where)
        try:
            attributes = self._attributes(row, where)
            types = {key: _dtype(value) for key, value in _get(row, "types", dict, where, {}).items()}
            schema = None if row.get("untyped") is True else self._find_schema(domain, op_type)
            if schema is None and domain == "tf" and row.get("untyped") is not True:
                schema = self.calls.get(op_type)
            if schema is None:
                signature = untyped_signature(len(inputs), len(outputs))
            else:
                _check_counts(schema, attributes, len(inputs) + len(outputs))
                signature = schema.signature(attributes, types, inputs, len(outputs))
        except AmpgraphError as error:
            raise FormatError(f"{where}: {error}") from error
        expected, received = (len(signature.inputs), len(signature.outputs)), (len(inputs), len(outputs))
        if expected != received:
            raise FormatError(
                f"{where} must have {expected[0]} inputs and {expected[1]} outputs. Received: {received[0]} and {received[1]}"
            )
        node = Node(self.graph, op_type, domain, name, signature, attributes, types, device, None)
        for i, item in enumerate(outputs):
            item = {"name": item} if isinstance(item, str) else item
            dtype = _dtype(item["dtype"]) if isinstance(item, dict) and item.get("dtype") is not None else None
            value = Value(node, i, dtype=dtype)
            self._declare(value, _get(item, "name", str, f"Output {i} of {where}"))
            value.shape = _contained(item)
            node.outputs.append(value)
        return node

    def _find_schema(self, domain: str, op_type: str) -> OpSchema | None:
        if domain in ("tf", "ampgraph"):
            return find_schema(domain, op_type)
        return self.calls.get(f"{domain}:{op_type}") or find_schema(domain, op_type, self.graph.opsets.get(domain, 0))

    def _connect(self, node: Node, row: Any, nodes: list[Node]) -> None:
        who = f"Node {node} of {self.where}"
        node.inputs = [None if name is None else self._value(name, who) for name in row["inputs"]]
        controls: list[Node] = []
        for position in _get(row, "after", list, who, []):
            if type(position) is not int or not 0 <= position < len(nodes):
                raise FormatError(f"{who} waits for a node that does not exist. Received: {_short(position)}")
            controls.append(nodes[position])
        node.controls = tuple(controls)


def _check_counts(schema: OpSchema, attributes: Mapping[str, Any], operands: int) -> None:
    """Refuse counts that the node's own operand lists belie before anything of that size is made."""
    for formal in schema.inputs + schema.outputs:
        count = attributes.get(formal.number or "")
        if isinstance(count, int) and count > operands:
            raise FormatError(f"Attribute {formal.number!r} counts {count} operands, but there are {operands} in all.")


def _from_json(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", errors="surrogatepass")
    if isinstance(value, list):
        return [_from_json(item) for item in value]
    if isinstance(value, dict):
        key = next(iter(value), None)
        reader = _TAGS.get(key) if isinstance(key, str) else None
        if reader is None or not value.keys() <= {key, "attributes"}:
            raise FormatError(f"An attribute value is an object of an unknown kind. Received: {_short(value)}")
        return reader(value)
    return value


def _float_from_json(value: Mapping[str, Any]) -> float:
    if value["float"] not in ("nan", "inf", "-inf"):
        raise FormatError(f"A number that is not finite must be nan, inf or -inf. Received: {_short(value['float'])}")
    return float(value["float"])


def _base64(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, TypeError) as error:
        raise FormatError(f"Bytes must be a base64 string: {error}. Received: {_short(text)}") from error


def _tensor_from_json(value: Mapping[str, Any]) -> Tensor:
    row = value["tensor"]
    dtype = _dtype(_get(row, "dtype", str, "A tensor"))
    shape = _shape(_get(row, "shape", list, "A tensor")).dims or ()
    if not all(isinstance(dim, int) for dim in shape):
        raise FormatError(f"A tensor must have a known shape. Received: {_short(shape)}")
    sizes = tuple(int(dim or 0) for dim in shape)
    size = math.prod(sizes)
    if dtype.kind == "string":
        splat = "splat" in row
        strings = [_from_json(item) for item in ([row["splat"]] if splat else _get(row, "strings", list, "A tensor of strings"))]
        if size * 8 > MAX_BYTES or (len(strings) != size and not splat) or not all(isinstance(item, bytes) for item in strings):
            raise FormatError(f"A tensor of shape {list(sizes)} needs {size} strings. Received: {len(strings)} values")
        return Tensor(dtype, sizes, lambda: _strings(strings, sizes, splat))
    if dtype.kind == "handle":
        raise FormatError(f"A tensor of dtype {dtype} has no array form.")
    splat = "splat" in row
    data = _base64(row.get("splat" if splat else "base64"))
    width = dtype.numpy.itemsize
    if len(data) != (width if splat else size * width) or size * width > MAX_BYTES:
        raise FormatError(f"A tensor of dtype {dtype} and shape {list(sizes)} does not store {len(data)} bytes.")
    return Tensor(dtype, sizes, _array_of(data, dtype, sizes, splat))


def _array_of(data: bytes, dtype: DType, shape: tuple[int, ...], splat: bool) -> Callable[[], Any]:
    def load() -> Any:
        import numpy as np

        array = np.frombuffer(data, dtype.numpy)
        return np.broadcast_to(array.reshape(()), shape) if splat else array.reshape(shape)

    return load


def _strings(items: list[bytes], shape: tuple[int, ...], splat: bool) -> Any:
    import numpy as np

    array = np.empty(len(items), object)
    array[:] = items
    return np.broadcast_to(array.reshape(()), shape) if splat else array.reshape(shape)


def _function_from_json(value: Mapping[str, Any]) -> FunctionRef:
    attributes = _get(value, "attributes", dict, "A function reference", {})
    return FunctionRef(
        _get(value, "function", str, "A function reference"), {key: _from_json(item) for key, item in attributes.items()}
    )


_TAGS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "float": _float_from_json,
    "bytes": lambda value: _base64(value["bytes"]),
    "text": lambda value: _get(value, "text", str, "A text"),
    "dtype": lambda value: _dtype(value["dtype"]),
    "shape": lambda value: _shape(value["shape"]),
    "tensor": _tensor_from_json,
    "function": _function_from_json,
    "graph": lambda value: _Body(value["graph"]),
    "type": _type_from_json,
    "placeholder": lambda value: Placeholder(_get(value, "placeholder", str, "A placeholder")),
}
