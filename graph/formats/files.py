"""Files of any format, chosen by suffix: load and save."""

import gzip
import io
import os
import shutil
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from ..errors import AmpgraphError, FormatError, did_you_mean
from ..graph import Graph

_SUFFIXES = {".onnx": "onnx", ".pb": "pb", ".pbtxt": "pbtxt", ".json": "json", ".txt": "text"}
FORMATS = (*_SUFFIXES.values(), "saved_model")
#: The largest file that is read, packed or unpacked: what protobuf can hold.
MAX_BYTES = 2**31 - 1
_CHUNK = 1 << 20


def load(
    path: str | os.PathLike[str],
    *,
    outputs: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    format: str | None = None,
) -> Graph:
    """Load a graph.

    Args:
        path: ``.onnx``, ``.pb`` or ``.pbtxt`` (TensorFlow GraphDef), ``.json``, ``.txt`` (text form), each also with ``.gz``; or the
            folder of a SavedModel.
        outputs: For TensorFlow files, names of the values the graph is run for (``"node"``, ``"node:1"``). None takes a
            SavedModel's signatures, or every result of the nodes of a GraphDef that nobody waits for.
        tags: For SavedModels with several meta graphs, the tags of the one to load.
        format: One of :data:`FORMATS`, whatever the suffix says.

    Returns:
        The graph. ``graph.attributes["preserved"]``, if there, lists nodes that a rewrite must leave in place.

    Raises:
        FormatError: If the file is missing, unreadable, damaged, or its suffix is unknown.
        GraphError: If the file is readable but its graph makes no sense.
    """
    path = Path(path)
    try:
        kind = find_format(path, format)
        if kind == "saved_model":
            from .saved_model import read_saved_model

            return read_saved_model(path, outputs=outputs, tags=tags)
        with open(path, "rb") as file:
            data = read_bytes(file)
        if kind == "onnx" and outputs is None:
            from .onnx import read_model

            return read_model(data, folder=path.parent)
        return decode(data, kind, outputs=outputs)
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror or error}.") from error
    except AmpgraphError as error:
        error.args = (f"{path}: {error}",)
        raise


def save(
    graph: Graph | Sequence[Graph],
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    overwrite: bool | None = None,
    external_data: bool | None = None,
) -> None:
    """Save a graph. The file (or folder) appears complete or not at all; an older one survives errors.

    Args:
        graph: The graph; or, for a SavedModel with several meta graphs, all that shall replace the old ones.
        path: As for :func:`load`. A path without suffix means a SavedModel if the graph came from one.
        format: One of :data:`FORMATS`, whatever the suffix says.
        overwrite: Whether something may be replaced; None replaces files but no folders.
        external_data: For ONNX, whether constants go to a data file beside the model; None does so for those over 2 GB.

    Raises:
        FormatError: If the format cannot hold the graph, the suffix is unknown or the target cannot be written.
    """
    path = Path(path)
    try:
        kind = find_format(path, format, writing=True)
        if kind == "saved_model":
            from .saved_model import write_saved_model

            write_saved_model([graph] if isinstance(graph, Graph) else graph, path, overwrite=bool(overwrite))
            return
        if not isinstance(graph, Graph):
            raise FormatError(f"Format {kind!r} holds one graph. Received: {len(graph)} graphs")
        if path.is_dir():
            raise FormatError(f"The target is a folder; format {kind!r} is a file.")
        if overwrite is False and path.exists():
            raise FormatError("The file already exists. Name another, or allow overwriting.")
        if kind == "onnx" and not path.name.endswith(".gz"):
            from .onnx_save import save_model

            save_model(graph, path, external_data=external_data)
            return
        data = encode(graph, kind)
        write_bytes(path, _compress(data) if path.name.endswith(".gz") else data)
    except OSError as error:
        raise FormatError(f"{path} cannot be written: {error.strerror or error}.") from error
    except AmpgraphError as error:
        error.args = (f"{path}: {error}",)
        raise


def find_format(path: Path, format: str | None = None, *, writing: bool = False) -> str:
    """Return which of :data:`FORMATS` a path means.

    Raises:
        FormatError: If the suffix says nothing, or ``format`` is unknown.
    """
    if format is not None:
        if format not in FORMATS:
            raise FormatError(
                f"Unknown format {format!r}; it must be one of {', '.join(FORMATS)}.{did_you_mean(format, FORMATS)}"
            )
        return format
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix in _SUFFIXES and not (path.is_dir() and not writing):
        return _SUFFIXES[suffix]
    if path.is_dir() or (writing and not suffix):
        return "saved_model"
    raise FormatError(
        f"The suffix {suffix!r} is of no known format. Known are {', '.join(_SUFFIXES)} (each also with .gz) and SavedModel "
        "folders; or say the format."
    )


def decode(data: bytes, kind: str, *, outputs: Sequence[str] | None = None) -> Graph:
    """Read the bytes of a file (not compressed) of any format but ``"saved_model"``.

    Raises:
        FormatError, GraphError: If they make no sense.
    """
    if kind in ("pb", "pbtxt"):
        from .tensorflow import read_graph_def

        return read_graph_def(data, text=kind == "pbtxt", outputs=outputs)
    if outputs is not None:
        raise FormatError(f"Outputs can be named for TensorFlow files only; format {kind!r} says its own.")
    if kind == "onnx":
        from .onnx import read_model

        return read_model(data)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"This is not a text file in UTF-8: {error}") from error
    if kind == "json":
        from .json import parse_json

        return parse_json(text)
    from ..text import parse_graph

    return parse_graph(text)


def encode(graph: Graph, kind: str) -> bytes:
    """Return a graph as the bytes of a file of any format but ``"saved_model"``; equal graphs give equal bytes.

    Raises:
        FormatError: If the format cannot hold the graph.
    """
    if kind in ("pb", "pbtxt"):
        from .tensorflow import serialize, write_graph_def

        return serialize(write_graph_def(graph), text=kind == "pbtxt")
    if kind == "onnx":
        from .onnx import write_model
        from .onnx_save import serialize as serialize_model

        return serialize_model(write_model(graph))
    if kind == "json":
        from .json import print_json

        return print_json(graph).encode("utf-8")
    from ..text import print_graph

    return (print_graph(graph).rstrip("\n") + "\n").encode("utf-8")


def read_bytes(file: BinaryIO) -> bytes:
    """Read a binary stream to its end, unpacking gzip (recognised by content), at most :data:`MAX_BYTES`.

    Raises:
        FormatError: If it is too large, or damaged gzip.
    """
    data = _read_limited(file)
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as unpacked:
            return _read_limited(unpacked)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(f"The gzip file is damaged or cut off: {error}") from error


def _read_limited(file: BinaryIO | gzip.GzipFile) -> bytes:
    parts, size = [], 0
    while part := file.read(_CHUNK):
        size += len(part)
        if size > MAX_BYTES:
            raise FormatError(f"The file holds more than {MAX_BYTES} bytes, which no format here allows.")
        parts.append(part)
    return b"".join(parts)


def _compress(data: bytes) -> bytes:
    """Pack without name and time, so that equal graphs give equal files."""
    return gzip.compress(data, compresslevel=6, mtime=0)


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file through a temporary one beside it that takes its name when complete.

    Raises:
        OSError: If that fails; an older file is then as it was.
    """
    if path.exists() and not path.is_file():  # a pipe or device cannot be replaced
        path.write_bytes(data)
        return
    path = Path(os.path.realpath(path))
    temporary = path.with_name(f".{path.name[:200]}.{os.urandom(6).hex()}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
