"""``ampgraph show``: the text form of a graph, a node with its neighbours, or what the graph consists of."""

import collections
from typing import TYPE_CHECKING, Any

import click

from ampgraph.cli.output import count_nodes, note, print_json, print_table, print_text
from ampgraph.cli.program import Command
from ampgraph.cli.streams import Source, find_bodies, find_function, find_node, source_options

if TYPE_CHECKING:
    from ampgraph.graph import Graph, Node

_INPUTS = ("Placeholder", "PlaceholderV2")


@click.command(cls=Command)
@source_options
@click.option("--function", metavar="NAME", help="Show this function's body instead of the main graph.")
@click.option("--node", metavar="NAME", help="Show one node, in functions too, what it reads and what reads it.")
@click.option("--stats", is_flag=True, help="Count ops and dtypes instead.")
@click.option("--json", "as_json", is_flag=True, help="Print the counts (or, with --node, the neighbourhood) as JSON.")
def show(source: Source, function: str | None, node: str | None, stats: bool, as_json: bool) -> None:
    """Show the graph in FILE in text form.

    The graph itself as JSON is `ampgraph dump FILE --format json`.
    """
    if node is not None and stats:
        raise click.UsageError("--node and --stats exclude each other.")
    graph = source.load()
    if node is not None:
        _show_node(find_bodies(graph, node, function), node, as_json)
        return
    if function is not None:
        graph = find_function(graph, function)
    if stats or as_json:
        _show_stats(graph, as_json)
    else:
        print_text(str(graph))


def _show_node(bodies: "list[Graph]", name: str, as_json: bool) -> None:
    graph, *others = bodies
    if others:
        names = ", ".join(repr(body.name) for body in others)
        note(f"there is a node {name!r} in function{'s' * (len(others) > 1)} {names} too: choose with --function")
    node = find_node(graph, name)
    assert node is not None
    function = graph.name if graph.is_function else ""
    groups = {
        "reads": [value.producer for value in node.inputs if value is not None],
        "waits for": node.controls,
        "read by": [user for value in node.outputs for user, _ in value.uses()],
        "waited for by": [user for _, user, slot in graph.nx.out_edges(node, keys=True) if not isinstance(slot, int)],
    }
    lines = _lines(graph)
    unique = {title: list(dict.fromkeys(nodes)) for title, nodes in groups.items()}
    if as_json:
        print_json(
            {
                "function": function,
                "node": lines[node],
                **{title: [lines[item] for item in nodes] for title, nodes in unique.items()},
            }
        )
        return
    for title, nodes in {f"node in function {function!r}" if function else "node": [node], **unique}.items():
        if nodes:
            print_text("\n".join([f"// {title}", *(f"  {lines[item]}" for item in nodes)]))


def _lines(graph: "Graph") -> "dict[Node, str]":
    """Return the line that stands for each node in the text form, without its indentation."""
    from ampgraph.graph.text_print import print_nodes

    lines = {value.producer: f"input {value}: {value.dtype}{value.shape}" for value in graph.inputs}
    lines.update(print_nodes(graph))
    return lines


def _show_stats(graph: "Graph", as_json: bool) -> None:
    from ampgraph.graph.schemas.ampgraph import is_op

    parts = [graph] if graph.is_function else graph.all_graphs()
    nodes = [node for part in parts for node in part.nodes if is_op(node)]
    ops = collections.Counter(node.op_type for node in nodes)
    dtypes = collections.Counter(str(value.dtype or "unknown") for node in nodes for value in node.outputs)
    main = sum(map(is_op, graph.nodes))
    functions = 0 if graph.is_function else len(graph.functions)
    facts: dict[str, Any] = {
        "nodes": main,
        "functions": functions,
        "nodes_in_functions": len(nodes) - main,
        "inputs": [
            *(value.name for value in graph.inputs),
            *(node.name for node in graph.nodes if node.op_type in _INPUTS and node.domain == "tf"),
        ],
        "outputs": list(graph.output_names),
    }
    if graph.opsets:
        facts["bodies"] = len(parts) - 1 - functions
        facts["initializers"] = sum(map(len, parts)) - len(nodes)
    if as_json:
        print_json({**facts, "ops": dict(ops.most_common()), "dtypes": dict(dtypes.most_common())})
        return
    from ampgraph.graph.wording import plural

    inputs, outputs = plural(len(facts["inputs"]), "input"), plural(len(graph.outputs), "output")
    click.echo(f"{count_nodes(graph)}, {inputs}, {outputs}\n")
    print_table(("dtype", "values"), dtypes.most_common())
    click.echo()
    print_table(("op", "nodes"), ops.most_common())
