"""The optimizer that scales the loss: a state machine around another optimizer."""

import dataclasses
import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ..graph.errors import TrainingError
from ..graph.tracing.context import active
from ..graph.tracing.variable import array_of, set_array
from ..rewrite import Policy
from .loss_scale import DynamicLossScale, FixedLossScale, LossScale, find_loss_scale
from .optimizers import GradsAndVars, Optimizer, StepResult, Variable, named, numbers_of, with_gradients
from .state import ScaleVariables, check_state, not_all_named, saved_number

if TYPE_CHECKING:
    from .diagnosis import Diagnosis
    from .schedules import Schedule


class LossScaleOptimizer:
    """Applies gradients of a scaled loss with another optimizer, and drops those that are not finite.

    A dropped step leaves variables, slots and ``global_step`` as they are and lowers the loss scale. The graph of a traced function
    that calls :meth:`minimize` or :meth:`compute_gradients` is rewritten as ``policy`` says, forward and backward together.

    Args:
        inner: The optimizer that makes the steps.
        loss_scale: ``"dynamic"``, a number of at least 1, or a loss scale.
        accumulation_steps: From how many calls of :meth:`apply_gradients` gradients are averaged to make one step. The loss scale
            moves with steps, and one gradient that is not finite drops all of them.
        max_skips: How many steps in a row may be dropped without the scale going down, because it is fixed or at its floor.
        on_stall: What to do when so many were: ``"warn"`` once, or ``"raise"``.
        policy: How the graphs are rewritten that this optimizer differentiates; None if they are not.

    Attributes:
        inner, accumulation_steps, policy: As given.

    Raises:
        TrainingError: If ``inner`` is no optimizer or wrapped already, or the loss scale makes no sense.

    Example:
        >>> from ampgraph.train import SGD
        >>> optimizer = LossScaleOptimizer(SGD(0.1), loss_scale=1024)
        >>> optimizer.get_scaled_loss(0.5)
        np.float32(512.0)
    """

    def __init__(
        self,
        inner: Optimizer,
        loss_scale: Any = "dynamic",
        *,
        accumulation_steps: int = 1,
        max_skips: int = 100,
        on_stall: Literal["warn", "raise"] = "warn",
        policy: Policy | None = None,
    ) -> None:
        if isinstance(inner, LossScaleOptimizer):
            raise TrainingError(f"The optimizer scales its loss already; a loss is scaled once. Received: {inner!r}")
        if not isinstance(inner, Optimizer):
            raise TrainingError(
                f"An optimizer of ampgraph.train is needed, such as SGD(0.1). Received: {inner!r} of type {type(inner).__name__}"
            )
        for name, count in (("accumulation_steps", accumulation_steps), ("max_skips", max_skips)):
            if type(count) is not int or count < 1:
                raise TrainingError(f"{name} is a positive integer. Received: {count!r}")
        if on_stall not in ("warn", "raise"):
            raise TrainingError(f"on_stall is 'warn' or 'raise'. Received: {on_stall!r}")
        self.inner = inner
        self._loss_scale: LossScale = find_loss_scale(loss_scale)
        self._state = ScaleVariables(self._loss_scale.scale)
        self._take_over(self._loss_scale)
        self.accumulation_steps = accumulation_steps
        self.policy = policy
        self._max_skips = max_skips
        self._on_stall = on_stall
        self._stalled = 0
        self._loss_was_finite = True

    def __repr__(self) -> str:
        return f"LossScaleOptimizer({self.inner!r}, {self.loss_scale!r})"

    @property
    def loss_scale(self) -> LossScale:
        """The loss scale, whose number is ``loss_scale.scale``."""
        scale = self._loss_scale
        if isinstance(scale, FixedLossScale):
            return scale
        state = self._state
        moved = (float(array_of(state.scale)), int(array_of(state.good_steps)), int(array_of(state.bad_steps)))
        if moved != (scale.scale, scale.good_steps, scale.bad_steps):
            number, good, bad = moved
            self._loss_scale = scale = dataclasses.replace(scale, scale=number, good_steps=good, bad_steps=bad)
        return scale

    def _take_over(self, scale: LossScale) -> None:
        """Let the variables hold what a loss scale is."""
        self._loss_scale = scale
        set_array(self._state.scale, np.array(scale.scale, np.float32))
        if isinstance(scale, DynamicLossScale):
            set_array(self._state.good_steps, np.array(scale.good_steps))
            set_array(self._state.bad_steps, np.array(scale.bad_steps))

    @property
    def global_step(self) -> int:
        """Number of steps applied."""
        return self.inner.global_step

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next step; it can be set to a number or a schedule."""
        return self.inner.learning_rate

    @learning_rate.setter
    def learning_rate(self, rate: "float | Schedule") -> None:
        self.inner.learning_rate = rate

    def get_scaled_loss(self, loss: Any) -> Any:
        """Return a loss times the loss scale, in float32 or, if the loss has it, float64."""
        if active() is not None:
            from .graph_step import scale_loss

            return scale_loss(self, loss, self._state.scale)
        wide = _wide("A loss", loss)
        if not isinstance(loss, np.ndarray | np.generic):
            wide = wide.astype(np.float32)
        with np.errstate(over="ignore"):
            return wide * wide.dtype.type(self.loss_scale.scale)

    def get_unscaled_gradients(self, gradients: Iterable[Any]) -> list[Any]:
        """Return gradients of the scaled loss, divided by the loss scale, in float32 or wider; None where there is none."""
        if active() is not None:
            from .graph_step import unscale

            return [None if gradient is None else unscale(gradient, self._state.scale) for gradient in gradients]
        found = []
        with np.errstate(over="ignore"):
            for gradient in gradients:
                if gradient is not None:
                    gradient = _wide("A gradient", gradient)
                    gradient = gradient / gradient.dtype.type(self.loss_scale.scale)
                found.append(gradient)
        return found

    def minimize(self, loss: Any, variables: Any = None) -> StepResult:
        """Differentiate a loss, scaled, and apply the gradients, in a function that is traced.

        Args:
            loss: A symbolic array of one number.
            variables: What to change: :class:`~ampgraph.Variable` objects, in whatever containers. All trainable ones of floats that
                the function has used so far when None; those that the loss does not depend on stay as they are.

        Raises:
            TraceError: If no function is being traced.
            TrainingError: If the loss is not one number, or depends on no variable.
        """
        from .graph_step import compute_gradients

        return self._add_step(compute_gradients(self, loss, variables, self._state.scale), loss, scaled=True)

    def compute_gradients(self, loss: Any, variables: Any = None) -> list[tuple[Any, Any]]:
        """Return the gradients of a loss and the variables, as pairs: see :meth:`minimize`. None where it does not depend on one.

        They are those of the scaled loss, divided by the loss scale in float32.
        """
        from .graph_step import compute_gradients

        pairs = compute_gradients(self, loss, variables, self._state.scale)
        found = self.get_unscaled_gradients(gradient for gradient, _ in pairs)
        return [(gradient, variable) for gradient, (_, variable) in zip(found, pairs, strict=True)]

    def apply_gradients(self, grads_and_vars: GradsAndVars, loss: Any = None) -> StepResult:
        """Apply gradients that are no longer scaled, or drop them, and move the loss scale.

        In a function that is traced, all of that happens when its graph runs.

        Args:
            grads_and_vars: Pairs of what :meth:`get_unscaled_gradients` or :meth:`compute_gradients` returned and the variables;
                those without a gradient (None) stay as they are.
            loss: The loss, not scaled, for the result. Where it is not finite a warning says so: no loss scale can help.

        Raises:
            TrainingError: If there is no gradient at all, one does not have its variable's shape, two variables have one name, or
                training does not get on and ``on_stall`` is ``"raise"``.
        """
        if active() is not None:
            return self._add_step(grads_and_vars, loss, scaled=False)
        pairs = named(grads_and_vars)
        self._look_at(loss)
        if self.accumulation_steps > 1:
            calls = self._accumulate(pairs)
            if calls < self.accumulation_steps:
                return StepResult(loss, False, self.loss_scale.scale, self.global_step, math.nan)
            pairs = self._take_accumulated(pairs)
        present = with_gradients(pairs)
        scale = self.loss_scale
        done = self.inner.apply(present, skip_nonfinite=not scale.update(False)[1])
        self._take_over(scale.update(done.finite)[0])
        self._count_stall(
            done.applied, scale.scale, loss, lambda: [v.name for gradient, v in present if not np.isfinite(gradient).all()]
        )
        return StepResult(loss, done.applied, self.loss_scale.scale, self.global_step, done.grad_norm)

    def _add_step(self, grads_and_vars: Iterable[Any], loss: Any, *, scaled: bool) -> StepResult:
        """Add the node that does what :meth:`apply_gradients` does."""
        from .graph_step import add_step, check_pairs

        scale = self.loss_scale
        pairs = with_gradients(check_pairs(grads_and_vars))
        return add_step(
            self,
            _Step(self, frozenset(variable.name for _, variable in pairs)),
            self.inner.update._replace(skip_nonfinite=not scale.update(False)[1]),
            scale.rules if isinstance(scale, DynamicLossScale) else None,
            self.inner.state,
            self._state,
            pairs,
            loss,
            scaled=scaled,
            accumulation_steps=self.accumulation_steps,
        )

    def before_run(self) -> None:
        """Let what the host decides be known to a graph that is going to run."""
        self.inner.before_run()
        self._scale_before = float(array_of(self._state.scale))

    def after_run(self, names: frozenset[str], applied: bool, loss: Any, diagnosis: "Diagnosis") -> None:
        """Look at a run of a graph: warn of a loss that is not finite, and of training that does not get on.

        Args:
            names: The variables of the step that ran.
            applied: Whether they changed.
            loss: The loss.
            diagnosis: Of the run.

        Raises:
            TrainingError: If it does not get on, and ``on_stall`` is ``"raise"``; or if gradients of other variables, which were
                accumulated before, had no part in the step.
        """
        only_adds = self.accumulation_steps > 1 and self._state.ran(names)
        self._look_at(loss, diagnosis)
        if only_adds:
            return
        self._count_stall(applied, self._scale_before, loss, diagnosis.bad_gradients)

    def _waits(self) -> bool:
        """Whether the scale will still go down if the next steps are not finite either."""
        return isinstance(self.loss_scale, DynamicLossScale) and self.loss_scale.scale > self.loss_scale.floor

    def _count_stall(self, applied: bool, before: float, loss: Any, bad_gradients: Callable[[], list[str]]) -> None:
        """Count dropped steps that did not lower the scale; say so when there were too many in a row."""
        if applied:
            self._stalled = 0
        elif float(array_of(self._state.scale)) >= before and not self._waits():
            self._stalled += 1
            if self._stalled == self._max_skips:
                self._report_stall(bad_gradients(), loss)

    def _accumulate(self, pairs: Mapping[str, tuple[Any, Variable]]) -> int:
        """Add gradients to what was accumulated; return how many calls that were."""
        state = self._state
        with np.errstate(all="ignore"):
            for name, (gradient, variable) in pairs.items():
                if gradient is not None:
                    total = state.sum_of(name, gradient.shape, variable.value.dtype)
                    set_array(total, np.asarray(array_of(total) + gradient.astype(total.dtype)))
                    state.summed.add(name)
        calls = int(array_of(state.calls)) + 1
        set_array(state.calls, np.array(calls))
        return calls

    def _take_accumulated(self, pairs: Mapping[str, tuple[Any, Variable]]) -> dict[str, tuple[Any, Variable]]:
        """Return the means of the gradients that were accumulated, and begin anew."""
        if missing := self._state.summed - pairs.keys():
            raise not_all_named(missing)
        totals = self._state.take()
        return {
            name: (totals[name] / self.accumulation_steps if name in totals else None, variable)
            for name, (_, variable) in pairs.items()
        }

    def _look_at(self, loss: Any, diagnosis: "Diagnosis | None" = None) -> None:
        number = _number_of(loss)
        finite = math.isfinite(number)
        if self._loss_was_finite and not finite:
            origin = "" if diagnosis is None else diagnosis.origin()
            warnings.warn(
                f"The loss itself is {number}, after {self.global_step} steps: a smaller loss scale will not help. "
                + (origin or "Look at the learning rate, the data, and what runs in low precision."),
                RuntimeWarning,
                stacklevel=3,
            )
        self._loss_was_finite = finite

    def _report_stall(self, names: list[str], loss: Any) -> None:
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        text = (
            f"{self._stalled} steps in a row were dropped at the loss scale {self.loss_scale.scale:g}, which cannot go lower: the "
            f"gradient of {names[0]!r}{others} is not finite"
            + ("." if math.isfinite(_number_of(loss)) else f", and the loss itself is {_number_of(loss)}.")
        )
        if self._on_stall == "raise":
            raise TrainingError(text)
        warnings.warn(text, RuntimeWarning, stacklevel=4)

    def state_dict(self) -> dict[str, Any]:
        """Return all that changes from step to step, of the inner optimizer too, as arrays by name."""
        state = {f"inner/{key}": array for key, array in self.inner.state_dict().items()}
        state |= {f"loss_scale/{field}": np.array(getattr(self.loss_scale, field)) for field in _moving(self.loss_scale)}
        state |= {"calls": array_of(self._state.calls).copy(), "stalled": np.array(self._stalled)}
        return state | {f"accumulated/{name}": array_of(self._state.sums[name]).copy() for name in sorted(self._state.summed)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state_dict` returned.

        Raises:
            TrainingError: If it is the state of another optimizer or another kind of loss scale, its scale lies outside of the
                bounds here, or it holds more accumulated calls than make a step here; nothing has changed then.
        """
        check_state(self, state)
        groups: dict[str, dict[str, Any]] = {"inner": {}, "loss_scale": {}, "accumulated": {}}
        rest: dict[str, Any] = {}
        for key, array in state.items():
            group, _, name = key.partition("/")
            groups.get(group, rest)[name if group in groups else key] = array
        fields = _moving(self.loss_scale)
        if groups["loss_scale"].keys() != fields.keys() or rest.keys() != {"calls", "stalled"}:
            raise TrainingError(
                f"{self!r} goes on from the state of one with such a loss scale: {sorted(fields)}, calls and stalled. "
                f"Received: {sorted(groups['loss_scale'])} and {sorted(rest)}"
            )
        moving: dict[str, Any] = {field: saved_number(field, groups["loss_scale"][field], kind) for field, kind in fields.items()}
        scale = dataclasses.replace(self.loss_scale, **moving)
        calls, stalled = (saved_number(name, rest[name], int) for name in ("calls", "stalled"))
        if calls >= self.accumulation_steps:
            raise TrainingError(
                f"{self!r} makes a step of every {self.accumulation_steps} calls. Received: a state after {calls}"
            )
        self._state.check_sums(groups["accumulated"])
        self.inner.load_state_dict(groups["inner"])
        self._take_over(scale)
        self._stalled = stalled
        self._state.load_sums(calls, groups["accumulated"])


class _Step(NamedTuple):
    """A step in a graph, and the names of its variables."""

    optimizer: LossScaleOptimizer
    names: frozenset[str]

    def after_run(self, applied: bool, loss: Any, diagnosis: "Diagnosis") -> None:
        """Let the optimizer look at a run."""
        self.optimizer.after_run(self.names, applied, loss, diagnosis)


def _number_of(loss: Any) -> float:
    """Return a loss as a number, 0 where there is none.

    Raises:
        TrainingError: If it is not one.
    """
    try:
        return 0.0 if loss is None else float(np.asarray(loss).item())
    except (TypeError, ValueError):
        raise TrainingError(f"A loss is one number. Received: {loss!r:.200}") from None


def _moving(scale: LossScale) -> dict[str, type[float] | type[int]]:
    """Return the names of the fields of a loss scale that are its state, and their types."""
    return {"scale": float} | ({"good_steps": int, "bad_steps": int} if isinstance(scale, DynamicLossScale) else {})


def _wide(what: str, given: Any) -> Any:
    """Return numbers as an array of float32, or of float64 where they are."""
    array = numbers_of(what, given)
    return array if array.dtype == np.float64 else array.astype(np.float32, copy=False)
