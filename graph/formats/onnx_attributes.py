"""Attributes and types of ONNX files: ``AttributeProto`` and ``TypeProto`` to Python values and back."""

import re
from collections.abc import Callable
from typing import Any

from ..dtypes import BY_SHORT, DType
from ..errors import FormatError, GraphError
from ..graph import Graph
from ..schemas.onnx import dtype_of
from ..types import UNKNOWN, Dim, Placeholder, Shape, Tensor, ValueType
from .onnx_tensor import Folder, check_text, read_sparse, read_tensor, write_tensor

# Numbers of AttributeProto.AttributeType.
FLOAT, INT, STRING, TENSOR, GRAPH, FLOATS, INTS, STRINGS, TENSORS, GRAPHS, SPARSE, SPARSES, TYPE, TYPES = range(1, 15)
_FIELD = ["", "f", "i", "s", "t", "g", "floats", "ints", "strings", "tensors", "graphs"]
_FIELD += ["sparse_tensor", "sparse_tensors", "tp", "type_protos"]
_FIELDS = frozenset(_FIELD)
_PLAIN = {kind: _FIELD[kind] for kind in (FLOAT, INT, STRING, TENSOR, FLOATS, INTS)}
_MAX_NESTING = 32

#: Reads the graph of an attribute.
ReadGraph = Callable[[Any], Graph]


def read_attribute(proto: Any, folder: Folder, read_graph: ReadGraph, where: Callable[[], str]) -> Any:
    """Return the value of an ``AttributeProto``; graphs are taken out of it. ``where`` says what it is, for messages.

    Raises:
        FormatError: If the attribute says several values or makes no sense.
    """
    kind = proto.type
    rows = proto.ListFields()  # in the order of their numbers: the name, then most values, then the type
    if len(rows) == 3 and rows[1][0].name == _PLAIN.get(kind):
        return read_tensor(rows[1][1], folder, where()) if kind == TENSOR else list(rows[1][1]) if kind > STRING else rows[1][1]
    check_text(proto.ref_attr_name)
    if proto.ref_attr_name:
        return Placeholder(proto.ref_attr_name)
    fields = [descriptor.name for descriptor, _ in rows if descriptor.name in _FIELDS]
    if not kind and len(fields) == 1:  # before IR version 2 the type was not written
        kind = _FIELD.index(fields[0])
    if not FLOAT <= kind <= TYPES or len(fields) > 1 or (fields and fields[0] != _FIELD[kind]):
        held = ", ".join(fields) or "nothing"
        raise FormatError(f"{where()} says it is of type {kind} and holds {held}; that does not fit.")
    if kind in (FLOAT, INT, STRING):
        return getattr(proto, _FIELD[kind])
    if kind in (FLOATS, INTS, STRINGS):
        return list(getattr(proto, _FIELD[kind]))
    if kind == TENSOR:
        return read_tensor(proto.t, folder, where())
    if kind == TENSORS:
        return [read_tensor(item, folder, where()) for item in proto.tensors]
    if kind == SPARSE:
        return read_sparse(proto.sparse_tensor, folder, where())
    if kind == SPARSES:
        return [read_sparse(item, folder, where()) for item in proto.sparse_tensors]
    if kind == GRAPH:
        graph = proto.g
        proto.ClearField("g")
        return read_graph(graph)
    if kind == GRAPHS:
        graphs = list(proto.graphs)
        proto.ClearField("graphs")
        return [read_graph(graph) for graph in graphs]
    if kind == TYPE:
        return read_type(proto.tp, where())
    return [read_type(item, where()) for item in proto.type_protos]


def write_attribute(name: str, value: Any, proto: Any, write_graph: Callable[[Graph, Any], None]) -> None:
    """Fill the empty ``AttributeProto`` ``proto``.

    Raises:
        FormatError: If ONNX cannot hold the value.
    """
    proto.name = name
    items = value if isinstance(value, list) else [value]
    first = items[0] if items else 0
    kind = TENSOR if first.__class__ is Tensor else next((kind for kind, classes in _CLASSES if isinstance(first, classes)), 0)
    if isinstance(first, Tensor) and hasattr(first.source, "indices"):
        kind = SPARSE
    if not kind:
        raise FormatError(f"ONNX cannot hold attribute {name!r} of type {type(first).__name__}.")
    try:
        if not isinstance(value, list):
            proto.type = kind
            if kind == TENSOR:
                write_tensor(value, proto.t)
            elif kind == SPARSE:
                write_tensor(value, proto.sparse_tensor)
            elif kind == GRAPH:
                write_graph(value, proto.g)
            elif kind == TYPE:
                write_type(value.dtype, value.shape, proto.tp)
            else:
                setattr(proto, _FIELD[kind], value.encode() if isinstance(value, str) else value)
            return
        proto.type = kind + 1 if kind in (SPARSE, TYPE) else kind + 5
        target = getattr(proto, _FIELD[proto.type])
        for item in items:
            if kind in (TENSOR, SPARSE):
                write_tensor(item, target.add())
            elif kind == GRAPH:
                write_graph(item, target.add())
            elif kind == TYPE:
                write_type(item.dtype, item.shape, target.add())
            else:
                target.append(item.encode() if isinstance(item, str) else item)
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        if isinstance(error, FormatError | GraphError):
            raise
        raise FormatError(f"ONNX cannot hold attribute {name!r}: {error}") from error


_CLASSES: tuple[tuple[int, Any], ...] = (
    (INT, int),  # bool too
    (FLOAT, float),
    (STRING, (bytes, str)),
    (TENSOR, Tensor),
    (GRAPH, Graph),
    (TYPE, ValueType),
)


# ---- types --------------------------------------------------------------------------------------------------------------


def read_type(proto: Any, where: str) -> ValueType:
    """Return a ``TypeProto`` as element dtype and shape (with its container).

    Raises:
        FormatError: If it makes no sense.
    """
    container = "{}"
    for _ in range(_MAX_NESTING):
        kind = proto.WhichOneof("value")
        if kind == "tensor_type" or kind == "sparse_tensor_type":
            tensor = getattr(proto, kind)
            inner = container.replace("({})", "").replace("{}", "")
            if kind == "sparse_tensor_type":
                inner = container.format("sparse")
            dtype = _dtype(tensor.elem_type, where) if tensor.elem_type else None
            return ValueType(dtype, _read_shape(tensor, inner))
        if kind == "sequence_type":
            container, proto = container.format("seq({})"), proto.sequence_type.elem_type
        elif kind == "optional_type":
            container, proto = container.format("optional({})"), proto.optional_type.elem_type
        elif kind == "map_type":
            key = _dtype(proto.map_type.key_type, where).short
            proto = proto.map_type.value_type
            plain = proto.WhichOneof("value") == "tensor_type"
            container = container.format(f"map({key})" if plain else f"map({key}, {{}})")
            if plain and "{}" not in container:
                container += "{}"
        elif kind is None:
            return ValueType(None, Shape(None, container.replace("({})", "").replace("{}", "")) if container != "{}" else UNKNOWN)
        else:
            return ValueType(None, Shape(None, container.format(kind.removesuffix("_type"))))
    raise FormatError(f"{where} has a type nested more than {_MAX_NESTING} deep.")


def read_type_once(proto: Any, where: str, known: dict[bytes, ValueType]) -> ValueType:
    """Do what :func:`read_type` does; types that are equal, as many of a model are, are read once and shared.

    ``known``: the types read so far, by their bytes; the new one is added.
    """
    key = proto.SerializeToString()
    found = known.get(key)
    if found is None:
        found = known[key] = read_type(proto, where)
    return found


def _dtype(number: int, where: str) -> DType:
    try:
        return dtype_of(number, where)
    except GraphError as error:
        raise FormatError(str(error)) from error


def _read_shape(tensor: Any, container: str) -> Shape:
    if not tensor.HasField("shape"):
        return Shape(None, container) if container else UNKNOWN
    dims: list[Dim] = []
    for dim in tensor.shape.dim:
        if dim.HasField("dim_value"):
            dims.append(dim.dim_value if dim.dim_value >= 0 else None)
        else:
            check_text(dim.dim_param)
            dims.append(dim.dim_param or None)
    return Shape(dims, container)


_OUTER = re.compile(r"(seq|optional|map|sparse)(?:\((.*)\))?\Z")


def write_type(dtype: DType | None, shape: Shape, proto: Any) -> None:
    """Fill an empty ``TypeProto``.

    Raises:
        FormatError: If ONNX has no such type.
    """
    container = shape.container
    while container:
        match = _OUTER.match(container)
        if match is None:
            raise FormatError(f"ONNX has no container {shape.container!r}.")
        outer, container = match[1], match[2] or ""
        if outer == "seq":
            proto = proto.sequence_type.elem_type
        elif outer == "optional":
            proto = proto.optional_type.elem_type
        elif outer == "map":
            key, _, container = container.partition(", ")
            proto.map_type.key_type = BY_SHORT[key].onnx if key in BY_SHORT else 0
            proto = proto.map_type.value_type
        else:
            _write_tensor_type(dtype, shape, proto.sparse_tensor_type)
            return
    _write_tensor_type(dtype, shape, proto.tensor_type)


def _write_tensor_type(dtype: DType | None, shape: Shape, tensor: Any) -> None:
    tensor.SetInParent()
    if dtype is not None:
        if not dtype.onnx:
            raise FormatError(f"ONNX has no dtype {dtype}.")
        tensor.elem_type = dtype.onnx
    if shape.dims is not None:
        tensor.shape.SetInParent()
        for dim in shape.dims:
            target = tensor.shape.dim.add()
            if isinstance(dim, int):
                target.dim_value = dim
            elif dim is not None:
                target.dim_param = dim


def update_type(dtype: DType | None, shape: Shape, said: ValueType, proto: Any) -> None:
    """Make a ``TypeProto`` that says ``said`` agree with this dtype and shape, keeping all that does, and what only one says."""
    if said.dtype is None and said.shape.dims is None:
        return
    known = shape.dims is not None and said.shape.dims is not None
    if said.shape.container != shape.container or (known and said.shape.dims != shape.dims):
        proto.Clear()
        write_type(dtype, shape, proto)
    elif said.dtype is not dtype and dtype is not None and said.dtype is not None:
        element = proto
        while (kind := element.WhichOneof("value")) not in ("tensor_type", "sparse_tensor_type", None):
            inner = getattr(element, kind)
            element = inner.value_type if kind == "map_type" else inner.elem_type
        getattr(element, kind or "tensor_type").elem_type = dtype.onnx
