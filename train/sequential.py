"""Models of layers, one after the other."""

from collections.abc import Iterable
from typing import Any

from ..graph.errors import TrainingError
from .layers.layer import Layer
from .model import Model


class Sequential(Model):
    """A model of layers, one after the other.

    Args:
        layers: The layers.
        name: Stands before the names of its variables, where it is given.
        seed: Makes start values and the order of examples the same every time.

    Raises:
        TrainingError: If something is no layer.

    Example:
        >>> import numpy as np
        >>> from ampgraph.train import layers
        >>> model = Sequential([layers.Dense(4, activation="relu"), layers.Dense(2)], seed=0)
        >>> model.predict(np.ones((3, 5))).shape
        (3, 2)
    """

    def __init__(self, layers: Iterable[Layer] = (), *, name: str | None = None, seed: int | None = None) -> None:
        super().__init__(name=name, seed=seed)
        self._layers: list[Layer] = []
        if isinstance(layers, Layer) or not isinstance(layers, Iterable):
            raise TrainingError(f"A Sequential is made of a list of layers. Received: {layers!r}")
        for layer in layers:
            self.add(layer)

    def add(self, layer: Layer) -> None:
        """Add a layer behind the others.

        Raises:
            TrainingError: If it is none, or the model has been used already.
        """
        if not isinstance(layer, Layer):
            raise TrainingError(
                f"A Sequential is made of layers, such as ampgraph.layers.Dense(64); Activation makes one of a function. Received: {layer!r}"
            )
        if layer is self:
            raise TrainingError(f"A Sequential is no layer of its own. Received: {layer!r}")
        if self._built:
            raise TrainingError(f"{self!r} was built already: make a new one with this layer. Received: {layer!r}")
        self._layers.append(layer)

    @property
    def layers(self) -> list[Layer]:
        """Its layers; one that stands twice is there twice."""
        return list(self._layers)

    def call(self, x: Any) -> Any:
        """Return what the last layer returns."""
        for layer in self._layers:
            x = layer(x)
        return x
