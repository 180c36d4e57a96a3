"""What commands print: tables, JSON, highlighted text; and progress."""

import contextlib
import json
import os
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ampgraph.graph import Graph

#: Work that takes less seconds shows no progress.
PATIENCE = 1.0

# What is highlighted in the text form, by the color of each kind.
_TOKEN = re.compile(
    r'(?P<comment>//[^\n]*)|(?P<value>%(?:"(?:[^"\\]|\\.)*"|[\w.]+)(?:\#\d+)?)|(?P<string>"(?:[^"\\]|\\.)*")'
    r"|(?P<keyword>^(?:graph|function)\b|^  return\b)|(?P<low>\b(?:bf16|f16)\b)|(?P<op>\b[A-Za-z_][\w.]*(?=[<(]))",
    re.MULTILINE,
)
_COLORS = {
    "comment": "bright_black",
    "value": "cyan",
    "string": "bright_black",
    "keyword": "magenta",
    "low": "green",
    "op": "yellow",
}


def colored() -> bool:
    """Whether stdout is a terminal that takes colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def highlight(text: str) -> str:
    """Return the text form of a graph with colours."""
    return _TOKEN.sub(lambda found: click.style(found[0], fg=_COLORS[found.lastgroup or "op"]), text)


def print_text(text: str) -> None:
    """Print the text form of a graph, with colours on a terminal."""
    click.echo(highlight(text) if colored() else text)


def print_json(data: Any) -> None:
    """Print plain data as JSON."""
    click.echo(json.dumps(data, ensure_ascii=False, indent=2))


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table: one that fits the window on a terminal, else aligned columns of whole lines."""
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        shown = Table(box=None, pad_edge=False)
        for i, title in enumerate(header):
            right = bool(rows) and all(isinstance(row[i], int) for row in rows)
            shown.add_column(title, justify="right" if right else "left", overflow="fold")
        for row in rows:
            shown.add_row(*(Text(str(cell)) for cell in row))
        Console(highlight=False).print(shown)
        return
    from ampgraph.graph.wording import table

    for line in table(header, rows):
        click.echo(line)


def count_nodes(graph: "Graph") -> str:
    """Return how many nodes there are: ``"30 nodes and 339 in 19 functions"``; weights of ONNX models are none."""
    from ampgraph.graph.schemas.ampgraph import is_op
    from ampgraph.graph.wording import plural

    parts = [] if graph.is_function else graph.all_graphs()[1:]
    functions = 0 if graph.is_function else len(graph.functions)
    bodies = len(parts) - functions
    inside = sum(is_op(node) for part in parts for node in part.nodes)
    places = [*([plural(functions, "function")] if functions else ()), *([plural(bodies, "body", "bodies")] if bodies else ())]
    text = plural(sum(map(is_op, graph.nodes)), "node")
    return f"{text} and {inside} in {' and '.join(places)}" if places else text


def note(text: str) -> None:
    """Print a message that is not data."""
    click.echo(f"note: {text}", err=True)


@contextlib.contextmanager
def progress(what: str) -> Iterator[None]:
    """Show on a terminal's stderr what is going on, once it has taken :data:`PATIENCE` seconds."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_spin, args=(what, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _spin(what: str, done: threading.Event) -> None:
    if done.wait(PATIENCE):
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(what)):
        done.wait()
