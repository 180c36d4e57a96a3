"""Layers on images [batch, height, width, channels]: convolution, pooling, and flattening."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...graph import nn
from ...graph.errors import TrainingError
from .activations import find_activation
from .dense import as_floats, features, positive
from .initializers import zeros
from .layer import Layer


class Conv2D(Layer):
    """A convolution of images with filters.

    Args:
        filters: Number of filters, which is that of channels of the result.
        kernel_size: Height and width of the filters: one number, or two.
        strides: Steps between two places of a filter: one number, or two.
        padding: ``"valid"`` or ``"same"``.
        activation: A name, such as ``"relu"``, or a function.
        use_bias: Whether a bias is added.
        **options: ``name``, ``dtype``, ``seed``: see :class:`~.layer.Layer`.

    Variables: ``kernel`` [height, width, channels, filters], Glorot uniform, and ``bias`` [filters], zeros.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: int | Sequence[int],
        strides: int | Sequence[int] = 1,
        padding: str = "valid",
        activation: Any = None,
        use_bias: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.filters = positive(self, "filters", filters)
        self.kernel_size = _pair(self, "kernel_size", kernel_size)
        self.strides = _pair(self, "strides", strides)
        self.padding = _padding(self, padding)
        self.activation = activation
        self.use_bias = use_bias
        self._activation = find_activation(activation)

    def setup(self, shape: tuple[int | None, ...]) -> None:
        """Make the variables."""
        self.kernel = self.add_variable("kernel", (*self.kernel_size, features(self, shape, 4), self.filters))
        self.bias = self.add_variable("bias", (self.filters,), zeros) if self.use_bias else None

    def call(self, x: Any) -> Any:
        """Return [batch, height, width, filters]."""
        x = as_floats(self, x, self.kernel.shape[2], 4)
        y = nn.conv2d(x, self.kernel, self.strides, self.padding.upper())
        return self._activation(y if self.bias is None else nn.bias_add(y, self.bias))


class _Pool(Layer):
    def __init__(self, pool_size: int | Sequence[int] = 2, strides: Any = None, padding: str = "valid", **options: Any) -> None:
        super().__init__(**options)
        self.pool_size = _pair(self, "pool_size", pool_size)
        self.strides = self.pool_size if strides is None else _pair(self, "strides", strides)
        self.padding = _padding(self, padding)

    def setup(self, shape: tuple[int | None, ...]) -> None:
        """Look at the shape."""
        features(self, shape, 4)


class MaxPool2D(_Pool):
    """The largest element of each window of images.

    Args:
        pool_size: Height and width of the windows: one number, or two.
        strides: Steps between two windows; their size when None.
        padding: ``"valid"`` or ``"same"``.
        **options: ``name``, ``dtype``, ``seed``: see :class:`~.layer.Layer`.
    """

    def call(self, x: Any) -> Any:
        """Return [batch, height, width, channels]."""
        return nn.max_pool(x, self.pool_size, self.strides, self.padding.upper())


class AveragePool2D(_Pool):
    """The mean of each window of images, of what is inside: arguments as for :class:`MaxPool2D`."""

    def call(self, x: Any) -> Any:
        """Return [batch, height, width, channels]."""
        return nn.avg_pool(x, self.pool_size, self.strides, self.padding.upper())


class GlobalAveragePool2D(Layer):
    """The mean of each channel of images: [batch, channels]."""

    def setup(self, shape: tuple[int | None, ...]) -> None:
        """Look at the shape."""
        features(self, shape, 4)

    def call(self, x: Any) -> Any:
        """Return [batch, channels]."""
        return np.mean(x, (1, 2))


class Flatten(Layer):
    """All elements of each example in one row."""

    def call(self, x: Any) -> Any:
        """Return [batch, elements]."""
        size = 1
        for dim in x.shape[1:]:
            size = size * dim
        return x.reshape(-1, size)


def _pair(layer: Layer, name: str, numbers: Any) -> tuple[int, int]:
    pair = tuple(numbers) if isinstance(numbers, Sequence) and not isinstance(numbers, str) else (numbers, numbers)
    if len(pair) != 2:
        raise TrainingError(
            f"Layer {layer.name!r} takes one integer as {name}, or two for height and width. Received: {numbers!r}"
        )
    return positive(layer, name, pair[0]), positive(layer, name, pair[1])


def _padding(layer: Layer, padding: Any) -> str:
    if not isinstance(padding, str) or padding.lower() not in ("valid", "same"):
        raise TrainingError(f"Layer {layer.name!r} takes the padding 'valid' or 'same'. Received: {padding!r}")
    return padding.lower()
