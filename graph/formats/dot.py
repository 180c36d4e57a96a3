"""Pictures: a graph in Graphviz's DOT language, and as SVG through Graphviz's ``dot`` program.

Colours tell the precision: green computes in float16 or bfloat16, blue in float32, orange is a cast between them, grey has
no floats.
"""

import shutil
import subprocess

from ..dtypes import LOW_PRECISION, DType, float32, float64
from ..errors import FormatError
from ..graph import Graph, Node, Value

_LOW, _HIGH, _CAST, _OTHER = "#b7e1a1", "#bcd7f5", "#ffd59e", "#e8e8e8"

_LEGEND = {_LOW: "float16 or bfloat16", _HIGH: "float32", _CAST: "cast between them", _OTHER: "no floats"}

#: Graphs of more nodes are not drawn: laying them out takes minutes, and nobody finds anything in the picture.
MOST_NODES = 1500
#: Seconds that ``dot`` may take.
TIMEOUT = 120


def to_dot(graph: Graph) -> str:
    """Return ``graph`` (without its functions' bodies) in the DOT language: nodes coloured by precision, edges with
    types, and a key of the colours below."""
    cells = "".join(f'<td bgcolor="{color}">{text}</td>' for color, text in _LEGEND.items())
    lines = [
        f"digraph {_quote(graph.name)} {{",
        '  node [shape=box, style="filled,rounded", fontname="sans-serif", fontsize=10];',
        '  edge [fontname="sans-serif", fontsize=8];',
        '  fontname="sans-serif"; fontsize=10;',
        f'  label=<<table border="0" cellborder="0" cellspacing="6"><tr>{cells}</tr></table>>;',
    ]
    ids = {node: f"n{i}" for i, node in enumerate(graph.all_nodes())}
    for node, name in ids.items():
        label = _escape(node.op_type) + (f"\\n{_escape(node.name)}" if node.name else "")
        lines.append(f'  {name} [label="{label}", fillcolor="{_color(node)}"];')
    for node, name in ids.items():
        operands = [value for value in node.inputs if value is not None]
        lines += [f'  {ids[value.producer]} -> {name} [label="{_escape(_type(value))}"];' for value in operands]
        lines += [f"  {ids[source]} -> {name} [style=dashed];" for source in node.controls]
    for i, (value, output) in enumerate(zip(graph.outputs, graph.output_names, strict=False)):
        lines.append(f'  o{i} [label="{_escape(output)}", shape=ellipse, fillcolor="white"];')
        lines.append(f'  {ids[value.producer]} -> o{i} [label="{_escape(_type(value))}"];')
    lines.append("}\n")
    return "\n".join(lines)


def to_svg(graph: Graph) -> bytes:
    """Return ``graph`` as an SVG picture, laid out by Graphviz.

    Raises:
        FormatError: If the graph has more than :data:`MOST_NODES` nodes, or Graphviz is not installed, fails, or takes more
            than two minutes.
    """
    if len(graph) > MOST_NODES:
        raise FormatError(
            f"Graph {graph.name!r} has {len(graph)} nodes, and pictures of more than {MOST_NODES} are not drawn. Draw a part: "
            "'ampgraph dump' takes --around NODE and --function NAME. The format 'dot' holds graphs of any size."
        )
    program = shutil.which("dot")
    if program is None:
        raise FormatError(
            "Drawing SVG needs the program 'dot' of Graphviz, which is not on the PATH. Install Graphviz "
            "(for example 'apt install graphviz' or 'brew install graphviz'), or write the format 'dot' instead."
        )
    source = to_dot(graph).encode("utf-8", "replace")
    try:
        done = subprocess.run([program, "-Tsvg"], input=source, capture_output=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        raise FormatError(
            f"Graphviz did not lay out the {len(graph)} nodes of graph {graph.name!r} within {TIMEOUT} s. Draw a smaller graph."
        ) from None
    except OSError as error:
        raise FormatError(f"Graphviz's program {program!r} could not be started: {error}.") from error
    if done.returncode or not done.stdout:
        reason = done.stderr.decode(errors="replace").strip()[-500:] or "no message"
        raise FormatError(f"Graphviz could not draw graph {graph.name!r} (exit code {done.returncode}): {reason}")
    return done.stdout


def _type(value: Value) -> str:
    shape = "" if value.shape.dims is None else str(value.shape)
    return f"{'?' if value.dtype is None else value.dtype.short}{shape}"


def _color(node: Node) -> str:
    dtypes: set[DType | None] = {*node.types.values(), *(value.dtype for value in node.outputs)}
    low = not dtypes.isdisjoint(LOW_PRECISION)
    high = not dtypes.isdisjoint((float32, float64))
    if node.op_type == "Cast" and (low or high):
        return _CAST
    return _LOW if low else _HIGH if high else _OTHER


def _quote(text: str) -> str:
    return f'"{_escape(text)}"'


def _escape(text: str) -> str:
    """Make any text safe inside a quoted DOT string: no escape, no end of string, nothing unprintable."""
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return shown.replace("\\", "\\\\").replace('"', '\\"')
