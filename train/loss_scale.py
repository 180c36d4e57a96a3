"""Loss scales: what the loss is multiplied by, so that gradients do not vanish in float16, and how that number moves."""

import dataclasses
import math
from typing import Any

import numpy as np

from ..graph.errors import TrainingError
from ..kernels.loss_scaling import LARGEST_SCALE, ScaleRules, ScaleState, next_scale


@dataclasses.dataclass(frozen=True, slots=True)
class FixedLossScale:
    """A loss scale that stays.

    Attributes:
        scale: Multiplier of the loss, at least 1.
        skip_nonfinite: Whether a step with gradients that are not finite is dropped; without it they are applied, as TensorFlow
            does with a fixed scale.

    Raises:
        TrainingError: If the scale is no number, below 1 or not finite.

    Example:
        >>> FixedLossScale(128).update(finite=False)
        (FixedLossScale(scale=128, skip_nonfinite=True), False)
    """

    scale: float
    skip_nonfinite: bool = True

    def __post_init__(self) -> None:
        _check_number("FixedLossScale", "scale", self.scale, 1, LARGEST_SCALE)

    def update(self, finite: bool) -> "tuple[FixedLossScale, bool]":
        """Return this scale, and whether a step is applied whose gradients are all finite, or are not."""
        return self, finite or not self.skip_nonfinite


@dataclasses.dataclass(frozen=True, slots=True)
class DynamicLossScale:
    """A loss scale that grows while gradients are finite, and backs off when they are not.

    It is a value: :meth:`update` returns the next one. A step that is not finite is dropped and lowers the scale to
    ``scale * backoff_factor``, but not below the floor. ``growth_interval`` finite steps in a row raise it to
    ``scale * growth_factor``, unless that lies above the ceiling. Powers of two as scale, factors and bounds keep it one,
    so that scaling rounds nothing. Scale and bounds are rounded to float32.

    Attributes:
        scale: Multiplier of the loss.
        growth_interval: Finite steps in a row after which it grows.
        growth_factor: By what, more than 1.
        backoff_factor: What it is multiplied by after a step that is not finite, between 0 and 1.
        floor: Least scale.
        ceiling: Largest scale.
        hysteresis: Which step that is not finite, counted since the scale last grew, is the first to lower it.
        good_steps: Finite steps since the scale last changed or a step was not finite.
        bad_steps: Steps that were not finite and did not lower the scale yet, since it last grew.

    Raises:
        TrainingError: If a number makes no sense, or the scale lies outside of its bounds.

    Example:
        >>> state = DynamicLossScale(scale=8.0, growth_interval=2)
        >>> state, applied = state.update(finite=True)
        >>> state, applied = state.update(finite=True)
        >>> state.scale, state.good_steps
        (16.0, 0)
        >>> state, applied = state.update(finite=False)
        >>> state.scale, applied
        (8.0, False)
    """

    scale: float = 2.0**15
    growth_interval: int = 2000
    growth_factor: float = 2.0
    backoff_factor: float = 0.5
    floor: float = 1.0
    ceiling: float = LARGEST_SCALE
    hysteresis: int = 1
    good_steps: int = 0
    bad_steps: int = 0

    def __post_init__(self) -> None:
        name = "DynamicLossScale"
        _check_number(name, "floor", self.floor, 2.0**-126, LARGEST_SCALE)
        _check_number(name, "ceiling", self.ceiling, self.floor, LARGEST_SCALE)
        _check_number(name, "scale", self.scale, self.floor, self.ceiling)
        _check_number(name, "growth_factor", self.growth_factor, math.nextafter(1, 2), LARGEST_SCALE)
        _check_number(name, "backoff_factor", self.backoff_factor, 2.0**-126, math.nextafter(1, 0))
        for field, least in (("growth_interval", 1), ("hysteresis", 1), ("good_steps", 0), ("bad_steps", 0)):
            count = getattr(self, field)
            if type(count) is not int or count < least:
                raise TrainingError(f"{name} needs an integer {field} of at least {least}. Received: {count!r}")
        for field in ("scale", "floor", "ceiling"):
            object.__setattr__(self, field, float(np.float32(getattr(self, field))))

    @property
    def rules(self) -> ScaleRules:
        """The numbers that do not change."""
        return ScaleRules(*(getattr(self, field) for field in ScaleRules._fields))

    def update(self, finite: bool) -> "tuple[DynamicLossScale, bool]":
        """Return the scale after a step, and whether that step is applied, whose gradients are all finite, or are not."""
        state = next_scale(self.rules, ScaleState(self.scale, self.good_steps, self.bad_steps), finite)
        return dataclasses.replace(self, **state._asdict()), finite


LossScale = FixedLossScale | DynamicLossScale


def find_loss_scale(given: Any) -> LossScale:
    """Return the loss scale that a user means by ``"dynamic"``, a number (a fixed scale) or a loss scale.

    Raises:
        TrainingError: If it is none of these, or a number below 1 or not finite.
    """
    if isinstance(given, LossScale):
        return given
    if isinstance(given, str) and given == "dynamic":
        return DynamicLossScale()
    if isinstance(given, int | float) and not isinstance(given, bool):
        return FixedLossScale(float(given))
    raise TrainingError(
        "A loss scale is 'dynamic', a Python number of at least 1, a FixedLossScale or a DynamicLossScale. "
        f"Received: {given!r} of type {type(given).__name__}"
    )


def _check_number(owner: str, name: str, number: Any, least: float, most: float) -> None:
    if isinstance(number, bool) or not isinstance(number, int | float) or not least <= number <= most:
        raise TrainingError(f"{owner} needs a {name} between {least:.17g} and {most:.17g}. Received: {number!r}")
