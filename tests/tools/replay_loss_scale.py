"""Replay recorded training steps of other frameworks under their rules: ``python tests/tools/replay_loss_scale.py FOLDER``.

The folder holds ``*.json``, a recording each: hyperparameters, first variables, and for every step the scaled gradients and what
loss scale, counters, variables and slots were after it. Floats are written in hexadecimal. Exit code 0 only when all agree.
"""

import argparse
import collections
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ampgraph.kernels.apply_step import Update, apply_step
from ampgraph.kernels.loss_scaling import ScaleRules, ScaleState, next_scale
from ampgraph.kernels.update_rules import UPDATE_RULES, UpdateRule

LARGEST = float(np.finfo(np.float32).max)


class Framework(NamedTuple):
    """What a framework does its own way.

    Attributes:
        floor: Least loss scale that a step which is not finite leaves.
        ceiling: Largest that growth can reach.
        multiplies: Whether gradients are multiplied by the reciprocal of the scale, which rounds twice, and not divided.
        counts_dropped: Whether iterations count dropped steps.
        rules: The update rules, by what the recordings call them.
        numbers: In which precision the numbers of formulas are: float32 where they are attributes of an op.
        exact: The optimizers that round as we do; others are held to :data:`RTOL`.
    """

    floor: float
    ceiling: float
    multiplies: bool
    counts_dropped: bool
    rules: Mapping[str, UpdateRule]
    numbers: type[Any]
    exact: tuple[str, ...]


#: How far variables and slots may be from those recorded where the order of roundings differs: relative, and relative to the
#: largest element.
RTOL, ATOL = 2e-6, 1e-6


def gradient_momentum(
    xp: Any, step: int, rate: float, variable: Any, gradient: Any, total: Any, *, momentum: float
) -> tuple[Any, ...]:
    """Add up gradients that fade, where Keras adds up steps."""
    total = total * momentum + gradient
    return variable - total * rate, total


def gradient_nesterov(
    xp: Any, step: int, rate: float, variable: Any, gradient: Any, total: Any, *, momentum: float
) -> tuple[Any, ...]:
    """The same, one step ahead."""
    total = total * momentum + gradient
    return variable - (gradient * rate + total * momentum * rate), total


def torch_adam(
    xp: Any,
    step: int,
    rate: float,
    variable: Any,
    gradient: Any,
    mean: Any,
    square: Any,
    *,
    beta_1: float,
    beta_2: float,
    epsilon: float,
) -> tuple[Any, ...]:
    """Adam whose epsilon is added after the correction of the bias."""
    mean = mean + (gradient - mean) * (1 - beta_1)
    square = square * beta_2 + gradient * gradient * (1 - beta_2)
    root = xp.sqrt(square) / (1 - beta_2**step) ** 0.5 + epsilon
    return variable - mean / root * (rate / (1 - beta_1**step)), mean, square


KERAS = {name: UPDATE_RULES[name] for name in ("sgd", "momentum", "nesterov", "adam")}
TOTALS = {
    "momentum": UPDATE_RULES["momentum"]._replace(update=gradient_momentum),
    "nesterov": UPDATE_RULES["nesterov"]._replace(update=gradient_nesterov),
}
TORCH = KERAS | TOTALS | {"adam": UPDATE_RULES["adam"]._replace(update=torch_adam)}
FRAMEWORKS = {
    "tf.compat.v1": Framework(1.0, LARGEST, True, False, KERAS | TOTALS, np.float32, ("sgd", "momentum", "nesterov")),
    "tf_keras.LossScaleOptimizer(LossScaleOptimizerV3)": Framework(
        1.0, LARGEST, False, True, KERAS, float, ("sgd", "momentum", "nesterov")
    ),
    "tf_keras.LossScaleOptimizer(LossScaleOptimizer)": Framework(
        1.0, LARGEST, False, True, KERAS, np.float32, ("sgd", "momentum")
    ),
    "keras3": Framework(0.0, np.inf, False, False, KERAS, float, ("sgd", "momentum", "nesterov")),
    "torch": Framework(0.0, LARGEST, True, False, TORCH, float, ()),
}
NUMBERS = {"momentum": "momentum", "b1": "beta_1", "b2": "beta_2", "eps": "epsilon"}


def number(text: str) -> float:
    """Return a recorded float."""
    return float.fromhex(text)


def arrays(rows: Sequence[Sequence[str]], shapes: Sequence[Sequence[int]]) -> list[Any]:
    """Return recorded arrays, which are float32."""
    return [np.array([number(x) for x in row], np.float32).reshape(shape) for row, shape in zip(rows, shapes, strict=True)]


def recorded_slots(step: Mapping[str, Any], rule: UpdateRule, shapes: Sequence[Sequence[int]]) -> list[list[Any]]:
    """Return the slots of each variable after a step: those whose names have ``v0`` in them are the first variable's."""
    rows: list[list[Any]] = []
    for i, shape in enumerate(shapes):
        own = [row for name, row in step["slots_after"].items() if re.search(rf"v{i}(?!\d)", name) and isinstance(row, list)]
        # Keras 2 gives SGD without momentum slots too, which stay 0.
        rows.append([np.array([number(x) for x in row], np.float32).reshape(shape) for row in own[: len(rule.slots)]])
    return rows


def run_trace(trace: Mapping[str, Any]) -> list[str]:
    """Replay a recording; return what differs, a line each.

    Raises:
        KeyError: If no rule set is known for what was recorded.
    """
    name = next(name for name in FRAMEWORKS if trace["implementation"].startswith(name))
    framework = FRAMEWORKS[name]
    rule = framework.rules[trace["optimizer"]]
    shapes, hyper = trace["var_shapes"], trace["hyper"]
    numbers = {NUMBERS[key]: framework.numbers(x) for key, x in hyper.items() if NUMBERS.get(key) in rule.numbers}
    update = Update(rule, numbers, skip_nonfinite=trace["dynamic"])
    multiplier = trace["multiplier"]
    rules = ScaleRules(
        trace["growth_interval"], multiplier, trace.get("backoff", 1 / multiplier), framework.floor, framework.ceiling
    )
    state = ScaleState(number(trace["initial_scale"]), trace["preset_good_steps"])
    variables = arrays(trace["var_init"], shapes)
    slots = [[np.full(shape, start, np.float32) for start in rule.slots.values()] for shape in shapes]
    iterations = 0
    found: list[str] = []

    def compare(what: str, got: Any, wanted: Any) -> None:
        if got != wanted:
            found.append(f"step {count}: {what} is {got}, not {wanted}")

    for count, step in enumerate(trace["steps"]):
        compare("loss scale before", state.scale, number(step["scale_before"]))
        gradients, scale = arrays(step["scaled_grads"], shapes), state.scale
        if framework.multiplies:
            with np.errstate(all="ignore"):
                gradients, scale = [gradient * (np.float32(1) / np.float32(scale)) for gradient in gradients], 1.0
        with np.errstate(all="ignore"):
            done = apply_step(
                np,
                update,
                variables,
                slots,
                gradients,
                step=iterations + 1,
                rate=hyper["lr"],
                scale=scale,
            )
        if trace["dynamic"]:
            state = next_scale(rules, state, done.finite)
            compare("counter of good steps", state.good_steps, step["good_steps_after"])
        iterations += done.applied or framework.counts_dropped
        compare("applied", done.applied, step["applied"])
        compare("loss scale after", state.scale, number(step["scale_after"]))
        if "iterations_after" in step:
            compare("iterations", iterations, step["iterations_after"])
        variables, slots = list(done.variables), [list(row) for row in done.slots]
        exact = trace["optimizer"] in framework.exact
        pairs = [("variable", variables, arrays(step["vars_after"], shapes))]
        recorded = recorded_slots(step, rule, shapes)
        pairs += [("slot", got, wanted) for got, wanted in zip(slots, recorded, strict=True) if wanted]
        for what, got, wanted in pairs:
            for a, b in zip(got, wanted, strict=True):
                if not same(a, b, exact):
                    found.append(f"step {count}: a {what} is {a.tolist()}, not {b.tolist()}")
    return found


def same(got: Any, wanted: Any, exact: bool) -> bool:
    """Whether an array is what was recorded."""
    if exact or not np.isfinite(wanted).all():
        return bool(np.array_equal(got, wanted, equal_nan=True))
    return bool(np.allclose(got, wanted, rtol=RTOL, atol=ATOL * float(np.abs(wanted).max(initial=0))))


def read_traces(folder: Path) -> dict[str, Any]:
    """Return the recordings of a folder by name."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def main() -> int:
    """Replay a folder; return 1 if a recording differs or there is none."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    traces = read_traces(options.folder)
    total, equal = collections.Counter[str](), collections.Counter[str]()
    for name, trace in traces.items():
        differences = run_trace(trace)
        total[trace["implementation"]] += 1
        equal[trace["implementation"]] += not differences
        for line in differences[:6]:
            print(f"{name}: {line}")
    for implementation in total:
        print(f"{implementation}: {equal[implementation]} of {total[implementation]} recordings agree")
    if not total:
        print(f"No recordings in {options.folder}.", file=sys.stderr)
    return 0 if total and total == equal else 1


if __name__ == "__main__":
    sys.exit(main())
