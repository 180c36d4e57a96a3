"""``ampgraph lists``: which list each op is on, and why."""

import click

from ampgraph.cli.options import Settings, list_options
from ampgraph.cli.output import note, print_json, print_table
from ampgraph.cli.program import Command


@click.command(cls=Command)
@click.argument("ops", nargs=-1, metavar="[OP]...")
@click.option("--onnx", is_flag=True, help="The lists for ONNX models instead of TensorFlow graphs; domain:Op for vendors' ops.")
@list_options
@click.option("--json", "as_json", is_flag=True, help="Print the lists as JSON.")
def lists(ops: tuple[str, ...], onnx: bool, settings: Settings, as_json: bool) -> None:
    """Print the op lists, or where each OP stands.

    The lists are those that `ampgraph rewrite` would use with the same options.
    """
    from ampgraph.graph.errors import did_you_mean
    from ampgraph.graph.schemas.tf import op_types

    policy = settings.policy()
    found = policy.lists(onnx=onnx)
    known = {op: (color.title, why) for color, op, why in found}
    rows = [(op, *known.get(op, ("-", found.why(op)))) for op in ops] or [(op, *place) for op, place in known.items()]
    if as_json:
        print_json(
            {
                "mode": found.mode,
                "level": found.level,
                "target": str(policy.target),
                "edits": list(map(str, found.edits)),
                "ineffective": list(map(str, found.ineffective)),
                "ops": [{"op": op, "list": None if title == "-" else title, "why": why} for op, title, why in rows],
            }
        )
        return
    level = f", level {found.level}" if found.level else ""
    note(f"lists of mode {found.mode}{level} for {policy.target}")
    for edit in found.ineffective:
        note(f"edit {str(edit)!r} changes nothing")
    print_table(("op", "list", "why"), rows)
    vocabulary = {*known, *(() if onnx else op_types())}
    for op, _, why in rows:
        if why == "on no list" and op not in vocabulary:
            what = "named by the lists for ONNX models" if onnx else "a TensorFlow op"
            note(f"{op!r} is not {what}.{did_you_mean(op, vocabulary)}")
