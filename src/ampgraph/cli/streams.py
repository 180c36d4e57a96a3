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
    from ampgraph.graph import Graph

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
        from pathlib import Path

        from ampgraph.graph.formats.files import find_format
        from ampgraph.graph.formats.saved_model import tag_sets

        folder = Path(self.path)
        if self.path == "-" or self.tags or not folder.is_dir() or find_format(folder, self.format) != "saved_model":
            return [self.load()]
        sets = tag_sets(folder)
        return [dataclasses.replace(self, tags=tags).load() for tags in sets] if len(sets) > 1 else [self.load()]

    def _load_stdin(self) -> "Graph":
        from ampgraph.graph.errors import AmpgraphError
        from ampgraph.graph.formats.files import decode, read_bytes

        if self.format == "saved_model":
            raise ArgumentError("A SavedModel is a folder and cannot come from stdin.")
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


def format_of(out: str, format: str | None, source: Source) -> str:
    """Return the format for a target: ``format`` if given, else by suffix, for stdout that of the source.

    Raises:
        FormatError: If the suffix says nothing.
    """
    from pathlib import Path

    from ampgraph.graph.formats.files import find_format

    if out != "-":
        return find_format(Path(out), format, writing=True)
    if format is None:
        format = source.format or (find_format(Path(source.path)) if source.path != "-" else "pb")
    if format == "saved_model":
        raise ArgumentError("A SavedModel is a folder and cannot go to stdout. Choose another format with --to.")
    return find_format(Path(out), format, writing=True)


def write_graphs(graphs: "list[Graph]", out: str, format: str, *, overwrite: bool = False) -> None:
    """Write a graph (or all of a SavedModel) to a file, folder or stdout; it appears complete or not at all."""
    from ampgraph.graph.formats.files import encode, save

    if out != "-":
        with progress(f"writing {out}"):
            save(graphs if len(graphs) > 1 else graphs[0], out, format=format, overwrite=overwrite or None)
        return
    write_data(encode(graphs[0], format), out)


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
