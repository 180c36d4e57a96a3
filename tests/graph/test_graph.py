"""The core: values and their types, the mutators, the NetworkX view, order, names and copies."""

import re

import networkx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ampgraph.graph import Graph, GraphError, Node, Shape, Tensor
from ampgraph.graph.dtypes import float16, float32, int32
from ampgraph.graph.text import parse_graph
from ampgraph.graph.verify import verify
from tests.graph.strategies import graphs

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


def _small() -> Graph:
    return parse_graph(
        """
        graph g(%x: f32[2], %w: f32) {
          %c = tf.Const() {value=dense<f32[], [1.0]>}
          %sq = tf.Mul(%x, %x)
          %m, %"m:1" = tf.Merge(%sq, %c) {N=2} control=["c"]
          %r = tf.Relu(%m)
          return %r
        }"""
    )


def _edges(graph: Graph) -> set[tuple[Node, Node, object]]:
    found: set[tuple[Node, Node, object]] = set()
    for node in graph.all_nodes():
        found |= {(value.producer, node, slot) for slot, value in enumerate(node.inputs) if value is not None}
        found |= {(source, node, ("control", i)) for i, source in enumerate(node.controls)}
    return found


def test_the_view_keeps_both_operands_of_a_square() -> None:
    graph = _small()
    x, square = graph.node("x"), graph.node("sq")
    assert graph.nx.number_of_edges(x, square) == 2
    assert sorted(graph.value("x").uses(), key=lambda use: use[1]) == [(square, 0), (square, 1)]
    assert networkx.is_directed_acyclic_graph(graph.nx)


def test_values_are_found_by_name_and_know_their_type() -> None:
    graph = _small()
    assert graph.value("m:1").dtype is int32
    assert graph.value("m:1").name == "m:1"
    assert graph.value("m").dtype is float32
    graph.node("m").types = {"T": float16}
    assert graph.value("m").dtype is float16
    with pytest.raises(GraphError, match=re.escape("Graph 'g' has no node 'mm'. Did you mean 'm'?")):
        graph.node("mm")
    with pytest.raises(GraphError, match=r"Node 'm' \(Merge\) of graph 'g' has 2 outputs. Received: 'm:2'"):
        graph.value("m:2")
    with pytest.raises(GraphError, match="Graph 'g' has no value 'zzz'"):
        graph.value("zzz")


def test_a_value_with_a_name_of_its_own_is_found() -> None:
    graph = _small()
    graph.node("r").outputs[0].name = "result"
    assert graph.value("result") is graph.node("r").outputs[0]


def test_add_completes_types_from_operands_constants_and_defaults() -> None:
    graph = _small()
    assert dict(graph.node("c").types) == {"dtype": float32}
    total = graph.add("Sum", [graph.value("x"), graph.value("m:1")])
    assert dict(total.types) == {"T": float32, "Tidx": int32}
    assert (total.name, graph.add("Sum", [graph.value("x"), graph.value("m:1")]).name) == ("Sum", "Sum_1")
    together = graph.add("IdentityN", [graph.value("x"), graph.value("m:1")])
    assert [value.dtype for value in together.outputs] == [float32, int32]
    unknown = graph.add("Strange", [None], domain="acme", outputs=2)
    assert [value.dtype for value in unknown.outputs] == [None, None]
    assert unknown.schema is None
    with pytest.raises(GraphError, match="Op AddN needs an integer attribute 'N'"):
        graph.add("AddN", [graph.value("x")])


def test_attr_falls_back_to_the_default() -> None:
    graph = parse_graph("graph g(%x: f32) { %y = tf.MatMul(%x, %x) {transpose_b=true} }")
    node = graph.node("y")
    assert (node.attr("transpose_a"), node.attr("transpose_b"), node.attr("nothing")) == (False, True, None)


def test_remove_refuses_what_is_used() -> None:
    graph = _small()
    for name, message in [("sq", "'m' .Merge. still uses it"), ("c", "still uses it"), ("r", "returns one of its values")]:
        with pytest.raises(GraphError, match=message):
            graph.remove(graph.node(name))
    with pytest.raises(GraphError, match="is not in graph 'g'"):
        graph.remove(_small().node("r"))
    relu = graph.node("r")
    graph.outputs, graph.output_names = [graph.value("m")], ["m"]
    graph.remove(relu)
    assert relu not in graph
    assert not graph.has_node("r")
    assert relu not in graph.nx
    verify(graph)


@pytest.mark.parametrize("view", [False, True])
def test_remove_all_takes_nodes_that_only_each_other_use(view: bool) -> None:
    graph = parse_graph(
        """graph g(%x: f32) {
          %a = tf.Identity(%x)
          %b = tf.Neg(%a) control=["a"]
          %c = tf.Neg(%b)
          %y = tf.Relu(%x) control=["c"]
          return %y
        }"""
    )
    a, b, c, y = graph.nodes
    if view:
        assert b in graph.nx
    for nodes, message in (([a], "'b' .Neg. still uses it"), ([a, b, c], "'y' .Relu. still uses it"), ([y], "returns one of")):
        with pytest.raises(GraphError, match=message):
            graph.remove_all(nodes)
    with pytest.raises(GraphError, match="is not in graph 'g'"):
        graph.remove_all([c, _small().node("r")])
    assert list(graph.nodes) == [a, b, c, y]
    graph.set_control(y, ())
    graph.remove_all([b, a, c])
    assert list(graph.nodes) == [y]
    assert not graph.has_node("b")
    assert set(graph.nx) == {y, *(value.producer for value in graph.inputs)}
    verify(graph)


def test_replacing_uses_redirects_readers_and_outputs_but_not_the_new_reader() -> None:
    graph = _small()
    relu = graph.value("r")
    cast = graph.add("Identity", [relu], name="i").outputs[0]
    graph.replace_all_uses_with(relu, cast)
    assert graph.outputs == [cast]
    assert cast.producer.inputs == [relu]
    x, w = graph.value("x"), graph.value("w")
    graph.replace_all_uses_with(x, w)
    assert graph.node("sq").inputs == [w, w]
    assert x.uses() == []
    verify(graph)


def test_nodes_are_placed_after_others_in_file_order() -> None:
    graph = _small()
    first = graph.add("Neg", [graph.value("x")], name="first")
    after = graph.add("Neg", [graph.value("sq")], name="after")
    graph.place_after({graph.node("x"): [first], graph.node("sq"): [after]})
    assert [node.name for node in graph.nodes] == ["first", "c", "sq", "after", "m", "r"]


@settings(max_examples=25, deadline=None, suppress_health_check=_SLOW)
@given(graphs(max_nodes=6), st.data())
def test_mutators_keep_the_view_in_step(graph: Graph, data: st.DataObject) -> None:
    assert set(graph.nx.edges(keys=True)) == _edges(graph)
    nodes = list(graph.nodes)
    for _ in range(4):
        node = data.draw(st.sampled_from(nodes))
        values = [value for other in nodes for value in other.outputs]
        action = data.draw(st.sampled_from(["input", "inputs", "control", "replace", "add"]))
        if action == "input" and node.inputs:
            value = data.draw(st.none() | st.sampled_from(values))
            graph.set_input(node, data.draw(st.integers(0, len(node.inputs) - 1)), value)
        elif action == "inputs":
            graph.set_inputs(node, data.draw(st.lists(st.none() | st.sampled_from(values), max_size=3)))
        elif action == "control":
            graph.set_control(node, data.draw(st.lists(st.sampled_from(nodes), max_size=3)))
        elif action == "replace":
            graph.replace_all_uses_with(data.draw(st.sampled_from(values)), data.draw(st.sampled_from(values)))
        else:
            nodes.append(graph.add("Strange", data.draw(st.lists(st.sampled_from(values), max_size=2)), outputs=1))
    assert set(graph.nx.edges(keys=True)) == _edges(graph)
    assert set(graph.nx) == set(graph.all_nodes())


@settings(max_examples=25, deadline=None, suppress_health_check=_SLOW)
@given(graphs(max_nodes=8))
def test_topological_order_agrees_with_networkx(graph: Graph) -> None:
    order = graph.topological()
    view = graph.nx.copy()
    view.remove_edges_from([edge for edge in graph.nx.edges(keys=True) if edge[0].op_type == "NextIteration"])
    place = {node: i for i, node in enumerate(order)}
    assert set(order) == set(view)
    assert len(order) == len(view)
    assert all(place[a] < place[b] for a, b in view.edges())
    position = {node: i for i, node in enumerate(graph.all_nodes())}
    assert order == list(networkx.lexicographical_topological_sort(view, key=position.__getitem__))


def test_a_cycle_is_named() -> None:
    graph = _small()
    graph.set_input(graph.node("sq"), 0, graph.value("r"))
    with pytest.raises(GraphError, match=r"Graph 'g' has a cycle: .*'sq' \(Mul\)"):
        graph.topological()


@settings(max_examples=20, deadline=None, suppress_health_check=_SLOW)
@given(graphs(max_nodes=8))
def test_a_copy_is_equal_and_independent(graph: Graph) -> None:
    text = str(graph)
    copy = graph.copy()
    assert str(copy) == text
    assert set(copy.all_nodes()).isdisjoint(graph.all_nodes())
    assert all(function.functions is copy.functions for function in copy.functions.values())
    for part in [copy, *copy.functions.values()]:
        for node in list(part.nodes):
            node.types = {}
            node.name += "_changed"
            part.set_inputs(node, [])
            part.set_control(node, [])
        part.outputs = []
    copy.attributes["new"] = 1
    assert str(graph) == text


def test_deep_chains_are_copied_and_sorted_without_recursion() -> None:
    graph = Graph("deep")
    value = graph.add_input("x", float32, Shape((2,)))
    for i in range(8_000):
        value = graph.add("Neg", [value], name=f"n{i}").outputs[0]
    graph.outputs, graph.output_names = [value], ["y"]
    copy = graph.copy()
    assert [node.name for node in copy.topological()][-1] == "n7999"
    assert copy.outputs[0].name == "n7999"


def test_a_constant_whose_bytes_do_not_fit_is_an_error() -> None:
    tensor = Tensor(float32, (3,), lambda: np.zeros(2, np.float32))
    with pytest.raises(GraphError, match=re.escape("declares shape [3] but stores an array of [2]")):
        tensor.array()
