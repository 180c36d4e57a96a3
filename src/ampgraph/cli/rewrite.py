"""``ampgraph rewrite``: a float32 graph goes in, a mixed-precision graph comes out."""

import os
from typing import TYPE_CHECKING, Any

import click

from ampgraph.cli.calibrate import Calibration, calibrate_options
from ampgraph.cli.folder import is_model_folder, rewrite_folder
from ampgraph.cli.options import Settings, infer_shapes, rewrite_graph, rewrite_options
from ampgraph.cli.output import note, print_json
from ampgraph.cli.program import ArgumentError, Command, Failure
from ampgraph.cli.streams import (
    Source,
    check_out,
    check_report,
    file_bytes,
    format_of,
    format_option,
    has_data_file,
    source_options,
    write_data,
    write_graphs,
)

if TYPE_CHECKING:
    from ampgraph.calibration.result import CalibrationResult
    from ampgraph.graph import Graph
    from ampgraph.rewrite import Policy


@click.command(cls=Command)
@source_options
@click.option("-o", "--out", metavar="OUT", help="File or folder to write; - is stdout.")
@format_option("--to", "--format", "to", help="Format of OUT. [by suffix, stdout as FILE]")
@click.option("--dry-run", is_flag=True, help="Write no graph: only say what would be done.")
@click.option("--overwrite", is_flag=True, help="Replace an existing SavedModel. (Files are always replaced.)")
@click.option(
    "--external-data",
    is_flag=True,
    default=None,
    help="ONNX: put the weights into a data file beside the model. [only where it would pass 2 GB]",
)
@rewrite_options
@calibrate_options
@click.option("--report", metavar="FILE", help="Also write the report, with the reason for every node, as JSON.")
@click.option("--json", "as_json", is_flag=True, help="Print that report instead of the summary.")
@click.pass_context
def rewrite(
    ctx: click.Context,
    source: Source,
    out: str | None,
    to: str | None,
    dry_run: bool,
    overwrite: bool,
    external_data: bool | None,
    settings: Settings,
    calibration: Calibration,
    report: str | None,
    as_json: bool,
) -> None:
    """Rewrite the graph in FILE to mixed precision.

    FILE is .onnx, .pb, .pbtxt, .json, .txt (each also .gz), the folder of a SavedModel, a folder of .onnx files (OUT is then
    a folder too), or - for stdin. The summary goes to stdout, with -o - to stderr.

    \b
    ampgraph rewrite model.onnx -o model.fp16.onnx
    ampgraph rewrite models/ -o fp16_models/ --dtype bf16
    ampgraph rewrite saved_model/ -o fp16_model/
    ampgraph rewrite model.pb -o - --deny-op Softmax --float-node 'head/.*' > out.pb
    ampgraph rewrite model.onnx -o model.fp16.onnx --calibrate data.npz --save-policy policy.toml

    With --calibrate the result is run. If an output is not within the bound, the best that was found is written all the same, and
    the exit code is 1.
    """
    if dry_run:
        out = None
    elif out is None:
        raise click.UsageError(
            "Say where the rewritten graph goes: -o FILE (a folder for a SavedModel), or -o - for stdout. --dry-run needs no -o."
        )
    if out == "-" and (as_json or report == "-"):
        raise click.UsageError("Stdout takes the graph (-o -), so the report needs a file: --report FILE.")
    if out == "-" and external_data:
        raise click.UsageError("A model with external data is two files, so it needs a name: -o FILE.")
    if calibration.save_policy == "-" and (as_json or "-" in (out, report)):
        raise click.UsageError("Stdout takes one thing only: write the policy to a file. Received: --save-policy -")
    for path in (out, report, calibration.save_policy):
        check_out(path)
    is_folder = is_model_folder(source.path, source.format)
    check_report(report, None if is_folder else out, source)
    check_report(calibration.save_policy, None if is_folder else out, source, "policy", "--save-policy")
    calibration.check_outputs(out=out, report=report, save_policy=calibration.save_policy)
    if (
        calibration.save_policy not in (None, "-")
        and report is not None
        and os.path.realpath(report) == os.path.realpath(calibration.save_policy)
    ):
        raise click.UsageError(f"The policy and the report need a file each. Received: --save-policy and --report {report}")
    policy = settings.policy()
    data: Any
    if is_folder:
        if calibration.data:
            raise click.UsageError(f"{source.path} is a folder of models, and --calibrate is for one.")
        if source.outputs or source.tags or to not in (None, "onnx") or out == "-":
            raise click.UsageError(f"{source.path} is a folder of ONNX models: they become a folder of ONNX models, -o FOLDER.")
        quiet = as_json or report == "-"
        data, failed = rewrite_folder(
            source.path,
            out,
            policy,
            external_data=external_data,
            quiet=quiet,
            with_reports=as_json or report is not None,
            debug=bool(ctx.meta.get("debug")),
        )
        _write_report(data, report, as_json)
        if failed:
            from ampgraph.graph.wording import plural

            raise Failure(f"{failed} of {plural(len(data), 'model')} could not be rewritten.")
        return
    format = None if out is None else format_of(out, to, source)
    if external_data and format not in (None, "onnx"):
        raise click.UsageError(f"--external-data is for ONNX models; format {format!r} is one file.")
    graphs = source.load_all()
    calibrated = _calibrate(graphs, policy, calibration) if calibration.data else None
    results = [calibrated.result] if calibrated else [rewrite_graph(graph, policy) for graph in graphs]
    if out is not None and format is not None:
        write_graphs([result.graph for result in results], out, format, overwrite=overwrite, external_data=external_data)
        if format == "onnx":
            results[0].report.file_bytes = file_bytes(graphs[0], source.path, out)
        if external_data and not has_data_file(out):
            note("--external-data had no effect: the model has no initializer of 1 KiB or more.")
        if format == "text":
            note(f"{out} names large constants only by a hash; .json holds them.")
    if as_json or report is not None:
        found = [result.report.json() for result in results]
        if calibrated:
            found[0]["calibration"] = calibrated.json()
        _write_report(found[0] if len(found) == 1 else found, report, as_json)
    if not as_json and report != "-":
        texts = [result.report.text() for result in results]
        if calibrated:
            texts.append(calibrated.text())
        written = "" if out in (None, "-") else f"\nwritten   {out}"
        click.echo("\n\n".join(texts) + written, err="-" in (out, calibration.save_policy))
    if calibrated and not calibrated.is_met:
        advice = calibration.advice(calibrated)
        raise Failure(f"{calibrated.verdict}{advice} {'Nothing' if out is None else 'The best that was found'} was written.")


def _calibrate(graphs: "list[Graph]", policy: "Policy", calibration: Calibration) -> "CalibrationResult":
    if len(graphs) > 1:
        raise ArgumentError("The SavedModel has more than one graph, and --calibrate is for one: --tags says which.")
    infer_shapes(graphs[0])
    found = calibration.run(graphs[0], policy)
    if calibration.save_policy is not None:
        write_data(found.policy.to_toml().encode(), calibration.save_policy)
    return found


def _write_report(data: Any, report: str | None, as_json: bool) -> None:
    if report is not None:
        import json

        write_data(json.dumps(data, ensure_ascii=False, indent=1).encode() + b"\n", report)
    if as_json:
        print_json(data)
