"""Boxes of images, resized."""

from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .registry import kernel
from .room import check_room

if TYPE_CHECKING:
    from .call import Call


@kernel("com.microsoft:CropAndResize")
def crop_and_resize(call: "Call", x: Any, boxes: Any, which: Any, size: Any) -> Any:
    """Cut ``boxes[count, (y1, x1, y2, x2)]``, in shares of the image, out of ``x[batch, channel, H, W]``, corners aligned.

    Args:
        which: Image of each box.
        size: Height and width of the results.

    Raises:
        KernelError: If the mode is unknown.
    """
    xp, mode, outside = call.xp, call.attr("mode", None) or call.attr("method", "bilinear"), call.attr("extrapolation_value", 0.0)
    if mode not in ("bilinear", "nearest"):
        raise KernelError(f"Op CropAndResize has the modes bilinear and nearest. Received: {mode!r}")
    (height, width), rows, columns = x.shape[2:], int(size[0]), int(size[1])
    check_room(xp, (len(boxes), x.shape[1], rows, columns), x.itemsize)
    ys = box_places(xp, boxes[:, 0], boxes[:, 2], height, rows)
    xs = box_places(xp, boxes[:, 1], boxes[:, 3], width, columns)
    inside = ((ys >= 0) & (ys <= height - 1))[:, :, None] & ((xs >= 0) & (xs <= width - 1))[:, None, :]
    ys, xs = xp.clip(ys, 0, height - 1), xp.clip(xs, 0, width - 1)
    image = which.reshape(-1, 1, 1)

    def pixels(y: Any, x_: Any) -> Any:
        return x[image, :, y.astype(xp.int64)[:, :, None], x_.astype(xp.int64)[:, None, :]]  # [count, rows, columns, channel]

    if mode == "nearest":
        result = pixels(xp.floor(ys + 0.5), xp.floor(xs + 0.5))
    else:
        top, left = xp.floor(ys), xp.floor(xs)
        down, right = (ys - top)[:, :, None, None], (xs - left)[:, None, :, None]
        upper = pixels(top, left) * (1 - right) + pixels(top, xp.ceil(xs)) * right
        lower = pixels(xp.ceil(ys), left) * (1 - right) + pixels(xp.ceil(ys), xp.ceil(xs)) * right
        result = upper * (1 - down) + lower * down
    result = xp.where(inside[..., None], result, x.dtype.type(outside))
    return xp.moveaxis(result, -1, 1)


def box_places(xp: Any, start: Any, end: Any, length: int, count: int) -> Any:
    """Return ``[boxes, count]``: places from ``start`` to ``end``; the middle if there is only one."""
    if count == 1:
        return (0.5 * (start + end) * (length - 1))[:, None]
    step = (end - start) * (length - 1) / (count - 1)
    return start[:, None] * (length - 1) + xp.arange(count, dtype=start.dtype) * step[:, None]
