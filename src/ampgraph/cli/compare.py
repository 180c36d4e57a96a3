"""``ampgraph compare``: where the values of two graphs differ."""

import click

from ampgraph.cli.feeds import Feeds, explained, feed_options
from ampgraph.cli.output import print_json, print_table, progress
from ampgraph.cli.program import ComparingCommand
from ampgraph.cli.streams import format_option, load_two

#: Rows of the table unless all are asked for.
_MOST_ROWS = 20


@click.command(cls=ComparingCommand)
@click.argument("a")
@click.argument("b")
@format_option("--from", "from_", help="Format of both. [by suffix]")
@feed_options(random=True)
@click.option("--tolerance", default=0.05, show_default=True, help="Largest error that is not bad, as share of the value's norm.")
@click.option(
    "--all", "every", is_flag=True, help=f"Print every value, not only outputs and the {_MOST_ROWS} with the largest errors."
)
@click.option("--json", "as_json", is_flag=True, help="Print every value as JSON.")
@click.pass_context
def compare(
    ctx: click.Context, a: str, b: str, from_: str | None, feeds: Feeds, tolerance: float, every: bool, as_json: bool
) -> None:
    """Run the graphs in files A and B on the same inputs and print where their values differ.

    A is the one that is right; lines are in the order in which B computes. Exits with 0 if no value is bad, 1 if one is, 2 if a
    graph cannot be run.

    Columns: error is the norm of the differences as share of the norm of A's value, max and mean are the largest and the mean
    difference. The others are shares of elements: overflow, finite in A only; unlike, infinite or NaN in A and something else
    in B; underflow, zero in B only; non-finite, infinite or NaN in B.
    """
    right, other = load_two(a, b, from_)
    from ampgraph.kernels.compare import compare as compare_graphs

    with progress("comparing"), explained(feeds, right):
        found = compare_graphs(right, other, feeds.load(right), tolerance=tolerance, device=feeds.device)
    bad = found.first_bad
    if as_json:
        print_json(found.json())
    else:
        worst = sorted(found.rows, key=lambda row: (-row.overflow, -row.unlike, -row.norm_error))[:_MOST_ROWS]
        shown = {id(row) for row in (*worst, bad)}
        print_table(
            ("value", "op", "dtypes", "error", "max", "mean", "overflow", "unlike", "underflow", "non-finite", ""),
            [
                (
                    row.value,
                    row.op,
                    row.dtypes[0] if row.dtypes[0] == row.dtypes[1] else "->".join(row.dtypes),
                    f"{row.norm_error:.2g}",
                    f"{row.max_error:.2g}",
                    f"{row.mean_error:.2g}",
                    f"{row.overflow:.1%}" if row.overflow else "",
                    f"{row.unlike:.1%}" if row.unlike else "",
                    f"{row.underflow:.1%}" if row.underflow else "",
                    f"{row.non_finite:.1%}" if row.non_finite else "",
                    "bad" if row.is_bad else "",
                )
                for row in found.rows
                if every or id(row) in shown or row.value in found.outputs
            ],
        )
        click.echo(f"\n{len(found.rows)} values compared; {found.only_a} only in A, {found.only_b} only in B")
        if bad is not None:
            click.echo(f"first bad: {bad.value!r}, of node {bad.node or bad.value!r} ({bad.op})")
    if bad is not None:
        ctx.exit(1)
