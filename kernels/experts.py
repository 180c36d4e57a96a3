"""Mixture of experts: each token goes through the few feed-forward networks that its router likes best."""

from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .attention import softmax
from .elementwise import gelu, sigmoid
from .registry import kernel

if TYPE_CHECKING:
    from .call import Call


@kernel("com.microsoft:MoE")
def mixture_of_experts(
    call: "Call",
    x: Any,
    router: Any,
    w1: Any,
    b1: Any,
    w2: Any,
    b2: Any = None,
    w3: Any = None,
    b3: Any = None,
) -> Any:
    """Sum over the ``k`` likeliest experts: ``probability * fc2(activation(fc1(x)))``.

    Args:
        x: Tokens ``[…, hidden]``.
        router: Scores ``[tokens, experts]``.
        w1, w2, w3: Weights ``[experts, outputs, inputs]``, with biases ``[experts, outputs]``.
    """
    xp, chosen = call.xp, call.attr("k", 1)
    if call.attr("use_sparse_mixer", 0):
        raise KernelError("Op MoE with use_sparse_mixer has no kernel.")
    tokens = x.reshape(-1, x.shape[-1])
    shares = softmax(xp, router.reshape(tokens.shape[0], -1))
    best = xp.argsort(-shares, axis=1, kind="stable")[:, :chosen]
    weights = xp.take_along_axis(shares, best, axis=1)
    if call.attr("normalize_routing_weights", 0):
        weights = weights / weights.sum(axis=1, keepdims=True)
    result = xp.zeros((tokens.shape[0], w2.shape[1]), x.dtype)
    for expert in range(w1.shape[0]):
        rows, rank = xp.nonzero(best == expert)
        if not rows.size:
            continue
        hidden = _dense(tokens[rows], w1, b1, expert)
        gate = None if w3 is None else _dense(tokens[rows], w3, b3, expert)
        result[rows] += weights[rows, rank][:, None] * _dense(_activated(call, hidden, gate), w2, b2, expert)
    return result.reshape(*x.shape[:-1], w2.shape[1])


def _dense(x: Any, w: Any, b: Any, expert: int) -> Any:
    y = x @ w[expert].T
    return y if b is None else y + b[expert]


def _activated(call: "Call", x: Any, gate: Any) -> Any:
    xp, name = call.xp, call.attr("activation_type", "relu")
    if name == "swiglu":
        fusion = call.attr("swiglu_fusion", 0)
        if fusion == 1:
            x, gate = x[..., ::2], x[..., 1::2]
        elif fusion == 2:
            x, gate = xp.split(x, 2, axis=-1)
        if gate is None:
            raise KernelError("Op MoE with activation swiglu needs fc3, or both halves in fc1.")
        return swiglu(call, x, gate, call.attr("swiglu_limit"))
    if name == "relu":
        y = xp.maximum(x, 0)
    elif name == "gelu":
        y = gelu(xp, x, True)
    elif name == "silu":
        y = x * sigmoid(xp, x)
    elif name == "identity":
        y = x
    else:
        raise KernelError(f"Op MoE knows relu, gelu, silu, identity and swiglu. Received: activation_type={name!r}")
    return y if gate is None else y * gate


def swiglu(call: "Call", x: Any, gate: Any, limit: float | None) -> Any:
    """Return ``x * sigmoid(alpha * x) * (gate + beta)``, both clamped to ``limit`` if there is one."""
    xp = call.xp
    if limit is not None:
        x, gate = xp.minimum(x, x.dtype.type(limit)), xp.clip(gate, -limit, limit)
    alpha, beta = (
        x.dtype.type(call.attr(name, default)) for name, default in (("activation_alpha", 1.0), ("activation_beta", 0.0))
    )
    return x * sigmoid(xp, alpha * x) * (gate + beta)


@kernel("com.microsoft:SwiGLU")
def runtime_swiglu(call: "Call", gate: Any, up: Any = None) -> Any:
    """Both halves may stand in one operand."""
    if up is None:
        gate, up = call.xp.split(gate, 2, axis=-1)
    limit = call.attr("limit", 0.0)
    return swiglu(call, gate, up, limit if limit > 0 else None)
