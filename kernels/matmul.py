"""Products of matrices. Floats are multiplied in float32 (float64 stays), integers exactly."""

from typing import Any

from .call import Call
from .registry import kernel


def product(xp: Any, a: Any, b: Any) -> Any:
    """Return the matrix product; that of integers wraps as in C."""
    if a.dtype.kind not in "iu":
        return xp.matmul(a, b)
    if a.dtype.itemsize <= 4 and a.shape[-1] << 8 * a.dtype.itemsize + 8 * b.dtype.itemsize < 1 << 53:
        return xp.matmul(a.astype(xp.float64), b.astype(xp.float64)).astype(xp.int64).astype(a.dtype)
    return xp.matmul(a, b)


def integer_product(xp: Any, a: Any, b: Any) -> Any:
    """Return the product of matrices of integers below 2**16, as int64.

    Computed in floating point, whose matrix products are fast, and exact: in float32 where no sum reaches 2**24, else in
    float64.
    """
    if not a.size or not b.size:
        return xp.matmul(a.astype(xp.int64), b.astype(xp.int64))
    most = a.shape[-1] * int(xp.abs(a).max()) * int(xp.abs(b).max())
    dtype = xp.float32 if most <= 1 << 24 else xp.float64
    return xp.matmul(a.astype(dtype), b.astype(dtype)).astype(xp.int64)


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


def centred(xp: Any, x: Any, zero_point: Any, axis: int) -> Any:
    """Return 8- or 16-bit integers less their zero point, as int32: one number, or one for each place of ``axis``."""
    x = x.astype(xp.int32)
    if zero_point is None:
        return x
    zero_point = zero_point.astype(xp.int32)
    if zero_point.ndim == 1 and zero_point.size > 1:
        zero_point = zero_point.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
    elif zero_point.size == 1:
        zero_point = zero_point.reshape(())
    return x - zero_point


@kernel("MatMulInteger")
def _matmul_integer(call: Call, a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Any:
    xp = call.xp
    a, b = centred(xp, a, a_zero, -2), centred(xp, b, b_zero, -1)
    return integer_product(xp, a, b).astype(xp.int32)
