"""Metrics of models, by name or as functions ``metric(y_true, y_pred)`` that return a number for each example, as losses do."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..graph.errors import TrainingError, did_you_mean
from ..graph.tracing.operations import static_shape
from .losses import LOSSES, BinaryCrossentropy, Loss, classes_like, paired


def accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Any:
    """Return 1 for each prediction that is right, else 0.

    Predictions of one number are right on the side of ``threshold`` that the truth, 0 or 1, says. Of those of several, the largest
    must be the class that the truth names, or whose number in it is the largest.

    Raises:
        TrainingError: If the shapes do not fit.
    """
    wanted, found = static_shape(y_pred), static_shape(y_true)
    if not wanted:
        raise TrainingError(f"accuracy takes a prediction for each example. Received: {y_pred!r}")
    if len(wanted) == 1 or wanted[-1] == 1:
        y_true, y_pred = paired("accuracy", y_true, y_pred)
        right = np.equal(y_true, (y_pred > threshold).astype(y_true.dtype)).astype(np.float32)
        return right if len(wanted) == 1 else np.mean(right, -1)
    if len(found) == len(wanted) and found[-1] != 1:
        y_true, y_pred = paired("accuracy", y_true, y_pred)
        truth = np.argmax(y_true, -1)
    else:
        truth = classes_like("accuracy", y_true, y_pred)
    return np.equal(truth, np.argmax(y_pred, -1)).astype(np.float32)


def _logit_accuracy(y_true: Any, y_pred: Any) -> Any:
    return accuracy(y_true, y_pred, 0.0)


def find_metrics(given: Iterable[Any], loss: Loss) -> dict[str, Loss]:
    """Return metrics by the names under which histories have them.

    Args:
        given: Names, also those of losses, or functions.
        loss: The loss; where it takes logits, accuracy of one number asks whether it is positive.

    Raises:
        TrainingError: If a name is unknown or stands twice.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TrainingError(f"Metrics are a list of names and functions. Received: {given!r}")
    known = {**LOSSES, "accuracy": accuracy}
    if isinstance(loss, BinaryCrossentropy) and loss.from_logits:
        known["accuracy"] = _logit_accuracy
    found: dict[str, Loss] = {}
    for metric in given:
        name = metric if isinstance(metric, str) else str(getattr(metric, "__name__", type(metric).__name__))
        if isinstance(metric, str) and metric in known:
            function = known[metric]
        elif callable(metric) and not isinstance(metric, type):
            function = metric
        else:
            hint = did_you_mean(metric.lower(), known) if isinstance(metric, str) else ""
            raise TrainingError(f"A metric is a function, or one of {', '.join(known)}.{hint} Received: {metric!r}")
        if name in found or name in ("loss", "loss_scale", "skipped"):
            raise TrainingError(f"Metrics differ in their names, and none is called 'loss'. Received: {name!r}")
        found[name] = function
    return found
