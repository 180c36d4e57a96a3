"""Functions of the library that gradients make, and calls that give more results than before."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..dtypes import DType
from ..graph import Graph, Node, Value


def private_copy(graph: Graph, name: str) -> Graph:
    """Return a copy of a function under a name of its own."""
    return graph.functions[name].copy_as(fresh_function(graph, f"{name}_forward"))


def fresh_function(graph: Graph, base: str) -> str:
    """Return ``base``, or that with a number, as no function of the library is named."""
    name, k = base, 0
    while name in graph.functions:
        k += 1
        name = f"{base}_{k}"
    return name


def new_function(graph: Graph, base: str) -> Graph:
    """Add an empty function to the library."""
    name = fresh_function(graph, base)
    found = graph.functions[name] = Graph(name, graph.functions)
    return found


def finish(graph: Graph, outputs: Sequence[Value]) -> None:
    """Let a function return these values."""
    graph.outputs = list(outputs)
    graph.output_names = [f"output_{i}" for i in range(len(outputs))]


def append_outputs(graph: Graph, values: Iterable[Value]) -> None:
    """Let a function return more values."""
    names = set(graph.output_names)
    for value in values:
        k = len(graph.outputs)
        while f"output_{k}" in names:
            k += 1
        names.add(f"output_{k}")
        graph.outputs.append(value)
        graph.output_names.append(f"output_{k}")


def extend(node: Node, attributes: Mapping[str, Any], variable: str, dtypes: Sequence[DType]) -> list[Value]:
    """Let a call give more results; return them.

    Args:
        node: The node, whose operands are set already.
        attributes: Its attributes from now on.
        variable: The list variable of its results.
        dtypes: One for each further result.
    """
    start = len(node.outputs)
    schema = node.graph.find_schema("tf", node.op_type)
    assert schema is not None
    node.types = {**node.types, **{f"{variable}[{start + i}]": dtype for i, dtype in enumerate(dtypes)}}
    node.attributes = attributes
    node.signature = schema.signature(node.attributes, node.types, node.inputs)
    node.meta = None  # it speaks of the old results
    found = [Value(node, start + i) for i in range(len(dtypes))]
    node.outputs += found
    return found
