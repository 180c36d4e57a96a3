"""Constants of ONNX files: ``TensorProto`` and ``SparseTensorProto`` to :class:`Tensor` and back.

Source of the rules: the comments of the standard's ``onnx.proto``. Elements of less than a byte are packed, lowest bits first.
"""

import math
import mmap
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..dtypes import DType, int64
from ..errors import FormatError, GraphError
from ..schemas.onnx import dtype_of
from ..types import Tensor

if TYPE_CHECKING:
    import numpy as np

#: The largest sparse constant that is ever expanded, in bytes; larger ones only occur in hostile files.
MAX_BYTES = 2**34
_MAX_RANK = 64
#: NumPy makes an array of so few numbers faster from a list than from protobuf's buffer.
_FEW = 32

_FIELDS = {
    "float32": "float_data",
    "complex64": "float_data",
    "float64": "double_data",
    "complex128": "double_data",
    "int64": "int64_data",
    "uint32": "uint64_data",
    "uint64": "uint64_data",
    "string": "string_data",
}


def check_text(*texts: str | bytes) -> None:
    """Make sure that strings of the file are text: protobuf gives those that are not as bytes.

    Raises:
        FormatError: If one is not.
    """
    if bytes in map(type, texts):
        text = next(text for text in texts if isinstance(text, bytes))
        raise FormatError(f"The file has a name that is not UTF-8; it is damaged. Received: {text[:60]!r}")


class Folder:
    """Where the external data of one model lies; each file is mapped once and stays mapped.

    Args:
        path: The model's folder, or None when external data cannot be had.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._files: dict[str, mmap.mmap | bytes] = {}

    @property
    def is_used(self) -> bool:
        """Whether a data file was asked for."""
        return bool(self._files)

    def data(self, location: str) -> "mmap.mmap | bytes":
        """Return the bytes of a data file, mapped into memory.

        Raises:
            FormatError: If the location leads out of the folder, over a link or to no regular file.
        """
        found = self._files.get(location)
        if found is None:
            found = self._files[location] = self._open(location)
        return found

    def _open(self, location: str) -> "mmap.mmap | bytes":
        if self.path is None:
            raise FormatError(f"External data {location!r} can only be read with a model that is a file. Name the file instead.")
        parts = location.replace("\\", "/").split("/")
        if not location or location.startswith(("/", "\\")) or ".." in parts or ":" in parts[0] or "\0" in location:
            raise FormatError(f"External data must lie in the model's folder. Received: {location!r}")
        root = os.path.realpath(self.path)
        path = os.path.join(root, *[part for part in parts if part not in ("", ".")])
        if os.path.realpath(path) != path:
            raise FormatError(f"External data {location!r} is, or is reached over, a symbolic link; that is not allowed.")
        try:
            if not os.path.isfile(path):
                raise FormatError(f"External data {location!r} is missing: no such file in {self.path}.")
            with open(path, "rb") as file:
                if not os.fstat(file.fileno()).st_size:
                    return b""
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise FormatError(f"External data {location!r} cannot be read: {error.strerror or error}.") from error


class External:
    """The source of a tensor whose bytes are not in the file's message of it: the message, and the bytes.

    They lie in a data file, which is mapped, or were cut out of the model's own.
    """

    __slots__ = ("data", "length", "offset", "proto")

    def __init__(self, proto: Any, data: "mmap.mmap | bytes | memoryview", offset: int, length: int) -> None:
        self.proto = proto
        self.data = data
        self.offset = offset
        self.length = length

    def view(self) -> memoryview:
        """Return the bytes, without copying them."""
        return memoryview(self.data)[self.offset : self.offset + self.length]


def read_tensor(proto: Any, folder: Folder, where: str, elements: memoryview | None = None) -> Tensor:
    """Return a ``TensorProto`` as a tensor whose bytes are looked at when ``array()`` is called.

    Args:
        proto: The message; the tensor keeps it as its source.
        folder: Where external data lies.
        where: What the tensor is, for messages: ``"Initializer 'w'"``.
        elements: Its ``raw_data``, if it was taken out of the message.

    Raises:
        FormatError: If dtype, shape and stored data do not fit together, or external data cannot be had.
    """
    try:
        dtype = dtype_of(proto.data_type, where)
    except GraphError as error:
        raise FormatError(str(error)) from error
    shape = tuple(proto.dims)
    if len(shape) > _MAX_RANK or (shape and min(shape) < 0):
        raise FormatError(f"{where} must have at most {_MAX_RANK} sizes, none negative. Received: {list(shape[:99])}")
    if proto.HasField("segment"):
        raise FormatError(f"{where} is split into segments, which is not supported.")
    size = math.prod(shape)
    length = (size * dtype.bits + 7) // 8
    if proto.data_location == 1:
        external = _read_external(proto, folder, dtype, length, where)
        return Tensor(dtype, shape, partial(_from_view, external, dtype, shape), source=external)
    if proto.HasField("raw_data"):
        if dtype.kind == "string" or len(proto.raw_data if elements is None else elements) != length:
            raise FormatError(
                f"{where} of dtype {dtype} and shape {list(shape)} needs {length} bytes, but stores another number."
            )
        if elements is not None:
            inside = External(proto, elements, 0, length)
            return Tensor(dtype, shape, partial(_from_view, inside, dtype, shape), source=inside)
        return Tensor(dtype, shape, partial(_from_raw, proto, dtype, shape), source=proto)
    count = len(getattr(proto, _FIELDS.get(dtype.name, "int32_data")))
    if count != _stored_count(dtype, size):
        wanted = _stored_count(dtype, size)
        raise FormatError(f"{where} of dtype {dtype} and shape {list(shape)} needs {wanted} numbers, but stores {count}.")
    return Tensor(dtype, shape, partial(_from_fields, proto, dtype, shape), source=proto)


def _stored_count(dtype: DType, size: int) -> int:
    """Return how many numbers of the typed field hold ``size`` elements."""
    if dtype.kind == "complex":
        return 2 * size
    return (size * dtype.bits + 7) // 8 if dtype.bits in (2, 4) else size


def _read_external(proto: Any, folder: Folder, dtype: DType, length: int, where: str) -> External:
    check_text(*[text for entry in proto.external_data for text in (entry.key, entry.value)])
    entries = {entry.key: entry.value for entry in proto.external_data}
    numbers = {}
    for key in ("offset", "length"):
        text = entries.get(key, "0" if key == "offset" else str(length))
        if not text.isdecimal() or len(text) > 18:
            raise FormatError(f"{where} has an {key} of external data that is no number. Received: {text[:60]!r}")
        numbers[key] = int(text)
    if dtype.kind == "string":
        raise FormatError(f"{where} has strings as external data, which ONNX does not allow.")
    try:
        data = folder.data(entries.get("location", ""))
    except FormatError as error:
        raise FormatError(f"{where}: {error}") from error
    if numbers["length"] != length:
        raise FormatError(f"{where} needs {length} bytes of external data. Received: length {numbers['length']}")
    if numbers["offset"] + length > len(data):
        end = numbers["offset"] + length
        raise FormatError(f"{where} lies at bytes {numbers['offset']} to {end} of a data file of {len(data)} bytes.")
    return External(proto, data, numbers["offset"], length)


def _from_view(external: External, dtype: DType, shape: tuple[int, ...]) -> "np.ndarray[Any, Any]":
    return _of_bytes(external.view(), dtype, shape)


def _from_raw(proto: Any, dtype: DType, shape: tuple[int, ...]) -> "np.ndarray[Any, Any]":
    return _of_bytes(proto.raw_data, dtype, shape)


def _of_bytes(data: Any, dtype: DType, shape: tuple[int, ...]) -> "np.ndarray[Any, Any]":
    import numpy as np

    size = math.prod(shape)
    if len(data) != (size * dtype.bits + 7) // 8:
        raise GraphError(f"A constant of dtype {dtype} and shape {list(shape)} stores {len(data)} bytes, which do not fit.")
    if dtype.bits >= 8:
        return np.ndarray(shape, dtype.numpy, data)
    bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[: size * dtype.bits].reshape(size, dtype.bits)
    numbers = np.packbits(bits, axis=1, bitorder="little").reshape(size)
    if dtype.kind == "int":  # two's complement
        wide = numbers.astype(np.int8)
        return np.where(wide >= 1 << dtype.bits - 1, wide - (1 << dtype.bits), wide).astype(dtype.numpy).reshape(shape)
    return (numbers.view(dtype.numpy) if dtype.kind == "float" else numbers.astype(dtype.numpy)).reshape(shape)


def _stored(data: "np.ndarray[Any, Any]", dtype: DType) -> "np.ndarray[Any, Any]":
    """Return an array as files hold it: little-endian, elements of less than a byte packed."""
    import numpy as np

    if dtype.bits >= 8:
        return data if data.dtype.byteorder != ">" else data.astype(data.dtype.newbyteorder("<"))
    flat = np.ascontiguousarray(data).reshape(-1)
    numbers = flat.view(np.uint8) if dtype.kind == "float" else flat.astype(np.int8).view(np.uint8)
    bits = np.unpackbits(numbers.reshape(-1, 1), axis=1, bitorder="little")[:, : dtype.bits]
    return np.packbits(bits.reshape(-1), bitorder="little")


def _from_fields(proto: Any, dtype: DType, shape: tuple[int, ...]) -> "np.ndarray[Any, Any]":
    import numpy as np

    stored = getattr(proto, _FIELDS.get(dtype.name, "int32_data"))
    if len(stored) < _FEW:
        stored = stored[:]
    if dtype.kind == "string":
        strings = np.empty(len(stored), object)
        strings[:] = list(stored)
        return strings.reshape(shape)
    if dtype.kind == "complex":
        half = np.dtype(np.float32 if dtype.bits == 64 else np.float64)
        return np.array(stored, half).view(dtype.numpy).reshape(shape)
    if dtype.name in _FIELDS:
        return np.array(stored, np.uint64 if dtype.kind == "uint" else dtype.numpy).astype(dtype.numpy, copy=False).reshape(shape)
    wide = np.array(stored, np.int64)
    if dtype.bits in (2, 4):  # packed bytes, one in each number
        return _of_bytes(wide.astype(np.uint8).tobytes(), dtype, shape)
    if dtype.kind == "float":  # the bits, as integers
        return wide.astype(np.uint16 if dtype.bits == 16 else np.uint8).view(dtype.numpy).reshape(shape)
    return wide.astype(dtype.numpy).reshape(shape)


def read_sparse(proto: Any, folder: Folder, where: str) -> Tensor:
    """Return a ``SparseTensorProto`` as a tensor that is expanded when ``array()`` is called.

    Raises:
        FormatError: If shape, indices and values do not fit together.
    """
    values = read_tensor(proto.values, folder, f"The values of {where}")
    indices = read_tensor(proto.indices, folder, f"The indices of {where}")
    shape = tuple(proto.dims)
    if not shape or len(shape) > _MAX_RANK or min(shape) < 0:
        raise FormatError(f"{where} must have 1 to {_MAX_RANK} sizes, none negative. Received: {list(shape[:99])}")
    count = values.shape[0] if len(values.shape) == 1 else -1
    if indices.dtype is not int64 or indices.shape not in ((count,), (count, len(shape))):
        raise FormatError(f"{where} has values of shape {list(values.shape)} but indices of shape {list(indices.shape)}.")
    return Tensor(values.dtype, shape, partial(_expand, values, indices, shape), source=proto)


def _expand(values: Tensor, indices: Tensor, shape: tuple[int, ...]) -> "np.ndarray[Any, Any]":
    import numpy as np

    result = Tensor(values.dtype, shape, lambda: None)  # type: ignore[arg-type,return-value]
    if result.size * max(8, values.dtype.bits) // 8 > MAX_BYTES:
        raise GraphError(f"A sparse constant of shape {list(shape)} is larger than {MAX_BYTES} bytes when expanded.")
    places = indices.array()
    if places.ndim == 2:
        if ((places < 0) | (places >= np.array(shape))).any():
            raise GraphError(f"A sparse constant of shape {list(shape)} has indices out of range.")
        places = np.ravel_multi_index(tuple(places.T), shape)
    if ((places < 0) | (places >= result.size)).any():
        raise GraphError(f"A sparse constant of shape {list(shape)} has indices out of range.")
    is_text = values.dtype.kind == "string"
    dense = np.full(result.size, b"" if is_text else 0, values.dtype.numpy)
    dense[places] = values.array()
    return dense.reshape(shape)


def write_tensor(tensor: Tensor, proto: Any) -> None:
    """Fill the empty ``TensorProto`` or ``SparseTensorProto``: from the tensor's own source if it has one, else as raw data.

    Raises:
        FormatError: If ONNX has no such dtype.
        GraphError: If the tensor cannot be read.
    """
    source = tensor.source
    if isinstance(source, type(proto)):
        proto.CopyFrom(source)
        return
    write_head(tensor, proto)
    if isinstance(source, External):
        proto.raw_data = bytes(source.view())
    elif tensor.dtype.kind == "string":
        data = tensor.array().ravel().tolist()
        proto.string_data.extend(item if isinstance(item, bytes) else str(item).encode() for item in data)
    else:
        proto.raw_data = _stored(tensor.array(), tensor.dtype).tobytes()


def write_head(tensor: Tensor, proto: Any) -> None:
    """Fill in all of a ``TensorProto`` but its elements."""
    if not tensor.dtype.onnx:
        raise FormatError(f"ONNX has no dtype {tensor.dtype}; convert the constant before writing an ONNX file.")
    if isinstance(tensor.source, External):
        proto.CopyFrom(tensor.source.proto)
        for field in ("external_data", "data_location", "raw_data"):
            proto.ClearField(field)
        return
    proto.data_type = tensor.dtype.onnx
    proto.dims.extend(tensor.shape)


def tensor_bytes(tensor: Tensor) -> memoryview:
    """Return the elements as a file holds them, without copying them if they are stored so.

    Raises:
        GraphError: If the tensor cannot be read.
    """
    import numpy as np

    if isinstance(tensor.source, External):
        return tensor.source.view()
    return np.ascontiguousarray(_stored(tensor.array(), tensor.dtype)).reshape(-1).view(np.uint8).data
