"""TensorFlow: ops that read, make or change shapes."""

import math
from typing import Any

from ..graph.errors import KernelError
from .call import Call
from .registry import bound, kernel
from .room import FEW, blank, check_room
from .shape import ints


@kernel("tf:Shape", moves=True)
def shape(call: Call, x: Any) -> Any:
    """Return the sizes of the axes."""
    return _typed(call, x.shape)


@kernel("tf:ShapeN", moves=True)
def shape_n(call: Call, *operands: Any) -> tuple[Any, ...]:
    """Return the sizes of the axes of each operand."""
    return tuple(_typed(call, x.shape) for x in operands)


@kernel("tf:Size", moves=True)
def size(call: Call, x: Any) -> Any:
    """Return the number of elements."""
    return _typed(call, x.size)


@kernel("tf:Rank", moves=True)
def rank(call: Call, x: Any) -> Any:
    """Return the number of axes."""
    return _typed(call, x.ndim)


def _typed(call: Call, numbers: Any) -> Any:
    dtype = call.dtypes[0]
    return call.xp.asarray(numbers, call.xp.int32 if dtype is None else dtype.numpy)


@kernel("tf:Reshape", moves=True)
def reshape(call: Call, x: Any, shape: Any) -> Any:
    """Return the elements in another shape; one size may be -1."""
    wanted = ints(shape)
    if 0 in wanted and wanted.count(-1) == 1 and not x.size:  # sizes of 0 do not count for the open one
        left = math.prod(size for size in x.shape if size) // math.prod(size for size in wanted if size > 0)
        wanted = [left if size == -1 else size for size in wanted]
    return x.reshape(wanted)


@bound("tf:Reshape")
def bind_reshape(call: Call) -> Any:
    """Bind :func:`reshape` to a shape that is a constant."""
    shape = call.constant(1)
    wanted = () if shape is None else tuple(ints(shape))
    return None if shape is None or 0 in wanted else lambda x, shape: x.reshape(wanted)


@kernel("tf:Squeeze", moves=True)
def squeeze(call: Call, x: Any) -> Any:
    """Drop axes of size 1: those named, or all."""
    axes = call.attr("squeeze_dims")
    return x.squeeze(tuple(axes)) if axes else x.squeeze()


@kernel("tf:ExpandDims", moves=True)
def expand_dims(call: Call, x: Any, axis: Any) -> Any:
    """Add an axis of size 1."""
    return call.xp.expand_dims(x, int(axis.reshape(())))


@kernel("tf:Fill", moves=True)
def fill(call: Call, shape: Any, value: Any) -> Any:
    """Return an array full of one value."""
    sizes = ints(shape)
    check_room(call.xp, sizes, value.itemsize)
    return call.xp.full(sizes, value, value.dtype)


@kernel("tf:Empty", moves=True)
def empty(call: Call, shape: Any) -> Any:
    """Return an array; zeros, so that a run can be repeated."""
    return blank(call.xp, ints(shape), call.dtype("dtype").numpy)


@kernel("tf:BroadcastTo", moves=True)
def broadcast_to(call: Call, x: Any, shape: Any) -> Any:
    """Repeat axes of size 1."""
    sizes = ints(shape)
    check_room(call.xp, sizes, x.itemsize)
    return call.xp.broadcast_to(x, sizes)


@bound("tf:BroadcastTo")
def bind_broadcast_to(call: Call) -> Any:
    """Bind :func:`broadcast_to` a shape that is a constant."""
    xp, shape = call.xp, call.constant(1)
    sizes = None if shape is None else tuple(ints(shape))
    return None if sizes is None or math.prod(sizes) > FEW else lambda x, shape: xp.broadcast_to(x, sizes)


@kernel("tf:BroadcastArgs", moves=True)
def broadcast_args(call: Call, one: Any, other: Any) -> Any:
    """Return the shape that two shapes broadcast to."""
    sizes = call.xp.broadcast_shapes(tuple(ints(one)), tuple(ints(other)))
    return call.xp.asarray(sizes, one.dtype)


@kernel("tf:BroadcastGradientArgs", moves=True)
def broadcast_gradient_args(call: Call, one: Any, other: Any) -> tuple[Any, Any]:
    """Return the axes along which a gradient is summed for each of two shapes that were broadcast."""
    a, b = ints(one), ints(other)
    if a == b:
        return call.xp.zeros(0, one.dtype), call.xp.zeros(0, one.dtype)
    count = max(len(a), len(b))
    a, b = [1] * (count - len(a)) + a, [1] * (count - len(b)) + b
    call.xp.broadcast_shapes(tuple(a), tuple(b))
    # An axis of size 1 on both sides is summed on both: of one element, which drops the axes that an operand does not have.
    both = [i for i in range(count) if a[i] == b[i] == 1]
    first = [i for i in range(count) if a[i] == 1 and (b[i] != 1 or i in both)]
    second = [i for i in range(count) if b[i] == 1 and (a[i] != 1 or i in both)]
    return call.xp.asarray(first, one.dtype), call.xp.asarray(second, one.dtype)


@kernel("tf:ZerosLike", moves=True)
def zeros_like(call: Call, x: Any) -> Any:
    """Return zeros (empty texts) of the operand's shape; a list or an optional of them for one of these."""
    if hasattr(x, "mapped"):
        return x.mapped(lambda item: blank(call.xp, item.shape, item.dtype))
    return blank(call.xp, x.shape, x.dtype)


@kernel("tf:OnesLike", moves=True)
def ones_like(call: Call, x: Any) -> Any:
    """Return ones of the operand's shape."""
    return call.xp.ones(x.shape, x.dtype)


@kernel("tf:InvertPermutation", moves=True)
def invert_permutation(call: Call, x: Any) -> Any:
    """Return where each number stands."""
    result = call.xp.full_like(x, -1)
    if x.ndim != 1 or (x.size and not 0 <= int(x.min()) <= int(x.max()) < x.size):
        raise KernelError(f"InvertPermutation takes the numbers from 0 in some order. Received: {x}")
    result[x] = call.xp.arange(x.size, dtype=x.dtype)
    if (result < 0).any():
        raise KernelError(f"InvertPermutation takes each number once. Received: {x}")
    return result


@kernel("tf:ConcatOffset", moves=True)
def concat_offset(call: Call, axis: Any, *shapes: Any) -> tuple[Any, ...]:
    """Return where each of several shapes begins when they are joined along an axis."""
    place, start, results = int(axis.reshape(())), 0, []
    for sizes in shapes:
        offset = call.xp.zeros_like(sizes)
        offset[place] = start
        start += int(sizes[place])
        results.append(offset)
    return tuple(results)


@kernel("tf:Tile", moves=True)
def tile(call: Call, x: Any, multiples: Any) -> Any:
    """Repeat along each axis."""
    counts = ints(multiples)
    if len(counts) != x.ndim:
        raise KernelError(f"Tile takes a number for each of {x.ndim} axes. Received: {counts}")
    check_room(call.xp, [*x.shape, *counts], x.itemsize)
    return call.xp.tile(x, counts)


@kernel("tf:TileGrad")
def tile_grad(call: Call, x: Any, multiples: Any) -> Any:
    """Add up what :func:`tile` repeated."""
    sizes = [n for count, size in zip(ints(multiples), x.shape, strict=True) for n in (count, size // max(count, 1))]
    return x.reshape(sizes).sum(axis=tuple(range(0, 2 * x.ndim, 2)), dtype=x.dtype)


@kernel("tf:Range", moves=True)
def range_(call: Call, start: Any, limit: Any, delta: Any) -> Any:
    """Return the numbers from ``start`` up (or down) to ``limit``, which is left out; each is rounded as it is made."""
    start, limit, delta = (operand.reshape(()) for operand in (start, limit, delta))
    first, last, step = (
        operand.astype("int64" if operand.dtype.kind in "iu" else "float64").item() for operand in (start, limit, delta)
    )
    if not step or (last - first) * step < 0:
        raise KernelError(f"Range goes in steps that lead from its start to its limit. Received: {first}, {last}, {step}")
    # In the precision of the dtype.
    steps = -((first - last) // step) if isinstance(first, int) else float((limit - start) / delta)
    if not math.isfinite(steps):
        raise KernelError(f"Range never reaches its limit. Received: {first}, {last}, {step}")
    count = math.ceil(abs(steps))
    check_room(call.xp, [count], 8)
    return start + call.xp.arange(count).astype(start.dtype) * delta


@kernel("tf:LinSpace")
def lin_space(call: Call, start: Any, stop: Any, num: Any) -> Any:
    """Return ``num`` numbers at equal distances, the ends included."""
    count = int(num.reshape(()))
    if count < 1:
        raise KernelError(f"LinSpace makes at least one number. Received: {count}")
    check_room(call.xp, [count], 8)
    start, stop = start.reshape(()), stop.reshape(())
    result = start + (stop - start) / start.dtype.type(max(count - 1, 1)) * call.xp.arange(count, dtype=start.dtype)
    if count > 1:
        result[-1] = stop
    return result
