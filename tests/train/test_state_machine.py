"""Whatever gradients come, and wherever a run is saved and gone on from, the loss-scale optimizer keeps its promises.

Its steps are made on the host or by a graph, at random. A second optimizer, which is never saved, makes all of them on the host:
after every step both hold the same bits.
"""

import math
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import ampgraph as ag
from ampgraph import DynamicLossScale, FixedLossScale, LossScaleOptimizer, train

MAKERS = [
    lambda: train.SGD(0.1),
    lambda: train.SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    lambda: train.Adam(train.Warmup(train.CosineDecay(0.1, 20), 3), global_clipnorm=1.0),
    lambda: train.RMSprop(0.1, momentum=0.5),
    lambda: train.Adagrad(0.1),
    lambda: train.LAMB(0.1, clipnorm=1.0),
]
SHAPES = {"layer/w": (2, 3), "layer/b": (3,)}
GRADIENTS = st.sampled_from(["fine", "fine", "fine", "fine", "none", "inf", "-inf", "nan"])


class Run:
    """An optimizer, its variables, and a function that makes a step with the gradients that are given."""

    def __init__(self, optimizer: LossScaleOptimizer, start: list[Any]) -> None:
        self.optimizer = optimizer
        self.variables = [ag.Variable(value, name, np.float32) for name, value in zip(SHAPES, start, strict=True)]
        self.function = ag.function(self.traced)

    def traced(self, gradients: list[Any]) -> Any:
        pairs = [pair for pair in zip(self.variables, gradients, strict=True) if pair[1] is not None]
        return self.optimizer.minimize(sum(np.sum(variable * gradient) for variable, gradient in pairs))

    def step(self, gradients: list[Any], in_graph: bool) -> tuple[bool, float, int, bytes]:
        if not in_graph:
            result = self.optimizer.apply_gradients(zip(gradients, self.variables, strict=True))
        else:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "The loss itself", RuntimeWarning)
                result = self.function(gradients)
        applied, scale, step, norm = result[1:]
        return bool(applied), float(scale), int(step), np.float32(norm).tobytes()

    @property
    def bits(self) -> dict[str, bytes]:
        """All that it holds."""
        state = self.optimizer.state_dict()
        return {v.name: v.value.tobytes() for v in self.variables} | {
            name: np.asarray(array).tobytes() for name, array in state.items()
        }


class Training(RuleBasedStateMachine):
    """Random steps, saves and resumptions."""

    @initialize(
        maker=st.sampled_from(MAKERS),
        accumulation=st.sampled_from([1, 1, 2, 3]),
        exponent=st.integers(-2, 20),
        interval=st.integers(1, 4),
        hysteresis=st.integers(1, 3),
        factor=st.sampled_from([2.0, 4.0]),
        bounds=st.tuples(st.integers(0, 3), st.integers(0, 3)),
        fixed=st.sampled_from([False, False, False, True]),
        seed=st.integers(0, 1000),
    )
    def start(
        self,
        maker: Any,
        accumulation: int,
        exponent: int,
        interval: int,
        hysteresis: int,
        factor: float,
        bounds: tuple[int, int],
        fixed: bool,
        seed: int,
    ) -> None:
        def make() -> LossScaleOptimizer:
            scale = 2.0**exponent
            dynamic = DynamicLossScale(
                scale,
                growth_interval=interval,
                growth_factor=factor,
                floor=scale / 2 ** bounds[0],
                ceiling=scale * 2 ** bounds[1],
                hysteresis=hysteresis,
            )
            chosen = FixedLossScale(max(scale, 1.0)) if fixed else dynamic
            return LossScaleOptimizer(maker(), chosen, accumulation_steps=accumulation, max_skips=10**6)

        self.make, self.accumulation, self.fixed = make, accumulation, fixed
        self.rng = np.random.default_rng(seed)
        start = [self.rng.standard_normal(shape).astype(np.float32) for shape in SHAPES.values()]
        self.runs = [Run(make(), start) for _ in range(2)]
        self.applied = self.calls = self.good = 0
        self.window_is_finite, self.window_is_empty = True, True

    @rule(kinds=st.tuples(GRADIENTS, GRADIENTS), size=st.sampled_from([1e-30, 1e-3, 1.0, 1e4]), in_graph=st.booleans())
    def a_step(self, kinds: tuple[str, str], size: float, in_graph: bool) -> None:
        self.step(kinds, size, in_graph)

    def gradients(self, kinds: tuple[str, str], size: float) -> list[Any]:
        gradients = []
        for kind, shape in zip(kinds, SHAPES.values(), strict=True):
            gradient = (self.rng.standard_normal(shape) * size).astype(np.float32)
            if kind not in ("fine", "none"):
                gradient.flat[self.rng.integers(gradient.size)] = float(kind)
            gradients.append(None if kind == "none" else gradient)
        return gradients

    def step(self, kinds: tuple[str, str], size: float, in_graph: bool) -> None:
        gradients = self.gradients(kinds, size)
        self.window_is_finite &= all(kind in ("fine", "none") for kind in kinds)
        self.window_is_empty &= kinds == ("none", "none")
        ends = self.calls + 1 == self.accumulation
        if ends and self.window_is_empty:
            gradients[0] = np.zeros(SHAPES["layer/w"], np.float32)  # a step without any gradient is an error
        self.calls = 0 if ends else self.calls + 1
        run = self.runs[0]
        optimizer, before, scale = run.optimizer, run.bits, run.optimizer.loss_scale
        if kinds == ("none", "none") or ("none" in kinds and self.accumulation > 1):
            in_graph = False  # there, a variable without a gradient is none of the step's
        results = [run.step(gradients, in_graph), self.runs[1].step(gradients, in_graph=False)]
        assert results[0] == results[1]
        after = run.bits
        kept = {name for name in before if name in SHAPES or name.startswith("inner/")}
        applied = ends and self.window_is_finite
        assert results[0][0] == applied
        if not applied:
            assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
            for name in {name for name in after if name.startswith("inner/")} - before.keys():  # slots as they start
                start = optimizer.inner.update.rule.slots[name.rpartition("/")[2]]
                assert set(np.frombuffer(after[name], np.float32)) == {np.float32(start)}
        if not ends:
            assert optimizer.loss_scale == scale
            return
        self.applied += applied
        self.check_scale(scale, optimizer.loss_scale, applied)
        self.window_is_finite, self.window_is_empty = True, True

    @rule(count=st.integers(2, 12), size=st.sampled_from([1e-3, 1.0]), in_graph=st.booleans())
    def many_finite_steps(self, count: int, size: float, in_graph: bool) -> None:
        for _ in range(count):
            self.step(("fine", "fine"), size, in_graph)

    @rule(kind=GRADIENTS.filter(lambda kind: kind != "none"), count=st.integers(1, 3))
    def steps_that_are_undone(self, kind: str, count: int) -> None:
        run = self.runs[0]
        state, values, before = run.optimizer.state_dict(), [variable.value for variable in run.variables], run.bits
        for _ in range(count):
            run.step(self.gradients((kind, "fine"), 1.0), in_graph=True)
        run.optimizer.load_state_dict(state)
        for variable, value in zip(run.variables, values, strict=True):
            variable.assign(value)
        added = run.bits.keys() - before.keys()  # slots that were made start anew
        assert all(name.startswith("inner/slots/") for name in added)
        assert {name: run.bits[name] for name in before} == before

    def check_scale(self, before: Any, after: Any, finite: bool) -> None:
        """It grows exactly when as many finite steps came in a row as it waits for, and never otherwise."""
        if self.fixed:
            assert after == before
            return
        self.good = self.good + 1 if finite else 0
        if self.good == before.growth_interval:
            self.good = 0
            grown = before.scale * before.growth_factor
            assert after.scale == (grown if grown <= before.ceiling else before.scale)
        elif finite:
            assert after.scale == before.scale
        else:
            assert after.scale in (before.scale, max(before.scale / 2, before.floor))
            assert after.scale < before.scale or before.hysteresis > 1 or before.scale == before.floor
        assert after.good_steps == self.good

    @rule(through_a_file=st.booleans())
    def go_on_from_what_was_saved(self, through_a_file: bool) -> None:
        run, fresh = self.runs[0], Run(self.make(), [np.zeros(shape) for shape in SHAPES.values()])
        if through_a_file:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "state"
                train.save_checkpoint(path, run.variables, run.optimizer)
                train.load_checkpoint(path, fresh.variables, fresh.optimizer)
                assert [file.name for file in Path(folder).iterdir()] == ["state"]
        else:
            fresh.optimizer.load_state_dict(run.optimizer.state_dict())
            for variable, other in zip(run.variables, fresh.variables, strict=True):
                other.assign(variable.value)
        self.runs[0] = fresh

    @invariant()
    def both_runs_hold_the_same(self) -> None:
        if hasattr(self, "runs"):
            one, two = (run.bits for run in self.runs)
            assert {name: one[name] for name in two} == two

    @invariant()
    def the_scale_is_a_power_of_two_within_bounds(self) -> None:
        if hasattr(self, "runs"):
            scale = self.runs[0].optimizer.loss_scale
            assert math.isfinite(scale.scale)
            assert math.frexp(scale.scale)[0] == 0.5
            if isinstance(scale, DynamicLossScale):
                assert 0 < scale.floor <= scale.scale <= scale.ceiling

    @invariant()
    def the_global_step_counts_applied_steps(self) -> None:
        if hasattr(self, "runs"):
            assert self.runs[0].optimizer.global_step == self.applied


TestTraining = Training.TestCase
TestTraining.settings = settings(max_examples=50, stateful_step_count=20)
