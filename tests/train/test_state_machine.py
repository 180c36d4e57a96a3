"""Whatever gradients come, and wherever a run is saved and gone on from, the loss-scale optimizer keeps its promises.

A second optimizer, which is never saved, makes the same steps: after every one both hold the same bits.
"""

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ampgraph import DynamicLossScale, FixedLossScale, LossScaleOptimizer, train

from .variables import Box

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


def bits(boxes: list[Box], optimizer: LossScaleOptimizer) -> dict[str, bytes]:
    """Return all that a run holds."""
    state = optimizer.state_dict()
    return {box.name: box.value.tobytes() for box in boxes} | {name: np.asarray(array).tobytes() for name, array in state.items()}


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
        self.runs = [(make(), [Box(name, x) for name, x in zip(SHAPES, start, strict=True)]) for _ in range(2)]
        self.applied = self.calls = self.good = 0
        self.window_is_finite, self.window_is_empty = True, True

    @rule(kinds=st.tuples(GRADIENTS, GRADIENTS), size=st.sampled_from([1e-30, 1e-3, 1.0, 1e4]))
    def a_step(self, kinds: tuple[str, str], size: float) -> None:
        self.step(kinds, size)

    def step(self, kinds: tuple[str, str], size: float) -> None:
        gradients = []
        for kind, shape in zip(kinds, SHAPES.values(), strict=True):
            gradient = (self.rng.standard_normal(shape) * size).astype(np.float32)
            if kind not in ("fine", "none"):
                gradient.flat[self.rng.integers(gradient.size)] = float(kind)
            gradients.append(None if kind == "none" else gradient)
        self.window_is_finite &= all(kind in ("fine", "none") for kind in kinds)
        self.window_is_empty &= kinds == ("none", "none")
        ends = self.calls + 1 == self.accumulation
        if ends and self.window_is_empty:
            gradients[0] = np.zeros(SHAPES["layer/w"], np.float32)  # a step without any gradient is an error
        self.calls = 0 if ends else self.calls + 1
        optimizer, boxes = self.runs[0]
        before, scale = bits(boxes, optimizer), optimizer.loss_scale
        results = [run.apply_gradients(zip(gradients, own, strict=True)) for run, own in self.runs]
        assert repr(results[0]) == repr(results[1])
        after = bits(boxes, optimizer)
        kept = {name for name in before if name in SHAPES or name.startswith("inner/")}
        applied = ends and self.window_is_finite
        assert results[0].applied == applied
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

    @rule(count=st.integers(2, 12), size=st.sampled_from([1e-3, 1.0]))
    def many_finite_steps(self, count: int, size: float) -> None:
        for _ in range(count):
            self.step(("fine", "fine"), size)

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
        optimizer, boxes = self.runs[0]
        fresh, others = self.make(), [Box(name, np.zeros(shape)) for name, shape in SHAPES.items()]
        if through_a_file:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "state"
                train.save_checkpoint(path, boxes, optimizer)
                train.load_checkpoint(path, others, fresh)
                assert [file.name for file in Path(folder).iterdir()] == ["state"]
        else:
            fresh.load_state_dict(optimizer.state_dict())
            for box, other in zip(boxes, others, strict=True):
                other.assign(box.value)
        self.runs[0] = (fresh, others)

    @invariant()
    def both_runs_hold_the_same(self) -> None:
        if hasattr(self, "runs"):
            one, two = (bits(boxes, optimizer) for optimizer, boxes in self.runs)
            assert one == two

    @invariant()
    def the_scale_is_a_power_of_two_within_bounds(self) -> None:
        if hasattr(self, "runs"):
            scale = self.runs[0][0].loss_scale
            assert math.isfinite(scale.scale)
            assert math.frexp(scale.scale)[0] == 0.5
            if isinstance(scale, DynamicLossScale):
                assert 0 < scale.floor <= scale.scale <= scale.ceiling

    @invariant()
    def the_global_step_counts_applied_steps(self) -> None:
        if hasattr(self, "runs"):
            assert self.runs[0][0].global_step == self.applied


TestTraining = Training.TestCase
TestTraining.settings = settings(max_examples=50, stateful_step_count=20)
