"""Convolutions, pooling, normalisation over channels, resizing: ops with spatial dimensions."""

from typing import TYPE_CHECKING

from ..types import Dim
from .dims import Conflict, Dims, divide_exact, merge, merge_dim, mul_dim, replaced, with_rank

if TYPE_CHECKING:
    from .call import Call, Rule


def layout(call: "Call", rank: int) -> tuple[int, list[int]]:
    """Return the positions of the channel and of the spatial dimensions, read from ``data_format``.

    Raises:
        Conflict: If the format is one whose channels are split (``NCHW_VECT_C``) or unknown.
    """
    name = call.text("data_format") or "N" + "DHW"[5 - rank :] + "C"
    if name.startswith("NC") and len(name) == rank:
        return 1, list(range(2, rank))
    if name.startswith("N") and name.endswith("C") and len(name) == rank:
        return rank - 1, list(range(1, rank - 1))
    raise Conflict(f"data format {name!r} is not known for rank {rank}")


def window(size: Dim, kernel: Dim, stride: int, dilation: int, padding: str, explicit: tuple[int, int] = (0, 0)) -> Dim:
    """Return how many windows fit along one dimension (TensorFlow's definition of SAME, VALID and EXPLICIT)."""
    if stride <= 0 or dilation <= 0:
        raise Conflict(f"strides and dilations should be positive, not {stride} and {dilation}")
    if padding == "SAME":
        return -(-size // stride) if isinstance(size, int) else size if stride == 1 else None
    if kernel == 1 and stride == 1 and explicit == (0, 0):
        return size
    if not isinstance(size, int) or not isinstance(kernel, int):
        return None
    count = (size + sum(explicit) - (kernel - 1) * dilation - 1) // stride + 1
    if count < 0:
        raise Conflict(f"a window of {(kernel - 1) * dilation + 1} does not fit into a dimension of size {size}")
    return count


def _per_dim(call: "Call", name: str, rank: int) -> list[int]:
    values = call.integers(name)
    if values is None or not values:
        return [1] * rank
    if len(values) != rank:
        raise Conflict(f"attribute {name!r} should have {rank} entries, not {len(values)}")
    return values


def _explicit(call: "Call", rank: int) -> list[tuple[int, int]]:
    values = call.integers("explicit_paddings")
    if not values:
        return [(0, 0)] * rank
    if len(values) != 2 * rank:
        raise Conflict(f"attribute 'explicit_paddings' should have {2 * rank} entries, not {len(values)}")
    return list(zip(values[::2], values[1::2], strict=True))


def _padding(call: "Call") -> str:
    padding = call.text("padding")
    if padding not in ("SAME", "VALID", "EXPLICIT", ""):
        raise Conflict(f"padding {padding!r} is not known")
    return padding


def _conv(call: "Call", rank: int, depthwise: bool = False) -> list[Dims]:
    images, filters = call.ranked(0, rank), call.ranked(1, rank)
    if call.text("data_format") == "NCHW_VECT_C":
        return [None]
    channel, spatial = layout(call, rank)
    strides, dilations = _per_dim(call, "strides", rank), _per_dim(call, "dilations", rank)
    explicit, padding = _explicit(call, rank), _padding(call)
    if not padding:  # left to the caller of the function
        return [(None,) * rank]
    result: list[Dim] = list(images)
    for i, axis in enumerate(spatial):
        result[axis] = window(images[axis], filters[i], strides[axis], dilations[axis], padding, explicit[axis])
    if depthwise:
        merge_dim(images[channel], filters[-2])
        result[channel] = mul_dim(filters[-2] if images[channel] is None else images[channel], filters[-1])
    else:
        depth, per_group = images[channel], filters[-2]
        if isinstance(depth, int) and isinstance(per_group, int) and (per_group == 0 or depth % per_group):
            raise Conflict(f"input depth {depth} is not a multiple of the filter's depth {per_group}")
        result[channel] = filters[-1]
    return [tuple(result)]


def conv2d(call: "Call") -> list[Dims]:
    """Images times filters ``[height, width, in, out]``."""
    return _conv(call, 4)


def conv3d(call: "Call") -> list[Dims]:
    """Volumes times filters ``[depth, height, width, in, out]``."""
    return _conv(call, 5)


def conv_any(call: "Call") -> list[Dims]:
    """Images or volumes, as the rank says."""
    dims = call.shape(0)
    return [None] if dims is None or len(dims) not in (4, 5) else _conv(call, len(dims))


def depthwise(call: "Call") -> list[Dims]:
    """Images times filters ``[height, width, in, multiplier]``."""
    return _conv(call, 4, depthwise=True)


def fused_pad_conv(call: "Call") -> list[Dims]:
    """A padding before a convolution: only the batch and the channels are known."""
    images, filters = call.ranked(0, 4), call.ranked(call.node.signature.inputs.index("T", 1), 4)
    return [(images[0], None, None, filters[3])]


def _like(index: int, rank: int) -> "Rule":
    """Make the rule of a gradient that has the shape of operand ``index``."""
    return lambda call: [call.ranked(index, rank)]


def _sized(index: int, rank: int) -> "Rule":
    """Make the rule of a gradient whose shape operand ``index`` holds."""

    def rule(call: "Call") -> list[Dims]:
        dims = call.as_shape(index)
        if dims is not None and len(dims) == 2:
            dims = None  # the two spatial sizes alone, which are allowed too
        dims = with_rank(dims, rank)
        # The gradient of the images has as many images as the gradient that comes in.
        return [(merge_dim(dims[0], call.ranked(2, rank)[0]), *dims[1:]) if index == 0 else dims]

    return rule


def _pool(call: "Call", ksize: list[int] | None, strides: list[int] | None, rank: int) -> list[Dims]:
    images, padding = call.ranked(0, rank), _padding(call)
    if call.text("data_format") == "NCHW_VECT_C":
        return [None] * len(call.node.outputs)
    layout(call, rank)
    if ksize is None or strides is None or not padding:
        return [(None,) * rank] * len(call.node.outputs)
    if len(ksize) != rank or len(strides) != rank:
        raise Conflict(f"kernel {ksize[:8]} and strides {strides[:8]} should have {rank} entries")
    explicit = _explicit(call, rank)
    dims = tuple(window(images[i], ksize[i], strides[i], 1, padding, explicit[i]) for i in range(rank))
    return [dims] * len(call.node.outputs)


def pool2d(call: "Call") -> list[Dims]:
    """Windows over images, sizes in attributes."""
    return _pool(call, call.integers("ksize"), call.integers("strides"), 4)


def pool3d(call: "Call") -> list[Dims]:
    """Windows over volumes, sizes in attributes."""
    return _pool(call, call.integers("ksize"), call.integers("strides"), 5)


def pool_v2(call: "Call") -> list[Dims]:
    """Windows over images, sizes in operands."""
    return _pool(call, call.known(1), call.known(2), 4)


def pool_grad(call: "Call") -> list[Dims]:
    """The gradient has the shape of the original input."""
    return [with_rank(call.shape(0), 5 if "3D" in call.node.op_type else 4)]


def pool_grad_grad(call: "Call") -> list[Dims]:
    """The gradient of the gradient has the shape of the original output."""
    rank = 5 if "3D" in call.node.op_type else 4
    return [merge(with_rank(call.shape(1), rank), (None,) * rank)]


def avg_pool_grad(call: "Call") -> list[Dims]:
    """The gradient has the shape that operand 0 holds."""
    return [with_rank(call.as_shape(0), 5 if "3D" in call.node.op_type else 4)]


def batch_norm(call: "Call") -> list[Dims]:
    """The result like the input; every statistic a vector over the channels."""
    images = call.shape(0)
    if images is None:
        rank = 4 if "D" not in call.text("data_format") else 5
        images = (None,) * rank
    channel, _ = layout(call, len(images))
    size = images[channel]
    for index in range(1, 5):
        statistic = call.ranked(index, 1)[0]
        if statistic != 0:  # mean and variance are empty while training
            size = merge_dim(size, statistic)
    vector = (size,)
    rest: list[Dims] = [vector] * (len(call.node.outputs) - 1)
    if len(call.node.outputs) == 6:
        rest[-1] = None
    return [replaced(images, channel, size), *rest]


def batch_norm_grad(call: "Call") -> list[Dims]:
    """Gradients of the input, of scale and offset; two unused results."""
    images = merge(call.shape(0), call.shape(1))
    if images is None:
        return [None, (None,), (None,), None, None]
    channel, _ = layout(call, len(images))
    size = merge_dim(images[channel], call.ranked(2, 1)[0])
    unused: Dims = () if call.node.op_type == "FusedBatchNormGrad" else (0,)
    return [replaced(images, channel, size), (size,), (size,), unused, unused]


def resize(call: "Call") -> list[Dims]:
    """Images resized to the two sizes that operand 1 holds."""
    images = call.ranked(0, 4)
    sizes = with_rank(call.as_shape(1), 2)
    return [(images[0], *sizes, images[3])]


def resize_grad(call: "Call") -> list[Dims]:
    """The gradient has the shape of the original image."""
    gradient = call.ranked(0, 4)
    original = call.ranked(1, 4)
    return [(merge_dim(gradient[0], original[0]), original[1], original[2], merge_dim(gradient[3], original[3]))]


def space_depth(call: "Call") -> list[Dims]:
    """Blocks of pixels move into the channels, or back."""
    images, block = call.ranked(0, 4), call.integer("block_size")
    if call.text("data_format") == "NCHW_VECT_C" or block is None:
        return [None]
    if block < 1:
        raise Conflict(f"block size {block} should be positive")
    channel, spatial = layout(call, 4)
    result = list(images)
    to_depth = call.node.op_type == "SpaceToDepth"
    for axis in spatial:
        result[axis] = divide_exact(images[axis], block) if to_depth else mul_dim(images[axis], block)
    result[channel] = mul_dim(images[channel], block * block) if to_depth else divide_exact(images[channel], block * block)
    return [tuple(result)]


def extract_patches(call: "Call") -> list[Dims]:
    """Windows of an image, flattened into the channels."""
    images, padding = call.ranked(0, 4), _padding(call)
    kernel, strides, rates = (_per_dim(call, name, 4) for name in ("ksizes", "strides", "rates"))
    rows, columns = (window(images[i], kernel[i], strides[i], rates[i], padding) for i in (1, 2))
    return [(images[0], rows, columns, mul_dim(images[3], kernel[1] * kernel[2]))]


RULES: "dict[str, Rule]" = {
    "AvgPool": pool2d,
    "AvgPool3D": pool3d,
    "AvgPool3DGrad": avg_pool_grad,
    "AvgPoolGrad": avg_pool_grad,
    "Conv": conv_any,
    "Conv2D": conv2d,
    "_FusedConv2D": conv2d,
    "Conv2DBackpropFilter": _sized(1, 4),
    "Conv2DBackpropFilterV2": _like(1, 4),
    "Conv2DBackpropInput": _sized(0, 4),
    "Conv2DBackpropInputV2": _like(0, 4),
    "Conv3D": conv3d,
    "Conv3DBackpropFilter": _like(1, 5),
    "Conv3DBackpropFilterV2": _sized(1, 5),
    "Conv3DBackpropInput": _like(0, 5),
    "Conv3DBackpropInputV2": _sized(0, 5),
    "DepthToSpace": space_depth,
    "DepthwiseConv2dNative": depthwise,
    "DepthwiseConv2dNativeBackpropFilter": _sized(1, 4),
    "DepthwiseConv2dNativeBackpropInput": _sized(0, 4),
    "ExtractImagePatches": extract_patches,
    "FusedBatchNorm": batch_norm,
    "FusedBatchNormGrad": batch_norm_grad,
    "FusedBatchNormGradV2": batch_norm_grad,
    "FusedBatchNormGradV3": batch_norm_grad,
    "FusedBatchNormV2": batch_norm,
    "FusedBatchNormV3": batch_norm,
    "FusedPadConv2D": fused_pad_conv,
    "FusedResizeAndPadConv2D": fused_pad_conv,
    "MaxPool": pool2d,
    "MaxPool3D": pool3d,
    "MaxPool3DGrad": pool_grad,
    "MaxPool3DGradGrad": pool_grad_grad,
    "MaxPoolGrad": pool_grad,
    "MaxPoolGradGrad": pool_grad_grad,
    "MaxPoolGradGradV2": pool_grad_grad,
    "MaxPoolGradV2": pool_grad,
    "MaxPoolV2": pool_v2,
    "MaxPoolWithArgmax": pool2d,
    "ResizeArea": resize,
    "ResizeBicubic": resize,
    "ResizeBicubicGrad": resize_grad,
    "ResizeBilinear": resize,
    "ResizeBilinearGrad": resize_grad,
    "ResizeNearestNeighbor": resize,
    "ResizeNearestNeighborGrad": resize,
    "SpaceToDepth": space_depth,
    "_FusedBatchNormEx": batch_norm,
}
