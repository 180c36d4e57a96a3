"""What happened in training, epoch by epoch and step by step."""

from typing import Any


class History:
    """The numbers of a training, which :meth:`~.model.Model.fit` returns.

    Attributes:
        epoch: The numbers of the epochs, from 0 on.
        history: For each epoch, by name: ``loss`` and the metrics, means over the examples; ``val_loss`` and so on, those of the
            validation data; with an optimizer that scales its loss also ``loss_scale``, that after the epoch, and ``skipped``, how
            many of its steps were dropped.
        steps: For each step, by name: ``loss``, ``applied``, whether variables changed, and ``loss_scale``, that after the step.
    """

    def __init__(self) -> None:
        self.epoch: list[int] = []
        self.history: dict[str, list[float]] = {}
        self.steps: dict[str, list[Any]] = {"loss": [], "applied": [], "loss_scale": []}

    def add_epoch(self, epoch: int, logs: dict[str, float]) -> None:
        """Add the numbers of an epoch."""
        self.epoch.append(epoch)
        for name, number in logs.items():
            self.history.setdefault(name, []).append(number)

    def add_step(self, loss: float, applied: bool, loss_scale: float) -> None:
        """Add what a step did."""
        for name, item in (("loss", loss), ("applied", applied), ("loss_scale", loss_scale)):
            self.steps[name].append(item)

    def __repr__(self) -> str:
        last = ", ".join(f"{name}={numbers[-1]:.6g}" for name, numbers in self.history.items())
        return f"<History of {len(self.epoch)} epochs{': ' if last else ''}{last}>"


class Means:
    """Means over examples of numbers that batches have, each of which counts as many times as it has examples."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._count = 0

    def add(self, count: int, numbers: dict[str, Any]) -> None:
        """Add the means of a batch of ``count`` examples."""
        self._count += count
        for name, number in numbers.items():
            self._sums[name] = self._sums.get(name, 0.0) + count * float(number)

    def result(self) -> dict[str, float]:
        """Return the means so far."""
        return {name: total / self._count for name, total in self._sums.items()}
