"""Picture files: written here byte by byte, and a JPEG file with its pixels as libjpeg-turbo decodes it."""

import struct
import zlib
from base64 import b85decode
from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.one_node import run_op

RNG = np.random.default_rng(1)
PIXELS = RNG.integers(0, 256, (5, 7, 3), np.uint8)

# 19 by 11 pixels, quality 30, chroma at half the resolution, Huffman tables of its own.
JPEG = b85decode(
    "|JeWF01!$>Nk#wx0RaIl0W1Ij|JwjV02>k%7Zed27Zw*D92+1gLMtdGB`8rkJupIGRb^yfRb5+Zc$tA}agcLcU4^xVke;Kft*d8%"
    "yve$z$C;?Br2pFhLjfEf9w;LyPAe-;q;6eqq@<*zq@<*zq@<*zq@<*zq@<*zq@<*zq@<*zq@<*zq@<*zq@<*zq@<*zq@<*zq@@4A"
    "01*fP3jh-X0U`hb5di}c0sq7R761VO0RR910000000000000C90RO}QAP@io0s#XB0000000000000010uciQ5<wIpF;bEL!~him"
    "0RaF20000000000000000|o!Y02~nj0R#g90000000000000000Rj;r0|XNk|Jncy0|5X65d#qbKLDGDLwpOzp<G7C;e>X07mg9M"
    "sZeP8N&^PViJcPlUkq7{Q%kXd>o)~IOOOBA"
)


def decode(content: bytes, pixel_format: bytes = b"RGB") -> Any:
    return run_op("ImageDecoder", np.frombuffer(content, np.uint8), version=20, pixel_format=pixel_format)


def test_jpeg_is_decoded_as_the_usual_library_does_it() -> None:
    y = decode(JPEG)
    assert y.shape == (11, 19, 3)
    assert y[[0, 5, 10], [0, 9, 18]].tolist() == [[0, 13, 0], [123, 120, 127], [236, 231, 101]]
    assert zlib.crc32(y.tobytes()) == 610560826
    assert (decode(JPEG, b"BGR") == y[..., ::-1]).all()


def gray_jpeg(bits: str) -> bytes:
    """One block of 8 by 8; codes: 0 for an end of block or a difference of no bits, 10 for one of 4 bits."""
    table = b"\xff\xdb\x00\x43\x00" + bytes([16] * 64)
    frame = b"\xff\xc0\x00\x0b\x08\x00\x08\x00\x08\x01\x01\x11\x00"
    counts = bytes([1, 1] + [0] * 14)
    codes = b"".join(b"\xff\xc4\x00\x15" + bytes([kind]) + counts + b"\x00\x04" for kind in (0x00, 0x10))
    scan = b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00"
    bits += "1" * (-len(bits) % 8)
    return b"\xff\xd8" + table + frame + codes + scan + int(bits, 2).to_bytes(len(bits) // 8, "big") + b"\xff\xd9"


@pytest.mark.parametrize(("bits", "value"), [("0" + "0", 128), ("10" + "1010" + "0", 148), ("10" + "0101" + "0", 108)])
def test_a_jpeg_block_of_one_coefficient_is_even(bits: str, value: int) -> None:
    """The first coefficient is 8 times the mean, less 128: 10 times 16 is 20 more."""
    y = decode(gray_jpeg(bits), b"Grayscale")
    assert y.shape == (8, 8, 1)
    assert (y == value).all()


def png(rows: Any, color: int, bits: int = 8, palette: bytes = b"", width: int = 7) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, len(rows), bits, color, 0, 0, 0)
    data = zlib.compress(b"".join(bytes(row) for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"PLTE", palette) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


@pytest.mark.parametrize("kind", range(5))
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_every_filter_of_png(kind: int, channels: int) -> None:
    pixels = RNG.integers(0, 256, (5, 7, channels), np.uint8)
    flat = pixels.reshape(5, -1).astype(int)
    rows = []
    for y in range(5):
        row = [kind]
        for x in range(7 * channels):
            left = flat[y, x - channels] if x >= channels else 0
            up = flat[y - 1, x] if y else 0
            corner = flat[y - 1, x - channels] if y and x >= channels else 0
            near = min((left, up, corner), key=lambda value, to=left + up - corner: abs(to - value))
            row.append(int(flat[y, x] - [0, left, up, (left + up) // 2, near][kind]) % 256)
        rows.append(row)
    result = decode(png(rows, {1: 0, 2: 4, 3: 2, 4: 6}[channels]))
    assert (result == pixels[..., : 1 if channels < 3 else 3]).all()


def test_png_of_few_bits_and_of_sixteen() -> None:
    gray = decode(png([[0, 0b00011011]], 0, bits=2, width=4), b"Grayscale")
    assert gray.ravel().tolist() == [0, 85, 170, 255]
    colors = decode(png([[0, 0b01100000]], 3, bits=1, width=3, palette=bytes([1, 2, 3, 4, 5, 6])))
    assert colors.tolist() == [[[1, 2, 3], [4, 5, 6], [4, 5, 6]]]
    deep = decode(png([[0, 18, 52, 255, 255]], 0, bits=16, width=2), b"Grayscale")
    assert deep.ravel().tolist() == [18, 255]


@pytest.mark.parametrize("bits", [8, 24, 32])
@pytest.mark.parametrize("upright", [1, -1])
def test_bmp(bits: int, upright: int) -> None:
    palette = RNG.integers(0, 256, (256, 4), np.uint8)
    index = RNG.integers(0, 256, (5, 7), np.uint8)
    wanted = palette[index][..., 2::-1] if bits == 8 else PIXELS
    rows = []
    for y in range(5)[::-upright]:
        row = index[y].tobytes() if bits == 8 else np.pad(PIXELS[y, :, ::-1], [(0, 0), (0, bits // 8 - 3)]).tobytes()
        rows.append(row + b"\0" * (-len(row) % 4))
    table = palette.tobytes() if bits == 8 else b""
    start = 54 + len(table)
    head = struct.pack("<2sI4xI", b"BM", 0, start) + struct.pack("<IiiHHI20x", 40, 7, 5 * upright, 1, bits, 0)
    assert (decode(head + table + b"".join(rows)) == wanted).all()


def test_pnm() -> None:
    assert (decode(b"P6\n# comment\n7 5\n255\n" + PIXELS.tobytes()) == PIXELS).all()
    assert decode(b"P2 3 1 4\n0 1 4", b"Grayscale").ravel().tolist() == [0, 64, 255]
    assert decode(b"P5 2 1 65535\n" + bytes([0, 0, 255, 255]), b"Grayscale").ravel().tolist() == [0, 255]
    assert decode(b"P1 3 1\n0 11", b"Grayscale").ravel().tolist() == [255, 0, 0]
    assert decode(b"P4 3 1\n\x60", b"Grayscale").ravel().tolist() == [255, 0, 0]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("packed", [False, True])
def test_tiff(order: str, packed: bool) -> None:
    strips = [PIXELS[:3].tobytes(), PIXELS[3:].tobytes()]
    if packed:
        strips = [zlib.compress(strip) for strip in strips]
    first = 8
    second = first + len(strips[0])
    lists = second + len(strips[1])
    values = struct.pack(order + "3H4I", 8, 8, 8, first, second, len(strips[0]), len(strips[1]))
    entries = [
        (256, 4, 1, 7),
        (257, 4, 1, 5),
        (258, 3, 3, lists),
        (259, 4, 1, 8 if packed else 1),
        (262, 4, 1, 2),
        (273, 4, 2, lists + 6),
        (277, 4, 1, 3),
        (278, 4, 1, 3),
        (279, 4, 2, lists + 14),
    ]
    start = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", lists + len(values))
    table = struct.pack(order + "H", len(entries)) + b"".join(struct.pack(order + "HHII", *entry) for entry in entries)
    assert (decode(start + strips[0] + strips[1] + values + table + b"\0\0\0\0") == PIXELS).all()


def test_luma() -> None:
    y = decode(b"P6 3 1 255\n" + bytes([255, 0, 0, 0, 255, 0, 0, 0, 255]), b"Grayscale")
    assert y.ravel().tolist() == [76, 150, 29]


@pytest.mark.parametrize(
    "content", [JPEG[:200], b"BM", b"P6 9 9 255\n123", b"\x89PNG\r\n\x1a\n", b"II*\0\xff\xff\xff\xff", b"P6 999999 999999 255\n"]
)
def test_corrupted_files_give_nothing(content: bytes) -> None:
    assert decode(content).shape == (0, 0, 3)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"RIFF....WEBP", "reads BMP"), (b"P7 1 1 1", "P1 to P6"), (JPEG.replace(b"\xff\xc0", b"\xff\xc2"), "baseline")],
)
def test_other_formats_are_errors(content: bytes, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        decode(content)


def test_hostile_files_do_not_hang() -> None:
    """Every third byte in turn is another one: pixels, nothing, or an error that says what is not read."""
    said = set()
    for content in (JPEG, png([[4, *range(21)]] * 3, 2)):
        for at in range(0, len(content), 3):
            try:
                decode(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
            except KernelError as error:
                said.add("ImageDecoder reads" in str(error))
    assert said == {True}
