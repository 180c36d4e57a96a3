"""TensorFlow: arrays with more around them, a constant or their own mirror image."""

from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .registry import kernel
from .room import check_room

if TYPE_CHECKING:
    from .call import Call


def _amounts(x: Any, paddings: Any) -> list[tuple[int, int]]:
    """Return before and after how many elements each axis gets.

    Raises:
        KernelError: If there is not a pair of numbers, none negative, for each axis.
    """
    if paddings.shape != (x.ndim, 2) or (paddings.size and int(paddings.min()) < 0):
        raise KernelError(
            f"Paddings need a pair of numbers from 0 on for each axis of {list(x.shape)}. Received: {paddings.tolist()}"
        )
    return [(int(before), int(after)) for before, after in paddings]


@kernel("tf:Pad", "tf:PadV2", moves=True)
def pad(call: "Call", x: Any, paddings: Any, value: Any = 0) -> Any:
    """A constant, 0 unless given, around an array."""
    amounts = _amounts(x, paddings)
    shape = [before + size + after for size, (before, after) in zip(x.shape, amounts, strict=True)]
    check_room(call.xp, shape, x.itemsize)
    result = call.xp.full(shape, value, x.dtype)
    result[tuple(slice(before, before + size) for size, (before, _) in zip(x.shape, amounts, strict=True))] = x
    return result


def _edge(call: "Call") -> int:
    """Return 1 if the outermost elements are the mirror (REFLECT), 0 if they are repeated (SYMMETRIC)."""
    return int(call.attr("mode", "REFLECT") == "REFLECT")


def _check_mirror(sizes: list[int], amounts: list[tuple[int, int]], edge: int) -> None:
    if any(max(pair) > max(size - edge, 0) for size, pair in zip(sizes, amounts, strict=True)):
        raise KernelError(
            f"An array of shape {sizes} cannot be mirrored further than it goes. Received: paddings {[list(p) for p in amounts]}"
        )


@kernel("tf:MirrorPad", moves=True)
def mirror_pad(call: "Call", x: Any, paddings: Any) -> Any:
    """Its mirror image around an array."""
    xp, edge, amounts = call.xp, _edge(call), _amounts(x, paddings)
    _check_mirror(list(x.shape), amounts, edge)
    check_room(xp, [a + size + b for size, (a, b) in zip(x.shape, amounts, strict=True)], x.itemsize)
    for axis, (before, after) in enumerate(amounts):
        if before or after:
            size = x.shape[axis]
            at = xp.arange(-before, size + after)
            at = xp.where(at < 0, edge - 1 - at, at)
            x = xp.take(x, xp.where(at >= size, 2 * size - 1 - edge - at, at), axis)
    return x


@kernel("tf:MirrorPadGrad")
def mirror_pad_grad(call: "Call", dy: Any, paddings: Any) -> Any:
    """The gradient of MirrorPad: what was mirrored is folded back and added."""
    edge, amounts = _edge(call), _amounts(dy, paddings)
    sizes = [size - before - after for size, (before, after) in zip(dy.shape, amounts, strict=True)]
    _check_mirror(sizes, amounts, edge)
    for axis, (before, after) in enumerate(amounts):
        if before or after:
            size = sizes[axis]
            rows = call.xp.moveaxis(dy, axis, 0)
            dx = rows[before : before + size].copy()
            dx[edge : edge + before] += rows[:before][::-1]
            dx[size - edge - after : size - edge] += rows[before + size :][::-1]
            dy = call.xp.moveaxis(dx, 0, axis)
    return dy
