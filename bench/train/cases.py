"""Training steps to time: models of ampgraph beside the same steps by hand."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

import ampgraph as ag
from ampgraph import train
from ampgraph.train import layers
from bench.train import by_hand

#: A step: takes inputs and targets, changes weights, returns the loss.
Step = Callable[[Any, Any], Any]


@dataclasses.dataclass(frozen=True)
class Case:
    """A model that is trained.

    Attributes:
        make: Returns its layers.
        shape: Of inputs.
        classes: How many it tells apart.
        loss: A name of a loss.
        hand: The step by hand.
        steps: How many steps make a turn.
        most: The most that a step may take of what it takes by hand.
    """

    make: Callable[[], list[Any]]
    shape: tuple[int, ...]
    classes: int
    loss: str
    hand: Callable[[list[Any], Any, Any], Any]
    steps: int
    most: float


def _mlp(width: int, classes: int) -> list[Any]:
    return [layers.Dense(width, activation="relu"), layers.Dense(classes, activation="softmax")]


def _cnn(filters: int) -> list[Any]:
    return [
        layers.Conv2D(filters, 3, padding="same", activation="relu"),
        layers.MaxPool2D(),
        layers.Conv2D(2 * filters, 3, padding="same", activation="relu"),
        layers.MaxPool2D(),
        layers.Flatten(),
        layers.Dense(10, activation="softmax"),
    ]


CASES = {
    "MLP 64": Case(lambda: _mlp(64, 64), (32, 64), 64, "mse", by_hand.mlp, 100, 1.5),
    "MLP 1024": Case(lambda: _mlp(1024, 1024), (1024, 1024), 1024, "mse", by_hand.mlp, 1, 1.15),
    "CNN": Case(lambda: _cnn(32), (128, 32, 32, 3), 10, "sparse_categorical_crossentropy", by_hand.cnn, 1, 1.15),
}


def data(case: Case) -> tuple[Any, Any]:
    """Return inputs and targets, made up."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(case.shape).astype(np.float32)
    classes = rng.integers(0, case.classes, case.shape[0]).astype(np.int32)
    return x, classes if case.loss.startswith("sparse") else np.eye(case.classes, dtype=np.float32)[classes]


def traced(case: Case, dtype: str) -> tuple[Any, list[Any]]:
    """Return a traced step in a dtype, and the model's variables."""
    model = train.Sequential(case.make(), seed=0)
    model.build((None, *case.shape[1:]))
    optimizer: Any = train.SGD(float(by_hand.RATE))
    if dtype != "float32":
        optimizer = ag.enable_mixed_precision_graph_rewrite(optimizer, dtype=dtype, target="cpu")
    loss = train.losses.find_loss(case.loss)
    step = ag.function(lambda x, y: optimizer.minimize(np.mean(loss(y, model(x)))).loss)
    return step, model.variables


def written(case: Case, variables: list[Any]) -> tuple[Step, list[Any]]:
    """Return the step by hand, and its weights: copies of what variables hold."""
    weights = [variable.value.copy() for variable in variables]
    return lambda x, y: case.hand(weights, x, y), weights


def difference(case: Case) -> float:
    """Return by how much of the largest weight, or of the loss, three steps in float32 differ from those by hand."""
    x, y = data(case)
    step, variables = traced(case, "float32")
    hand, weights = written(case, variables)
    found = [0.0]
    for _ in range(3):
        ours, theirs = float(step(x, y)), float(hand(x, y))
        found.append(abs(ours - theirs) / abs(theirs))
    for variable, weight in zip(variables, weights, strict=True):
        found.append(float(np.abs(variable.value - weight).max() / np.abs(weight).max()))
    return max(found)
