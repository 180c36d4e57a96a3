"""Dense layers, activations and dropout."""

from typing import Any

import numpy as np

from ...graph import nn
from ...graph.errors import TrainingError
from ...graph.tracing.operations import apply, rank, shape_of, size_operand, symbolic
from .activations import find_activation
from .initializers import zeros
from .layer import Layer


class Dense(Layer):
    """``activation(x @ kernel + bias)``, along the last axis of inputs [..., features].

    Args:
        units: Number of results.
        activation: A name, such as ``"relu"``, or a function.
        use_bias: Whether a bias is added.
        **options: ``name``, ``dtype``, ``seed``: see :class:`~.layer.Layer`.

    Variables: ``kernel`` [features, units], Glorot uniform, and ``bias`` [units], zeros.
    """

    def __init__(self, units: int, activation: Any = None, use_bias: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self.units = positive(self, "units", units)
        self.activation = activation
        self.use_bias = use_bias
        self._activation = find_activation(activation)

    def setup(self, shape: tuple[int | None, ...]) -> None:
        """Make the variables."""
        self.kernel = self.add_variable("kernel", (features(self, shape), self.units))
        self.bias = self.add_variable("bias", (self.units,), zeros) if self.use_bias else None

    def call(self, x: Any) -> Any:
        """Return [..., units]."""
        y = as_floats(self, x, self.kernel.shape[0]) @ self.kernel
        return self._activation(y if self.bias is None else nn.bias_add(y, self.bias))


class Activation(Layer):
    """An activation on its own.

    Args:
        activation: A name, such as ``"relu"``, or a function.
        **options: ``name``, ``dtype``, ``seed``: see :class:`~.layer.Layer`.
    """

    def __init__(self, activation: Any, **options: Any) -> None:
        super().__init__(**options)
        self.activation = activation
        self._activation = find_activation(activation)

    def call(self, x: Any) -> Any:
        """Return an array of the same shape."""
        return self._activation(x)


class Dropout(Layer):
    """Sets elements to zero in training, with a probability, and scales the others to keep the mean.

    Which ones follows from the seed and from how often it ran, which it keeps in the variable ``state``; so a saved model goes on
    with the same choices.

    Args:
        rate: The probability, from 0 up to but not including 1.
        **options: ``name``, ``dtype``, ``seed``: see :class:`~.layer.Layer`.
    """

    def __init__(self, rate: float, **options: Any) -> None:
        super().__init__(**options)
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < 1:
            raise TrainingError(f"Layer {self.name!r} takes a rate from 0 up to 1, which is not included. Received: {rate!r}")
        self.rate = rate

    def setup(self, shape: tuple[int | None, ...]) -> None:
        """Make the variable."""
        self.state = self.add_variable("state", (2,), _any_integers, trainable=False, dtype=np.int64)

    def call(self, x: Any, training: bool = False) -> Any:
        """Return an array of the same shape."""
        if not training or not self.rate:
            return x
        random = apply("StatelessRandomUniform", size_operand(shape_of(x)), self.state, types={"dtype": np.float32})
        self.state.assign_add(np.array([0, 1]))
        scaled = symbolic(x) * (1 / (1 - self.rate))
        return apply("SelectV2", random >= np.float32(self.rate), scaled, np.zeros((), scaled.dtype))


def _any_integers(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.integers(2**62, size=shape)


def positive(layer: Layer, name: str, number: Any) -> int:
    """Return a number that counts something.

    Raises:
        TrainingError: If it is no positive integer.
    """
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
        raise TrainingError(f"Layer {layer.name!r} takes a positive integer as {name}. Received: {number!r}")
    return int(number)


def features(layer: Layer, shape: tuple[int | None, ...], ndim: int | None = None) -> int | None:
    """Return the last size of a layer's input.

    Raises:
        TrainingError: If the input does not have so many dimensions, or less than 2.
    """
    if len(shape) < 2 or len(shape) != (ndim or len(shape)):
        wanted = f"{ndim} dimensions" if ndim else "at least 2 dimensions, of which the first is the batch"
        raise TrainingError(f"Layer {layer.name!r} takes inputs of {wanted}. Received: shape {shown(shape)}")
    return shape[-1]


def as_floats(layer: Layer, x: Any, size: int, ndim: int | None = None) -> Any:
    """Return a layer's input as floats.

    Raises:
        TrainingError: If its rank or its last size is not what the layer was built for, or it holds no real numbers.
    """
    shape = tuple(dim if isinstance(dim, int) else None for dim in shape_of(x)) if rank(x) else ()
    if features(layer, shape, ndim) not in (size, None):
        raise TrainingError(
            f"Layer {layer.name!r} was built for inputs whose last size is {size}. Received: shape {shown(shape)}"
        )
    if x.dtype.kind not in "fiub":
        raise TrainingError(f"Layer {layer.name!r} takes real numbers. Received: {x.dtype}")
    return x if x.dtype.kind == "f" else x.astype(np.float32)


def shown(shape: tuple[int | None, ...]) -> str:
    """Return a shape as text: ``[?,64]``."""
    return "[" + ",".join("?" if dim is None else str(dim) for dim in shape) + "]"
