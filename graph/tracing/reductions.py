"""Sums, extremes and other functions that reduce axes, as NumPy's."""

from typing import Any

import numpy as np

from ..errors import TraceError
from .array import SymbolicArray
from .functions import implements
from .operations import apply, axes_of, axis_of, cast, ints, kind_of, rank, static_shape, symbolic


def _dtype_of(name: str, x: SymbolicArray, dtype: Any) -> "np.dtype[Any]":
    """Return the dtype that NumPy's function gives for one of ``x``'s."""
    if dtype is not None:
        wanted: np.dtype[Any] = np.dtype(dtype)
        return wanted
    found: np.dtype[Any] = getattr(np, name)(np.ones(1, x.dtype)).dtype
    return found


def reduce(op_type: str, x: Any, axis: Any, keepdims: Any) -> SymbolicArray:
    """Reduce axes with one of TensorFlow's ops."""
    return apply(op_type, x, ints(axes_of(axis, rank(x))), keep_dims=bool(keepdims))


@implements("sum")
def sum_(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    """The sum."""
    x = symbolic(a)
    return reduce("Sum", symbolic(x, _dtype_of("sum", x, dtype)), axis, keepdims)


@implements("prod")
def prod(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    """The product."""
    x = symbolic(a)
    return reduce("Prod", symbolic(x, _dtype_of("prod", x, dtype)), axis, keepdims)


@implements("mean")
def mean(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    """The arithmetic mean."""
    x = symbolic(a)
    return reduce("Mean", symbolic(x, _dtype_of("mean", x, dtype)), axis, keepdims)


@implements("var")
def var(a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: Any = False) -> Any:
    """The mean squared distance from the mean."""
    x = symbolic(a)
    x = symbolic(x, _dtype_of("var", x, dtype))
    squares = apply("Square", x - reduce("Mean", x, axis, True))
    if not ddof:
        return reduce("Mean", squares, axis, keepdims)
    count: Any = 1
    for i in axes_of(axis, rank(x)):
        count = count * x.shape[i]
    return reduce("Sum", squares, axis, keepdims) / (count - ddof)


@implements("std")
def std(a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: Any = False) -> Any:
    """The root of the variance."""
    return apply("Sqrt", var(a, axis, dtype, ddof, keepdims))


@implements("max", "amax")
def max_(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """The largest element."""
    x = symbolic(a)
    return reduce("Any" if x.dtype.kind == "b" else "Max", x, axis, keepdims)


@implements("min", "amin")
def min_(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """The smallest element."""
    x = symbolic(a)
    return reduce("All" if x.dtype.kind == "b" else "Min", x, axis, keepdims)


@implements("ptp")
def ptp(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """The distance from the smallest to the largest element."""
    return max_(a, axis, keepdims) - min_(a, axis, keepdims)


@implements("any")
def any_(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """Whether some element is true."""
    return reduce("Any", symbolic(a, bool), axis, keepdims)


@implements("all")
def all_(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """Whether every element is true."""
    return reduce("All", symbolic(a, bool), axis, keepdims)


@implements("count_nonzero")
def count_nonzero(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """How many elements are not zero."""
    return sum_(symbolic(a, bool), axis, keepdims=keepdims)


def _extreme(op_type: str, a: Any, axis: Any, keepdims: Any) -> SymbolicArray:
    x = symbolic(a)
    ndim = rank(x)
    place = apply(op_type, np.ravel(x) if axis is None else x, ints(0 if axis is None else axis_of(axis, ndim)))
    if not keepdims:
        return place
    if axis is not None:
        return apply("ExpandDims", place, ints(axis_of(axis, ndim)))
    return apply("Reshape", place, ints([1] * ndim))


@implements("argmax")
def argmax(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """Where the largest element is."""
    return _extreme("ArgMax", a, axis, keepdims)


@implements("argmin")
def argmin(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """Where the smallest element is."""
    return _extreme("ArgMin", a, axis, keepdims)


def _running(op_type: str, name: str, a: Any, axis: Any, dtype: Any) -> SymbolicArray:
    given = symbolic(a)
    x: Any = symbolic(given, _dtype_of(name, given, dtype))
    if axis is None:
        x, axis = np.ravel(x), 0
    return apply(op_type, x, ints(axis_of(axis, rank(x))))


@implements("cumsum")
def cumsum(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    """The sum of the elements so far."""
    return _running("Cumsum", "cumsum", a, axis, dtype)


@implements("cumprod")
def cumprod(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    """The product of the elements so far."""
    return _running("Cumprod", "cumprod", a, axis, dtype)


@implements("average")
def average(a: Any, axis: Any = None, weights: Any = None, *, keepdims: Any = False) -> Any:
    """The weighted mean; weights have the shape of the array."""
    if weights is None:
        return mean(a, axis, keepdims=keepdims)
    if static_shape(weights) != static_shape(a):
        raise TraceError("numpy.average on symbolic arrays takes weights of the array's shape; multiply and sum for others.")
    kind = np.result_type(kind_of(a), kind_of(weights), *([np.float64] if np.dtype(kind_of(a)).kind in "iub" else []))
    weighted = sum_(np.multiply(cast(a, kind), cast(weights, kind)), axis, keepdims=keepdims)
    return weighted / sum_(cast(weights, kind), axis, keepdims=keepdims)


@implements("linalg.norm")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    """The length of vectors: of all elements, or along one axis, also by ``ord`` 1, 2 or infinity."""
    if ord is not None and not (isinstance(axis, int) or rank(x) == 1):
        raise TraceError(
            f"numpy.linalg.norm on symbolic arrays takes ord for vectors along one axis. Received: ord={ord!r}, axis={axis!r}"
        )
    numbers = symbolic(x)
    if numbers.dtype.kind != "f":
        numbers = cast(numbers, np.dtype(np.float64))
    if ord in (None, 2):
        return apply("Sqrt", reduce("Sum", apply("Square", numbers), axis, keepdims))
    if ord in (1, np.inf):
        return reduce("Sum" if ord == 1 else "Max", apply("Abs", numbers), axis, keepdims)
    raise TraceError(f"numpy.linalg.norm on symbolic arrays takes ord None, 1, 2 or infinity. Received: {ord!r}")
