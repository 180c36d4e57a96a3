"""Layers for models, or for functions that are traced: ``ampgraph.layers``."""

from .dense import Activation, Dense, Dropout
from .images import AveragePool2D, Conv2D, Flatten, GlobalAveragePool2D, MaxPool2D
from .layer import Layer
from .normalization import BatchNormalization, LayerNormalization
from .sequences import LSTM, Embedding

__all__ = [
    "LSTM",
    "Activation",
    "AveragePool2D",
    "BatchNormalization",
    "Conv2D",
    "Dense",
    "Dropout",
    "Embedding",
    "Flatten",
    "GlobalAveragePool2D",
    "Layer",
    "LayerNormalization",
    "MaxPool2D",
]
