"""Optimizers step as those of Keras do, refuse what makes no sense, and go on from what they saved."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph import train
from ampgraph.kernels.update_rules import UPDATE_RULES

from .variables import Box

KERAS = json.loads((Path(__file__).parents[1] / "data" / "optimizers" / "keras.json").read_text(encoding="utf-8"))
#: What Keras calls otherwise.
NAMES = {"Lamb": "LAMB", "initial_learning_rate": "initial", "end_learning_rate": "end"}


def renamed(name: str) -> str:
    """Return our name of what Keras calls so."""
    return NAMES.get(name, name)


def made(case: dict[str, Any]) -> train.Optimizer:
    """Return the optimizer of a case."""
    optimizer: train.Optimizer = getattr(train, renamed(case["optimizer"]))(**case["options"])
    return optimizer


def boxes() -> list[Box]:
    return [Box(f"v{i}", value) for i, value in enumerate(KERAS["start"])]


@pytest.mark.parametrize("case", KERAS["cases"], ids=lambda case: f"{case['optimizer']}-{'-'.join(case['options'])}")
def test_steps_as_keras_does(case: dict[str, Any]) -> None:
    optimizer = made(case)
    variables = boxes()
    for gradients, wanted in zip(KERAS["gradients"], case["variables"], strict=True):
        result = optimizer.apply_gradients([(np.array(g, np.float32), v) for g, v in zip(gradients, variables, strict=True)])
        assert result.applied
        for variable, value in zip(variables, wanted, strict=True):
            np.testing.assert_allclose(variable.value, value, rtol=2e-6, atol=5e-7)
    assert optimizer.global_step == 5


def test_every_rule_is_compared() -> None:
    used = {made(case).update.rule.name for case in KERAS["cases"]}
    assert used == set(UPDATE_RULES)


@pytest.mark.parametrize("case", KERAS["schedules"], ids=lambda case: f"{case['schedule']}-{'-'.join(case['options'])}")
def test_schedules_are_those_of_keras(case: dict[str, Any]) -> None:
    options: dict[str, Any] = {renamed(key): value for key, value in case["options"].items()}
    if "warmup_target" in options:
        start, steps = options.pop("initial"), options.pop("warmup_steps")
        options["initial"] = options.pop("warmup_target")
        schedule: train.Schedule = train.Warmup(train.CosineDecay(**options), steps, start)
    else:
        schedule = getattr(train, case["schedule"])(**options)
    # Keras computes them in float32.
    assert [schedule(step) for step in KERAS["steps"]] == pytest.approx(case["rates"], rel=2e-5, abs=1e-8)


def test_a_schedule_is_followed_by_applied_steps() -> None:
    optimizer, box = train.SGD(train.PiecewiseConstantDecay([0, 1], [1.0, 0.5, 0.25])), Box("w", [0.0])
    for wanted in (-1.0, -1.5, -1.75, -2.0):
        optimizer.apply_gradients([(np.ones(1, np.float32), box)])
        assert box.value.tolist() == [wanted]
    warm = train.Warmup(train.ConstantRate(0.5), steps=4)
    assert [warm(step) for step in range(6)] == [0, 0.125, 0.25, 0.375, 0.5, 0.5]


def test_the_learning_rate_can_be_set() -> None:
    optimizer = train.Adam(0.5)
    optimizer.learning_rate = 0.25
    assert optimizer.learning_rate == 0.25
    optimizer.learning_rate = train.ExponentialDecay(0.1, 1, 0.5)
    assert optimizer.learning_rate == 0.1
    with pytest.raises(ag.TrainingError, match=r"learning rate is a finite number, not negative\. Received: nan"):
        optimizer.learning_rate = float("nan")


def test_gradients_that_there_are_not_are_passed_over() -> None:
    optimizer, a, b = train.SGD(1.0, momentum=0.5), Box("a", [1.0]), Box("b", [1.0])
    optimizer.apply_gradients([(None, a), (np.ones(1, np.float16), b)])
    assert (a.assigned, b.value.tolist(), optimizer.slots.keys()) == (0, [0.0], {"b"})


def test_float64_variables_stay_float64() -> None:
    box = Box("w", [1.0], np.float64)
    train.Adam(0.1).apply_gradients([(np.array([1e-12], np.float32), box)])
    assert box.value.dtype == np.float64


def test_norms_that_overflow_are_still_found() -> None:
    box = Box("w", [0.0, 0.0])
    result = train.SGD(1.0, global_clipnorm=1.0).apply_gradients([(np.array([3e30, 4e30], np.float32), box)])
    assert result.grad_norm == pytest.approx(5e30)
    assert box.value.tolist() == pytest.approx([-0.6, -0.8])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: train.SGD(-0.1), "learning rate is a finite number, not negative. Received: -0.1"),
        (lambda: train.SGD(True), "learning rate is a finite number"),
        (lambda: train.Adam(beta_1=float("inf")), "beta_1 is a finite number"),
        (lambda: train.SGD(clipnorm=0), "bound for the norm is a finite number, more than 0. Received: 0"),
        (lambda: train.SGD(clipnorm=1, clipvalue=1), "clipped by value, by norm or by global norm"),
        (lambda: train.CosineDecay(0.1, 0), "CosineDecay needs at least one step. Received: 0"),
        (lambda: train.PiecewiseConstantDecay([2, 1], [1, 2, 3]), "ascending boundaries and one value more"),
        (lambda: train.SGD().apply_gradients([(None, Box("w", [1.0]))]), "No variable has a gradient.*Received: 'w'"),
        (lambda: train.SGD().apply_gradients([]), "No variable has a gradient.*Received: no variable at all"),
        (lambda: train.SGD().apply_gradients([(np.ones(2), Box("w", [1.0]))]), "must have its shape, .1.. Received: .* .2."),
        (lambda: train.SGD().apply_gradients([(np.ones(1), Box("w", [1.0]))] * 2), "Received: 'w' twice"),
        (lambda: train.SGD().apply_gradients([(np.ones(1), Box("w", [1], np.int32))]), "must hold a float32 or float64 array"),
    ],
)
def test_refuses_what_makes_no_sense(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ag.TrainingError, match=message):
        make()


def test_a_state_of_another_optimizer_is_refused() -> None:
    adam, box = train.Adam(), Box("layer/w", [1.0])
    adam.apply_gradients([(np.ones(1), box)])
    state = adam.state_dict()
    assert set(state) == {"rule", "global_step", "learning_rate", "slots/layer/w/momentum", "slots/layer/w/velocity"}
    for other, change, message in [
        (train.SGD(), {}, "goes on from a state of rule 'sgd'. Received: a state of rule 'adam'"),
        (train.Adam(), {"nonsense": np.array(1)}, "no state of this name. Received: 'nonsense'"),
        (train.Adam(), {"slots/layer/w/more": np.array(1)}, "Received: .'momentum', 'more', 'velocity'. for 'layer/w'"),
    ]:
        with pytest.raises(ag.TrainingError, match=message):
            other.load_state_dict(state | change)
        assert (other.global_step, other.slots) == (0, {})
    other = train.Adam(0.5)
    other.load_state_dict(state)
    assert (other.learning_rate, other.global_step) == (0.001, 1)
    with pytest.raises(
        ag.TrainingError, match=r"Slot .momentum. of variable .layer/w. is float32.1., but the variable is float32.2."
    ):
        other.apply_gradients([(np.ones(2), Box("layer/w", [1.0, 2.0]))])
