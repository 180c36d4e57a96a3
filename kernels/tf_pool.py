"""TensorFlow's pools: the greatest or the mean of every window, which in TensorFlow may lie along the channels, too."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .pool import lowest, window_means, windowed
from .registry import kernel
from .tf_reduce import lowest_finite
from .tf_windows import as_asked, channels_last, channels_second, laid
from .windows import Geometry

if TYPE_CHECKING:
    from .call import Call


def pool_windows(call: "Call", shape: Sequence[int], ksize: Any = None, strides: Any = None) -> Geometry:
    """Return the windows of a pool over images of the given shape, channels second.

    They have the axes of :func:`pooled`: those behind the channels or, for windows along batch or channels, all.

    Raises:
        KernelError: If attributes do not fit or a window does not fit into the images.
    """
    given = [call.attr(name, None) if value is None else value for name, value in (("ksize", ksize), ("strides", strides))]
    sizes, steps = ([int(n) for n in numbers] for numbers in given)
    if len(shape) < 3 or len(sizes) != len(shape) or len(steps) != len(shape) or min(*sizes, *steps) < 1:
        raise KernelError(
            f"A pool of images needs ksize and strides with a positive integer for each axis. "
            f"Received: {sizes} and {steps} for {list(shape)}"
        )
    if channels_last(call):
        sizes.insert(1, sizes.pop())
        steps.insert(1, steps.pop())
    first = 2 if max(*sizes[:2], *steps[:2]) == 1 else 0
    return laid(call, shape[first:], sizes[first:], steps[first:], (1,) * (len(shape) - first))


def pooled(x: Any, geo: Geometry) -> Any:
    """Return images, channels second, as ``[N, C, the axes of the windows]``."""
    return x if len(geo.kernel) < x.ndim else x[None, None]


def greatest(call: "Call", x: Any, ksize: Any = None, strides: Any = None) -> Any:
    """Return the greatest number of every window. NaN counts as the lowest number, but in volumes."""
    xp = call.xp
    images = channels_second(call, x)
    geo = pool_windows(call, images.shape, ksize, strides)
    floats = x.dtype.kind == "f"
    y = windowed(xp, pooled(images, geo), geo, xp.fmax if floats else xp.maximum, lowest(xp, x.dtype))
    if floats and x.ndim < 5:
        xp.fmax(y, x.dtype.type(lowest_finite(call.dtype("T"))), out=y)
    return as_asked(call, y if y.ndim == x.ndim else y[0, 0])


@kernel("tf:MaxPool", "tf:MaxPool3D")
def max_pool(call: "Call", x: Any) -> Any:
    """The greatest number of every window."""
    return greatest(call, x)


@kernel("tf:MaxPoolV2")
def max_pool_v2(call: "Call", x: Any, ksize: Any, strides: Any) -> Any:
    """The greatest number of every window, whose sizes and steps are operands."""
    return greatest(call, x, ksize, strides)


@kernel("tf:AvgPool", "tf:AvgPool3D")
def average_pool(call: "Call", x: Any) -> Any:
    """The mean of every window, without what lies outside of the images."""
    images = channels_second(call, x)
    geo = pool_windows(call, images.shape)
    y = window_means(call.xp, pooled(images, geo), geo)
    return as_asked(call, y if y.ndim == x.ndim else y[0, 0])
