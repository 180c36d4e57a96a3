"""Files of any format, chosen by suffix: load and save."""

import gzip
import io
import os
import re
import shutil
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from ..errors import AmpgraphError, FormatError, GraphError, did_you_mean
from ..graph import Graph

_SUFFIXES = {".onnx": "onnx", ".pb": "pb", ".pbtxt": "pbtxt", ".json": "json", ".txt": "text"}
FORMATS = (*_SUFFIXES.values(), "saved_model")
#: The largest file that is read, packed or unpacked: what protobuf can hold.
MAX_BYTES = 2**31 - 1
#: What gzip data may always unpack to, in bytes, and beyond that how many times its own size.
MAX_UNPACKED = 2**26
MAX_RATIO = 100
_CHUNK = 1 << 20
_SURROGATE = re.compile(r"(?<!\\)(?:\\\\)*\\u\{d[89a-f]..\}")


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
        FormatError: If the file is missing, unreadable, damaged, or its suffix is unknown; or if it is packed absurdly well
            (see :data:`MAX_UNPACKED`).
        GraphError: If the file is readable but its graph makes no sense.
    """
    try:
        for name, given in (("outputs", outputs), ("tags", tags)):
            if isinstance(given, str):
                raise FormatError(f"{name} is a list of names, so write {name}=[{given!r}].")
        _check_path(path)
        path = Path(path)
        kind = find_format(path, format)
        if format is None and path.name in ("saved_model.pb", "saved_model.pbtxt"):
            raise FormatError(f"This file is one part of a SavedModel. Name its folder instead: {path.parent}")
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
    prepare: Callable[[Graph], Graph] | None = None,
) -> None:
    """Save a graph. The file (or folder) appears complete or not at all; an older one survives errors.

    Args:
        graph: The graph; or, for a SavedModel with several meta graphs, all that shall replace the old ones.
        path: As for :func:`load`. A path that ends in ``/`` or has no suffix means a SavedModel; one with an unknown suffix
            too, if the graph came from one.
        format: One of :data:`FORMATS`, whatever the suffix says.
        overwrite: Whether something may be replaced; None replaces files but no folders.
        external_data: For ONNX, whether constants go to a data file beside the model; None does so for those over 2 GB,
            and for those over 64 MiB that had a data file when they were loaded.
        prepare: What a graph is passed through if TensorFlow is to read it.

    Raises:
        FormatError: If the format cannot hold the graph, the suffix is unknown or the target cannot be written.
        GraphError: If it is no graph.
    """
    graphs = [graph] if isinstance(graph, Graph) else graph
    if not isinstance(graphs, Sequence) or not all(isinstance(part, Graph) for part in graphs):
        hint = " Its graph is the attribute .graph." if isinstance(getattr(graph, "graph", None), Graph) else ""
        raise GraphError(f"save takes a Graph. Received: {type(graph).__name__}.{hint}")
    from_folder = any(getattr(part.meta, "saved_model", None) for part in graphs)
    try:
        _check_path(path)
        kind = find_format(path, format, writing=True, from_folder=from_folder)
        path = Path(path)
        if prepare is not None and kind in ("pb", "pbtxt", "saved_model"):
            graphs = [prepare(part) for part in graphs]
        if kind == "saved_model":
            from .saved_model import write_saved_model

            write_saved_model(graphs, path, overwrite=bool(overwrite))
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
        data = encode(graphs[0], kind)
        write_bytes(path, compress(data) if is_gzip(path) else data)
    except OSError as error:
        raise FormatError(f"{path} cannot be written: {error.strerror or error}.") from error
    except AmpgraphError as error:
        error.args = (f"{path}: {error}",)
        raise


def _check_path(path: str | os.PathLike[str]) -> None:
    """Refuse what is no name of a file, before the system says so in its own words."""
    if not isinstance(path, str | os.PathLike):
        raise FormatError(f"A file is named by a path. Received: {type(path).__name__}")
    text = os.fspath(path)
    if not text or "\0" in text:
        raise FormatError(f"A file name is not empty and has no NUL character. Received: {text!r}")


def is_gzip(path: str | os.PathLike[str]) -> bool:
    """Whether the name says that the file is packed."""
    return os.fspath(path).lower().endswith(".gz")


def find_format(
    path: str | os.PathLike[str], format: str | None = None, *, writing: bool = False, from_folder: bool = False
) -> str:
    """Return which of :data:`FORMATS` a path means.

    Args:
        path: File or folder; to read it must exist.
        format: The answer, if known.
        writing: Whether the path is to be written.
        from_folder: Whether what is written came from a SavedModel.

    Raises:
        FormatError: If the suffix says nothing, or ``format`` is unknown.
        OSError: If there is nothing to read.
    """
    if format is not None:
        if format not in FORMATS:
            raise FormatError(
                f"Unknown format {format!r}; it must be one of {', '.join(FORMATS)}.{did_you_mean(format, FORMATS)}"
            )
        return format
    if writing and os.fspath(path).endswith(("/", os.sep)):
        return "saved_model"
    path = Path(path)
    if not writing:
        path.stat()
    suffix = Path(path.name[:-3] if is_gzip(path) else path.name).suffix.lower()
    if suffix in _SUFFIXES and not (path.is_dir() and not writing):
        return _SUFFIXES[suffix]
    if path.is_dir() or (writing and (from_folder or not suffix)):
        return "saved_model"
    option = "--to" if writing else "--from"
    raise FormatError(
        f"The suffix {suffix!r} is of no known format. Known are {', '.join(_SUFFIXES)} (each also with .gz) and SavedModel "
        f"folders. To say the format: {option} on the command line, format=… in Python, one of {', '.join(FORMATS)}."
    )


def decode(data: bytes, kind: str, *, outputs: Sequence[str] | None = None) -> Graph:
    """Read the bytes of a file (not compressed) of any format but ``"saved_model"``.

    Raises:
        FormatError, GraphError: If there are none or they make no sense.
    """
    if not data:
        raise FormatError("The file is empty.")
    if kind in ("pb", "pbtxt"):
        from .tensorflow import read_graph_def

        return read_graph_def(data, text=kind == "pbtxt", outputs=outputs)
    if outputs is not None:
        raise FormatError(f"Outputs can be named for TensorFlow files only; format {kind!r} says its own.")
    if kind == "onnx":
        from .onnx import read_model

        return read_model(data)
    try:
        text = data.rstrip().decode("utf-8")
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

        proto = write_graph_def(graph)
        if not proto.ByteSize():  # a file of no bytes would look damaged
            proto.versions.SetInParent()
        return serialize(proto, text=kind == "pbtxt")
    if kind == "onnx":
        from .onnx import write_model
        from .onnx_save import serialize as serialize_model

        return serialize_model(write_model(graph))
    if kind == "json":
        from .json import print_json

        return print_json(graph).encode("utf-8")
    from ..text import print_graph

    text = print_graph(graph).rstrip("\n")
    if found := _SURROGATE.search(text):
        near = text[max(0, found.start() - 20) : found.end() + 20]
        raise FormatError(f"The graph has text that is no Unicode (a lone surrogate). Received: {near!r}")
    return (text + "\n").encode("utf-8")


def read_bytes(file: BinaryIO) -> bytes:
    """Read a binary stream to its end, unpacking gzip (recognised by content), at most :data:`MAX_BYTES`.

    What is packed absurdly well is refused too: more than :data:`MAX_UNPACKED` bytes and :data:`MAX_RATIO` times its size.

    Raises:
        FormatError: If it is too large, or damaged gzip.
    """
    data = _read_limited(file, MAX_BYTES, "which no format here allows")
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as unpacked:
            limit = min(MAX_BYTES, max(MAX_UNPACKED, MAX_RATIO * len(data)))
            return _read_limited(unpacked, limit, f"unpacked from {len(data)}. If you trust it, unpack it first (gunzip)")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(f"The gzip file is damaged or cut off: {error}") from error


def _read_limited(file: BinaryIO | gzip.GzipFile, limit: int, why: str) -> bytes:
    parts, size = [], 0
    at_once = max(_CHUNK, min(os.fstat(file.fileno()).st_size, limit) + 1) if isinstance(file, io.BufferedReader) else _CHUNK
    while part := file.read(at_once):
        size += len(part)
        if size > limit:
            raise FormatError(f"The file holds more than {limit} bytes, {why}.")
        parts.append(part)
    return b"".join(parts)


def compress(data: bytes) -> bytes:
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
    except OSError as error:
        if error.filename == str(temporary):  # a name that nobody gave
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)
