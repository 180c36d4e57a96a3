"""Baseline JPEG: Huffman codes are read one after another, all blocks are then transformed and coloured at once.

Arithmetic is that of the widespread library for such files, to the bit: the accurate integer transform of Loeffler, Ligtenberg
and Moschytz (1989) with 13-bit constants, and chroma interpolated at 1/4 and 3/4 between samples.
"""

from typing import Any

from ..graph.errors import KernelError

# Where the coefficients stand that are written first to last: along the diagonals of the 8 by 8 block, to and fro.
_ZIGZAG = sorted(range(64), key=lambda i: (i // 8 + i % 8, i // 8 if (i // 8 + i % 8) % 2 else i % 8))


class _Component:
    """A colour component of the picture.

    Attributes:
        across, down: Blocks per unit.
        table: Number of its quantization table.
        codes: Numbers of its Huffman tables, of first and of other coefficients.
        blocks: Coefficients, a list of 64 per block, unit by unit.
    """

    def __init__(self, across: int, down: int, table: int) -> None:
        self.across = across
        self.down = down
        self.table = table
        self.codes: tuple[int, int] = (0, 0)
        self.blocks: list[list[int]] = []


def decode_jpeg(content: bytes) -> Any:
    """Return the pixels ``[height, width, 1 or 3]`` of a JPEG file.

    Raises:
        KernelError: If it is progressive, or anything else but baseline with one or three components.
        IndexError, KeyError, ValueError: If it is corrupted.
    """
    import numpy as np

    tables: dict[int, list[int]] = {}
    codes: dict[tuple[int, int], dict[tuple[int, int], int]] = {}
    parts: dict[int, _Component] = {}
    width = height = interval = place = 0
    place = 2
    while True:
        if content[place] != 0xFF:
            raise ValueError("a marker is missing")
        marker = content[place + 1]
        if marker == 0xFF:
            place += 1
            continue
        size = int.from_bytes(content[place + 2 : place + 4], "big")
        body = content[place + 4 : place + 2 + size]
        place += 2 + size
        if marker == 0xDB:
            _read_tables(body, tables)
        elif marker == 0xC4:
            _read_codes(body, codes)
        elif marker == 0xDD:
            interval = int.from_bytes(body[:2], "big")
        elif marker in (0xC0, 0xC1):
            height, width = int.from_bytes(body[1:3], "big"), int.from_bytes(body[3:5], "big")
            for i in range(body[5]):
                name, sampling, table = body[6 + 3 * i : 9 + 3 * i]
                parts[name] = _Component(sampling >> 4, sampling & 15, table)
            if body[0] != 8 or len(parts) not in (1, 3):
                raise KernelError(
                    f"ImageDecoder reads JPEG files of 1 or 3 components of 8 bits. Received: {len(parts)} of {body[0]}"
                )
        elif 0xC2 <= marker <= 0xCF and marker != 0xCC:
            raise KernelError(f"ImageDecoder reads baseline JPEG files. Received: one that starts with frame marker {marker:#x}")
        elif marker == 0xDA:
            break
        elif marker == 0xD9:
            raise ValueError("no picture")
    if body[0] != len(parts):
        raise KernelError("ImageDecoder reads JPEG files whose components stand together. Received: one with several scans")
    for i in range(body[0]):
        parts[body[1 + 2 * i]].codes = (body[2 + 2 * i] >> 4, body[2 + 2 * i] & 15)
    chosen = list(parts.values())
    if len(chosen) == 1:
        chosen[0].across = chosen[0].down = 1
    across, down = max(c.across for c in chosen), max(c.down for c in chosen)
    columns, rows = -(-width // (8 * across)), -(-height // (8 * down))
    if min(width, height) < 1 or columns * rows > 1 << 20:
        raise ValueError("a size that makes no sense")
    _read_units(content, place, chosen, codes, columns * rows, interval)
    planes = []
    for c in chosen:
        blocks = np.array(c.blocks, np.int32) * np.array(tables[c.table], np.int32)
        natural = np.empty_like(blocks)
        natural[:, _ZIGZAG] = blocks
        samples = _transform(natural.reshape(-1, 8, 8)).reshape(rows, columns, c.down, c.across, 8, 8)
        plane = samples.transpose(0, 2, 4, 1, 3, 5).reshape(rows * c.down * 8, columns * c.across * 8)
        plane = plane[: -(-height * c.down // down), : -(-width * c.across // across)]
        planes.append(_enlarged(plane, down // c.down, across // c.across)[:height, :width])
    return planes[0].astype(np.uint8)[..., None] if len(planes) == 1 else _rgb(*planes)


def _read_tables(body: bytes, tables: dict[int, list[int]]) -> None:
    place = 0
    while place < len(body):
        wide, name = body[place] >> 4, body[place] & 15
        step = 2 if wide else 1
        values = body[place + 1 : place + 1 + 64 * step]
        tables[name] = [int.from_bytes(values[i : i + step], "big") for i in range(0, 64 * step, step)]
        place += 1 + 64 * step


def _read_codes(body: bytes, codes: dict[tuple[int, int], dict[tuple[int, int], int]]) -> None:
    """Read Huffman tables: (length, code) -> symbol."""
    place = 0
    while place < len(body):
        kind, name = body[place] >> 4, body[place] & 15
        counts = body[place + 1 : place + 17]
        place += 17
        found, code = {}, 0
        for length, count in enumerate(counts, 1):
            for _ in range(count):
                found[length, code] = body[place]
                code += 1
                place += 1
            code <<= 1
        codes[kind, name] = found


class _Bits:
    """The bits of the coded part of a file, from the highest of each byte on."""

    def __init__(self, content: bytes, place: int) -> None:
        self.content = content
        self.place = place
        self.held = self.count = 0

    def take(self, count: int) -> int:
        """Return the next bits as a number."""
        while self.count < count:
            byte = self.content[self.place]
            self.place += 1
            if byte == 0xFF:
                if self.content[self.place]:
                    raise ValueError("the picture ends early")
                self.place += 1
            self.held = (self.held & ((1 << self.count) - 1)) << 8 | byte
            self.count += 8
        self.count -= count
        return self.held >> self.count & ((1 << count) - 1)

    def symbol(self, codes: dict[tuple[int, int], int]) -> int:
        """Return the symbol whose code comes next."""
        code = 0
        for length in range(1, 17):
            code = code << 1 | self.take(1)
            found = codes.get((length, code))
            if found is not None:
                return found
        raise ValueError("no such code")

    def signed(self, count: int) -> int:
        """Return the next number of so many bits."""
        value = self.take(count)
        return value if not count or value >> (count - 1) else value - (1 << count) + 1

    def restart(self) -> None:
        """Pass over the marker between independent parts."""
        self.held = self.count = 0
        if not 0xD0 <= self.content[self.place + 1] <= 0xD7:
            raise ValueError("a restart is missing")
        self.place += 2


def _read_units(
    content: bytes,
    place: int,
    parts: list[_Component],
    codes: dict[tuple[int, int], dict[tuple[int, int], int]],
    units: int,
    interval: int,
) -> None:
    bits = _Bits(content, place)
    last = [0] * len(parts)
    for unit in range(units):
        if interval and unit and unit % interval == 0:
            bits.restart()
            last = [0] * len(parts)
        for i, part in enumerate(parts):
            first, others = codes[0, part.codes[0]], codes[1, part.codes[1]]
            for _ in range(part.across * part.down):
                block = [0] * 64
                last[i] += bits.signed(bits.symbol(first))
                block[0] = last[i]
                k = 1
                while k < 64:
                    symbol = bits.symbol(others)
                    if symbol == 0:
                        break
                    k += symbol >> 4
                    if symbol & 15:
                        block[k] = bits.signed(symbol & 15)
                    k += 1
                part.blocks.append(block)


def _transform(blocks: Any) -> Any:
    """Return the samples, 0 to 255, of dequantized coefficients ``[blocks, 8, 8]``: columns first, then rows."""
    import numpy as np

    half = _lines(blocks.astype(np.int64).swapaxes(1, 2), 11).swapaxes(1, 2)
    return np.clip(_lines(half, 18) + 128, 0, 255)


def _lines(x: Any, shift: int) -> Any:
    """Transform along the last axis; constants have 13 bits after the point."""
    import numpy as np

    a, b, c, d, e, f, g, h = (x[..., i] for i in range(8))
    z = (c + g) * 4433
    two, three = z - g * 15137, z + c * 6270
    zero, one = (a + e) << 13, (a - e) << 13
    even = zero + three, one + two, one - two, zero - three
    z1, z2, z3, z4 = h + b, f + d, h + d, f + b
    z5 = (z3 + z4) * 9633
    z1, z2, z3, z4 = z1 * -7373, z2 * -20995, z3 * -16069 + z5, z4 * -3196 + z5
    odd = b * 12299 + z1 + z4, d * 25172 + z2 + z3, f * 16819 + z2 + z4, h * 2446 + z1 + z3
    sums = [p + q for p, q in zip(even, odd, strict=True)] + [p - q for p, q in zip(even[::-1], odd[::-1], strict=True)]
    return (np.stack(sums, -1) + (1 << (shift - 1))) >> shift


def _enlarged(plane: Any, down: int, across: int) -> Any:
    """Return a plane enlarged 1 or 2 times along each axis by interpolation, or any times by repetition."""
    import numpy as np

    if (down, across) == (1, 1):
        return plane
    if across == 2 and down in (1, 2) and plane.shape[1] > 2:
        if down == 1:
            return _doubled(plane, 1, 2, 2)
        above = np.concatenate([plane[:1], plane[:-1]])
        below = np.concatenate([plane[1:], plane[-1:]])
        lines = np.stack([3 * plane + above, 3 * plane + below], 1).reshape(2 * len(plane), -1)
        return _doubled(lines, 8, 7, 4)
    return plane.repeat(down, 0).repeat(across, 1)


def _doubled(plane: Any, left: int, right: int, shift: int) -> Any:
    """Return twice as many columns, at 1/4 and 3/4 between, rounded by adding ``left`` and ``right`` in turn; edges keep theirs."""
    import numpy as np

    before = np.concatenate([plane[:, :1], plane[:, :-1]], 1)
    after = np.concatenate([plane[:, 1:], plane[:, -1:]], 1)
    return np.stack([(3 * plane + before + left) >> shift, (3 * plane + after + right) >> shift], -1).reshape(len(plane), -1)


def _rgb(y: Any, blue: Any, red: Any) -> Any:
    """Return RGB from luma and chroma, in fixed point with 16 bits after the point."""
    import numpy as np

    blue, red = blue - 128, red - 128
    r = y + ((91881 * red + 32768) >> 16)
    g = y + ((-22554 * blue - 46802 * red + 32768) >> 16)
    b = y + ((116130 * blue + 32768) >> 16)
    return np.clip(np.stack([r, g, b], -1), 0, 255).astype(np.uint8)
