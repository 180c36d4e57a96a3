"""Losses and metrics: Keras's numbers, and what they refuse."""

from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph.train.losses import find_loss
from ampgraph.train.metrics import accuracy, find_metrics

from .keras_data import KERAS, array


def _loss(name: str, **options: Any) -> Any:
    found: Any = find_loss(name)
    return type(found)(**options) if options else found


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{i}-{case['name']}") for i, case in enumerate(KERAS["losses"])])
def test_losses_are_those_of_keras(case: Any) -> None:
    loss = _loss(case["name"], **case["options"])
    found = ag.function(lambda y, p: loss(y, p))(array(case["y_true"]), array(case["y_pred"]))
    np.testing.assert_allclose(found, array(case["value"]), rtol=2e-6, atol=3e-7)


@pytest.mark.parametrize("case", KERAS["metrics"])
def test_accuracies_are_those_of_keras(case: Any) -> None:
    found = ag.function(lambda y, p: np.mean(accuracy(y, p)))(array(case["y_true"]), array(case["y_pred"]))
    assert float(found) == pytest.approx(case["value"], abs=1e-6)


@pytest.mark.parametrize(
    ("activation", "name", "truth"),
    [
        ("softmax", "categorical_crossentropy", np.array([[0, 1]], np.float32)),
        ("softmax", "sparse_categorical_crossentropy", np.array([1])),
        ("sigmoid", "binary_crossentropy", np.array([[0, 1]], np.float32)),
    ],
)
def test_what_an_activation_made_is_treated_by_its_logits(activation: str, name: str, truth: Any) -> None:
    """Logits of 50 make probabilities of 0, whose logarithm would be cut off at that of 1e-7."""
    logits = np.array([[50, -50]], np.float32)
    apply = getattr(ag.nn, activation)
    exact = ag.function(lambda x, y: find_loss(name)(y, apply(x)))(logits, truth)
    assert float(exact[0]) == pytest.approx(100 if activation == "softmax" else 50)
    cut = ag.function(lambda x, y: find_loss(name)(y, apply(x) * np.float32(1)))(logits, truth)
    assert float(cut[0]) == pytest.approx(-np.log(1e-7), rel=0.02)


def test_targets_and_predictions_fit() -> None:
    y, p = np.array([1, 3], np.float32), np.array([[2], [5]], np.float32)
    assert ag.function(lambda y, p: find_loss("mae")(y, p))(y, p).tolist() == [1, 2]
    with pytest.raises(
        ag.TrainingError, match=r"compares arrays of one shape. Received: targets \[2,3\] for predictions \[2,1\]"
    ):
        ag.function(lambda p: find_loss("mse")(np.ones((2, 3)), p))(p)
    with pytest.raises(
        ag.TrainingError, match=r"one class for each row of predictions; .*: targets \[2,4\] for predictions \[2,3\]"
    ):
        ag.function(lambda p: find_loss("sparse_categorical_crossentropy")(np.ones((2, 4), int), p))(np.ones((2, 3), np.float32))
    with pytest.raises(ag.TrainingError, match=r"takes integers as targets, with .astype\(int\). Received: float32"):
        ag.function(lambda y, p: find_loss("sparse_categorical_crossentropy")(y, p))(y, np.ones((2, 3), np.float32))


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ag.TrainingError, match=r"Did you mean 'mean_squared_error'.* Received: 'mean_square_error'"):
        find_loss("mean_square_error")
    with pytest.raises(ag.TrainingError, match="A loss is a function"):
        find_loss(ag.train.BinaryCrossentropy)
    with pytest.raises(ag.TrainingError, match=r"Did you mean 'accuracy'.* Received: 'acuracy'"):
        find_metrics(["acuracy"], find_loss("mse"))
    with pytest.raises(ag.TrainingError, match=r"Metrics are a list of names and functions. Received: 'accuracy'"):
        find_metrics("accuracy", find_loss("mse"))
    with pytest.raises(ag.TrainingError, match=r"Metrics differ in their names, .* Received: 'mae'"):
        find_metrics(["mae", "mae"], find_loss("mse"))


def test_accuracy_of_logits_asks_for_their_sign() -> None:
    y, logits = np.array([[1], [0]], np.float32), np.array([[0.25], [-0.25]], np.float32)
    for from_logits, right in ((False, 0.5), (True, 1.0)):
        metric = find_metrics(["accuracy"], ag.train.BinaryCrossentropy(from_logits))["accuracy"]
        assert ag.function(lambda y, p, metric=metric: np.mean(metric(y, p)))(y, logits) == right
