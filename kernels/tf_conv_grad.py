"""Gradients of TensorFlow's convolutions: by the images, a convolution with the filter turned round, or a fold of columns; by the
filter, products of windows and the gradient. All of it block by block, as many as the cache holds.
"""

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .conv import BLOCK, Blocks, convolve
from .registry import kernel
from .room import check_room
from .tf_conv import depthwise_weights, groups_of, results_first
from .tf_windows import as_asked, channels_last, channels_second, spatial_sizes, tf_geometry
from .windows import Geometry, fold, pad, scratch, view

if TYPE_CHECKING:
    from .call import Call

#: So many windows, at least, are added up in one product.
_LEAST_WINDOWS = 256


def images_gradient(xp: Any, dy: Any, w: Any, geo: Geometry, groups: int, shape: Sequence[int]) -> Any:
    """Return the gradient of a convolution by its images.

    Args:
        xp: Array module.
        dy: Gradient of the result, ``[N, M, counts ...]``.
        w: Weights ``[M, C / groups, kernel ...]``.
        geo: The windows over the images.
        groups: Number of groups of channels.
        shape: Spatial shape of the images.
    """
    n, m = dy.shape[:2]
    depth, taps = w.shape[1], prod(geo.kernel)
    begins = tuple((k - 1) * d - b for k, d, b in zip(geo.kernel, geo.dilations, geo.begins, strict=True))
    if max(geo.strides) == 1 and min(begins) >= 0 and m <= 2 * groups * depth:
        turned = w[(..., *(slice(None, None, -1),) * len(geo.kernel))].reshape(groups, m // groups, depth, taps).swapaxes(1, 2)
        around = geo._replace(begins=begins, counts=tuple(shape))
        return convolve(xp, dy, xp.ascontiguousarray(turned).reshape(groups * depth, m // groups, *geo.kernel), around, groups)
    weights = xp.ascontiguousarray(w.reshape(groups, m // groups, -1).swapaxes(1, 2))
    rows = xp.ascontiguousarray(dy).reshape(n, groups, m // groups, prod(geo.counts))
    check_room(xp, (n, groups * depth, *shape), dy.itemsize)
    result = xp.empty((n, groups * depth, *shape), dy.dtype)
    many = max(1, BLOCK // max(groups * depth * taps * prod(geo.counts), 1))
    for i in range(0, n, many):
        part = rows[i : i + many]
        columns = xp.matmul(weights, part).reshape(len(part), groups * depth, taps, *geo.counts)
        result[i : i + many] = fold(xp, columns, geo, shape)
    return result


def filter_gradient(xp: Any, x: Any, dy: Any, geo: Geometry, groups: int) -> Any:
    """Return the gradient of a convolution by its filter, ``[kernel ..., C / groups, M]``.

    Args:
        xp: Array module.
        x: Images ``[N, C, spatial ...]``.
        dy: Gradient of the result, ``[N, M, counts ...]``.
        geo: The windows.
        groups: Number of groups of channels.
    """
    c, m = x.shape[1], dy.shape[1]
    n, rank, depth = x.shape[0], len(geo.kernel), c // groups * prod(geo.kernel)
    result = xp.zeros((groups, m // groups, depth), dy.dtype)
    if dy.size:
        windows = view(xp, pad(xp, x, geo), geo).reshape((n, groups, c // groups, *geo.kernel, *geo.counts))
        rows = dy.reshape((n, groups, m // groups, *geo.counts))
        blocks = Blocks.of(n, groups, geo.counts, depth, max(BLOCK, _LEAST_WINDOWS * depth))
        columns = scratch(xp, "columns", (blocks.most * depth,), x.dtype)
        for images, some, places in blocks.slices():
            before = (slice(None),) * blocks.axis
            part = xp.moveaxis(windows[(images, some, *(slice(None),) * (1 + rank), *before, places)], 0, 2 + rank)
            block = columns[: part.size].reshape(part.shape)
            block[...] = part
            came = xp.moveaxis(rows[(images, some, slice(None), *before, places)], 0, 2)
            came = xp.ascontiguousarray(came).reshape(*came.shape[:2], -1)
            result[some] += xp.matmul(came, block.reshape(len(part), depth, -1).swapaxes(1, 2))
    result = result.reshape((m, c // groups, *geo.kernel))
    return xp.ascontiguousarray(xp.moveaxis(result, (0, 1), (-1, -2)))


def _check(geo: Geometry, dy: Any, results: int) -> None:
    if tuple(dy.shape[1:]) != (results, *geo.counts):
        raise KernelError(
            f"The gradient of a convolution should have {results} channels and the spatial shape {list(geo.counts)}. "
            f"Received: {list(dy.shape)}, channels second"
        )


def _by_images(call: "Call", shape: Sequence[int], w: Any, dy: Any) -> tuple[Any, Geometry, tuple[int, ...], int]:
    """Return the gradient with channels second, the windows, and the spatial shape and channels of the images."""
    if dy.ndim != w.ndim or len(shape) not in (w.ndim, w.ndim - 2):
        raise KernelError(
            f"A gradient by images takes their shape, a filter and the gradient of the result, of one rank. "
            f"Received: {list(shape)}, {list(w.shape)} and {list(dy.shape)}"
        )
    if len(shape) == w.ndim:
        sizes = spatial_sizes(call, shape)
        channels = int(shape[-1 if channels_last(call) else 1])
    else:
        sizes, channels = tuple(int(n) for n in shape), int(w.shape[-2])
    return channels_second(call, dy), tf_geometry(call, sizes, w.shape[:-2]), sizes, channels


@kernel("tf:Conv2DBackpropInput", "tf:Conv3DBackpropInputV2")
def conv_by_images(call: "Call", shape: Any, w: Any, dy: Any) -> Any:
    """The gradient of a convolution by its images, whose shape is given."""
    dy, geo, sizes, channels = _by_images(call, shape, w, dy)
    _check(geo, dy, w.shape[-1])
    return as_asked(call, images_gradient(call.xp, dy, results_first(call.xp, w), geo, groups_of(channels, w), sizes))


@kernel("tf:Conv2DBackpropInputV2", "tf:Conv3DBackpropInput")
def conv_by_given_images(call: "Call", x: Any, w: Any, dy: Any) -> Any:
    """The gradient of a convolution by its images, which are given."""
    return conv_by_images(call, x.shape, w, dy)


@kernel("tf:DepthwiseConv2dNativeBackpropInput")
def depthwise_by_images(call: "Call", shape: Any, w: Any, dy: Any) -> Any:
    """The gradient of a depthwise convolution by its images."""
    dy, geo, sizes, channels = _by_images(call, shape, w, dy)
    _check(geo, dy, channels * w.shape[-1])
    return as_asked(call, images_gradient(call.xp, dy, depthwise_weights(call.xp, w), geo, channels, sizes))


@kernel("tf:Conv2DBackpropFilter", "tf:Conv3DBackpropFilterV2")
def conv_by_filter(call: "Call", x: Any, shape: Any, dy: Any) -> Any:
    """The gradient of a convolution by its filter, whose shape is given."""
    sizes = tuple(int(n) for n in shape)
    x, dy = channels_second(call, x), channels_second(call, dy)
    geo = tf_geometry(call, x.shape[2:], sizes[:-2])
    _check(geo, dy, sizes[-1])
    if not sizes[-2] or x.shape[1] % sizes[-2]:
        raise KernelError(f"A filter for {x.shape[1]} channels was expected. Received: filter of shape {list(sizes)}")
    return filter_gradient(call.xp, x, dy, geo, x.shape[1] // sizes[-2])


@kernel("tf:Conv2DBackpropFilterV2", "tf:Conv3DBackpropFilter")
def conv_by_given_filter(call: "Call", x: Any, w: Any, dy: Any) -> Any:
    """The gradient of a convolution by its filter, which is given."""
    return conv_by_filter(call, x, w.shape, dy)


@kernel("tf:DepthwiseConv2dNativeBackpropFilter")
def depthwise_by_filter(call: "Call", x: Any, shape: Any, dy: Any) -> Any:
    """The gradient of a depthwise convolution by its filter."""
    sizes = tuple(int(n) for n in shape)
    x, dy = channels_second(call, x), channels_second(call, dy)
    geo = tf_geometry(call, x.shape[2:], sizes[:-2])
    _check(geo, dy, sizes[-1] * sizes[-2])
    return filter_gradient(call.xp, x, dy, geo, x.shape[1]).reshape(sizes)
