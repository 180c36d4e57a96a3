"""A transformer that guesses the next character of this repository's documentation: ``python -m examples.char_transformer``."""

from pathlib import Path
from typing import Any

import numpy as np

import ampgraph as ag
from ampgraph import nn
from ampgraph.train import Adam, CosineDecay, SparseCategoricalCrossentropy, Warmup
from ampgraph.train.layers import Dense, Embedding, LayerNormalization

from .side_by_side import Example, main

LENGTH, WIDTH, HEADS, BLOCKS = 32, 64, 4, 2


def text() -> "np.ndarray[Any, Any]":
    """Return the documentation as bytes; what is not ASCII is a question mark."""
    pages = sorted((Path(__file__).parents[1] / "docs").glob("*.md"))
    return np.frombuffer("".join(page.read_text(encoding="utf-8") for page in pages).encode("ascii", "replace"), np.uint8)


def data(seed: int) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Return windows of characters, and the same windows one character later."""
    characters = text().astype(np.int32)
    split = len(characters) * 9 // 10
    rng = np.random.default_rng(seed)

    def windows(part: Any, count: int) -> tuple[Any, Any]:
        starts = rng.integers(0, len(part) - LENGTH - 1, count)
        found = part[starts[:, None] + np.arange(LENGTH + 1)]
        return found[:, :-1], found[:, 1:]

    return windows(characters[:split], 6400), windows(characters[split:], 512)


class Block(ag.Model):
    """Attention to what came before, then two dense layers."""

    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = LayerNormalization(), LayerNormalization()
        self.qkv, self.out = Dense(3 * WIDTH), Dense(WIDTH)
        self.wide, self.narrow = Dense(4 * WIDTH, activation="gelu"), Dense(WIDTH)

    def call(self, x: Any) -> Any:
        heads = self.qkv(self.norm_1(x)).reshape(-1, LENGTH, 3, HEADS, WIDTH // HEADS)
        query, key, value = (heads[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
        seen = nn.attention(query, key, value, causal=True).transpose(0, 2, 1, 3).reshape(-1, LENGTH, WIDTH)
        x = x + self.out(seen)
        return x + self.narrow(self.wide(self.norm_2(x)))


class Transformer(ag.Model):
    """Characters and positions in, scores of the next character out."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed=seed)
        self.characters, self.positions = Embedding(128, WIDTH), Embedding(LENGTH, WIDTH)
        self.blocks = [Block() for _ in range(BLOCKS)]
        self.norm, self.scores = LayerNormalization(), Dense(128)

    def call(self, x: Any) -> Any:
        x = self.characters(x) + self.positions(np.arange(LENGTH, dtype=np.int32))
        for block in self.blocks:
            x = block(x)
        return self.scores(self.norm(x))


EXAMPLE = Example(
    "char_transformer",
    data,
    Transformer,
    lambda: Adam(Warmup(CosineDecay(0.003, 180), 20), global_clipnorm=1.0),
    SparseCategoricalCrossentropy(from_logits=True),
    ("accuracy",),
    epochs=2,
    batch_size=64,
)

if __name__ == "__main__":
    main(EXAMPLE)
