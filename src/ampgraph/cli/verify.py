"""``ampgraph verify``: every invariant a graph breaks."""

import click

from ampgraph.cli.output import count_nodes, print_json, progress
from ampgraph.cli.program import Command
from ampgraph.cli.streams import Source, source_options


@click.command(cls=Command)
@source_options
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.pass_context
def verify(ctx: click.Context, source: Source, as_json: bool) -> None:
    """Check the graph in FILE: types, edges, names, functions.

    Prints every violation and exits with 1 if there is one.
    """
    graph = source.load()
    from ampgraph.graph.verify import violations

    with progress("verifying"):
        found = list(violations(graph))
    if as_json:
        counts = {
            "nodes": len(graph),
            "functions": len(graph.functions),
            "nodes_in_functions": sum(map(len, graph.functions.values())),
        }
        print_json({"valid": not found, **counts, "violations": found})
    elif found:
        click.echo("\n".join(found))
    else:
        click.echo(f"{source.name} is valid: {count_nodes(graph)}")
    if found:
        ctx.exit(1)
