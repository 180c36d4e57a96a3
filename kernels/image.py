"""Images: blocks of pixels that become channels and back, crops, and regions of interest."""

from math import ceil, prod
from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .registry import kernel
from .room import check_room
from .windows import Geometry, axis_attr, fold

if TYPE_CHECKING:
    from .call import Call


def _block(call: "Call", x: Any) -> tuple[int, int, int, int, int]:
    if x.ndim != 4:
        raise KernelError(f"{call.node.op_type} takes an array [N, C, H, W]. Received: {list(x.shape)}")
    return (*x.shape, int(call.attr("blocksize", 1)))


@kernel("DepthToSpace", moves=True)
def depth_to_space(call: "Call", x: Any) -> Any:
    """Channels become blocks of pixels."""
    n, c, h, w, b = _block(call, x)
    if b < 1 or c % (b * b):
        raise KernelError(f"{c} channels do not make blocks of {b} by {b}. Received: {list(x.shape)}")
    if call.attr("mode", "DCR") == "DCR":
        x = x.reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        x = x.reshape(n, c // (b * b), b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return x.reshape(n, c // (b * b), h * b, w * b)


@kernel("SpaceToDepth", moves=True)
def space_to_depth(call: "Call", x: Any) -> Any:
    """Blocks of pixels become channels."""
    n, c, h, w, b = _block(call, x)
    if b < 1 or h % b or w % b:
        raise KernelError(f"An image of {h} by {w} does not fall into blocks of {b}. Received: {list(x.shape)}")
    x = x.reshape(n, c, h // b, b, w // b, b)
    x = x.transpose(0, 1, 3, 5, 2, 4) if call.attr("mode", "DCR") == "CRD" else x.transpose(0, 3, 5, 1, 2, 4)
    return x.reshape(n, c * b * b, h // b, w // b)


@kernel("CenterCropPad", moves=True)
def center_crop_pad(call: "Call", x: Any, shape: Any) -> Any:
    """Crop around the center, or pad with zeros around it."""
    axes = [int(a) % x.ndim for a in call.attr("axes", None) or range(x.ndim)]
    sizes = list(x.shape)
    take, put = [slice(None)] * x.ndim, [slice(None)] * x.ndim
    for axis, wanted in zip(axes, shape.tolist(), strict=True):
        have = x.shape[axis]
        sizes[axis] = wanted
        if wanted < have:
            start = (have - wanted) // 2
            take[axis] = slice(start, start + wanted)
        else:
            start = (wanted - have) // 2
            put[axis] = slice(start, start + have)
    if tuple(sizes) == x[tuple(take)].shape:
        return x[tuple(take)]
    check_room(call.xp, sizes, x.itemsize)
    result = call.xp.zeros(sizes, x.dtype)
    result[tuple(put)] = x[tuple(take)]
    return result


@kernel("Col2Im")
def col2im(call: "Call", x: Any, image: Any, block: Any) -> Any:
    """Add up columns ``[N, C * taps, blocks]`` to images."""
    shape, kernel_shape = [int(v) for v in image], tuple(int(v) for v in block)
    rank = len(shape)
    strides, dilations = axis_attr(call, "strides", rank), axis_attr(call, "dilations", rank)
    pads = axis_attr(call, "pads", 2 * rank, 0)
    counts = tuple(
        (size + pads[i] + pads[rank + i] - (k - 1) * d - 1) // s + 1
        for i, (size, k, s, d) in enumerate(zip(shape, kernel_shape, strides, dilations, strict=True))
    )
    if x.ndim != 3 or x.shape[1] % prod(kernel_shape) or x.shape[2] != prod(counts):
        raise KernelError(f"Col2Im needs {prod(counts)} columns of multiples of {prod(kernel_shape)}. Received: {list(x.shape)}")
    columns = x.reshape(x.shape[0], -1, prod(kernel_shape), *counts)
    return fold(call.xp, columns, Geometry(kernel_shape, strides, dilations, pads[:rank], pads[rank:], counts), shape)


@kernel("RoiAlign")
def roi_align(call: "Call", x: Any, rois: Any, images: Any) -> Any:
    """The mean (or maximum) of bilinear samples in each bin of each region.

    Samples stand on a grid, so that a region's are rows and columns weighted: two small products for each region.
    """
    xp = call.xp
    h, w = int(call.attr("output_height", 1)), int(call.attr("output_width", 1))
    ratio, scale = int(call.attr("sampling_ratio", 0)), call.attr("spatial_scale", 1.0)
    half = call.opset >= 16 and call.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    greatest = call.attr("mode", "avg") == "max"
    boxes = rois.astype(xp.float64) * scale - (0.5 if half else 0.0)
    check_room(xp, (len(rois), x.shape[1], h, w), x.itemsize)
    result = xp.empty((len(rois), x.shape[1], h, w), x.dtype)
    for i, (box, image) in enumerate(zip(boxes.tolist(), images.tolist(), strict=True)):
        grid = []
        for start, end, bins, size in ((box[1], box[3], h, x.shape[2]), (box[0], box[2], w, x.shape[3])):
            length = end - start if half else max(end - start, 1.0)
            count = ratio if ratio > 0 else max(ceil(length / bins), 1)
            check_room(xp, [bins * count, size], 8)
            at = start + (xp.arange(bins * count) + 0.5) * length / (bins * count)
            grid.append((*_corners(xp, at, size, x.dtype), count))
        result[i] = _samples(xp, x[image], grid, (h, w), greatest)
    return result


def _corners(xp: Any, at: Any, size: int, dtype: Any) -> tuple[Any, Any, Any, Any]:
    """Return the two neighbours of each coordinate and their weights; 0 for those more than 1 outside."""
    inside = (at >= -1) & (at <= size)
    at = xp.clip(at, 0, size - 1)
    low = xp.floor(at).astype(xp.int64)
    high = xp.minimum(low + 1, size - 1)
    part = at - low
    return low, high, xp.where(inside, 1 - part, 0).astype(dtype), xp.where(inside, part, 0).astype(dtype)


def _samples(xp: Any, image: Any, grid: Any, bins: tuple[int, int], greatest: bool) -> Any:
    """Pool ``image [C, H, W]``: the mean of the samples in each bin, or the greatest corner, weighted, of any sample."""
    (top, bottom, wt, wb, rows), (left, right, wl, wr, columns) = grid
    shape = (image.shape[0], bins[0], rows, bins[1], columns)
    if not greatest:
        lines = xp.take(image, top, 1) * wt[:, None] + xp.take(image, bottom, 1) * wb[:, None]
        lines = lines.reshape(shape[0], bins[0], rows, -1).mean(2)
        return (xp.take(lines, left, 2) * wl + xp.take(lines, right, 2) * wr).reshape(*shape[:2], *shape[3:]).mean(3)
    best: Any = None
    for y, wy in ((top, wt), (bottom, wb)):
        for at, wx in ((left, wl), (right, wr)):
            part = xp.take(xp.take(image, y, 1), at, 2) * (wy[:, None] * wx)
            best = part if best is None else xp.maximum(best, part)
    return best.reshape(shape).max((2, 4))


@kernel("MaxRoiPool")
def max_roi_pool(call: "Call", x: Any, rois: Any) -> Any:
    """The greatest element in each bin of each region, whose corners are rounded to pixels."""
    xp = call.xp
    bins = [int(v) for v in call.attr("pooled_shape", ())]
    check_room(xp, (len(rois), x.shape[1], *bins), x.itemsize)
    result = xp.zeros((len(rois), x.shape[1], *bins), x.dtype)
    images = rois[:, 0].astype(xp.int64).tolist()
    # Half a pixel is rounded away from 0.
    scaled = rois[:, 1:] * rois.dtype.type(call.attr("spatial_scale", 1.0))
    corners = (xp.sign(scaled) * xp.floor(xp.abs(scaled) + 0.5)).astype(xp.int64).tolist()
    for i, (image, (left, top, right, bottom)) in enumerate(zip(images, corners, strict=True)):
        edges = []
        for start, end, count, size in ((top, bottom, bins[0], x.shape[2]), (left, right, bins[1], x.shape[3])):
            length = max(end - start + 1, 1)
            low = [min(max(start + b * length // count, 0), size) for b in range(count)]
            high = [min(max(start - (-(b + 1) * length // count), 0), size) for b in range(count)]
            edges.append(list(zip(low, high, strict=True)))
        for row, (y0, y1) in enumerate(edges[0]):
            for column, (x0, x1) in enumerate(edges[1]):
                if y1 > y0 and x1 > x0:
                    result[i, :, row, column] = x[image, :, y0:y1, x0:x1].max((1, 2))
    return result
