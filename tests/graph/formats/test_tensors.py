"""Constants: every way TensorFlow stores them, and the ways a hostile file could."""

import struct
from typing import Any

import numpy as np
import pytest

from ampgraph.graph import FormatError, GraphError, Tensor
from ampgraph.graph.formats.proto import message
from ampgraph.graph.formats.tensorflow import parse
from ampgraph.graph.formats.tf_tensor import new_tensor_proto, read_tensor


def tensor(text: str, *dims: int) -> Tensor:
    shape = "tensor_shape { " + " ".join(f"dim {{ size: {dim} }}" for dim in dims) + " }"
    return read_tensor(parse("TensorProto", f"{shape} {text}".encode(), text=True))


@pytest.mark.parametrize(
    ("text", "dims", "expected"),
    [
        ("dtype: DT_FLOAT float_val: 1 float_val: 2", (4,), [1, 2, 2, 2]),  # the last value repeats
        ("dtype: DT_FLOAT float_val: 3", (2, 2), [[3, 3], [3, 3]]),
        ("dtype: DT_FLOAT", (2,), [0, 0]),
        ("dtype: DT_FLOAT", (0, 3), np.zeros((0, 3))),
        ("dtype: DT_FLOAT float_val: 3", (0,), []),
        ("dtype: DT_FLOAT float_val: 3 float_val: 4", (), 3),
        ('dtype: DT_FLOAT tensor_content: "\\000\\000\\200\\077"', (1,), [1.0]),
        ("dtype: DT_DOUBLE double_val: 0.1", (1,), [0.1]),
        ("dtype: DT_HALF half_val: 15360 half_val: 64512", (2,), [1.0, -np.inf]),  # 0x3c00, 0xfc00
        ("dtype: DT_BFLOAT16 half_val: 16256", (1,), [1.0]),  # 0x3f80
        ("dtype: DT_INT8 int_val: -3", (1,), [-3]),
        ("dtype: DT_UINT8 int_val: 200", (1,), [200]),
        ("dtype: DT_QUINT8 int_val: 200", (1,), [200]),
        ("dtype: DT_QINT32 int_val: -7", (1,), [-7]),
        ("dtype: DT_INT4 int_val: -8 int_val: 7", (2,), [-8, 7]),
        ("dtype: DT_UINT16 int_val: 65535", (1,), [65535]),
        ("dtype: DT_INT32 int_val: -5", (1,), [-5]),
        ("dtype: DT_INT64 int64_val: -9223372036854775808", (1,), [-(2**63)]),
        ("dtype: DT_UINT32 uint32_val: 4294967295", (1,), [2**32 - 1]),
        ("dtype: DT_UINT64 uint64_val: 18446744073709551615", (1,), [2**64 - 1]),
        ("dtype: DT_BOOL bool_val: true bool_val: false", (3,), [True, False, False]),
        ("dtype: DT_COMPLEX64 scomplex_val: 1 scomplex_val: 2", (2,), [1 + 2j, 1 + 2j]),
        ("dtype: DT_COMPLEX128 dcomplex_val: 1 dcomplex_val: 2", (1,), [1 + 2j]),
        ('dtype: DT_FLOAT8_E5M2 float8_val: "\\074"', (2,), [1.0, 1.0]),  # 0x3c
        ('dtype: DT_STRING string_val: "a" string_val: "\\377"', (3,), [b"a", b"\xff", b"\xff"]),
        ("dtype: DT_STRING", (1,), [b""]),
        ('dtype: DT_STRING tensor_content: "\\001\\000\\003xabc"', (3,), [b"x", b"", b"abc"]),
    ],
)
def test_stored_forms(text: str, dims: tuple[int, ...], expected: Any) -> None:
    constant = tensor(text, *dims)
    array = constant.array()
    assert array.shape == dims == constant.shape
    if constant.dtype.name == "uint64":
        assert array.tolist() == expected
    else:
        wide: Any = object if constant.dtype.kind == "string" else np.complex128
        np.testing.assert_array_equal(array.astype(wide), np.array(expected, wide))
    assert new_tensor_proto(constant) == constant.source
    fresh = read_tensor(new_tensor_proto(Tensor(constant.dtype, constant.shape, lambda: array)))
    assert fresh == constant


def test_half_bits_are_kept() -> None:
    bits = [0x7E01, 0x0001, 0x8000]  # a NaN with a payload, the smallest number, -0
    array = tensor("dtype: DT_HALF " + " ".join(f"half_val: {b}" for b in bits), 3).array()
    assert struct.unpack("<3H", array.tobytes()) == tuple(bits)


@pytest.mark.parametrize(
    ("text", "dims", "error"),
    [
        ("dtype: DT_FLOAT float_val: 1", (10**9, 10**9), r"\[1000000000, 1000000000\] would take 4000000000000000000 bytes"),
        ("dtype: DT_STRING", (10**12,), "would take"),
        ('dtype: DT_FLOAT tensor_content: "abc"', (1,), "needs 4 bytes but stores 3"),
        ('dtype: DT_FLOAT tensor_content: "abcdefgh"', (1,), "needs 4 bytes but stores 8"),
        ("dtype: DT_COMPLEX64 scomplex_val: 1", (1,), "pairs of numbers. Received: 1 numbers"),
        ('dtype: DT_STRING tensor_content: "\\377\\377"', (2,), "damaged string lengths"),
        ('dtype: DT_STRING tensor_content: "\\005ab"', (1,), "strings of 5 bytes but stores 2"),
        ('dtype: DT_STRING tensor_content: "a"', (10**6,), "needs 1000000 strings but stores 1 bytes"),
        ("dtype: DT_RESOURCE", (), "resource has no array form"),
    ],
)
def test_damaged_constants_fail_when_looked_at(text: str, dims: tuple[int, ...], error: str) -> None:
    constant = tensor(text, *dims)  # reading looks at none of the data
    with pytest.raises(GraphError, match=error):
        constant.array()


def test_new_constants_are_dense() -> None:
    proto = new_tensor_proto(Tensor.of(np.array([[1, 2]], ">i4"), "int32"))
    assert proto.tensor_content == b"\1\0\0\0\2\0\0\0"
    assert [dim.size for dim in proto.tensor_shape.dim] == [1, 2]
    with pytest.raises(FormatError, match="TensorFlow has no dtype float8_e8m0fnu"):
        new_tensor_proto(Tensor.of(1, "float8_e8m0fnu"))


def test_messages_of_another_format_are_no_source() -> None:
    constant = Tensor.of([1.0], "float32")
    constant.source = object()
    assert new_tensor_proto(constant).tensor_content == struct.pack("<f", 1)
    assert isinstance(new_tensor_proto(constant), message("TensorProto"))
