"""Symbolic arrays: what a traced function computes with instead of NumPy arrays."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..errors import TraceError

if TYPE_CHECKING:
    from ..graph import Value
    from .context import Trace


class ArrayLike(NDArrayOperatorsMixin):
    """Operators and methods of arrays, by the functions of NumPy that do the same."""

    __hash__ = None  # type: ignore[assignment]
    shape: tuple[Any, ...]
    dtype: "np.dtype[Any]"

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> Any:
        """Number of elements: a number, or a symbolic one where a size is not known."""
        size: Any = 1
        for dim in self.shape:
            size = size * dim
        return size

    @property
    def T(self) -> Any:
        """The array with its axes in reverse order."""
        return np.transpose(self)  # type: ignore[call-overload]

    @property
    def mT(self) -> Any:
        """The array with its last two axes exchanged."""
        return np.swapaxes(self, -1, -2)  # type: ignore[call-overload]

    def reshape(self, *shape: Any, order: str = "C") -> Any:
        """Return the elements in another shape."""
        return np.reshape(self, shape[0] if len(shape) == 1 else shape, order=order)  # type: ignore[call-overload]

    def transpose(self, *axes: Any) -> Any:
        """Return the array with its axes in another order."""
        return np.transpose(self, (axes[0] if len(axes) == 1 else axes) or None)  # type: ignore[call-overload]

    def flatten(self) -> Any:
        """Return all elements in one row."""
        return np.ravel(self)  # type: ignore[call-overload]

    def copy(self) -> Any:
        """Return the array; nothing can change it."""
        return np.copy(self)  # type: ignore[call-overload]


def _method(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    def method(self: ArrayLike, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"As ``numpy.{name}``."
    return method


for _name in [
    "sum",
    "mean",
    "var",
    "std",
    "max",
    "min",
    "prod",
    "any",
    "all",
    "argmax",
    "argmin",
    "cumsum",
    "cumprod",
    "ravel",
    "squeeze",
    "swapaxes",
    "clip",
    "take",
    "repeat",
    "dot",
    "round",
]:
    setattr(ArrayLike, _name, _method(_name))


def _inplace(ufunc: "np.ufunc") -> Any:
    def operator(self: Any, other: Any) -> Any:
        result = ufunc(self, other)
        if not np.can_cast(result.dtype, self.dtype, "same_kind"):
            raise TraceError(f"The result of an in-place {ufunc.__name__} is {result.dtype}, which {self.dtype} does not take.")
        return result.astype(self.dtype)

    return operator


class SymbolicArray(ArrayLike):
    """An array that is not known yet: it stands for a value of the graph that is being built.

    NumPy's functions and operators take it and add nodes to the graph. Decisions about its elements cannot be made in Python,
    because there are none yet. In-place operators give the name on their left to a new array, as for numbers.

    Attributes:
        value: The value of the graph.
        trace: What builds the graph.
        weak: Whether it is a size of an array, and takes on the dtype of what it is combined with, as Python's numbers do.
    """

    __slots__ = ("trace", "value", "weak")

    def __init__(self, value: "Value", trace: "Trace", weak: bool = False) -> None:
        self.value = value
        self.trace = trace
        self.weak = weak

    @property
    def dtype(self) -> "np.dtype[Any]":  # type: ignore[override]
        """Type of the elements."""
        assert self.value.dtype is not None
        return self.value.dtype.numpy

    @property
    def shape(self) -> tuple[Any, ...]:  # type: ignore[override]
        """The sizes: integers, and symbolic ones where a size is known only when the graph runs.

        Raises:
            TraceError: If not even their number is known.
        """
        from .operations import shape_of

        return shape_of(self)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """Return the elements as another dtype; floats become integers by dropping the fraction."""
        from .operations import cast

        return cast(self, np.dtype(dtype))

    def __getitem__(self, index: Any) -> Any:
        from .indexing import get_item

        return get_item(self, index)

    def __repr__(self) -> str:
        return f"<SymbolicArray {self.value.name!r} {self.value.dtype}{self.value.shape}>"

    # ---- NumPy's protocols --------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: "np.ufunc", method: str, *inputs: Any, **kwargs: Any) -> Any:
        from .ufuncs import call_ufunc

        return call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        from .functions import call_function

        return call_function(func, args, kwargs)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise TraceError(
            f"{self!r} has no elements while its function is traced, so it cannot become a NumPy array. Use numpy's functions on it "
            "(numpy.stack instead of numpy.array for a list of arrays); a function that is not supported needs its own graph op."
        )

    # ---- what depends on elements -------------------------------------------------------------------------------

    def __bool__(self) -> NoReturn:
        raise self._decided(
            "its truth is not known. Use numpy.where(condition, x, y), ampgraph.cond or ampgraph.while_loop instead of if, while, "
            "and, or, not, and assert"
        )

    def _number(self) -> NoReturn:
        raise self._decided(
            "it is not a number yet. Keep it an array: numpy's functions take arrays without dimensions where Python takes numbers"
        )

    __float__ = __int__ = __complex__ = __index__ = _number

    def __format__(self, spec: str) -> str:
        return self._number() if spec else repr(self)

    def item(self) -> NoReturn:
        """Refuse: there is no number yet."""
        self._number()

    def tolist(self) -> NoReturn:
        """Refuse: there are no numbers yet."""
        self._number()

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise TraceError(
            f"{self!r} cannot be changed in place. Make a new array: numpy.where(mask, value, x), numpy.concatenate or numpy.stack."
        )

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        size = self.shape[0]
        if not isinstance(size, int):
            raise self._decided("its first size is not known. Use x.shape[0], which may be symbolic")
        return size

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over an array without dimensions")
        if not isinstance(self.shape[0], int):
            raise self._decided(
                "it has an unknown number of elements to go through. Use numpy's functions on the whole array, or ampgraph.while_loop"
            )
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, item: Any) -> NoReturn:
        raise self._decided("whether it contains something is not known. Use numpy.any(x == item)")

    def _decided(self, why: str) -> TraceError:
        return TraceError(f"{self!r} has no elements while its function is traced: {why}.")

    __iadd__ = _inplace(np.add)
    __isub__ = _inplace(np.subtract)
    __imul__ = _inplace(np.multiply)
    __itruediv__ = _inplace(np.true_divide)
    __ifloordiv__ = _inplace(np.floor_divide)
    __imod__ = _inplace(np.remainder)
    __ipow__ = _inplace(np.power)
    __imatmul__ = _inplace(np.matmul)
    __iand__ = _inplace(np.bitwise_and)
    __ior__ = _inplace(np.bitwise_or)
    __ixor__ = _inplace(np.bitwise_xor)
