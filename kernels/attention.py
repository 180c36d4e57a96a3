"""Attention: the standard's ``Attention`` and ``FlexAttention``, and :func:`attend`, which computes every variant.

Tensors are ``[batch, heads, sequence, size]``; keys and values may have fewer heads, each then serves as many query heads
in a row. Scores, softmax and sums are computed in the operands' precision, float32 at least.
"""

from typing import TYPE_CHECKING, Any

from ..graph.dtypes import BY_ONNX
from ..graph.errors import KernelError
from ..graph.schemas.onnx_schema import capture_labels
from .registry import kernel

if TYPE_CHECKING:
    from .call import Call


def scores_of(q: Any, k: Any, scale: float) -> Any:
    """Return ``scale * q @ k^T``, ``[batch, query heads, queries, keys]``.

    Raises:
        KernelError: If the heads of ``k`` do not divide those of ``q``.
    """
    batch, heads, length, size = q.shape
    shared = k.shape[1]
    if shared == 0 or heads % shared:
        raise KernelError(f"The heads of the keys must divide those of the queries. Received: {shared} and {heads}")
    rows = (q * q.dtype.type(scale)).reshape(batch, shared, heads // shared * length, size)
    return (rows @ k.swapaxes(-1, -2)).reshape(batch, heads, length, k.shape[2])


def weigh(probabilities: Any, v: Any) -> Any:
    """Return ``probabilities @ v``, ``[batch, query heads, queries, size of v]``."""
    batch, heads, length, keys = probabilities.shape
    rows = probabilities.reshape(batch, v.shape[1], heads // v.shape[1] * length, keys)
    return (rows @ v).reshape(batch, heads, length, v.shape[3])


def softmax(xp: Any, x: Any, sink: Any = None) -> Any:
    """Return the softmax along the last axis; 0 for rows that are -inf everywhere.

    Args:
        sink: A score that joins each row and takes its share, but has no result of its own; broadcast like ``x``.
    """
    highest = x.max(axis=-1, keepdims=True, initial=-xp.inf)
    if sink is not None:
        highest = xp.maximum(highest, sink)
    e = xp.exp(x - xp.where(xp.isneginf(highest), 0, highest))
    total = e.sum(axis=-1, keepdims=True)
    if sink is not None:
        total = total + xp.exp(sink - highest)
    return e / xp.where(total == 0, 1, total)


def attend(
    xp: Any,
    q: Any,
    k: Any,
    v: Any,
    scale: float,
    *,
    bias: Any = None,
    allowed: Any = None,
    softcap: float = 0.0,
    sink: Any = None,
    precision: Any = None,
    stage: int = -1,
) -> tuple[Any, Any]:
    """Compute attention.

    Args:
        q, k, v: Queries, keys and values.
        scale: Factor of the scores.
        bias: Added to the scores, broadcast; or None.
        allowed: Where a query may look, boolean, broadcast to the scores' shape; or None for everywhere.
        softcap: Bound of the scores' magnitude, applied as ``softcap * tanh(scores / softcap)``; 0 for none.
        sink: See :func:`softmax`.
        precision: Dtype of the softmax, None for that of the scores.
        stage: Which scores to return besides: 0 as computed, 1 after softcap, 2 with bias and mask, 3 after softmax.

    Returns:
        The weighted values, and the scores asked for, or None.
    """
    scores = scores_of(q, k, scale)
    kept = scores if stage == 0 else None
    if softcap:
        scores = softcap * xp.tanh(scores / scores.dtype.type(softcap))
    kept = scores if stage == 1 else kept
    if bias is not None:
        scores = scores + bias.astype(scores.dtype)
    if allowed is not None:
        scores = xp.where(allowed, scores, scores.dtype.type(-xp.inf))
    kept = scores if stage == 2 else kept
    probabilities = softmax(xp, scores if precision is None else scores.astype(precision), sink).astype(scores.dtype)
    return weigh(probabilities, v), probabilities if stage == 3 else kept


def split_heads(x: Any, heads: int) -> Any:
    """Return ``[batch, sequence, heads * size]`` as ``[batch, heads, sequence, size]``.

    Raises:
        KernelError: If ``heads`` does not divide the last dimension.
    """
    if heads < 1 or x.shape[2] % heads:
        raise KernelError(f"The number of heads must divide the hidden size {x.shape[2]}. Received: {heads}")
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).swapaxes(1, 2)


def join_heads(x: Any) -> Any:
    """Return ``[batch, heads, sequence, size]`` as ``[batch, sequence, heads * size]``."""
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], x.shape[1] * x.shape[3])


def window(xp: Any, queries: int, keys: int, offset: Any, left: int, right: int) -> Any:
    """Return where query ``i`` may look: at ``i + offset - left … i + offset + right``; a negative bound is none.

    Args:
        offset: Number of keys before the first query: an integer, or an array ``[batch]`` (the result is then
            ``[batch, 1, queries, keys]``).
    """
    position = xp.arange(queries)[:, None] + (offset if isinstance(offset, int) else offset.reshape(-1, 1, 1, 1))
    key = xp.arange(keys)
    allowed = xp.ones((queries, keys), bool)
    if left >= 0:
        allowed = allowed & (key >= position - left)
    if right >= 0:
        allowed = allowed & (key <= position + right)
    return allowed


@kernel("Attention")
def attention(
    call: "Call",
    q: Any,
    k: Any,
    v: Any,
    mask: Any = None,
    past_k: Any = None,
    past_v: Any = None,
    lengths: Any = None,
) -> tuple[Any, ...]:
    """The standard's attention, with caches inside (``past``) or outside (``lengths``: how many keys are real)."""
    xp, flat = call.xp, q.ndim == 3
    if (past_k is None) != (past_v is None):
        raise KernelError("Op Attention needs past_key and past_value together.")
    if flat:
        q = split_heads(q, call.attr("q_num_heads") or 0)
        k, v = (split_heads(x, call.attr("kv_num_heads") or 0) for x in (k, v))
    if past_k is not None:
        k, v = xp.concatenate([past_k, k], axis=2), xp.concatenate([past_v, v], axis=2)
    queries, keys = q.shape[2], k.shape[2]
    allowed = bias = None
    if mask is not None:
        if mask.shape[-1] < keys:
            fill = False if mask.dtype == bool else -xp.inf
            floating = mask if mask.dtype == bool else mask.astype(q.dtype)
            missing = xp.full((*mask.shape[:-1], keys - mask.shape[-1]), fill, floating.dtype)
            mask = xp.concatenate([floating, missing], axis=-1)
        allowed, bias = (mask, None) if mask.dtype == bool else (None, mask)
    left, right = call.attr("left_window_size", -1), call.attr("right_window_size", -1)
    if call.attr("is_causal", 0):
        right = 0
    if left >= 0 or right >= 0:
        offset = past_k.shape[2] if past_k is not None else 0 if lengths is None else lengths - queries
        seen = window(xp, queries, keys, offset, left, right)
        allowed = seen if allowed is None else allowed & seen
    if lengths is not None:
        real = xp.arange(keys) < lengths.reshape(-1, 1, 1, 1)
        allowed = real if allowed is None else allowed & real
    scale = call.attr("scale")
    y, kept = attend(
        xp,
        q,
        k,
        v,
        q.shape[3] ** -0.5 if scale is None else scale,
        bias=bias,
        allowed=allowed,
        softcap=call.attr("softcap", 0.0),
        precision=_precision(call, q),
        stage=call.attr("qk_matmul_output_mode", 0) if call.results > 3 else -1,
    )
    return join_heads(y) if flat else y, k, v, kept


@kernel("ai.onnx.preview:FlexAttention")
def flex_attention(call: "Call", q: Any, k: Any, v: Any, *captured: Any) -> Any:
    """Attention whose scores and probabilities pass through bodies."""
    scale, precision = call.attr("scale"), _precision(call, q)
    scores = scores_of(q, k, q.shape[3] ** -0.5 if scale is None else scale)
    scores = _through(call, "score_mod", scores if precision is None else scores.astype(precision), captured)
    probabilities = _through(call, "prob_mod", softmax(call.xp, scores), captured)
    return weigh(probabilities.astype(q.dtype), v)


def _through(call: "Call", name: str, x: Any, captured: tuple[Any, ...]) -> Any:
    body = call.attr(name)
    if body is None:
        return x
    outer = dict(zip(capture_labels(call.node.attributes), captured, strict=True))
    (result,) = call.run(body, [x, *(outer[label] for label in body.captures)])
    if result.shape != x.shape:
        raise KernelError(f"Body {name} of FlexAttention must keep the shape {x.shape}. Received: {result.shape}")
    return result


def _precision(call: "Call", q: Any) -> Any:
    """Return float64 if the softmax is asked for in it; what is narrower than the operands is no gain."""
    number = call.attr("softmax_precision")
    dtype = BY_ONNX.get(number or 0)
    return dtype.numpy if dtype is not None and dtype.name == "float64" else None
