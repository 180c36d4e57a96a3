"""The element types of tensors, under the names and numbers each format gives them.

The numbers are facts of the TensorFlow ``DataType`` and ONNX ``TensorProto.DataType`` enumerations.
"""

import functools
from typing import TYPE_CHECKING, Any

from .errors import GraphError, did_you_mean
from .rounding import round_to_half, round_to_odd, widen_half

if TYPE_CHECKING:
    import numpy as np


class DType:
    """An element type. There is one object per type, so ``is`` compares.

    Attributes:
        name: Name in NumPy, ml_dtypes and TensorFlow (``"float32"``).
        short: Name in the text form (``"f32"``).
        kind: ``"float"``, ``"int"``, ``"uint"``, ``"bool"``, ``"complex"``, ``"string"``,
            ``"quantized"`` or ``"handle"`` (a resource or variant).
        bits: Bits per element; 0 for strings and handles.
        tf: Number in TensorFlow's ``DataType``, 0 if it has none.
        onnx: Number in ONNX's ``TensorProto.DataType``, 0 if it has none.
    """

    __slots__ = ("bits", "kind", "name", "onnx", "short", "tf")

    def __init__(self, name: str, short: str, kind: str, bits: int, tf: int, onnx: int) -> None:
        self.name = name
        self.short = short
        self.kind = kind
        self.bits = bits
        self.tf = tf
        self.onnx = onnx

    def __repr__(self) -> str:
        return self.name

    def __copy__(self) -> "DType":
        return self

    def __deepcopy__(self, memo: Any) -> "DType":
        return self

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return find_dtype, (self.name,)

    @property
    def numpy(self) -> "np.dtype[Any]":
        """The NumPy dtype of an array of this type.

        Raises:
            GraphError: If arrays of this type do not exist (handles, 1-bit oddities).
        """
        return _numpy_dtype(self)


# name, short, kind, bits, TensorFlow number, ONNX number
_TABLE = (
    ("float16", "f16", "float", 16, 19, 10),
    ("bfloat16", "bf16", "float", 16, 14, 16),
    ("float32", "f32", "float", 32, 1, 1),
    ("float64", "f64", "float", 64, 2, 11),
    ("float8_e5m2", "f8e5m2", "float", 8, 24, 19),
    ("float8_e4m3fn", "f8e4m3fn", "float", 8, 25, 17),
    ("float8_e4m3fnuz", "f8e4m3fnuz", "float", 8, 26, 18),
    ("float8_e4m3b11fnuz", "f8e4m3b11fnuz", "float", 8, 27, 0),
    ("float8_e5m2fnuz", "f8e5m2fnuz", "float", 8, 28, 20),
    ("float8_e8m0fnu", "f8e8m0fnu", "float", 8, 0, 24),
    ("float6_e2m3fn", "f6e2m3fn", "float", 6, 0, 27),
    ("float6_e3m2fn", "f6e3m2fn", "float", 6, 0, 28),
    ("float4_e2m1fn", "f4e2m1fn", "float", 4, 33, 23),
    ("int2", "i2", "int", 2, 31, 26),
    ("int4", "i4", "int", 4, 29, 22),
    ("int8", "i8", "int", 8, 6, 3),
    ("int16", "i16", "int", 16, 5, 5),
    ("int32", "i32", "int", 32, 3, 6),
    ("int64", "i64", "int", 64, 9, 7),
    ("uint2", "u2", "uint", 2, 32, 25),
    ("uint4", "u4", "uint", 4, 30, 21),
    ("uint8", "u8", "uint", 8, 4, 2),
    ("uint16", "u16", "uint", 16, 17, 4),
    ("uint32", "u32", "uint", 32, 22, 12),
    ("uint64", "u64", "uint", 64, 23, 13),
    ("bool", "bool", "bool", 8, 10, 9),
    ("complex64", "c64", "complex", 64, 8, 14),
    ("complex128", "c128", "complex", 128, 18, 15),
    ("string", "str", "string", 0, 7, 8),
    ("qint8", "qi8", "quantized", 8, 11, 0),
    ("quint8", "qu8", "quantized", 8, 12, 0),
    ("qint16", "qi16", "quantized", 16, 15, 0),
    ("quint16", "qu16", "quantized", 16, 16, 0),
    ("qint32", "qi32", "quantized", 32, 13, 0),
    ("resource", "resource", "handle", 0, 20, 0),
    ("variant", "variant", "handle", 0, 21, 0),
)

DTYPES: dict[str, DType] = {row[0]: DType(*row) for row in _TABLE}
BY_SHORT: dict[str, DType] = {dtype.short: dtype for dtype in DTYPES.values()}
BY_TF: dict[int, DType] = {dtype.tf: dtype for dtype in DTYPES.values() if dtype.tf}
BY_ONNX: dict[int, DType] = {dtype.onnx: dtype for dtype in DTYPES.values() if dtype.onnx}
_ALIASES = {"half": "float16", "float": "float32", "double": "float64", "fp16": "float16", "fp32": "float32", "fp64": "float64"}

float16 = DTYPES["float16"]
bfloat16 = DTYPES["bfloat16"]
float32 = DTYPES["float32"]
float64 = DTYPES["float64"]
int32 = DTYPES["int32"]
int64 = DTYPES["int64"]
bool_ = DTYPES["bool"]
string = DTYPES["string"]
resource = DTYPES["resource"]
variant = DTYPES["variant"]

#: The types a rewrite may compute in.
LOW_PRECISION = (float16, bfloat16)


def find_dtype(name: "str | DType") -> DType:
    """Return the dtype called ``name``: a full name, a short name or a TensorFlow alias.

    Raises:
        GraphError: If no dtype has that name.

    Example:
        >>> find_dtype("f16"), find_dtype("half"), find_dtype("bfloat16")
        (float16, float16, bfloat16)
    """
    if isinstance(name, DType):
        return name
    found = DTYPES.get(name) or BY_SHORT.get(name) or DTYPES.get(_ALIASES.get(name, ""))
    if found is None:
        raise GraphError(f"Unknown dtype {name!r}.{did_you_mean(name, [*DTYPES, *BY_SHORT, *_ALIASES])}")
    return found


@functools.cache
def _numpy_dtype(dtype: DType) -> "np.dtype[Any]":
    import numpy as np

    if dtype.kind == "string":
        return np.dtype(object)
    if dtype.kind == "quantized":
        return np.dtype(dtype.name[1:])
    if dtype.kind == "handle":
        raise GraphError(f"A {dtype.name} has no array form.")
    try:
        return np.dtype(dtype.name)
    except TypeError:
        import ml_dtypes

        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, dtype.name))
        return found


def cast_array(array: "np.ndarray[Any, Any]", dtype: DType) -> "np.ndarray[Any, Any]":
    """Return the array with its elements converted to ``dtype``; the same array if they are of that type already.

    Numbers are rounded once, ties to even, whatever types are in between; what is too large becomes infinite (NaN, or the
    largest number, in types that have no infinity). The bits are those of NumPy's and ml_dtypes' conversions, except that
    float64 and integers are not rounded to float32 first, and it takes as long where numbers over- or underflow float16.
    Floats become integers by dropping the fraction, as in C.
    """
    wanted, source = dtype.numpy, array.dtype
    if source == wanted:
        return array
    import numpy as np

    if not isinstance(array, np.ndarray):  # CuPy's: GPUs round once, and have no slow cases
        return array.astype(wanted)
    if dtype is float16 and source.char in "fd" and source.isnative:
        return round_to_half(array)
    if dtype is float32 and source.char == "e" and source.isnative:
        return widen_half(array)
    if wanted == np.uint32 and source.kind == "f":
        array = array.astype(np.int64)  # what becomes of negative numbers does not depend on where they stand
    is_low = dtype.kind == "float" and dtype.bits < 32
    if is_low and (source.kind in "iu" or source == np.float64):
        array = round_to_odd(array)
    elif is_low and source != np.float32:
        array = array.astype(np.float32)
    elif source.kind == "V" and dtype.kind in ("int", "uint"):
        array = array.astype(np.float32 if dtype_of_array(source).kind == "float" else np.int8)
    if wanted == np.float16 and array.dtype == np.float32:
        return round_to_half(array)
    return array.astype(wanted, copy=False)


@functools.cache
def dtype_of_array(dtype: "np.dtype[Any]") -> DType:
    """Return the element type of arrays whose NumPy dtype is ``dtype``; every array of objects or text holds strings.

    Raises:
        GraphError: If no element type is stored like this.
    """
    return find_dtype("string" if dtype.kind in "OSU" else dtype.name)
