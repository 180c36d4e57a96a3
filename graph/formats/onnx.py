"""ONNX models: ``.onnx`` files."""

from pathlib import Path
from typing import Any

from ..errors import FormatError
from ..graph import Graph

#: What protobuf can hold.
MAX_BYTES = 2**31 - 1


def read_model(data: Any, *, folder: Path | None = None) -> Graph:
    """Read an ONNX model.

    Operands, results and names are as in the file; its initializers are ``ampgraph.Initializer`` nodes before all others, or
    the attribute ``default`` of the graph input of the same name. Attributes that say a dtype (``Cast``'s ``to``) are type
    variables. Everything the IR has no place for (docs, metadata, unknown fields) is kept for :func:`write_model`. Constants
    are decoded when asked for; those in data files stay there, mapped into memory.

    Args:
        data: The bytes of a file, or a ``ModelProto``.
        folder: Where the model's external data lies.

    Returns:
        The main graph; ``functions`` hold the model-local functions by ``"domain:name"``, ``opsets`` the imported versions.

    Raises:
        FormatError: If the data is no ONNX model, or says something that makes no sense or contradicts itself.
    """
    from onnx import ModelProto

    from .onnx_read import read_message
    from .onnx_tensor import Folder
    from .onnx_wire import cut

    elements: dict[int, memoryview] = {}
    if isinstance(data, bytes | bytearray | memoryview):
        rest, elements = cut(bytes(data))
        model = parse(rest)
    else:
        model = ModelProto()
        model.CopyFrom(data)
    return read_message(model, Folder(folder), elements)


def parse(data: bytes | bytearray | memoryview) -> Any:
    """Parse bytes as a ``ModelProto``.

    Raises:
        FormatError: If they are damaged or something else.
    """
    from google.protobuf.message import DecodeError
    from onnx import ModelProto

    if len(data) > MAX_BYTES:
        raise FormatError(f"An ONNX file holds at most {MAX_BYTES} bytes. Received: {len(data)} bytes")
    model = ModelProto()
    try:
        model.ParseFromString(bytes(data))
    except (DecodeError, ValueError, RuntimeError) as error:
        raise FormatError(f"This is not an ONNX model, or it is damaged or cut off: {error}") from error
    return model


def write_model(graph: Graph) -> Any:
    """Turn a graph into a ``ModelProto``, equal to the one read where nothing was changed; constants lie inside.

    Nodes are written in topological order, the file's order where it is one.

    Raises:
        FormatError: If ONNX cannot hold the graph.
        GraphError: If there is a cycle.
    """
    from .onnx_write import write_message

    return write_message(graph)
