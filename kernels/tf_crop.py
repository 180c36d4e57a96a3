"""TensorFlow: boxes cut out of images and resized, and what goes back to the images and to the boxes."""

from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .crop import box_places, crop_and_resize
from .registry import kernel
from .room import check_room

if TYPE_CHECKING:
    from .call import Call


def _check(images: int, boxes: Any, which: Any) -> None:
    if boxes.ndim != 2 or boxes.shape[1] != 4 or which.shape != boxes.shape[:1]:
        raise KernelError(
            f"Boxes are [count, 4], each with the number of its image. Received: {list(boxes.shape)} and {list(which.shape)}"
        )
    if which.size and not 0 <= int(which.min()) <= int(which.max()) < images:
        raise KernelError(f"A box names none of {images} images. Received: {int(which.min())} to {int(which.max())}")


@kernel("tf:CropAndResize")
def tf_crop_and_resize(call: "Call", x: Any, boxes: Any, which: Any, size: Any) -> Any:
    """Boxes cut out of images and resized to one size, in float32."""
    xp = call.xp
    _check(x.shape[0], boxes, which)
    images = xp.moveaxis(x.astype(xp.float32, copy=False), -1, 1)
    return xp.moveaxis(crop_and_resize(call, images, boxes, which, size), 1, -1)


class _Corners:
    """Where the pixels of resized boxes come from.

    Attributes:
        inside: ``[count, rows, columns, 1]``, whether a pixel lies inside of its image.
        sides: For both axes the neighbours before and behind, and how far the pixel is from the former.
        image: ``[count, 1, 1]``, the image of each box.
    """

    def __init__(self, xp: Any, boxes: Any, which: Any, image: tuple[int, int], crop: tuple[int, int]) -> None:
        ys, xs = (box_places(xp, boxes[:, i], boxes[:, i + 2], image[i], crop[i]) for i in (0, 1))
        ys, xs = ys[:, :, None], xs[:, None, :]
        self.inside = ((ys >= 0) & (ys <= image[0] - 1) & (xs >= 0) & (xs <= image[1] - 1))[..., None]
        self.sides = []
        for at, length in ((ys, image[0]), (xs, image[1])):
            near = xp.clip(at, 0, length - 1)
            low = xp.floor(near)
            self.sides.append((low.astype(xp.int64), xp.ceil(near).astype(xp.int64), near - low))
        self.image = which.astype(xp.int64).reshape(-1, 1, 1)


@kernel("tf:CropAndResizeGradImage")
def crop_by_images(call: "Call", dy: Any, boxes: Any, which: Any, size: Any) -> Any:
    """The gradient of resized boxes by the images."""
    xp = call.xp
    n, height, width, depth = (int(v) for v in size)
    _check(n, boxes, which)
    check_room(xp, (n, height, width, depth), 8)
    corners = _Corners(xp, boxes, which, (height, width), dy.shape[1:3])
    (top, bottom, down), (left, right, across) = corners.sides
    total = xp.zeros(n * height * width * depth)
    dy = xp.where(corners.inside, dy, 0)
    if call.attr("method", "bilinear") == "nearest":
        parts = [(top + (down >= 0.5), left + (across >= 0.5), None)]
    else:
        parts = [
            (y, x, (p * q)[..., None])
            for y, p in ((top, 1 - down), (bottom, down))
            for x, q in ((left, 1 - across), (right, across))
        ]
    for y, x, weight in parts:
        place = ((corners.image * height + y) * width + x)[..., None] * depth + xp.arange(depth)
        values = dy if weight is None else dy * weight
        total += xp.bincount(place.reshape(-1), values.reshape(-1), total.size)
    return total.reshape(n, height, width, depth).astype(
        call.dtype("T").numpy if call.dtype("T").name == "float64" else xp.float32
    )


@kernel("tf:CropAndResizeGradBoxes")
def crop_by_boxes(call: "Call", dy: Any, images: Any, boxes: Any, which: Any) -> Any:
    """The gradient of resized boxes by the boxes."""
    xp = call.xp
    _check(images.shape[0], boxes, which)
    corners = _Corners(xp, boxes, which, images.shape[1:3], dy.shape[1:3])
    (top, bottom, down), (left, right, across) = corners.sides
    pixels = images.astype(xp.float32, copy=False)
    a, b = pixels[corners.image, top, left], pixels[corners.image, top, right]
    c, d = pixels[corners.image, bottom, left], pixels[corners.image, bottom, right]
    down, across = down[..., None], across[..., None]
    dy = xp.where(corners.inside, dy, 0)
    by_y = (((1 - across) * (c - a) + across * (d - b)) * dy).sum((2, 3))  # [count, rows]
    by_x = (((1 - down) * (b - a) + down * (d - c)) * dy).sum((1, 3))
    result = xp.empty((len(boxes), 4), xp.float32)
    for axis, slopes in enumerate((by_y, by_x)):
        length, count = images.shape[1 + axis], dy.shape[1 + axis]
        share = xp.full(1, 0.5, xp.float32) if count == 1 else xp.arange(count, dtype=xp.float32) / xp.float32(count - 1)
        result[:, axis] = slopes @ ((1 - share) * (length - 1))
        result[:, axis + 2] = slopes @ (share * (length - 1))
    return result
