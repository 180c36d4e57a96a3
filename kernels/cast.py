"""Changing the dtype of numbers and text."""

from typing import Any

from ..graph.dtypes import DType, cast_array, dtype_of_array
from ..graph.errors import KernelError
from .call import Call
from .registry import kernel


@kernel("Cast", moves=True, elementwise=True)
def _cast(call: Call, x: Any) -> Any:
    return convert(call, x, call.dtypes[0])


@kernel("CastLike", moves=True)
def _cast_like(call: Call, x: Any, like: Any) -> Any:
    return convert(call, x, dtype_of_array(like.dtype))


def convert(call: Call, x: Any, dtype: DType | None) -> Any:
    """Return the elements as ``dtype``; the attributes ``saturate`` and ``round_mode`` say how to round to 8-bit floats."""
    dtype = known(call, dtype)
    if dtype.kind == "string":
        return _to_text(x)
    if x.dtype.kind == "O":
        return _from_text(x, dtype)
    if dtype.kind == "bool":
        return x.astype(bool)
    if dtype.name == "float8_e8m0fnu":
        return to_power(x, dtype, call.attr("round_mode", "up"), bool(call.attr("saturate", 1)))
    if dtype.kind == "float" and dtype.bits == 8 and call.attr("saturate", 1):
        return saturated(x, dtype)
    return cast_array(x, dtype)


def known(call: Call, dtype: DType | None) -> DType:
    """Return a dtype that a node cannot do without."""
    if dtype is None:
        text = f"{call.node.op_type}: nothing says the dtype of the result."
        raise KernelError(f"{text} The attribute for it is missing, or left out where the function around is called.")
    return dtype


def saturated(x: Any, dtype: DType) -> Any:
    """Round to an 8-bit float type; what is too large, and infinity, become the largest number."""
    import numpy as np  # arrays of 8-bit floats exist on the CPU only

    wide = x.astype(np.float32) if x.dtype != np.float64 else x
    most = largest(dtype)
    return cast_array(np.asarray(np.clip(wide, -most, most)), dtype)


def largest(dtype: DType) -> float:
    """Return the largest number of an 8-bit float type."""
    import numpy as np

    every = np.arange(256, dtype=np.uint8).view(dtype.numpy).astype(np.float32)
    return float(every[np.isfinite(every)].max())


def to_power(x: Any, dtype: DType, mode: str, saturate: bool) -> Any:
    """Round to ``float8_e8m0fnu``, powers of two: up, down, or to the nearest."""
    import numpy as np

    wide = x.astype(np.float32)
    mantissa, exponent = np.frexp(wide)  # in [0.5, 1)
    power = exponent.astype(np.int64) + 126  # biased exponent of the power below
    above = {"up": mantissa > 0.5, "down": np.zeros(wide.shape, bool), "nearest": mantissa >= 0.75}[mode]
    power += above
    least, most = (0, 254) if saturate else (0, 255)
    power = np.clip(power, least, most)
    power = np.where(wide == 0, 0, power) if saturate else np.where((wide == 0) | (wide < 2.0**-127 * 0.75), 255, power)
    power = np.where(np.isinf(wide), 254 if saturate else 255, power)
    return np.where(np.isnan(wide), 255, power).astype(np.uint8).view(dtype.numpy)


def _to_text(x: Any) -> Any:
    """Return the shortest text that reads back as the number."""
    import numpy as np

    if x.dtype.kind == "O":
        return x
    if x.dtype.kind == "V":
        dtype = dtype_of_array(x.dtype)
        x = x.astype(np.float32 if dtype.kind == "float" else np.int8)
    return x.astype(np.str_).astype(object)


def _from_text(x: Any, dtype: DType) -> Any:
    import numpy as np

    if dtype.kind == "bool":
        return np.array([bool(item) for item in x.ravel()], bool).reshape(x.shape)
    if dtype.kind in ("int", "uint"):
        try:
            return cast_array(x.astype(np.str_).astype(np.int64), dtype)
        except ValueError:
            pass  # "2.0"
    return cast_array(x.astype(np.str_).astype(np.float64), dtype)


@kernel("BitCast", moves=True)
def _bit_cast(call: Call, x: Any) -> Any:
    dtype = known(call, call.dtypes[0])
    return call.xp.ascontiguousarray(x).view(dtype.numpy).reshape(x.shape)
