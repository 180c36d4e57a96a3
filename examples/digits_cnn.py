"""Convolutions that read handwritten digits, scikit-learn's 1,797 images of 8x8: ``python -m examples.digits_cnn``."""

from importlib import import_module
from typing import Any

import numpy as np

import ampgraph as ag
from ampgraph.train import Adam
from ampgraph.train.layers import BatchNormalization, Conv2D, Dense, Flatten, MaxPool2D

from .side_by_side import Example, main


def data(seed: int) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Return images and digits, split at random."""
    try:
        load_digits = import_module("sklearn.datasets").load_digits
    except ImportError:
        raise SystemExit("The digits come with scikit-learn: pip install scikit-learn") from None
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(x))
    x, y = (x[order] / 16).reshape(-1, 8, 8, 1).astype(np.float32), y[order].astype(np.int32)
    return (x[:1440], y[:1440]), (x[1440:], y[1440:])


def model(seed: int) -> ag.Model:
    """Return the model."""
    return ag.Sequential(
        [
            Conv2D(16, 3, padding="same", activation="relu"),
            BatchNormalization(momentum=0.9),
            Conv2D(32, 3, padding="same", activation="relu"),
            MaxPool2D(),
            Flatten(),
            Dense(10, activation="softmax"),
        ],
        seed=seed,
    )


EXAMPLE = Example(
    "digits_cnn", data, model, lambda: Adam(0.002), "sparse_categorical_crossentropy", ("accuracy",), epochs=6, batch_size=32
)

if __name__ == "__main__":
    main(EXAMPLE)
