"""Optimizers: they hold slots, count steps and apply gradients to variables, on the host or as nodes of a function that is traced.

What they compute is a row of :data:`~ampgraph.kernels.update_rules.UPDATE_RULES`; names and defaults are those of Keras 3.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ..graph.errors import TrainingError
from ..graph.tracing.context import active
from ..graph.tracing.variable import array_of, set_array
from ..kernels.apply_step import Applied, Update, apply_step
from ..kernels.update_rules import UPDATE_RULES, UpdateRule
from .state import ScaleVariables, StepVariables, check_state, saved_number

if TYPE_CHECKING:
    from ..rewrite import Policy
    from .schedules import Schedule


class Variable(Protocol):
    """What an optimizer changes."""

    @property
    def name(self) -> str:
        """What tells it from the other variables."""
        ...

    @property
    def value(self) -> Any:
        """The array it holds, float32 or float64."""
        ...

    def assign(self, value: Any, /) -> object:
        """Let it hold another array of the same shape and dtype."""
        ...


class StepResult(NamedTuple):
    """What a step did.

    Inside of a function that is traced these are symbolic arrays; what that function returns when it is called holds NumPy's.

    Attributes:
        loss: The loss that the caller gave, not scaled, or None.
        applied: Whether the variables changed.
        loss_scale: The loss scale of the next step.
        global_step: How many steps were applied so far, this one included.
        grad_norm: Norm of all gradients together, neither scaled nor clipped; infinite or NaN where a gradient is not finite, NaN
            where they were only accumulated.
    """

    loss: Any
    applied: Any
    loss_scale: Any
    global_step: Any
    grad_norm: Any

    def __repr__(self) -> str:
        """Return it with numbers in place of NumPy's arrays of one number."""
        return f"StepResult({', '.join(f'{name}={value!s}' for name, value in self._asdict().items())})"


#: Numbers that say how much of an old mean stays.
_PARTS = ("beta_1", "beta_2", "rho")

#: Gradients, None for those that there are not, and the variables they belong to.
GradsAndVars = Iterable[tuple[Any, Variable]]


class Optimizer:
    """Base class: everything but the formula.

    Args:
        rule: The formula.
        numbers: Its numbers by name.
        learning_rate: A number, or a function of the number of steps applied so far.
        weight_decay: What part of a variable, times the learning rate, is taken from it before each update.
        clipnorm: Longest gradient of a variable: longer ones are shortened to this norm.
        clipvalue: Largest magnitude of an element of a gradient.
        global_clipnorm: Longest that all gradients may be together.

    Attributes:
        update: How gradients change variables.
        state: What steps change, in variables.
        owners: The variables of models that it has trained, by name.
        policy: None: graphs that this optimizer differentiates are not rewritten.

    Raises:
        TrainingError: If a number makes no sense, or gradients are to be clipped in two ways.
    """

    def __init__(
        self,
        rule: UpdateRule,
        numbers: Mapping[str, float],
        learning_rate: "float | Schedule",
        *,
        weight_decay: float = 0.0,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
    ) -> None:
        bounds = {"norm": clipnorm, "value": clipvalue, "global_norm": global_clipnorm}
        clips = {clip: bound for clip, bound in bounds.items() if bound is not None}
        if len(clips) > 1:
            raise TrainingError(f"Gradients are clipped by value, by norm or by global norm. Received: {clips}")
        for name, number in {**numbers, "weight_decay": weight_decay}.items():
            _check_number(name, number)
            if name in _PARTS and number >= 1:
                raise TrainingError(f"The {name} is a number from 0 up to 1, which is not included. Received: {number!r}")
        for clip, bound in clips.items():
            _check_number(f"bound for the {clip}", bound, above=0)
        clip, bound = next(iter(clips.items()), ("", 0.0))
        self.update = Update(rule, dict(numbers), weight_decay, clip, bound, skip_nonfinite=False)
        self.state = StepVariables(type(self).__name__.lower(), rule.slots)
        self.learning_rate = learning_rate
        self.policy: Policy | None = None
        self.owners: dict[str, Variable] = {}
        self._unscaled = ScaleVariables(1.0)

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={number:g}" for name, number in self.update.numbers.items())
        return f"{type(self).__name__}({numbers})"

    @property
    def global_step(self) -> int:
        """Number of steps applied."""
        return int(array_of(self.state.global_step))

    @property
    def slots(self) -> dict[str, dict[str, Any]]:
        """The slots of each variable, by its name and theirs: arrays of its shape and dtype."""
        return {name: {slot: variable.value for slot, variable in row.items()} for name, row in self.state.slots.items()}

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next step; it can be set to a number or a schedule."""
        rate = self._rate
        if not callable(rate):
            return rate
        number = rate(self.global_step)
        if isinstance(number, np.generic):
            number = number.item()
        _check_number("learning rate that the schedule returns", number)
        return number

    @learning_rate.setter
    def learning_rate(self, rate: "float | Schedule") -> None:
        if not callable(rate):
            _check_number("learning rate", rate)
            set_array(self.state.learning_rate, np.array(rate, np.float32))
        self._rate: float | Callable[[int], float] = rate

    def minimize(self, loss: Any, variables: Any = None) -> StepResult:
        """Differentiate a loss and apply the gradients, in a function that is traced.

        Args:
            loss: A symbolic array of one number.
            variables: What to change: :class:`~ampgraph.Variable` objects, in whatever containers. All trainable ones of floats that
                the function has used so far when None; those that the loss does not depend on stay as they are.

        Raises:
            TraceError: If no function is being traced.
            TrainingError: If the loss is not one number, or depends on no variable.
        """
        return self.apply_gradients(self.compute_gradients(loss, variables), loss)

    def compute_gradients(self, loss: Any, variables: Any = None) -> list[tuple[Any, Any]]:
        """Return the gradients of a loss and the variables, as pairs: see :meth:`minimize`. None where it depends on one not."""
        from .graph_step import compute_gradients

        return compute_gradients(self, loss, variables, None)

    def apply_gradients(self, grads_and_vars: GradsAndVars, loss: Any = None) -> StepResult:
        """Apply gradients, whatever they are; in a function that is traced, when its graph runs.

        Args:
            grads_and_vars: Pairs; variables without a gradient (None) stay as they are.
            loss: For the result.

        Raises:
            TrainingError: If there is no gradient at all, one does not have its variable's shape, or two variables have one name.
        """
        if active() is not None:
            from .graph_step import add_step, check_pairs

            pairs = with_gradients(check_pairs(grads_and_vars))
            return add_step(self, self, self.update, None, self.state, self._unscaled, pairs, loss, scaled=False)
        done = self.apply(with_gradients(named(grads_and_vars)), skip_nonfinite=False)
        return StepResult(loss, True, 1.0, self.global_step, done.grad_norm)

    def before_run(self) -> None:
        """Let the learning rate be known to a graph that is going to run."""
        if callable(self._rate):
            set_array(self.state.learning_rate, np.array(self.learning_rate, np.float32))

    def after_run(self, applied: bool, loss: Any, diagnose: Any) -> None:
        """Look at a run: nothing is to be said."""

    def apply(self, pairs: list[tuple[Any, Variable]], *, skip_nonfinite: bool) -> Applied:
        """Apply gradients that are checked, or drop them all if one is not finite and ``skip_nonfinite`` is true."""
        values = [variable.value for _, variable in pairs]
        rows = [
            self.state.slots_of(variable.name, value.shape, value.dtype)
            for (_, variable), value in zip(pairs, values, strict=True)
        ]
        step = self.global_step + 1
        with np.errstate(all="ignore"):
            done = apply_step(
                np,
                self.update._replace(skip_nonfinite=skip_nonfinite),
                values,
                [[array_of(slot) for slot in row] for row in rows],
                [gradient for gradient, _ in pairs],
                step=step,
                rate=float(self.learning_rate),
            )
        if done.applied:
            set_array(self.state.global_step, np.array(step))
            for (_, variable), value, row, slots in zip(pairs, done.variables, rows, done.slots, strict=True):
                variable.assign(value)
                for slot, array in zip(row, slots, strict=True):
                    set_array(slot, array)
        return done

    def state_dict(self) -> dict[str, Any]:
        """Return all that changes from step to step, as arrays by name: copies, which later steps leave alone."""
        state = {"rule": np.array(self.update.rule.name), "global_step": np.array(self.global_step)}
        if not callable(self._rate):
            state["learning_rate"] = np.array(self._rate, np.float64)
        for name, slots in self.slots.items():
            state |= {f"slots/{name}/{slot}": array.copy() for slot, array in slots.items()}
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state_dict` returned. The learning rate is taken over unless it follows a schedule here.

        Raises:
            TrainingError: If it is the state of another optimizer; nothing has changed then.
        """
        check_state(self, state)
        rule = self.update.rule
        saved = str(state.get("rule", "of no name"))
        if saved != rule.name or "global_step" not in state:
            raise TrainingError(f"{self!r} goes on from a state of rule {rule.name!r}. Received: a state of rule {saved!r}")
        slots: dict[str, dict[str, Any]] = {}
        for key, array in state.items():
            if key.startswith("slots/"):
                name, _, slot = key.removeprefix("slots/").rpartition("/")
                slots.setdefault(name, {})[slot] = np.array(array)
            elif key not in ("rule", "global_step", "learning_rate"):
                raise TrainingError(f"{self!r} has no state of this name. Received: {key!r}")
        self.state.check_slots(slots)
        step = saved_number("global step", state["global_step"], int)
        if not callable(self._rate) and "learning_rate" in state:
            self.learning_rate = saved_number("learning rate", state["learning_rate"], float)
        set_array(self.state.global_step, np.array(step))
        self.state.load_slots(slots)
        self.owners = {}


def named(grads_and_vars: GradsAndVars) -> dict[str, tuple[Any, Variable]]:
    """Return pairs by the names of their variables, gradients as arrays or None.

    Raises:
        TrainingError: If something is no such pair, two variables have one name, or a gradient does not have its variable's shape.
    """
    found: dict[str, tuple[Any, Variable]] = {}
    for gradient, variable in pairs_of(grads_and_vars):
        if not all(hasattr(variable, attribute) for attribute in ("name", "value", "assign")):
            raise TrainingError(f"A variable has a name, a value and a method assign. Received: {variable!r:.200}")
        name, value = variable.name, variable.value
        if name in found:
            raise TrainingError(f"Variables are told apart by their names, and each has one gradient. Received: {name!r} twice")
        if getattr(value, "dtype", None) not in (np.float32, np.float64):
            raise TrainingError(f"Variable {name!r} must hold a float32 or float64 array. Received: {value!r}")
        array = None if gradient is None else numbers_of(f"The gradient of {name!r}", gradient)
        if array is not None and array.shape != value.shape:
            raise TrainingError(
                f"The gradient of {name!r} must have its shape, {list(value.shape)}. Received: a gradient of shape {list(array.shape)}"
            )
        found[name] = (array, variable)
    return found


def pairs_of(grads_and_vars: Any) -> list[tuple[Any, Any]]:
    """Return pairs as a list.

    Raises:
        TrainingError: If they are none.
    """
    try:
        return [(gradient, variable) for gradient, variable in grads_and_vars]
    except (TypeError, ValueError) as error:
        raise TrainingError(
            f"Gradients come in pairs with their variables: [(gradient, variable), …]. Received: {grads_and_vars!r:.200}"
        ) from error


def numbers_of(what: str, given: Any) -> Any:
    """Return an array of real numbers, of whatever dtype.

    Raises:
        TrainingError: If it is none.
    """
    array = np.asarray(given)
    if array.dtype.kind not in "fiubV":
        raise TrainingError(f"{what} is of numbers. Received: {given!r:.200}")
    return array


def with_gradients(pairs: Mapping[str, tuple[Any, Variable]]) -> list[tuple[Any, Variable]]:
    """Return the pairs that have a gradient.

    Raises:
        TrainingError: If none has.
    """
    found = [pair for pair in pairs.values() if pair[0] is not None]
    if not found:
        names = ", ".join(map(repr, pairs)) or "no variable at all"
        raise TrainingError(f"No variable has a gradient: the loss does not depend on them. Received: {names}")
    return found


def _check_number(name: str, number: Any, *, above: float = -1) -> None:
    if (
        isinstance(number, bool)
        or not isinstance(number, int | float)
        or not max(above, 0) <= number < math.inf
        or number == above
    ):
        raise TrainingError(
            f"The {name} is a finite number, {'more than 0' if above == 0 else 'not negative'}. Received: {number!r}"
        )


class SGD(Optimizer):
    """Gradient descent, with ``momentum`` where it is not 0, which looks one step ahead if ``nesterov`` is true."""

    def __init__(
        self, learning_rate: "float | Schedule" = 0.01, momentum: float = 0.0, nesterov: bool = False, **options: Any
    ) -> None:
        numbers = {"momentum": momentum} if momentum else {}
        rule = "sgd" if not numbers else "nesterov" if nesterov else "momentum"
        super().__init__(UPDATE_RULES[rule], numbers, learning_rate, **options)


class Adam(Optimizer):
    """The running mean of gradients, divided by the root of that of their squares."""

    def __init__(
        self,
        learning_rate: "float | Schedule" = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        **options: Any,
    ) -> None:
        numbers = {"beta_1": beta_1, "beta_2": beta_2, "epsilon": epsilon}
        super().__init__(UPDATE_RULES["adam"], numbers, learning_rate, **options)


class AdamW(Adam):
    """Adam with weight decay."""

    def __init__(self, learning_rate: "float | Schedule" = 0.001, weight_decay: float = 0.004, **options: Any) -> None:
        super().__init__(learning_rate, weight_decay=weight_decay, **options)


class RMSprop(Optimizer):
    """Gradients divided by the root of the running mean of their squares, with ``momentum`` where it is not 0."""

    def __init__(
        self,
        learning_rate: "float | Schedule" = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-7,
        **options: Any,
    ) -> None:
        numbers = {"rho": rho, "epsilon": epsilon} | ({"momentum": momentum} if momentum else {})
        rule = UPDATE_RULES["rmsprop_momentum" if momentum else "rmsprop"]
        super().__init__(rule, numbers, learning_rate, **options)


class Adagrad(Optimizer):
    """Gradients divided by the root of the sum of their squares."""

    def __init__(
        self,
        learning_rate: "float | Schedule" = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
        **options: Any,
    ) -> None:
        _check_number("initial accumulator value", initial_accumulator_value)
        rule = UPDATE_RULES["adagrad"]._replace(slots={"accumulator": initial_accumulator_value})
        super().__init__(rule, {"epsilon": epsilon}, learning_rate, **options)


class LAMB(Optimizer):
    """Adam's step at the length of the variable."""

    def __init__(
        self,
        learning_rate: "float | Schedule" = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        **options: Any,
    ) -> None:
        numbers = {"beta_1": beta_1, "beta_2": beta_2, "epsilon": epsilon}
        super().__init__(UPDATE_RULES["lamb"], numbers, learning_rate, **options)
