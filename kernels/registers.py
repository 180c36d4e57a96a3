"""The registers of a plan while it is made: which value is where, and which of them hold constants."""

from collections.abc import Callable, Iterable
from typing import Any

from ..graph.graph import Value
from .values import widened


class Registers:
    """Numbers of registers.

    Args:
        template: What registers hold when a run begins; new ones are appended.

    Attributes:
        constants: The registers that hold constants.
    """

    def __init__(self, template: list[Any]) -> None:
        self.constants: set[int] = set()
        self._template = template
        self._places: dict[Value, int] = {}
        self._widths: dict[int, int] = {}

    def __contains__(self, value: Value) -> bool:
        return value in self._places

    def new(self) -> int:
        """Return another register."""
        self._template.append(None)
        return len(self._template) - 1

    def add(self, value: Value) -> int:
        """Return a new register for a value."""
        number = self._places[value] = self.new()
        return number

    def keep(self, value: Value, array: Any) -> None:
        """Add a register for a value that is a constant."""
        number = self.add(value)
        self._template[number] = array
        self.constants.add(number)

    def of(self, values: Iterable[Value | None]) -> list[int]:
        """Return where values are, -1 for None."""
        return [-1 if value is None else self._places[value] for value in values]

    def constant(self, number: int) -> Any:
        """Return the constant in a register; None for -1."""
        return self._template[number] if number >= 0 else None

    def widen(self, number: int, convert: Callable[[Any], Any]) -> int:
        """Return the register of a constant in the dtype that kernels compute in: converted here, once, for all of them.

        Args:
            number: A register, whatever it holds.
            convert: Makes a new array one that the device holds.
        """
        if number not in self.constants:
            return number
        if number not in self._widths:
            array = self._template[number]
            wide = widened(array)
            self._widths[number] = number
            if wide is not array:
                place = self._widths[number] = self.new()
                self._template[place] = convert(wide)
                self.constants.add(place)
        return self._widths[number]
