"""How many FLOPs of a run each node that multiplies matrices has, by the shapes that values really have."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..graph.graph import Graph, Node, Value
from ..graph.work import multiplies, work_of


class FlopCounter:
    """Counts the FLOPs of matrix products, two for a multiply-add: see :mod:`ampgraph.graph.work`. Give :meth:`see` to a program.

    Args:
        graph: The graph that will run.
        feeds: What it will run on.

    Attributes:
        by_node: FLOPs of each node, as often as it ran.
    """

    def __init__(self, graph: Graph, feeds: Mapping[str, Any]) -> None:
        import numpy as np

        self.by_node: Counter[Node] = Counter()
        self._shapes: dict[Value, Sequence[int]] = {
            value: np.shape(feeds[value.name]) for value in graph.inputs if value.name in feeds
        }
        self._outer = _captured(graph)

    def see(self, value: Value, array: Any) -> None:
        """Take note of a value that was computed."""
        if not hasattr(array, "shape"):
            return
        self._shapes[value] = array.shape
        node = value.producer
        if not value.index and multiplies(node):
            work = work_of(node, self._shape)
            self.by_node[node] += 2 * ((work and work.products) or 0)

    def _shape(self, value: Value | None) -> Sequence[int] | None:
        while value is not None:
            if value in self._shapes:
                return self._shapes[value]
            constant = value.producer.attributes.get("value")
            dims = getattr(constant, "shape", None) if not value.producer.inputs else None
            if dims is not None:
                return tuple(dims)
            if value.shape.dims is not None and all(isinstance(dim, int) for dim in value.shape.dims):
                return tuple(dim for dim in value.shape.dims if isinstance(dim, int))
            value = self._outer.get(value)
        return None


def _captured(graph: Graph) -> dict[Value, Value]:
    """Return for each input of a body that stands for an outer value the operand of the body's owner that it is."""
    found: dict[Value, Value] = {}
    for part in graph.all_graphs():
        for node, _, body in part.bodies():
            by_label = {value.name: value for value in node.inputs if value is not None}
            for value, label in zip(body.inputs[len(body.inputs) - len(body.captures) :], body.captures, strict=True):
                if label in by_label:
                    found[value] = by_label[label]
    return found
