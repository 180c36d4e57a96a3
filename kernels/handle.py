"""Names of TensorFlow's variables: what resources and references are while a program runs."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..graph.errors import KernelError


class Handle(NamedTuple):
    """What names a variable.

    Attributes:
        name: Its name.
        container: Where names are counted, mostly "".
    """

    name: str
    container: str = ""

    @property
    def kind(self) -> str:
        """What it is, for messages."""
        return "a variable"


def held(state: Mapping[Any, Any], handle: Handle) -> Any:
    """Return what a variable holds.

    Args:
        state: What every variable holds.
        handle: The variable.

    Raises:
        KernelError: If nothing was assigned to it.
    """
    found = state.get(handle)
    if found is None:
        raise KernelError(f"Variable {handle.name!r} holds nothing: it must be assigned before it is read.")
    return found
