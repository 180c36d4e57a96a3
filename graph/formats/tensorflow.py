"""TensorFlow GraphDef files: binary (``.pb``) and text (``.pbtxt``)."""

import re
from collections.abc import Sequence
from typing import Any

from ..errors import FormatError
from ..graph import Graph
from .proto import message

#: What protobuf can hold.
MAX_BYTES = 2**31 - 1
# The parser of the text form needs a dozen bytes of memory for each blank.
_BLANK = re.compile(rb"(?<!\s)\s{4000000}")


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
        data = bytes(data).rstrip()
        if _BLANK.search(data):
            raise FormatError("The text has millions of blanks in a row, so it is damaged or hostile.")
        try:
            text_format.Parse(data.decode("utf-8"), proto)
        except (text_format.ParseError, UnicodeDecodeError, ValueError, RecursionError) as error:
            raise FormatError(
                f"This is not a {kind} in protobuf's text form, or it is damaged: {error or 'nested too deeply'}"
            ) from error
        return proto
    if len(data) > MAX_BYTES:
        raise FormatError(f"A {kind} holds at most {MAX_BYTES} bytes. Received: {len(data)} bytes")
    try:
        proto.ParseFromString(bytes(data))
    except (DecodeError, ValueError, RuntimeError) as error:
        raise FormatError(f"This is not a {kind} in protobuf's binary form, or it is damaged or cut off: {error}") from error
    return proto


def write_graph_def(graph: Graph) -> Any:
    """Turn a graph into a GraphDef message, equal to the one read where nothing was changed.

    Type attributes are written from ``Node.types``; those the file left out stay out while they equal the default.
    Formal inputs of the main graph become ``Placeholder`` nodes.

    Raises:
        FormatError: If a GraphDef cannot hold the graph: ops of other domains, omitted operands, repeated node names.
    """
    from .tf_write import write_message

    return write_message(graph)


def serialize(proto: Any, *, text: bool = False) -> bytes:
    """Return a message as the bytes of a file, the same bytes for equal messages.

    The text form has no room for unknown fields, so a message that has some is refused.

    Raises:
        FormatError: If the message has unknown fields (text) or more than 2 GiB (binary).
    """
    from google.protobuf import text_format
    from google.protobuf.message import EncodeError

    if text:
        known = type(proto)()
        known.CopyFrom(proto)
        known.DiscardUnknownFields()
        if known.ByteSize() != proto.ByteSize():
            raise FormatError("The file this graph came from has fields that only the binary form can keep. Save as .pb.")
        return str(text_format.MessageToString(proto)).encode("utf-8")
    try:
        return bytes(proto.SerializeToString(deterministic=True))
    except (EncodeError, ValueError) as error:
        raise FormatError(f"The graph does not fit into one protobuf file of {MAX_BYTES} bytes: {error}") from error
