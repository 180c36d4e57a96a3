"""Shapes, tensors and the other values that nodes carry as attributes."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .dtypes import DType, find_dtype
from .errors import GraphError

if TYPE_CHECKING:
    import numpy as np

#: A dimension: a size, a symbol such as ``"batch"``, or None when unknown.
Dim = int | str | None


class Shape:
    """The shape of a tensor: a tuple of dimensions, or ``dims=None`` when even the rank is unknown.

    Args:
        dims: The dimensions.
        container: What holds tensors (or numbers) of this shape, if the value is no plain tensor: ``"seq"``, ``"optional"``,
            ``"optional(seq)"``, ``"map(i64)"``, ``"seq(map(str))"`` (with the keys' dtype) or ``"sparse"``; only ONNX has these.

    Example:
        >>> str(Shape((2, None, "n"))), str(Shape(None)), Shape((2, 3)).size
        ('[2,?,n]', '[*]', 6)
    """

    __slots__ = ("container", "dims")

    def __init__(self, dims: Iterable[Dim] | None, container: str = "") -> None:
        self.dims: tuple[Dim, ...] | None = None if dims is None else tuple(dims)
        self.container = container

    @property
    def rank(self) -> int | None:
        """Number of dimensions, or None when unknown."""
        return None if self.dims is None else len(self.dims)

    @property
    def size(self) -> int | None:
        """Number of elements, or None when a dimension is unknown."""
        if self.dims is None:
            return None
        size = 1
        for dim in self.dims:
            if not isinstance(dim, int):
                return None
            size *= dim
        return size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shape) and self.dims == other.dims and self.container == other.container

    def __hash__(self) -> int:
        return hash(self.dims)

    def __str__(self) -> str:
        if self.dims is None:
            return "[*]"
        return "[" + ",".join("?" if dim is None else str(dim) for dim in self.dims) + "]"

    def __repr__(self) -> str:
        return f"Shape({self.dims!r})"


UNKNOWN = Shape(None)


class Tensor:
    """A constant tensor whose bytes are read only when :meth:`array` is called.

    Args:
        dtype: Element type.
        shape: Sizes of the dimensions; all known.
        load: Returns the array; called at most when the data is needed.
        source: The file format's own form of this tensor, kept so that writing it back is lossless
            and free of conversions. Only the format that set it looks at it.
        problem: Says, without decoding, in what the stored bytes do not fit; empty where they do.
    """

    __slots__ = ("_load", "_problem", "dtype", "shape", "source")

    def __init__(
        self,
        dtype: DType,
        shape: Iterable[int],
        load: "Callable[[], np.ndarray[Any, Any]]",
        source: object = None,
        problem: Callable[[], str] | None = None,
    ) -> None:
        self.dtype = dtype
        self.shape = tuple(shape)
        self._load = load
        self.source = source
        self._problem = problem

    @staticmethod
    def of(array: Any, dtype: "DType | str | None" = None) -> "Tensor":
        """Wrap a NumPy array, number or nested list; ``dtype`` defaults to the array's own.

        Example:
            >>> Tensor.of([1.0, 2.0], "float32")
            Tensor(float32, [2])
        """
        import numpy as np

        wanted = None if dtype is None else find_dtype(dtype)
        data = np.asarray(array, dtype=None if wanted is None else wanted.numpy)
        if wanted is None:
            wanted = find_dtype("string" if data.dtype.kind in "OSU" else data.dtype.name)
        return Tensor(wanted, data.shape, lambda: data)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes the elements take when stored densely (0 for strings)."""
        return (self.size * self.dtype.bits + 7) // 8

    def array(self) -> "np.ndarray[Any, Any]":
        """Return the elements as a NumPy array of this shape; treat it as read-only.

        Raises:
            GraphError: If the stored bytes do not fit dtype and shape.
        """
        data = self._load()
        if data.shape != self.shape:
            raise GraphError(f"A constant declares shape {list(self.shape)} but stores an array of {list(data.shape)}.")
        return data

    def problem(self) -> str:
        """Return in what the stored bytes do not fit dtype and shape, as far as their number tells; else an empty string."""
        return "" if self._problem is None else self._problem()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tensor):
            return NotImplemented
        if self is other:
            return True
        if self.dtype is not other.dtype or self.shape != other.shape:
            return False
        a, b = self.array(), other.array()
        one, two = splat_of(a), splat_of(b)
        if one is not None and two is not None:
            a, b = one, two
        if self.dtype.kind == "string":
            return bool((a == b).all())
        return a.tobytes() == b.tobytes()

    def __hash__(self) -> int:
        return hash((self.dtype, self.shape))

    def __repr__(self) -> str:
        return f"Tensor({self.dtype}, {list(self.shape)})"


def splat_of(array: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any] | None":
    """Return the one element that an array stores for all of its elements, of shape ``()``; None where it stores more."""
    if array.size < 2 or any(array.strides):
        return None
    return array[(slice(0, 1),) * array.ndim].reshape(())


class FunctionRef:
    """A reference, held by an attribute, to a function of the graph's library."""

    __slots__ = ("attributes", "name")

    def __init__(self, name: str, attributes: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self.attributes: Mapping[str, Any] = attributes or {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionRef) and self.name == other.name and dict(self.attributes) == dict(other.attributes)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"FunctionRef({self.name!r})"


class Placeholder:
    """An attribute whose value the function's caller supplies under ``name``."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Placeholder) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Placeholder({self.name!r})"


class ValueType:
    """The type of a value, as an attribute holds it: element dtype, and shape with the container around it."""

    __slots__ = ("dtype", "shape")

    def __init__(self, dtype: DType | None, shape: Shape = UNKNOWN) -> None:
        self.dtype = dtype
        self.shape = shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueType) and self.dtype is other.dtype and self.shape == other.shape

    def __hash__(self) -> int:
        return hash((self.dtype, self.shape))

    def __repr__(self) -> str:
        return f"ValueType({self.dtype}, {self.shape!r})"
