"""TensorFlow's resizing of images: every pixel is a weighted sum of neighbours, one axis after another; gradients are transposes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..graph.errors import KernelError
from .registry import kernel
from .room import check_room

if TYPE_CHECKING:
    from .call import Call

#: Entries, less one, of the table in which TensorFlow looks up cubic weights.
_TABLE = 1 << 10


class Taps(NamedTuple):
    """For each result along an axis, which elements it takes and their weights: both ``[results, taps]``."""

    index: Any
    weights: Any


def _sizes(size: Any) -> tuple[int, int]:
    if size.shape != (2,) or int(size.min()) <= 0:
        raise KernelError(f"Images are resized to a positive height and width. Received: {size.tolist()}")
    return int(size[0]), int(size[1])


def _check(call: "Call", x: Any, sizes: Sequence[int]) -> None:
    if x.ndim != 4 or (min(x.shape[1:3]) < 1 and x.shape[0] and x.shape[3]):
        raise KernelError(f"Images have four axes, of at least one pixel. Received: shape {list(x.shape)}")
    check_room(call.xp, (x.shape[0], *sizes, x.shape[3]), 4)


def _scale(call: "Call", size: int, result: int) -> Any:
    """Return how far apart results stand, in float32 as everything about places here."""
    xp = call.xp
    if call.attr("align_corners", False) and result > 1:
        return xp.float32(size - 1) / xp.float32(result - 1)
    return xp.float32(size) / xp.float32(result)


def _places(call: "Call", size: int, result: int) -> Any:
    """Return where each result stands among the elements."""
    xp = call.xp
    at = xp.arange(result, dtype=xp.float32)
    if call.attr("half_pixel_centers", False):
        return (at + xp.float32(0.5)) * _scale(call, size, result) - xp.float32(0.5)
    return at * _scale(call, size, result)


def linear_taps(call: "Call", size: int, result: int) -> Taps:
    """Return two neighbours, weighted by their distances."""
    xp = call.xp
    at = _places(call, size, result)
    low = xp.floor(at)
    index = xp.stack([xp.maximum(low, 0), xp.minimum(xp.ceil(at), size - 1)], 1)
    return Taps(index.astype(xp.int64), xp.stack([1 - (at - low), at - low], 1))


def cubic_taps(call: "Call", size: int, result: int) -> Taps:
    """Return four neighbours with the weights of Keys' cubic convolution, at distances rounded to a table's.

    With half pixel centres what lies outside has no weight; else the outermost pixels stand for it.
    """
    xp = call.xp
    inside_only = bool(call.attr("half_pixel_centers", False))
    a = -0.5 if inside_only else -0.75
    at = _places(call, size, result)
    low = xp.floor(at)
    offset = xp.rint((at - low) * _TABLE) / _TABLE
    distance = xp.stack([offset + 1, offset, 1 - offset, 2 - offset], 1).astype(xp.float64)
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    weights = xp.where(xp.asarray([False, True, True, False]), near, far).astype(xp.float32)
    index = low[:, None].astype(xp.int64) + xp.arange(-1, 3)
    if inside_only:
        weights = xp.where((index >= 0) & (index < size), weights, 0)
        weights = weights / weights.sum(1, keepdims=True)
    return Taps(xp.clip(index, 0, size - 1), weights)


def area_taps(call: "Call", size: int, result: int) -> Taps:
    """Return what each result covers, weighted by how much it covers; beyond the end the last pixel stands for it."""
    xp = call.xp
    scale = _scale(call, size, result)
    if not scale:  # a single pixel, corners aligned
        return Taps(xp.zeros((result, 1), xp.int64), xp.ones((result, 1), xp.float32))
    begin = (xp.arange(result, dtype=xp.float32) * scale)[:, None]
    end = (xp.arange(1, result + 1, dtype=xp.float32) * scale)[:, None]
    first = xp.floor(begin).astype(xp.int64)
    index = first + xp.arange(int((xp.ceil(end) - first).max(initial=1)))
    covered = xp.minimum(index + 1, end) - xp.maximum(index, begin)
    return Taps(xp.clip(index, 0, size - 1), (xp.maximum(covered, 0) / scale).astype(xp.float32))


def resized(xp: Any, x: Any, axis: int, taps: Taps) -> Any:
    """Return an array resized along an axis."""
    column = (-1, *(1,) * (x.ndim - 1 - axis))
    result = None
    for tap in range(taps.index.shape[1]):
        part = xp.take(x, taps.index[:, tap], axis)
        part *= taps.weights[:, tap].astype(x.dtype).reshape(column)
        result = part if result is None else xp.add(result, part, out=result)
    return result


def spread(xp: Any, dy: Any, axis: int, taps: Taps, size: int) -> Any:
    """Return the transpose of :func:`resized`, for an operand of this size along the axis."""
    rows = xp.moveaxis(dy, axis, 0)
    column = (-1, *(1,) * (dy.ndim - 1))
    result = xp.zeros((size, *rows.shape[1:]), dy.dtype)
    for tap in range(taps.index.shape[1]):  # indices never fall along the results
        places, first = xp.unique(taps.index[:, tap], return_index=True)
        result[places] += xp.add.reduceat(rows * taps.weights[:, tap].astype(dy.dtype).reshape(column), first, axis=0)
    return xp.moveaxis(result, 0, axis)


_TAPS = {"Bilinear": linear_taps, "Bicubic": cubic_taps, "Area": area_taps}


@kernel("tf:ResizeBilinear", "tf:ResizeBicubic", "tf:ResizeArea")
def resize(call: "Call", x: Any, size: Any) -> Any:
    """Images of another size, in float32."""
    sizes = _sizes(size)
    _check(call, x, sizes)
    taps = _TAPS[call.node.op_type.removeprefix("Resize")]
    y = x.astype(call.xp.float32, copy=False)
    if not y.size:
        return call.xp.zeros((x.shape[0], *sizes, x.shape[3]), y.dtype)
    for axis in (2, 1):
        y = resized(call.xp, y, axis, taps(call, x.shape[axis], sizes[axis - 1]))
    return y


@kernel("tf:ResizeBilinearGrad", "tf:ResizeBicubicGrad")
def resize_grad(call: "Call", dy: Any, images: Any) -> Any:
    """The gradient of resized images by the images."""
    _check(call, dy, images.shape[1:3])
    taps = linear_taps if call.node.op_type == "ResizeBilinearGrad" else cubic_taps
    dx = dy.astype(images.dtype, copy=False)
    if not dy.size:
        return call.xp.zeros(images.shape, dx.dtype)
    for axis in (1, 2):
        size = images.shape[axis]
        dx = spread(call.xp, dx, axis, taps(call, size, dy.shape[axis]), size)
    return dx


def nearest(call: "Call", size: int, result: int) -> Any:
    """Return which element stands nearest to each result."""
    xp = call.xp
    at, scale = xp.arange(result, dtype=xp.float32), _scale(call, size, result)
    if call.attr("half_pixel_centers", False):
        at = xp.floor((at + xp.float32(0.5)) * scale)
    elif call.attr("align_corners", False):
        at = xp.floor(at * scale + xp.float32(0.5))
    else:
        at = xp.floor(at * scale)
    return xp.clip(at, 0, max(size - 1, 0)).astype(xp.int64)


@kernel("tf:ResizeNearestNeighbor", moves=True)
def resize_nearest(call: "Call", x: Any, size: Any) -> Any:
    """Images of another size, whose pixels are copies."""
    sizes = _sizes(size)
    _check(call, x, sizes)
    if not x.size:
        return call.xp.zeros((x.shape[0], *sizes, x.shape[3]), x.dtype)
    for axis in (1, 2):
        x = call.xp.take(x, nearest(call, x.shape[axis], sizes[axis - 1]), axis)
    return x


@kernel("tf:ResizeNearestNeighborGrad")
def resize_nearest_grad(call: "Call", dy: Any, size: Any) -> Any:
    """The gradient of copied pixels by those that they are copies of."""
    xp = call.xp
    sizes = _sizes(size)
    _check(call, dy, sizes)
    if not dy.size:
        return xp.zeros((dy.shape[0], *sizes, dy.shape[3]), dy.dtype)
    for axis in (1, 2):
        index = nearest(call, sizes[axis - 1], dy.shape[axis])[:, None]
        dy = spread(xp, dy, axis, Taps(index, xp.ones(index.shape, xp.int8)), sizes[axis - 1])
    return dy
