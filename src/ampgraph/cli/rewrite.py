"""``ampgraph rewrite``: a float32 graph goes in, a mixed-precision graph comes out."""

import json

import click

from ampgraph.cli.options import Settings, rewrite_options
from ampgraph.cli.output import print_json
from ampgraph.cli.program import Command
from ampgraph.cli.streams import Source, format_of, format_option, source_options, write_data, write_graph


@click.command(cls=Command)
@source_options
@click.option("-o", "--out", metavar="OUT", help="File or folder to write; - is stdout.")
@format_option("--to", help="Format of OUT. [by suffix, stdout as FILE]")
@click.option("--overwrite", is_flag=True, help="Replace an existing SavedModel. (Files are always replaced.)")
@rewrite_options
@click.option("--report", metavar="FILE", help="Also write the report, with the reason for every node, as JSON.")
@click.option("--json", "as_json", is_flag=True, help="Print that report instead of the summary.")
def rewrite(
    source: Source, out: str | None, to: str | None, overwrite: bool, settings: Settings, report: str | None, as_json: bool
) -> None:
    """Rewrite the graph in FILE to mixed precision.

    FILE is .pb, .pbtxt, .json, .txt (each also .gz), the folder of a SavedModel, or - for stdin. The summary goes to
    stdout, with -o - to stderr.

    \b
    ampgraph rewrite model.pb -o model.fp16.pb
    ampgraph rewrite saved_model/ -o fp16_model/ --dtype bfloat16
    ampgraph rewrite model.pb -o - --deny-op Softmax --float-node 'head/.*' > out.pb
    """
    if out is None:
        raise click.UsageError("Say where the rewritten graph goes: -o FILE (a folder for a SavedModel), or -o - for stdout.")
    if out == "-" and (as_json or report == "-"):
        raise click.UsageError("Stdout takes the graph (-o -), so the report needs a file: --report FILE.")
    settings.policy()
    format = format_of(out, to, source)
    graph = source.load()
    result = settings.rewrite(graph)
    write_graph(result.graph, out, format, overwrite=overwrite)
    found = result.report
    if report is not None:
        write_data(json.dumps(found.json(), ensure_ascii=False, indent=1).encode() + b"\n", report)
    if as_json:
        print_json(found.json())
    elif report != "-":
        written = "" if out == "-" else f"\nwritten   {out}"
        click.echo(found.text() + written, err=out == "-")
