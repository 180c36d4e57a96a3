"""Linear attention: a state matrix per head, updated token by token."""

from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .attention import split_heads
from .registry import kernel

if TYPE_CHECKING:
    from .call import Call


@kernel("LinearAttention", "com.microsoft:LinearAttention")
def linear_attention(
    call: "Call", q: Any, k: Any, v: Any, past: Any = None, decay: Any = None, beta: Any = None
) -> tuple[Any, Any]:
    """Run the recurrence ``S = exp(g) S + beta k (v - exp(g) S^T k)^T``, ``o = scale q^T S``, or a part of it."""
    xp, rule = call.xp, call.attr("update_rule", "gated_delta")
    gated, delta = rule in ("gated", "gated_delta"), rule in ("delta", "gated_delta")
    if not (gated or delta or rule == "linear"):
        raise KernelError(f"Op LinearAttention knows linear, gated, delta and gated_delta. Received: update_rule={rule!r}")
    if (gated and decay is None) or (delta and beta is None):
        lacking = "decay" if gated and decay is None else "beta"
        raise KernelError(f"Op LinearAttention with update_rule {rule!r} needs operand {lacking}.")
    heads, shared = call.attr("q_num_heads"), call.attr("kv_num_heads")
    q, k, v = split_heads(q, heads), split_heads(k, shared), split_heads(v, shared)
    batch, _, steps, size = q.shape
    scale = call.attr("scale", 0.0) or size**-0.5
    group = heads // shared
    grouped = q.reshape(batch, shared, group, steps, size)
    state = xp.zeros((batch, shared, size, v.shape[3]), v.dtype) if past is None else past
    factors = xp.exp(split_heads(decay, shared)) if gated else None
    rates = split_heads(xp.broadcast_to(beta, (batch, steps, shared)), shared) if delta else None
    out = xp.zeros((batch, shared, group, steps, v.shape[3]), v.dtype)
    for t in range(steps):
        key, value = k[:, :, t, :, None], v[:, :, t, None, :]
        if factors is not None:
            state = factors[:, :, t, :, None] * state
        if rates is not None:
            value = rates[:, :, t, :, None] * (value - key.swapaxes(-1, -2) @ state)
        state = state + key * value
        out[:, :, :, t] = grouped[:, :, :, t] @ state
    y = (scale * out).reshape(batch, heads, steps, v.shape[3]).swapaxes(1, 2).reshape(batch, steps, heads * v.shape[3])
    return y.astype(v.dtype), state
