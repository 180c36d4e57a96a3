"""TensorFlow GraphDef files: binary (``.pb``) and text (``.pbtxt``)."""

from collections.abc import Sequence
from typing import Any

from ..errors import FormatError
from ..graph import Graph
from .proto import message

#: What protobuf can hold.
MAX_BYTES = 2**31 - 1


def read_graph_def(data: Any, *, text: bool = False, name: str = "graph", outputs: Sequence[str] | None = None) -> Graph:
    """Read a GraphDef.

    Node order, spelling of inputs, explicit defaults, debug information, unknown ops and attributes, and (binary) unknown
    fields are kept, so that :func:`write_graph_def` gives an equal message. Constants are decoded when asked for.

    Args:
        data: The bytes of a file, or a GraphDef message of any Python protobuf class (ours or TensorFlow's).
        text: Whether the bytes are in protobuf's text form.
        name: Name of the graph.
        outputs: Names of the values the graph is run for (``"node"`` or ``"node:1"``); nodes without results are noted in
            ``graph.attributes["preserved"]``. None means every result of the nodes that nobody waits for.

    Returns:
        The main graph; its ``functions`` hold the library. ``attributes`` have ``producer``, ``min_consumer``,
        ``bad_consumers`` where the file says them.

    Raises:
        FormatError: If the data is no GraphDef, or its nodes do not fit together.
        GraphError: If there is a cycle that is no TensorFlow loop.
    """
    from .tf_read import read_message

    if not isinstance(data, bytes | bytearray | memoryview):
        data = data.SerializeToString()
    return read_message(parse("GraphDef", data, text), name=name, outputs=outputs)


def parse(kind: str, data: bytes | bytearray | memoryview, text: bool) -> Any:
    """Parse bytes as the message ``kind``.

    Raises:
        FormatError: If they are damaged or something else.
    """
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    proto = message(kind)()
    if text:
        try:
            text_format.Parse(bytes(data).decode("utf-8"), proto)
        except (text_format.ParseError, UnicodeDecodeError, ValueError, RecursionError) as error:
            raise FormatError(f"This is not a {kind} in protobuf's text form, or it is damaged: {error or 'nested too deeply'}") from error
        return proto
    if len(data) > MAX_BYTES:
        raise FormatError(f"A {kind} holds at most {MAX_BYTES} bytes. Received: {len(data)} bytes")
    try:
        proto.ParseFromString(bytes(data))
    except (DecodeError, ValueError, RuntimeError) as error:
        raise FormatError(f"This is not a {kind} in protobuf's binary form, or it is damaged or cut off: {error}") from error
    return proto
