"""Reading and writing graphs: files, folders, and ``-`` for stdin and stdout."""

import dataclasses
import functools
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ampgraph.cli.output import progress
from ampgraph.cli.program import ArgumentError, Failure

if TYPE_CHECKING:
    from ampgraph.graph import Graph, Node

#: What ``--from`` and ``--to`` take: the formats of :mod:`ampgraph.graph.formats.files`.
FORMATS = ("onnx", "pb", "pbtxt", "json", "text", "saved_model")

_PBTXT = re.compile(r"\s*(?:#[^\n]*\n\s*)*(?:node|library|versions|version)\s*[:{<]")
_TEXT = re.compile(r"\s*(?://[^\n]*\n\s*)*(?:graph|function)\s")


@dataclasses.dataclass(frozen=True)
class Source:
    """Where a graph is read from.

    Attributes:
        path: File or folder, or ``-``.
        format: Format, whatever the suffix says; None = by suffix, for stdin by content.
        outputs: Names of the values it is run for; empty = what the file says.
        tags: For SavedModels, the tags of the meta graph.
    """

    path: str
    format: str | None = None
    outputs: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What messages call it."""
        return "stdin" if self.path == "-" else self.path

    def load(self) -> "Graph":
        """Read the graph.

        Raises:
            FormatError, GraphError: If that is not possible.
        """
        from ampgraph.graph.formats.files import load

        with progress(f"reading {self.name}"):
            if self.path == "-":
                return self._load_stdin()
            return load(self.path, format=self.format, outputs=self.outputs or None, tags=self.tags or None)

    def load_all(self) -> "list[Graph]":
        """Read every meta graph of a SavedModel for which no tags were given; else the one graph there is.

        Raises:
            FormatError, GraphError: If that is not possible.
        """
        if self.tags or not self.is_saved_model():
            return [self.load()]
        from pathlib import Path

        from ampgraph.graph.errors import AmpgraphError
        from ampgraph.graph.formats.saved_model import read_saved_models

        with progress(f"reading {self.name}"):
            try:
                return read_saved_models(Path(self.path), outputs=self.outputs or None)
            except AmpgraphError as error:
                error.args = (f"{self.path}: {error}",)
                raise

    def is_saved_model(self) -> bool:
        """Whether it is the folder of a SavedModel."""
        from pathlib import Path

        return self.path != "-" and self.format in (None, "saved_model") and Path(self.path).is_dir()

    def _load_stdin(self) -> "Graph":
        from ampgraph.graph.errors import AmpgraphError
        from ampgraph.graph.formats.files import decode, read_bytes

        if self.format == "saved_model":
            raise ArgumentError("A SavedModel is a folder and cannot come from stdin.")
        if sys.stdin is None:
            raise Failure("Stdin is closed, so no graph can come from it.")
        try:
            data = read_bytes(sys.stdin.buffer)
            return decode(data, self.format or sniff(data), outputs=self.outputs or None)
        except AmpgraphError as error:
            error.args = (f"stdin: {error}",)
            raise


def sniff(data: bytes) -> str:
    """Return the format of a file by its content.

    Raises:
        ArgumentError: If the content could be anything.
    """
    head = data[:4096]
    if head[:1] == b"\x08":  # the version of the format, which a GraphDef has not
        return "onnx"
    if re.search(rb"[\x00-\x08\x0e-\x1f\x80-\xff]", head):
        return "pb"
    text = head.decode("ascii")
    if text.lstrip().startswith("{"):
        return "json"
    for format, pattern in (("pbtxt", _PBTXT), ("text", _TEXT)):
        if pattern.match(text):
            return format
    raise ArgumentError(
        "Stdin does not look like a graph in any known format. Name its format with --from onnx, pb, pbtxt, json or text."
    )


def format_option(*names: str, help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator: an option that takes one of :data:`FORMATS`."""
    return click.option(*names, type=click.Choice(FORMATS), help=help)


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the argument FILE and the options of reading; it receives them as ``source``, a :class:`Source`."""

    @click.argument("file")
    @format_option("--from", "from_", help="Format of FILE. [by suffix, stdin by content]")
    @click.option("--output", "outputs", multiple=True, metavar="NAME", help="A value the graph is run for; repeatable.")
    @click.option("--tags", metavar="TAG,…", help="Tags of the meta graph of a SavedModel.")
    @functools.wraps(command)
    def wrapper(*args: Any, file: str, from_: str | None, outputs: tuple[str, ...], tags: str | None, **kwargs: Any) -> Any:
        source = Source(file, from_, outputs, tuple(tags.split(",")) if tags else ())
        return command(*args, source=source, **kwargs)

    return wrapper


def find_function(graph: "Graph", name: str) -> "Graph":
    """Return a function's body.

    Raises:
        ArgumentError: If there is none of that name.
    """
    from ampgraph.graph.errors import did_you_mean

    if name not in graph.functions:
        raise ArgumentError(f"The graph has no function {name!r}.{did_you_mean(name, graph.functions)}")
    return graph.functions[name]


def find_bodies(graph: "Graph", name: str, function: str | None = None) -> "list[Graph]":
    """Return those among the graph, its functions and bodies that have a node of this name, or the one named function.

    Raises:
        ArgumentError: If there is none.
    """
    from ampgraph.graph.errors import did_you_mean

    bodies = graph.all_graphs() if function is None else [find_function(graph, function)]
    found = [body for body in bodies if find_node(body, name) is not None]
    if not found:
        names = {item.label: None for body in bodies for item in body.all_nodes()}
        where = "the graph" if function is None else f"function {function!r}"
        raise ArgumentError(f"There is no node {name!r} in {where}.{did_you_mean(name, names)}")
    return found


def find_node(graph: "Graph", name: str) -> "Node | None":
    """Return the node of this name, or the unnamed one (ONNX) whose first result has it; None if there is none."""
    if graph.has_node(name):
        return graph.node(name)
    return next((node for node in graph.all_nodes() if node.label == name), None)


def format_of(out: str, format: str | None, source: Source) -> str:
    """Return the format for a target: ``format`` if given, else by suffix, for stdout that of the source.

    Raises:
        FormatError: If the suffix says nothing.
        OSError: If there is no source.
    """
    from ampgraph.graph.formats.files import find_format

    if out != "-":
        return find_format(out, format, writing=True, from_folder=source.is_saved_model())
    format = format or source.format or (find_format(source.path) if source.path != "-" else "pb")
    if format == "saved_model":
        raise ArgumentError("A SavedModel is a folder and cannot go to stdout. Choose another format with --to.")
    return format


def check_out(path: str | None) -> None:
    """Refuse a target that is no name of a file.

    Raises:
        click.UsageError: If so.
    """
    if path is not None and (not path or "\0" in path):
        raise click.UsageError(f"The name of a file to write is not empty and has no NUL character. Received: {path!r}")


def load_two(a: str, b: str, format: str | None, tags: tuple[str, ...] = ()) -> "tuple[Graph, Graph]":
    """Read the two graphs of a command that compares.

    Raises:
        click.UsageError: If both come from stdin.
        FormatError, GraphError: If one cannot be read.
    """
    if a == b == "-":
        raise click.UsageError("Only one of the two graphs can come from stdin.")
    return Source(a, format, tags=tags).load(), Source(b, format, tags=tags).load()


def check_report(report: str | None, out: str | None, source: Source, what: str = "report", option: str = "--report") -> None:
    """Refuse a report that would replace the graph, and one that could not be written, before anything is.

    Args:
        report: Its file.
        out: Where the graph goes.
        source: Where it comes from.
        what, option: What it is called, and by which option it is asked for.

    Raises:
        click.UsageError: If the report goes to the same file as the graph, or to that which the graph is read from.
        Failure: If there is no folder for it, or it may not be written.
    """
    import os

    if report in (None, "-") or (os.path.exists(report) and not os.path.isfile(report) and not os.path.isdir(report)):
        return
    for other, how in ((out, "is written to"), (source.path, "is read from")):
        if other not in (None, "-") and os.path.realpath(other) == os.path.realpath(report):
            raise click.UsageError(f"The graph {how} {other!r}, so the {what} needs another file. Received: {option} {report}")
    folder = os.path.dirname(os.path.realpath(report))
    if os.path.isdir(report):
        raise Failure(f"{report} cannot be written: it is a folder.")
    if not os.path.isdir(folder):
        raise Failure(f"{report} cannot be written: there is no folder {folder}.")
    if not os.access(folder, os.W_OK):
        raise Failure(f"{report} cannot be written: {folder} does not allow new files.")


def write_graphs(
    graphs: "list[Graph]", out: str, format: str, *, overwrite: bool = False, external_data: bool | None = None
) -> None:
    """Write a graph (or all of a SavedModel) to a file, folder or stdout; it appears complete or not at all."""
    from ampgraph.graph.formats.files import encode
    from ampgraph.saving import save

    if out != "-":
        with progress(f"writing {out}"):
            target = graphs if len(graphs) > 1 else graphs[0]
            save(target, out, format=format, overwrite=overwrite or None, external_data=external_data)
        return
    write_data(encode(graphs[0], format), out)


def file_bytes(graph: "Graph", source: str, out: str) -> tuple[int, int] | None:
    """Return the bytes of an ONNX model before and after, data files included; None where one is no file."""
    import os
    from pathlib import Path

    from ampgraph.graph.formats.onnx_save import loaded_bytes, saved_bytes

    if not (graph.opsets and os.path.isfile(source) and os.path.isfile(out)):
        return None
    return loaded_bytes(graph, Path(source)), saved_bytes(Path(out))


def has_data_file(out: str) -> bool:
    """Whether an ONNX model that was written has a data file beside it."""
    import os
    from pathlib import Path

    from ampgraph.graph.formats.onnx_save import saved_bytes

    return saved_bytes(Path(out)) > os.path.getsize(out)


def write_data(data: bytes, out: str) -> None:
    """Write bytes to a file, complete or not at all, or to stdout.

    Raises:
        Failure: If the file cannot be written.
    """
    from pathlib import Path

    from ampgraph.graph.formats.files import write_bytes

    if out != "-":
        try:
            write_bytes(Path(out), data)
        except OSError as error:
            raise Failure(f"{out} cannot be written: {error.strerror or error}.") from error
        return
    stream = sys.stdout.buffer
    if stream.isatty() and re.search(rb"[\x00-\x08\x0e-\x1f]", data[:4096]):
        raise ArgumentError("Binary data does not go to a terminal. Name a file with -o, or pipe stdout.")
    stream.write(data)
    stream.flush()
