"""What a variant of TensorFlow holds when it is a list of tensors. A value: changed lists are new lists."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any


@dataclasses.dataclass(frozen=True, eq=False)
class TensorList:
    """A list.

    Attributes:
        items: The tensors; None where none was set.
        dims: The shape of each as far as known: sizes, -1 for an unknown one; None if even the rank is unknown.
        dtype: The NumPy dtype of each, or None for lists of lists.
        most: How many it may hold, or -1.
    """

    items: tuple[Any, ...]
    dims: tuple[int, ...] | None
    dtype: Any
    most: int = -1

    def having(self, items: Sequence[Any]) -> "TensorList":
        """Return a list of the same kind with these items."""
        return dataclasses.replace(self, items=tuple(items))

    def mapped(self, function: Callable[[Any], Any]) -> "TensorList":
        """Return a list with every tensor changed, those in lists inside too."""

        def change(item: Any) -> Any:
            if item is None:
                return None
            return item.mapped(function) if isinstance(item, TensorList) else function(item)

        return self.having([change(item) for item in self.items])
