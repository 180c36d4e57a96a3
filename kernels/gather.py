"""Elements chosen by index: Gather and its relatives, Compress, TensorScatter's counterpart on the reading side.

Nothing here computes: elements keep their bits. Negative indices count from the end; an index that lies outside is an
error, not a wrap-around.
"""

from typing import Any

from ..graph.errors import KernelError
from .call import Call
from .registry import kernel
from .room import check_room


def outside(call: Call, indices: Any, size: Any, least: str = "minus the size") -> KernelError:
    """Return the error that says which indices do not fit an axis (or axes) of ``size``, and what the least is that would."""
    low, high = (int(indices.min()), int(indices.max())) if indices.size else (0, 0)
    return KernelError(
        f"{call.node.op_type}: an index lies outside the data, whose size there is {size}; the least that is allowed is "
        f"{least}, the greatest the size less one. Received: indices from {low} to {high}"
    )


def axis_of(call: Call, axis: int, rank: int) -> int:
    """Return ``axis`` counted from the front.

    Raises:
        KernelError: If a tensor of this rank has no such axis.
    """
    if not -rank <= axis < rank:
        raise KernelError(f"{call.node.op_type}: a tensor of rank {rank} has no such axis. Received: axis={axis}")
    return axis % rank


@kernel("Gather", moves=True)
def gather(call: Call, data: Any, indices: Any) -> Any:
    """Return slices of ``data`` along one axis; the shape of ``indices`` takes that axis's place."""
    axis = axis_of(call, call.attr("axis", 0), data.ndim)
    check_room(call.xp, (*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]), data.itemsize)
    try:
        # Of a single element NumPy makes a scalar, unless the index has an ellipsis.
        return call.xp.take(data, indices, axis=axis) if data.ndim + indices.ndim > 1 else data[indices, ...]
    except IndexError:
        raise outside(call, indices, data.shape[axis]) from None


@kernel("GatherElements", moves=True)
def gather_elements(call: Call, data: Any, indices: Any) -> Any:
    """Return one element per index: the index says where on one axis, its own position says where on the others."""
    axis = axis_of(call, call.attr("axis", 0), data.ndim)
    try:
        return data[(*elements_at(call, indices, axis), ...)]
    except IndexError:
        raise outside(call, indices, data.shape[axis]) from None


def elements_at(call: Call, indices: Any, axis: int) -> tuple[Any, ...]:
    """Return the index of the elements that ``indices`` name on ``axis``, and their own positions on the other axes."""
    rank = indices.ndim
    mesh = []
    for k in range(rank):
        ruler = call.xp.arange(indices.shape[k])
        mesh.append(indices if k == axis else ruler.reshape([-1 if i == k else 1 for i in range(rank)]))
    return tuple(mesh)


@kernel("GatherND", "com.microsoft:GatherND", moves=True)
def gather_nd(call: Call, data: Any, indices: Any) -> Any:
    """Return slices of ``data`` whose leading coordinates are the vectors along the last axis of ``indices``."""
    batch, depth = call.attr("batch_dims", 0), indices.shape[-1]
    if not 0 <= batch <= data.ndim - depth:
        text = f"{call.node.op_type}: {batch} batch axes and {depth} coordinates do not fit a tensor of rank {data.ndim}."
        raise KernelError(f"{text} Received: indices of shape {list(indices.shape)}")
    lead = indices.shape[:-1]
    check_room(call.xp, lead + data.shape[batch + depth :], data.itemsize)
    mesh = [call.xp.arange(lead[k]).reshape([-1 if i == k else 1 for i in range(len(lead))]) for k in range(batch)]
    index = (*mesh, *call.xp.moveaxis(indices, -1, 0))
    if not depth:
        # No coordinate: each vector, of no elements, names the whole of its batch entry.
        part = data.reshape(data.shape[:batch] + (1,) * (len(lead) - batch) + data.shape[batch:])
        return call.xp.broadcast_to(part, lead + data.shape[batch:])
    try:
        return data[(*index, ...)]
    except IndexError:
        raise outside(call, indices, list(data.shape[batch : batch + depth])) from None


@kernel("Compress", moves=True)
def compress(call: Call, data: Any, condition: Any) -> Any:
    """Return the slices (without an axis: the elements) at which ``condition`` is true; it may be shorter than the axis."""
    axis = call.attr("axis", None)
    if axis is None:
        data, axis = data.reshape(-1), 0
    axis = axis_of(call, axis, data.ndim)
    if condition.size > data.shape[axis]:
        raise KernelError(
            f"Compress: the condition may have at most {data.shape[axis]} entries. Received: {condition.size} entries"
        )
    return call.xp.take(data, call.xp.flatnonzero(condition), axis=axis)


@kernel("ReverseSequence", moves=True)
def reverse_sequence(call: Call, data: Any, lengths: Any) -> Any:
    """Reverse the first ``lengths[b]`` steps of batch entry ``b``; the steps after them stay."""
    xp = call.xp
    time, batch = call.attr("time_axis", 0), call.attr("batch_axis", 1)
    if {time, batch} != {0, 1} or data.ndim < 2:
        raise KernelError(
            "ReverseSequence: time_axis and batch_axis are 0 and 1 in some order, of a tensor of rank 2 or more. "
            f"Received: time_axis={time}, batch_axis={batch}, rank {data.ndim}"
        )
    steps = xp.arange(data.shape[time])[:, None]
    source = xp.where(steps < lengths, lengths - 1 - steps, steps)
    entries = xp.arange(data.shape[batch])
    return data[source, entries] if time == 0 else data[entries[:, None], source.T]
