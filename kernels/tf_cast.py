"""TensorFlow: changing the dtype of numbers, and of bits."""

from typing import Any

from ..graph.dtypes import DType, cast_array, dtype_of_array
from ..graph.errors import KernelError
from .call import Call
from .registry import kernel

#: Bits of the fraction of floating point types.
_FRACTION = {
    "float64": 52,
    "float32": 23,
    "float16": 10,
    "bfloat16": 7,
    "float8_e5m2": 2,
    "float8_e4m3fn": 3,
    "float8_e4m3fnuz": 3,
    "float8_e4m3b11fnuz": 3,
    "float8_e5m2fnuz": 2,
    "float4_e2m1fn": 1,
}


@kernel("tf:Cast", "tf:_HostCast", moves=True, elementwise=True)
def _cast(call: Call, x: Any) -> Any:
    """Round to the nearest; with ``Truncate``, set the bits that do not fit to 0 first."""
    wanted = call.dtype("DstT")
    if x.dtype == wanted.numpy:
        return x
    if x.dtype.kind == "c" and wanted.kind != "complex":
        x = x.real
    if wanted.kind == "bool":
        return x.astype(bool)
    source = dtype_of_array(x.dtype)
    if call.attr("Truncate", False):
        x = _truncated(x, source, wanted)
    if source.name == "bfloat16" and wanted.kind in ("int", "uint") and wanted.bits in (8, 16):
        x = _held(x, wanted)
    if source.kind == "bool" and wanted.numpy.kind == "V":
        x = x.astype("float32" if wanted.kind == "float" else "int8")
    return cast_array(x, wanted)


def _truncated(x: Any, source: DType, wanted: DType) -> Any:
    surplus = _FRACTION.get(source.name, 0) - _FRACTION.get(wanted.name, 64)
    if surplus <= 0 or (wanted.name == "bfloat16" and source.name != "float32"):
        return x  # to bfloat16, TensorFlow cuts nothing but float32
    import numpy as np

    bits = np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")
    mask = bits.dtype.type((1 << source.bits) - (1 << surplus))
    cut = (bits & mask).view(x.dtype).reshape(x.shape)
    return np.where(np.isnan(x), x, cut)


def _held(x: Any, wanted: DType) -> Any:
    """Return bfloat16 numbers as TensorFlow makes integers of 8 and 16 bits of them: by way of int32, whose range they are cut to."""
    import numpy as np

    wide, limits = x.astype(np.float32), np.iinfo(wanted.numpy)
    return np.clip(np.where(np.abs(wide) < 2.0**31, wide, -(2.0**31)), limits.min, limits.max)


@kernel("tf:Bitcast", moves=True)
def _bitcast(call: Call, x: Any) -> Any:
    """Take the bits as another dtype; the last axis goes, or comes, where an element has several of the other."""
    wanted = call.dtype("type").numpy
    old, new = x.dtype.itemsize, wanted.itemsize
    x = call.xp.ascontiguousarray(x)
    if old == new:
        return x.view(wanted)
    if old > new:
        return x.reshape(*x.shape, 1).view(wanted)
    if not x.ndim or x.shape[-1] * old != new:
        raise KernelError(
            f"Bitcast: the last axis makes up one element of {wanted}. Received: shape {list(x.shape)} of {x.dtype}"
        )
    return x.view(wanted).reshape(x.shape[:-1])
