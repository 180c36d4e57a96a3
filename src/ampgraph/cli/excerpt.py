"""A part of a graph, as a graph: a node and what is near it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ampgraph.graph import Graph, Node


def excerpt(graph: "Graph", center: "Node", depth: int) -> "Graph":
    """Return the nodes that are at most ``depth`` data edges from ``center``, in either direction.

    Control edges are not followed: many lead to nodes that wait for half of the graph. Those inside are kept.
    What they read from elsewhere becomes an input, what is read elsewhere an output. The graph has no function library.
    """
    from ampgraph.graph import Graph, Node, Value

    near = _near(center, depth)
    part = Graph(graph.name, opsets=dict(graph.opsets))
    values: dict[Value, Value] = {}
    copies: dict[Node, Node] = {}
    for node in graph.all_nodes():
        if node in near:
            for value in node.inputs:
                if value is not None and value.producer not in near and value not in values:
                    values[value] = part.add_input(value.name, value.dtype, value.shape)
    for node in graph.all_nodes():
        if node not in near:
            continue
        if node.domain == "ampgraph":
            value = node.outputs[0]
            values[value] = part.add_input(value.name, value.dtype, value.shape)
            copies[node] = values[value].producer
            continue
        copy = Node(
            part, node.op_type, node.domain, node.name, node.signature, node.attributes, node.types, node.device, node.meta
        )
        copy.outputs = [Value(copy, i, value.name, value.shape, value.dtype) for i, value in enumerate(node.outputs)]
        values.update(zip(node.outputs, copy.outputs, strict=True))
        copies[node] = copy
    for node, copy in copies.items():
        copy.inputs = [None if value is None else values[value] for value in node.inputs]
        copy.controls = tuple(copies[source] for source in node.controls if source in near)
        if node.domain != "ampgraph":
            part.append(copy)
    names = dict(zip(graph.outputs, graph.output_names, strict=False))
    for value in [value for node in copies for value in node.outputs]:
        if value in names or any(user not in near for user, _ in value.uses()):
            part.outputs.append(values[value])
            part.output_names.append(names.get(value, value.name))
    return part


def _near(center: "Node", depth: int) -> "set[Node]":
    near, border = {center}, [center]
    for _ in range(depth):
        around = {value.producer for node in border for value in node.inputs if value is not None}
        around.update(user for node in border for value in node.outputs for user, _ in value.uses())
        border = [node for node in around if node not in near]
        near.update(border)
        if not border:
            break
    return near
