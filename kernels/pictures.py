"""ImageDecoder: pixels out of the bytes of a picture file. Decoding is work for the CPU, whatever the device."""

import struct
import zlib
from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .registry import kernel

if TYPE_CHECKING:
    from .call import Call

#: More pixels than this are taken for a corrupted header.
_MOST_PIXELS = 1 << 28
_ERRORS = (IndexError, KeyError, OverflowError, ValueError, struct.error, zlib.error)


@kernel("ImageDecoder", moves=True)
def image_decoder(call: "Call", data: Any) -> Any:
    """Decode a BMP, PNG, PNM, TIFF or baseline JPEG file to ``[height, width, channels]``; to nothing if it is corrupted.

    Raises:
        KernelError: If the file is of another format, or of a kind of these that is not decoded.
    """
    import numpy as np

    from .jpeg import decode_jpeg

    content = bytes(data.get() if hasattr(data, "get") else data)
    name = str(call.attr("pixel_format", "RGB"))
    if name not in ("RGB", "BGR", "Grayscale"):
        raise KernelError(f"ImageDecoder knows the pixel formats RGB, BGR and Grayscale. Received: {name!r}")
    formats = ((b"BM", _bmp), (b"\x89PNG", _png), (b"P", _pnm), (b"II*\0", _tiff), (b"MM\0*", _tiff), (b"\xff\xd8", decode_jpeg))
    decode = next((function for start, function in formats if content.startswith(start)), None)
    if decode is None:
        raise KernelError(
            f"ImageDecoder reads BMP, PNG, PNM, TIFF and baseline JPEG. Received: a file that starts {content[:12]!r}"
        )
    try:
        pixels = decode(content)
    except _ERRORS:
        return call.xp.zeros((0, 0, 1 if name == "Grayscale" else 3), call.xp.uint8)
    if name == "Grayscale":
        pixels = _gray(pixels)
    elif pixels.shape[-1] == 1:
        pixels = np.repeat(pixels, 3, -1)
    elif name == "BGR":
        pixels = pixels[..., ::-1]
    return call.xp.asarray(np.ascontiguousarray(pixels))


def _gray(pixels: Any) -> Any:
    """Return luma as BT.601 weighs it, in the 16-bit fixed point that image libraries use."""
    import numpy as np

    if pixels.shape[-1] == 1:
        return pixels
    weighted = pixels.astype(np.uint32) @ np.array([19595, 38470, 7471], np.uint32)
    return ((weighted + 0x8000) >> 16).astype(np.uint8)[..., None]


def array(content: bytes, dtype: Any, start: int, *shape: int) -> Any:
    """Return an array that stands in a file.

    Raises:
        ValueError: If the file ends before, or the shape is absurd.
    """
    import numpy as np

    count = 1
    for size in shape:
        count *= size
    if min(shape) < 0 or count > 4 * _MOST_PIXELS:
        raise ValueError(f"a shape of {shape}")
    return np.frombuffer(content, dtype, count, start).reshape(shape)


def _inflated(content: bytes, most: int) -> bytes:
    """Return decompressed bytes, no more than a picture can have."""
    if most > 16 * _MOST_PIXELS:
        raise ValueError(f"{most} bytes")
    return zlib.decompressobj().decompress(content, max(most, 1))


def _bmp(content: bytes) -> Any:
    start, header, width, height, _, bits, packing = struct.unpack_from("<10xIIiiHHI", content)
    if packing not in (0, 3) or bits not in (8, 24, 32):
        raise KernelError(
            f"ImageDecoder reads BMP files of 8, 24 or 32 bits, not packed. Received: {bits} bits, packing {packing}"
        )
    step = (width * bits // 8 + 3) // 4 * 4
    rows = array(content, "u1", start, abs(height), step)[:, : width * bits // 8].reshape(abs(height), width, bits // 8)
    if height > 0:
        rows = rows[::-1]
    if bits > 8:
        return rows[..., 2::-1]
    palette = array(content, "u1", 14 + header, (start - 14 - header) // 4, 4)
    return palette[rows[..., 0]][..., 2::-1]


def _pnm(content: bytes) -> Any:
    """Read P1 to P6. Header fields are numbers between blanks and comments."""
    import numpy as np

    kind = content[1:2]
    if kind not in b"123456":
        raise KernelError(f"ImageDecoder reads the PNM files P1 to P6. Received: P{kind.decode('latin-1')}")
    plain, bitmap, channels = kind in b"123", kind in b"14", 3 if kind in b"36" else 1
    place = 2
    fields: list[int] = []
    while len(fields) < (2 if bitmap else 3):
        if content[place : place + 1] == b"#":
            place = content.index(b"\n", place)
        elif content[place : place + 1].isspace():
            place += 1
        else:
            end = place
            while content[end : end + 1].isdigit():
                end += 1
            fields.append(int(content[place:end]))
            place = end
    width, height = fields[:2]
    top = 1 if bitmap else fields[2]
    if plain:
        text = content[place:].split()
        if bitmap:
            text = [bytes([digit]) for digit in b"".join(text)]
        pixels = np.array(text[: height * width * channels]).astype(np.int64).reshape(height, width, channels)
    elif bitmap:
        rows = array(content, "u1", place + 1, height, (width + 7) // 8)
        pixels = np.unpackbits(rows, axis=1)[:, :width, None].astype(np.int64)
    else:
        pixels = array(content, "u1" if top < 256 else ">u2", place + 1, height, width, channels).astype(np.int64)
    if bitmap:
        pixels = 1 - pixels
    return pixels.astype(np.uint8) if top == 255 else ((pixels * 255 + top // 2) // top).astype(np.uint8)


def _tiff(content: bytes) -> Any:
    """Read the first image: 8-bit gray or RGB, in strips, plain or deflated."""
    import numpy as np

    order = "<" if content[:2] == b"II" else ">"
    (place,) = struct.unpack_from(order + "I", content, 4)
    (count,) = struct.unpack_from(order + "H", content, place)
    tags: dict[int, tuple[int, ...]] = {}
    for entry in range(place + 2, place + 2 + 12 * count, 12):
        tag, kind, number = struct.unpack_from(order + "HHI", content, entry)
        letter = {1: "B", 3: "H", 4: "I"}.get(kind)
        if letter is not None and number <= _MOST_PIXELS:
            size = struct.calcsize(letter) * number
            at = entry + 8 if size <= 4 else struct.unpack_from(order + "I", content, entry + 8)[0]
            tags[tag] = struct.unpack_from(f"{order}{number}{letter}", content, at)
    width, height, packing = tags[256][0], tags[257][0], tags.get(259, (1,))[0]
    channels, photo = tags.get(277, (1,))[0], tags.get(262, (1,))[0]
    if (
        set(tags.get(258, (1,))) != {8}
        or packing not in (1, 8, 32946)
        or photo > 2
        or 273 not in tags
        or tags.get(284, (1,))[0] != 1
    ):
        raise KernelError(
            "ImageDecoder reads TIFF files of 8-bit gray or RGB pixels, in strips, plain or deflated. "
            f"Received: bits {tags.get(258)}, compression {packing}, photometric {photo}"
        )
    strips = [content[start : start + size] for start, size in zip(tags[273], tags[279], strict=True)]
    pixels = array(
        b"".join(strips if packing == 1 else (_inflated(strip, width * height * channels) for strip in strips)),
        "u1",
        0,
        height,
        width,
        channels,
    )
    if tags.get(317, (1,))[0] == 2:
        pixels = np.cumsum(pixels, 1, dtype=np.uint8)
    pixels = pixels[..., : 1 if channels < 3 else 3]
    return 255 - pixels if photo == 0 else pixels


def _png(content: bytes) -> Any:
    import numpy as np

    place, data, palette, head = 8, [], b"", b""
    while place < len(content):
        size, kind = struct.unpack_from(">I4s", content, place)
        body = content[place + 8 : place + 8 + size]
        if kind == b"IHDR":
            head = body
        elif kind == b"PLTE":
            palette = body
        elif kind == b"IDAT":
            data.append(body)
        place += 12 + size
    width, height, bits, color, _, _, interlaced = struct.unpack(">IIBBBBB", head)
    if interlaced:
        raise KernelError("ImageDecoder reads PNG files that are not interlaced. Received: an interlaced one")
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
    step = (width * channels * bits + 7) // 8
    raw = array(_inflated(b"".join(data), height * (step + 1)), "u1", 0, height, step + 1)
    rows = _unfiltered(raw, max(channels * bits // 8, 1))
    if bits == 16:
        rows = rows[:, ::2]
    elif bits < 8:
        each = np.unpackbits(rows, axis=1).reshape(height, -1, bits)[:, :width] @ (1 << np.arange(bits - 1, -1, -1))
        rows = (each if color == 3 else each * (255 // (2**bits - 1))).astype(np.uint8)
    pixels = rows.reshape(height, width, channels)
    if color == 3:
        return np.frombuffer(palette, np.uint8).reshape(-1, 3)[pixels[..., 0]]
    return pixels[..., : 1 if channels < 3 else 3]


def _unfiltered(raw: Any, step: int) -> Any:
    """Undo PNG's filters: each row starts with the number of its filter; two of them go from byte to byte."""
    import numpy as np

    height, width = raw.shape[0], raw.shape[1] - 1
    rows = np.zeros((height + 1, step + width), np.uint8)  # a row above and a pixel before, of zeros
    for y in range(height):
        kind, line, above = int(raw[y, 0]), raw[y, 1:], rows[y]
        if kind == 0:
            rows[y + 1, step:] = line
        elif kind == 1:
            padded = np.zeros(-(-width // step) * step, np.uint8)
            padded[:width] = line
            rows[y + 1, step:] = np.cumsum(padded.reshape(-1, step), 0, dtype=np.uint8).ravel()[:width]
        elif kind == 2:
            rows[y + 1, step:] = line + above[step:]
        elif kind in (3, 4):
            rows[y + 1] = _from_byte_to_byte(kind, line.tolist(), above.tolist(), step)
        else:
            raise ValueError(f"filter {kind}")
    return rows[1:, step:]


def _from_byte_to_byte(kind: int, line: list[int], above: list[int], step: int) -> list[int]:
    row = [0] * step
    for x, byte in enumerate(line):
        left, up = row[x], above[x + step]
        if kind == 3:
            guess = (left + up) // 2
        else:
            corner = above[x]
            nearest = left + up - corner
            a, b, c = abs(nearest - left), abs(nearest - up), abs(nearest - corner)
            guess = left if a <= b and a <= c else up if b <= c else corner
        row.append((byte + guess) & 255)
    return row
