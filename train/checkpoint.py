"""Saving and going on: variables and an optimizer's state in one ``.npz`` file, written whole or not at all."""

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..graph.errors import FormatError, TrainingError
from ..graph.formats.arrays import load_arrays, packed_arrays
from ..graph.formats.files import write_bytes
from .pairs import Variable, is_variable


class Stateful(Protocol):
    """An optimizer, wrapped or not."""

    def state_dict(self) -> dict[str, Any]:
        """Return its state."""
        ...

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Go on from a state."""
        ...


def save_checkpoint(path: str | PathLike[str], variables: Iterable[Variable], optimizer: Stateful) -> None:
    """Write variables and an optimizer's state, its loss scale included, to a file.

    The file takes its name when it is complete; until then an older one stays as it was.

    Args:
        path: Where to; nothing is appended to it.
        variables: What to save, with names that differ.
        optimizer: The optimizer.

    Raises:
        TrainingError: If two variables have one name, or something is no variable or optimizer.
        OSError: If the file cannot be written.
    """
    write_bytes(Path(path), packed_arrays(saved_arrays(_checked(variables, optimizer), optimizer)))


def saved_arrays(variables: Iterable[Variable], optimizer: Stateful | None) -> dict[str, Any]:
    """Return what a file holds of variables and of an optimizer, if there is one.

    Raises:
        TrainingError: If two variables have one name.
    """
    arrays: dict[str, Any] = {}
    for variable in variables:
        key = f"variables/{variable.name}"
        if key in arrays:
            raise TrainingError(f"Variables are saved by their names. Received: {variable.name!r} twice")
        arrays[key] = np.asarray(variable.value)
    if optimizer is not None:
        arrays |= {f"optimizer/{key}": array for key, array in optimizer.state_dict().items()}
    return arrays


def load_checkpoint(path: str | PathLike[str], variables: Iterable[Variable], optimizer: Stateful) -> None:
    """Let variables and an optimizer go on from a file that :func:`save_checkpoint` wrote: bit by bit what they would have done.

    Args:
        path: The file.
        variables: The variables that were saved.
        optimizer: An optimizer made as the one that was saved.

    Raises:
        TrainingError: If the file is no checkpoint, or one of other variables or another optimizer; nothing has changed then.
        OSError: If the file cannot be read.
    """
    variables = _checked(variables, optimizer)
    arrays = _read(path)
    values, state = (
        {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
        for prefix in ("variables/", "optimizer/")
    )
    targets = {variable.name: variable for variable in variables}
    if targets.keys() != values.keys():
        raise TrainingError(
            f"Checkpoint {str(path)!r} holds the variables {sorted(values)}. Received: {sorted(targets)}, to be filled from it"
        )
    check_arrays(path, targets.values(), values)
    optimizer.load_state_dict(state)
    for name, variable in targets.items():
        variable.assign(values[name])


def _checked(variables: Any, optimizer: Any) -> list[Variable]:
    """Return variables as a list.

    Raises:
        TrainingError: If there are others among them, or the optimizer is none.
    """
    if not hasattr(optimizer, "state_dict") or not hasattr(optimizer, "load_state_dict"):
        raise TrainingError(f"A checkpoint has an optimizer of ampgraph.train. Received: {optimizer!r:.200}")
    found: list[Any] = list(variables) if isinstance(variables, Iterable) and not isinstance(variables, Mapping) else [variables]
    for variable in found:
        if not is_variable(variable):
            raise TrainingError(f"Checkpoints hold a list of variables, such as model.variables. Received: {variable!r:.200}")
    return found


def check_arrays(path: str | PathLike[str], variables: Iterable[Variable], arrays: Mapping[str, Any]) -> None:
    """Refuse arrays of a file, by the names of variables, that are not of their shapes and dtypes.

    Raises:
        TrainingError: If one is not.
    """
    for variable in variables:
        found, wanted = arrays[variable.name], variable.value
        if found.shape != wanted.shape or found.dtype != wanted.dtype:
            raise TrainingError(
                f"Variable {variable.name!r} is {wanted.dtype}{list(wanted.shape)}, but {found.dtype}{list(found.shape)} in "
                f"{str(path)!r}."
            )


def _read(path: str | PathLike[str]) -> dict[str, Any]:
    """Return the arrays of a file; objects, which could run code, are refused."""
    try:
        found = load_arrays(path)
    except FormatError as error:
        raise TrainingError(f"{str(path)!r} is no checkpoint: {error}") from None
    arrays: dict[str, Any] = found if isinstance(found, dict) else {}
    if not arrays:
        raise TrainingError(f"{str(path)!r} is no checkpoint: it does not hold arrays by name")
    return arrays
