"""What a run of a graph is fed, and which nodes of a TensorFlow graph it needs."""

from ..graph.graph import Graph, Node, Value

#: Ops of TensorFlow whose results are what a run is fed.
_PLACEHOLDERS = ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault")


def inputs_of(graph: Graph) -> list[Value]:
    """Return what a run of a graph is fed: formal inputs, and Placeholders of a TensorFlow graph."""
    if graph.opsets or graph.is_function:
        return list(graph.inputs)
    nodes = (node for node in graph.nodes if node.domain == "tf" and node.op_type in _PLACEHOLDERS)
    return [*graph.inputs, *(node.outputs[0] for node in nodes)]


def needed(graph: Graph) -> list[Node]:
    """Return the nodes of a TensorFlow graph that its results depend on; of a function also those with effects."""
    order = graph.topological()
    wanted = {value.producer for value in graph.outputs}
    if graph.is_function:
        wanted.update(
            node for node in order if node.schema is not None and node.schema.stateful and node.op_type not in _PLACEHOLDERS
        )
    stack = list(wanted)
    while stack:
        node = stack.pop()
        for source in (*(value.producer for value in node.inputs if value is not None), *node.controls):
            if source not in wanted:
                wanted.add(source)
                stack.append(source)
    return [node for node in order if node in wanted]


def has_default(value: Value) -> bool:
    """Whether an input need not be fed."""
    return "default" in value.producer.attributes or value.producer.op_type == "PlaceholderWithDefault"
