"""Activations by name."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...graph import nn
from ...graph.errors import TrainingError, did_you_mean


def _linear(x: Any) -> Any:
    return x


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "elu": nn.elu,
    "exponential": np.exp,
    "gelu": nn.gelu,
    "leaky_relu": nn.leaky_relu,
    "linear": _linear,
    "log_softmax": nn.log_softmax,
    "relu": nn.relu,
    "relu6": nn.relu6,
    "selu": nn.selu,
    "sigmoid": nn.sigmoid,
    "silu": nn.silu,
    "softmax": nn.softmax,
    "softplus": nn.softplus,
    "softsign": nn.softsign,
    "swish": nn.silu,
    "tanh": np.tanh,
}


def find_activation(given: Any) -> Callable[[Any], Any]:
    """Return the function that a user means by a name, a function or None, which is no activation.

    Raises:
        TrainingError: If there is none of this name.
    """
    if given is None:
        return ACTIVATIONS["linear"]
    if callable(given):
        return given  # type: ignore[no-any-return]
    if not isinstance(given, str) or given not in ACTIVATIONS:
        hint = did_you_mean(given.lower(), ACTIVATIONS) if isinstance(given, str) else ""
        raise TrainingError(f"An activation is a function, None, or one of {', '.join(ACTIVATIONS)}.{hint} Received: {given!r}")
    return ACTIVATIONS[given]
