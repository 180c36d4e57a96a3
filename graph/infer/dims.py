"""Arithmetic on partly known shapes.

Inside this package a shape is a plain tuple of dimensions, or None when even the rank is unknown. A dimension is a
size, a symbol (two equal symbols stand for the same size), or None when nothing is known.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..types import Dim

Dims = tuple[Dim, ...] | None

#: TensorFlow's largest rank.
MAX_RANK = 254
#: The largest size a dimension can have.
MAX_DIM = 2**63 - 1
#: Contents of integer tensors are followed up to this many elements.
MAX_CONTENT = 64


class Element(NamedTuple):
    """What a handle (variable, tensor list, tensor array, function-scoped state) holds.

    Attributes:
        dims: Shape of the variable, or of each element of the list.
        length: Number of elements of a list.
    """

    dims: Dims
    length: Dim = None


#: What is known about the elements of a value: the integers of a small tensor in row-major order, or what a handle holds.
Content = tuple[Dim, ...] | Element | None


class Conflict(Exception):
    """Two shapes that must agree do not; the rule's caller says where."""


def show(dims: Dims) -> str:
    """Return the text of a shape, as in error messages: ``[2,?,n]`` or ``[*]``."""
    return "[*]" if dims is None else "[" + ",".join("?" if dim is None else str(dim) for dim in dims) + "]"


def merge_dim(a: Dim, b: Dim) -> Dim:
    """Return what is known of a size when both ``a`` and ``b`` describe it."""
    if a == b or b is None:
        return a
    if a is None:
        return b
    if isinstance(a, int):
        if isinstance(b, int):
            raise Conflict(f"{a} and {b} should be equal")
        return a
    # A size says more than a symbol. Of two symbols that are equal from here on, the first stays.
    return b if isinstance(b, int) else a


def merge(a: Dims, b: Dims) -> Dims:
    """Return what is known of a shape that both ``a`` and ``b`` describe.

    Raises:
        Conflict: If no shape fits both.
    """
    if a is None or a == b:
        return b
    if b is None:
        return a
    if len(a) != len(b):
        raise Conflict(f"{show(a)} and {show(b)} should be the same shape, but their ranks differ")
    try:
        return tuple(map(merge_dim, a, b))
    except Conflict as conflict:
        raise Conflict(f"{show(a)} and {show(b)} should be the same shape: {conflict}") from None


def join(a: Dims, b: Dims) -> Dims:
    """Return what holds for a value that has either shape."""
    if a == b:
        return a
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))


def join_content(a: Content, b: Content) -> Content:
    """Return what holds for the elements of a value that is one or the other."""
    if a == b:
        return a
    if isinstance(a, Element) and isinstance(b, Element):
        return Element(join(a.dims, b.dims), a.length if a.length == b.length else None)
    if a is None or b is None or isinstance(a, Element) or isinstance(b, Element) or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))


def broadcast_dim(a: Dim, b: Dim) -> Dim:
    """Return the size that two sizes broadcast to."""
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    if isinstance(a, int) and isinstance(b, int):
        raise Conflict(f"sizes {a} and {b} do not broadcast (they differ and neither is 1)")
    # An unknown size broadcasts with a size other than 1 to that size.
    if isinstance(a, int):
        return a
    if isinstance(b, int):
        return b
    return None


def broadcast(a: Dims, b: Dims) -> Dims:
    """Return the shape that two shapes broadcast to, as NumPy and TensorFlow define it.

    Raises:
        Conflict: If they do not broadcast.
    """
    if a is None or b is None:
        return None
    if len(a) < len(b):
        a, b = b, a
    lead = len(a) - len(b)
    if a[lead:] == b:
        return a
    return a[:lead] + tuple(map(broadcast_dim, a[lead:], b))


def product(sizes: Iterable[Dim]) -> Dim:
    """Return the product; a single symbol survives among ones, and any 0 makes it 0."""
    total = 1
    other: list[Dim] = []
    for size in sizes:
        if isinstance(size, int):
            total *= size
        else:
            other.append(size)
    if not other or total == 0:
        return total
    return other[0] if total == 1 and len(other) == 1 else None


def add_dim(a: Dim, b: Dim) -> Dim:
    """Return ``a + b``."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return a if b == 0 else b if a == 0 else None


def sub_dim(a: Dim, b: Dim) -> Dim:
    """Return ``a - b``."""
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    return a if b == 0 else 0 if a is not None and a == b else None


def mul_dim(a: Dim, b: Dim) -> Dim:
    """Return ``a * b``."""
    return product((a, b))


def floordiv_dim(a: Dim, b: Dim) -> Dim:
    """Return ``a // b``, None when ``b`` is 0 or unknown."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b else None
    return a if b == 1 else 1 if a is not None and a == b and a != 0 else None


def divide_exact(a: Dim, b: int) -> Dim:
    """Return ``a / b``.

    Raises:
        Conflict: If ``b`` does not divide ``a``.
    """
    if not isinstance(a, int):
        return a if b == 1 else None
    if b <= 0 or a % b:
        raise Conflict(f"{a} is not divisible by {b}")
    return a // b


def axis_index(axis: int, rank: int) -> int:
    """Return ``axis`` counted from the front.

    Raises:
        Conflict: If it does not lie in ``[-rank, rank)``.
    """
    if not -rank <= axis < rank:
        raise Conflict(f"axis {axis} is outside of a rank {rank} tensor")
    return axis % rank


def with_rank(dims: Dims, rank: int) -> tuple[Dim, ...]:
    """Return ``dims`` as a shape of rank ``rank``; an unknown shape gives unknown sizes.

    Raises:
        Conflict: If its rank is another.
    """
    if dims is None:
        return (None,) * rank
    if len(dims) != rank:
        raise Conflict(f"{show(dims)} should have rank {rank}")
    return dims


def check_vector(dims: Dims) -> Dim:
    """Return the length of a vector."""
    return with_rank(dims, 1)[0]


def replaced(dims: Sequence[Dim], axis: int, size: Dim) -> tuple[Dim, ...]:
    """Return ``dims`` with one size replaced."""
    return (*dims[:axis], size, *dims[axis + 1 :])
