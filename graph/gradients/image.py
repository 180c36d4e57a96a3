"""Pictures in another size, and crops of them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..graph import Node, Value
from .builder import Builder, operands, same_attributes

if TYPE_CHECKING:
    from .rules import Rule


def _resize(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """To each pixel by how much it went into the others."""
    return [b.node(f"{node.op_type}Grad", [dy, operands(node)[0]], same_attributes(node)).outputs[0]]


def _resize_nearest(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """To each pixel from all its copies."""
    size = b.ends(b.shape(operands(node)[0]), 1, 3)
    return [b.node("ResizeNearestNeighborGrad", [dy, size], same_attributes(node)).outputs[0]]


def _resize_nearest_grad(b: Builder, node: Node, dd: Value) -> Sequence[Value | None]:
    """The same copies."""
    size = b.ends(b.shape(operands(node)[0]), 1, 3)
    return [b.node("ResizeNearestNeighbor", [dd, size], same_attributes(node)).outputs[0]]


def _resize_grad(b: Builder, node: Node, dd: Value) -> Sequence[Value | None]:
    """Resized as the picture was; nothing by the picture, of which only the size is used."""
    dy = operands(node)[0]
    size = b.ends(b.shape(dy), 1, 3)
    return [b.node(node.op_type.removesuffix("Grad"), [dd, size], same_attributes(node)).outputs[0]]


def _crop(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """By the pictures and by the boxes."""
    image, boxes, of, _ = operands(node)
    assert image.dtype is not None
    attributes = same_attributes(node, "extrapolation_value")
    by_image = b.node("CropAndResizeGradImage", [dy, boxes, of, b.shape(image)], attributes, {"T": image.dtype}).outputs[0]
    return [by_image, b.node("CropAndResizeGradBoxes", [dy, image, boxes, of], attributes).outputs[0]]


def _scale_and_translate(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """By the pictures."""
    image, _, scale, translation = operands(node)
    return [b.node("ScaleAndTranslateGrad", [dy, image, scale, translation], same_attributes(node)).outputs[0]]


RULES: dict[str, "Rule"] = {
    **dict.fromkeys(["ResizeBicubic", "ResizeBilinear"], _resize),
    **dict.fromkeys(["ResizeBicubicGrad", "ResizeBilinearGrad"], _resize_grad),
    "CropAndResize": _crop,
    "ResizeNearestNeighbor": _resize_nearest,
    "ResizeNearestNeighborGrad": _resize_nearest_grad,
    "ScaleAndTranslate": _scale_and_translate,
}
