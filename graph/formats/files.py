"""Files of any format, chosen by suffix: load and save."""

import gzip
import io
import os
import zlib
from collections.abc import Sequence
from pathlib import Path

from ..errors import FormatError
from ..graph import Graph
from .tensorflow import MAX_BYTES

_SUFFIXES = {".pb": "pb", ".pbtxt": "pbtxt", ".json": "json", ".txt": "text"}
FORMATS = (*_SUFFIXES.values(), "saved_model")


def load(
    path: str | os.PathLike[str],
    *,
    outputs: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    format: str | None = None,
) -> Graph:
    """Load a graph.

    Args:
        path: ``.pb`` or ``.pbtxt`` (TensorFlow GraphDef), ``.json``, ``.txt`` (text form), each also with ``.gz``; or the
            folder of a SavedModel.
        outputs: For TensorFlow files, names of the values the graph is run for; see
            :func:`~.tensorflow.read_graph_def`. None takes a SavedModel's signatures or a GraphDef's unread results.
        tags: For SavedModels with several meta graphs, the tags of the one to load.
        format: ``"pb"``, ``"pbtxt"``, ``"json"``, ``"text"`` or ``"saved_model"``, whatever the suffix says.

    Raises:
        FormatError: If the file is missing, unreadable, damaged, or its suffix is unknown.
        GraphError: If the file is readable but its graph makes no sense.
    """
    path = Path(path)
    kind = _format(path, format)
    data = _read(path)
    from .tensorflow import read_graph_def

    return read_graph_def(data, text=kind == "pbtxt", outputs=outputs)


def _format(path: Path, format: str | None) -> str:
    if format is not None:
        return format
    return _SUFFIXES[Path(path.name.removesuffix(".gz")).suffix]


def _read(path: Path) -> bytes:
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    return data
