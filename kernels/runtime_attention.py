"""Attention as ONNX Runtime defines it: ``Attention``, ``MultiHeadAttention``, ``PackedAttention`` and the quantized ``QAttention``.

Unlike the standard's op they take projections and their bias in, and masks of many forms which add a finite number to
what is hidden, so that a query that may see nothing sees everything.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .attention import attend, join_heads, split_heads, window
from .matmul import centred, integer_product, kept_integers
from .packing import pack, restore
from .registry import kernel

if TYPE_CHECKING:
    from .call import Call

_HIDDEN = -10000.0


@kernel("com.microsoft:Attention")
def attention(
    call: "Call",
    x: Any,
    weights: Any,
    bias: Any = None,
    mask: Any = None,
    past: Any = None,
    extra: Any = None,
    past_length: Any = None,
) -> tuple[Any, ...]:
    """Self-attention of ``x[batch, sequence, hidden]`` with one weight for queries, keys and values."""
    projected = x @ weights
    return _self_attention(call, projected if bias is None else projected + bias, mask, past, extra, past_length)


@kernel("com.microsoft:QAttention")
def quantized_attention(
    call: "Call",
    x: Any,
    weights: Any,
    bias: Any,
    x_scale: Any,
    w_scale: Any,
    mask: Any = None,
    x_zero: Any = None,
    w_zero: Any = None,
    past: Any = None,
) -> tuple[Any, ...]:
    """The same with an 8-bit input and weight."""
    left = centred(call.xp, x, None if x_zero is None else x_zero.reshape(()), -2)
    projected = (
        integer_product(call.xp, left, kept_integers(call, weights, w_zero, 1, 7)).astype(bias.dtype) * (x_scale * w_scale) + bias
    )
    return _self_attention(call, projected, mask, past, None, None)


@kernel("com.microsoft:PackedAttention")
def packed_attention(call: "Call", x: Any, weights: Any, bias: Any, offsets: Any, ends: Any, extra: Any = None) -> Any:
    """Self-attention of tokens ``x[tokens, hidden]`` without padding, see :mod:`~.packing`."""
    lengths = call.xp.diff(ends)
    y = _self_attention(call, restore(call.xp, x @ weights + bias, offsets), lengths, None, extra, None)
    return pack(call.xp, y[0], offsets, int(ends[-1]))


def _self_attention(call: "Call", projected: Any, mask: Any, past: Any, extra: Any, past_length: Any) -> tuple[Any, ...]:
    """Attend with the queries, keys and values that lie side by side in ``projected[batch, sequence, …]``."""
    if call.attr("do_rotary", 0):
        raise KernelError(f"Op {call.node.op_type} with do_rotary has no kernel.")
    xp, heads = call.xp, call.attr("num_heads")
    sizes = call.attr("qkv_hidden_sizes") or [projected.shape[2] // 3] * 3
    q, k, v = (split_heads(part, heads) for part in _cut(projected, sizes))
    before = 0
    if past is not None:
        before = past.shape[3]
        if call.attr("past_present_share_buffer", 0) and past_length is not None:
            before = int(past_length.reshape(-1)[0])
        k, v = (xp.concatenate([old[:, :, :before], new], axis=2) for old, new in ((past[0], k), (past[1], v)))
    y, _ = _attend(call, q, k, v, mask, extra, before)
    present = None
    if call.results > 1:
        present = xp.stack([k, v])
        if past is not None and past.shape[3] > present.shape[3]:
            present = xp.concatenate([present, past[:, :, :, present.shape[3] :]], axis=3)
    return y, present


@kernel("com.microsoft:MultiHeadAttention")
def multi_head_attention(
    call: "Call",
    q: Any,
    k: Any = None,
    v: Any = None,
    bias: Any = None,
    mask: Any = None,
    extra: Any = None,
    past_k: Any = None,
    past_v: Any = None,
    past_length: Any = None,
    indirection: Any = None,
) -> tuple[Any, ...]:
    """Attention of projected queries, keys and values, in their own tensors or packed in one."""
    if indirection is not None:
        raise KernelError("Op MultiHeadAttention with cache_indirection (beam search) has no kernel.")
    xp, heads = call.xp, call.attr("num_heads")
    if q.ndim == 5:  # [batch, sequence, heads, 3, size]
        q, k, v = (q[:, :, :, i].swapaxes(1, 2) for i in range(3))
        bias = None if bias is None else _cut(bias, [heads * q.shape[3]] * 3)
    else:
        if k is not None and k.ndim == 5:  # [batch, keys, heads, 2, size]
            k, v = (k[:, :, :, i].swapaxes(1, 2) for i in range(2))
        if k is None or v is None:
            raise KernelError("Op MultiHeadAttention needs key and value, or all of them packed.")
        ready = k.ndim == 4
        q = split_heads(q, heads)
        k, v = (x if x.ndim == 4 else split_heads(x, heads) for x in (k, v))
        bias = None if bias is None else _cut(bias, [heads * x.shape[3] for x in (q, k, v)])
        if bias is not None and ready:  # keys and values in heads have their bias already
            q, bias = q + bias[0].reshape(heads, 1, q.shape[3]), None
    if bias is not None:
        q, k, v = (x + part.reshape(heads, 1, x.shape[3]) for x, part in zip((q, k, v), bias, strict=True))
    before = 0
    if past_k is not None:
        before = past_k.shape[2] if past_length is None else int(past_length.reshape(-1)[0])
        k = xp.concatenate([past_k[:, :, :before], k], axis=2)
        v = xp.concatenate([past_v[:, :, :before], v], axis=2)
    y, scores = _attend(call, q, k, v, mask, extra, before, 2 if call.results > 3 else -1)
    return y, k, v, scores


@kernel("com.microsoft:PackedMultiHeadAttention")
def packed_multi_head_attention(
    call: "Call", q: Any, k: Any, v: Any, bias: Any, offsets: Any, ends: Any, extra: Any = None
) -> Any:
    """The same of tokens without padding, see :mod:`~.packing`; without ``k`` and ``v``, ``q`` is ``[tokens, heads, 3, size]``."""
    q, k, v = (None if x is None else restore(call.xp, x, offsets) for x in (q, k, v))
    y = multi_head_attention(call, q, k, v, bias, call.xp.diff(ends), extra)
    return pack(call.xp, y[0], offsets, int(ends[-1]))


def _cut(x: Any, sizes: Sequence[int]) -> list[Any]:
    """Cut the last axis into pieces of these sizes."""
    if sum(sizes) != x.shape[-1]:
        raise KernelError(f"Queries, keys and values of sizes {list(sizes)} do not make up {x.shape[-1]} columns.")
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    return [x[..., end - size : end] for end, size in zip(ends, sizes, strict=True)]


def _attend(call: "Call", q: Any, k: Any, v: Any, mask: Any, extra: Any, before: int, stage: int = -1) -> tuple[Any, Any]:
    """Attend with the node's scale, mask and order; ``before`` keys stand before the first query."""
    xp = call.xp
    bias = _mask_bias(call, mask, q, k.shape[2])
    if extra is not None:
        bias = extra if bias is None else bias + extra
    causal = None
    if call.attr("unidirectional", 0):
        causal = window(xp, q.shape[2], k.shape[2], before, -1, 0)
    scale = call.attr("scale", 0.0) or q.shape[3] ** -0.5
    y, scores = attend(xp, q, k, v, scale, bias=bias, allowed=causal, stage=stage)
    return join_heads(y), scores


def _mask_bias(call: "Call", mask: Any, q: Any, keys: int) -> Any:
    """Return what a mask adds to the scores, broadcast to ``[batch, heads, queries, keys]``.

    Raises:
        KernelError: If the mask has none of the known forms.
    """
    if mask is None:
        return None
    xp, batch = call.xp, q.shape[0]
    at = xp.arange(keys)
    if mask.ndim == 1 and mask.shape[0] in (batch, 2 * batch, 3 * batch + 2):
        seen = at < mask[:batch, None]
        if mask.shape[0] == 2 * batch:
            seen = seen & (at >= mask[batch:, None])
    elif mask.ndim in (2, 3):
        seen = mask != 0
    elif mask.ndim == 4:  # [batch, 1, longest, longest]
        start = keys - q.shape[2]
        seen = mask[:, :, start:keys, :keys] != 0
    else:
        raise KernelError(f"Op {call.node.op_type} knows no mask of shape {mask.shape} for a batch of {batch}.")
    if seen.ndim < 4:
        seen = seen[:, None, None, :] if seen.ndim == 2 else seen[:, None]
    if seen.shape[-1] < keys:
        raise KernelError(f"Op {call.node.op_type} needs a mask of {keys} keys. Received: {mask.shape}")
    hidden = call.attr("mask_filter_value", _HIDDEN)
    return xp.where(seen[..., :keys], q.dtype.type(0), q.dtype.type(hidden))
