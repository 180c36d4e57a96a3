"""``ampgraph dump``: a graph in another format, as it is or rewritten."""

import click

from ampgraph.cli.options import Settings, rewrite_options
from ampgraph.cli.output import progress
from ampgraph.cli.program import Command
from ampgraph.cli.streams import Source, source_options, write_data

_FORMATS = ("text", "json", "dot", "svg", "pb", "pbtxt", "onnx")
_SUFFIXES = {"txt": "text"} | {name: name for name in _FORMATS[1:]}


@click.command(cls=Command)
@source_options
@click.option("--format", type=click.Choice(_FORMATS), help="What to write. [by the suffix of OUT, else text]")
@click.option("-o", "--out", default="-", metavar="OUT", help="File to write; - is stdout (default).")
@click.option("--rewritten", is_flag=True, help="Rewrite the graph first, by the options below.")
@rewrite_options
def dump(source: Source, format: str | None, out: str, rewritten: bool, settings: Settings) -> None:
    """Write the graph in FILE in another format.

    \b
    ampgraph dump model.pb --rewritten --dtype bfloat16
    ampgraph dump model.pb -o model.svg
    """
    if settings.values and not rewritten:
        given = ", ".join(f"--{name.replace('_', '-')}" for name in settings.values)
        raise click.UsageError(f"{given}: this says how to rewrite, so it needs --rewritten.")
    if format is None:
        format = "text" if out == "-" else _SUFFIXES.get(out.removesuffix(".gz").rpartition(".")[2].lower())
    if format is None:
        raise click.UsageError(f"The suffix of {out!r} is of no known format. Say --format {'|'.join(_FORMATS)}.")
    if rewritten:
        settings.policy()
    graph = source.load()
    if rewritten:
        graph = settings.rewrite(graph).graph
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
    if out.endswith(".gz"):
        import gzip

        data = gzip.compress(data, mtime=0)
    write_data(data, out)
