"""How a loss scale moves: one rule, with numbers that make it that of other frameworks too."""

from typing import NamedTuple

#: The largest power of two that float32 has.
LARGEST_SCALE = 2.0**127


class ScaleRules(NamedTuple):
    """The numbers of the rule.

    TensorFlow's rule (the one of ``tf.compat.v1`` and of Keras 2) is this one with the largest float32 as ceiling, torch's has
    no floor besides, and that of Keras 3 has no ceiling either: its scale can become infinite.

    Attributes:
        growth_interval: Finite steps in a row after which the scale grows.
        growth_factor: What it is multiplied by then; a scale above the ceiling is not taken.
        backoff_factor: What it is multiplied by after a step that is not finite, but never to less than the floor.
        floor: Least scale.
        ceiling: Largest scale.
        hysteresis: Which step that is not finite, counted since the scale last grew, is the first to lower it.
    """

    growth_interval: int = 2000
    growth_factor: float = 2.0
    backoff_factor: float = 0.5
    floor: float = 1.0
    ceiling: float = LARGEST_SCALE
    hysteresis: int = 1


class ScaleState(NamedTuple):
    """What changes.

    Attributes:
        scale: The loss scale, a float32 number.
        good_steps: Finite steps since the scale last changed or a step was not finite.
        bad_steps: Steps that were not finite and did not lower the scale yet, since it last grew.
    """

    scale: float
    good_steps: int = 0
    bad_steps: int = 0


def next_scale(rules: ScaleRules, state: ScaleState, finite: bool) -> ScaleState:
    """Return the state after a step whose gradients were all finite, or were not."""
    if not finite:
        if state.bad_steps + 1 < rules.hysteresis:
            return ScaleState(state.scale, 0, state.bad_steps + 1)
        return ScaleState(max(_float32(state.scale * rules.backoff_factor), rules.floor), 0, state.bad_steps)
    if state.good_steps + 1 < rules.growth_interval:
        return state._replace(good_steps=state.good_steps + 1)
    grown = _float32(state.scale * rules.growth_factor)
    return ScaleState(grown if grown <= rules.ceiling else state.scale)


def _float32(number: float) -> float:
    import numpy as np

    with np.errstate(over="ignore", under="ignore"):
        return float(np.float32(number))
