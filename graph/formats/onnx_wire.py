"""The elements of large initializers, cut out of the bytes of an ONNX file and put into them, so that protobuf never copies them.

Source of the format: protobuf's description of its encoding. A message is a row of fields, each a number with a kind, then an
integer, 4 or 8 bytes, or a length and so many bytes; an inner message is such bytes.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..types import Tensor

#: Elements of fewer bytes stay in their messages.
LEAST = 1 << 14
# Numbers of ModelProto.graph, GraphProto.initializer and TensorProto.raw_data.
_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9

#: Bytes of a file, one piece after the other; a tensor stands for its elements.
Pieces = list[memoryview | Tensor]
_Change = Callable[[int, int], Pieces | None]


def cut(data: bytes) -> tuple[bytes, dict[int, memoryview]]:
    """Take the elements of large initializers out of a model, leaving none.

    Returns:
        The bytes that remain, and the elements by the initializer's place in the main graph. Damaged data remains whole, for
        protobuf to say what is wrong.
    """
    whole, count, found = memoryview(data), -1, dict[int, memoryview]()

    def change(begin: int, end: int) -> Pieces | None:
        nonlocal count
        count += 1
        rows = [row for row in _fields(whole, begin, end) if row[1] == _RAW_DATA] if end - begin > LEAST else []
        if len(rows) != 1 or rows[0][3] - rows[0][2] < LEAST:
            return None
        found[count] = whole[rows[0][2] : rows[0][3]]
        return _rewrite(whole, begin, end, _RAW_DATA, lambda begin, end: [])

    try:
        pieces: Any = _change_initializers(whole, change)
    except (ValueError, IndexError):
        return data, {}
    return b"".join(pieces) if found else data, found


def fill(data: bytes, tensors: Mapping[int, Tensor]) -> Pieces:
    """Put elements into a model: those of the main graph's initializers at these places, which have empty ``raw_data``."""
    whole, count = memoryview(data), -1

    def change(begin: int, end: int) -> Pieces | None:
        nonlocal count
        count += 1
        tensor = tensors.get(count)
        return None if tensor is None else _rewrite(whole, begin, end, _RAW_DATA, lambda begin, end: [tensor])

    return _change_initializers(whole, change)


def _change_initializers(data: memoryview, change: _Change) -> Pieces:
    pieces = _rewrite(data, 0, len(data), _GRAPH, lambda begin, end: _rewrite(data, begin, end, _INITIALIZER, change))
    return [data] if pieces is None else pieces


def _rewrite(data: memoryview, begin: int, end: int, number: int, change: _Change) -> Pieces | None:
    """Return a message with other contents of the fields ``number``; None if ``change`` gives None for all of them."""
    pieces: Pieces = []
    done = begin
    for start, found, content, stop in _fields(data, begin, end):
        if found == number and (new := change(content, stop)) is not None:
            head = _varint(number << 3 | 2) + _varint(sum(piece.nbytes for piece in new))
            pieces += [data[done:start], memoryview(head), *new]
            done = stop
    return [*pieces, data[done:end]] if pieces else None


def _fields(data: memoryview, begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield where each field starts, its number (0 unless it is bytes), and where its content begins and ends.

    Raises:
        ValueError, IndexError: If the bytes are no fields.
    """
    while begin < end:
        tag, content = _read_varint(data, begin)
        kind = tag & 7
        if kind == 2:
            length, content = _read_varint(data, content)
            stop = content + length
        elif kind == 0:
            _, stop = _read_varint(data, content)
        elif kind in (1, 5):
            stop = content + (8 if kind == 1 else 4)
        else:
            raise ValueError("groups are not used here")
        if stop > end:
            raise ValueError("a field is cut off")
        yield begin, tag >> 3 if kind == 2 else 0, content, stop
        begin = stop


def _read_varint(data: memoryview, place: int) -> tuple[int, int]:
    number = data[place]
    if number < 128:
        return number, place + 1
    number &= 127
    for shift in range(7, 70, 7):
        place += 1
        number |= (data[place] & 127) << shift
        if data[place] < 128:
            return number, place + 1
    raise ValueError("an integer has too many bytes")


def _varint(number: int) -> bytes:
    result = bytearray()
    while number > 127:
        result.append(number & 127 | 128)
        number >>= 7
    result.append(number)
    return bytes(result)
