"""Functions of NumPy that move elements to other places."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import TraceError
from .array import SymbolicArray
from .functions import implements
from .operations import apply, axes_of, axis_of, cast, ints, kind_of, rank, shape_of, size_operand, static_shape, symbolic


@implements("reshape")
def reshape(a: Any, /, shape: Any, order: str = "C") -> Any:
    """The same elements in another shape."""
    if order != "C":
        raise TraceError(f"numpy.reshape on symbolic arrays keeps the order of C. Received: {order!r}")
    dims = shape if isinstance(shape, tuple | list) else (shape,)
    return apply("Reshape", a, size_operand(dims))


@implements("ravel")
def ravel(a: Any, order: str = "C") -> Any:
    """All elements in one row."""
    return reshape(a, (-1,), order)


@implements("transpose", "permute_dims")
def transpose(a: Any, axes: Any = None) -> Any:
    """The axes in another order, reversed when not given."""
    ndim = rank(a)
    order = tuple(range(ndim))[::-1] if axes is None else axes_of(tuple(axes), ndim)
    if len(order) != ndim:
        raise TraceError(f"numpy.transpose takes each of {ndim} axes once. Received: {axes!r}")
    return symbolic(a) if order == tuple(range(ndim)) else apply("Transpose", a, ints(order))


@implements("matrix_transpose", "linalg.matrix_transpose")
def matrix_transpose(x: Any, /) -> Any:
    """The last two axes exchanged."""
    return swapaxes(x, -1, -2)


@implements("swapaxes")
def swapaxes(a: Any, axis1: Any, axis2: Any) -> Any:
    """Two axes exchanged."""
    order = list(range(rank(a)))
    one, two = axis_of(axis1, len(order)), axis_of(axis2, len(order))
    order[one], order[two] = two, one
    return transpose(a, order)


@implements("moveaxis")
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """Axes at other places, the others in their order."""
    ndim = rank(a)
    sources, targets = axes_of(source, ndim), axes_of(destination, ndim)
    order = [i for i in range(ndim) if i not in sources]
    for target, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, axis)
    return transpose(a, order)


@implements("expand_dims")
def expand_dims(a: Any, axis: Any) -> Any:
    """New axes of size 1."""
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    ndim = rank(a) + len(axes)
    for i in sorted(axes_of(tuple(axes), ndim)):
        a = apply("ExpandDims", a, ints(i))
    return symbolic(a)


@implements("squeeze")
def squeeze(a: Any, axis: Any = None) -> Any:
    """Axes of size 1 left out."""
    dims = static_shape(a)
    if axis is None and None in dims:
        raise TraceError(f"numpy.squeeze needs axis= where a size is not known. Received: {a!r}")
    axes = [i for i, dim in enumerate(dims) if dim == 1] if axis is None else sorted(axes_of(axis, len(dims)))
    return apply("Squeeze", a, squeeze_dims=axes) if axes else symbolic(a)


@implements("broadcast_to")
def broadcast_to(array: Any, shape: Any) -> Any:
    """The elements repeated to a shape."""
    return apply("BroadcastTo", array, size_operand(shape if isinstance(shape, tuple | list) else (shape,)))


@implements("broadcast_arrays")
def broadcast_arrays(*args: Any) -> Any:
    """Arrays repeated to the shape they have together."""
    dims = [static_shape(x) for x in args]
    if any(None in each for each in dims):
        raise TraceError("numpy.broadcast_arrays needs known sizes; operators broadcast by themselves.")
    shape = np.broadcast_shapes(*dims)  # type: ignore[arg-type]
    return tuple(broadcast_to(x, shape) for x in args)


@implements("atleast_1d")
def atleast_1d(*arys: Any) -> Any:
    """One axis at least."""
    found = tuple(reshape(x, (1,)) if rank(x) == 0 else symbolic(x) for x in arys)
    return found[0] if len(found) == 1 else found


@implements("atleast_2d")
def atleast_2d(*arys: Any) -> Any:
    """Two axes at least."""
    found = tuple(expand_dims(x, tuple(range(2 - rank(x)))) if rank(x) < 2 else symbolic(x) for x in arys)
    return found[0] if len(found) == 1 else found


@implements("flip")
def flip(m: Any, axis: Any = None) -> Any:
    """The elements of axes in reverse order."""
    return apply("ReverseV2", m, ints(axes_of(axis, rank(m))))


@implements("fliplr")
def fliplr(m: Any) -> Any:
    """The second axis in reverse order."""
    return flip(m, 1)


@implements("flipud")
def flipud(m: Any) -> Any:
    """The first axis in reverse order."""
    return flip(m, 0)


@implements("roll")
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """The elements moved on along axes, those that leave coming back in front."""
    if axis is None:
        return reshape(apply("Roll", ravel(a), ints(shift), ints(0)), shape_of(a))
    axes = [axis_of(i, rank(a)) for i in (axis if isinstance(axis, tuple | list) else (axis,))]
    shifts = list(shift) if isinstance(shift, tuple | list) else [shift] * len(axes)
    return apply("Roll", a, ints(shifts), ints(axes))


@implements("tile")
def tile(A: Any, reps: Any) -> Any:
    """The array repeated along its axes."""
    counts = list(reps) if isinstance(reps, tuple | list) else [reps]
    ndim = rank(A)
    if len(counts) > ndim:
        A = expand_dims(A, tuple(range(len(counts) - ndim)))
    return apply("Tile", A, size_operand([1] * (ndim - len(counts)) + counts))


@implements("repeat")
def repeat(a: Any, repeats: int, axis: Any = None) -> Any:
    """Each element several times."""
    if not isinstance(repeats, int | np.integer):
        raise TraceError(f"numpy.repeat on symbolic arrays takes one number of times for all elements. Received: {repeats!r}")
    if axis is None:
        a, axis = ravel(a), 0
    i = axis_of(axis, rank(a))
    dims = list(shape_of(a))
    wide = apply("Tile", expand_dims(a, i + 1), ints([int(repeats) if k == i + 1 else 1 for k in range(len(dims) + 1)]))
    return reshape(wide, [*dims[:i], dims[i] * int(repeats), *dims[i + 1 :]])


def _filled(a: Any, value: Any, dtype: Any, shape: Any) -> SymbolicArray:
    kind = np.dtype(kind_of(a) if dtype is None else dtype)
    dims: Sequence[Any] = shape_of(a) if shape is None else shape if isinstance(shape, tuple | list) else (shape,)
    return apply("Fill", size_operand(dims), symbolic(value, kind))


@implements("empty_like")
def empty_like(prototype: Any, dtype: Any = None, shape: Any = None) -> Any:
    """Zeros in the shape of an array: graphs have no numbers that nobody wrote."""
    return _filled(prototype, 0, dtype, shape)


@implements("zeros_like")
def zeros_like(a: Any, dtype: Any = None, shape: Any = None) -> Any:
    """Zeros in the shape of an array."""
    return _filled(a, 0, dtype, shape)


@implements("ones_like")
def ones_like(a: Any, dtype: Any = None, shape: Any = None) -> Any:
    """Ones in the shape of an array."""
    return _filled(a, 1, dtype, shape)


@implements("full_like")
def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Any:
    """A number in the shape of an array."""
    return _filled(a, fill_value, dtype, shape)


@implements("shape")
def shape(a: Any) -> Any:
    """The sizes."""
    return shape_of(a)


@implements("ndim")
def ndim(a: Any) -> Any:
    """The number of dimensions."""
    return rank(a)


@implements("size")
def size(a: Any, axis: Any = None) -> Any:
    """The number of elements, or the size of an axis."""
    return symbolic(a).size if axis is None else shape_of(a)[axis_of(axis, rank(a))]


@implements("copy")
def copy(a: Any) -> Any:
    """The array itself, which nothing can change."""
    return symbolic(a)


@implements("astype")
def astype(x: Any, dtype: Any, /) -> Any:
    """The elements as another dtype."""
    return cast(x, np.dtype(dtype))


@implements("real")
def real(val: Any) -> Any:
    """The array itself: symbolic arrays are real."""
    return symbolic(val)


@implements("tril")
def tril(m: Any, k: int = 0) -> Any:
    """Zeros above a diagonal."""
    return _band(m, lambda rows, columns: columns - rows <= k)


@implements("triu")
def triu(m: Any, k: int = 0) -> Any:
    """Zeros below a diagonal."""
    return _band(m, lambda rows, columns: columns - rows >= k)


def _band(m: Any, keeps: Any) -> SymbolicArray:
    dims = shape_of(m)[-2:]
    if not all(isinstance(dim, int) for dim in dims) or len(dims) < 2:
        raise TraceError(f"numpy.tril and numpy.triu need a matrix of known sizes. Received: {m!r}")
    rows, columns = np.arange(dims[0])[:, None], np.arange(dims[1])
    return apply("SelectV2", keeps(rows, columns), m, np.zeros((), kind_of(m)))
