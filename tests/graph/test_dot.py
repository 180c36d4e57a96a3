"""Pictures: colours by precision, hostile names, and what happens without Graphviz."""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ampgraph.graph import FormatError, Graph
from ampgraph.graph.formats import dot
from ampgraph.graph.formats.dot import to_dot, to_svg
from ampgraph.graph.text import parse_graph

TEXT = """
graph g(%x: f32[2,?]) {
  %h: f16[2,?] = tf.Cast(%x)
  %m: f16 = tf.MatMul(%h, %h)
  %s: f32 = tf.Cast(%m) control=["h"]
  %y = tf.Exp(%s)
  %i = tf.Shape(%y)
  return loss=%y
}"""


def _colors(text: str) -> dict[str, str]:
    return dict(re.findall(r'label="(\w+)\\n\w+", fillcolor="(#\w+)"', text))


def test_nodes_are_coloured_by_precision_and_edges_named_by_type() -> None:
    text = to_dot(parse_graph(TEXT))
    colors = _colors(text)
    assert len({colors["MatMul"], colors["Cast"], colors["Exp"]}) == 3
    assert colors["Input"] == colors["Exp"] == colors["Shape"]
    assert text.count('n1 -> n2 [label="f16[2,?]"];') == 2  # both operands
    assert "n1 -> n3 [style=dashed];" in text
    assert 'o0 [label="loss"' in text
    assert "n4 -> o0" in text


@pytest.mark.parametrize("name", ['a"b', "a\\", "\\N", '"]; evil [label="', "a\nb", "\0", "<b>&amp;</b>", "\ud800"])
def test_hostile_names_stay_inside_their_label(name: str) -> None:
    graph = Graph(name)
    graph.add("NoOp", name=name)
    graph.add(name, domain="other", name="n")
    lines = to_dot(graph).splitlines()
    string = r'"(?:[^"\\\n]|\\.)*"'
    assert re.fullmatch(rf"digraph {string} {{", lines[0])
    nodes = [line for line in lines if re.match(r"  n\d", line)]
    assert len(nodes) == 2
    assert all(re.fullmatch(rf"  n\d \[label={string}, fillcolor={string}\];", line) for line in nodes)


def test_without_graphviz_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FormatError, match=r"needs the program 'dot' of Graphviz.*Install Graphviz"):
        to_svg(parse_graph(TEXT))


def test_huge_graphs_are_refused_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _fake_dot(monkeypatch, tmp_path, "print('drawn')")
    graph = Graph("g")
    for _ in range(dot.MOST_NODES):
        graph.add("NoOp")
    assert to_svg(graph) == b"drawn\n"
    graph.add("NoOp")
    with pytest.raises(FormatError, match=r"Graph 'g' has 1501 nodes.*--around NODE and --function NAME"):
        to_svg(graph)


def _fake_dot(monkeypatch: pytest.MonkeyPatch, folder: Path, body: str) -> None:
    program = folder / "dot"
    program.write_text(f"#!{sys.executable}\nimport sys, time\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_the_program_gets_the_text_and_its_picture_comes_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _fake_dot(monkeypatch, tmp_path, "print(sys.argv[1:], sys.stdin.read())")
    graph = parse_graph(TEXT)
    assert to_svg(graph).decode().rstrip("\n") == f"['-Tsvg'] {to_dot(graph)}".rstrip("\n")


def test_failures_of_the_program_are_errors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _fake_dot(monkeypatch, tmp_path, "sys.exit('no memory')")
    with pytest.raises(FormatError, match=re.escape("could not draw graph 'g' (exit code 1): no memory")):
        to_svg(parse_graph(TEXT))
    _fake_dot(monkeypatch, tmp_path, "time.sleep(60)")
    monkeypatch.setattr(dot, "TIMEOUT", 0.3)
    with pytest.raises(FormatError, match=r"did not lay out the 5 nodes of graph 'g' within 0\.3 s"):
        to_svg(parse_graph(TEXT))


@pytest.mark.graphviz
def test_graphviz_draws_every_node() -> None:
    root = ElementTree.fromstring(to_svg(parse_graph(TEXT)))
    groups = [element for element in root.iter("{http://www.w3.org/2000/svg}g") if element.get("class") == "node"]
    assert len(groups) == 7  # 5 nodes, 1 input, 1 output
    assert {"float32", "float16 or bfloat16", "cast between them"} <= {text.text for text in root.iter() if text.text}
