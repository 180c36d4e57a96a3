"""Attention: queries times keys, and the probabilities times values."""

from typing import TYPE_CHECKING

from ..types import Dim
from .sizes import Dims, Rule, ShapeOf, Work, dims_of, known_product, operand

if TYPE_CHECKING:
    from ..graph import Node


def _work(batch: Dim, heads: Dim, queries: Dim, keys: Dim, size: Dim, values: Dim) -> Work:
    sizes = {"queries": queries, "keys": keys, "head size": size}
    if size == values:
        return Work(sizes, known_product((batch, heads)), ((2, tuple(sizes)),))
    sizes["value size"] = values
    terms = ((1, ("queries", "keys", "head size")), (1, ("queries", "keys", "value size")))
    return Work(sizes, known_product((batch, heads)), terms)


def _split(dims: Dims, heads: object) -> tuple[Dim, Dim, Dim, Dim]:
    """Return (batch, heads, length, size) of an operand, also where the heads stand side by side in its last dimension."""
    if dims is not None and len(dims) == 3:
        batch, length, size = dims
        number = heads if isinstance(heads, int) and heads > 0 else None
        return batch, number, length, size // number if isinstance(size, int) and number else None
    first, second, third, last = dims_of(dims, 4)
    return first, second, third, last


def _standard(node: "Node", shape_of: ShapeOf) -> Work:
    """Return the work of the standard's attention; behind a cache there are more keys than are given."""
    queries = _split(operand(node, shape_of, 0), node.attributes.get("q_num_heads"))
    keys, values = (_split(operand(node, shape_of, slot), node.attributes.get("kv_num_heads")) for slot in (1, 2))
    past = dims_of(operand(node, shape_of, 4), 4)[2] if len(node.inputs) > 4 and node.inputs[4] is not None else 0
    length = keys[2] + past if isinstance(keys[2], int) and isinstance(past, int) else keys[2] if past == 0 else None
    return _work(*queries[:3], length, queries[3], values[3])


def _multi_head(node: "Node", shape_of: ShapeOf) -> Work | None:
    """Return the work of ONNX Runtime's, where queries, keys and values come separately and no cache is used."""
    if len(node.inputs) < 3 or any(value is None for value in node.inputs[:3]) or any(node.inputs[6:8]):
        return None
    queries, keys, values = (_split(operand(node, shape_of, slot), node.attributes.get("num_heads")) for slot in range(3))
    return _work(*queries[:3], keys[2], queries[3], values[3])


RULES: dict[tuple[str, str], Rule] = {
    ("", "Attention"): _standard,
    ("com.microsoft", "MultiHeadAttention"): _multi_head,
}
