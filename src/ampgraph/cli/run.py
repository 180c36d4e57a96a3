"""``ampgraph run``: a graph computes its outputs."""

from typing import Any

import click

from ampgraph.cli.feeds import Feeds, explained, feed_options
from ampgraph.cli.output import print_json, print_table, progress
from ampgraph.cli.program import ArgumentError, Command
from ampgraph.cli.streams import Source, check_out, source_options, write_data


@click.command(cls=Command)
@source_options
@feed_options(random=False)
@click.option("-o", "--out", metavar="FILE", help="Write the outputs to a .npz file; - is stdout.")
@click.option("--profile", is_flag=True, help="Print how long the nodes of each op took, and the memory.")
@click.option("--json", "as_json", is_flag=True, help="Print the tables as JSON.")
def run(source: Source, feeds: Feeds, out: str | None, profile: bool, as_json: bool) -> None:
    """Run the graph in FILE and print a line for every output.

    \b
    ampgraph run model.onnx --input x.npy -o y.npz
    ampgraph run model.onnx --random --size batch=8 --profile
    """
    check_out(out)
    if out == "-" and (as_json or profile):
        raise click.UsageError("With -o - stdout is the outputs, so --json and --profile need another file. Received: -o -")
    graph = source.load()
    from ampgraph.kernels.program import compile

    program = compile(graph, feeds.device)
    arrays = feeds.load(graph)
    times: dict[str, list[float]] = {}
    memory: dict[str, int] = {}
    with progress("running"), explained(feeds, graph):
        results = program(arrays)
        if profile:  # the first run is not typical
            from ampgraph.kernels.memory import measure_memory

            program(arrays, on_node=lambda node, seconds: times.setdefault(node.op_type, []).append(seconds))
            memory = measure_memory(program, arrays)._asdict()
    if out is not None:
        write_data(_npz(results), out)
    rows = [_describe(name, value) for name, value in results.items()]
    total = sum(map(sum, times.values())) or 1.0
    slowest = sorted(times.items(), key=lambda item: -sum(item[1]))
    spent = [(op, len(seconds), 1000 * sum(seconds), sum(seconds) / total) for op, seconds in slowest]
    if out == "-":
        return
    if as_json:
        keys = ("op", "nodes", "ms", "share")
        outputs = [dict(zip(("name", "dtype", "shape", "least", "largest", "non_finite"), row, strict=True)) for row in rows]
        profiles = [dict(zip(keys, row, strict=True)) for row in spent]
        print_json({"outputs": outputs, **({"profile": profiles, "memory": memory} if profile else {})})
        return
    cells = [[f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row] for row in rows]
    print_table(("output", "dtype", "shape", "least", "largest", "non-finite"), cells)
    if profile:
        click.echo()
        lines = [(op, count, f"{ms:.3f}", f"{share:.1%}") for op, count, ms, share in spent]
        print_table(("op", "nodes", "ms", "share"), [*lines, ("all", sum(map(len, times.values())), f"{1000 * total:.3f}", "")])
        values, least, scratch = (f"{memory[key] / 1e6:.3g} MB" for key in ("values", "least", "scratch"))
        click.echo(f"\nmemory: {values} of values, at least {least} in this order; and {scratch} that kernels work in")


def _describe(name: str, value: Any) -> tuple[Any, ...]:
    import numpy as np

    if not hasattr(value, "dtype"):
        return (name, "sequence" if isinstance(value, list) else "nothing", str(len(value or ())), "", "", 0)
    value = value.get() if hasattr(value, "get") else value
    shape = "[" + ",".join(map(str, value.shape)) + "]"
    if value.dtype.kind in "OSUcb" or not value.size:
        return (name, str(value.dtype) if value.dtype.kind != "O" else "string", shape, "", "", 0)
    wide = value.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    ends = (float(finite.min()), float(finite.max())) if finite.size else ("", "")
    return (name, str(value.dtype), shape, *ends, int(wide.size - finite.size))


def _npz(results: dict[str, Any]) -> bytes:
    """Return the outputs as a .npz file; types that NumPy does not have are written as float32."""
    import numpy as np

    from ampgraph.graph.formats.arrays import packed_arrays

    arrays = {}
    for name, value in results.items():
        if not hasattr(value, "dtype") or value.dtype.kind == "O":
            raise ArgumentError(f"Output {name!r} is no array of numbers, and a .npz file holds nothing else.")
        value = value.get() if hasattr(value, "get") else value
        arrays[name] = value.astype(np.float32) if value.dtype.kind == "V" else value
    return packed_arrays(arrays)
