"""Gather from a table whose elements share scales in blocks."""

from typing import TYPE_CHECKING, Any

from .qmatmul import unpack
from .registry import kernel

if TYPE_CHECKING:
    from .call import Call


@kernel("com.microsoft:GatherBlockQuantized")
def gather_block_quantized(call: "Call", data: Any, indices: Any, scales: Any, zeros: Any = None) -> Any:
    """Gather along ``gather_axis`` and scale by blocks along ``quantize_axis``; bytes hold several elements of the last axis."""
    xp, bits = call.xp, call.attr("bits", 4)
    gather, blocked = call.attr("gather_axis", 0) % data.ndim, call.attr("quantize_axis", 1) % data.ndim
    dtype = call.operand_dtypes[0]
    packed = dtype is not None and dtype.name == "uint8"
    zero = xp.float32(1 << (bits - 1)) if packed else xp.float32(0)
    apart = gather != blocked
    if apart:
        data, scales = xp.take(data, indices, axis=gather), _take(xp, scales, indices, gather)
        zeros = None if zeros is None else _take(xp, zeros, indices, gather)
        blocked += indices.ndim - 1 if blocked > gather else 0
    if packed and bits < 8:
        data = unpack(xp, data, bits, data.shape[-1] * (8 // bits))
        if zeros is not None:
            zeros = unpack(xp, zeros, bits, scales.shape[-1])
    size = call.attr("block_size", 128) or data.shape[blocked]
    block = xp.arange(data.shape[blocked]) // size
    if zeros is not None:
        zero = xp.take(zeros, block, axis=blocked).astype(xp.float32)
    values = (data.astype(xp.float32) - zero) * xp.take(scales, block, axis=blocked)
    return values if apart else xp.take(values, indices, axis=gather)


def _take(xp: Any, x: Any, indices: Any, axis: int) -> Any:
    """Gather, where a dimension of 1 stands for all."""
    return xp.take(x, indices if x.shape[axis] != 1 else xp.zeros_like(indices), axis=axis)
