"""Callbacks: what is called while a model is trained, and may end it."""

import math
from collections.abc import Iterable
from os import PathLike, fsdecode
from typing import TYPE_CHECKING, Any

from ..graph.errors import TrainingError

if TYPE_CHECKING:
    from .model import Model


class Callback:
    """Base class: override what is to be seen. ``self.model`` is the model; ``self.model.stop_training = True`` ends the training.

    ``logs`` holds numbers by name, as :class:`~.history.History` has them: for batches the means of the epoch so far.
    """

    model: "Model"

    def on_train_begin(self) -> None:
        """Called before the first epoch."""

    def on_train_end(self) -> None:
        """Called after the last epoch; also when the training was ended, but not by an error."""

    def on_epoch_begin(self, epoch: int) -> None:
        """Called before an epoch, which are counted from 0 on."""

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """Called after an epoch and its validation."""

    def on_batch_end(self, batch: int, logs: dict[str, float]) -> None:
        """Called after a training step, which are counted from 0 on in each epoch."""


def check_callbacks(given: Any) -> list[Callback]:
    """Return callbacks as a list.

    Raises:
        TrainingError: If something else is among them.
    """
    found = list(given) if isinstance(given, Iterable) else [given]
    names = [name for name in vars(Callback) if name.startswith("on_")]
    for callback in found:
        if (
            isinstance(callback, type)
            or not isinstance(given, Iterable)
            or not all(callable(getattr(callback, n, None)) for n in names)
        ):
            raise TrainingError(
                f"callbacks is a list of objects with the methods of ampgraph.train.Callback. Received: {callback!r}"
            )
    return found


class _Watch(Callback):
    """Watches whether a number gets better.

    Args:
        monitor: Its name in the logs.
        mode: ``"min"`` or ``"max"``, which is better; ``"auto"`` takes ``"max"`` for accuracies.
        min_delta: Changes up to this are none.
    """

    def __init__(self, monitor: str, mode: str, min_delta: float = 0.0) -> None:
        if mode not in ("auto", "min", "max"):
            raise TrainingError(f"The mode of {type(self).__name__} is 'auto', 'min' or 'max'. Received: {mode!r}")
        if not isinstance(monitor, str):
            raise TrainingError(f"{type(self).__name__} watches a number of the logs by its name. Received: {monitor!r}")
        if isinstance(min_delta, bool) or not isinstance(min_delta, int | float) or not math.isfinite(min_delta):
            raise TrainingError(f"The min_delta of {type(self).__name__} is a finite number. Received: {min_delta!r}")
        self.monitor = monitor
        self._sign = -1.0 if mode == "max" or (mode == "auto" and monitor.endswith("accuracy")) else 1.0
        self._min_delta = abs(min_delta)
        self._best = math.inf

    def on_train_begin(self) -> None:
        """Begin anew."""
        self._best = math.inf

    def is_better(self, logs: dict[str, float]) -> bool:
        """Whether the number is better than all before.

        Raises:
            TrainingError: If it is not in the logs.
        """
        if self.monitor not in logs:
            raise TrainingError(
                f"{type(self).__name__} watches {self.monitor!r}, which this training does not have; val_… needs validation data. "
                f"Received: {', '.join(logs)}"
            )
        number = self._sign * logs[self.monitor]
        if not number < self._best - self._min_delta:
            return False
        self._best = number
        return True


class EarlyStopping(_Watch):
    """Ends the training when a number has not got better for some epochs.

    Args:
        monitor: Its name: ``"val_loss"``, ``"accuracy"``.
        patience: For how many epochs in a row it may not before that; 0 and 1 both end it at the first.
        min_delta: Changes up to this are none.
        mode: ``"min"`` or ``"max"``, which is better; ``"auto"`` takes ``"max"`` for accuracies.
        restore_best_weights: Whether the model gets back the variables of its best epoch at the end.

    Attributes:
        stopped_epoch: The epoch after which it ended the training, or None.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        patience: int = 0,
        min_delta: float = 0.0,
        mode: str = "auto",
        restore_best_weights: bool = False,
    ) -> None:
        super().__init__(monitor, mode, min_delta)
        if type(patience) is not int or patience < 0:
            raise TrainingError(f"The patience of EarlyStopping is a number of epochs, at least 0. Received: {patience!r}")
        self.patience = patience
        self.restore_best_weights = restore_best_weights
        self.stopped_epoch: int | None = None
        self._waited = 0
        self._weights: list[Any] = []

    def on_train_begin(self) -> None:
        """Begin anew."""
        super().on_train_begin()
        self.stopped_epoch, self._waited, self._weights = None, 0, []

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """Look at the number."""
        if self.is_better(logs):
            self._waited = 0
            if self.restore_best_weights:
                self._weights = [variable.value.copy() for variable in self.model.variables]
            return
        self._waited += 1
        if self._waited >= self.patience:
            self.stopped_epoch = epoch
            self.model.stop_training = True

    def on_train_end(self) -> None:
        """Give the best variables back."""
        if self._weights:
            for variable, value in zip(self.model.variables, self._weights, strict=True):
                variable.assign(value)


class ModelCheckpoint(_Watch):
    """Saves the model after each epoch: see :meth:`~.model.Model.save`.

    Args:
        path: Where to; ``{epoch}`` and names of logs in braces are filled in: ``"model-{epoch:02d}-{val_loss:.3f}.npz"``. Epochs are
            counted from 1 on here.
        monitor: With ``save_best_only``, the number that must have got better.
        save_best_only: Whether only then.
        mode: As for :class:`EarlyStopping`.
    """

    def __init__(
        self, path: str | PathLike[str], monitor: str = "val_loss", save_best_only: bool = False, mode: str = "auto"
    ) -> None:
        super().__init__(monitor, mode)
        self.path = fsdecode(path)
        self.save_best_only = save_best_only

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """Save."""
        if self.save_best_only and not self.is_better(logs):
            return
        try:
            path = self.path.format(epoch=epoch + 1, **logs)
        except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
            raise TrainingError(
                f"The path of ModelCheckpoint has braces for epoch, {', '.join(logs)} only. Received: {self.path!r} ({error})"
            ) from None
        self.model.save(path)
