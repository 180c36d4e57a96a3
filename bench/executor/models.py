"""Small models of the usual kinds, each written once: it is built as an ONNX graph, and run as a plain NumPy program."""

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np


class Maker(Protocol):
    """What a model is written in: ``x`` and results are values of a graph, or arrays."""

    def conv(self, x: Any, before: int, after: int, size: int, *, stride: int = 1, depthwise: bool = False) -> Any:
        """A convolution with a bias, padded such that a stride of 1 keeps the size."""

    def relu(self, x: Any) -> Any:
        """What is positive, or 0."""

    def max_pool(self, x: Any) -> Any:
        """The largest of every 2 by 2."""

    def mean_pool(self, x: Any) -> Any:
        """The mean of every channel: [N, C]."""

    def dense(self, x: Any, before: int, after: int) -> Any:
        """A product with weights, and a bias."""

    def matmul(self, a: Any, b: Any) -> Any:
        """A product of matrices, and of stacks of them."""

    def add(self, a: Any, b: Any) -> Any:
        """A sum."""

    def scale(self, x: Any, factor: float) -> Any:
        """A product with a number."""

    def gelu(self, x: Any) -> Any:
        """GELU, with a tanh."""

    def softmax(self, x: Any) -> Any:
        """Softmax along the last axis."""

    def layer_norm(self, x: Any, width: int) -> Any:
        """Layer norm along the last axis."""

    def reshape(self, x: Any, *shape: int) -> Any:
        """Another shape."""

    def transpose(self, x: Any, *axes: int) -> Any:
        """Another order of the axes."""


@dataclasses.dataclass(frozen=True)
class Model:
    """A model.

    Attributes:
        kind: What kind of model it is.
        shape: Of its input, ``x``, float32.
        write: Writes it, in a maker, on ``x``; returns the output.
    """

    kind: str
    shape: tuple[int, ...]
    write: Callable[[Maker, Any], Any]


class Weights:
    """Random weights, the same each time that a model is written."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)
        self._drawn: list[Any] = []
        self._next = 0

    def restart(self) -> None:
        """Begin with the first ones again."""
        self._next = 0

    def draw(self, *shape: int, inputs: int = 1, mean: float = 0.0) -> Any:
        """Return float32 numbers around ``mean``, as large as those of a layer with so many inputs."""
        if self._next == len(self._drawn):
            self._drawn.append((mean + self._random.standard_normal(shape) * 0.5 * inputs**-0.5).astype(np.float32))
        self._next += 1
        return self._drawn[self._next - 1]


def _mlp(f: Maker, x: Any) -> Any:
    x = f.relu(f.dense(x, 784, 1024))
    x = f.relu(f.dense(x, 1024, 1024))
    return f.softmax(f.dense(x, 1024, 10))


def _cnn(f: Maker, x: Any) -> Any:
    x = f.max_pool(f.relu(f.conv(x, 3, 64, 7, stride=2)))
    for before, after in ((64, 64), (64, 128), (128, 256)):
        stride = 1 if before == after else 2
        y = f.relu(f.conv(x, before, after, 3, stride=stride))
        y = f.conv(y, after, after, 3)
        x = f.relu(f.add(y, x if stride == 1 else f.conv(x, before, after, 1, stride=2)))
    return f.softmax(f.dense(f.mean_pool(x), 256, 10))


def _depthwise(f: Maker, x: Any) -> Any:
    x = f.relu(f.conv(x, 3, 32, 3, stride=2))
    for before, after, size, stride in ((32, 64, 3, 1), (64, 128, 3, 2), (128, 128, 5, 1), (128, 256, 5, 2)):
        x = f.relu(f.conv(x, before, before, size, stride=stride, depthwise=True))
        x = f.relu(f.conv(x, before, after, 1))
    return f.softmax(f.dense(f.mean_pool(x), 256, 10))


def _bert(f: Maker, x: Any, length: int = 128, width: int = 256, heads: int = 4) -> Any:
    for _ in range(2):
        parts = [f.reshape(f.dense(x, width, width), 1, length, heads, width // heads) for _ in range(3)]
        query, key, value = (
            f.transpose(parts[0], 0, 2, 1, 3),
            f.transpose(parts[1], 0, 2, 3, 1),
            f.transpose(parts[2], 0, 2, 1, 3),
        )
        weights = f.softmax(f.scale(f.matmul(query, key), (width // heads) ** -0.5))
        mixed = f.reshape(f.transpose(f.matmul(weights, value), 0, 2, 1, 3), 1, length, width)
        x = f.layer_norm(f.add(x, f.dense(mixed, width, width)), width)
        y = f.dense(f.gelu(f.dense(x, width, 4 * width)), 4 * width, width)
        x = f.layer_norm(f.add(x, y), width)
    return x


#: The models by name.
MODELS = {
    "made_mlp": Model("other", (32, 784), _mlp),
    "made_cnn": Model("CNN", (1, 3, 112, 112), _cnn),
    "made_depthwise": Model("depthwise", (1, 3, 112, 112), _depthwise),
    "made_bert": Model("transformer", (1, 128, 256), _bert),
}
