"""``ampgraph dump``: a graph in another format, as it is or rewritten."""

import click

from ampgraph.cli.excerpt import excerpt
from ampgraph.cli.options import Settings, rewrite_graph, rewrite_options
from ampgraph.cli.output import progress
from ampgraph.cli.program import Command
from ampgraph.cli.streams import Source, check_out, find_bodies, find_function, find_node, source_options, write_data

_FORMATS = ("text", "json", "dot", "svg", "pb", "pbtxt", "onnx")
_PARTS = ("text", "dot", "svg")
_SUFFIXES = {"txt": "text"} | {name: name for name in _FORMATS[1:]}


@click.command(cls=Command)
@source_options
@click.option("--format", "--to", "format", type=click.Choice(_FORMATS), help="What to write. [by the suffix of OUT, else text]")
@click.option("-o", "--out", default="-", metavar="OUT", help="File to write; - is stdout (default).")
@click.option("--function", metavar="NAME", help="Only this function's body; as text or a picture.")
@click.option("--around", metavar="NODE", help="Only this node and what is near it; as text or a picture.")
@click.option("--depth", type=click.IntRange(0), default=3, show_default=True, help="How many data edges away --around goes.")
@click.option("--rewritten", is_flag=True, help="Rewrite the graph first, by the options below.")
@rewrite_options
def dump(
    source: Source,
    format: str | None,
    out: str,
    function: str | None,
    around: str | None,
    depth: int,
    rewritten: bool,
    settings: Settings,
) -> None:
    """Write the graph in FILE in another format.

    \b
    ampgraph dump model.pb --rewritten --dtype bfloat16
    ampgraph dump model.pb -o model.svg --around dense_1/MatMul
    """
    if settings.values and not rewritten:
        given = ", ".join(f"--{name.replace('_', '-')}" for name in settings.values)
        raise click.UsageError(f"{given}: this says how to rewrite, so it needs --rewritten.")
    check_out(out)
    if format is None:
        format = "text" if out == "-" else _SUFFIXES.get(out.lower().removesuffix(".gz").rpartition(".")[2])
    if format is None:
        raise click.UsageError(f"The suffix of {out!r} is of no known format. Say --format {'|'.join(_FORMATS)}.")
    if format not in _PARTS and not (function is None and around is None):
        raise click.UsageError(f"--function and --around need one of the formats {', '.join(_PARTS)}.")
    policy = settings.policy() if rewritten else None
    graph = source.load()
    if policy is not None:
        graph = rewrite_graph(graph, policy).graph
    if around is not None:
        graph = find_bodies(graph, around, function)[0]
        center = find_node(graph, around)
        assert center is not None
        graph = excerpt(graph, center, depth)
    elif function is not None:
        graph = find_function(graph, function)
    with progress(f"writing {format}"):
        if format == "dot":
            from ampgraph.graph.formats.dot import to_dot

            data = to_dot(graph).encode()
        elif format == "svg":
            from ampgraph.graph.formats.dot import to_svg

            data = to_svg(graph)
        else:
            from ampgraph.graph.formats.files import encode

            data = encode(graph, format)
    if out.lower().endswith(".gz"):
        from ampgraph.graph.formats.files import compress

        data = compress(data)
    write_data(data, out)
