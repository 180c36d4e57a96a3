"""Differences between graphs: one line for each, and none between equal graphs."""

import re
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings

from ampgraph.graph import Graph
from ampgraph.graph.diff import diff, structurally_equal
from ampgraph.graph.dtypes import float16
from ampgraph.graph.text import constants_of, parse_graph, print_graph
from tests.graph.strategies import graphs

TEXT = """
graph g(%x: f32, %w: f32) <producer=1> {
  tf.NoOp() name="init"
  %m = tf.MatMul(%x, %w) name="dense/MatMul" control=["init"]
  %r = tf.Relu(%m)
  %f = tf.PartitionedCall<Tout=[f32]>(%r) {f=@body}
  return %f
}
function body(%a: f32) { %n = tf.Neg(%a) return out=%n }
"""


def _replace(old: str, new: str) -> Callable[[], Graph]:
    return lambda: parse_graph(TEXT.replace(old, new, 1))


def _cast() -> Graph:
    graph = parse_graph(TEXT)
    cast = graph.add("Cast", [graph.value("x")], types={"DstT": float16}, name="x-0-CastToFp16-0-AutoMixedPrecision")
    matmul = graph.node("dense/MatMul")
    graph.set_input(matmul, 0, cast.outputs[0])
    matmul.types = {"T": float16}
    return graph


@pytest.mark.parametrize(
    ("changed", "lines"),
    [
        (_replace("g(", "other("), []),
        (_replace("(%x, %w) name", "(%x, %w) {transpose_a=false} name"), []),
        (
            _cast,
            [
                "~ dense/MatMul: T f32 -> f16",
                "~ dense/MatMul: input 0 x -> x-0-CastToFp16-0-AutoMixedPrecision",
                "+ x-0-CastToFp16-0-AutoMixedPrecision = Cast(x)",
            ],
        ),
        (_replace("tf.Relu(%m)", "tf.Relu6(%m)"), ["~ r: op Relu -> Relu6"]),
        (_replace("tf.Relu(%m)", 'tf.Relu(%m) device="/gpu:0"'), ["~ r: device '' -> '/gpu:0'"]),
        (_replace("(%x, %w) name", "(%x, %w) {transpose_a=true} name"), ["~ dense/MatMul: transpose_a false -> true"]),
        (_replace("(%x, %w) name", "(%x, %w) {_a=1} name"), ["~ dense/MatMul: _a nothing -> 1"]),
        (_replace(' control=["init"]', ""), ["~ dense/MatMul: control init -> nothing"]),
        (_replace("  tf.NoOp() name=", "  %z = tf.Neg(%x) tf.NoOp() name="), ["+ z = Neg(x)"]),
        (_replace("return %f", "return out=%r"), ["~ outputs: f=f -> out=r"]),
        (_replace("%w: f32", "%w: f16"), ["~ input w: f32 -> f16"]),
        (_replace("producer=1", "producer=2"), ["~ graph: producer 1 -> 2"]),
        (_replace("tf.Neg(%a)", "tf.Exp(%a)"), ["~ function body: n: op Neg -> Exp"]),
        (_replace("function body", "function other() {} function body"), ["+ function other"]),
    ],
)
def test_differences(changed: Callable[[], Graph], lines: list[str]) -> None:
    a, b = parse_graph(TEXT), changed()
    assert diff(a, b) == lines
    assert structurally_equal(a, b) == (not lines)
    swap = {"+": "-", "-": "+", "~": "~"}
    assert sorted(line[0] for line in diff(b, a)) == sorted(swap[line[0]] for line in lines)


def test_file_order_counts_only_on_request() -> None:
    a = parse_graph("graph g(%x: f32) { %a = tf.Neg(%x) %b = tf.Exp(%x) }")
    b = parse_graph("graph g(%x: f32) { %b = tf.Exp(%x) %a = tf.Neg(%x) }")
    assert structurally_equal(a, b)
    assert not structurally_equal(a, b, order=True)
    assert structurally_equal(a, a.copy(), order=True)


def test_long_values_are_cut() -> None:
    a, b = (parse_graph(f'graph g() {{ tf.NoOp() {{a="{char * 200}"}} name="n" }}') for char in "xy")
    assert re.fullmatch(r'~ n: a "x{58}… -> "y{58}…', diff(a, b)[0])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(graphs(max_nodes=8))
def test_copies_and_parsed_texts_are_equal(graph: Graph) -> None:
    assert structurally_equal(graph, graph.copy(), order=True)
    assert structurally_equal(graph, parse_graph(print_graph(graph), constants_of(graph)), order=True)
