"""Batch and layer normalization."""

from typing import Any

import numpy as np

from ...graph import nn
from ...graph.errors import TrainingError
from .dense import as_floats, features
from .initializers import ones, zeros
from .layer import Layer


class BatchNormalization(Layer):
    """Normalizes each channel: in training with the statistics of the batch, else with their running means.

    Running means do not take over statistics that are not finite, which a step that overflows has.

    Args:
        momentum: How much of the old running means stays at each step.
        epsilon: Added to variances.
        **options: ``name``, ``dtype``, ``seed``: see :class:`~.layer.Layer`.

    Variables, each [channels]: ``gamma`` and ``beta``, by which normalized channels are multiplied and which is added, and, not changed
    by optimizers, ``moving_mean`` and ``moving_variance``; as in TensorFlow's fused kernel the latter counts the batch as a sample.
    """

    def __init__(self, momentum: float = 0.99, epsilon: float = 1e-3, **options: Any) -> None:
        super().__init__(**options)
        self.momentum = _number(self, "momentum", momentum, 1)
        self.epsilon = _number(self, "epsilon", epsilon, np.inf)

    def setup(self, shape: tuple[int | None, ...]) -> None:
        """Make the variables."""
        channels = (features(self, shape),)
        self.gamma = self.add_variable("gamma", channels, ones)
        self.beta = self.add_variable("beta", channels, zeros)
        self.moving_mean = self.add_variable("moving_mean", channels, zeros, trainable=False)
        self.moving_variance = self.add_variable("moving_variance", channels, ones, trainable=False)

    def call(self, x: Any, training: bool = False) -> Any:
        """Return an array of the same shape: images, or [batch, channels]."""
        x = as_floats(self, x, self.gamma.shape[0])
        moving = (self.moving_mean, self.moving_variance)
        y, *statistics = nn.batch_norm(
            x, self.gamma, self.beta, *moving, training=training, momentum=self.momentum, epsilon=self.epsilon
        )
        if training:
            for variable, new in zip(moving, statistics, strict=True):
                variable.assign(np.where(np.isfinite(new), new, variable))
        return y


class LayerNormalization(Layer):
    """Normalizes the last axis of each example to mean 0 and variance 1, then scales it and adds an offset.

    Args:
        epsilon: Added to the variance.
        **options: ``name``, ``dtype``, ``seed``: see :class:`~.layer.Layer`.

    Variables: ``gamma`` [features], ones, and ``beta`` [features], zeros.
    """

    def __init__(self, epsilon: float = 1e-3, **options: Any) -> None:
        super().__init__(**options)
        self.epsilon = _number(self, "epsilon", epsilon, np.inf)

    def setup(self, shape: tuple[int | None, ...]) -> None:
        """Make the variables."""
        self.gamma = self.add_variable("gamma", (features(self, shape),), ones)
        self.beta = self.add_variable("beta", (features(self, shape),), zeros)

    def call(self, x: Any) -> Any:
        """Return an array of the same shape."""
        x = as_floats(self, x, self.gamma.shape[0])
        return nn.layer_norm(x, self.gamma, self.beta, epsilon=self.epsilon)


def _number(layer: Layer, name: str, number: Any, below: float) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < below:
        bound = f"at least 0 and less than {below:g}" if below < np.inf else "not negative"
        raise TrainingError(f"Layer {layer.name!r} takes a number {bound} as {name}. Received: {number!r}")
    return float(number)
