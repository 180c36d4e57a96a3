"""What a variant of TensorFlow holds when it is a list of tensors. A value: changed lists are new lists."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..graph.errors import KernelError
from ..graph.types import Shape

if TYPE_CHECKING:
    from .call import Call

#: A shape as far as known: sizes, -1 for an unknown one; None if even the rank is unknown.
Dims = tuple[int, ...] | None


@dataclasses.dataclass(frozen=True, eq=False)
class TensorList:
    """A list.

    Attributes:
        items: The tensors; None where none was set.
        dims: The shape of each as far as known.
        element: The NumPy dtype of each, or None for lists of lists.
        most: How many it may hold, or -1.
    """

    kind: ClassVar[str] = "a list of tensors"
    items: tuple[Any, ...]
    dims: Dims
    element: Any
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

    def __add__(self, other: "TensorList") -> "TensorList":
        """Return the sums of the items; one that was not set counts as zeros."""
        if len(self.items) != len(other.items):
            raise KernelError(f"Lists that are added have one length. Received: {len(self.items)} and {len(other.items)}")
        pairs = zip(self.items, other.items, strict=True)
        return self.having([a if b is None else b if a is None else a + b for a, b in pairs])


def merged(call: "Call", one: Dims, other: Dims) -> Dims:
    """Return what two shapes that belong to the same tensor know together.

    Raises:
        KernelError: If they contradict each other.
    """
    if one is None or other is None:
        return other if one is None else one
    if len(one) != len(other) or any(a != b and a >= 0 and b >= 0 for a, b in zip(one, other, strict=True)):
        raise KernelError(f"{call.node.op_type}: shapes {list(one)} and {list(other)} contradict each other.")
    return tuple(b if a < 0 else a for a, b in zip(one, other, strict=True))


def known(shape: Shape) -> Dims:
    """Return what an attribute says of a shape."""
    return None if shape.dims is None else tuple(size if isinstance(size, int) else -1 for size in shape.dims)


def stacked(call: "Call", items: Sequence[Any], dims: Dims, element: Any) -> Any:
    """Return tensors joined along a new first axis; of none, an array without elements.

    Args:
        call: The call.
        items: The tensors.
        dims: The shape of each as far as known.
        element: The NumPy dtype of each.

    Raises:
        KernelError: If there is none, and the shape is not known.
    """
    return call.xp.stack(items) if items else nothing(call, dims, element)


def nothing(call: "Call", dims: Dims, element: Any) -> Any:
    """Return an array of no items of a shape.

    Raises:
        KernelError: If the shape is not known.
    """
    if dims is None or -1 in dims:
        raise KernelError(f"{call.node.op_type}: of no items, whose shape is not known, no tensor can be made.")
    return call.xp.zeros((0, *dims), element)


def lone(x: Any) -> Any:
    """Return the list that a scalar holds; another tensor as it is."""
    return x.item() if x.dtype.kind == "O" and not x.ndim and isinstance(x.item(), TensorList) else x
