"""``ampgraph advise``: sizes that tensor cores would want to be others."""

from typing import TYPE_CHECKING

import click

from ampgraph.cli.options import Settings, rewrite_options
from ampgraph.cli.output import note, print_json, print_table, progress
from ampgraph.cli.program import Command
from ampgraph.cli.streams import Source, find_bodies, source_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ampgraph.rewrite import NodeAdvice


@click.command(cls=Command)
@source_options
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@click.option("--powers-of-two", is_flag=True, help="Want sizes below 256 to be powers of two, not only multiples of 8.")
@rewrite_options
@click.option("--json", "as_json", is_flag=True, help="Print every node that multiplies matrices in low precision as JSON.")
def advise(source: Source, nodes: tuple[str, ...], powers_of_two: bool, settings: Settings, as_json: bool) -> None:
    """Say which sizes in FILE to pad for tensor cores.

    They are fast where sizes of matrix products (rows M, columns N, inner K) and channels are multiples of 8. The table has the
    nodes that would multiply in low precision with others, the most expensive first; with NODEs, a sentence for each of them.
    Nothing is written. The options of rewriting are those of `ampgraph rewrite`.

    \b
    ampgraph advise model.onnx
    ampgraph advise model.pb dense_1/MatMul --powers-of-two
    """
    from ampgraph.rewrite import advise as advise_on

    policy = settings.policy()
    graph = source.load()
    for name in nodes:
        find_bodies(graph, name)
    with progress("looking at sizes"):
        advice = advise_on(graph, policy, powers_of_two=powers_of_two)
    for text in advice.notes:
        note(text)
    found = [item for item in advice.nodes if item.node in nodes or not nodes]
    if as_json:
        print_json([item for item in advice.json() if item["node"] in nodes or not nodes])
    elif nodes:
        for item in found:
            click.echo(item)
    elif advice.to_pad:
        _print_table(advice.to_pad)
        note(advice.summary)
    else:
        click.echo(advice.summary)
    named = {item.node for item in found}
    for name in nodes:
        if name not in named:
            note(f"node {name!r} multiplies no matrices in low precision: `ampgraph explain` says what it does")


def _print_table(found: "Sequence[NodeAdvice]") -> None:
    from ampgraph.graph.wording import amount

    rows = [
        (
            f"in function {item.function!r}: {item.node}" if item.function else item.node,
            item.op_type,
            "?" if item.flops is None else amount(item.flops),
            item.words,
            item.cost,
        )
        for item in found
    ]
    print_table(("node", "op", "FLOPs", "sizes", "more arithmetic"), rows)
