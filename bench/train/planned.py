"""What a training step must keep in memory, by the dtypes and shapes in its graph: no matter how the executor holds it."""

import math

from ampgraph.graph import Value
from ampgraph.kernels.program import Program


def planned_peak(program: Program) -> int:
    """Return the most bytes of values that are still to be read, at a time, in the order of the nodes; without variables and feeds.

    A result that moves no element out of its operand, such as that of a Reshape, takes no memory of its own.
    """
    order = {node: i for i, node in enumerate(program.graph.topological())}
    owners: dict[Value, Value | None] = {}
    last: dict[Value, int] = {}
    for node, i in order.items():
        if node.op_type in ("Const", "Placeholder", "VarHandleOp", "ReadVariableOp"):
            owners.update(dict.fromkeys(node.outputs))
            continue
        for value in node.inputs:
            owner = owners.get(value) if value is not None else None
            if owner is not None:
                last[owner] = i
        source = node.inputs[0] if node.op_type in ("Identity", "Reshape", "Squeeze", "ExpandDims") else None
        owners.update({value: value if source is None else owners.get(source) for value in node.outputs})
    last |= {owner: len(order) for value in program.graph.outputs if (owner := owners[value]) is not None}
    ends: dict[int, list[Value]] = {}
    for owner, i in last.items():
        ends.setdefault(i, []).append(owner)
    live = most = 0
    for node, i in order.items():
        live += sum(_bytes(value) for value in node.outputs if owners[value] is value and value in last)
        most = max(most, live)
        live -= sum(map(_bytes, ends.get(i, ())))
    return most


def _bytes(value: Value) -> int:
    """Return the size of a value whose dtype and shape are known."""
    assert value.dtype is not None
    return math.prod(int(size) for size in value.shape.dims or () if isinstance(size, int)) * value.dtype.bits // 8
