"""Ops of ONNX Runtime that are small and belong nowhere else."""

from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .registry import kernel

if TYPE_CHECKING:
    from .call import Call


@kernel("com.microsoft:ExpandDims", moves=True)
def expand_dims(call: "Call", x: Any, axis: Any) -> Any:
    """A new axis of 1."""
    return call.xp.expand_dims(x, int(axis.reshape(-1)[0]))


@kernel("com.microsoft:UnfoldTensor", moves=True)
def unfold(call: "Call", x: Any) -> Any:
    """All slices of ``size`` along ``dim``, ``step`` apart; a new last axis runs along the slice."""
    axis = call.attr("dim", -1) % x.ndim
    windows = call.xp.lib.stride_tricks.sliding_window_view(x, call.attr("size"), axis=axis)
    return call.xp.ascontiguousarray(windows[(slice(None),) * axis + (slice(None, None, call.attr("step", 1)),)])


@kernel("com.microsoft:IsAllFinite")
def is_all_finite(call: "Call", *tensors: Any) -> Any:
    """Whether no element is infinite or NaN, or only one of these as attributes say."""
    xp = call.xp
    test = xp.isnan if call.attr("isnan_only", 0) else xp.isinf if call.attr("isinf_only", 0) else lambda x: ~xp.isfinite(x)
    return xp.asarray(not any(bool(test(x).any()) for x in tensors))


@kernel("com.microsoft:MulInteger")
def mul_integer(call: "Call", a: Any, a_zero: Any, b: Any, b_zero: Any = None) -> Any:
    """Product of 8-bit integers less their zero points."""
    a, b, i32 = a.astype(call.xp.int32), b.astype(call.xp.int32), call.xp.int32
    return (a if a_zero is None else a - a_zero.astype(i32)) * (b if b_zero is None else b - b_zero.astype(i32))


@kernel("com.microsoft:Inverse")
def inverse(call: "Call", x: Any) -> Any:
    """Inverse of each matrix.

    Raises:
        KernelError: If one is singular.
    """
    xp = call.xp
    try:
        return xp.linalg.inv(x.astype(xp.float64)).astype(x.dtype)
    except xp.linalg.LinAlgError as error:
        raise KernelError(f"Op Inverse cannot invert its matrix: {error}.") from error


@kernel("com.microsoft:CDist")
def cdist(call: "Call", a: Any, b: Any) -> Any:
    """Distance of each row of ``a`` from each row of ``b``: ``metric`` is sqeuclidean or euclidean."""
    xp, metric = call.xp, call.attr("metric", "sqeuclidean")
    if metric not in ("sqeuclidean", "euclidean"):
        raise KernelError(f"Op CDist knows the metrics sqeuclidean and euclidean. Received: {metric!r}")
    squares = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2 * (a @ b.T)
    squares = xp.maximum(squares, 0)
    return xp.sqrt(squares) if metric == "euclidean" else squares


@kernel("com.microsoft:Unique")
def unique(call: "Call", x: Any) -> tuple[Any, Any, Any]:
    """Distinct elements in the order in which they first appear, the index of each element among them, and their counts."""
    xp = call.xp
    values, first, inverse_, counts = xp.unique(x.reshape(-1), return_index=True, return_inverse=True, return_counts=True)
    order = xp.argsort(first)
    rank = xp.empty_like(order)
    rank[order] = xp.arange(order.size)
    return values[order], rank[inverse_.reshape(-1)].astype(xp.int64), counts[order].astype(xp.int64)


@kernel("com.microsoft:NGramRepeatBlock")
def ngram_repeat_block(call: "Call", ids: Any, scores: Any) -> Any:
    """Set to -inf the scores of tokens that would complete an n-gram which a sequence already has."""
    xp, n = call.xp, call.attr("ngram_size")
    result = scores.copy()
    if n < 1 or ids.shape[1] < n:
        return result
    grams = xp.lib.stride_tricks.sliding_window_view(ids, n, axis=1)  # [batch, grams, n]
    tail = ids[:, ids.shape[1] - n + 1 :]
    batch, gram = xp.nonzero((grams[:, :, : n - 1] == tail[:, None]).all(axis=2))
    result[batch, grams[batch, gram, n - 1]] = -xp.inf
    return result


@kernel("com.microsoft:ComplexMul")
def complex_mul(call: "Call", a: Any, b: Any) -> Any:
    """Product of complex numbers whose parts are the last axis."""
    return _complex_mul(call.xp, a[..., 0], a[..., 1], b[..., 0], b[..., 1])


@kernel("com.microsoft:ComplexMulConj")
def complex_mul_conj(call: "Call", a: Any, b: Any) -> Any:
    """Product with the conjugate of ``b``."""
    return _complex_mul(call.xp, a[..., 0], a[..., 1], b[..., 0], -b[..., 1])


def _complex_mul(xp: Any, a: Any, ai: Any, b: Any, bi: Any) -> Any:
    return xp.stack([a * b - ai * bi, a * bi + ai * b], axis=-1)
