"""Losses of models, by name or as functions ``loss(y_true, y_pred)`` of symbolic arrays that return a number for each example.

Formulas, names and the order of arguments are those of Keras 3. The loss that is trained on is the mean over all examples.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from ..graph import nn
from ..graph.errors import TrainingError, did_you_mean
from ..graph.tracing.array import SymbolicArray
from ..graph.tracing.operations import static_shape, symbolic
from .layers.dense import shown

#: Probabilities are kept this far from 0 and 1, so that their logarithms are finite.
_EPSILON = np.float32(1e-7)

Loss = Callable[[Any, Any], Any]


def mean_squared_error(y_true: Any, y_pred: Any) -> Any:
    """Return the mean square of the differences along the last axis."""
    y_true, y_pred = paired("mean_squared_error", y_true, y_pred)
    return np.mean(np.square(y_pred - y_true), -1)


def mean_absolute_error(y_true: Any, y_pred: Any) -> Any:
    """Return the mean magnitude of the differences along the last axis."""
    y_true, y_pred = paired("mean_absolute_error", y_true, y_pred)
    return np.mean(np.abs(y_pred - y_true), -1)


@dataclasses.dataclass(frozen=True)
class BinaryCrossentropy:
    """The cross entropy of probabilities of "yes" and truths 0 or 1, the mean along the last axis.

    Attributes:
        from_logits: Whether predictions are logits. Predictions that a sigmoid made are treated by the logits it was given, in any
            case, which is more exact.
    """

    from_logits: bool = False

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        """Return a number for each example."""
        y_true, y_pred = paired("binary_crossentropy", y_true, y_pred)
        logits = y_pred if self.from_logits else _operand(y_pred, "Sigmoid")
        if logits is not None:
            return np.mean(np.maximum(logits, 0) - logits * y_true + np.log1p(np.exp(-np.abs(logits))), -1)
        y_pred = np.clip(y_pred, _EPSILON, 1 - _EPSILON)
        return -np.mean(y_true * np.log(y_pred) + (1 - y_true) * np.log(1 - y_pred), -1)


@dataclasses.dataclass(frozen=True)
class CategoricalCrossentropy:
    """The cross entropy of probabilities of classes, and the true ones, such as rows of zeros with a one.

    Attributes:
        from_logits: Whether predictions are logits. Predictions that a softmax made are treated by the logits it was given, in any
            case, which is more exact.
    """

    from_logits: bool = False

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        """Return a number for each example."""
        y_true, y_pred = paired("categorical_crossentropy", y_true, y_pred)
        logits = y_pred if self.from_logits else _operand(y_pred, "Softmax")
        if logits is not None:
            return nn.softmax_cross_entropy(logits, y_true)
        y_pred = np.clip(y_pred / np.sum(y_pred, -1, keepdims=True), _EPSILON, 1 - _EPSILON)
        return -np.sum(y_true * np.log(y_pred), -1)


@dataclasses.dataclass(frozen=True)
class SparseCategoricalCrossentropy:
    """The cross entropy of probabilities of classes, and true classes, integers from 0 on.

    Attributes:
        from_logits: Whether predictions are logits; see :class:`CategoricalCrossentropy`.
    """

    from_logits: bool = False

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        """Return a number for each example."""
        y_true = classes_like("sparse_categorical_crossentropy", y_true, y_pred)
        logits = y_pred if self.from_logits else _operand(y_pred, "Softmax")
        if logits is None:
            logits = np.log(np.clip(y_pred, _EPSILON, 1 - _EPSILON))
        return nn.sparse_softmax_cross_entropy(logits, y_true)

    def check_labels(self, y: Any, predictions: tuple[int | None, ...] | None) -> None:
        """Refuse targets that are no classes.

        Args:
            y: An array of targets.
            predictions: The shape of predictions, whose last size is the number of classes.

        Raises:
            TrainingError: If one is out of range.
        """
        classes = predictions[-1] if predictions else None
        wrong = (y < 0) | (y >= (np.inf if classes is None else classes))
        if wrong.any():
            index = [int(i) for i in np.unravel_index(int(np.argmax(wrong)), y.shape)]
            raise TrainingError(
                f"sparse_categorical_crossentropy takes classes from 0 up to {classes}, the number of predictions, which is not included. "
                f"Received: {y[tuple(index)]} at {index}"
            )


#: Losses by name.
LOSSES: dict[str, Loss] = {
    "binary_crossentropy": BinaryCrossentropy(),
    "categorical_crossentropy": CategoricalCrossentropy(),
    "mae": mean_absolute_error,
    "mean_absolute_error": mean_absolute_error,
    "mean_squared_error": mean_squared_error,
    "mse": mean_squared_error,
    "sparse_categorical_crossentropy": SparseCategoricalCrossentropy(),
}


def find_loss(given: Any) -> Loss:
    """Return the loss that a user means by a name or a function.

    Raises:
        TrainingError: If there is none of this name.
    """
    if callable(given) and not isinstance(given, type):
        return given  # type: ignore[no-any-return]
    if not isinstance(given, str) or given not in LOSSES:
        hint = did_you_mean(given.lower(), LOSSES) if isinstance(given, str) else ""
        raise TrainingError(
            f"A loss is a function of y_true and y_pred, or one of {', '.join(LOSSES)}.{hint} Received: {given!r}"
        )
    return LOSSES[given]


def paired(name: str, y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    """Return targets as predictions are: of their dtype, and with a last axis of one element where only they have it.

    Raises:
        TrainingError: If the shapes differ otherwise.
    """
    wanted, found = static_shape(y_pred), static_shape(y_true)
    y_true = symbolic(y_true, y_pred.dtype)
    if len(found) == len(wanted) - 1 and wanted[-1] == 1:
        y_true, found = np.expand_dims(y_true, -1), (*found, 1)
    if not fits(found, wanted):
        raise TrainingError(
            f"{name} compares arrays of one shape. Received: targets {shown(found)} for predictions {shown(wanted)}"
        )
    return y_true, y_pred


def classes_like(name: str, y_true: Any, y_pred: Any) -> Any:
    """Return classes as int64, [...], for predictions [..., classes]; a last axis of one element is dropped.

    Raises:
        TrainingError: If they are no integers, or the shapes do not fit.
    """
    wanted, found = static_shape(y_pred)[:-1], static_shape(y_true)
    if len(found) == len(wanted) + 1 and found[-1] == 1:
        y_true, found = np.squeeze(y_true, -1), found[:-1]
    if not fits(found, wanted):
        raise TrainingError(
            f"{name} takes one class for each row of predictions; categorical_crossentropy takes rows of their probabilities. "
            f"Received: targets {shown(found)} for predictions {shown(static_shape(y_pred))}"
        )
    if y_true.dtype.kind not in "iu":
        raise TrainingError(f"{name} takes integers as targets, with .astype(int). Received: {y_true.dtype}")
    return symbolic(y_true, np.int64)


def fits(one: tuple[int | None, ...], other: tuple[int | None, ...]) -> bool:
    """Whether two shapes can be the same."""
    return len(one) == len(other) and all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


def _operand(y_pred: Any, op_type: str) -> Any:
    """Return what an activation was applied to, if predictions are its result."""
    if not isinstance(y_pred, SymbolicArray) or y_pred.value.producer.op_type != op_type:
        return None
    return SymbolicArray(y_pred.value.producer.inputs[0], y_pred.trace)  # type: ignore[arg-type]
