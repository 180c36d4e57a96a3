"""TensorFlow's convolutions. Filters are ``[kernel ..., channels / groups, results]`` in every layout of the images."""

from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .conv import convolve
from .registry import kernel
from .tf_pad import mirror_pad
from .tf_windows import as_asked, channels_last, channels_second, tf_geometry

if TYPE_CHECKING:
    from .call import Call


def check_images(x: Any, w: Any) -> None:
    """Refuse images and a filter of different ranks, or of less than 3.

    Raises:
        KernelError: If they are.
    """
    if x.ndim != w.ndim or x.ndim < 3:
        raise KernelError(
            f"A convolution takes images and a filter of one rank, at least 3. Received: {list(x.shape)} and {list(w.shape)}"
        )


def groups_of(channels: int, w: Any) -> int:
    """Return the number of groups that a filter of fewer channels than the images makes.

    Raises:
        KernelError: If the channels do not fall into groups.
    """
    depth = w.shape[-2]
    if depth == channels:
        return 1
    if not depth or channels % depth:
        raise KernelError(f"{channels} channels do not fall into groups for a filter. Received: filter of shape {list(w.shape)}")
    return int(channels // depth)


def results_first(xp: Any, w: Any) -> Any:
    """Return a filter as a view ``[results, channels / groups, kernel ...]``."""
    return xp.moveaxis(w, (-1, -2), (0, 1))


@kernel("tf:Conv2D", "tf:Conv3D", "tf:Conv")
def conv(call: "Call", x: Any, w: Any) -> Any:
    """A convolution, in groups where the filter has fewer channels than the images."""
    xp = call.xp
    many = int(call.attr("batch_dims", 1))
    lead = x.shape[:many]
    if many != 1:
        x = x.reshape(-1, *x.shape[many:])
    check_images(x, w)
    images = channels_second(call, x)
    geo = tf_geometry(call, images.shape[2:], w.shape[:-2])
    groups = groups_of(images.shape[1], w)
    if geo.plain and groups == 1 and channels_last(call):
        y = xp.matmul(x.reshape(-1, x.shape[-1]), w.reshape(w.shape[-2:])).reshape(*x.shape[:-1], w.shape[-1])
    else:
        y = as_asked(call, convolve(xp, images, xp.ascontiguousarray(results_first(xp, w)), geo, groups))
    return y if many == 1 else y.reshape(*lead, *y.shape[1:])


@kernel("tf:FusedPadConv2D")
def padded_conv(call: "Call", x: Any, paddings: Any, w: Any) -> Any:
    """A convolution of images with their mirror image around them."""
    return conv(call, mirror_pad(call, x, paddings), w)


def depthwise_weights(xp: Any, w: Any) -> Any:
    """Return a filter ``[kernel ..., channels, multiplier]`` as ``[channels * multiplier, 1, kernel ...]``."""
    rows = xp.moveaxis(w, (-2, -1), (0, 1))
    return rows.reshape(-1, 1, *w.shape[:-2])


@kernel("tf:DepthwiseConv2dNative")
def depthwise(call: "Call", x: Any, w: Any) -> Any:
    """A convolution of each channel by itself, with as many results as the filter's last axis has."""
    check_images(x, w)
    images = channels_second(call, x)
    if images.shape[1] != w.shape[-2]:
        raise KernelError(f"A filter for {images.shape[1]} channels was expected. Received: filter of shape {list(w.shape)}")
    geo = tf_geometry(call, images.shape[2:], w.shape[:-2])
    return as_asked(call, convolve(call.xp, images, depthwise_weights(call.xp, w), geo, images.shape[1]))
