"""Low regions whose casts cost more than they save.

Only regions without a real matrix product or convolution come into question: those whose products are never added up, such as a
position times a frequency. They are judged by bytes moved: a result or constant that is low saves two bytes per element, and a
cast on the border costs six, since it reads four and writes two, or the other way round. Sizes that are not known count as 1;
where not even a rank is known the region stays.
"""

import numpy as np

from ..graph.graph import Value
from .clusters import DisjointSets
from .constants import is_constant
from .paint import Painting, Reason
from .typegraph import ALLOW
from .view import LINEAR, depth_of

_SAVED, _CAST = 2, 6


def drop_islands(painting: Painting) -> None:
    """Take back low regions that do not pay; those they are tied to go with them."""
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
    members: dict[int, list[int]] = {}
    for vertex in np.flatnonzero(low).tolist():
        members.setdefault(sets.find(vertex), []).append(vertex)
    if not members:
        return
    gain = dict.fromkeys(members, 0)
    cost = dict.fromkeys(members, 0)
    kept: set[int] = set()
    cast: set[tuple[Value, int]] = set()

    def count(value: Value) -> int | None:
        dims = value.shape.dims
        return None if dims is None else int(np.prod([dim if isinstance(dim, int) else 1 for dim in dims], dtype=object))

    for number, node in enumerate(graph.nodes):
        for value in node.outputs:
            vertex = graph.vertex(value)
            if low[vertex]:
                region, size = sets.find(vertex), count(value)
                if size is None:
                    kept.add(region)
                    continue
                gain[region] += _SAVED * size
                if graph.color[vertex] == ALLOW and (node.op_type not in LINEAR or depth_of(node) != 1):
                    kept.add(region)
        for slot, operand in enumerate(node.inputs):
            if operand is not None:
                reader = graph.operand(number, slot)
                _weigh(painting, sets, cast, operand, reader, gain, cost, kept, count(operand))
    for i, (part, position) in enumerate(graph.results):
        value = part.outputs[position]
        _weigh(painting, sets, cast, value, graph.result_vertex(i), gain, cost, kept, count(value))
    for region, vertices in members.items():
        if region not in kept and cost[region] > gain[region]:
            painting.erase(vertices, Reason.ISLAND)


def _weigh(
    painting: Painting,
    sets: DisjointSets,
    cast: set[tuple[Value, int]],
    value: Value,
    reader: int,
    gain: dict[int, int],
    cost: dict[int, int],
    kept: set[int],
    size: int | None,
) -> None:
    """Count what an edge costs or saves, once per value and region."""
    graph, allow = painting.typegraph, painting.allow
    source = graph.vertex(value)
    if not allow[reader] and not allow[source]:
        return
    constant = is_constant(value.producer)
    if allow[source] and allow[reader] and not constant:
        return
    region = sets.find(reader if allow[reader] else source)
    if (value, region) in cast:
        return
    cast.add((value, region))
    if size is None:
        kept.add(region)
    elif constant:
        gain[region] += _SAVED * size
    elif graph.is_float[source] or graph.unknown[source] or not allow[reader]:
        cost[region] += _CAST * size
