"""Loss scales: what is accepted, and how they move."""

from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph import DynamicLossScale, FixedLossScale
from ampgraph.train.loss_scale import find_loss_scale


def moved(scale: DynamicLossScale, pattern: str) -> list[float]:
    """Return the scale after each step: ``f`` is finite, ``n`` is not."""
    scales = []
    for kind in pattern:
        scale, applied = scale.update(kind == "f")
        assert applied == (kind == "f")
        scales.append(scale.scale)
    return scales


def test_the_defaults() -> None:
    scale = DynamicLossScale()
    assert (scale.scale, scale.growth_interval, scale.growth_factor, scale.backoff_factor) == (2.0**15, 2000, 2.0, 0.5)
    assert find_loss_scale("dynamic") == scale
    assert moved(scale, "f" * 2000) == [2.0**15] * 1999 + [2.0**16]


def test_one_that_is_not_finite_starts_the_count_anew() -> None:
    assert moved(DynamicLossScale(8.0, growth_interval=3), "ffnfffn") == [8, 8, 4, 4, 4, 8, 4]


def test_stays_within_floor_and_ceiling() -> None:
    scale = DynamicLossScale(8.0, growth_interval=1, floor=4.0, ceiling=16.0)
    assert moved(scale, "ffffnnnn") == [16, 16, 16, 16, 8, 4, 4, 4]
    assert moved(DynamicLossScale(2.0**127, growth_interval=1), "fn") == [2.0**127, 2.0**126]
    assert moved(DynamicLossScale(5.0, growth_interval=1, ceiling=12.0), "ff") == [10, 10]  # not 12


def test_hysteresis_waits_until_the_scale_grows_again() -> None:
    scale = DynamicLossScale(8.0, growth_interval=2, hysteresis=3)
    assert moved(scale, "nnnnfnffnnn") == [8, 8, 4, 2, 2, 1, 1, 2, 2, 2, 1]


def test_a_fixed_scale_drops_steps_unless_told_otherwise() -> None:
    fixed = FixedLossScale(128)
    assert fixed.update(True) == (fixed, True)
    assert fixed.update(False) == (fixed, False)
    assert FixedLossScale(128, skip_nonfinite=False).update(False)[1]


@pytest.mark.parametrize("given", [1, 128, 128.0, np.float64(8), 1e30])
def test_a_number_is_a_fixed_scale(given: Any) -> None:
    assert find_loss_scale(given) == FixedLossScale(float(given))


def test_a_loss_scale_is_taken_as_it_is() -> None:
    for scale in (FixedLossScale(2), DynamicLossScale(4.0)):
        assert find_loss_scale(scale) is scale


@pytest.mark.parametrize(
    "given",
    ["fixed", "Dynamic", "", "128", None, [2], {"a": 1}, True, np.float32(8.0), np.int64(8), DynamicLossScale, object()],
    ids=repr,
)
def test_what_is_no_loss_scale_is_refused(given: Any) -> None:
    with pytest.raises(ag.TrainingError, match=r"A loss scale is 'dynamic', a Python number .* Received: "):
        find_loss_scale(given)


@pytest.mark.parametrize("given", [0, -1, 0.5, float("nan"), float("inf"), 1e39])
def test_a_fixed_scale_below_1_or_not_finite_is_refused(given: float) -> None:
    with pytest.raises(ValueError, match=r"FixedLossScale needs a scale between 1 and 1\.7.* Received: "):
        find_loss_scale(given)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": 0.5}, "scale between 1 and"),
        ({"scale": "a"}, "scale between 1 and"),
        ({"scale": float("nan")}, "scale between 1 and"),
        ({"scale": 32.0, "ceiling": 16.0}, "scale between 1 and 16. Received: 32.0"),
        ({"floor": 0}, "floor between"),
        ({"floor": 4.0, "ceiling": 2.0}, "ceiling between 4 and"),
        ({"ceiling": float("inf")}, "ceiling between"),
        ({"growth_factor": 1.0}, "growth_factor between"),
        ({"backoff_factor": 1.0}, "backoff_factor between"),
        ({"backoff_factor": 0.0}, "backoff_factor between"),
        ({"growth_interval": 0}, "integer growth_interval of at least 1"),
        ({"growth_interval": 2.0}, "integer growth_interval of at least 1"),
        ({"hysteresis": 0}, "integer hysteresis of at least 1"),
        ({"good_steps": -1}, "integer good_steps of at least 0"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ag.TrainingError, match=f"DynamicLossScale needs an? {message}"):
        DynamicLossScale(**options)
