"""Hazards that were measured: what the policy says about the ranges of values, and which values it keeps for their errors."""

from typing import TYPE_CHECKING

from ..graph.dtypes import DType
from ..graph.graph import Value
from .hazards import Found
from .hazards_constants import LIMITS
from .view import View

if TYPE_CHECKING:
    from .policy import Policy

#: Data is a sample: values whose largest magnitude is within this factor of the low dtype's largest number stay float32.
_ROOM = 4.0
#: Ops of which a small operand matters as much as a large one. Of others that depends on a further operand or reader.
_MAGNIFY = frozenset(["Reciprocal", "Log", "Rsqrt", "ReduceLogSum"])
_CONSTANTS = frozenset(["Initializer", "Constant", "ConstantOfShape"])
_OWNERS = frozenset(["If", "Loop", "Scan", "While", "StatelessWhile", "StatelessIf", "SequenceMap"])


def is_out_of_range(smallest: float, largest: float, low: DType) -> bool:
    """Whether a value with these magnitudes could be in danger somewhere."""
    infinite, normal = LIMITS[low]
    return largest * _ROOM >= infinite or 0 < smallest < normal


def overflows(largest: float, low: DType) -> bool:
    """Whether the low dtype has no number as large as that."""
    return largest >= LIMITS[low][0]


def hold_measured(view: View, found: Found, policy: "Policy") -> None:
    """Hold the values that the policy has measurements of, as far as no other rule holds them already.

    1. A value near or over the largest number of the low dtype, and all that reads it.
    2. A value that is small throughout, so that it vanishes or loses its digits, and what reads it; products of matrices and
       convolutions only if their error matters, which is found by trying.
    3. A value with elements so small, where an op magnifies them, and that op.
    4. The nodes that the policy keeps.

    What only masks scores before a softmax is clamped instead.
    """
    if not (policy.ranges or policy.kept):
        return
    values: dict[str, list[Value]] = {}
    wanted = {row[0] for row in (*policy.ranges, *policy.kept)}
    for node in view.nodes:
        for value in node.outputs:
            if value.name in wanted:
                values.setdefault(value.name, []).append(value)
    masked = {vertex for clamp in found.clamps.values() for vertex in clamp.way}
    for name, smallest, largest in policy.ranges:
        for value in values.get(name, ()):
            if view.graph.vertex(value) not in masked and view.op_of(value) not in _CONSTANTS:
                _hold_range(view, found, value, smallest, largest)
    for name, why in policy.kept:
        for value in values.get(name, ()):
            _hold(view, found, name, _vertices(view, value), "measured-error", why)


def _hold_range(view: View, found: Found, value: Value, smallest: float, largest: float) -> None:
    infinite, normal = LIMITS[view.low]
    vertex = view.graph.vertex(value)
    readers = view.graph.successors(vertex)
    if largest * _ROOM >= infinite:
        where = "over" if largest >= infinite else "near"
        what = f"reached {largest:.6g}, {where} the largest number of {view.low}"
    elif 0 < largest < normal:
        what = f"was at most {largest:.6g}, which loses its digits in {view.low}"
        readers = [reader for reader in readers if not view.is_linear(reader)]
        if view.is_linear(vertex):
            vertex = -1
    elif 0 < smallest < normal:
        what = f"was as small as {smallest:.6g}, which loses its digits in {view.low}"
        readers = [reader for reader in readers if _magnifies(view, reader, value)]
        if not readers or view.is_linear(vertex):
            vertex = -1
    else:
        return
    if vertex >= 0:
        _hold(view, found, value.name, [vertex], "measured-range", f"its result {what}")
    _hold(view, found, value.name, readers, "measured-range", f"its operand {value.name!r} {what}")


def _hold(view: View, found: Found, name: str, vertices: list[int], code: str, why: str) -> None:
    new = [vertex for vertex in vertices if vertex not in found.hazards and view.is_float[vertex]]
    found.hold(view, new, code, why)
    found.measured.update((vertex, name) for vertex in new if vertex in found.hazards)


def _magnifies(view: View, reader: int, value: Value) -> bool:
    """Whether an op makes much of small elements: a division by them, a logarithm, a root that something is divided by."""
    op, number = view.op(reader), view.node_of(reader)
    if op == "Div":
        return view.operand(number, 1) is value
    if op == "Pow":
        power = view.scalar(view.operand(number, 1))
        return view.operand(number, 0) is value and (power is None or power < 1)
    if op == "Sqrt":
        root = view.nodes[number].outputs[0]
        return any(_magnifies(view, other, root) for other in view.graph.successors(reader) if view.op(other) != "Sqrt")
    return op in _MAGNIFY


def _vertices(view: View, value: Value) -> list[int]:
    """Return the vertices of a value's node; of an op with bodies and one result each only that of the value."""
    vertex = view.graph.vertex(value)
    if view.op(vertex) in _OWNERS:
        return [vertex]
    return list(view.graph.vertices_of(view.node_of(vertex)))
