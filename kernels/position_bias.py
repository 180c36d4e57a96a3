"""Biases of attention scores that depend on the distance of query and key."""

from typing import TYPE_CHECKING, Any

from .attention import split_heads
from .elementwise import sigmoid
from .registry import kernel
from .room import check_room

if TYPE_CHECKING:
    from .call import Call


@kernel("com.microsoft:RelativePositionBias")
def relative_position_bias(call: "Call", table: Any, queries: Any, keys: Any) -> Any:
    """Look up ``table[buckets, heads]`` by distance: half of the buckets are exact, the others grow up to ``max_distance``."""
    xp, buckets = call.xp, table.shape[0]
    check_room(xp, [int(queries), int(keys), table.shape[1]], 8)
    distance = xp.arange(int(queries))[:, None] - xp.arange(int(keys))
    start = 0
    if call.attr("is_bidirectional", 0):
        buckets //= 2
        start = xp.where(distance < 0, buckets, 0)
        distance = xp.abs(distance)
    distance = xp.maximum(distance, 0)
    exact = buckets // 2
    growth = xp.log(xp.maximum(distance, 1).astype(xp.float32) / exact) / xp.log(xp.float32(call.attr("max_distance") / exact))
    far = xp.minimum(exact + (growth * (buckets - exact)).astype(xp.int64), buckets - 1)
    return table[start + xp.where(distance < exact, distance, far)].transpose(2, 0, 1)[None]


@kernel("com.microsoft:GatedRelativePositionBias")
def gated_relative_position_bias(
    call: "Call", q: Any, q_bias: Any, bias: Any, weight: Any, weight_bias: Any, factor: Any, offsets: Any = None
) -> Any:
    """Scale ``bias[1, heads, sequence, sequence]`` by a gate that each query computes of itself."""
    if offsets is not None:
        from .packing import restore

        q = restore(call.xp, q, offsets)
    gates = split_heads(q + q_bias, call.attr("num_heads")) @ weight + weight_bias
    gates = sigmoid(call.xp, gates.reshape(*gates.shape[:3], 2, -1).sum(axis=-1))
    gate = gates[..., :1] * (gates[..., 1:] * factor - 1) + 2
    return gate * bias
