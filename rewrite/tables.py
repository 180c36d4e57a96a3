"""Large tables of constants, such as embeddings, of which only some rows are read: they are stored in the low dtype."""

from ..graph.dtypes import DType
from .constants import constant_of
from .typegraph import CLEAR, TypeGraph

_READERS = ("Gather", "GatherElements", "GatherND", "com.microsoft:TorchEmbedding")
#: Smaller tables are not worth a cast behind them.
_LEAST_BYTES = 1 << 16


def find_tables(typegraph: TypeGraph, low: DType) -> list[int]:
    """Return the vertices of nodes that read rows of a table and may do so in the low dtype."""
    found = []
    for i in typegraph.with_op(*_READERS):
        table = constant_of(typegraph.nodes[i].inputs[0])
        if table is None or table.nbytes < _LEAST_BYTES:
            continue
        vertex = typegraph.operand(i, 0)
        if typegraph.color[vertex] == CLEAR and typegraph.able[vertex] and typegraph.is_float[vertex]:
            found.append(vertex)
    return found
