"""The end of a model in float32, where that needs no more casts than to cast its result.

Two things: the arithmetic between the last linear op and a result that keeps its dtype, and the last linear ops themselves if
their weights are next to nothing of the model's: the heads of many convolutional nets, which decide how exact the result is.
"""

from ..graph.dtypes import float32
from .constants import constant_of, is_constant
from .paint import Painting, Reason
from .typegraph import ALLOW, CLEAR, GRAY, TypeGraph
from .view import LINEAR

_MOST_STEPS = 16
#: The part of a model's weights that linear ops at its end may have.
_WEIGHTS = 0.005


def free_tails(painting: Painting) -> None:
    """Take back the low ops at the end of a model of which each has one low operand, which nothing else reads."""
    graph = painting.typegraph
    tied = {vertex for tie in painting.facts.ties for vertex in tie.members}
    number = {node: i for i, node in enumerate(graph.nodes)}
    budget = _WEIGHTS * _constant_bytes(graph)
    for i, (part, position) in enumerate(graph.results):
        end = graph.result_vertex(i)
        if graph.processed[end]:
            continue
        value = part.outputs[position]
        tail: list[int] = []
        reader = end
        for _ in range(_MOST_STEPS):
            vertex, node = graph.vertex(value), value.producer
            if not painting.allow[vertex] or vertex in tied or len(node.outputs) > 1 or set(graph.successors(vertex)) != {reader}:
                break
            slots = [s for s, v in enumerate(node.inputs) if v is not None and graph.operand(number[node], s) == vertex]
            floats = [v for s in slots if (v := node.inputs[s]) is not None and v.dtype is float32]
            low = [v for v in floats if not is_constant(v.producer)]
            if len(low) != 1 or value.shape.dims is None:
                break
            if graph.color[vertex] == ALLOW and node.op_type in LINEAR:
                budget -= sum(tensor.nbytes for v in floats if (tensor := constant_of(v)) is not None)
                if budget < 0 or len(floats) < 2:
                    break
            elif graph.color[vertex] not in (GRAY, CLEAR) or low[0].shape.size != value.shape.size:
                break
            tail.append(vertex)
            reader, value = vertex, low[0]
        while tail and graph.color[tail[-1]] == CLEAR:  # what only moves elements may do so in half the bytes
            tail.pop()
        painting.erase(tail, Reason.TAIL)


def _constant_bytes(graph: TypeGraph) -> int:
    nodes = (graph.nodes[i] for i in graph.with_op("Initializer", "Constant", "Input"))
    return sum(tensor.nbytes for node in nodes if node.outputs and (tensor := constant_of(node.outputs[0])) is not None)
