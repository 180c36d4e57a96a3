"""The optimizers by name.

What they compute is a row of :data:`~ampgraph.kernels.update_rules.UPDATE_RULES`; names and defaults are those of Keras 3.
"""

from typing import TYPE_CHECKING, Any

from ..graph.errors import TrainingError, did_you_mean
from ..kernels.update_rules import UPDATE_RULES
from .loss_scale_optimizer import LossScaleOptimizer
from .optimizer import Optimizer, check_number

if TYPE_CHECKING:
    from .schedules import Schedule


class SGD(Optimizer):
    """Gradient descent, with ``momentum`` where it is not 0, which looks one step ahead if ``nesterov`` is true."""

    def __init__(
        self, learning_rate: "float | Schedule" = 0.01, momentum: float = 0.0, nesterov: bool = False, **options: Any
    ) -> None:
        numbers = {"momentum": momentum} if momentum else {}
        rule = "sgd" if not numbers else "nesterov" if nesterov else "momentum"
        super().__init__(UPDATE_RULES[rule], numbers, learning_rate, **options)


class _Moments(Optimizer):
    """Base class of what keeps the running means of gradients and of their squares."""

    _rule: str

    def __init__(
        self,
        learning_rate: "float | Schedule" = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        **options: Any,
    ) -> None:
        numbers = {"beta_1": beta_1, "beta_2": beta_2, "epsilon": epsilon}
        super().__init__(UPDATE_RULES[self._rule], numbers, learning_rate, **options)


class Adam(_Moments):
    """The running mean of gradients, divided by the root of that of their squares."""

    _rule = "adam"


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
        check_number("initial accumulator value", initial_accumulator_value)
        rule = UPDATE_RULES["adagrad"]._replace(slots={"accumulator": initial_accumulator_value})
        super().__init__(rule, {"epsilon": epsilon}, learning_rate, **options)


class LAMB(_Moments):
    """Adam's step at the length of the variable."""

    _rule = "lamb"


#: The optimizers by the names of their classes.
OPTIMIZERS: dict[str, type[Any]] = {kind.__name__: kind for kind in (SGD, Adam, AdamW, RMSprop, Adagrad, LAMB)}


def find_optimizer(given: Any) -> Optimizer | LossScaleOptimizer:
    """Return the optimizer that a user means by a name, in lower case or not, or an optimizer.

    Raises:
        TrainingError: If it is none.
    """
    if isinstance(given, Optimizer | LossScaleOptimizer):
        return given
    known = {name.lower(): kind for name, kind in OPTIMIZERS.items()}
    if isinstance(given, str) and given.lower() in known:
        return known[given.lower()]()  # type: ignore[no-any-return]
    hint = did_you_mean(given.lower(), known) if isinstance(given, str) else ""
    raise TrainingError(f"An optimizer is one of ampgraph.train, or one of {', '.join(known)}.{hint} Received: {given!r}")
