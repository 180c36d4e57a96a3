"""Nodes from operands of any kind: symbolic arrays, variables, NumPy arrays and Python's numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtypes import DType, dtype_of_array
from ..errors import TraceError
from ..graph import Value
from .array import SymbolicArray
from .context import Trace, current
from .variable import Variable


def is_symbolic(x: Any) -> bool:
    """Whether something is an array whose elements are known only when the graph runs."""
    return isinstance(x, SymbolicArray | Variable)


def kind_of(x: Any) -> Any:
    """Return what NumPy's promotion sees of an operand: a dtype, or ``int``, ``float`` or ``complex`` for a Python number."""
    if isinstance(x, SymbolicArray) and x.weak:
        return float if x.dtype.kind == "f" else int
    if isinstance(x, SymbolicArray | Variable):
        return x.dtype
    if type(x) in (int, float, complex):
        return type(x)
    return np.asarray(x).dtype


def common_dtype(*operands: Any) -> "np.dtype[Any]":
    """Return the dtype that NumPy gives what is made of all these operands."""
    kinds = [kind_of(x) for x in operands]
    return np.result_type(*(kind(0) if isinstance(kind, type) else kind for kind in kinds))


def value_of(x: Any, dtype: Any = None) -> Value:
    """Return the value of an operand in the graph that is being built.

    Args:
        x: A symbolic array, a variable, or what NumPy makes an array of.
        dtype: The dtype it is converted to; its own when None.

    Raises:
        TraceError: If it is no array.
    """
    trace = current()
    if isinstance(x, Variable):
        x = x.value
    if isinstance(x, SymbolicArray):
        value = trace.use(x)
        return value if dtype is None or x.dtype == dtype else _cast(trace, value, dtype_of_array(np.dtype(dtype)))
    array = np.asarray(x, dtype) if type(x) in (bool, int, float, complex, list, tuple) else np.asarray(x)
    return trace.constant(array if dtype is None else array.astype(dtype, copy=False))


def symbolic(x: Any, dtype: Any = None) -> SymbolicArray:
    """Return an operand as a symbolic array, of a dtype if one is given."""
    if isinstance(x, SymbolicArray) and (dtype is None or x.dtype == dtype):
        return x
    return SymbolicArray(value_of(x, dtype), current())


def alike(*operands: Any) -> list[SymbolicArray]:
    """Return operands as symbolic arrays of the dtype that NumPy gives what is made of all of them."""
    dtype = common_dtype(*operands)
    return [symbolic(x, dtype) for x in operands]


def cast(x: Any, dtype: "np.dtype[Any]") -> SymbolicArray:
    """Return an operand as another dtype, and no longer weak."""
    return SymbolicArray(value_of(x, dtype), current())


def _cast(trace: Trace, value: Value, dtype: DType) -> Value:
    return trace.emit("Cast", [value], types={"DstT": dtype}).outputs[0]


def apply(op_type: str, *operands: Any, types: Any = None, **attributes: Any) -> SymbolicArray:
    """Add a node; return its first result.

    Args:
        op_type: An op of TensorFlow.
        *operands: Its operands, in the dtypes that the op takes.
        types: Type variables that do not follow from the operands, as dtypes of NumPy.
        **attributes: The others; text is encoded.

    Raises:
        TraceError: If the op does not exist for a dtype.
        GraphError: If the operands' shapes do not fit.
    """
    return apply_all(op_type, *operands, types=types, **attributes)[0]


def apply_all(op_type: str, *operands: Any, types: Any = None, **attributes: Any) -> tuple[SymbolicArray, ...]:
    """Add a node; return all of its results: see :func:`apply`."""
    trace = current()
    attributes = {name: value.encode() if isinstance(value, str) else value for name, value in attributes.items()}
    dtypes = {name: dtype_of_array(np.dtype(dtype)) for name, dtype in (types or {}).items()}
    node = trace.emit(op_type, [value_of(x) for x in operands], attributes, dtypes)
    return tuple(SymbolicArray(value, trace) for value in node.outputs)


def static_shape(x: Any) -> tuple[int | None, ...]:
    """Return the sizes of an operand, None for those that are not known.

    Raises:
        TraceError: If not even their number is known.
    """
    if not isinstance(x, SymbolicArray):
        return tuple(x.shape) if isinstance(x, Variable) else np.shape(x)
    dims = x.value.shape.dims
    if dims is None:
        raise TraceError(f"The number of dimensions of {x!r} is not known.")
    return tuple(dim if isinstance(dim, int) else None for dim in dims)


def rank(x: Any) -> int:
    """Return the number of dimensions of an operand."""
    return len(static_shape(x))


def shape_of(x: Any) -> tuple[Any, ...]:
    """Return the sizes of an operand; those that are not known are symbolic and weak."""
    dims = static_shape(x)
    if None not in dims:
        return dims
    trace, value = current(), value_of(x)
    if value not in trace.sizes:
        trace.sizes[value] = apply("Shape", x, types={"out_type": np.int64})
    sizes = trace.sizes[value]
    return tuple(_size(sizes, i) if dim is None else dim for i, dim in enumerate(dims))


def _size(sizes: SymbolicArray, i: int) -> SymbolicArray:
    begin, end, step = ints([i]), ints([i + 1]), ints([1])
    found = apply("StridedSlice", sizes, begin, end, step, shrink_axis_mask=1)
    return SymbolicArray(found.value, found.trace, weak=True)


def ints(numbers: Any) -> "np.ndarray[Any, Any]":
    """Return axes, sizes or paddings as ops take them: int32."""
    return np.asarray(numbers, np.int32)


def size_operand(dims: Sequence[Any]) -> Any:
    """Return sizes, some of which may be symbolic, as one operand.

    Raises:
        TraceError: If one is no integer.
    """
    found = []
    for dim in dims:
        if isinstance(dim, SymbolicArray) and dim.dtype.kind in "iu" and rank(dim) == 0:
            found.append(dim)
        else:
            try:
                found.append(dim.__index__())
            except (AttributeError, TypeError):
                raise TraceError(f"A size is an integer. Received: {dim!r}") from None
    if not any(isinstance(dim, SymbolicArray) for dim in found):
        return np.asarray(found, np.int32 if all(abs(dim) < 2**31 for dim in found) else np.int64)
    return apply("Pack", *(cast(dim, np.dtype(np.int64)) for dim in found), N=len(found))


def axis_of(axis: Any, ndim: int) -> int:
    """Return an axis counted from the front.

    Raises:
        numpy.exceptions.AxisError: If there is no such axis.
        TraceError: If it is no integer.
    """
    if not hasattr(axis, "__index__"):
        raise TraceError(f"An axis is an integer. Received: {axis!r}")
    index: int = axis.__index__()
    if not -ndim <= index < ndim:
        raise np.exceptions.AxisError(index, ndim)
    return index % ndim


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return axes, given as an integer, several or None for all, counted from the front."""
    if axis is None:
        return tuple(range(ndim))
    found = tuple(axis_of(item, ndim) for item in (axis if isinstance(axis, tuple | list) else (axis,)))
    if len(set(found)) != len(found):
        raise TraceError(f"An axis is named twice. Received: {axis!r}")
    return found
