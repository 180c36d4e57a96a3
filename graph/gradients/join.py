"""Tensors joined into one, and one divided into several."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..graph import Node, Value
from .builder import INT32, Builder, operands

if TYPE_CHECKING:
    from .rules import Rule


def _concat_rule(axis_at: int) -> "Rule":
    """Make the rule of a concatenation whose axis is operand ``axis_at``."""

    def rule(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
        """To each operand its part."""
        values = operands(node)
        axis = values.pop(axis_at)
        sizes, at = [b.sizes(value) for value in values], b.ints(axis)
        found: list[Value | None] = []
        if at is not None and all(size is not None for size in sizes):
            start = 0
            for size in sizes:
                assert size is not None
                k = at[0] % len(size)
                begin = [start if i == k else 0 for i in range(len(size))]
                found.append(b.node("Slice", [dy, b.vector(begin), b.vector(size)]).outputs[0])
                start += size[k]
        else:
            axis = b.cast(b.op("FloorMod", axis, b.op("Rank", dy)), INT32)
            shapes = [b.shape(value) for value in values]
            begins = b.node("ConcatOffset", [axis, *shapes], {"N": len(values)}).outputs
            found += [b.node("Slice", [dy, *part]).outputs[0] for part in zip(begins, shapes, strict=True)]
        found.insert(axis_at % (len(found) + 1), None)
        return found

    return rule


def _filled(b: Builder, node: Node, dys: Sequence[Value | None]) -> list[Value]:
    """Return the gradients of all results, zeros for those that nothing depends on."""
    return [b.zeros_like(value) if dy is None else dy for value, dy in zip(node.outputs, dys, strict=True)]


def _split(b: Builder, node: Node, *dys: Value | None) -> Sequence[Value | None]:
    """The parts joined."""
    return [None, b.concat(_filled(b, node, dys), operands(node)[0])]


def _split_v(b: Builder, node: Node, *dys: Value | None) -> Sequence[Value | None]:
    """The parts joined."""
    return [b.concat(_filled(b, node, dys), operands(node)[2])]


def _pack(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """Divided again."""
    return b.node("Unpack", [dy], {"num": len(node.inputs), "axis": node.attr("axis")}).outputs


def _unpack(b: Builder, node: Node, *dys: Value | None) -> Sequence[Value | None]:
    """Joined again."""
    return [b.node("Pack", _filled(b, node, dys), {"N": len(dys), "axis": node.attr("axis")}).outputs[0]]


def _partition(b: Builder, node: Node, *dys: Value | None) -> Sequence[Value | None]:
    """Each part goes back to where its elements were."""
    data, partitions = operands(node)
    shape = b.shape(partitions)
    places = b.reshape(b.op("Range", 0, b.op("Size", partitions), 1), shape)
    count = len(dys)
    parts = b.node("DynamicPartition", [places, partitions], {"num_partitions": count}).outputs
    joined = b.node("ParallelDynamicStitch", [*parts, *_filled(b, node, dys)], {"N": count}).outputs[0]
    return [b.reshape_like(joined, data)]


def _stitch(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """To each operand what its indices name, which are taken to differ."""
    count = len(node.inputs) // 2
    indices = operands(node)[:count]
    found = [b.node("GatherV2", [dy, index, b.constant(0, INT32)]).outputs[0] for index in indices]
    return [*[None] * count, *found]


RULES: dict[str, "Rule"] = {
    "Concat": _concat_rule(0),
    "ConcatV2": _concat_rule(-1),
    "DynamicPartition": _partition,
    "DynamicStitch": _stitch,
    "Pack": _pack,
    "ParallelDynamicStitch": _stitch,
    "Split": _split,
    "SplitV": _split_v,
    "Unpack": _unpack,
}
