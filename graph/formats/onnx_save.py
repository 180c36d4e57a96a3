"""Saving ONNX models, with constants inside the file or in a data file beside it.

A data file gets a name that no file has. Both files are written under temporary names, ``.<target>.ampgraph-…``; the data file
takes its name first, then the model; data files of the model that was replaced go last. A note, itself such a temporary,
lists the data files meanwhile, so that the next run tidies up after one that was killed at any moment.
"""

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import FormatError, GraphError
from ..graph import Graph
from ..types import Tensor
from .onnx import MAX_BYTES, parse
from .onnx_meta import GraphMeta
from .onnx_tensor import External, tensor_bytes, write_head, write_tensor
from .onnx_wire import LEAST, Pieces, fill
from .onnx_write import initializers_of, write_message

#: Models whose constants take more bytes get a data file: what protobuf can hold, less room for all else.
MAX_INSIDE = MAX_BYTES - 2**27
#: The same for models that had a data file when they were loaded: a large one is never put together in memory.
MAX_APART = 1 << 26
#: Smaller constants stay inside the model.
MIN_OUTSIDE = 1024
#: Constants in a data file begin at multiples of this, those of at least a page at multiples of a page, to be mapped.
_ALIGNMENT, _PAGE = 64, 4096
_CHUNK = 1 << 24
_TOO_LARGE = f"The model does not fit into one file of {MAX_BYTES} bytes; save it with external data."


def save_model(graph: Graph, path: Path, *, external_data: bool | None = None) -> None:
    """Write an ONNX file; it appears complete or not at all, and an older one survives errors.

    Args:
        graph: The graph.
        path: The file.
        external_data: Whether constants of :data:`MIN_OUTSIDE` bytes or more go to a data file; None does so when the model
            would not fit into one file, or had a data file and is not small.

    Raises:
        FormatError, GraphError: If ONNX cannot hold the graph, or it does not fit into one file but must.
        OSError: If the files cannot be written.
    """
    target = Path(os.path.realpath(path))
    if external_data is None:
        limit = MAX_APART if isinstance(graph.meta, GraphMeta) and graph.meta.external else MAX_INSIDE
        external_data = sum(tensor.nbytes for tensor in initializers_of(graph)) > limit
    if not target.exists() or target.is_file():
        tidy(target)
    elif external_data:
        raise FormatError("A model with external data can only be written to a file.")
    stem = f".{target.name[:150]}.ampgraph-{os.getpid()}-{os.urandom(6).hex()}"
    model_part, data_part, note = (target.with_name(stem + suffix) for suffix in ("", ".data", ".note"))
    pieces: Pieces = [] if external_data else _put_together(graph)
    if target.exists() and not target.is_file():  # a pipe or device cannot be replaced
        with open(target, "wb") as file:
            _write_pieces(pieces, file)
        return
    old = _data_files(target)
    name = ""
    try:
        if external_data:
            name = _free_name(target)
            with open(data_part, "xb") as file:
                store = _Store(file, name)
                model = write_message(graph, store)
                _sync(file)
            pieces = [memoryview(serialize(model))]
        if name or old:
            _write(note, [memoryview(json.dumps([name, *old]).encode())])
        _write(model_part, pieces)
        if target.exists():
            shutil.copymode(target, model_part)
        if name:
            data_part.rename(target.with_name(name))
        model_part.replace(target)
        _remove_unused(target, [name, *old])
    except BaseException:
        if name and not data_part.exists():
            _remove_unused(target, [name])
        raise
    finally:
        for part in (model_part, data_part, note):
            part.unlink(missing_ok=True)


def loaded_bytes(graph: Graph, path: Path) -> int:
    """Return how many bytes the file ``path``, from which a model was loaded, and its data files have."""
    mapped = {
        id(source.data): len(source.data)
        for tensor in initializers_of(graph)
        if isinstance(source := tensor.source, External) and source.proto.data_location == 1
    }
    return path.stat().st_size + sum(mapped.values())


def saved_bytes(path: Path) -> int:
    """Return how many bytes a model written by :func:`save_model` and its data files have."""
    target = Path(os.path.realpath(path))
    return sum(file.stat().st_size for file in [target, *map(target.with_name, _data_files(target))])


def serialize(model: Any) -> bytes:
    """Return a ``ModelProto`` as the bytes of a file.

    Raises:
        FormatError: If it has more bytes than protobuf can hold.
    """
    from google.protobuf.message import EncodeError

    try:
        data = bytes(model.SerializeToString(deterministic=True))
    except (EncodeError, ValueError) as error:
        raise FormatError(_TOO_LARGE) from error
    if len(data) > MAX_BYTES:
        raise FormatError(_TOO_LARGE)
    return data


class _Store:
    """Writes the bytes of initializers to a data file, one after the other, equal sources once."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.file = file
        self.name = name
        self.end = 0

    def __call__(self, tensor: Tensor, proto: Any) -> None:
        if hasattr(tensor.source, "indices") or tensor.dtype.kind == "string" or tensor.nbytes < MIN_OUTSIDE:
            write_tensor(tensor, proto)
            return
        data = tensor_bytes(tensor)
        step = _PAGE if len(data) >= _PAGE else _ALIGNMENT
        offset = -(-self.end // step) * step
        self.file.write(b"\0" * (offset - self.end))
        for start in range(0, len(data), _CHUNK):
            self.file.write(data[start : start + _CHUNK])
        self.end = offset + len(data)
        _write_external_head(tensor, proto)
        proto.data_location = 1
        for key, value in (("location", self.name), ("offset", str(offset)), ("length", str(len(data)))):
            entry = proto.external_data.add()
            entry.key, entry.value = key, value


def _write_external_head(tensor: Tensor, proto: Any) -> None:
    """Fill in all but the elements, keeping docs and metadata of the file's own message."""
    write_head(tensor, proto)
    source: Any = tensor.source
    if hasattr(source, "raw_data"):
        if source.HasField("doc_string"):
            proto.doc_string = source.doc_string
        if hasattr(source, "metadata_props"):
            proto.metadata_props.extend(source.metadata_props)


def _put_together(graph: Graph) -> Pieces:
    """Return the bytes of a model with all its constants inside; the elements of large ones are not made yet.

    Raises:
        FormatError: If it has more bytes than protobuf can hold.
    """
    large: list[tuple[Any, Tensor]] = []

    def store(tensor: Tensor, proto: Any) -> None:
        if tensor.nbytes < LEAST or not (tensor.source is None or isinstance(tensor.source, External)):
            write_tensor(tensor, proto)
        else:
            write_head(tensor, proto)
            proto.raw_data = b""
            large.append((proto, tensor))

    model = write_message(graph, store)
    places = {id(proto): i for i, proto in enumerate(model.graph.initializer)}
    for proto, tensor in large:
        if id(proto) not in places:  # of a body
            proto.raw_data = bytes(tensor_bytes(tensor))
    pieces = fill(serialize(model), {places[id(proto)]: tensor for proto, tensor in large if id(proto) in places})
    if sum(piece.nbytes for piece in pieces) > MAX_BYTES:
        raise FormatError(_TOO_LARGE)
    return pieces


def _write(path: Path, pieces: Pieces) -> None:
    with open(path, "xb") as file:
        _write_pieces(pieces, file)
        _sync(file)


def _write_pieces(pieces: Pieces, file: BinaryIO) -> None:
    for piece in pieces:
        data = tensor_bytes(piece) if isinstance(piece, Tensor) else piece
        if data.nbytes != piece.nbytes:
            raise GraphError(f"A constant of {piece.nbytes} bytes holds an array of {data.nbytes} bytes.")
        file.write(data)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


# ---- data files ---------------------------------------------------------------------------------------------------------


def _free_name(target: Path) -> str:
    """Return a name for the data file that no file has."""
    k, name = 0, f"{target.name}.data"
    while os.path.lexists(target.with_name(name)):
        k += 1
        name = f"{target.name}.data.{k}"
    return name


def _is_ours(target: Path, name: str) -> bool:
    """Whether a data file of this name is made by :func:`save_model` for ``target``."""
    start, data, number = name.removeprefix(target.name).partition(".data")
    is_named_so = bool(data) and name.startswith(target.name) and not start
    return is_named_so and (not number or (number[0] == "." and number[1:].isdecimal()))


def _data_files(target: Path) -> list[str]:
    """Return the data files, made by :func:`save_model`, that the model at ``target`` refers to."""
    folder = target.parent
    if not target.is_file() or not any(_is_ours(target, name) for name in os.listdir(folder)):
        return []
    try:
        model = parse(target.read_bytes())
    except FormatError:
        return []
    names: set[str] = set()
    graphs = [model.graph]
    for graph in graphs:  # grows while it is walked
        for tensor in graph.initializer:
            names.update(entry.value for entry in tensor.external_data if entry.key == "location")
        graphs += [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]
    return sorted(name for name in names if _is_ours(target, name) and (folder / name).is_file())


def _remove_unused(target: Path, names: Iterable[str]) -> None:
    names = [name for name in names if _is_ours(target, name)]
    used = _data_files(target) if names else []
    for name in names:
        path = target.with_name(name)
        if name not in used and path.is_file() and not path.is_symlink():
            path.unlink()


def tidy(target: Path) -> None:
    """Remove what killed runs left beside ``target``: temporary files, and data files that no model refers to."""
    start = f".{target.name[:150]}.ampgraph-"
    if not target.parent.is_dir():
        return
    left = [name for name in os.listdir(target.parent) if name.startswith(start)]
    for name in left:
        path = target.with_name(name)
        process = name[len(start) :].partition("-")[0]
        if not process.isdecimal() or _is_running(int(process)) or not path.is_file() or path.is_symlink():
            continue
        if name.endswith(".note"):
            try:
                names = json.loads(path.read_bytes())
            except ValueError:
                names = []
            if isinstance(names, list):
                _remove_unused(target, [item for item in names if isinstance(item, str) and os.path.basename(item) == item])
        path.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
