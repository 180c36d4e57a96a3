"""What stands in front of a layer normalization written out and what stands behind it have one dtype.

Runtimes fuse the seven ops and the scale and the offset behind them into one LayerNormalization, passing over Casts on the way.
From version 17 of the standard on that op has one dtype for values, scale and offset, so that onnxruntime refuses a model with
float32 ones behind low values.
"""

from .constants import is_constant
from .painting import Painting, Reason
from .typegraph import CLEAR, GRAY, TypeGraph

#: The version of the standard that has LayerNormalization; before, it is onnxruntime's own op, whose scale may be float32.
_ONE_DTYPE = 17


def match_affines(painting: Painting) -> None:
    """Make them agree: scale and offset low behind low values, or a sum float32 that is only normalized.

    The latter is for sums of a low and a float32 value, residual connections, since it takes no more casts: the low operand is
    cast instead of the sum.
    """
    graph = painting.typegraph
    tied = {vertex for tie in painting.facts.ties for vertex in tie.members}
    for source, affine in painting.facts.affines:
        opset = graph.nodes[graph.owner[source]].graph.opsets.get("", 0)
        if opset < _ONE_DTYPE or not painting.allow[source] or any(painting.allow[vertex] for vertex in affine):
            continue
        if not all(painting.allow[reader] or _is_centering(graph, reader) for reader in graph.successors(source)):
            continue  # something else reads the Cast in front of the normalization: no runtime passes over it
        if source not in tied and _is_residual(painting, source):
            painting.erase((source,), Reason.NORMALIZED)
        elif all(graph.processed[v] and graph.able[v] and v not in tied for v in affine):
            painting.permit(affine)
            painting.paint(affine, Reason.AFFINE, dict.fromkeys(affine, source))


def _is_centering(graph: TypeGraph, vertex: int) -> bool:
    """Whether a vertex may be the mean of a normalization, or take it away."""
    number = graph.owner[vertex]
    return number < len(graph.nodes) and graph.nodes[number].op_type in ("Sub", "ReduceMean", "GlobalAveragePool")


def _is_residual(painting: Painting, vertex: int) -> bool:
    """Whether a vertex adds a low and a float32 value, and nothing low reads it."""
    graph = painting.typegraph
    if graph.color[vertex] not in (GRAY, CLEAR) or any(painting.allow[reader] for reader in graph.successors(vertex)):
        return False
    node = graph.nodes[graph.owner[vertex]]
    terms = [value for value in node.inputs if value is not None and not is_constant(value.producer)]
    return node.op_type == "Add" and sorted(painting.allow[graph.vertex(value)] for value in terms) == [0, 1]
