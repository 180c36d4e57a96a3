"""Products of matrices. Floats are multiplied in float32 (float64 stays), integers exactly."""

from typing import Any

from .call import Call
from .registry import kernel
from .room import check_broadcast

#: Over fewer columns at a time, float64 is faster.
_LEAST_STEP = 128


def product(xp: Any, a: Any, b: Any) -> Any:
    """Return the matrix product; that of integers wraps as in C."""
    if a.ndim > 1 and b.ndim > 1:
        check_broadcast(xp, a[..., :1], b[..., :1, :])  # which have the shape of the product
    if a.dtype.kind not in "iu":
        return xp.matmul(a, b)
    if a.dtype.itemsize <= 4 and a.shape[-1] << 8 * a.dtype.itemsize + 8 * b.dtype.itemsize < 1 << 53:
        return xp.matmul(a.astype(xp.float64), b.astype(xp.float64)).astype(xp.int64).astype(a.dtype)
    return xp.matmul(a, b)


def integer_product(xp: Any, a: Any, b: Any) -> Any:
    """Return the product of matrices of integers below 2**16, as int64.

    Computed in floating point, whose matrix products are fast, and exact: in float32 over so many columns that no sum reaches
    2**24, else in float64.
    """
    if not a.size or not b.size:
        return xp.matmul(a.astype(xp.int64), b.astype(xp.int64))
    depth, most = a.shape[-1], max(1, _largest(a) * _largest(b))
    step = (1 << 24) // most
    if step >= depth:
        return xp.matmul(a.astype(xp.float32), b.astype(xp.float32)).astype(xp.int64)
    if step < _LEAST_STEP or a.ndim < 2 or b.ndim < 2:
        return xp.matmul(a.astype(xp.float64), b.astype(xp.float64)).astype(xp.int64)
    total: Any = 0
    for start in range(0, depth, step):
        part = slice(start, start + step)
        total = total + xp.matmul(a[..., part].astype(xp.float32), b[..., part, :].astype(xp.float32)).astype(xp.int64)
    return total


def _largest(x: Any) -> int:
    return max(-int(x.min()), int(x.max()))


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
    """Return 8- or 16-bit integers less their zero point: one number, or one for each place of ``axis``.

    The result is int32; the operand itself where there is nothing to take away.
    """
    if zero_point is None or not zero_point.any():
        return x
    zero_point = zero_point.astype(xp.int32)
    if zero_point.ndim == 1 and zero_point.size > 1:
        zero_point = zero_point.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
    elif zero_point.size == 1:
        zero_point = zero_point.reshape(())
    return xp.subtract(x, zero_point, dtype=xp.int32)


@kernel("MatMulInteger")
def _matmul_integer(call: Call, a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Any:
    xp = call.xp
    a, b = centred(xp, a, a_zero, -2), centred(xp, b, b_zero, -1)
    return integer_product(xp, a, b).astype(xp.int32)
