"""Low regions whose casts cost more than they save.

Only regions without a real matrix product or convolution come into question: those whose products are never added up, such as a
position times a frequency. They are judged by bytes moved: a result or constant that is low saves two bytes per element, and a
cast on the border costs six, since it reads four and writes two, or the other way round. Sizes that are not known count as 1;
where not even a rank is known the region stays.
"""

from collections.abc import Iterator

import numpy as np

from ..graph.graph import Value
from .clusters import DisjointSets
from .constants import is_constant
from .painting import Painting, Reason
from .typegraph import ALLOW, TypeGraph
from .view import LINEAR, depth_of

_SAVED, _CAST = 2, 6


def drop_islands(painting: Painting) -> None:
    """Take back low regions that do not pay; those they are tied to go with them."""
    graph = painting.typegraph
    balance = {}
    region_of = {}
    members = {}
    for region, vertices in _regions(painting).items():
        if not any(_has_substance(painting, vertex) for vertex in vertices):
            members[region] = vertices
            balance[region] = 0
            region_of.update(dict.fromkeys(vertices, region))
    if not members:
        return
    seen: set[tuple[Value, int]] = set()
    for value, reader in _edges(graph):
        source = graph.vertex(value)
        size = _count(value)
        inner, outer = region_of.get(reader), region_of.get(source)
        if outer is not None and size is not None and (value, -1) not in seen:
            seen.add((value, -1))
            balance[outer] += _SAVED * size
        at = outer if inner is None else inner
        if at is None or inner == outer or (value, at) in seen:
            continue
        seen.add((value, at))
        if size is None:
            members.pop(at, None)
        else:
            balance[at] += _SAVED * size if is_constant(value.producer) else -_CAST * size
    for region, vertices in members.items():
        if balance[region] < 0:
            painting.erase(vertices, Reason.ISLAND)


def _regions(painting: Painting) -> dict[int, list[int]]:
    """Return the low vertices by connected region."""
    graph = painting.typegraph
    low = painting.allowed()
    real = graph.sources >= 0
    sources, targets = graph.sources[real], graph.targets[real]
    inside = low[sources] & low[targets]
    sets = DisjointSets(graph.count)
    for a, b in zip(sources[inside].tolist(), targets[inside].tolist(), strict=True):
        sets.union(a, b)
    for tie in painting.facts.ties:
        for member in tie.members[1:]:
            sets.union(tie.members[0], member)
    regions: dict[int, list[int]] = {}
    for vertex in np.flatnonzero(low).tolist():
        regions.setdefault(sets.find(vertex), []).append(vertex)
    return regions


def _has_substance(painting: Painting, vertex: int) -> bool:
    """Whether a region with this vertex is worth its casts whatever they cost: products are added up there, or a table is read."""
    graph = painting.typegraph
    if painting.reason[vertex] == Reason.TABLE:
        return True
    if graph.color[vertex] != ALLOW or graph.owner[vertex] >= len(graph.nodes):
        return False
    node = graph.nodes[graph.owner[vertex]]
    return node.op_type not in LINEAR or depth_of(node) != 1


def _edges(graph: TypeGraph) -> Iterator[tuple[Value, int]]:
    """Yield every operand and every result of a graph, with the vertex that reads it."""
    for i, node in enumerate(graph.nodes):
        for slot, value in enumerate(node.inputs):
            if value is not None:
                yield value, graph.operand(i, slot)
    for i, (part, position) in enumerate(graph.results):
        yield part.outputs[position], graph.result_vertex(i)


def _count(value: Value) -> int | None:
    if value.shape.dims is None:
        return None
    count = 1
    for dim in value.shape.dims:
        count *= dim if isinstance(dim, int) else 1
    return count
