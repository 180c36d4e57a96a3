"""Printing the text form; :mod:`ampgraph.graph.text` describes it."""

import hashlib
import math
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from .dtypes import DType
from .errors import GraphError
from .graph import Graph, Node, Value
from .schema import REQUIRED, OpSchema, list_length
from .schemas.onnx_schema import OnnxSchema
from .types import FunctionRef, Placeholder, Shape, Tensor, ValueType

if TYPE_CHECKING:
    import numpy as np

#: Constants of more elements print as a hash, unless all elements are equal.
MAX_ELEMENTS = 16

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)
_DOTTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*\Z", re.ASCII)
_VALUE_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.]*\Z", re.ASCII)
_HASHED = re.compile(r", #([0-9a-f]{16})>\Z")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def print_graph(graph: Graph) -> str:
    """Return the text form of ``graph`` and, unless it is itself a function, of its functions.

    Raises:
        GraphError: If an attribute is of a type that graphs do not have.
    """
    is_function = any(function is graph for function in graph.functions.values())
    lines: list[str] = []
    _print_block(lines, "function" if is_function else "graph", graph.name, graph)
    if not is_function:
        for name, function in graph.functions.items():
            _print_block(lines, "function", name, function)
    return "\n".join(lines)


def constants_of(graph: Graph) -> dict[str, Tensor]:
    """Return the constants that print as a hash, by that hash; :func:`~ampgraph.graph.text.parse_graph` takes them back."""
    found: dict[str, Tensor] = {}
    for part in graph.all_graphs():
        for attributes in chain([part.attributes], (node.attributes for node in part.all_nodes())):
            for tensor in _tensors(attributes.values()):
                hashed = _HASHED.search(print_tensor(tensor))
                if hashed is not None:
                    found[hashed[1]] = tensor
    return found


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    stack = list(values)
    while stack:
        value = stack.pop()
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list):
            stack += value
        elif isinstance(value, FunctionRef):
            stack += value.attributes.values()


# ---- graphs ---------------------------------------------------------------------------------------------------------


def _print_block(lines: list[str], keyword: str, name: str, graph: Graph) -> None:
    refs = _value_refs(graph)
    control_ref = _control_refs(graph)
    inputs = [f"{refs[v]}: {_type(v)}{_input_suffix(v, control_ref)}" for v in graph.inputs]
    attributes = f" <{_items(graph.attributes)}>" if graph.attributes else ""
    if graph.opsets and keyword != "body":
        attributes += f" opset [{', '.join(f'{quote(domain)}={version}' for domain, version in graph.opsets.items())}]"
    if graph.captures:
        attributes += f" capture [{', '.join(map(quote, graph.captures))}]"
    keyword = "graph" if keyword == "body" else keyword
    lines.append(f"{keyword} {word(name)}({', '.join(inputs)}){attributes} {{")
    lines += [f"  {_statement(node, refs, control_ref)}" for node in graph.nodes]
    if graph.outputs:
        names = list(graph.output_names) + [value.name for value in graph.outputs[len(graph.output_names) :]]
        returned = [
            (f"{word(name)}=" if name != value.name else "") + (refs.get(value) or value_ref(value.name))
            for name, value in zip(names, graph.outputs, strict=False)
        ]
        lines.append(f"  return {', '.join(returned)}")
    lines.append("}")


def _statement(node: Node, refs: Mapping[Value, str], control_ref: Callable[[Node], str]) -> str:
    results = ", ".join([f"{refs[value]}: {_type(value)}" for value in node.outputs])
    operands = ", ".join(["_" if value is None else refs.get(value) or value_ref(value.name) for value in node.inputs])
    inferred = node.outputs[0].name if node.domain in ("tf", "ampgraph") and node.outputs else ""
    equals = " = " if results else ""
    return f"{results}{equals}{_op(node)}{_types(node)}({operands}){_suffix(node, inferred, control_ref)}"


def print_nodes(graph: Graph) -> dict[Node, str]:
    """Return what stands for each node in the text form of its graph; with the bodies of If and Loop it has several lines."""
    refs, control_ref = _value_refs(graph), _control_refs(graph)
    return {node: _statement(node, refs, control_ref) for node in graph.nodes}


def _value_refs(graph: Graph) -> dict[Value, str]:
    """Name every value; the second of the same name gets ``#1``."""
    refs: dict[Value, str] = {}
    taken: dict[str, int] = {}
    for node in graph.all_nodes():
        for value in node.outputs:
            ref = value_ref(value.name)
            again = taken.get(ref)
            taken[ref] = 1 if again is None else again + 1
            refs[value] = ref if again is None else f"{ref}#{again}"
    return refs


def _control_refs(graph: Graph) -> Callable[[Node], str]:
    positions: dict[Node, int] = {}

    def reference(node: Node) -> str:
        if node.name and graph.has_node(node.name) and graph.node(node.name) is node:
            return quote(node.name)
        if not positions:
            positions.update((other, i) for i, other in enumerate(graph.all_nodes()))
        return f"#{positions[node]}" if node in positions else quote(node.name)

    return reference


def _input_suffix(value: Value, control_ref: Callable[[Node], str]) -> str:
    return _suffix(value.producer, value.name, control_ref)


def _suffix(node: Node, inferred_name: str, control_ref: Callable[[Node], str]) -> str:
    text = ""
    if node.attributes:
        try:
            text = _attributes(node.attributes, node.signature.schema)
        except GraphError as error:
            raise GraphError(f"Node {node}: {error}") from error
    if node.name != inferred_name:
        text += f" name={quote(node.name)}"
    if node.device:
        text += f" device={quote(node.device)}"
    if node.controls:
        text += f" control=[{', '.join(map(control_ref, node.controls))}]"
    return text


def _op(node: Node) -> str:
    op = node.op_type if _WORD.match(node.op_type) and node.op_type != "return" else quote(node.op_type)
    if not node.domain:
        return op
    return f"{node.domain if _DOTTED.match(node.domain) and node.domain != 'return' else quote(node.domain)}.{op}"


def _type(value: Value) -> str:
    dtype = value.dtype
    shape = value.shape
    return _print_type(dtype, shape)


def _print_type(dtype: DType | None, shape: Shape) -> str:
    text = ("?" if dtype is None else dtype.short) + ("" if shape.dims is None else print_dims(shape))
    return f"{text} in {word(shape.container)}" if shape.container else text


def _types(node: Node) -> str:
    """Print the type variables in the op definition's order, then keys that do not belong to it."""
    types, schema = node.types, node.signature.schema
    rest = dict(types)
    parts: list[str] = []
    if isinstance(schema, OnnxSchema):
        for name, var in schema.type_vars.items():
            if var.is_list and f"{name}[0]" in rest:
                length = list_length(types, name)
                parts.append(f"{word(name)}=[{', '.join(rest.pop(f'{name}[{i}]').short for i in range(length))}]")
            elif name in rest:
                parts.append(f"{word(name)}={rest.pop(name).short}")
        schema = None
    for name, var in schema.type_vars.items() if schema is not None else ():
        if var.is_list:
            length = list_length(types, name)
            parts.append(f"{word(name)}=[{', '.join(rest.pop(f'{name}[{i}]').short for i in range(length))}]")
            continue
        dtype = rest.pop(name, None)
        if dtype is None:
            parts.append(f"{word(name)}=?")
        elif dtype is not var.default or not _default_is_inferred(node, name, dtype):
            parts.append(f"{word(name)}={dtype.short}")
    parts += [f"{word(name)}={dtype.short}" for name, dtype in rest.items()]
    return f"<{', '.join(parts)}>" if parts else ""


def _default_is_inferred(node: Node, name: str, default: DType) -> bool:
    """Whether the parser arrives at the default too: no operand may suggest another dtype."""
    ports = node.signature.inputs
    if len(ports) != len(node.inputs):
        return False
    return all(
        value is None or value.dtype is None or value.dtype is default
        for port, value in zip(ports, node.inputs, strict=True)
        if port == name
    )


def _attributes(attributes: Mapping[str, Any], schema: OpSchema | None) -> str:
    specs = {} if schema is None else schema.attributes
    kept = {
        name: value
        for name, value in attributes.items()
        if name not in specs or specs[name].default is REQUIRED or not same_attribute(value, specs[name].default)
    }
    return f" {{{_items(kept)}}}" if kept else ""


def same_attribute(a: Any, b: Any) -> bool:
    """Whether two attribute values are the same; floats are compared as float32, and NaN equals NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same_attribute, a, b))
    if isinstance(a, float):
        return _round32(a) == _round32(b)
    if isinstance(a, Graph):
        return print_attribute(a) == print_attribute(b)
    return bool(a == b)


# ---- words and attribute values -------------------------------------------------------------------------------------


def quote(text: str) -> str:
    """Return ``text`` in double quotes, with everything unprintable escaped."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    escaped = [_ESCAPES.get(c) or (c if c.isprintable() else f"\\u{{{ord(c):x}}}") for c in text]
    return f'"{"".join(escaped)}"'


def word(text: str) -> str:
    """Return ``text`` as it is if it is a plain word, else quoted."""
    return text if _WORD.match(text) else quote(text)


def value_ref(name: str) -> str:
    """Return ``%name``, quoted where necessary."""
    return f"%{name}" if _VALUE_WORD.match(name) else f"%{quote(name)}"


def print_dims(shape: Shape) -> str:
    """Print a shape as ``[2,?,n]``; ``[*]`` when not even the rank is known."""
    if shape.dims is None:
        return "[*]"
    return f"[{','.join(['?' if d is None else word(d) if isinstance(d, str) else str(int(d)) for d in shape.dims])}]"


def _items(attributes: Mapping[str, Any]) -> str:
    return ", ".join([f"{word(name)}={print_attribute(value)}" for name, value in attributes.items()])


def print_attribute(value: Any) -> str:
    """Print one attribute value.

    Raises:
        GraphError: If it is of a type that graphs do not have.
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return print_float(value)
    if isinstance(value, bytes):
        return _print_bytes(value)
    if isinstance(value, str):
        return f"s{quote(value)}"
    if isinstance(value, Shape):
        return f"shape{print_dims(value)}"
    if isinstance(value, DType):
        return f"dtype:{value.short}"
    if isinstance(value, Tensor):
        return print_tensor(value)
    if isinstance(value, ValueType):
        return f"type<{_print_type(value.dtype, value.shape)}>"
    if isinstance(value, Graph):
        lines: list[str] = []
        _print_block(lines, "body", value.name, value)
        return "\n".join(lines).replace("\n", "\n    ")
    if isinstance(value, Placeholder):
        return f"${word(value.name)}"
    if isinstance(value, FunctionRef):
        return f"@{word(value.name)}" + (f"{{{_items(value.attributes)}}}" if value.attributes else "")
    if isinstance(value, list):
        return f"[{', '.join(map(print_attribute, value))}]"
    raise GraphError(f"An attribute cannot be a {type(value).__name__}. Received: {value!r}")


def _print_bytes(value: bytes) -> str:
    escaped = [_ESCAPES.get(chr(b)) or (chr(b) if 32 <= b < 127 else f"\\x{b:02x}") for b in value]
    return f'"{"".join(escaped)}"'


def _round32(value: float) -> bytes:
    """Return the float32 nearest to ``value`` as bytes; a NaN as one fixed NaN."""
    if math.isnan(value):
        return b"nan"
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", float("inf") if value > 0 else float("-inf"))


def print_float(value: float) -> str:
    """Print a float32 with as few digits as identify it; any other double as all its digits and ``d``."""
    if not math.isfinite(value):
        return repr(value)
    exact = _round32(value)
    if struct.unpack("<f", exact)[0] != value:
        return f"{value!r}d"
    least = 6 if abs(value) > 1e-37 else 1  # small subnormal numbers have fewer digits
    text = next(text for digits in range(least, 10) if _round32(float(text := f"{value:.{digits}g}")) == exact)
    return text if "." in text or "e" in text else f"{text}.0"


def print_tensor(tensor: Tensor) -> str:
    """Print a constant: its elements, one element if all are equal, or a hash."""
    dtype, kind = tensor.dtype, f"{tensor.dtype.short}{print_dims(Shape(tensor.shape))}"
    if dtype.kind == "handle":
        return f"dense<{kind}, #{_digest(kind, repr(tensor.source).encode())}>"
    array = tensor.array()
    if tensor.size > MAX_ELEMENTS and not any(array.strides):
        return f"dense<{kind}, splat {_elements(array[(slice(0, 1),) * array.ndim], dtype)[0]}>"
    if dtype.kind == "string":
        strings = [_as_bytes(item) for item in array.ravel()]
        if tensor.size > MAX_ELEMENTS:
            return f"dense<{kind}, #{_digest(kind, *[b'%d:%s' % (len(s), s) for s in strings])}>"
        return f"dense<{kind}, [{', '.join(map(_print_bytes, strings))}]>"
    if tensor.size > MAX_ELEMENTS:
        raw = array.tobytes()
        if raw == raw[: array.itemsize] * tensor.size:
            return f"dense<{kind}, splat {_elements(array.ravel()[:1], dtype)[0]}>"
        return f"dense<{kind}, #{_digest(kind, raw)}>"
    return f"dense<{kind}, [{', '.join(_elements(array, dtype))}]>"


def _digest(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else part)
    return digest.hexdigest()[:16]


def _as_bytes(item: Any) -> bytes:
    return item if isinstance(item, bytes) else str(item).encode()


def _elements(array: "np.ndarray[Any, Any]", dtype: DType) -> list[str]:
    flat = array.ravel()
    if dtype.kind == "string":
        return [_print_bytes(_as_bytes(item)) for item in flat]
    if dtype.kind == "bool":
        return ["true" if item else "false" for item in flat]
    if dtype.kind == "complex":
        half = "float32" if dtype.bits == 64 else "float64"
        parts = flat.view(half)
        printed = [_print_element(part, dtype.bits // 2) for part in parts]
        return [f"({re}, {im})" for re, im in zip(printed[::2], printed[1::2], strict=True)]
    if dtype.kind == "float":
        return [_print_element(item, dtype.bits) for item in flat]
    return [str(int(item)) for item in flat]


def _print_element(item: Any, bits: int) -> str:
    """Print a float of an array; a NaN that is not the usual one as its bits."""
    value = float(item)
    if math.isnan(value):
        usual = item.dtype.type(float("nan"))
        same = item.tobytes() == usual.tobytes()
        return "nan" if same else f"0x{int.from_bytes(item.tobytes(), 'little'):x}"
    return repr(value) if bits == 64 else print_float(value)
