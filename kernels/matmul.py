"""Products of matrices. Floats are multiplied in float32 (float64 stays), integers exactly."""

from typing import Any, NamedTuple

from .call import Call
from .registry import kernel
from .room import check_broadcast


def product(xp: Any, a: Any, b: Any) -> Any:
    """Return the matrix product; that of integers wraps as in C."""
    if a.ndim > 1 and b.ndim > 1:
        check_broadcast(xp, a[..., :1], b[..., :1, :])  # which have the shape of the product
    if a.dtype.kind not in "iu":
        if a.ndim > 2 and b.ndim == 2 and a.flags.c_contiguous:  # one product, not one for each matrix
            return xp.matmul(a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[1])
        return xp.matmul(a, b)
    if a.dtype.itemsize <= 4 and a.shape[-1] << 8 * a.dtype.itemsize + 8 * b.dtype.itemsize < 1 << 53:
        return xp.matmul(a.astype(xp.float64), b.astype(xp.float64)).astype(xp.int64).astype(a.dtype)
    return xp.matmul(a, b)


class Integers(NamedTuple):
    """A right operand of integers below 2**17 in size, ready to be multiplied.

    Attributes:
        values: The integers as float32, which holds them exactly.
        reach: The largest sum of their sizes in a column: times the largest number on the left, no product is larger.
    """

    values: Any
    reach: float


def integers(xp: Any, x: Any, zero_point: Any = None) -> Integers:
    """Return 8- or 16-bit integers less their zero point, one number or one for each column, as :class:`Integers`."""
    values = centred(xp, x, zero_point, -1)
    sizes = xp.abs(values)
    return Integers(values, float(sizes.sum(-2 if x.ndim > 1 else -1, dtype=xp.float64).max(initial=0)))


def centred(xp: Any, x: Any, zero_point: Any, axis: int) -> Any:
    """Return 8- or 16-bit integers less their zero point, one number or one for each place of ``axis``, as float32."""
    x = x.astype(xp.float32)
    if zero_point is None or not zero_point.any():
        return x
    if zero_point.ndim == 1 and zero_point.size > 1:
        zero_point = zero_point.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
    elif zero_point.size == 1:
        zero_point = zero_point.reshape(())
    elif axis == -1 and zero_point.ndim == x.ndim - 1:  # one for each column of each matrix
        zero_point = zero_point[..., None, :]
    x -= zero_point.astype(xp.float32)
    return x


def integer_product(xp: Any, a: Any, b: Integers) -> Any:
    """Return the product of matrices of integers, ``a`` as :func:`centred` returns it, as int64.

    Computed in floating point, whose matrix products are fast, and exact: in float32 where no sum reaches 2**24, else in float64.
    """
    if float(xp.abs(a).max(initial=0)) * b.reach < 1 << 24:
        return product(xp, a, b.values).astype(xp.int64)
    return product(xp, a.astype(xp.float64), b.values.astype(xp.float64)).astype(xp.int64)


def kept_integers(call: Call, x: Any, zero_point: Any, *places: int) -> Integers:
    """Return :func:`integers`, made once where both are constants; ``places`` are those of the operands."""
    kept: Integers = call.kept(lambda: integers(call.xp, x, zero_point), *places)
    return kept


@kernel("MatMul")
def _matmul(call: Call, a: Any, b: Any) -> Any:
    return product(call.xp, a, b)


def gemm(call: Call, a: Any, b: Any, c: Any = None) -> Any:
    """Return ``alpha * A @ B + beta * C``, with ``alpha``, ``beta``, ``transA`` and ``transB`` of the node."""
    a = a.T if call.attr("transA", 0) else a
    b = b.T if call.attr("transB", 0) else b
    result = product(call.xp, a, b)
    alpha, beta = call.attr("alpha", 1.0), call.attr("beta", 1.0)
    if alpha != 1:
        result = result * (result.dtype.type(alpha) if result.dtype.kind == "f" else alpha)
    if c is not None and beta:
        result = result + (c if beta == 1 else c * (c.dtype.type(beta) if c.dtype.kind == "f" else beta))
    return result


kernel("Gemm")(gemm)


@kernel("Einsum")
def _einsum(call: Call, *operands: Any) -> Any:
    return call.xp.einsum(call.attr("equation").replace(" ", ""), *operands, optimize=len(operands) > 1)


@kernel("Det")
def _det(call: Call, x: Any) -> Any:
    return call.xp.linalg.det(x)


@kernel("MatMulInteger")
def _matmul_integer(call: Call, a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Any:
    return integer_product(call.xp, centred(call.xp, a, a_zero, -2), kept_integers(call, b, b_zero, 1, 3)).astype(call.xp.int32)
