"""Layers on sequences: embedding and long short-term memory."""

from typing import Any

import numpy as np

from ...graph import nn
from .dense import as_floats, features, positive
from .initializers import orthogonal, small_uniform
from .layer import Layer


class Embedding(Layer):
    """A row of a table for each integer.

    Args:
        input_dim: Number of rows: integers are less.
        output_dim: Their length.
        **options: ``name``, ``dtype``, ``seed``: see :class:`~.layer.Layer`.

    Variables: ``embeddings`` [input_dim, output_dim], within 0.05 of 0.
    """

    def __init__(self, input_dim: int, output_dim: int, **options: Any) -> None:
        super().__init__(**options)
        self.input_dim = positive(self, "input_dim", input_dim)
        self.output_dim = positive(self, "output_dim", output_dim)

    def setup(self, shape: tuple[int | None, ...]) -> None:
        """Make the variable."""
        self.embeddings = self.add_variable("embeddings", (self.input_dim, self.output_dim), small_uniform)

    def call(self, x: Any) -> Any:
        """Return [*shape of x, output_dim] for integers; floats must be whole numbers."""
        return nn.embedding(self.embeddings, x.astype(np.int32) if x.dtype.kind == "f" else x)


class LSTM(Layer):
    """Long short-term memory over time: :func:`ampgraph.nn.lstm`.

    Args:
        units: Size of the state.
        return_sequences: Whether the states of all steps are returned, [batch, time, units], instead of the last, [batch, units].
        **options: ``name``, ``dtype``, ``seed``: see :class:`~.layer.Layer`.

    Variables: ``kernel`` [features, 4 * units], Glorot uniform; ``recurrent_kernel`` [units, 4 * units], orthogonal; ``bias``
    [4 * units], ones for the forget gate, else zeros.
    """

    def __init__(self, units: int, return_sequences: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.units = positive(self, "units", units)
        self.return_sequences = return_sequences

    def setup(self, shape: tuple[int | None, ...]) -> None:
        """Make the variables."""
        units = self.units
        self.kernel = self.add_variable("kernel", (features(self, shape, 3), 4 * units))
        self.recurrent_kernel = self.add_variable("recurrent_kernel", (units, 4 * units), orthogonal)
        bias = np.repeat(np.array([0, 1, 0, 0], np.float32), units)
        self.bias = self.add_variable("bias", (4 * units,), bias)

    def call(self, x: Any) -> Any:
        """Return [batch, time, units], or [batch, units]."""
        x = as_floats(self, x, self.kernel.shape[0], 3)
        states, (last, _) = nn.lstm(x, self.kernel, self.recurrent_kernel, self.bias)
        return states if self.return_sequences else last
