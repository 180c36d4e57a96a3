"""Whether memory has room for an array, asked before it is made.

Systems promise more memory than they have, and end the process that uses it. Kernels whose results can be of any size, because
it stands in values and attributes or because operands are broadcast, ask here first.
"""

import os
from collections.abc import Sequence
from math import prod
from typing import Any

from ..graph.errors import KernelError

#: Arrays of fewer bytes are made without asking.
_SMALL = 1 << 26


def check_room(xp: Any, shape: Sequence[int], itemsize: int) -> None:
    """Refuse an array that memory has no room for.

    Args:
        xp: The array module; only NumPy's arrays are checked.
        shape: Of the array that is to be made.
        itemsize: Bytes of an element.

    Raises:
        KernelError: If it takes more bytes than are free.
    """
    size = itemsize * prod(shape)
    if size <= _SMALL or min(shape) < 0 or xp.__name__ != "numpy":
        return
    free = free_memory()
    if free is not None and size > free:
        raise KernelError(
            f"An array of shape {list(shape)} takes {size / 1e9:.3g} GB, more than the {free / 1e9:.3g} GB of memory that are free."
        )


#: Arrays whose sizes, multiplied, are no more than this can be broadcast without asking.
FEW = _SMALL >> 4


def check_broadcast(xp: Any, *arrays: Any) -> None:
    """Refuse what arrays broadcast to where memory has no room for it."""
    most = 1
    for array in arrays:
        most *= array.size or 1
    if most > FEW and xp.__name__ == "numpy":
        check_room(xp, xp.broadcast_shapes(*(array.shape for array in arrays)), max(array.dtype.itemsize for array in arrays))


def blank(xp: Any, shape: Sequence[int], dtype: Any) -> Any:
    """Return an array of zeros, or of empty texts, that memory has room for.

    Args:
        xp: The array module.
        shape: Its shape.
        dtype: Its NumPy dtype; texts are objects.
    """
    check_room(xp, shape, dtype.itemsize)
    return xp.full(shape, "", dtype) if dtype.kind == "O" else xp.zeros(shape, dtype)


def free_memory() -> int | None:
    """Return the bytes of memory that can still be had; None where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            found = next(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        try:
            found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, OSError, ValueError):
            return None
    try:  # what a container may have
        with (
            open("/sys/fs/cgroup/memory.max", encoding="ascii") as limit,
            open("/sys/fs/cgroup/memory.current", encoding="ascii") as used,
        ):
            return min(found, int(limit.read()) - int(used.read()))
    except (OSError, ValueError):
        return found
