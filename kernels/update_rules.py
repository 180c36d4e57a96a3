"""The update rules of optimizers, one row each: what a step makes of a variable, its gradient and its slots.

The formulas are those of Keras 3, elementwise but for LAMB's two norms. They are written with operators and with functions of the
array module that they are handed. Arrays are never written over: a row returns new ones.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class UpdateRule(NamedTuple):
    """A row of the table.

    Attributes:
        name: The rule's name, the key of :data:`UPDATE_RULES`.
        update: ``update(xp, step, rate, variable, gradient, *slots, **numbers)`` returns the new variable and new slots.
            ``step`` counts from 1 and ``rate`` is the learning rate, of no axes and the variable's dtype; gradient and slots have its
            shape and dtype. All of them may be symbolic arrays of a function that is being traced.
        slots: Names of the slots, in order, and what each is filled with at first.
        numbers: Names of the other numbers of the formula and their defaults.
    """

    name: str
    update: Callable[..., tuple[Any, ...]]
    slots: Mapping[str, float] = {}
    numbers: Mapping[str, float] = {}


def sgd(xp: Any, step: Any, rate: Any, variable: Any, gradient: Any) -> tuple[Any, ...]:
    """Go against the gradient."""
    return (variable - gradient * rate,)


def momentum(xp: Any, step: Any, rate: Any, variable: Any, gradient: Any, velocity: Any, *, momentum: float) -> tuple[Any, ...]:
    """Add up steps that fade."""
    velocity = velocity * momentum - gradient * rate
    return variable + velocity, velocity


def nesterov(xp: Any, step: Any, rate: Any, variable: Any, gradient: Any, velocity: Any, *, momentum: float) -> tuple[Any, ...]:
    """Add up steps that fade, and look one step ahead."""
    velocity = velocity * momentum - gradient * rate
    return variable + (velocity * momentum - gradient * rate), velocity


def adam(
    xp: Any,
    step: Any,
    rate: Any,
    variable: Any,
    gradient: Any,
    mean: Any,
    square: Any,
    *,
    beta_1: float,
    beta_2: float,
    epsilon: float,
) -> tuple[Any, ...]:
    """Divide the running mean of gradients by the root of that of their squares."""
    mean, square, rest_1, rest_2 = _moments(step, gradient, mean, square, beta_1, beta_2)
    alpha = rate * xp.sqrt(rest_2) / rest_1
    return variable - mean * alpha / (xp.sqrt(square) + epsilon), mean, square


def _moments(step: Any, gradient: Any, mean: Any, square: Any, beta_1: float, beta_2: float) -> tuple[Any, ...]:
    """Return the running means of gradients and of their squares, and what part of each the zeros it began with do not make up."""
    number = gradient.dtype.type  # the powers are rounded to the dtype, as Keras does
    mean = mean + (gradient - mean) * (1 - beta_1)
    square = square + (gradient * gradient - square) * (1 - beta_2)
    return mean, square, 1 - number(beta_1) ** step, 1 - number(beta_2) ** step


def rmsprop(
    xp: Any, step: Any, rate: Any, variable: Any, gradient: Any, square: Any, *, rho: float, epsilon: float
) -> tuple[Any, ...]:
    """Divide by the root of the running mean of squared gradients."""
    square = square * rho + gradient * gradient * (1 - rho)
    return variable - gradient * rate / xp.sqrt(square + epsilon), square


def rmsprop_momentum(
    xp: Any,
    step: Any,
    rate: Any,
    variable: Any,
    gradient: Any,
    square: Any,
    steps: Any,
    *,
    rho: float,
    momentum: float,
    epsilon: float,
) -> tuple[Any, ...]:
    """Divide by the root of the running mean of squared gradients, and add up steps that fade."""
    square = square * rho + gradient * gradient * (1 - rho)
    steps = steps * momentum + gradient * rate / xp.sqrt(square + epsilon)
    return variable - steps, square, steps


def adagrad(xp: Any, step: Any, rate: Any, variable: Any, gradient: Any, squares: Any, *, epsilon: float) -> tuple[Any, ...]:
    """Divide by the root of the sum of squared gradients."""
    squares = squares + gradient * gradient
    return variable - gradient * rate / xp.sqrt(squares + epsilon), squares


def lamb(
    xp: Any,
    step: Any,
    rate: Any,
    variable: Any,
    gradient: Any,
    mean: Any,
    square: Any,
    *,
    beta_1: float,
    beta_2: float,
    epsilon: float,
) -> tuple[Any, ...]:
    """Take Adam's step, as long as the variable is: by the ratio of their norms, or 1 where one of them is 0."""
    mean, square, rest_1, rest_2 = _moments(step, gradient, mean, square, beta_1, beta_2)
    update = mean / rest_1 / (xp.sqrt(square / rest_2) + epsilon)
    length, reach = xp.sqrt(xp.sum(variable * variable)), xp.sqrt(xp.sum(update * update))
    ratio = xp.where((length > 0) & (reach > 0), length / xp.where(reach > 0, reach, 1), 1).astype(variable.dtype)
    return variable - ratio * rate * update, mean, square


def _rules(*rules: UpdateRule) -> dict[str, UpdateRule]:
    return {rule.name: rule for rule in rules}


_ADAM = {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7}

#: Every rule by its name.
UPDATE_RULES: Mapping[str, UpdateRule] = _rules(
    UpdateRule("sgd", sgd),
    UpdateRule("momentum", momentum, {"momentum": 0.0}, {"momentum": 0.9}),
    UpdateRule("nesterov", nesterov, {"momentum": 0.0}, {"momentum": 0.9}),
    UpdateRule("adam", adam, {"momentum": 0.0, "velocity": 0.0}, _ADAM),
    UpdateRule("rmsprop", rmsprop, {"velocity": 0.0}, {"rho": 0.9, "epsilon": 1e-7}),
    UpdateRule(
        "rmsprop_momentum",
        rmsprop_momentum,
        {"velocity": 0.0, "momentum": 0.0},
        {"rho": 0.9, "momentum": 0.9, "epsilon": 1e-7},
    ),
    UpdateRule("adagrad", adagrad, {"accumulator": 0.1}, {"epsilon": 1e-7}),
    UpdateRule("lamb", lamb, {"momentum": 0.0, "velocity": 0.0}, _ADAM),
)
