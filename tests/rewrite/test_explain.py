"""The reasons behind decisions, as people read them."""

import json

import pytest

from ampgraph.graph import Graph, GraphError
from ampgraph.graph.dtypes import float32
from ampgraph.graph.infer import infer_shapes
from ampgraph.graph.text import parse_graph
from ampgraph.rewrite import auto_mixed_precision

GRAPH = """
graph loss() {
  %x: f32[8,4] = tf.Placeholder<dtype=f32>() {shape=shape[8,4]}
  %w: f32[4,4] = tf.Placeholder<dtype=f32>() {shape=shape[4,4]}
  %h: f32 = tf.MatMul<T=f32>(%x, %w) name="dense/MatMul"
  %r: f32 = tf.Relu<T=f32>(%h)
  %axes: i32 = tf.Const<dtype=i32>() {value=dense<i32[1], [0]>}
  %s: f32 = tf.Sum<T=f32>(%r, %axes) name="loss/Sum"
  %n: f32 = tf.Neg<T=f32>(%s) name="grad/Neg"
  %m: f32 = tf.Mul<T=f32>(%n, %n)
  %asin: f32 = tf.Asin<T=f32>(%h)
  %c: f32 = tf.MatMul<T=f32>(%h, %w) device="/device:CPU:0"
  %p: f32 = tf.MatMul<T=f32>(%h, %w) {_grappler_do_not_remove=true}
  %far: f32 = tf.Tanh<T=f32>(%x)
  return %m, %asin, %c, %p, %far
}
"""


def why(node: str) -> str:
    graph = parse_graph(GRAPH)
    (item,) = auto_mixed_precision(graph, preserve=("far",), keep_io=False).report.explain(node)
    return f"{item.dtype}: {item.why}"


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("dense/MatMul", "float16: MatMul is on the AllowList (multiplies"),
        ("r", "float16: Relu is on the ClearList and is connected to MatMul 'dense/MatMul' (AllowList)"),
        ("loss/Sum", "float32: Sum is on the DenyList ("),
        ("grad/Neg", "float32: Neg is on the ClearList and downstream of Sum 'loss/Sum' (DenyList)"),
        ("m", "float32: Mul is on the GrayList and downstream of Sum 'loss/Sum' (DenyList) through 'grad/Neg'"),
        ("asin", "float32: Asin is on no list"),
        ("c", "float32: it is placed on /device:CPU:0, not on a GPU"),
        ("p", "float32: its attribute _grappler_do_not_remove preserves it"),
        ("far", "float32: the policy preserves it by name"),
        ("x", "float32: it is an input, and inputs keep their dtype"),
    ],
)
def test_says_why(node: str, expected: str) -> None:
    assert why(node).startswith(expected)


def test_says_why_an_output_or_an_overridden_node_stays() -> None:
    report = auto_mixed_precision(parse_graph(GRAPH), nodes=("dense/.*=none",)).report
    (output,) = report.explain("far")
    assert output.why == "the graph returns it, and outputs keep their dtype"
    (kept,) = report.explain("dense/MatMul")
    assert kept.why == "the policy's override 'dense/.*=none' keeps its types"


def test_says_that_no_kernel_takes_the_low_type() -> None:
    text = GRAPH.replace("%far: f32 = tf.Tanh<T=f32>(%x)", "%far: f32 = tf.DepthToSpace<T=f32>(%h) {block_size=2}")
    (item,) = auto_mixed_precision(parse_graph(text), target="gpu", dtype="float16", keep_io=False).report.explain("far")
    assert item.low  # a GPU has one
    text = text.replace("{block_size=2}", '{block_size=2, data_format="NCHW"}')
    (item,) = auto_mixed_precision(parse_graph(text), target="cpu", dtype="float16", keep_io=False).report.explain("far")
    assert item.why == "DepthToSpace is on the ClearList, but no CPU kernel takes float16"


def test_an_unknown_node_is_named_with_the_nearest() -> None:
    report = auto_mixed_precision(parse_graph(GRAPH)).report
    with pytest.raises(GraphError, match=r"no node 'dense/MatMull'. Did you mean 'dense/MatMul'\?"):
        list(report.explain("dense/MatMull"))


def test_the_report_counts_what_changed() -> None:
    graph = parse_graph(GRAPH)
    infer_shapes(graph)
    report = auto_mixed_precision(graph).report
    assert (report.nodes, report.low, report.casts) == (12, 2, 4)
    saved = 2 * (8 * 4 + 8 * 4)  # the results of MatMul and Relu
    cost = 2 * (8 * 4 + 4 * 4) + 4 * (8 * 4 + 8 * 4)  # x and w as float16, both results as float32 again
    assert report.bytes_saved() == (saved - cost, 6, 0)
    assert ("MatMul", 1, 2) in report.by_op()
    text = report.text()
    assert "12 before, 2 of them now compute in float16, 4 casts added" in text
    assert "224 bytes more for all results of a run, casts included" in text
    assert "types     2 float16, 9 still float32" in text


def test_chains_of_reasons_are_followed_once_however_long() -> None:
    graph = Graph()
    value = graph.add("Placeholder", name="x", types={"dtype": float32}).outputs[0]
    value = graph.add("Exp", [value], name="e").outputs[0]
    for _ in range(50_000):
        value = graph.add("AddV2", [value, value]).outputs[0]
    value = graph.add("MatMul", [value, value], name="m").outputs[0]
    graph.outputs, graph.output_names = [graph.add("Identity", [value], name="out").outputs[0]], ["out"]
    decisions = {item.node: item for item in auto_mixed_precision(graph).report.explain()}
    last = "downstream of Exp 'e' (DenyList) through 'AddV2', 'AddV2_1', 'AddV2_2' and 49996 more"
    assert decisions["AddV2_49999"].why == f"AddV2 is on the GrayList and {last}"
    assert decisions["AddV2_49999"].reason == "downstream"


def test_an_op_nobody_defined_is_explained_too() -> None:
    graph = parse_graph("graph g() {\n  %x: f32 = tf.Placeholder<dtype=f32>()\n  %y: f32 = tf.Foo(%x)\n  return %y\n}")
    (item,) = auto_mixed_precision(graph).report.explain("y")
    assert str(item) == "y (Foo) all types: as they were: nobody defined Foo, so its operands and results keep their dtypes"


def test_a_rewrite_that_did_not_happen_says_why_for_every_node() -> None:
    report = auto_mixed_precision(parse_graph(GRAPH), target="gpu:6.1").report
    assert report.nodes == 12
    (item,) = report.explain("r")
    assert "compute capability 7.0" in item.why
    assert "12, none of them changed" in report.text()


def test_nothing_to_do_is_said_in_words() -> None:
    once = auto_mixed_precision(parse_graph(GRAPH)).graph
    assert "none of them changed: it computes in float16 already" in auto_mixed_precision(once).report.text()
    denied = auto_mixed_precision(parse_graph(GRAPH), ops=("MatMul=deny",)).report.text()
    assert "none of them changed: no AllowList op in it computes in float32 and may change" in denied


def test_the_report_is_plain_json() -> None:
    data = auto_mixed_precision(parse_graph(GRAPH)).report.json()
    assert json.loads(json.dumps(data)) == data
    (body,) = data["bodies"]
    decision = next(row for row in body["decisions"] if row["node"] == "m")
    assert decision["dtype"] == "float32"
    assert decision["key"] == "T"
    assert {cast["source"] for cast in body["casts"]} >= {"x", "w"}
