"""What a report says about an ONNX model: regions that stay float32, and hazards."""

import re
from pathlib import Path

import ampgraph as ag
from ampgraph.graph.wording import size
from ampgraph.rewrite.hazards import KINDS, Hazard
from ampgraph.rewrite.regions import largest_float_region

TEXT = """
graph g(%x: f32[4,4]) <ir_version=8> opset [""=17] {
  %w: f32[4,4] = ampgraph.Initializer<T=f32>() {value=dense<f32[4,4], splat 0.5>}
  %a: f32[4,4] = MatMul<T=f32>(%x, %w) name="a"
  %e1: f32[4,4] = Exp<T=f32>(%a) name="e1"
  %r: f32[4,4] = MatMul<T=f32>(%e1, %w) name="r"
  %e2: f32[4,4] = Exp<T=f32>(%r) name="e2"
  %e3: f32[4,4] = Exp<T=f32>(%e2) name="e3"
  %s: f32[4,4] = Sigmoid<T=f32>(%e3) name="s"
  %t: f32[4,4] = Softplus<T=f32>(%e3) name="t"
  %y: f32[4,4] = Add<T=f32>(%s, %t) name="y"
  return %y
}
"""


def test_the_largest_region_and_what_holds_most_of_it() -> None:
    report = ag.auto_mixed_precision(ag.parse_graph(TEXT)).report
    painting = report.bodies[0].painting
    assert painting is not None
    region = largest_float_region(painting)
    assert region is not None
    # e1 is alone: a low-precision product lies between.
    assert {node.name for node in region.nodes} >= {"e2", "e3", "t"}
    assert "e1" not in {node.name for node in region.nodes}
    assert painting.typegraph.nodes[painting.typegraph.owner[region.origin]].op_type == "Exp"
    assert region.held == len(region.nodes)
    assert (
        f"\nfloat32   the largest region is {len(region.nodes)} nodes at 'e2' (Exp), held by 'e2' (Exp): Exp is on"
        in report.text()
    )


def test_nothing_float_is_no_region() -> None:
    text = 'graph g(%x: f32[4,4]) <ir_version=8> opset [""=17] {\n  %y: f32[4,4] = MatMul<T=f32>(%x, %x) name="y"\n  return %y\n}'
    report = ag.auto_mixed_precision(ag.parse_graph(text), keep_io=False).report
    assert report.json()["float_region"] is None
    assert "float32 " not in report.text().split("types by op")[0]


def test_hazards_are_counted_by_kind_with_an_example() -> None:
    report = ag.auto_mixed_precision(ag.parse_graph(TEXT)).report
    painting = report.bodies[0].painting
    assert painting is not None
    graph = painting.typegraph
    number = {node.name: i for i, node in enumerate(graph.nodes)}
    found = painting.facts.hazards
    assert isinstance(found, dict)
    for name, code in (("e2", "epsilon"), ("e3", "epsilon"), ("t", "phase"), ("a", "phase")):
        found[graph.first[number[name]]] = Hazard(code, f"{name} is in danger", None)
    text = report.text()
    # a is low all the same, so nothing kept it.
    assert "\nhazards   epsilon 2, phase 1\n" in text
    assert "\n          epsilon: 'e2' (Exp), e2 is in danger\n" in text
    assert report.json()["hazards"] == [
        {"code": "epsilon", "node": "e2", "why": "e2 is in danger"},
        {"code": "epsilon", "node": "e3", "why": "e3 is in danger"},
        {"code": "phase", "node": "t", "why": "t is in danger"},
    ]


def test_a_model_in_which_nothing_changes() -> None:
    report = ag.auto_mixed_precision(ag.parse_graph(TEXT), ops=("MatMul=deny",)).report
    assert "\nnodes     8, none of them changed" in report.text()
    assert report.json()["low"] == report.json()["constants_stored"] == 0


def test_sizes_as_text() -> None:
    sizes = {0: "0 bytes", 1023: "1023 bytes", 1536: "1.5 KiB", 3 << 20: "3.0 MiB", 5 << 40: "5120.0 GiB"}
    assert {count: size(count) for count in sizes} == sizes


def test_the_documentation_has_every_kind_of_hazard() -> None:
    page = (Path(__file__).parents[2] / "docs" / "onnx.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^\| `([\w-]+)` \| (.*) \|$", page.split("## Hazards")[1], re.MULTILINE)) == KINDS


def test_inputs_that_become_low_are_no_stored_constants() -> None:
    report = ag.auto_mixed_precision(ag.parse_graph(TEXT), keep_io=False).report
    assert report.bodies[0].graph.inputs[0].dtype is ag.find_dtype("float16")
    assert report.json()["constants_stored"] == 1
