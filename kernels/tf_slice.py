"""TensorFlow: parts of tensors between bounds, read and written."""

from typing import Any

from ..graph.errors import KernelError
from .call import Call
from .registry import kernel
from .room import blank
from .shape import ints
from .tensor_list import lone


@kernel("tf:Slice", moves=True)
def slice_(call: Call, x: Any, begin: Any, size: Any) -> Any:
    """Return the part that begins there and has this size; a size of -1 means all that follows."""
    starts, sizes = ints(begin), ints(size)
    if len(starts) != x.ndim or len(sizes) != x.ndim:
        raise KernelError(f"Slice: a start and a size for each axis of {list(x.shape)}. Received: {starts} and {sizes}")
    index = []
    for start, count, whole in zip(starts, sizes, x.shape, strict=True):
        end = whole if count == -1 else start + count
        if not 0 <= start <= end <= whole:
            raise KernelError(f"Slice: the part lies within {list(x.shape)}. Received: {starts} and {sizes}")
        index.append(slice(start, end))
    return x[(*index, ...)]


def strided_index(call: Call, shape: tuple[int, ...], begin: Any, end: Any, strides: Any) -> tuple[Any, ...]:
    """Return NumPy's index for begins, ends, strides and the masks among the attributes.

    Args:
        call: The call.
        shape: Of what is indexed.
        begin, end, strides: As the op takes them.

    Raises:
        KernelError: If a single index lies outside, or there are more indices than axes.
    """
    first, last, steps = ints(begin), ints(end), ints(strides)
    names = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    begins, ends, ellipsis, new, shrink = (call.attr(name, 0) for name in names)
    count = len(first)
    if ellipsis & (ellipsis - 1):
        raise KernelError(f"{call.node.op_type}: at most one index is an ellipsis. Received: ellipsis_mask={ellipsis}")
    given = sum(1 for i in range(count) if not (ellipsis | new) >> i & 1)
    if given > len(shape):
        raise KernelError(f"{call.node.op_type}: {given} axes are indexed, of a tensor of shape {list(shape)}.")
    index: list[Any] = []
    axis = 0
    for i, (start, stop, step) in enumerate(zip(first, last, steps, strict=True)):
        if ellipsis >> i & 1:
            index.append(Ellipsis)
            axis = len(shape) - sum(1 for j in range(i + 1, count) if not new >> j & 1)
        elif new >> i & 1:
            index.append(None)
        elif shrink >> i & 1:
            if not -shape[axis] <= start < shape[axis] or step <= 0:
                raise KernelError(
                    f"{call.node.op_type}: axis {axis} of shape {list(shape)} has no such slice. Received: {start} (stride {step})"
                )
            index.append(start)
            axis += 1
        else:
            index.append(slice(None if begins >> i & 1 else start, None if ends >> i & 1 else stop, step))
            axis += 1
    return tuple(index) if ellipsis and ellipsis >> count == 0 else (*index, ...)


@kernel("tf:StridedSlice", moves=True)
def strided_slice(call: Call, x: Any, begin: Any, end: Any, strides: Any) -> Any:
    """Return the part of a tensor that begins, ends, strides and masks say."""
    return lone(x[strided_index(call, x.shape, begin, end, strides)])


@kernel("tf:StridedSliceGrad", moves=True)
def strided_slice_grad(call: Call, shape: Any, begin: Any, end: Any, strides: Any, dy: Any) -> Any:
    """Return zeros of a shape, with a gradient where :func:`strided_slice` read."""
    result = blank(call.xp, ints(shape), dy.dtype)
    result[strided_index(call, result.shape, begin, end, strides)] = dy
    return result


@kernel("tf:TensorStridedSliceUpdate", moves=True)
def strided_slice_update(call: Call, x: Any, begin: Any, end: Any, strides: Any, value: Any) -> Any:
    """Return a tensor with the part replaced that :func:`strided_slice` would read."""
    result = x.copy()
    result[strided_index(call, x.shape, begin, end, strides)] = value
    return result
