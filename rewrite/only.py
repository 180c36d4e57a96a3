"""Taking back all decisions but some, to see what those alone do to the results."""

from collections.abc import Collection, Mapping

from ..graph.graph import Node
from .paint import settle_loops
from .painting import Painting, Reason


def first_result(node: Node) -> str:
    """Return the name of a node's first result, by which calibration speaks of the node."""
    return next((value.name for value in node.outputs if value.name), node.label)


def keep_only(painting: Painting, names: Mapping[Node, str], wanted: Collection[str]) -> None:
    """Take back every low node whose name is not wanted, and what is tied to one of them.

    Args:
        painting: The decisions so far.
        names: What nodes are called, by :func:`first_result`.
        wanted: Names of the nodes that stay low.
    """
    graph = painting.typegraph
    for i, node in enumerate(graph.nodes):
        if names[node] not in wanted:
            painting.erase(graph.vertices_of(i), Reason.NONE)
    groups = [*(tie.members for tie in painting.facts.ties), *(cluster.members for cluster in painting.clusters)]
    before = -1
    while before != (before := painting.allow.count(1)):  # a vertex may be in two
        for members in groups:
            if not all(painting.allow[vertex] for vertex in members):
                painting.erase(members, Reason.NONE)
        settle_loops(painting, (), to_fixpoint=True)
