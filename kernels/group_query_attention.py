"""GroupQueryAttention of ONNX Runtime: fewer key heads than query heads, a cache per sequence, rotary positions."""

from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .attention import attend, join_heads, split_heads, window
from .registry import kernel
from .room import check_room
from .rotary import rotate

if TYPE_CHECKING:
    from .call import Call


@kernel("com.microsoft:GroupQueryAttention")
def group_query_attention(
    call: "Call",
    q: Any,
    k: Any,
    v: Any,
    past_k: Any,
    past_v: Any,
    last: Any,
    total: Any,
    cos: Any = None,
    sin: Any = None,
    positions: Any = None,
    bias: Any = None,
    sink: Any = None,
    k_scale: Any = None,
    v_scale: Any = None,
    q_norm: Any = None,
    k_norm: Any = None,
    valid: Any = None,
) -> tuple[Any, ...]:
    """Attend causally with keys that come after those of the cache.

    Args:
        q, k, v: ``[batch, sequence, heads * size]``; all three side by side in ``q`` where ``k`` and ``v`` are None.
        past_k, past_v: Caches ``[batch, key heads, capacity, size]`` or None.
        last: Position ``[batch]`` of the last token of each sequence.
        total: Length of the longest sequence; that of ``q`` if this is the first run, which finds nothing in the cache.
        cos, sin: Rotations by position.
        sink: A score per head that takes its share of the softmax.
    """
    if k_scale is not None or valid is not None or call.attr("sliding_window_cache", 0):
        raise KernelError("Op GroupQueryAttention with a quantized or sliding cache or query_seqlens has no kernel.")
    xp, heads, shared = call.xp, call.attr("num_heads"), call.attr("kv_num_heads")
    if k is None:
        parts = split_heads(q, heads + 2 * shared)
        q, k, v = parts[:, :heads], parts[:, heads : heads + shared], parts[:, heads + shared :]
    else:
        q, k, v = split_heads(q, heads), split_heads(k, shared), split_heads(v, shared)
    if q_norm is not None:
        q, k = _normalized(call, q, q_norm), _normalized(call, k, k_norm)
    batch, _, length, size = q.shape
    lengths = last.reshape(-1).astype(xp.int64) + 1
    longest = int(total.reshape(-1)[0])
    before = xp.zeros(batch, xp.int64) if longest == length else lengths - length
    at = before[:, None] + xp.arange(length)
    if call.attr("do_rotary", 0):
        where = xp.maximum(at, 0) if positions is None else positions
        interleaved = bool(call.attr("rotary_interleaved", 0))
        q, k = (rotate(xp, x, cos[where], sin[where], interleaved) for x in (q, k))
    capacity = max(longest, 0 if past_k is None else past_k.shape[2])
    k, v = (_cached(xp, past, new, at, capacity) for past, new in ((past_k, k), (past_v, v)))
    reach, causal = call.attr("local_window_size", -1), call.attr("causal", 1)
    allowed = xp.arange(longest) < lengths[:, None, None, None]
    allowed = allowed & window(xp, length, longest, before, reach - 1 if reach > 0 else -1, 0 if causal else -1)
    if sink is not None:
        sink = sink.reshape(1, heads, 1, 1)
    elif call.attr("smooth_softmax", 0) == 1:
        sink = xp.zeros((1, 1, 1, 1), q.dtype)
    y, scores = attend(
        xp,
        q,
        k[:, :, :longest],
        v[:, :, :longest],
        call.attr("scale", 0.0) or size**-0.5,
        bias=None if bias is None else bias[..., :longest],
        allowed=allowed,
        softcap=call.attr("softcap", 0.0),
        sink=sink,
        stage={1: 2, 2: 3}.get(call.attr("qk_output", 0), -1),
    )
    return join_heads(y), k, v, scores


def _cached(xp: Any, past: Any, new: Any, at: Any, capacity: int) -> Any:
    """Return the cache with ``new[batch, heads, sequence, size]`` at positions ``at[batch, sequence]``."""
    batch, heads, _, size = new.shape
    check_room(xp, (batch, heads, capacity, size), new.itemsize)
    result = xp.zeros((batch, heads, capacity, size), new.dtype)
    if past is not None:
        result[:, :, : past.shape[2]] = past
    result[xp.arange(batch)[:, None], :, at] = new.swapaxes(1, 2)
    return result


def _normalized(call: "Call", x: Any, weight: Any) -> Any:
    epsilon = call.attr("qk_norm_epsilon", 1e-6)
    return x / call.xp.sqrt((x * x).mean(axis=-1, keepdims=True) + epsilon) * weight
