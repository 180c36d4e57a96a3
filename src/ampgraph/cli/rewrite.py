"""``ampgraph rewrite``: a float32 graph goes in, a mixed-precision graph comes out."""

import json

import click

from ampgraph.cli.options import Settings, rewrite_graph, rewrite_options
from ampgraph.cli.output import print_json
from ampgraph.cli.program import Command
from ampgraph.cli.streams import (
    Source,
    check_out,
    check_report,
    format_of,
    format_option,
    source_options,
    write_data,
    write_graphs,
)


@click.command(cls=Command)
@source_options
@click.option("-o", "--out", metavar="OUT", help="File or folder to write; - is stdout.")
@format_option("--to", "--format", "to", help="Format of OUT. [by suffix, stdout as FILE]")
@click.option("--dry-run", is_flag=True, help="Write no graph: only say what would be done.")
@click.option("--overwrite", is_flag=True, help="Replace an existing SavedModel. (Files are always replaced.)")
@rewrite_options
@click.option("--report", metavar="FILE", help="Also write the report, with the reason for every node, as JSON.")
@click.option("--json", "as_json", is_flag=True, help="Print that report instead of the summary.")
def rewrite(
    source: Source,
    out: str | None,
    to: str | None,
    dry_run: bool,
    overwrite: bool,
    settings: Settings,
    report: str | None,
    as_json: bool,
) -> None:
    """Rewrite the graph in FILE to mixed precision.

    FILE is .pb, .pbtxt, .json, .txt (each also .gz), the folder of a SavedModel, or - for stdin. The summary goes to
    stdout, with -o - to stderr.

    \b
    ampgraph rewrite model.pb -o model.fp16.pb
    ampgraph rewrite saved_model/ -o fp16_model/ --dtype bfloat16
    ampgraph rewrite model.pb -o - --deny-op Softmax --float-node 'head/.*' > out.pb
    """
    if dry_run:
        out = None
    elif out is None:
        raise click.UsageError(
            "Say where the rewritten graph goes: -o FILE (a folder for a SavedModel), or -o - for stdout. --dry-run needs no -o."
        )
    if out == "-" and (as_json or report == "-"):
        raise click.UsageError("Stdout takes the graph (-o -), so the report needs a file: --report FILE.")
    for path in (out, report):
        check_out(path)
    check_report(report, out, source)
    policy = settings.policy()
    format = None if out is None else format_of(out, to, source)
    results = [rewrite_graph(graph, policy) for graph in source.load_all()]
    if out is not None and format is not None:
        write_graphs([result.graph for result in results], out, format, overwrite=overwrite)
    found = [result.report.json() for result in results] if as_json or report is not None else []
    data = found[0] if len(found) == 1 else found
    if report is not None:
        write_data(json.dumps(data, ensure_ascii=False, indent=1).encode() + b"\n", report)
    if as_json:
        print_json(data)
    elif report != "-":
        texts = [result.report.text() for result in results]
        written = "" if out in (None, "-") else f"\nwritten   {out}"
        click.echo("\n\n".join(texts) + written, err=out == "-")
