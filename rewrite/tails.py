"""The last arithmetic before a result of the model: in float32, where that needs no more casts than to cast the result itself."""

from ..graph.dtypes import float32
from .constants import is_constant
from .paint import Painting, Reason
from .typegraph import CLEAR, GRAY

#: Ops that cut or join are not worth to be moved; of the others only those that keep the number of elements count.
_MOST_STEPS = 8


def free_tails(painting: Painting) -> None:
    """Take back the low ops between the last linear op and a result that keeps its dtype, if one operand of each is low."""
    graph = painting.typegraph
    tied = {vertex for tie in painting.facts.ties for vertex in tie.members}
    number = {node: i for i, node in enumerate(graph.nodes)}
    for i, (part, position) in enumerate(graph.results):
        end = graph.result_vertex(i)
        if graph.processed[end]:
            continue
        value = part.outputs[position]
        tail: list[int] = []
        allowed = {end}
        for _ in range(_MOST_STEPS):
            vertex, node = graph.vertex(value), value.producer
            if not painting.allow[vertex] or vertex in tied or graph.color[vertex] not in (GRAY, CLEAR) or len(node.outputs) > 1:
                break
            if any(reader not in allowed for reader in graph.successors(vertex)):
                break
            floats = [
                operand
                for slot, operand in enumerate(node.inputs)
                if operand is not None and graph.operand(number[node], slot) == vertex and operand.dtype is float32
            ]
            low = [operand for operand in floats if not is_constant(operand.producer)]
            if len(low) != 1 or low[0].shape.size != value.shape.size or value.shape.dims is None:
                break
            tail.append(vertex)
            allowed = {vertex}
            value = low[0]
        while tail and graph.color[tail[-1]] != GRAY:  # what only moves elements may do so in half the bytes
            tail.pop()
        if tail and len(set(tail)) == len(tail):
            painting.erase(tail, Reason.TAIL)
