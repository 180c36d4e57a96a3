"""``ampgraph explain``: the reason for every decision."""

import dataclasses
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ampgraph.cli.options import Settings, rewrite_graph, rewrite_options
from ampgraph.cli.output import note, print_json, print_table
from ampgraph.cli.program import ArgumentError, Command
from ampgraph.cli.streams import Source, find_bodies, find_function, source_options

if TYPE_CHECKING:
    from ampgraph.graph import Graph
    from ampgraph.rewrite import Explanation


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
    policy = settings.policy()
    pattern = _compile(match)
    graph = source.load()
    wanted = _wanted(graph, nodes, pattern, function)
    report = rewrite_graph(graph, policy).report
    found = [
        (body.name, item)
        for body in report.bodies
        if body.painting is not None and (function is None or body.name == function)
        for item in report.explain(function=body.name)
        if (wanted is None or item.node in wanted) and (only is None or item.low == (only == "low"))
    ]
    decided = any(body.painting is not None for body in report.bodies)
    for text in report.notes if wanted is None or not decided else ():
        note(text)
    if as_json:
        print_json([{"function": name, **dataclasses.asdict(item)} for name, item in found])
    elif wanted is None:
        _print_by_op(found)
    else:
        for name, item in _merged(found):
            click.echo(f"{_place(name)}{item}")
        explained = {item.node for _, item in found}
        for node in nodes if decided else ():
            if node not in explained:
                note(f"node {node!r} has no type to decide about: none is float32" + (", or none fits --only" if only else ""))


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


def _place(function: str) -> str:
    return f"in function {function!r}: " if function else ""


def _merged(found: "Sequence[tuple[str, Explanation]]") -> "list[tuple[str, Explanation]]":
    """Make one of the explanations of a node's types that say the same."""
    groups: dict[tuple[str, Explanation], list[str]] = {}
    for function, item in found:
        groups.setdefault((function, dataclasses.replace(item, key="")), []).append(item.key)
    return [(function, dataclasses.replace(item, key=_keys(keys))) for (function, item), keys in groups.items()]


def _keys(keys: "list[str]") -> str:
    """Return keys as text, runs of list entries short: ``T[0], T[1], U`` as ``T[0..1], U``."""
    runs: list[tuple[str, int, int]] = []
    for key in keys:
        name, _, index = key.rstrip("]").partition("[")
        place = int(index) if index else -1
        if runs and place > 0 and (runs[-1][0], runs[-1][2] + 1) == (name, place):
            runs[-1] = name, runs[-1][1], place
        else:
            runs.append((name, place, place))
    return ", ".join(
        name if first < 0 else f"{name}[{first}]" if first == last else f"{name}[{first}..{last}]" for name, first, last in runs
    )


def _print_by_op(found: "Sequence[tuple[str, Explanation]]") -> None:
    """Print a row for each op and dtype: how often, and the first reason."""
    groups: dict[tuple[str, bool], list[tuple[str, Explanation]]] = {}
    for name, item in found:
        groups.setdefault((item.op_type, item.low), []).append((name, item))
    rows = []
    for (op, _), group in sorted(groups.items(), key=lambda entry: (entry[0][0], not entry[0][1])):
        name, first = group[0]
        rows.append((op, first.dtype, len(group), f"{_place(name)}{first.node}: {first.why}"))
    print_table(("op", "dtype", "types", "the first of them, and why"), rows)
