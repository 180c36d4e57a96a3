"""A recurrent layer that adds up the two numbers of a sequence that are marked: ``python -m examples.lstm``."""

from typing import Any

import numpy as np

import ampgraph as ag
from ampgraph.train import Adam
from ampgraph.train.layers import LSTM, Dense

from .side_by_side import Example, main

LENGTH = 12


def data(seed: int) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Return sequences of a number and a mark, and the sum of the two that are marked."""
    rng = np.random.default_rng(seed)
    numbers = rng.random((4608, LENGTH), np.float32)
    marks = np.zeros_like(numbers)
    for half in (slice(0, LENGTH // 2), slice(LENGTH // 2, LENGTH)):
        marks[np.arange(len(marks)), rng.integers(half.start, half.stop, len(marks))] = 1
    x, y = np.stack([numbers, marks], axis=2), (numbers * marks).sum(axis=1, keepdims=True)
    return (x[:4096], y[:4096]), (x[4096:], y[4096:])


def model(seed: int) -> ag.Model:
    """Return the model."""
    return ag.Sequential([LSTM(32), Dense(1)], seed=seed)


EXAMPLE = Example("lstm", data, model, lambda: Adam(0.01), "mse", epochs=6, batch_size=64)

if __name__ == "__main__":
    main(EXAMPLE)
