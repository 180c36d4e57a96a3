"""A small transformer, to time what comes before its first training step."""

from typing import Any

import numpy as np

import ampgraph as ag
from ampgraph import train
from ampgraph.train import layers

VOCABULARY, WIDTH, HEADS, BLOCKS = 1000, 64, 4, 2
SHAPE = (8, 32)


class Block(layers.Layer):
    """Attention and two dense layers, each added to what comes in."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = [layers.LayerNormalization(), layers.LayerNormalization()]
        self.project = layers.Dense(3 * WIDTH)
        self.merge = layers.Dense(WIDTH)
        self.grow = layers.Dense(4 * WIDTH, activation="gelu")
        self.shrink = layers.Dense(WIDTH)

    def call(self, x: Any) -> Any:
        """Return [batch, time, WIDTH]."""
        batch, time = SHAPE
        parts = self.project(self.norms[0](x)).reshape(batch, time, 3, HEADS, WIDTH // HEADS).transpose(2, 0, 3, 1, 4)
        weights = ag.nn.softmax(parts[0] @ parts[1].transpose(0, 1, 3, 2) * np.float32(HEADS / WIDTH) ** np.float32(0.5))
        x = x + self.merge((weights @ parts[2]).transpose(0, 2, 1, 3).reshape(batch, time, WIDTH))
        return x + self.shrink(self.grow(self.norms[1](x)))


def transformer() -> train.Sequential:
    """Return the model, which takes [batch, time] numbers of words and returns probabilities of the next ones."""
    blocks = [Block() for _ in range(BLOCKS)]
    return train.Sequential(
        [layers.Embedding(VOCABULARY, WIDTH), *blocks, layers.Dense(VOCABULARY, activation="softmax")], seed=0
    )


def specialized() -> Any:
    """Trace a training step of the model, differentiate it and rewrite it to float16; return what runs it."""
    model = transformer()
    model.build((None, SHAPE[1]), np.int32)
    optimizer = ag.enable_mixed_precision_graph_rewrite(train.Adam(0.001))
    loss = train.losses.find_loss("sparse_categorical_crossentropy")
    step = ag.function(lambda x, y: optimizer.minimize(np.mean(loss(y, model(x)))).loss)
    words = np.zeros(SHAPE, np.int32)
    return step.specialize(words, words)
