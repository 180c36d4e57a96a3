"""``ampgraph explain``: the reason for every decision."""

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from ampgraph.cli.options import Settings, rewrite_options
from ampgraph.cli.output import note, print_json, print_table
from ampgraph.cli.program import ArgumentError, Command
from ampgraph.cli.streams import Source, find_function, source_options

if TYPE_CHECKING:
    from ampgraph.graph import Graph
    from ampgraph.rewrite import Explanation


@click.command(cls=Command)
@source_options
@click.argument("node", required=False)
@click.option("--function", metavar="NAME", help="Look only into this function's body.")
@click.option("--only", type=click.Choice(["low", "float"]), help="Only what becomes low precision, or what stays float32.")
@rewrite_options
@click.option("--json", "as_json", is_flag=True, help="Print every decision as JSON.")
def explain(source: Source, node: str | None, function: str | None, only: str | None, settings: Settings, as_json: bool) -> None:
    """Say why the nodes of FILE would be rewritten or not.

    With NODE, the reasons for each type of that node; else a table by op with the first reason of each kind. Nothing is
    written. The options of rewriting are those of `ampgraph rewrite`.
    """
    settings.policy()
    graph = source.load()
    if function is not None:
        find_function(graph, function)
    if node is not None:
        _check_node(graph, node, function)
    report = settings.rewrite(graph).report
    found = [
        (body.name, item)
        for body in report.bodies
        if body.painting is not None and (function is None or body.name == function)
        for item in report.explain(function=body.name)
        if (node is None or item.node == node) and (only is None or item.low == (only == "low"))
    ]
    for text in report.notes if node is None or not report.bodies else ():
        note(text)
    if as_json:
        print_json([{"function": name, **dataclasses.asdict(item)} for name, item in found])
    elif node is None:
        _print_by_op(item for _, item in found)
    else:
        for name, item in found:
            click.echo(f"in function {name!r}: {item}" if name else str(item))
        if not found and report.bodies:
            note(f"node {node!r} has no type to decide about: none is float32" + (", or none fits --only" if only else ""))


def _check_node(graph: "Graph", name: str, function: str | None) -> None:
    from ampgraph.graph.errors import did_you_mean

    bodies = [graph, *graph.functions.values()] if function is None else [graph.functions[function]]
    names = {item.name: None for body in bodies for item in body.all_nodes()}
    if name not in names:
        where = "the graph" if function is None else f"function {function!r}"
        raise ArgumentError(f"There is no node {name!r} in {where}.{did_you_mean(name, names)}")


def _print_by_op(items: "Iterable[Explanation]") -> None:
    """Print a row for each op and dtype: how often, and the first reason."""
    groups: dict[tuple[str, bool], list[Explanation]] = {}
    for item in items:
        groups.setdefault((item.op_type, item.low), []).append(item)
    rows = [
        (op, group[0].dtype, len(group), f"{group[0].node}: {group[0].why}")
        for (op, _), group in sorted(groups.items(), key=lambda entry: (entry[0][0], not entry[0][1]))
    ]
    print_table(("op", "dtype", "types", "the first of them, and why"), rows)
