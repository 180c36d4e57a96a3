"""The end of a model in float32, where that needs no more casts than to cast its result.

Two things: the arithmetic between the last linear op and a result that keeps its dtype, and the last linear ops themselves if
their weights are next to nothing of the model's: the heads of many convolutional nets, which decide how exact the result is.
"""

from ..graph.dtypes import float32
from .constants import constant_of, count_weights, is_constant
from .painting import Painting, Reason
from .typegraph import ALLOW, CLEAR, GRAY
from .view import LINEAR

_MOST_STEPS = 16
#: The part of a model's weights that linear ops at its end may have, and how many low ones there must be in all.
_WEIGHTS = 0.005
_LEAST_LINEAR = 8


def free_tails(painting: Painting) -> None:
    """Take back the low ops at the end of a model of which each has one low operand, which nothing else reads."""
    graph = painting.typegraph
    tied = {vertex for tie in painting.facts.ties for vertex in tie.members}
    linear = sum(painting.allow[graph.vertex(graph.nodes[i].outputs[0])] for i in graph.with_op(*LINEAR))
    budget = _WEIGHTS * count_weights(graph.nodes) if linear >= _LEAST_LINEAR else -1.0
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
            slots = [s for s, v in enumerate(node.inputs) if v is not None and graph.operand(graph.owner[vertex], s) == vertex]
            floats = [v for s in slots if (v := node.inputs[s]) is not None and v.dtype is float32]
            low = [v for v in floats if not is_constant(v.producer)]
            if len(low) != 1 or value.shape.dims is None:
                break
            if graph.color[vertex] == ALLOW and node.op_type in LINEAR:
                budget -= sum(tensor.size for v in floats if (tensor := constant_of(v)) is not None)
                if budget < 0 or len(floats) < 2:
                    break
            elif graph.color[vertex] not in (GRAY, CLEAR) or low[0].shape.size != value.shape.size:
                break
            tail.append(vertex)
            reader, value = vertex, low[0]
        first = (ALLOW,) if any(graph.color[vertex] == ALLOW for vertex in tail) else (GRAY,)
        while tail and graph.color[tail[-1]] not in first:  # what only moves elements may do so in half the bytes
            tail.pop()
        painting.erase(tail, Reason.TAIL)
