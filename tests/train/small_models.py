"""Small models, and data to train them on."""

from typing import Any

import numpy as np

import ampgraph as ag
from ampgraph import layers

X, Y = np.random.default_rng(0).random((20, 4)), np.random.default_rng(1).random((20, 3))


def mlp(**options: Any) -> ag.Sequential:
    """Return a small model."""
    return ag.Sequential([layers.Dense(8, activation="relu"), layers.Dense(3, activation="softmax")], **options)


def compiled(loss: Any = "mse", metrics: Any = (), **options: Any) -> ag.Sequential:
    """Return a small model that can be trained."""
    model = mlp(seed=0)
    model.compile(options.pop("optimizer", "sgd"), loss, metrics, **options)
    return model


def weights(model: ag.Model) -> dict[str, bytes]:
    """Return what the variables hold."""
    return {variable.name: variable.value.tobytes() for variable in model.variables}
