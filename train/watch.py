"""What is said of a training that does not get on: its loss is not finite, or step after step is dropped."""

import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..graph.errors import TrainingError
from .optimizer import Optimizer

if TYPE_CHECKING:
    from .diagnosis import Diagnosis


class Watch:
    """Looks at the steps of an optimizer that scales its loss.

    Args:
        inner: The optimizer that makes the steps.
        max_skips: How many steps in a row may be dropped without the loss scale going down.
        on_stall: What to do when so many were: ``"warn"`` once, or ``"raise"``.

    Attributes:
        stalled: How many were so far.
    """

    def __init__(self, inner: Optimizer, max_skips: int, on_stall: Literal["warn", "raise"]) -> None:
        self.stalled = 0
        self._inner = inner
        self._max_skips = max_skips
        self._on_stall = on_stall
        self._loss_was_finite = True

    def look_at_loss(self, loss: Any, diagnosis: "Diagnosis | None" = None) -> None:
        """Warn of a loss that is not finite, if the one before was.

        Args:
            loss: The loss, not scaled; None if not known.
            diagnosis: Of the run, which can say where it comes from.

        Raises:
            TrainingError: If the loss is not one number.
        """
        number = _number_of(loss)
        finite = math.isfinite(number)
        if self._loss_was_finite and not finite:
            origin = "" if diagnosis is None else diagnosis.origin()
            warnings.warn(
                f"The loss itself is {number}, after {self._inner.global_step} steps: a smaller loss scale will not help. "
                + (origin or "Look at the learning rate, the data, and what runs in low precision."),
                RuntimeWarning,
                stacklevel=3,
            )
        self._loss_was_finite = finite

    def count_stalled(self, scale: float, loss: Any, bad_gradients: Callable[[], list[str]]) -> None:
        """Count a dropped step at a loss scale that cannot go lower, and say so when there were too many in a row.

        Args:
            scale: The loss scale.
            loss: The loss, not scaled; None if not known.
            bad_gradients: Returns the names of the variables whose gradients are not finite.

        Raises:
            TrainingError: If there were too many, and ``on_stall`` is ``"raise"``.
        """
        self.stalled += 1
        if self.stalled != self._max_skips:
            return
        names, number = bad_gradients(), _number_of(loss)
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        text = (
            f"{self.stalled} steps in a row were dropped at the loss scale {scale:g}, which cannot go lower: the "
            f"gradient of {names[0]!r}{others} is not finite"
            + ("." if math.isfinite(number) else f", and the loss itself is {number}.")
        )
        if self._on_stall == "raise":
            raise TrainingError(text)
        warnings.warn(text, RuntimeWarning, stacklevel=4)


def _number_of(loss: Any) -> float:
    """Return a loss as a number, 0 where there is none.

    Raises:
        TrainingError: If it is not one.
    """
    try:
        return 0.0 if loss is None else float(np.asarray(loss).item())
    except (TypeError, ValueError):
        raise TrainingError(f"A loss is one number. Received: {loss!r:.200}") from None
