"""Gradients in pairs with the variables that they are for, on the host: what optimizers are given is looked at here."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from ..graph.errors import TrainingError


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


#: Gradients, None for those that there are not, and the variables they belong to.
GradsAndVars = Iterable[tuple[Any, Variable]]


def named(grads_and_vars: GradsAndVars) -> dict[str, tuple[Any, Variable]]:
    """Return pairs by the names of their variables, gradients as arrays or None.

    Raises:
        TrainingError: If something is no such pair, two variables have one name, or a gradient does not have its variable's shape.
    """
    found: dict[str, tuple[Any, Variable]] = {}
    for gradient, variable in pairs_of(grads_and_vars):
        if not is_variable(variable):
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


def is_variable(given: Any) -> bool:
    """Whether something has what :class:`Variable` has."""
    return all(hasattr(given, attribute) for attribute in ("name", "value", "assign"))


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
