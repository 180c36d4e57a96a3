"""Variables: arrays that functions change and that outlive their runs."""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

import numpy as np

from ..dtypes import dtype_of_array
from ..errors import TraceError
from .array import ArrayLike, SymbolicArray
from .context import active


class Variable(ArrayLike):
    """An array that functions read and assign to.

    Outside of functions it holds a NumPy array and can be used as one. While a function is traced, reading it and assigning to
    it become nodes of the graph, which run in the order in which the function did them.

    Args:
        value: What it holds at first; its shape and dtype stay.
        name: Its name in graphs; need not be unique.
        dtype: The dtype, if it is not that of ``value``. A Python float makes float32.
        trainable: Whether optimizers that are not told which variables to change may change it.

    Example:
        >>> steps = Variable(0, name="steps")
        >>> steps.assign_add(2)
        >>> steps.value
        array(2)
    """

    __slots__ = ("_array", "name", "trainable")

    def __init__(self, value: Any, name: str = "Variable", dtype: Any = None, trainable: bool = True) -> None:
        from .structure import is_name

        if isinstance(value, SymbolicArray):
            raise TraceError(f"A variable starts with a NumPy array; make it outside of the function. Received: {value!r}")
        if not isinstance(name, str) or not is_name(name):
            raise TraceError(f"The name of a variable is of letters, digits and _.-/. Received: {name!r}")
        array = np.array(value, dtype)
        if dtype is None and array.dtype == np.float64 and not hasattr(value, "dtype"):
            array = array.astype(np.float32)
        dtype_of_array(array.dtype)
        if array.dtype.kind == "O" and not all(isinstance(item, str | bytes) for item in array.flat):
            raise TraceError(f"A variable holds numbers, truth values or text. Received: {value!r:.200}")
        array.setflags(write=False)
        self._array = array
        self.name = name
        self.trainable = trainable

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        """Make copies anew, so that theirs are arrays that nobody changes either."""
        return type(self), (self._array, self.name, self.dtype, self.trainable)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """Its sizes."""
        return self._array.shape

    @property
    def dtype(self) -> "np.dtype[Any]":  # type: ignore[override]
        """Type of its elements."""
        return self._array.dtype

    @property
    def value(self) -> Any:
        """What it holds: a symbolic array while a function is traced, else a NumPy array, which is not to be changed."""
        trace = active()
        if trace is None:
            return self._array.view()
        trace.reads.add(self)
        return SymbolicArray(trace.read(trace.handle(self), dtype_of_array(self.dtype)), trace)

    def assign(self, value: Any) -> None:
        """Let it hold something else from now on, of its shape; numbers of the same kind are converted to its dtype.

        Raises:
            TraceError: If the shape is another, or the dtype would lose more than digits.
        """
        from .operations import kind_of, static_shape, value_of

        kind = kind_of(value)
        if not np.can_cast(np.dtype(kind), self.dtype, "same_kind"):
            raise TraceError(
                f"Variable {self.name!r} holds {self.dtype}; convert with .astype() first. Received: {np.dtype(kind)}"
            )
        dims = static_shape(value)
        if len(dims) != self.ndim or any(dim not in (None, size) for dim, size in zip(dims, self.shape, strict=True)):
            raise TraceError(f"Variable {self.name!r} keeps its shape, {list(self.shape)}. Received: {list(dims)}")
        trace = active()
        if trace is None:
            set_array(self, np.array(value, self.dtype))
        else:
            trace.assign(trace.handle(self), value_of(value, self.dtype))

    def assign_add(self, value: Any) -> None:
        """Add to what it holds."""
        self.assign(self.value + value)

    def assign_sub(self, value: Any) -> None:
        """Take from what it holds."""
        self.assign(self.value - value)

    def __repr__(self) -> str:
        return f"<Variable {self.name!r} {self.dtype}{list(self.shape)}>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.value, dtype) if copy else np.asarray(self.value, dtype)

    def __array_ufunc__(self, ufunc: "np.ufunc", method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", (None,))[0]
        result = getattr(ufunc, method)(*(x.value if isinstance(x, Variable) else x for x in inputs), **kwargs)
        if out is None:
            return result
        if not isinstance(out, Variable):
            raise TraceError(f"numpy.{ufunc.__name__} writes into no array when an operand is a variable. Received: out={out!r}")
        out.assign(result)  # variable += x
        return out

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        from .structure import rebuild

        args, kwargs = rebuild((args, kwargs), lambda path, x: x.value if isinstance(x, Variable) else x)
        return func(*args, **kwargs)

    def astype(self, dtype: Any) -> Any:
        """Return what it holds as another dtype."""
        return self.value.astype(dtype)

    def __getitem__(self, index: Any) -> Any:
        return self.value[index]

    def __len__(self) -> int:
        return len(self._array)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __iter__(self) -> Any:
        return iter(self.value)


_array = attrgetter("_array")


def array_of(variable: Variable) -> "np.ndarray[Any, Any]":
    """Return the array that a variable holds, itself: for what runs graphs."""
    return variable._array


def arrays_of(variables: Iterable[Variable]) -> "Iterable[np.ndarray[Any, Any]]":
    """Iterate over the arrays that variables hold, as :func:`array_of`."""
    return map(_array, variables)


def set_array(variable: Variable, array: "np.ndarray[Any, Any]") -> None:
    """Let a variable hold an array itself, not a copy of it: for what runs graphs. Nobody can write to it any more."""
    array.setflags(write=False)
    variable._array = array


def set_arrays(variables: Iterable[Variable], arrays: "Iterable[np.ndarray[Any, Any]]") -> None:
    """Let variables hold arrays that nobody can write to, as :func:`set_array`."""
    for variable, array in zip(variables, arrays, strict=True):
        variable._array = array
