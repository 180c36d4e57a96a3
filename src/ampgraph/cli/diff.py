"""``ampgraph diff``: what differs between two graphs."""

import click

from ampgraph.cli.output import colored, print_json, progress
from ampgraph.cli.program import ComparingCommand
from ampgraph.cli.streams import format_option, load_two

_COLORS = {"+": "green", "-": "red", "~": "yellow"}


@click.command(cls=ComparingCommand)
@click.argument("a")
@click.argument("b")
@format_option("--from", "from_", help="Format of both. [by suffix, stdin by content]")
@click.option("--tags", metavar="TAG,…", help="Tags of the meta graph to compare, in two SavedModels.")
@click.option("--json", "as_json", is_flag=True, help="Print the differences as JSON.")
@click.pass_context
def diff(ctx: click.Context, a: str, b: str, from_: str | None, tags: str | None, as_json: bool) -> None:
    """Print what differs between the graphs in files A and B.

    A line starts with + for what only B has, - for what only A has, ~ for what is different. Exits as diff(1) does: 0 if
    the graphs are the same, 1 if they differ, 2 if one cannot be read.
    """
    graphs = load_two(a, b, from_, tuple(tags.split(",")) if tags else ())
    from ampgraph.graph.diff import diff as find_differences

    with progress("comparing"):
        found = find_differences(*graphs)
    if as_json:
        print_json(found)
    else:
        color = colored()
        for line in found:
            click.echo(click.style(line, fg=_COLORS.get(line[:1])) if color else line)
    if found:
        ctx.exit(1)
