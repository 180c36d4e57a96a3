"""``ampgraph demo``: a small model before and after, and why."""

import click

from ampgraph.cli.excerpt import excerpt
from ampgraph.cli.output import print_text
from ampgraph.cli.program import Command

#: What is shown of the graph, and the nodes whose reasons are.
_CENTER, _DEPTH = "attention/masked", 2
_NODES = ("stem", "embedding", "attention/query", "attention/masked", "mask/weighted", "norm1/square", "norm1/center", "scores")


@click.command(cls=Command)
@click.option("-o", "--out", metavar="OUT", help="Also write the float32 model to this file, to try the other commands on.")
def demo(out: str | None) -> None:
    """Rewrite a small built-in ONNX model and print why.

    \b
    ampgraph demo -o model.onnx
    ampgraph rewrite model.onnx -o model.fp16.onnx
    """
    from ampgraph.cli.demo_model import demo_model
    from ampgraph.cli.streams import check_out
    from ampgraph.graph.formats.files import save
    from ampgraph.rewrite import auto_mixed_precision

    check_out(out)
    graph = demo_model()
    if out is not None:
        save(graph, out)
    result = auto_mixed_precision(graph)
    for title, model in (("before", graph), ("after", result.graph)):
        print_text(f"// {title}, around {_CENTER}\n{excerpt(model, model.node(_CENTER), _DEPTH)}\n")
    print_text("// summary\n" + result.report.text() + "\n")
    reasons = {item.node: item for item in result.report.explain() if item.node in _NODES}
    print_text("// why\n" + "\n".join(str(reasons[name]) for name in _NODES if name in reasons))
