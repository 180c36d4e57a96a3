"""What stays float32 in a rewritten ONNX model: the largest connected region, and where it starts."""

import collections
import dataclasses

from ..graph.graph import Node
from ..graph.schemas.ampgraph import is_op
from .clusters import DisjointSets
from .painting import Painting, Reason
from .typegraph import CONSTANTS

#: Ops that compute nothing with floats: they connect no regions.
_NO_COMPUTATION = frozenset([*CONSTANTS, "Shape", "Size", "Cast", "CastLike"])


@dataclasses.dataclass(frozen=True)
class Region:
    """Connected nodes that compute in float32 only.

    Attributes:
        nodes: The nodes, in file order.
        origin: The vertex at which most of their reasons start.
        held: How many of the nodes have a reason of the same kind: the same hazard, or the same list and op.
    """

    nodes: list[Node]
    origin: int
    held: int


def float_nodes(painting: Painting) -> list[int]:
    """Return the numbers of the nodes that compute in float32 only; constants, graph inputs and casts do not compute."""
    graph = painting.typegraph
    found = []
    for i, node in enumerate(graph.nodes):
        if not is_op(node) or (node.domain == "" and node.op_type in _NO_COMPUTATION):
            continue
        floats = [vertex for vertex in graph.vertices_of(i) if graph.is_float[vertex]]
        if floats and not any(painting.allow[vertex] for vertex in floats):
            found.append(i)
    return found


def largest_float_region(painting: Painting) -> Region | None:
    """Return the largest set of float32 nodes that data edges connect, or None if there is no such node."""
    graph = painting.typegraph
    numbers = float_nodes(painting)
    if not numbers:
        return None
    inside = bytearray(len(graph.nodes) + len(graph.results))
    for i in numbers:
        inside[i] = 1
    sets = DisjointSets(len(inside))
    owner, is_float = graph.owner, graph.is_float
    for source, target in zip(graph.sources.tolist(), graph.targets.tolist(), strict=True):
        if source >= 0 and is_float[source] and inside[owner[source]] and inside[owner[target]]:
            sets.union(owner[source], owner[target])
    regions: dict[int, list[int]] = {}
    for i in numbers:
        regions.setdefault(sets.find(i), []).append(i)
    members = max(regions.values(), key=len)
    origin, held = _main_origin(painting, members)
    return Region([graph.nodes[i] for i in members], origin, held)


def _main_origin(painting: Painting, members: list[int]) -> tuple[int, int]:
    """Return the vertex at which the most frequent kind of reason starts, and for how many nodes."""
    graph = painting.typegraph
    kinds: collections.Counter[object] = collections.Counter()
    first: dict[object, int] = {}
    memory: dict[int, int] = {}
    inside = set(members)
    for i in members:
        vertex = next(vertex for vertex in graph.vertices_of(i) if graph.is_float[vertex])
        start = _start(painting, vertex, inside, memory)
        hazard = painting.facts.hazards.get(start)
        node = graph.nodes[graph.owner[start]] if graph.owner[start] < len(graph.nodes) else None
        kind: object = hazard.code if hazard else (painting.reason[start], node and node.op_type)
        kinds[kind] += 1
        first.setdefault(kind, start)
    main, held = kinds.most_common(1)[0]
    return first[main], held


def _start(painting: Painting, vertex: int, inside: set[int], memory: dict[int, int]) -> int:
    """Return the vertex where the chain of reasons of ``vertex`` starts; every vertex is followed once."""
    path = []
    on_path: set[int] = set()
    here = vertex
    while here not in memory:
        step = _step(painting, here, inside)
        if step < 0 or step in on_path:
            memory[here] = here
            break
        path.append(here)
        on_path.add(here)
        here = step
    for previous in path:
        memory[previous] = memory[here]
    return memory[here]


def _step(painting: Painting, vertex: int, inside: set[int]) -> int:
    """Return the vertex from which ``vertex`` has its reason, or -1. Without a reason it goes with what it reads."""
    graph = painting.typegraph
    if painting.reason[vertex] == Reason.HAZARD or painting.via[vertex] >= 0:
        return -1 if painting.reason[vertex] == Reason.HAZARD else painting.via[vertex]
    if painting.reason[vertex] != Reason.NONE or vertex in painting.facts.hazards:
        return -1
    return next((v for v in graph.predecessors(vertex) if graph.is_float[v] and graph.owner[v] in inside), -1)
