"""TensorFlow's windows: what ``strides``, ``padding``, ``dilations``, ``explicit_paddings`` and ``data_format`` say.

Convolutions and pools share their algorithms with ONNX's, which have channels second: operands are turned once, as views.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .windows import Geometry

if TYPE_CHECKING:
    from .call import Call


def channels_last(call: "Call") -> bool:
    """Whether the last axis of images is that of the channels, and not the second."""
    return call.attr("data_format", "NHWC") in ("NHWC", "NDHWC", "NWC", "CHANNELS_LAST")


def channels_second(call: "Call", x: Any) -> Any:
    """Return images as a view whose channels come second."""
    return call.xp.moveaxis(x, -1, 1) if channels_last(call) else x


def as_asked(call: "Call", y: Any) -> Any:
    """Return a result whose channels come second in the layout of the node."""
    return call.xp.moveaxis(y, 1, -1) if channels_last(call) else y


def spatial_sizes(call: "Call", sizes: Any) -> tuple[int, ...]:
    """Return the sizes of spatial axes from the shape of images."""
    numbers = [int(n) for n in sizes]
    return tuple(numbers[1:-1] if channels_last(call) else numbers[2:])


def spatial(call: "Call", name: str, rank: int) -> tuple[int, ...]:
    """Return an attribute that has an integer for each axis of images, for the spatial axes only.

    Raises:
        KernelError: If it has another number of integers, or asks for something along the batch or the channels.
    """
    numbers = [int(v) for v in call.attr(name, None) or ()] or [1] * (rank + 2)
    if len(numbers) == 1:
        numbers = [1, *numbers * rank, 1] if channels_last(call) else [1, 1, *numbers * rank]
    inner = spatial_sizes(call, numbers)
    if len(inner) != rank or sum(numbers) - sum(inner) != 2 or min(inner) < 1:
        raise KernelError(f"Attribute {name!r} needs {rank + 2} integers, 1 for batch and channels. Received: {numbers}")
    return inner


def tf_geometry(call: "Call", shape: Sequence[int], kernel: Sequence[int]) -> Geometry:
    """Return the windows of a node over images.

    Args:
        call: The call; its attributes are read.
        shape: Spatial shape of the images.
        kernel: Shape of a window.

    Raises:
        KernelError: If attributes do not fit, or a window does not fit into the images.
    """
    rank = len(shape)
    strides, dilations = spatial(call, "strides", rank), spatial(call, "dilations", rank)
    return laid(call, shape, kernel, strides, dilations)


def laid(call: "Call", shape: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Geometry:
    """Return windows as ``padding`` and ``explicit_paddings`` lay them.

    Raises:
        KernelError: If a window does not fit.
    """
    padding = call.attr("padding", "VALID")
    given: list[int] = [int(v) for v in call.attr("explicit_paddings", None) or ()]
    rank = len(shape)
    if padding == "EXPLICIT":
        if len(given) == 2 * rank + 4:
            given = given[2:-2] if channels_last(call) else given[4:]
        if len(given) != 2 * rank:
            raise KernelError(f"Attribute 'explicit_paddings' needs {2 * rank + 4} integers here. Received: {given}")
    begins, ends, counts = [], [], []
    for i, (size, k, s, d) in enumerate(zip(shape, kernel, strides, dilations, strict=True)):
        extent = (k - 1) * d + 1
        begin, end = (given[2 * i], given[2 * i + 1]) if padding == "EXPLICIT" else (0, 0)
        if padding == "SAME":
            count = -(-size // s)
            total = max((count - 1) * s + extent - size, 0)
            begin, end = total // 2, total - total // 2
        else:
            count = (size + begin + end - extent + s) // s
        if count < 0 or k < 1:
            raise KernelError(
                f"A window of {extent} elements does not fit into {size} elements padded by {begin} and {end}. "
                f"Received: images of {list(shape)}, windows of {list(kernel)}"
            )
        begins.append(begin)
        ends.append(end)
        counts.append(count)
    return Geometry(tuple(kernel), tuple(strides), tuple(dilations), tuple(begins), tuple(ends), tuple(counts))
