"""Large constants that are also read by ops which would not be low by themselves: stored once, in the low dtype."""

from ..graph.graph import Value
from .constants import constant_of, is_constant
from .typegraph import CLEAR, UNLISTED, TypeGraph
from .view import Stats

_READERS = ("Gather", "GatherElements", "GatherND", "com.microsoft:TorchEmbedding")
#: Smaller tables are not worth a cast behind them.
_LEAST_BYTES = 1 << 12
#: The squares of numbers up to this fit into every low dtype.
_LARGEST_ROOT = 200.0


def find_tables(typegraph: TypeGraph) -> tuple[list[int], list[int]]:
    """Find nodes that read a large constant and may do so in the low dtype.

    1. Look-ups in embedding tables, also in a body that alone reads one.
    2. Squares of weights (of a penalty on them) whose range is known.
    3. Weights divided by their norms and scaled: weight normalization.

    Returns:
        The vertices that read, and those of 2 and 3, which are to be treated as being on the ClearList.
    """
    found: list[int] = []
    clear: list[int] = []
    for i in typegraph.with_op("ReduceL2"):
        clear += _weight_norm(typegraph, i)
    found += clear
    for i in typegraph.with_op(*_READERS, "Pow", "Mul"):
        node = typegraph.nodes[i]
        table = constant_of(_outside(typegraph, node.inputs[0]))
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


def _outside(typegraph: TypeGraph, value: Value | None) -> Value | None:
    """Return what a body knows as ``value`` in the graphs around; None if it is read in other places, too, or not one value."""
    inside = value
    while value is not None and value.producer.op_type == "Input" and not is_constant(value.producer):
        vertex = typegraph.vertex(value)
        outer = typegraph.predecessors(vertex)
        if len(outer) != 1 or len(typegraph.successors(vertex)) != 1 or typegraph.successors(outer[0]) != [vertex]:
            return None
        number = typegraph.owner[outer[0]]
        inputs = typegraph.nodes[number].inputs if number < len(typegraph.nodes) else []
        value = next((v for slot, v in enumerate(inputs) if v is not None and typegraph.operand(number, slot) == outer[0]), None)
    is_shared = value is not None and value is not inside and len(typegraph.successors(typegraph.vertex(value))) != 1
    return None if is_shared else value


def _weight_norm(typegraph: TypeGraph, i: int) -> list[int]:
    """Return the vertices of ``g * v / norm(v)``, ``i`` being the norm, if weights ``v`` and scales ``g`` are known and fit."""
    norm = typegraph.nodes[i]
    weights = constant_of(norm.inputs[0])
    if weights is None or weights.nbytes < _LEAST_BYTES:
        return []
    stats = Stats(weights)
    # The squares are added up in float32; what is rounded is their root.
    if not 1 / _LARGEST_ROOT < stats.largest < _LARGEST_ROOT:
        return []
    found = [typegraph.vertex(norm.outputs[0])]
    operands: list[Value | None] = []  # v and g: g * (v / norm) or, as torch's parametrizations write it, v * (g / norm)
    for op in ("Div", "Mul"):
        readers = typegraph.successors(found[-1])
        number = typegraph.owner[readers[0]] if len(readers) == 1 else len(typegraph.nodes)
        if number >= len(typegraph.nodes) or typegraph.nodes[number].op_type != op:
            return []
        node = typegraph.nodes[number]
        others = [value for value in node.inputs if value is not None and typegraph.vertex(value) != found[-1]]
        if len(others) != 1 or (op == "Div" and others[0] is not node.inputs[0]):
            return []
        if others[0] is not norm.inputs[0] and ((g := constant_of(others[0])) is None or Stats(g).largest >= _LARGEST_ROOT):
            return []
        operands.append(others[0])
        found += readers
    if sum(value is norm.inputs[0] for value in operands) != 1:
        return []
    return found if all(typegraph.able[v] and typegraph.is_float[v] and typegraph.color[v] != UNLISTED for v in found) else []
