"""Constants of GraphDef files: ``TensorProto`` to :class:`Tensor` and back.

Source of the rules: TensorFlow's tensor.proto and tensor.cc. A tensor is dense (``tensor_content``) or a list of values
of which the last one repeats until the shape is full.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

from ..dtypes import BY_TF, DType, float32
from ..errors import FormatError, GraphError
from ..types import Tensor, splat_of
from .proto import message

if TYPE_CHECKING:
    import numpy as np

#: The largest constant that is ever expanded, in bytes; larger ones only occur in hostile files.
MAX_BYTES = 2**34
#: The same for a list of values whose last one is repeated; a single value is never expanded.
MAX_REPEATED = 2**31

_FIELDS = {
    "float16": "half_val",
    "bfloat16": "half_val",
    "float32": "float_val",
    "float64": "double_val",
    "int64": "int64_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
    "bool": "bool_val",
    "complex64": "scomplex_val",
    "complex128": "dcomplex_val",
    "string": "string_val",
}


def read_tensor(proto: Any) -> Tensor:
    """Return a ``TensorProto`` as a tensor whose bytes are looked at when ``array()`` is called.

    Raises:
        FormatError: If dtype or shape make no sense.
    """
    dtype = BY_TF.get(proto.dtype)
    if dtype is None:
        raise FormatError(f"A constant has dtype number {proto.dtype}, which TensorFlow does not define.")
    shape = tuple([dim.size for dim in proto.tensor_shape.dim])
    if proto.tensor_shape.unknown_rank or (shape and min(shape) < 0):
        raise FormatError(f"A constant must have a fully known shape. Received: {'?' if not shape else list(shape)}")
    return Tensor(dtype, shape, partial(_decode, proto, dtype, shape), proto, partial(_problem, proto, dtype, shape))


def write_tensor(tensor: Tensor, proto: Any) -> None:
    """Fill the empty ``TensorProto`` ``proto``: the tensor's own source if it has one, else dense content.

    Raises:
        FormatError: If TensorFlow has no such dtype.
        GraphError: If the tensor cannot be read.
    """
    if isinstance(tensor.source, type(proto)):
        proto.CopyFrom(tensor.source)
        return
    if not tensor.dtype.tf:
        raise FormatError(f"TensorFlow has no dtype {tensor.dtype}; convert the constant before writing a GraphDef.")
    proto.dtype = tensor.dtype.tf
    proto.tensor_shape.SetInParent()
    for size in tensor.shape:
        proto.tensor_shape.dim.add().size = size
    if tensor.nbytes > MAX_REPEATED:
        raise FormatError(f"A GraphDef cannot hold a constant of {tensor.nbytes} bytes.")
    data = tensor.array()
    if tensor.dtype.kind == "string":
        data = data if (one := splat_of(data)) is None else one
        proto.string_val.extend(item if isinstance(item, bytes) else str(item).encode() for item in data.ravel().tolist())
    else:
        little = data if data.dtype.byteorder != ">" else data.astype(data.dtype.newbyteorder("<"))
        proto.tensor_content = little.tobytes()


def new_tensor_proto(tensor: Tensor) -> Any:
    """Return ``tensor`` as a new ``TensorProto``."""
    proto = message("TensorProto")()
    write_tensor(tensor, proto)
    return proto


def _decode(proto: Any, dtype: DType, shape: tuple[int, ...]) -> "np.ndarray[Any, Any]":
    import numpy as np

    if not shape and dtype is float32 and not proto.tensor_content:  # most constants
        numbers = proto.float_val[:1]
        return np.array(numbers[0] if numbers else 0, np.float32)
    numpy_dtype = dtype.numpy
    size = 1
    for dim in shape:
        size *= dim
    if size * numpy_dtype.itemsize > MAX_BYTES:
        where = _where(dtype, shape)
        raise GraphError(f"{where} would take {size * numpy_dtype.itemsize} bytes, more than the limit of {MAX_BYTES}.")
    if content := proto.tensor_content:
        if dtype.kind == "string":
            return _decode_strings(content, size, _where(dtype, shape)).reshape(shape)
        if len(content) != size * numpy_dtype.itemsize:
            raise GraphError(f"{_where(dtype, shape)} needs {size * numpy_dtype.itemsize} bytes but stores {len(content)}.")
        return np.frombuffer(content, numpy_dtype).reshape(shape)
    values = _values(proto, dtype)[:size]  # TensorFlow, too, overlooks what is too much
    if len(values) == size == 1:
        return values.reshape(shape)
    if len(values) < 2 and size:
        empty: Any = b"" if dtype.kind == "string" else 0
        return np.broadcast_to(values.reshape(()) if len(values) else np.full((), empty, numpy_dtype), shape)
    if len(values) < size and size * numpy_dtype.itemsize > MAX_REPEATED:
        where = _where(dtype, shape)
        raise GraphError(f"{where} stores {len(values)} values only; at most {MAX_REPEATED} bytes are made of so few.")
    result = np.empty(size, numpy_dtype)
    result[: len(values)] = values
    result[len(values) :] = values[-1] if len(values) else 0
    return result.reshape(shape)


def _where(dtype: DType, shape: tuple[int, ...]) -> str:
    return f"A constant of dtype {dtype} and shape {list(shape)}"


def _problem(proto: Any, dtype: DType, shape: tuple[int, ...]) -> str:
    """Say in what the number of stored bytes differs from what dtype and shape need; nothing is decoded."""
    stored = len(proto.tensor_content)
    if not stored or dtype.kind in ("string", "handle"):
        return ""
    size = dtype.numpy.itemsize
    for dim in shape:
        size *= dim
    return "" if size == stored else f"needs {size} bytes for shape {list(shape)}, but stores {stored}"


def _values(proto: Any, dtype: DType) -> "np.ndarray[Any, Any]":
    """Return the explicitly listed values, one-dimensional."""
    import numpy as np

    numpy_dtype = dtype.numpy
    if dtype.kind == "float" and dtype.bits <= 8:
        return np.frombuffer(proto.float8_val, numpy_dtype)
    stored = getattr(proto, _FIELDS.get(dtype.name, "int_val"))[:]  # a list: NumPy is slow at reading protobuf's own
    if dtype.kind == "string":
        strings = np.empty(len(stored), object)
        strings[:] = stored
        return strings
    if dtype.kind == "float" and dtype.bits == 16:  # the bits, as integers
        return np.array(stored, np.int64).astype(np.uint16).view(numpy_dtype)
    if dtype.kind == "complex":
        if len(stored) % 2:
            raise GraphError(f"A constant of dtype {dtype} must store pairs of numbers. Received: {len(stored)} numbers")
        half = np.dtype(np.float32 if dtype.bits == 64 else np.float64)
        return np.array(stored, half).view(numpy_dtype)
    if _FIELDS.get(dtype.name) is None:  # small integers, stored wide
        wide = np.array(stored, np.int64)
        return wide.astype(numpy_dtype) if dtype.bits >= 8 else wide.astype(np.int8).astype(numpy_dtype)
    return np.array(stored, numpy_dtype)


def _decode_strings(content: bytes, size: int, where: str) -> "np.ndarray[Any, Any]":
    """Split dense strings: all lengths as base-128 varints, then all bytes."""
    import numpy as np

    if size > len(content):
        raise GraphError(f"{where} needs {size} strings but stores {len(content)} bytes.")
    lengths, position = [], 0
    for _ in range(size):
        length = shift = 0
        while True:
            if position >= len(content) or shift > 28:
                raise GraphError(f"{where} has damaged string lengths.")
            byte = content[position]
            position += 1
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        lengths.append(length)
    if position + sum(lengths) != len(content):
        raise GraphError(f"{where} has strings of {sum(lengths)} bytes but stores {len(content) - position}.")
    result = np.empty(size, object)
    for i, length in enumerate(lengths):
        result[i] = content[position : position + length]
        position += length
    return result
