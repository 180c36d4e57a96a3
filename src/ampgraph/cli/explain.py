"""``ampgraph explain``: the reason for every decision."""

import re
from typing import TYPE_CHECKING

import click

from ampgraph.cli.options import Settings, rewrite_graph, rewrite_options
from ampgraph.cli.output import note, print_json, print_table
from ampgraph.cli.program import ArgumentError, Command
from ampgraph.cli.streams import Source, find_bodies, find_function, source_options

if TYPE_CHECKING:
    from ampgraph.graph import Graph


@click.command(cls=Command)
@source_options
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@click.option("--match", metavar="REGEX", help="Explain every node whose whole name matches.")
@click.option("--function", metavar="NAME", help="Look only into this function's body.")
@click.option("--only", type=click.Choice(["low", "float"]), help="Only what becomes low precision, or what stays float32.")
@rewrite_options
@click.option("--json", "as_json", is_flag=True, help="Print every decision as JSON.")
def explain(
    source: Source,
    nodes: tuple[str, ...],
    match: str | None,
    function: str | None,
    only: str | None,
    settings: Settings,
    as_json: bool,
) -> None:
    """Say why the nodes of FILE would be rewritten or not.

    With NODEs or --match, the reasons for each type of these nodes; else a table by op with the first reason of each kind.
    Nothing is written. The options of rewriting are those of `ampgraph rewrite`.

    \b
    ampgraph explain model.pb dense_1/MatMul dense_1/Relu
    ampgraph explain model.pb --match 'dense_1/.*' --only float
    """
    from ampgraph.rewrite.decisions import HEADER, decisions_of, without_types

    policy = settings.policy()
    pattern = _compile(match)
    graph = source.load()
    wanted = _wanted(graph, nodes, pattern, function)
    report = rewrite_graph(graph, policy).report
    found = decisions_of(report, wanted, function=function, only=only)
    for text in found.notes:
        note(text)
    if as_json:
        print_json(found.json())
    elif wanted is None:
        print_table(HEADER, found.rows)
    else:
        for line in found.lines:
            click.echo(line)
        for text in without_types(report, found, nodes):
            note(text + (", or none fits --only" if only else ""))


def _compile(match: str | None) -> "re.Pattern[str] | None":
    try:
        return None if match is None else re.compile(match)
    except re.error as error:
        raise click.UsageError(f"--match takes a regular expression: {error}. Received: {match!r}") from None


def _wanted(graph: "Graph", nodes: tuple[str, ...], pattern: "re.Pattern[str] | None", function: str | None) -> "set[str] | None":
    """Return the names of the nodes to explain; None = all."""
    bodies = graph.all_graphs() if function is None else [find_function(graph, function)]
    for node in nodes:
        find_bodies(graph, node, function)
    if pattern is None:
        return set(nodes) or None
    matching = {item.label for body in bodies for item in body.all_nodes() if pattern.fullmatch(item.label)}
    if not matching:
        raise ArgumentError(f"No node's whole name matches --match {pattern.pattern!r}. A part of a name needs .* around it.")
    return {*nodes, *matching}
