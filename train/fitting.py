"""The loop over epochs and steps in which a model is trained."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..graph.errors import TrainingError
from .callbacks import Callback
from .data import as_pair, batches
from .history import History, Means
from .interrupt import Interrupts, held_interrupts
from .loss_scale_optimizer import LossScaleOptimizer
from .progress import Progress

if TYPE_CHECKING:
    from .model import Model


class Plan(NamedTuple):
    """What to train on.

    Attributes:
        x, y: Inputs and targets.
        validation: Those that are only looked at after each epoch, or None.
        batch_size: Number of examples of a step.
        epochs: The epochs from the first up to the last, which is not included.
        seed: With the number of an epoch, says in which order its examples come; None leaves them in order.
    """

    x: Any
    y: Any
    validation: tuple[Any, Any] | None
    batch_size: int
    epochs: range
    seed: int | None


def split_validation(x: Any, y: Any, validation_data: Any, validation_split: float) -> tuple[Any, Any, Any]:
    """Return what is trained on, and a pair for validation or None.

    Raises:
        TrainingError: If the split is no part, or leaves nothing, or both are given.
    """
    if isinstance(validation_split, bool) or not isinstance(validation_split, int | float) or not 0 <= validation_split < 1:
        raise TrainingError(
            f"validation_split is the part of the data that is only looked at, from 0 up to 1. Received: {validation_split!r}"
        )
    if validation_data is not None:
        if validation_split:
            raise TrainingError("Data for validation come from validation_data or validation_split, not from both.")
        if not isinstance(validation_data, tuple | list) or len(validation_data) != 2:
            raise TrainingError(f"validation_data is a pair of inputs and targets. Received: {type(validation_data).__name__}")
        return x, y, as_pair(validation_data[0], validation_data[1], ("validation_data[0]", "validation_data[1]"))
    if not validation_split:
        return x, y, None
    kept = int(len(x) * (1 - validation_split))
    if not 0 < kept < len(x):
        raise TrainingError(f"validation_split={validation_split} leaves nothing on one side. Received: {len(x)} examples")
    return x[:kept], y[:kept], (x[kept:], y[kept:])


def run_epochs(model: "Model", plan: Plan, callbacks: Sequence[Callback], verbose: int) -> History:
    """Train a model; an interrupt comes after a step, never within it.

    Raises:
        KeyboardInterrupt: After Ctrl-C; the model has the variables of the last complete step, ``model.history`` what happened so far.
    """
    history = model.history = History()
    model.stop_training = False
    steps = -(-len(plan.x) // plan.batch_size)
    progress = Progress(verbose, plan.epochs.stop, steps)
    for callback in callbacks:
        callback.model = model
        callback.on_train_begin()
    try:
        with held_interrupts() as interrupts:
            for epoch in plan.epochs:
                for callback in callbacks:
                    callback.on_epoch_begin(epoch)
                progress.begin(epoch)
                logs = _run_epoch(model, plan, epoch, history, callbacks, progress, interrupts)
                if plan.validation is not None:
                    found = model.run_evaluation(*plan.validation, plan.batch_size, interrupts.check)
                    logs |= {f"val_{name}": number for name, number in found.items()}
                history.add_epoch(epoch, logs)
                progress.end(logs)
                for callback in callbacks:
                    callback.on_epoch_end(epoch, logs)
                interrupts.check()
                if model.stop_training:
                    break
    finally:
        progress.close()
    for callback in callbacks:
        callback.on_train_end()
    model.history = history
    return history


def _run_epoch(
    model: "Model",
    plan: Plan,
    epoch: int,
    history: History,
    callbacks: Sequence[Callback],
    progress: Progress,
    interrupts: Interrupts,
) -> dict[str, float]:
    """Make the steps of an epoch; return its numbers."""
    count = len(plan.x)
    order = None if plan.seed is None else np.random.default_rng([plan.seed, epoch]).permutation(count)
    means, dropped = Means(), _Dropped(model.optimizer)
    logs: dict[str, float] = {}
    for i, chosen in enumerate(batches(count, plan.batch_size, order)):
        x, y = plan.x[chosen], plan.y[chosen]
        result, numbers = model.run_step(x, y)
        loss, applied, scale = float(result.loss), bool(result.applied), float(result.loss_scale)
        history.add_step(loss, applied, scale)
        means.add(len(x), {"loss": loss, **numbers})
        logs = means.result() | dropped.count(applied, scale)
        progress.step(logs)
        for callback in callbacks:
            callback.on_batch_end(i, logs)
        interrupts.check()
    return logs


class _Dropped:
    """Counts the steps of an epoch that were dropped, where the optimizer drops any; not the calls that only add gradients up."""

    def __init__(self, optimizer: Any) -> None:
        self._scales = isinstance(optimizer, LossScaleOptimizer)
        self._calls_to_step = optimizer.accumulation_steps if self._scales else 1
        self._calls = int(optimizer.state_dict()["calls"]) if self._scales else 0
        self._dropped = 0

    def count(self, applied: bool, scale: float) -> dict[str, float]:
        """Return what the logs have of it after one more step."""
        self._calls = (self._calls + 1) % self._calls_to_step
        self._dropped += not applied and not self._calls
        return {"loss_scale": scale, "skipped": self._dropped} if self._scales else {}
