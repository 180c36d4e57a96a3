"""TensorFlow: stacks of matrices: their bands and diagonals, factors, inverses and solutions."""

from collections.abc import Callable
from typing import Any

from ..graph.errors import KernelError
from .call import Call
from .registry import kernel
from .shape import ints


def _matrices(call: Call, x: Any, is_square: bool = False) -> None:
    if x.ndim < 2 or (is_square and x.shape[-1] != x.shape[-2]):
        text = "square matrices" if is_square else "matrices"
        raise KernelError(f"{call.node.op_type} takes {text}. Received: shape {list(x.shape)}")


def adjoint(x: Any) -> Any:
    """Return the conjugate transposes of matrices."""
    x = x.swapaxes(-1, -2)
    return x.conj() if x.dtype.kind == "c" else x


@kernel("tf:MatrixBandPart", "tf:BatchMatrixBandPart", moves=True)
def _band_part(call: Call, x: Any, lower: Any, upper: Any) -> Any:
    """Keep so many diagonals below and above the main one, all where the number is negative; the rest becomes 0."""
    _matrices(call, x)
    xp = call.xp
    below = xp.arange(x.shape[-2])[:, None] - xp.arange(x.shape[-1])
    low, high = int(lower), int(upper)
    kept = xp.ones(below.shape, bool)
    if low >= 0:
        kept &= below <= low
    if high >= 0:
        kept &= -below <= high
    return xp.where(kept, x, xp.zeros((), dtype=x.dtype))


def _places(call: Call, rows: int, columns: int, k: Any) -> tuple[Any, Any, Any]:
    """Return row and column of each element of the diagonals ``k``, highest first, and whether there is such an element."""
    xp = call.xp
    low, high = (ints(k) * 2)[:2]
    limits = (-rows, columns)
    if low > high or not (limits[0] < low or low == 0) or not (high < limits[1] or high == 0):
        raise KernelError(
            f"{call.node.op_type}: a matrix of {rows} by {columns} has no such diagonals. Received: {low} to {high}"
        )
    diagonal = xp.arange(high, low - 1, -1)[:, None]
    lengths = xp.minimum(rows + xp.minimum(diagonal, 0), columns - xp.maximum(diagonal, 0))
    longest = int(lengths.max())
    above, _, below = str(call.attr("align", "LEFT_LEFT")).partition("_")
    is_left = (diagonal >= 0) & (above == "LEFT") | (diagonal <= 0) & (below == "LEFT")
    i = xp.arange(longest) - xp.where(is_left, 0, longest - lengths)
    return i + xp.maximum(-diagonal, 0), i + xp.maximum(diagonal, 0), (i >= 0) & (i < lengths)


@kernel("tf:MatrixDiagPart", "tf:BatchMatrixDiagPart", "tf:MatrixDiagPartV2", "tf:MatrixDiagPartV3", moves=True)
def _diag_part(call: Call, x: Any, k: Any = None, padding: Any = None) -> Any:
    """Return diagonals, an axis of them if there are several, padded to the longest."""
    _matrices(call, x)
    xp = call.xp
    rows, columns, exists = _places(call, x.shape[-2], x.shape[-1], xp.zeros(1, xp.int32) if k is None else k)
    found = (
        x[..., xp.where(exists, rows, 0), xp.where(exists, columns, 0)]
        if x.size
        else xp.zeros((*x.shape[:-2], *rows.shape), x.dtype)
    )
    if not exists.all():
        found = xp.where(exists, found, padding.astype(x.dtype))
    return found[..., 0, :] if rows.shape[0] == 1 else found


def _set_diagonals(call: Call, x: Any, diagonals: Any, k: Any) -> Any:
    """Return ``x`` with its diagonals ``k`` overwritten."""
    rows, columns, exists = _places(call, x.shape[-2], x.shape[-1], k)
    wanted = (*x.shape[:-2], *(rows.shape if rows.shape[0] > 1 else rows.shape[1:]))
    if diagonals.shape != wanted:
        raise KernelError(f"{call.node.op_type}: the diagonals have shape {list(wanted)}. Received: {list(diagonals.shape)}")
    result = x.copy()
    result[..., rows[exists], columns[exists]] = diagonals.reshape(*x.shape[:-2], *rows.shape)[..., exists]
    return result


@kernel("tf:MatrixSetDiag", "tf:BatchMatrixSetDiag", "tf:MatrixSetDiagV2", "tf:MatrixSetDiagV3", moves=True)
def _set_diag(call: Call, x: Any, diagonals: Any, k: Any = None) -> Any:
    _matrices(call, x)
    return _set_diagonals(call, x, diagonals, call.xp.zeros(1, call.xp.int32) if k is None else k)


@kernel("tf:MatrixDiag", "tf:BatchMatrixDiag", "tf:MatrixDiagV2", "tf:MatrixDiagV3", moves=True)
def _diag(call: Call, x: Any, k: Any = None, rows: Any = None, columns: Any = None, padding: Any = None) -> Any:
    """Return matrices that have the given diagonals, and elsewhere the padding."""
    xp = call.xp
    k = xp.zeros(1, xp.int32) if k is None else k
    low, high = (ints(k) * 2)[:2]
    batch = x.shape[: -1 if low == high else -2]
    least = x.shape[-1] - min(high, 0), x.shape[-1] + max(low, 0)
    given = [-1 if n is None else int(n) for n in (rows, columns)]
    if given == [-1, -1]:
        sizes = [max(least)] * 2
    else:
        sizes = [most if size == -1 else size for most, size in zip(least, given, strict=True)]
    fill = xp.zeros((), x.dtype) if padding is None else padding.astype(x.dtype)
    return _set_diagonals(call, xp.full((*batch, *sizes), fill, dtype=x.dtype), x, k)


@kernel("tf:Diag", moves=True)
def _tensor_diag(call: Call, x: Any) -> Any:
    """Return a tensor of twice the rank that has the elements on its diagonal."""
    result = call.xp.zeros((x.size, x.size), dtype=x.dtype)
    places = call.xp.arange(x.size)
    result[places, places] = x.reshape(-1)
    return result.reshape(*x.shape, *x.shape)


@kernel("tf:DiagPart", moves=True)
def _tensor_diag_part(call: Call, x: Any) -> Any:
    half = x.shape[: x.ndim // 2]
    if half * 2 != x.shape:
        raise KernelError(f"DiagPart: both halves of the shape are the same. Received: {list(x.shape)}")
    count = call.xp.arange(half and int(x.size**0.5 + 0.5))
    return x.reshape(count.size, count.size)[count, count].reshape(half)


@kernel("tf:Cross")
def _cross(call: Call, a: Any, b: Any) -> Any:
    if a.shape != b.shape or a.shape[-1:] != (3,):
        raise KernelError(f"Cross takes vectors of 3 elements. Received: shapes {list(a.shape)} and {list(b.shape)}")
    (a0, a1, a2), (b0, b1, b2) = (call.xp.moveaxis(x, -1, 0) for x in (a, b))
    return call.xp.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis=-1)


def _solved(function: Callable[..., Any], call: Call, *operands: Any) -> Any:
    """Return what ``function`` of numpy.linalg does; say which op it could not do."""
    try:
        return function(*operands)
    except call.xp.linalg.LinAlgError as error:
        raise KernelError(f"{call.node.op_type} has no result: {error}.") from None


@kernel("tf:Cholesky", "tf:BatchCholesky")
def _cholesky(call: Call, x: Any) -> Any:
    _matrices(call, x, is_square=True)
    return _solved(call.xp.linalg.cholesky, call, x)


@kernel("tf:CholeskyGrad", "tf:BatchCholeskyGrad")
def _cholesky_grad(call: Call, factor: Any, dy: Any) -> Any:
    """Return the gradient of a matrix from that of its lower factor.

    Source of the method: Murray, "Differentiation of the Cholesky decomposition".
    """
    xp = call.xp
    _matrices(call, factor, is_square=True)
    inner = xp.tril(adjoint(factor) @ xp.tril(dy))
    places = xp.arange(factor.shape[-1])
    inner[..., places, places] /= 2
    inverse = _solved(xp.linalg.inv, call, factor)
    outer = adjoint(inverse) @ inner @ inverse
    return (outer + adjoint(outer)) / outer.dtype.type(2)


@kernel("tf:MatrixInverse", "tf:BatchMatrixInverse")
def _inverse(call: Call, x: Any) -> Any:
    _matrices(call, x, is_square=True)
    return _solved(call.xp.linalg.inv, call, adjoint(x) if call.attr("adjoint") else x)


@kernel("tf:MatrixDeterminant", "tf:BatchMatrixDeterminant")
def _determinant(call: Call, x: Any) -> Any:
    _matrices(call, x, is_square=True)
    return call.xp.linalg.det(x)


@kernel("tf:LogMatrixDeterminant")
def _log_determinant(call: Call, x: Any) -> Any:
    _matrices(call, x, is_square=True)
    return tuple(call.xp.linalg.slogdet(x))


@kernel("tf:MatrixSolve", "tf:BatchMatrixSolve")
def _solve(call: Call, x: Any, y: Any) -> Any:
    _matrices(call, x, is_square=True)
    _matrices(call, y)
    return _solved(call.xp.linalg.solve, call, adjoint(x) if call.attr("adjoint") else x, y)


@kernel("tf:MatrixTriangularSolve", "tf:BatchMatrixTriangularSolve")
def _triangular_solve(call: Call, x: Any, y: Any) -> Any:
    _matrices(call, x, is_square=True)
    _matrices(call, y)
    triangle = call.xp.tril(x) if call.attr("lower", True) else call.xp.triu(x)
    return _solved(call.xp.linalg.solve, call, adjoint(triangle) if call.attr("adjoint") else triangle, y)


@kernel("tf:Qr")
def _qr(call: Call, x: Any) -> Any:
    _matrices(call, x)
    return tuple(call.xp.linalg.qr(x, "complete" if call.attr("full_matrices") else "reduced"))


@kernel("tf:Svd", "tf:BatchSvd")
def _svd(call: Call, x: Any) -> Any:
    """Return singular values, and the factors U and V where they are asked for."""
    _matrices(call, x)
    if not call.attr("compute_uv", True):
        empty = call.xp.zeros(0, dtype=x.dtype)
        return call.xp.linalg.svd(x, compute_uv=False), empty, empty
    u, s, v = _solved(lambda m: call.xp.linalg.svd(m, full_matrices=call.attr("full_matrices", False)), call, x)
    return s, u, adjoint(v)


@kernel("tf:SelfAdjointEigV2", "tf:BatchSelfAdjointEigV2")
def _eigen(call: Call, x: Any) -> Any:
    _matrices(call, x, is_square=True)
    if not call.attr("compute_v", True):
        return call.xp.linalg.eigvalsh(x), call.xp.zeros(0, dtype=x.dtype)
    return tuple(_solved(call.xp.linalg.eigh, call, x))
