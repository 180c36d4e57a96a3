"""Gradients of TensorFlow's convolutions: by the images, a fold of columns; by the filter, a matrix product for each tap."""

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .registry import kernel
from .tf_conv import depthwise_weights, groups_of, results_first
from .tf_windows import as_asked, channels_last, channels_second, spatial_sizes, tf_geometry
from .windows import Geometry, fold, pad

if TYPE_CHECKING:
    from .call import Call


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
    depth = w.shape[1]
    weights = xp.ascontiguousarray(w.reshape(groups, m // groups, -1).swapaxes(1, 2))
    columns = xp.matmul(weights, xp.ascontiguousarray(dy).reshape(n, groups, m // groups, prod(geo.counts)))
    return fold(xp, columns.reshape((n, groups * depth, prod(geo.kernel), *geo.counts)), geo, shape)


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
    count = dy.shape[0] * prod(geo.counts)
    rows = xp.ascontiguousarray(xp.moveaxis(dy, 1, -1)).reshape(count, groups, m // groups).swapaxes(0, 1)
    padded = xp.moveaxis(pad(xp, x, geo), 1, -1)
    result = xp.empty((prod(geo.kernel), c // groups, groups, m // groups), dy.dtype)
    for i, tap in enumerate(geo.taps()):
        seen = padded[(slice(None), *geo.slices(tap))].reshape(count, groups, c // groups)
        result[i] = xp.matmul(seen.transpose(1, 2, 0), rows).swapaxes(0, 1)
    return result.reshape(*geo.kernel, c // groups, m)


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
