"""Where a value passes from one graph of an ONNX model into another, it must have one dtype on both sides.

No Cast can stand on such a border: between an operand of If, Loop, Scan or of a model-local function and the formal input
inside, or between what a body returns and the result outside. Nor can one stand on an edge that carries a sequence or an
optional. The vertices on the two sides form a :class:`Tie`, found by union-find; edges are added along the way a value takes,
so that walks pass from graph to graph.
"""

import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np

from ..graph.dtypes import bfloat16
from ..graph.graph import Graph, Node, Value
from ..graph.schemas.onnx_schema import capture_labels
from .clusters import DisjointSets
from .typegraph import TypeGraph

#: Two type variables of one op that must be of one dtype although the standard lets them differ.
_TOGETHER = {
    "Attention": ("T1", "T2"),
    "RMSNormalization": ("T", "V"),
    "SimplifiedLayerNormalization": ("T", "V"),
    "GroupQueryAttention": ("T", "T_CACHE"),
}
#: Ops whose bodies are understood: op -> (first operand handed to the body, result of the body that is the op's first).
_OWNERS = {"If": (None, 0), "Loop": (0, 1), "Scan": (0, 0), "SequenceMap": (0, 0)}


@dataclasses.dataclass(frozen=True)
class Tie:
    """Vertices that must have one dtype.

    Attributes:
        members: The float32 vertices.
        fixed: One of them that cannot change, or None.
    """

    members: list[int]
    fixed: int | None = None


def owns_bodies(node: Node, functions: Mapping[str, Graph]) -> bool:
    """Whether a node hands values to graphs: it has bodies, or calls a model-local function."""
    return is_call(node, functions) or any(isinstance(body, Graph) for body in _bodies(node))


def is_call(node: Node, functions: Mapping[str, Graph]) -> bool:
    """Whether a node calls a model-local function."""
    schema = node.schema
    return schema is not None and schema.is_call and f"{node.domain}:{node.op_type}" in functions


def does_nothing(node: Node) -> bool:
    """Whether a node is a Cast to the dtype its operand has."""
    return node.op_type == "Cast" and not node.domain and node.types.get("T1") is node.types.get("T2")


def find_ties(typegraph: TypeGraph) -> list[Tie]:
    """Find the ties of an ONNX model, and link the ways of values between its graphs into the type graph."""
    sets = DisjointSets(typegraph.count)
    fixed: set[int] = set()
    sources: list[int] = []
    targets: list[int] = []
    for source, target in _ways(typegraph, fixed):
        sources.append(source)
        targets.append(target)
        sets.union(source, target)
    containers = list(_containers(typegraph, fixed))
    for source, target in containers:
        sets.union(source, target)
    if not (sources or containers or fixed):
        return []
    typegraph.link(np.array(sources, np.int64), np.array(targets, np.int64), 0)
    groups: dict[int, list[int]] = {}
    floats = np.flatnonzero(typegraph.is_float).tolist()
    fixed.update(vertex for vertex in floats if not (typegraph.processed[vertex] and typegraph.able[vertex]))
    for vertex in floats:
        groups.setdefault(sets.find(vertex), []).append(vertex)
    held = {sets.find(vertex): vertex for vertex in fixed}
    return [Tie(members, held.get(root)) for root, members in groups.items() if len(members) > 1 or root in held]


def _ways(typegraph: TypeGraph, fixed: set[int]) -> Iterator[tuple[int, int]]:
    """Yield pairs of vertices that a value passes between; take down those that a border holds fast."""
    ends = {end: typegraph.result_vertex(i) for i, end in enumerate(typegraph.results)}
    functions = typegraph.parts[0].functions
    with_bodies = {node for part in typegraph.parts for node, _, _ in part.bodies()}
    owners: list[int] = []
    for i, node in enumerate(typegraph.nodes):
        if is_call(node, functions):
            yield from _call_ways(typegraph, i, functions[f"{node.domain}:{node.op_type}"], ends, fixed)
        elif does_nothing(node):
            yield typegraph.operand(i, 0), typegraph.vertex(node.outputs[0])
        elif node in with_bodies:
            owners.append(i)
    for i in typegraph.with_op(*_TOGETHER, *(f"com.microsoft:{op}" for op in _TOGETHER)):
        one, other = _TOGETHER[typegraph.nodes[i].op_type]
        keys = typegraph.keys_of(i)
        if one in keys and other in keys:
            yield typegraph.first[i] + keys.index(one), typegraph.first[i] + keys.index(other)
    for i in owners:
        yield from _body_ways(typegraph, i, ends, fixed)


def _call_ways(
    typegraph: TypeGraph, i: int, callee: Graph, ends: Mapping[tuple[Graph, int], int], fixed: set[int]
) -> Iterator[tuple[int, int]]:
    """Yield the ways between node ``i`` and the function that it calls."""
    node = typegraph.nodes[i]
    for slot, formal in enumerate(callee.inputs):  # nothing can be cast where nothing may come in
        if slot >= len(node.inputs) or node.inputs[slot] is None:
            vertex = typegraph.vertex(formal)
            yield from ((vertex, reader) for reader in typegraph.successors(vertex))
    for slot, value in enumerate(node.inputs):
        if value is not None:
            if callee.inputs[slot].dtype is None:  # the calls disagree
                fixed.update(typegraph.successors(typegraph.vertex(callee.inputs[slot])))
            yield from _tie(typegraph, typegraph.operand(i, slot), callee.inputs[slot], fixed)
    for slot, value in enumerate(node.outputs):
        end = ends.get((callee, slot))
        if end is not None:
            yield end, typegraph.vertex(value)


def _body_ways(typegraph: TypeGraph, i: int, ends: Mapping[tuple[Graph, int], int], fixed: set[int]) -> Iterator[tuple[int, int]]:
    """Yield the ways between node ``i`` and its bodies; bodies of an op that is not understood stay as they are."""
    node = typegraph.nodes[i]
    labels = capture_labels(node.attributes)
    formals = len(node.inputs) - len(labels)
    known = not node.domain and node.op_type in _OWNERS
    first, skipped = _OWNERS[node.op_type] if known else (None, 0)
    if not known:
        fixed.update(typegraph.vertices_of(i))
    if node.op_type == "Scan" and node.graph.opsets.get("", 0) < 9:
        first = 1  # the lengths of the sequences come first
    for body in _bodies(node):
        if not isinstance(body, Graph):
            continue
        own = len(body.inputs) - len(body.captures)
        if not known:
            fixed.update(typegraph.vertex(value) for value in body.inputs)
            fixed.update(ends[body, slot] for slot in range(len(body.outputs)))
        if first is not None:
            for slot in range(first, formals):
                if node.inputs[slot] is not None:
                    yield from _tie(typegraph, typegraph.operand(i, slot), body.inputs[slot - first], fixed)
        for label, value in zip(body.captures, body.inputs[own:], strict=True):
            yield from _tie(typegraph, typegraph.operand(i, formals + labels.index(label)), value, fixed)
        if not known:
            continue
        for slot, value in enumerate(node.outputs):
            yield ends[body, slot + skipped], typegraph.vertex(value)
        if first is not None and node.op_type in ("Loop", "Scan"):
            offset = 2 if node.op_type == "Loop" else first
            states = formals - offset - (node.attr("num_scan_inputs") or 0)
            for state in range(states):
                back = ends[body, state + skipped]
                yield back, typegraph.vertex(body.inputs[offset - first + state])
                if state < len(node.outputs):  # no iteration at all: what goes in comes out
                    yield typegraph.operand(i, offset + state), typegraph.vertex(node.outputs[state])


def _tie(typegraph: TypeGraph, outer: int, inner: Value, fixed: set[int]) -> Iterator[tuple[int, int]]:
    """Yield the way from an operand to a formal input; a formal input of unknown dtype holds the operand fast."""
    vertex = typegraph.vertex(inner)
    if typegraph.is_float[outer] != typegraph.is_float[vertex]:
        fixed.update((outer, vertex))
    yield outer, vertex


def _bodies(node: Node) -> Iterator[object]:
    for value in node.attributes.values():
        if isinstance(value, list):
            yield from value
        else:
            yield value


def _containers(typegraph: TypeGraph, fixed: set[int]) -> Iterator[tuple[int, int]]:
    """Yield the two ends of every edge that carries a sequence, an optional or another container: no Cast takes one.

    The standard has no containers of bfloat16 tensors.
    """
    for i, node in enumerate(typegraph.nodes):
        for slot, value in enumerate(node.inputs):
            if value is not None and value.shape.container:
                if typegraph.target is bfloat16:
                    fixed.add(typegraph.vertex(value))
                yield typegraph.vertex(value), typegraph.operand(i, slot)
    for i, (part, slot) in enumerate(typegraph.results):
        value = part.outputs[slot]
        if value.shape.container:
            if typegraph.target is bfloat16 or not typegraph.processed[typegraph.result_vertex(i)]:
                fixed.add(typegraph.vertex(value))
            yield typegraph.vertex(value), typegraph.result_vertex(i)
