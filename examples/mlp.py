"""Two dense layers with a softmax and the squared error of probabilities, whose gradients are tiny: ``python -m examples.mlp``."""

from typing import Any

import numpy as np

import ampgraph as ag
from ampgraph.train import Adam
from ampgraph.train.layers import Dense

from .side_by_side import Example, main


def data(seed: int) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Return vectors, and the probabilities that a layer of fixed random weights gives for them."""
    rng = np.random.default_rng(seed)
    x = rng.random((1280, 64), np.float32)
    logits = (x - 0.5) @ np.random.default_rng(100).standard_normal((64, 64)).astype(np.float32)
    y = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return (x[:1024], y[:1024]), (x[1024:], y[1024:])


def model(seed: int) -> ag.Model:
    """Return the model."""
    return ag.Sequential([Dense(64, activation="relu"), Dense(64, activation="softmax")], seed=seed)


EXAMPLE = Example("mlp", data, model, lambda: Adam(0.01), "mse", epochs=150, batch_size=512)

if __name__ == "__main__":
    main(EXAMPLE)
