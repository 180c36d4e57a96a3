"""Convolutions and pooling, on images in either layout."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import TraceError
from ..tracing.array import SymbolicArray
from ..tracing.operations import alike, apply, rank, static_shape

#: The layouts of images: batch, height, width, channels; or channels first.
_LAYOUTS = ("NHWC", "NCHW")


def conv2d(
    x: Any,
    filters: Any,
    stride: int | Sequence[int] = 1,
    padding: str | Sequence[Sequence[int]] = "SAME",
    *,
    data_format: str = "NHWC",
    dilation: int | Sequence[int] = 1,
) -> Any:
    """Return the convolution of images with filters (without turning these round, as all neural networks do).

    Args:
        x: Images: [batch, height, width, channels], or [batch, channels, height, width] with ``data_format="NCHW"``. Channels
            may be a multiple of the filters', which then work in groups.
        filters: [height, width, channels, results], in both layouts.
        stride: Steps between two places of a filter; one number, or two for height and width.
        padding: ``"SAME"``, ``"VALID"``, or two pairs of how many zeros are added before and after.
        data_format: The layout of the images.
        dilation: Steps between two elements of a filter.

    Raises:
        TraceError: If an argument makes no sense.
        GraphError: If shapes do not fit.
    """
    pads = _padding(padding, data_format)
    return apply(
        "Conv2D", *_images(x, filters), strides=_window(stride, data_format), dilations=_window(dilation, data_format), **pads
    )


def depthwise_conv2d(
    x: Any,
    filters: Any,
    stride: int | Sequence[int] = 1,
    padding: str | Sequence[Sequence[int]] = "SAME",
    *,
    data_format: str = "NHWC",
    dilation: int | Sequence[int] = 1,
) -> Any:
    """Return the convolution of each channel with filters of its own.

    Args:
        x: Images, as for :func:`conv2d`.
        filters: [height, width, channels, results for each channel].
        stride, padding, data_format, dilation: As for :func:`conv2d`; steps are equal in height and width.

    Raises:
        TraceError, GraphError: As for :func:`conv2d`.
    """
    return apply(
        "DepthwiseConv2dNative",
        *_images(x, filters),
        strides=_window(stride, data_format),
        dilations=_window(dilation, data_format),
        **_padding(padding, data_format),
    )


def max_pool(
    x: Any, size: int | Sequence[int] = 2, stride: Any = None, padding: str = "VALID", *, data_format: str = "NHWC"
) -> Any:
    """Return the largest element of each window of images.

    Args:
        x: Images, as for :func:`conv2d`.
        size: Height and width of the windows.
        stride: Steps between two windows; their size when None.
        padding: ``"SAME"`` or ``"VALID"``.
        data_format: The layout of the images.
    """
    return _pool("MaxPool", x, size, stride, padding, data_format)


def avg_pool(
    x: Any, size: int | Sequence[int] = 2, stride: Any = None, padding: str = "VALID", *, data_format: str = "NHWC"
) -> Any:
    """Return the mean of each window of images, of what is inside: see :func:`max_pool`."""
    return _pool("AvgPool", x, size, stride, padding, data_format)


def bias_add(x: Any, bias: Any, *, data_format: str = "NHWC") -> Any:
    """Return ``x`` with a number added for each channel: along the last axis, or the second in layout ``NCHW``."""
    _window(1, data_format)
    return apply("BiasAdd", *alike(x, bias), data_format=data_format)


def _pool(op_type: str, x: Any, size: Any, stride: Any, padding: Any, data_format: str) -> SymbolicArray:
    if padding not in ("SAME", "VALID"):
        raise TraceError(f"The padding of pooling is 'SAME' or 'VALID'. Received: {padding!r}")
    strides = _window(size if stride is None else stride, data_format)
    ksize = _window(size, data_format)
    return apply(op_type, *_images(x), ksize=ksize, strides=strides, padding=padding, data_format=data_format)


def _images(x: Any, *others: Any) -> tuple[Any, ...]:
    for operand in (x, *others):
        if rank(operand) != 4:
            raise TraceError(f"Images and filters have 4 dimensions. Received: {list(static_shape(operand))}")
    return tuple(alike(x, *others))


def _window(numbers: int | Sequence[int], data_format: str) -> list[int]:
    """Return numbers for height and width as four, for the axes of the layout."""
    if data_format not in _LAYOUTS:
        raise TraceError(f"The layout of images is NHWC or NCHW. Received: {data_format!r}")
    pair = list(numbers) if isinstance(numbers, Sequence) else [numbers] * 2
    if len(pair) != 2 or any(not _is_count(number, 1) for number in pair):
        raise TraceError(f"Sizes and steps are one positive integer, or two for height and width. Received: {numbers!r}")
    pair = [int(number) for number in pair]
    return [1, *pair, 1] if data_format == "NHWC" else [1, 1, *pair]


def _padding(padding: str | Sequence[Sequence[int]], data_format: str) -> dict[str, Any]:
    if padding in ("SAME", "VALID"):
        return {"padding": padding, "data_format": data_format}
    pairs = [list(pair) if isinstance(pair, Sequence) else [] for pair in padding] if isinstance(padding, Sequence) else []
    if len(pairs) != 2 or any(len(pair) != 2 or not all(_is_count(number, 0) for number in pair) for pair in pairs):
        raise TraceError(
            "Padding is 'SAME', 'VALID' or two pairs of integers that are not negative, for height and width. "
            f"Received: {padding!r}"
        )
    zeros = [0, 0]
    flat = [*zeros, *pairs[0], *pairs[1], *zeros] if data_format == "NHWC" else [*zeros, *zeros, *pairs[0], *pairs[1]]
    return {"padding": "EXPLICIT", "explicit_paddings": flat, "data_format": data_format}


def _is_count(number: Any, least: int) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool) and int(number) >= least
