"""TensorFlow: elements chosen by index."""

import math
from typing import Any

from ..graph.errors import KernelError
from .call import Call
from .gather import axis_of, outside
from .registry import kernel
from .room import check_room


def check_indices(call: Call, indices: Any, size: int) -> None:
    """Refuse indices that are negative or not below ``size``."""
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < size:
        raise outside(call, indices, size, "0")


def take(call: Call, x: Any, indices: Any, axis: int = 0, batch: int = 0) -> Any:
    """Return slices along an axis; the first ``batch`` axes of both operands go together.

    Args:
        call: The call.
        x: What is read: ``[batch…, before…, axis, after…]``.
        indices: Which slices: ``[batch…, places…]``.
        axis: The axis.
        batch: How many axes both begin with.

    Returns:
        ``[batch…, before…, places…, after…]``.
    """
    batch = axis_of(call, batch, indices.ndim + 1) if batch >= 0 else axis_of(call, batch, indices.ndim)
    axis = axis_of(call, axis, x.ndim)
    if axis < batch or x.shape[:batch] != indices.shape[:batch]:
        raise KernelError(
            f"{call.node.op_type}: tensors of shapes {list(x.shape)} and {list(indices.shape)}, read along axis {axis}, do not "
            f"begin with the same batch. Received: batch_dims={batch}"
        )
    check_indices(call, indices, x.shape[axis])
    sizes = x.shape[:axis] + indices.shape[batch:] + x.shape[axis + 1 :]
    check_room(call.xp, sizes, x.itemsize)
    if not batch:
        return call.xp.take(x, indices, axis) if x.ndim + indices.ndim > 1 else x[indices, ...]
    groups, before = math.prod(x.shape[:batch]), math.prod(x.shape[batch:axis])
    flat = x.reshape(groups, before, x.shape[axis], math.prod(x.shape[axis + 1 :]))
    rows = indices.reshape(groups, 1, math.prod(indices.shape[batch:]))
    ruler = call.xp.arange
    return flat[ruler(groups)[:, None, None], ruler(before)[:, None], rows].reshape(sizes)


@kernel("tf:Gather", moves=True)
def gather(call: Call, x: Any, indices: Any) -> Any:
    """Return slices along the first axis."""
    return take(call, x, indices)


@kernel("tf:GatherV2", moves=True)
def gather_v2(call: Call, x: Any, indices: Any, axis: Any) -> Any:
    """Return slices along an axis."""
    return take(call, x, indices, int(axis.reshape(())), call.attr("batch_dims", 0))


@kernel("tf:GatherNd", moves=True)
def gather_nd(call: Call, x: Any, indices: Any) -> Any:
    """Return slices whose leading coordinates are the vectors along the last axis of ``indices``."""
    xp, depth = call.xp, indices.shape[-1]
    check_depth(call, x.ndim, depth)
    sizes = indices.shape[:-1] + x.shape[depth:]
    check_room(xp, sizes, x.itemsize)
    if not depth:
        return xp.broadcast_to(x, sizes)
    columns, fits = coordinates(call, x.shape, indices)
    if fits is None:
        return x[(*columns, ...)]
    if not math.prod(x.shape[:depth]):
        return xp.zeros(sizes, x.dtype)
    found = x[(*columns, ...)]
    return xp.where(fits.reshape(fits.shape + (1,) * (found.ndim - fits.ndim)), found, xp.zeros((), x.dtype))


def check_depth(call: Call, rank: int, depth: int) -> None:
    """Refuse more coordinates than there are axes."""
    if depth > rank:
        raise KernelError(f"{call.node.op_type}: a tensor of rank {rank} takes at most as many coordinates. Received: {depth}")


def coordinates(call: Call, shape: tuple[int, ...], indices: Any) -> tuple[list[Any], Any]:
    """Return the columns of ``indices`` and where they are good.

    Args:
        call: The call.
        shape: What they index.
        indices: Vectors along the last axis.

    Returns:
        The columns; then None if all are good, else a mask, and bad vectors are zeros in the columns.

    Raises:
        KernelError: If one lies outside and the op's policy does not ignore that.
    """
    xp = call.xp
    columns = list(xp.moveaxis(indices, -1, 0))
    if all(not c.size or 0 <= int(c.min()) <= int(c.max()) < size for c, size in zip(columns, shape, strict=False)):
        return columns, None
    if call.attr("bad_indices_policy", "") != "IGNORE":
        raise outside(call, indices, list(shape[: len(columns)]), "0")
    fits = xp.ones(indices.shape[:-1], bool)
    for column, size in zip(columns, shape, strict=False):
        fits &= (column >= 0) & (column < size)
    return [xp.where(fits, column, 0) for column in columns], fits
