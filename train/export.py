"""Graphs that leave for TensorFlow: training steps in its ops, and a node that gives variables what they start with."""

from collections.abc import Mapping

from ..graph.graph import Graph
from ..graph.tracing.variable import Variable, array_of
from ..graph.types import Tensor
from .lowering import lower_apply_gradients


def export_graph(graph: Graph, variables: Mapping[str, Variable]) -> Graph:
    """Return a copy of a graph that TensorFlow can start and run.

    It has one more node without results, ``init``, that lets every variable hold what it holds now. It is the one that
    ``graph.attributes["preserved"]`` names last.

    Args:
        graph: The graph.
        variables: The variables that it uses, by the names of their handles.

    Raises:
        GraphError: As :func:`~.lowering.lower_apply_gradients`.
    """
    graph = lower_apply_gradients(graph.copy())
    assignments = []
    for name, variable in variables.items():
        handle, tensor = graph.node(name), Tensor.of(array_of(variable).copy())
        start = graph.add("Const", name=graph.fresh_name(f"init/{name}/value"), attributes={"value": tensor})
        assignments.append(
            graph.add("AssignVariableOp", [handle.outputs[0], start.outputs[0]], name=graph.fresh_name(f"init/{name}/Assign"))
        )
    init = graph.add("NoOp", name=graph.fresh_name("init"), controls=assignments)
    graph.attributes["preserved"] = [*graph.attributes.get("preserved", []), init.name]
    return graph
