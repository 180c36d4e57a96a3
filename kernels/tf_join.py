"""TensorFlow: tensors joined, divided, reordered and repeated in slices."""

from typing import Any

from ..graph.errors import KernelError
from .call import Call
from .gather import axis_of
from .registry import kernel
from .room import check_room
from .shape import ints, parts_of
from .tensor_list import lone


@kernel("tf:ConcatV2", moves=True)
def concat(call: Call, *operands: Any) -> Any:
    """Join along an axis, the last operand."""
    axis = axis_of(call, int(operands[-1].reshape(())), operands[0].ndim)
    return call.xp.concatenate(operands[:-1], axis)


@kernel("tf:Concat", moves=True)
def concat_first(call: Call, axis: Any, *operands: Any) -> Any:
    """Join along an axis, the first operand."""
    return concat(call, *operands, axis)


@kernel("tf:Pack", moves=True)
def pack(call: Call, *operands: Any) -> Any:
    """Join along a new axis."""
    return call.xp.stack(operands, call.attr("axis", 0))


@kernel("tf:ParallelConcat", moves=True)
def parallel_concat(call: Call, *operands: Any) -> Any:
    """Join along the first axis."""
    return call.xp.concatenate(operands)


@kernel("tf:Unpack", moves=True)
def unpack(call: Call, x: Any) -> tuple[Any, ...]:
    """Return the slices along an axis."""
    axis = axis_of(call, call.attr("axis", 0), x.ndim)
    if x.shape[axis] != call.results:
        raise KernelError(f"Unpack: axis {axis} of shape {list(x.shape)} has not as many slices. Received: {call.results}")
    return tuple(lone(x[(slice(None),) * axis + (i, ...)]) for i in range(x.shape[axis]))


@kernel("tf:Split", moves=True)
def split(call: Call, axis: Any, x: Any) -> tuple[Any, ...]:
    """Divide an axis into equal parts."""
    place, count = axis_of(call, int(axis.reshape(())), x.ndim), call.attr("num_split")
    if count < 1 or x.shape[place] % count:
        raise KernelError(f"Split: axis {place} of shape {list(x.shape)} has no such equal parts. Received: {count}")
    return parts_of(x, [x.shape[place] // count] * count, place)


@kernel("tf:SplitV", moves=True)
def split_v(call: Call, x: Any, sizes: Any, axis: Any) -> tuple[Any, ...]:
    """Divide an axis into parts of the sizes given, of which one may be -1."""
    place, wanted = axis_of(call, int(axis.reshape(())), x.ndim), ints(sizes)
    size = x.shape[place]
    if wanted.count(-1) == 1:
        open_ = wanted.index(-1)
        wanted[open_] = size - sum(wanted) - 1
    if min(wanted, default=0) < 0 or sum(wanted) != size:
        raise KernelError(f"SplitV: axis {place} of shape {list(x.shape)} cannot be so divided. Received: {ints(sizes)}")
    return parts_of(x, wanted, place)


@kernel("tf:Transpose", moves=True)
def transpose(call: Call, x: Any, order: Any) -> Any:
    """Reorder the axes."""
    return x.transpose(ints(order))


@kernel("tf:ConjugateTranspose", moves=True)
def conjugate_transpose(call: Call, x: Any, order: Any) -> Any:
    """Reorder the axes, and conjugate complex elements."""
    x = x.transpose(ints(order))
    return x.conj() if x.dtype.kind == "c" else x


@kernel("tf:ReverseV2", moves=True)
def reverse(call: Call, x: Any, axes: Any) -> Any:
    """Turn axes around."""
    places = [axis_of(call, axis, x.ndim) for axis in ints(axes)]
    if len(set(places)) < len(places):
        raise KernelError(f"ReverseV2: axes are different. Received: {ints(axes)}")
    return call.xp.flip(x, tuple(places)) if places else x


@kernel("tf:Reverse", moves=True)
def reverse_marked(call: Call, x: Any, is_reversed: Any) -> Any:
    """Turn around the axes that are marked."""
    axes = tuple(i for i, marked in enumerate(is_reversed.tolist()) if marked)
    return call.xp.flip(x, axes) if axes else x


@kernel("tf:ReverseSequence", moves=True)
def reverse_sequence(call: Call, x: Any, lengths: Any) -> Any:
    """Turn around the first ``lengths[b]`` steps of batch entry ``b``; the steps after them stay."""
    xp = call.xp
    time, batch = axis_of(call, call.attr("seq_dim"), x.ndim), axis_of(call, call.attr("batch_dim", 0), x.ndim)
    if time == batch or lengths.shape != x.shape[batch : batch + 1]:
        raise KernelError(f"ReverseSequence: a length for each entry of axis {batch} of {list(x.shape)}. Received: {lengths}")
    if lengths.size and not 0 <= int(lengths.min()) <= int(lengths.max()) <= x.shape[time]:
        raise KernelError(f"ReverseSequence: lengths are at most {x.shape[time]}. Received: {lengths}")
    steps, ends = xp.arange(x.shape[time]), lengths[:, None].astype(xp.int64)
    source = xp.where(steps < ends, ends - 1 - steps, steps)
    moved = xp.moveaxis(x, (batch, time), (0, 1))
    return xp.moveaxis(moved[xp.arange(x.shape[batch])[:, None], source], (0, 1), (batch, time))


@kernel("tf:Roll", moves=True)
def roll(call: Call, x: Any, shift: Any, axis: Any) -> Any:
    """Move elements along axes; those that leave come in at the other end."""
    places = [axis_of(call, place, x.ndim) for place in ints(axis)]
    total = dict.fromkeys(places, 0)
    for place, amount in zip(places, ints(shift), strict=True):
        total[place] += amount
    return call.xp.roll(x, tuple(total.values()), tuple(total))


@kernel("tf:OneHot", moves=True)
def one_hot(call: Call, indices: Any, depth: Any, on: Any, off: Any) -> Any:
    """Return ``on`` at the positions that ``indices`` name on a new axis, else ``off``; indices outside name none."""
    xp, count = call.xp, int(depth.reshape(()))
    axis = axis_of(call, call.attr("axis", -1), indices.ndim + 1)
    if count < 0:
        raise KernelError(f"OneHot: depth cannot be negative. Received: {count}")
    check_room(xp, [indices.size, count], on.itemsize)
    ruler = xp.arange(count).reshape([-1 if i == axis else 1 for i in range(indices.ndim + 1)])
    return xp.where(xp.expand_dims(indices, axis) == ruler, on.reshape(()), off.reshape(()))


@kernel("tf:InplaceUpdate", "tf:InplaceAdd", "tf:InplaceSub", moves=True)
def inplace(call: Call, x: Any, rows: Any, values: Any) -> Any:
    """Return a copy with rows replaced, or the values added to or taken from them."""
    result, kind = x.copy(), call.node.op_type
    if kind == "InplaceUpdate":
        result[rows] = values
    else:
        (call.xp.add if kind == "InplaceAdd" else call.xp.subtract).at(result, rows, values)
    return result
