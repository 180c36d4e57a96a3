"""What training steps change, in variables: steps on the host and steps that run as graphs go on from each other's."""

from collections.abc import Mapping
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
        self.global_step = Variable(np.int64(0), f"{name}/global_step")
        self.learning_rate = Variable(np.float32(0), f"{name}/learning_rate")
        self.slots: dict[str, dict[str, Variable]] = {}

    def slots_of(self, name: str, shape: tuple[int, ...], dtype: Any) -> list[Variable]:
        """Return the slots of a variable, new ones where it has none yet.

        Raises:
            TrainingError: If they are for a variable of another shape or dtype.
        """
        found = self.slots.get(name)
        if found is None:
            found = self.slots[name] = {
                slot: Variable(np.full(shape, start, dtype), as_name(f"{self.name}/{name}/{slot}"))
                for slot, start in self._starts.items()
            }
        for slot, variable in found.items():
            if variable.shape != shape or variable.dtype != dtype:
                raise TrainingError(
                    f"Slot {slot!r} of variable {name!r} is {variable.dtype}{list(variable.shape)}, but the variable is "
                    f"{dtype}{list(shape)}: it was saved with another variable of this name."
                )
        return list(found.values())

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
        self.scale = Variable(np.float32(scale), "loss_scale/scale")
        self.good_steps = Variable(np.int64(0), "loss_scale/good_steps")
        self.bad_steps = Variable(np.int64(0), "loss_scale/bad_steps")
        self.calls = Variable(np.int64(0), "accumulated/calls")
        self.sums: dict[str, Variable] = {}
        self.summed: set[str] = set()

    def sum_of(self, name: str, shape: tuple[int, ...], dtype: Any) -> Variable:
        """Return where gradients of a variable are added up."""
        found = self.sums.get(name)
        if found is None or found.shape != shape or found.dtype != dtype:
            found = self.sums[name] = Variable(np.zeros(shape, dtype), as_name(f"accumulated/{name}"))
        return found

    def take(self) -> dict[str, Any]:
        """Return the sums, and begin anew."""
        found = {name: array_of(self.sums[name]) for name in self.sums if name in self.summed}
        self.load_sums(0, {})
        return found

    def load_sums(self, calls: int, arrays: Mapping[str, Any]) -> None:
        """Go on from saved sums."""
        set_array(self.calls, np.array(calls))
        for name, variable in self.sums.items():
            if name not in arrays:
                set_array(variable, np.zeros(variable.shape, variable.dtype))
        for name, array in arrays.items():
            load(self.sums, name, np.array(array), as_name(f"accumulated/{name}"))
        self.summed = set(arrays)


def load(variables: dict[str, Variable], key: str, array: Any, name: str) -> None:
    """Let a variable hold a saved array; one of another shape or dtype, or none, is replaced."""
    found = variables.get(key)
    if found is None or found.shape != array.shape or found.dtype != array.dtype:
        variables[key] = Variable(array, name)
    else:
        set_array(found, array)
