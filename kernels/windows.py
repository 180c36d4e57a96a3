"""The windows that convolutions and pools slide over an array: where they stand, a view of them, and putting them back.

Axes are ``[..., spatial]``: the last ``len(kernel)`` axes of an array are the spatial ones.
"""

import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from math import ceil, floor, prod
from typing import TYPE_CHECKING, Any, NamedTuple

from ..graph.errors import KernelError
from .room import check_room

if TYPE_CHECKING:
    from .call import Call

_kept = threading.local()


class Geometry(NamedTuple):
    """Windows over an array: per spatial axis, and the number of windows along it.

    Window ``i`` covers ``i * stride + tap * dilation - begin`` for each tap; elements outside the array are padding.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def plain(self) -> bool:
        """Whether every window is one element, each element once."""
        return all(k == s == 1 and b == e == 0 for k, s, b, e in zip(*self[:2], self.begins, self.ends, strict=True))

    def taps(self) -> Iterator[tuple[int, ...]]:
        """Iterate over the positions within a window, last axis fastest."""
        return product(*map(range, self.kernel))

    def slices(self, tap: Sequence[int]) -> tuple[slice, ...]:
        """Return where, in the padded array, the elements at ``tap`` of all windows stand."""
        return tuple(
            slice(t * d, t * d + (n - 1) * s + 1 if n else 0, s)
            for t, d, n, s in zip(tap, self.dilations, self.counts, self.strides, strict=True)
        )


def geometry(call: "Call", shape: Sequence[int], kernel: Sequence[int]) -> Geometry:
    """Return the windows that a node's ``strides``, ``dilations``, ``pads``, ``auto_pad`` and ``ceil_mode`` describe.

    Args:
        call: The call; its attributes are read.
        shape: Spatial shape of the operand.
        kernel: Shape of a window.

    Raises:
        KernelError: If attributes do not fit the rank or a window does not fit the padded operand.
    """
    rank = len(shape)
    return _geometry(
        tuple(shape),
        tuple(kernel),
        axis_attr(call, "strides", rank),
        axis_attr(call, "dilations", rank),
        axis_attr(call, "pads", 2 * rank, 0),
        call.attr("auto_pad", "NOTSET") or "NOTSET",
        bool(call.attr("ceil_mode", 0)),
    )


@lru_cache(4096)
def _geometry(
    shape: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    pads: tuple[int, ...],
    auto: str,
    rounds_up: bool,
) -> Geometry:
    rank = len(shape)
    if len(kernel) != rank or min(kernel) < 1:
        raise KernelError(f"A window needs one size, at least 1, per spatial axis. Received: kernel {kernel} for shape {shape}")
    rounding = ceil if rounds_up else floor
    begins, ends, counts = [], [], []
    for i, (size, k, s, d) in enumerate(zip(shape, kernel, strides, dilations, strict=True)):
        extent = (k - 1) * d + 1
        begin, end = (pads[i], pads[rank + i]) if auto == "NOTSET" else (0, 0)
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            count = -(-size // s)
            total = max((count - 1) * s + extent - size, 0)
            begin = total // 2 if auto == "SAME_UPPER" else total - total // 2
            end = total - begin
        else:
            count = rounding((size + begin + end - extent) / s) + 1
            if rounds_up and (count - 1) * s >= size + begin:  # that window would see padding only
                count -= 1
            if size + begin + end < extent and size:
                raise KernelError(
                    f"A window of {extent} elements does not fit into {size} elements padded by {begin} and {end}. "
                    f"Received: shape {shape}, kernel {kernel}"
                )
        begins.append(begin)
        ends.append(end)
        counts.append(max(count, 0))
    return Geometry(kernel, strides, dilations, tuple(begins), tuple(ends), tuple(counts))


@lru_cache(4096)
def trimmed(geo: Geometry, shape: tuple[int, ...]) -> Geometry:
    """Return the windows without taps at the ends of them that see nothing but padding in an array of this spatial shape."""
    kernel, begins = [], []
    for size, k, s, d, begin, count in zip(shape, geo.kernel, geo.strides, geo.dilations, geo.begins, geo.counts, strict=True):
        first = min(max(0, (begin - (count - 1) * s) // d), k - 1)
        last = max(min(k - 1, (begin + size - 1) // d), first)
        kernel.append(last - first + 1)
        begins.append(begin - first * d)
    return geo._replace(kernel=tuple(kernel), begins=tuple(begins))


def axis_attr(call: "Call", name: str, count: int, default: int = 1) -> tuple[int, ...]:
    """Return an attribute that has ``count`` integers; all ``default`` when it is left out or empty."""
    values = tuple(int(v) for v in call.attr(name, None) or ())
    if not values:
        return (default,) * count
    if len(values) != count:
        raise KernelError(f"Attribute {name!r} needs {count} integers here. Received: {list(values)}")
    least = 1 if name in ("strides", "dilations") else 0
    if min(values) < least:
        raise KernelError(f"Attribute {name!r} needs integers from {least} on. Received: {list(values)}")
    return values


def pad(xp: Any, x: Any, geo: Geometry, value: Any = 0) -> Any:
    """Return ``x`` with ``value`` around its spatial axes, as far as the windows reach: ``x`` itself where they stay inside.

    The result is for use in this call of a kernel only: it may lie in :func:`scratch` memory.
    """
    rank = len(geo.kernel)
    lead, shape = x.shape[: x.ndim - rank], x.shape[x.ndim - rank :]
    reach = [
        max(size + begin, (n - 1) * s + (k - 1) * d + 1)
        for size, begin, n, s, k, d in zip(shape, geo.begins, geo.counts, geo.strides, geo.kernel, geo.dilations, strict=True)
    ]
    if not any(geo.begins) and tuple(reach) == tuple(shape):
        return x
    result = scratch(xp, "pad", (*lead, *reach), x.dtype)
    for axis, (begin, size) in enumerate(zip(geo.begins, shape, strict=True), len(lead)):
        before = (slice(None),) * axis
        result[(*before, slice(0, begin))] = value
        result[(*before, slice(begin + size, None))] = value
    result[(..., *(slice(b, b + size) for b, size in zip(geo.begins, shape, strict=True)))] = x
    return result


def scratch(xp: Any, use: str, shape: Sequence[int], dtype: Any) -> Any:
    """Return an array to work in, of any content, until the same thread asks for it again for the same use.

    Memory fresh from the system is expensive to touch first, more than what is computed in it; so NumPy's is kept, up to
    4 MB for each thread and use. CuPy keeps its own.
    """
    size = prod(shape) * dtype.itemsize
    if xp.__name__ != "numpy" or size > 1 << 22:
        check_room(xp, shape, dtype.itemsize)
        return xp.empty(shape, dtype)
    kept = getattr(_kept, use, None)
    if kept is None or kept.size < size:
        kept = xp.empty(size, xp.uint8)
        setattr(_kept, use, kept)
    return kept[:size].view(dtype).reshape(shape)


def view(xp: Any, padded: Any, geo: Geometry) -> Any:
    """Return a view ``[..., taps of each axis, windows of each axis]`` of an array that :func:`pad` made."""
    rank = len(geo.kernel)
    lead = padded.ndim - rank
    steps = padded.strides[lead:]
    return xp.lib.stride_tricks.as_strided(
        padded,
        padded.shape[:lead] + geo.kernel + geo.counts,
        padded.strides[:lead]
        + tuple(step * d for step, d in zip(steps, geo.dilations, strict=True))
        + tuple(step * s for step, s in zip(steps, geo.strides, strict=True)),
    )


def fold(xp: Any, columns: Any, geo: Geometry, shape: Sequence[int]) -> Any:
    """Add up windows: the transpose of :func:`view` after :func:`pad`.

    Args:
        xp: Array module.
        columns: ``[..., taps (all axes together), *counts]``.
        geo: The windows.
        shape: Spatial shape of the result; what falls outside is dropped.
    """
    rank = len(geo.kernel)
    lead = columns.shape[: columns.ndim - rank - 1]
    full = [
        max(b + size, (n - 1) * s + (k - 1) * d + 1)
        for size, b, n, s, k, d in zip(shape, geo.begins, geo.counts, geo.strides, geo.kernel, geo.dilations, strict=True)
    ]
    check_room(xp, (*lead, *full), columns.itemsize)
    result = xp.zeros(lead + tuple(full), columns.dtype)
    for i, tap in enumerate(geo.taps()):
        place = geo.slices(tap)
        result[(..., *place)] += columns[(..., i, *(slice(None),) * rank)]
    return result[(..., *(slice(b, b + size) for b, size in zip(geo.begins, shape, strict=True)))]
