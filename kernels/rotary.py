"""Rotary position embeddings, as the standard and ONNX Runtime define them."""

from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .attention import join_heads, split_heads
from .registry import kernel

if TYPE_CHECKING:
    from .call import Call


def rotate(xp: Any, x: Any, cos: Any, sin: Any, interleaved: bool) -> Any:
    """Rotate pairs of channels; the channels beyond twice the width of ``cos`` stay as they are.

    Args:
        x: ``[batch, heads, sequence, size]``.
        cos, sin: ``[batch or 1, sequence, pairs]``.
        interleaved: Whether pairs are neighbours; otherwise the first half pairs with the second.

    Raises:
        KernelError: If there are more pairs than the channels give.
    """
    pairs = cos.shape[-1]
    if 2 * pairs > x.shape[-1]:
        raise KernelError(f"A rotation of {x.shape[-1]} channels needs at most half as many cosines. Received: {pairs}")
    cos, sin = cos[:, None], sin[:, None]
    first, second = (
        (x[..., : 2 * pairs : 2], x[..., 1 : 2 * pairs : 2]) if interleaved else (x[..., :pairs], x[..., pairs : 2 * pairs])
    )
    result = x.copy()
    real, imaginary = first * cos - second * sin, first * sin + second * cos
    if interleaved:
        result[..., : 2 * pairs : 2], result[..., 1 : 2 * pairs : 2] = real, imaginary
    else:
        result[..., :pairs], result[..., pairs : 2 * pairs] = real, imaginary
    return result


@kernel("RotaryEmbedding")
def rotary_embedding(call: "Call", x: Any, cos: Any, sin: Any, positions: Any = None) -> Any:
    """Caches are indexed by position, or given for each token."""
    if positions is not None:
        cos, sin = cos[positions], sin[positions]
    return _rotated(call, x, cos, sin)


@kernel("com.microsoft:RotaryEmbedding")
def rotary_embedding_runtime(call: "Call", x: Any, positions: Any, cos: Any, sin: Any) -> Any:
    """Positions ``[batch, sequence]``, or ``[1]``: that of the first token."""
    batch, length = x.shape[0], x.shape[2 if x.ndim == 4 else 1]
    if positions.ndim == 1:
        positions = call.xp.broadcast_to(positions[0] + call.xp.arange(length), (batch, length))
    return _rotated(call, x, cos[positions], sin[positions])


def _rotated(call: "Call", x: Any, cos: Any, sin: Any) -> Any:
    interleaved, partial = bool(call.attr("interleaved", 0)), call.attr("rotary_embedding_dim", 0) or 0
    heads = call.attr("num_heads", 0) or 0
    if x.ndim == 3 and not heads and call.node.domain == "com.microsoft":
        heads = x.shape[2] // (partial or 2 * cos.shape[-1])
    split = x if x.ndim == 4 else split_heads(x, heads)
    wanted = (partial or split.shape[-1]) // 2
    if cos.shape[-1] != wanted or sin.shape != cos.shape:
        raise KernelError(
            f"The caches of op {call.node.op_type} must have {wanted} columns. Received: {cos.shape} and {sin.shape}"
        )
    result = rotate(call.xp, split, cos, sin, interleaved)
    return result if x.ndim == 4 else join_heads(result)


@kernel("com.microsoft:GemmaRotaryEmbedding")
def gemma_rotary_embedding(call: "Call", angles: Any, q: Any, q_turned: Any, k: Any, k_turned: Any) -> tuple[Any, Any]:
    """Queries and keys ``[batch, heads, sequence, size]`` by angles ``[batch, sequence, size]``, given what a quarter turn gives."""
    cos, sin = call.xp.cos(angles)[:, None], call.xp.sin(angles)[:, None]
    return q * cos + q_turned * sin, k * cos + k_turned * sin
