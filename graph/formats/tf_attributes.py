"""Attribute values of GraphDef files: ``AttrValue`` to Python values and back.

A message that the Python value alone would not restore (a named dimension, a reference dtype) is *odd*: the reader says so
and the caller keeps the message beside the value.
"""

from collections.abc import Mapping
from typing import Any

from ..dtypes import BY_TF, DType
from ..errors import FormatError
from ..types import FunctionRef, Placeholder, Shape, Tensor
from .tf_tensor import read_tensor, write_tensor

#: Added to a dtype's number where the file means a reference to a variable's buffer.
REF = 100


def read_dtype(number: int, odd: list[Any]) -> DType | None:
    """Return a dtype by its TensorFlow number; None (and odd) for 0, "not set"."""
    dtype = BY_TF.get(number)
    if dtype is None:
        odd.append(number)
        if number:
            dtype = BY_TF.get(number - REF)
            if dtype is None:
                raise FormatError(f"TensorFlow defines no dtype with number {number}.")
    return dtype


def read_shape(proto: Any, odd: list[Any]) -> Shape:
    """Return a ``TensorShapeProto``; -1 is an unknown size."""
    dims = proto.dim
    if proto.unknown_rank:
        if dims:
            odd.append(proto)
        return Shape(None)
    sizes: list[int | None] = []
    for dim in dims:
        size = dim.size
        if size < 0:
            if size != -1:
                raise FormatError(f"A dimension must be at least -1. Received: {size}")
            size = None
        if dim.name:
            odd.append(proto)
        sizes.append(size)
    return Shape(sizes)


def read_function_ref(proto: Any, odd: list[Any]) -> FunctionRef:
    """Return a ``NameAttrList``."""
    return FunctionRef(proto.name, {name: read_attribute(proto.attr[name], odd) for name in sorted(proto.attr)})


def _read_list(proto: Any, odd: list[Any]) -> list[Any]:
    result: list[Any] = []
    for field, values in proto.ListFields():
        read = _LIST_READERS[field.name]
        result += values if read is None else [read(value, odd) for value in values]
    return result


_LIST_READERS: dict[str, Any] = {
    "s": None,
    "i": None,
    "f": None,
    "b": None,
    "type": read_dtype,
    "shape": read_shape,
    "tensor": lambda proto, odd: read_tensor(proto),
    "func": read_function_ref,
}
_READERS: dict[str | None, Any] = {
    "s": lambda attr, odd: attr.s,
    "i": lambda attr, odd: attr.i,
    "f": lambda attr, odd: attr.f,
    "b": lambda attr, odd: attr.b,
    "type": lambda attr, odd: read_dtype(attr.type, odd),
    "shape": lambda attr, odd: read_shape(attr.shape, odd),
    "tensor": lambda attr, odd: read_tensor(attr.tensor),
    "list": lambda attr, odd: _read_list(attr.list, odd),
    "func": lambda attr, odd: read_function_ref(attr.func, odd),
    "placeholder": lambda attr, odd: Placeholder(attr.placeholder),
    None: lambda attr, odd: None,
}


def read_attribute(attr: Any, odd: list[Any]) -> Any:
    """Return the Python value of an ``AttrValue``; something is appended to ``odd`` if the value does not say it all.

    Raises:
        FormatError: If it holds an unknown dtype number, a negative size or a constant without shape.
    """
    return _READERS[attr.WhichOneof("value")](attr, odd)


def write_shape(shape: Shape, proto: Any) -> None:
    """Fill an empty ``TensorShapeProto``; symbols become unknown sizes."""
    proto.SetInParent()
    if shape.dims is None:
        proto.unknown_rank = True
        return
    for dim in shape.dims:
        proto.dim.add().size = dim if isinstance(dim, int) else -1


def _write_function_ref(reference: FunctionRef, proto: Any) -> None:
    proto.SetInParent()
    proto.name = reference.name
    write_attributes(reference.attributes, proto.attr)


def write_attributes(attributes: Mapping[str, Any], target: Any) -> None:
    """Write Python values into a map of ``AttrValue``.

    Raises:
        FormatError: If a GraphDef cannot hold a value.
    """
    for name, value in attributes.items():
        write_attribute(name, value, target[name])


def write_attribute(name: str, value: Any, attr: Any) -> None:
    """Write one Python value into an empty ``AttrValue``; ``name`` is for the error message.

    Raises:
        FormatError: If a GraphDef cannot hold the value.
    """
    kind = value.__class__
    try:
        if kind is int:
            attr.i = value
        elif kind is bytes:
            attr.s = value
        elif kind is bool:
            attr.b = value
        elif kind is float:
            attr.f = value
        elif kind is list or kind is tuple:
            attr.list.SetInParent()
            for item in value:
                _write_item(name, item, attr.list)
        elif kind is Shape:
            write_shape(value, attr.shape)
        elif kind is Tensor:
            write_tensor(value, attr.tensor)
        elif kind is DType:
            attr.type = number_of(value)
        elif kind is FunctionRef:
            _write_function_ref(value, attr.func)
        elif kind is Placeholder:
            attr.placeholder = value.name
        elif kind is str:
            attr.s = value.encode()
        elif value is not None:
            raise FormatError(f"A GraphDef cannot hold attribute {name!r} of type {kind.__name__}.")
    except (ValueError, OverflowError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"A GraphDef cannot hold attribute {name!r}: {error}. Received: {value!r}") from error


def _write_item(name: str, value: Any, target: Any) -> None:
    if isinstance(value, bool):
        target.b.append(value)
    elif isinstance(value, int):
        target.i.append(value)
    elif isinstance(value, float):
        target.f.append(value)
    elif isinstance(value, bytes):
        target.s.append(value)
    elif isinstance(value, DType):
        target.type.append(number_of(value))
    elif isinstance(value, Shape):
        write_shape(value, target.shape.add())
    elif isinstance(value, Tensor):
        write_tensor(value, target.tensor.add())
    elif isinstance(value, FunctionRef):
        _write_function_ref(value, target.func.add())
    else:
        raise FormatError(f"A GraphDef cannot hold attribute {name!r}: a list with a {type(value).__name__}.")


def number_of(dtype: DType) -> int:
    """Return the TensorFlow number of a dtype.

    Raises:
        FormatError: If TensorFlow has no such dtype.
    """
    if not dtype.tf:
        raise FormatError(f"TensorFlow has no dtype {dtype}.")
    return dtype.tf
