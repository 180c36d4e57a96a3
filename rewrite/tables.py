"""Large constants that are also read by ops which would not be low by themselves: stored once, in the low dtype."""

from .constants import constant_of
from .typegraph import CLEAR, UNLISTED, TypeGraph
from .view import Stats

_READERS = ("Gather", "GatherElements", "GatherND", "com.microsoft:TorchEmbedding")
#: Smaller tables are not worth a cast behind them.
_LEAST_BYTES = 1 << 12
#: The squares of numbers up to this fit into every low dtype.
_LARGEST_ROOT = 200.0


def find_tables(typegraph: TypeGraph) -> tuple[list[int], list[int]]:
    """Find nodes that read a large constant and may do so in the low dtype.

    1. Look-ups in embedding tables.
    2. Squares of weights (of a penalty on them) whose range is known.

    Returns:
        The vertices that read, and those of squares, which are to be treated as being on the ClearList.
    """
    found: list[int] = []
    clear: list[int] = []
    for i in typegraph.with_op(*_READERS, "Pow", "Mul"):
        node = typegraph.nodes[i]
        table = constant_of(node.inputs[0])
        if table is None or table.nbytes < _LEAST_BYTES:
            continue
        vertex = typegraph.operand(i, 0)
        if not typegraph.able[vertex] or not typegraph.is_float[vertex] or not typegraph.processed[vertex]:
            continue
        if node.op_type in ("Mul", "Pow"):
            power = constant_of(node.inputs[1]) if node.op_type == "Pow" else None
            squares = node.inputs[1] is node.inputs[0] or (power is not None and power.size == 1 and power.array().item() == 2)
            if typegraph.color[vertex] != UNLISTED and squares and Stats(table).largest < _LARGEST_ROOT:
                clear += typegraph.vertices_of(i)
                found += [v for v in typegraph.vertices_of(i) if typegraph.is_float[v] and typegraph.able[v]]
        elif typegraph.color[vertex] == CLEAR:
            found.append(vertex)
    return found, clear
