"""Convolutions: at every pixel of the result, a product of a window of the input and a filter."""

from typing import TYPE_CHECKING

from ..types import Dim
from .sizes import Dims, Rule, ShapeOf, Work, dims_of, operand

if TYPE_CHECKING:
    from ..graph import Node


def _work(batch: Dim, channels: tuple[Dim, Dim], groups: int, pixels: tuple[Dim, ...], window: tuple[Dim, ...]) -> Work:
    """Return the work of a convolution.

    Args:
        batch: Number of images.
        channels: Those of a group: input, output.
        groups: How often.
        pixels: Where windows lie.
        window: Their size.
    """
    if channels[0] == 1 and groups != 1:  # of one channel each: nothing is added up over channels, so these are no matrices
        return Work.product({}, batch, channels[1], groups, *pixels, *window)
    place = "" if groups == 1 else " of a group"
    sizes = {"batch": batch, f"input channels{place}": channels[0], f"output channels{place}": channels[1]}
    return Work.product(sizes, groups, *pixels, *window)


def _onnx(node: "Node", shape_of: ShapeOf) -> Work:
    """Return the work where channels come before pixels, and filters are (outputs, inputs of a group, window)."""
    images, result = operand(node, shape_of, 0), shape_of(node.outputs[0])
    given = operand(node, shape_of, 1)
    rank = next((len(dims) for dims in (given, images, result) if dims is not None), 3)
    filters = dims_of(given, rank)
    images, result = dims_of(images, rank), dims_of(result, rank)
    window = node.attributes.get("kernel_shape") or filters[2:]
    groups: int = node.attributes.get("group", 1)
    outputs = filters[0] if filters[0] is not None else result[1]
    if node.op_type == "ConvTranspose":  # the gradient of a convolution from its result to what comes in
        inputs, outputs = _share(images[1] if filters[0] is None else filters[0], groups), filters[1]
        return _work(images[0], (inputs, outputs), groups, tuple(images[2:]), tuple(window))
    inputs = filters[1] if filters[1] is not None else _share(images[1], groups)
    batch = result[0] if images[0] is None else images[0]
    return _work(batch, (inputs, _share(outputs, groups)), groups, tuple(result[2:]), tuple(window))


def _tf(node: "Node", shape_of: ShapeOf) -> Work:
    """Return the work where filters are (window, inputs of a group, outputs), of the convolution or a gradient of it."""
    op = node.op_type
    shapes: list[Dims] = [operand(node, shape_of, slot) for slot in range(min(3, len(node.inputs)))]
    result = shape_of(node.outputs[0])
    images, filters, gradient = shapes[0], shapes[1], result
    if "Backprop" in op:
        gradient = shapes[2]
        if "BackpropInput" in op:
            images = result
        else:
            filters = result
    rank = 5 if "3D" in op else 4
    for dims in (images, filters, gradient):
        rank = len(dims) if op == "Conv" and dims is not None else rank
    images, filters, gradient = dims_of(images, rank), dims_of(filters, rank), dims_of(gradient, rank)
    first = (node.attributes.get("data_format") or b"N").startswith(b"NC")
    depth, outputs = (images[1], gradient[1]) if first else (images[-1], gradient[-1])
    pixels = tuple(gradient[2:] if first else gradient[1:-1])
    window = tuple(filters[:-2])
    batch = gradient[0] if images[0] is None else images[0]
    if "Depthwise" in op:
        return Work.product({}, batch, filters[-2] if depth is None else depth, filters[-1], *pixels, *window)
    inputs = filters[-2]
    outputs = outputs if filters[-1] is None else filters[-1]
    groups = depth // inputs if isinstance(depth, int) and isinstance(inputs, int) and inputs else 1
    return _work(batch, (depth if inputs is None else inputs, _share(outputs, groups)), groups, pixels, window)


def _share(channels: Dim, groups: int) -> Dim:
    return channels if groups == 1 else None if not isinstance(channels, int) or groups < 1 else channels // groups


RULES: dict[tuple[str, str], Rule] = {
    **{("", op): _onnx for op in ("Conv", "ConvTranspose", "DeformConv")},
    ("com.microsoft", "FusedConv"): _onnx,
    **{("tf", op): _tf for op in ("Conv", "Conv2D", "Conv3D", "DepthwiseConv2dNative", "_FusedConv2D", "_FusedConv3D")},
    **{
        ("tf", f"{op}Backprop{what}"): _tf
        for op in ("Conv2D", "Conv3D", "DepthwiseConv2dNative")
        for what in ("Input", "Filter", "InputV2", "FilterV2")
    },
}
