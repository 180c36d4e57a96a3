"""Models as NumPy programs, the way one writes them down: windows and a product for a convolution, nothing fused or kept."""

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from bench.executor.models import Model, Weights


class Plain:
    """A model that computes while it is written; what it is written in, see :class:`bench.executor.models.Maker`."""

    def __init__(self, model: Model) -> None:
        self._model, self._weights = model, Weights()

    def __call__(self, x: Any) -> Any:
        """Return the output for an input."""
        self._weights.restart()
        return self._model.write(self, x)

    def conv(self, x: Any, before: int, after: int, size: int, *, stride: int = 1, depthwise: bool = False) -> Any:
        """A convolution with a bias, padded such that a stride of 1 keeps the size."""
        inputs = 1 if depthwise else before
        w = self._weights.draw(after, inputs, size, size, inputs=inputs * size * size)
        b = self._weights.draw(after)
        x = np.pad(x, ((0, 0), (0, 0), *((size // 2, size // 2),) * 2))
        windows = sliding_window_view(x, (size, size), (2, 3))[:, :, ::stride, ::stride]  # [N, C, H, W, size, size]
        if depthwise:
            y = np.einsum("nchwij,cij->nchw", windows, w[:, 0])
        else:
            n, _, height, width = windows.shape[:4]
            columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * height * width, -1)
            y = (columns @ w.reshape(after, -1).T).reshape(n, height, width, after).transpose(0, 3, 1, 2)
        return y + b[:, None, None]

    def relu(self, x: Any) -> Any:
        """What is positive, or 0."""
        return np.maximum(x, 0)

    def max_pool(self, x: Any) -> Any:
        """The largest of every 2 by 2."""
        n, c, height, width = x.shape
        return x.reshape(n, c, height // 2, 2, width // 2, 2).max((3, 5))

    def mean_pool(self, x: Any) -> Any:
        """The mean of every channel: [N, C]."""
        return x.mean((2, 3))

    def dense(self, x: Any, before: int, after: int) -> Any:
        """A product with weights, and a bias."""
        return x @ self._weights.draw(before, after, inputs=before) + self._weights.draw(after)

    def matmul(self, a: Any, b: Any) -> Any:
        """A product of matrices, and of stacks of them."""
        return a @ b

    def add(self, a: Any, b: Any) -> Any:
        """A sum."""
        return a + b

    def scale(self, x: Any, factor: float) -> Any:
        """A product with a number."""
        return x * np.float32(factor)

    def gelu(self, x: Any) -> Any:
        """GELU, with a tanh."""
        return 0.5 * x * (1 + np.tanh(np.float32((2 / np.pi) ** 0.5) * (x + np.float32(0.044715) * x * x * x)))

    def softmax(self, x: Any) -> Any:
        """Softmax along the last axis."""
        powers = np.exp(x - x.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)

    def layer_norm(self, x: Any, width: int) -> Any:
        """Layer norm along the last axis."""
        scale, shift = self._weights.draw(width, mean=1.0), self._weights.draw(width)
        centered = x - x.mean(-1, keepdims=True)
        return centered / np.sqrt((centered * centered).mean(-1, keepdims=True) + np.float32(1e-5)) * scale + shift

    def reshape(self, x: Any, *shape: int) -> Any:
        """Another shape."""
        return x.reshape(shape)

    def transpose(self, x: Any, *axes: int) -> Any:
        """Another order of the axes."""
        return x.transpose(axes)
