"""What training steps change, in variables: steps on the host and steps that run as graphs go on from each other's."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..graph.errors import TrainingError
from ..graph.tracing.structure import as_name
from ..graph.tracing.variable import Variable, array_of, set_array


class StepVariables:
    """What an optimizer changes besides the variables it is for.

    Args:
        name: Stands before the names of the variables.
        starts: The slots of the optimizer's rule, and what each is filled with at first.

    Attributes:
        global_step: Number of steps applied, int64.
        learning_rate: The learning rate of the next step that runs as a graph, float32.
        slots: The slots of each variable that has any, by its name and theirs.
    """

    def __init__(self, name: str, starts: Mapping[str, float]) -> None:
        self.name = name
        self._starts = starts
        self.global_step = _own(np.int64(0), f"{name}/global_step")
        self.learning_rate = _own(np.float32(0), f"{name}/learning_rate")
        self.slots: dict[str, dict[str, Variable]] = {}

    def slots_of(self, name: str, shape: tuple[int, ...], dtype: Any) -> list[Variable]:
        """Return the slots of a variable, new ones where it has none yet.

        Raises:
            TrainingError: If they are for a variable of another shape or dtype.
        """
        found = self.slots.get(name)
        if found is None:
            found = self.slots[name] = {
                slot: _own(np.full(shape, start, dtype), as_name(f"{self.name}/{name}/{slot}"))
                for slot, start in self._starts.items()
            }
        for slot, variable in found.items():
            if variable.shape != shape or variable.dtype != dtype:
                raise TrainingError(
                    f"Slot {slot!r} of variable {name!r} is {variable.dtype}{list(variable.shape)}, but the variable is "
                    f"{dtype}{list(shape)}: it was saved with another variable of this name."
                )
        return list(found.values())

    def check_slots(self, arrays: Mapping[str, Mapping[str, Any]]) -> None:
        """Refuse saved slots that are none.

        Raises:
            TrainingError: If a variable has others, or one is no array of floats, or not of the shape and dtype that it has here.
        """
        for name, found in arrays.items():
            if found.keys() != self._starts.keys():
                raise TrainingError(
                    f"The slots of a variable are {list(self._starts)} here. Received: {sorted(found)} for {name!r}"
                )
            for slot, array in found.items():
                check_floats(f"Slot {slot!r} of variable {name!r}", array, self.slots.get(name, {}).get(slot))

    def load_slots(self, arrays: Mapping[str, Mapping[str, Any]]) -> None:
        """Go on from saved slots; those that are not among them start anew."""
        for name, slots in self.slots.items():
            if name not in arrays:
                for slot, variable in slots.items():
                    set_array(variable, np.full(variable.shape, self._starts[slot], variable.dtype))
        for name, found in arrays.items():
            known = self.slots.setdefault(name, {})
            for slot in self._starts:
                load(known, slot, np.array(found[slot]), as_name(f"{self.name}/{name}/{slot}"))


class ScaleVariables:
    """What an optimizer that scales its loss changes besides: the state of the loss scale, and gradients it accumulates.

    Attributes:
        scale, good_steps, bad_steps: See :class:`~ampgraph.kernels.loss_scaling.ScaleState`; float32 and int64.
        calls: How many calls were accumulated since the last step, int64.
        sums: The sum of their gradients for each variable, by its name.
        summed: The variables that had a gradient in these calls.
    """

    def __init__(self, scale: float) -> None:
        self.scale = _own(np.float32(scale), "loss_scale/scale")
        self.good_steps = _own(np.int64(0), "loss_scale/good_steps")
        self.bad_steps = _own(np.int64(0), "loss_scale/bad_steps")
        self.calls = _own(np.int64(0), "accumulated/calls")
        self.sums: dict[str, Variable] = {}
        self.summed: set[str] = set()

    def sum_of(self, name: str, shape: tuple[int, ...], dtype: Any) -> Variable:
        """Return where gradients of a variable are added up."""
        found = self.sums.get(name)
        if found is None or found.shape != shape or found.dtype != dtype:
            found = self.sums[name] = _own(np.zeros(shape, dtype), as_name(f"accumulated/{name}"))
        return found

    def take(self) -> dict[str, Any]:
        """Return the sums, and begin anew."""
        found = {name: array_of(self.sums[name]) for name in self.sums if name in self.summed}
        self.load_sums(0, {})
        return found

    def ran(self, names: frozenset[str]) -> bool:
        """Take note of a run of a graph that added gradients of variables up; return whether more is to come before the step.

        Raises:
            TrainingError: If the step was made, and gradients of other variables are left over: they are dropped.
        """
        if int(array_of(self.calls)):
            self.summed |= names
            return True
        self.summed = set()
        left = [name for name in self.sums.keys() - names if array_of(self.sums[name]).any()]
        if left:
            self.load_sums(0, {})
            raise not_all_named(left)
        return False

    def check_sums(self, arrays: Mapping[str, Any]) -> None:
        """Refuse saved sums that are no arrays of floats, or not of the shape and dtype that they have here."""
        for name, array in arrays.items():
            check_floats(f"The accumulated gradient of {name!r}", array, self.sums.get(name))

    def load_sums(self, calls: int, arrays: Mapping[str, Any]) -> None:
        """Go on from saved sums."""
        set_array(self.calls, np.array(calls))
        for name, variable in self.sums.items():
            if name not in arrays:
                set_array(variable, np.zeros(variable.shape, variable.dtype))
        for name, array in arrays.items():
            load(self.sums, name, np.array(array), as_name(f"accumulated/{name}"))
        self.summed = set(arrays)


def _own(value: Any, name: str) -> Variable:
    """Return a variable that is no business of any optimizer but the one that makes it."""
    return Variable(value, name, trainable=False)


def load(variables: dict[str, Variable], key: str, array: Any, name: str) -> None:
    """Let a variable hold a saved array; one that there is not yet is made."""
    found = variables.get(key)
    if found is None:
        variables[key] = _own(array, name)
    else:
        set_array(found, array)


def check_state(owner: Any, state: Any) -> None:
    """Refuse what is no mapping from names to arrays.

    Raises:
        TrainingError: If it is none.
    """
    if not isinstance(state, Mapping) or any(not isinstance(key, str) for key in state):
        raise TrainingError(f"{owner!r} goes on from arrays by name, as state_dict() returns them. Received: {state!r:.200}")


def check_floats(what: str, array: Any, known: Variable | None) -> None:
    """Refuse a saved array that is not of the shape and dtype of a variable, or of floats if that is not known.

    Raises:
        TrainingError: If it is not.
    """
    array = np.asarray(array)
    fits = array.dtype in (np.float32, np.float64) if known is None else (known.shape, known.dtype) == (array.shape, array.dtype)
    if not fits:
        wanted = "of float32 or float64" if known is None else f"{known.dtype}{list(known.shape)}"
        raise TrainingError(f"{what} is {wanted} here. Received: {array.dtype}{list(array.shape)}")


def saved_number(name: str, given: Any, kind: type[Any]) -> Any:
    """Return a saved number: a float, or an integer that counts something.

    Raises:
        TrainingError: If it is none.
    """
    array = np.asarray(given)
    if array.shape or array.dtype.kind not in ("iu" if kind is int else "f") or (kind is int and not 0 <= array < 2**63):
        wanted = "an integer that is not negative" if kind is int else "a number"
        raise TrainingError(f"The saved {name} is {wanted}. Received: {given!r:.200}")
    return kind(array)


def not_all_named(missing: Iterable[str]) -> TrainingError:
    """Return the error for gradients that were accumulated, and have no part in the step."""
    return TrainingError(f"Every call that makes a step names all variables with gradients. Received: none for {sorted(missing)}")
