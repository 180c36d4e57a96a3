"""TensorFlow: elements written by index into tensors; rows distributed over tensors and collected again."""

import math
from collections.abc import Sequence
from typing import Any

from ..graph.errors import KernelError
from .call import Call
from .gather import outside
from .registry import kernel
from .room import blank
from .shape import ints
from .tf_gather import check_depth, coordinates

#: What each kind of update does to what is there.
_UFUNCS = {"Add": "add", "Sub": "subtract", "Mul": "multiply", "Div": "divide", "Max": "maximum", "Min": "minimum"}


def kind_of(call: Call) -> str:
    """Return what the name of an op says its updates do: ``"Add"``, ``"Update"`` …"""
    return call.node.op_type[-3:] if call.node.op_type[-3:] in _UFUNCS else "Update"


def write(call: Call, out: Any, kind: str, index: tuple[Any, ...], updates: Any) -> Any:
    """Write updates into ``out``, several for one place in their order, and return it."""
    if kind == "Update":
        out[index] = updates
    elif kind == "Div" and out.dtype.kind in "iu":
        return write_whole_quotients(call, out, index, updates)
    else:
        getattr(call.xp, _UFUNCS[kind]).at(out, index, updates)
    return out


def write_whole_quotients(call: Call, out: Any, index: tuple[Any, ...], updates: Any) -> Any:
    """Divide integers in place, rounding towards zero as C does."""
    signs = call.xp.ones_like(out)
    call.xp.multiply.at(signs, index, call.xp.sign(updates))
    sizes = call.xp.abs(out)
    call.xp.floor_divide.at(sizes, index, call.xp.abs(updates))
    out[...] = sizes * signs * call.xp.sign(out)
    return out


def write_nd(call: Call, x: Any, indices: Any, updates: Any, kind: str) -> Any:
    """Return a copy of ``x`` with slices updated whose leading coordinates are the vectors along the last axis of ``indices``."""
    xp, depth = call.xp, indices.shape[-1]
    check_depth(call, x.ndim, depth)
    sizes = indices.shape[:-1] + x.shape[depth:]
    if updates.shape != sizes:
        raise KernelError(
            f"{call.node.op_type}: indices of shape {list(indices.shape)} into a tensor of shape {list(x.shape)} take updates "
            f"of shape {list(sizes)}. Received: {list(updates.shape)}"
        )
    if not depth:  # no coordinate: each update is one of the whole
        count = math.prod(indices.shape[:-1])
        return write(call, x[None].copy(), kind, (xp.zeros(count, int),), updates.reshape(count, *x.shape))[0]
    columns, fits = coordinates(call, x.shape, indices)
    if fits is not None:
        columns = [column[fits] for column in columns]
        updates = updates[fits]
    return write(call, x.copy(), kind, tuple(columns), updates)


@kernel("tf:TensorScatterUpdate", moves=True)
def tensor_scatter_update(call: Call, x: Any, indices: Any, updates: Any) -> Any:
    """Replace slices."""
    return write_nd(call, x, indices, updates, "Update")


@kernel(
    *("tf:TensorScatterAdd", "tf:TensorScatterSub", "tf:TensorScatterMax", "tf:TensorScatterMin", "tf:ScatterNdNonAliasingAdd"),
)
def tensor_scatter(call: Call, x: Any, indices: Any, updates: Any) -> Any:
    """Add to slices, or whatever the op's name says."""
    return write_nd(call, x, indices, updates, kind_of(call))


@kernel("tf:ScatterNd")
def scatter_nd(call: Call, indices: Any, updates: Any, shape: Any) -> Any:
    """Add slices to zeros."""
    sizes = ints(shape)
    kind = "Update" if updates.dtype.kind in "Ob" else "Add"
    return write_nd(call, blank(call.xp, sizes, updates.dtype), indices, updates, kind)


@kernel("tf:DynamicPartition", moves=True)
def dynamic_partition(call: Call, data: Any, partitions: Any) -> tuple[Any, ...]:
    """Distribute slices over tensors, by the number that each has."""
    count = call.attr("num_partitions")
    if partitions.size and not 0 <= int(partitions.min()) <= int(partitions.max()) < count:
        raise outside(call, partitions, count, "0")
    if data.shape[: partitions.ndim] != partitions.shape:
        raise KernelError(f"DynamicPartition: data begin with {list(partitions.shape)}. Received: {list(data.shape)}")
    return tuple(data[partitions == i] for i in range(count))


@kernel("tf:DynamicStitch", "tf:ParallelDynamicStitch", moves=True)
def dynamic_stitch(call: Call, *operands: Any) -> Any:
    """Collect slices: each goes to the place its index says, of equals the last one stays."""
    xp, half = call.xp, len(operands) // 2
    indices, data = operands[:half], operands[half:]
    size = 1 + max((int(i.max()) for i in indices if i.size), default=-1)
    if any(i.size and int(i.min()) < 0 for i in indices):
        raise KernelError(f"{call.node.op_type}: indices are not negative.")
    rest: Sequence[int] = data[0].shape[indices[0].ndim :]
    out = blank(xp, (size, *rest), data[0].dtype)
    for places, slices in zip(indices, data, strict=True):
        out[places.reshape(-1)] = slices.reshape(-1, *rest) if slices.size else slices.reshape(places.size, *rest)
    return out
