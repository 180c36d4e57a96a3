"""Batches without padding: the tokens of all sequences in one row, and where each came from.

Offsets ``[batch, sequence]`` list the places of the real tokens first, then those of the padding.
"""

from typing import TYPE_CHECKING, Any

from .registry import kernel

if TYPE_CHECKING:
    from .call import Call


def restore(xp: Any, tokens: Any, offsets: Any) -> Any:
    """Return ``tokens[count, …]`` as ``[batch, sequence, …]``, zeros for padding."""
    result = xp.zeros((offsets.size, *tokens.shape[1:]), tokens.dtype)
    result[offsets.reshape(-1)[: tokens.shape[0]]] = tokens
    return result.reshape(*offsets.shape, *tokens.shape[1:])


def pack(xp: Any, padded: Any, offsets: Any, count: int) -> Any:
    """Return the ``count`` real tokens of ``padded[batch, sequence, …]``."""
    return padded.reshape(offsets.size, *padded.shape[2:])[offsets.reshape(-1)[:count]]


@kernel("com.microsoft:RemovePadding")
def remove_padding(call: "Call", x: Any, counts: Any) -> tuple[Any, ...]:
    """Padding stands on the right of each sequence."""
    xp, (batch, length) = call.xp, x.shape[:2]
    padding = xp.arange(length) >= counts[:, None]
    offsets = xp.argsort(padding.reshape(-1), kind="stable").astype(xp.int32).reshape(batch, length)
    ends = xp.concatenate([xp.zeros(1, xp.int32), xp.cumsum(counts)]).astype(xp.int32)
    return pack(xp, x, offsets, int(ends[-1])), offsets, ends, counts.max(keepdims=True, initial=0).astype(xp.int32)


@kernel("com.microsoft:RestorePadding")
def restore_padding(call: "Call", tokens: Any, offsets: Any) -> Any:
    """The inverse."""
    return restore(call.xp, tokens, offsets)
