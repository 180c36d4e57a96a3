"""TensorFlow: blocks of pixels become channels or images of a batch, and back; patches of images."""

from math import prod
from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .registry import kernel
from .room import check_room
from .tf_windows import as_asked, channels_second, laid
from .windows import pad, view

if TYPE_CHECKING:
    from .call import Call


@kernel("tf:SpaceToDepth", moves=True)
def space_to_depth(call: "Call", x: Any) -> Any:
    """Each square of pixels becomes one pixel of more channels."""
    b = _block(call)
    n, c, h, w = _four(channels_second(call, x))
    if h % b or w % b:
        raise KernelError(f"Images of {h} by {w} pixels do not fall into blocks. Received: block size {b}")
    y = channels_second(call, x).reshape(n, c, h // b, b, w // b, b)
    return as_asked(call, y.transpose(0, 3, 5, 1, 2, 4).reshape(n, b * b * c, h // b, w // b))


@kernel("tf:DepthToSpace", moves=True)
def depth_to_space(call: "Call", x: Any) -> Any:
    """Each pixel becomes a square of pixels of fewer channels."""
    b = _block(call)
    n, c, h, w = _four(channels_second(call, x))
    if c % (b * b):
        raise KernelError(f"{c} channels do not make blocks. Received: block size {b}")
    y = channels_second(call, x).reshape(n, b, b, c // (b * b), h, w)
    return as_asked(call, y.transpose(0, 3, 4, 1, 5, 2).reshape(n, c // (b * b), h * b, w * b))


def _block(call: "Call") -> int:
    size = int(call.attr("block_size", 0))
    if size < 1:
        raise KernelError(f"Attribute 'block_size' must be positive. Received: {size}")
    return size


def _four(x: Any) -> tuple[int, int, int, int]:
    if x.ndim != 4:
        raise KernelError(f"Images have four axes. Received: shape {list(x.shape)}")
    n, c, h, w = x.shape
    return n, c, h, w


@kernel("tf:SpaceToBatchND", moves=True)
def space_to_batch_nd(call: "Call", x: Any, block: Any, paddings: Any) -> Any:
    """Each block of the padded axes behind the first is dealt out to as many images."""
    blocks, pads = [int(b) for b in block], [(int(a), int(b)) for a, b in paddings]
    rank = len(blocks)
    if len(pads) != rank or x.ndim < 1 + rank or min([1, *blocks]) < 1 or min([0, *(min(p) for p in pads)]) < 0:
        raise KernelError(f"Blocks and paddings do not fit an array of shape {list(x.shape)}. Received: {blocks} and {pads}")
    inner, rest = x.shape[1 : 1 + rank], x.shape[1 + rank :]
    full = [a + n + b for n, (a, b) in zip(inner, pads, strict=True)]
    if any(n % b for n, b in zip(full, blocks, strict=True)):
        raise KernelError(f"An array whose padded axes are {full} does not fall into blocks. Received: block shape {blocks}")
    check_room(call.xp, (x.shape[0], *full, *rest), x.itemsize)
    padded = call.xp.zeros((x.shape[0], *full, *rest), x.dtype)
    padded[(slice(None), *(slice(a, a + n) for n, (a, _) in zip(inner, pads, strict=True)))] = x
    split = [size for n, b in zip(full, blocks, strict=True) for size in (n // b, b)]
    order = [*range(2, 2 + 2 * rank, 2), 0, *range(1, 1 + 2 * rank, 2), *range(1 + 2 * rank, 1 + 2 * rank + len(rest))]
    counts = [n // b for n, b in zip(full, blocks, strict=True)]
    return padded.reshape(x.shape[0], *split, *rest).transpose(order).reshape(x.shape[0] * prod(blocks), *counts, *rest)


@kernel("tf:BatchToSpaceND", moves=True)
def batch_to_space_nd(call: "Call", x: Any, block: Any, crops: Any) -> Any:
    """The reverse of SpaceToBatchND."""
    blocks, cuts = [int(b) for b in block], [(int(a), int(b)) for a, b in crops]
    rank = len(blocks)
    many = prod(blocks)
    if (
        len(cuts) != rank
        or x.ndim < 1 + rank
        or min([1, *blocks]) < 1
        or min([0, *(min(c) for c in cuts)]) < 0
        or x.shape[0] % many
    ):
        raise KernelError(f"Blocks and crops do not fit an array of shape {list(x.shape)}. Received: {blocks} and {cuts}")
    inner, rest = x.shape[1 : 1 + rank], x.shape[1 + rank :]
    full = [n * b for n, b in zip(inner, blocks, strict=True)]
    if any(a + b > n for n, (a, b) in zip(full, cuts, strict=True)):
        raise KernelError(f"Crops are larger than the axes {full} that they are cut from. Received: {cuts}")
    y = x.reshape(*blocks, x.shape[0] // many, *inner, *rest)
    order = [rank, *(i for axis in range(rank) for i in (rank + 1 + axis, axis)), *range(2 * rank + 1, y.ndim)]
    y = y.transpose(order).reshape(x.shape[0] // many, *full, *rest)
    return y[(slice(None), *(slice(a, n - b) for n, (a, b) in zip(full, cuts, strict=True)))]


@kernel("tf:SpaceToBatch", moves=True)
def space_to_batch(call: "Call", x: Any, paddings: Any) -> Any:
    """SpaceToBatchND with square blocks."""
    return space_to_batch_nd(call, x, [_block(call)] * 2, paddings)


@kernel("tf:BatchToSpace", moves=True)
def batch_to_space(call: "Call", x: Any, crops: Any) -> Any:
    """BatchToSpaceND with square blocks."""
    return batch_to_space_nd(call, x, [_block(call)] * 2, crops)


@kernel("tf:ExtractImagePatches", "tf:ExtractVolumePatches", moves=True)
def extract_patches(call: "Call", x: Any) -> Any:
    """Every window of images or volumes, whose elements become the channels of a pixel."""
    rank = x.ndim - 2
    sizes, strides, rates = ([int(n) for n in call.attr(name, None) or [1] * x.ndim] for name in ("ksizes", "strides", "rates"))
    if x.ndim < 3 or any(len(v) != x.ndim or min(v) < 1 or v[0] != 1 or v[-1] != 1 for v in (sizes, strides, rates)):
        raise KernelError(
            f"Patches of images of shape {list(x.shape)} need ksizes, strides and rates with a number for each axis, "
            f"1 for batch and channels. Received: {sizes}, {strides} and {rates}"
        )
    geo = laid(call, x.shape[1:-1], sizes[1:-1], strides[1:-1], rates[1:-1])
    shape = (x.shape[0], *geo.counts, prod(geo.kernel) * x.shape[-1])
    check_room(call.xp, shape, x.itemsize)
    windows = view(call.xp, pad(call.xp, call.xp.moveaxis(x, -1, 1), geo), geo)
    order = (0, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank), 1)
    return windows.transpose(order).copy().reshape(shape)
