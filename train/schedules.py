"""Learning-rate schedules: the learning rate of every step, a plain number of how many steps were applied before.

The formulas are those of Keras 3, in float64.
"""

import dataclasses
import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import Protocol

from ..graph.errors import TrainingError


class Schedule(Protocol):
    """What gives the learning rate of each step."""

    def __call__(self, step: int) -> float:
        """Return the learning rate of the step before which ``step`` steps were applied."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class ConstantRate:
    """One learning rate for all steps, to stand where a schedule must: in :class:`Warmup`."""

    rate: float

    def __call__(self, step: int) -> float:
        return self.rate


@dataclasses.dataclass(frozen=True, slots=True)
class ExponentialDecay:
    """``initial * decay_rate ** (step / decay_steps)``; with ``staircase`` the exponent is rounded down.

    Example:
        >>> ExponentialDecay(0.1, decay_steps=10, decay_rate=0.5)(20)
        0.025
    """

    initial: float
    decay_steps: int
    decay_rate: float
    staircase: bool = False

    def __post_init__(self) -> None:
        _check_steps("ExponentialDecay", self.decay_steps)

    def __call__(self, step: int) -> float:
        power = step // self.decay_steps if self.staircase else step / self.decay_steps
        return self.initial * self.decay_rate**power


@dataclasses.dataclass(frozen=True, slots=True)
class PiecewiseConstantDecay:
    """``values[0]`` up to and including step ``boundaries[0]``, then ``values[1]`` up to ``boundaries[1]`` …

    Raises:
        TrainingError: If there is not one value more than boundaries, or these do not ascend.
    """

    boundaries: Sequence[int]
    values: Sequence[float]

    def __post_init__(self) -> None:
        if len(self.values) != len(self.boundaries) + 1 or list(self.boundaries) != sorted(set(self.boundaries)):
            raise TrainingError(
                "PiecewiseConstantDecay needs ascending boundaries and one value more. "
                f"Received: {list(self.boundaries)} and {list(self.values)}"
            )

    def __call__(self, step: int) -> float:
        return self.values[bisect_left(self.boundaries, step)]


@dataclasses.dataclass(frozen=True, slots=True)
class CosineDecay:
    """Half a wave from ``initial`` to ``alpha * initial`` within ``decay_steps``.

    Example:
        >>> round(CosineDecay(0.1, decay_steps=100)(50), 6)
        0.05
    """

    initial: float
    decay_steps: int
    alpha: float = 0.0

    def __post_init__(self) -> None:
        _check_steps("CosineDecay", self.decay_steps)

    def __call__(self, step: int) -> float:
        wave = 0.5 * (1 + math.cos(math.pi * min(step, self.decay_steps) / self.decay_steps))
        return self.initial * ((1 - self.alpha) * wave + self.alpha)


@dataclasses.dataclass(frozen=True, slots=True)
class PolynomialDecay:
    """From ``initial`` to ``end`` within ``decay_steps``: ``(initial - end) * (1 - step / decay_steps) ** power + end``.

    With ``cycle`` it goes on after that, over twice, three times … as many steps from the start.
    """

    initial: float
    decay_steps: int
    end: float = 0.0001
    power: float = 1.0
    cycle: bool = False

    def __post_init__(self) -> None:
        _check_steps("PolynomialDecay", self.decay_steps)

    def __call__(self, step: int) -> float:
        steps = self.decay_steps
        if self.cycle:
            steps *= max(1, -(-step // steps))
        left = 1 - min(step, steps) / steps
        return (self.initial - self.end) * math.pow(left, self.power) + self.end


@dataclasses.dataclass(frozen=True, slots=True)
class Warmup:
    """Rise in equal parts from ``start`` to where another schedule begins, within ``steps``; then that schedule, from its start.

    Example:
        >>> rate = Warmup(CosineDecay(0.1, decay_steps=100), steps=10)
        >>> rate(0), rate(5), rate(10)
        (0.0, 0.05, 0.1)
    """

    after: Schedule
    steps: int
    start: float = 0.0

    def __post_init__(self) -> None:
        _check_steps("Warmup", self.steps)

    def __call__(self, step: int) -> float:
        if step >= self.steps:
            return self.after(step - self.steps)
        return (self.after(0) - self.start) * (step / self.steps) + self.start


def _check_steps(owner: str, steps: int) -> None:
    if steps < 1:
        raise TrainingError(f"{owner} needs at least one step. Received: {steps!r}")
