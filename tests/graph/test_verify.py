"""Every invariant, broken by itself: the violation names the rule, the node and what is wrong."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from ampgraph.graph import FunctionRef, Graph, Placeholder, Tensor, Value, VerifyError
from ampgraph.graph.dtypes import float16, float32, int32
from ampgraph.graph.text import parse_graph
from ampgraph.graph.verify import verify, violations
from tests.graph.strategies import graphs

GOOD = """
graph g(%x: f32, %p: bool) {
  %c = tf.Const() {value=dense<f32[], [1.0]>}
  %m = tf.MatMul(%x, %c)
  %r = tf.Relu(%m) control=["c"]
  %n = tf.AddN(%m, %r) {N=2}
  %conv: f32 = tf.MaxPool(%n) {ksize=[1,2,2,1], strides=[1,2,2,1], padding="SAME"}
  %call: f32 = tf.PartitionedCall(%r) {f=@f}
  return %n
}
function f(%a: f32) { %b = tf.Neg(%a) return %b }
"""


def test_a_good_graph_passes() -> None:
    assert list(violations(parse_graph(GOOD))) == []
    verify(parse_graph(GOOD))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(graphs(max_nodes=10))
def test_random_graphs_pass_and_their_copies_too(graph: Graph) -> None:
    verify(graph)
    copy = graph.copy()
    assert copy.nx.number_of_nodes() == len(graph)
    verify(copy)


def _foreign(g: Graph) -> None:
    g.node("m").inputs[0] = parse_graph(GOOD).value("x")


def _wrong_index(g: Graph) -> None:
    g.node("m").inputs[0] = Value(g.node("c"), 3)


def _omit(g: Graph) -> None:
    g.node("m").inputs[1] = None


def _misplace_result(g: Graph) -> None:
    g.node("m").outputs[0].index = 1


def _same_name(g: Graph) -> None:
    g.node("m").name = "r"


def _no_name(g: Graph) -> None:
    g.node("m").name = ""


def _same_value_name(g: Graph) -> None:
    g.value("m").name = "r"


def _cycle(g: Graph) -> None:
    g.node("m").inputs[0] = g.value("n")


def _control_cycle(g: Graph) -> None:
    g.set_control(g.node("c"), [g.node("r")])


def _more_inputs(g: Graph) -> None:
    g.node("m").inputs.append(g.value("x"))


def _other_count(g: Graph) -> None:
    g.node("n").attributes = {"N": 3}


def _no_count(g: Graph) -> None:
    g.node("n").attributes = {}


def _no_type(g: Graph) -> None:
    g.node("m").types = {}


def _extra_type(g: Graph) -> None:
    g.node("m").types = {"T": float32, "U": float32}


def _wrong_type(g: Graph) -> None:
    g.node("m").types = {"T": float16}


def _forbidden_type(g: Graph) -> None:
    g.node("n").types = {"T": parse_graph("graph g(%s: str) {}").inputs[0].dtype}  # type: ignore[dict-item]


def _fixed_type(g: Graph) -> None:
    g.add("Switch", [g.value("x"), g.value("x")], name="switch")


def _reference(g: Graph) -> None:
    g.add("Assign", [g.value("r"), g.value("m")], name="assign")


def _attribute_kind(g: Graph) -> None:
    g.node("m").attributes = {"transpose_a": 1}


def _attribute_value(g: Graph) -> None:
    g.node("conv").attributes = {**g.node("conv").attributes, "padding": b"FULL"}


def _attribute_minimum(g: Graph) -> None:
    g.add("TopK", [g.value("x")], attributes={"k": -1}, name="top")


def _attribute_list(g: Graph) -> None:
    g.node("conv").attributes = {**g.node("conv").attributes, "ksize": [1, 2.0, 2, 1]}


def _attribute_missing(g: Graph) -> None:
    g.node("conv").attributes = {key: value for key, value in g.node("conv").attributes.items() if key != "padding"}


def _foreign_control(g: Graph) -> None:
    g.node("m").controls = (parse_graph(GOOD).node("c"),)


def _foreign_output(g: Graph) -> None:
    g.outputs = [parse_graph(GOOD).value("n")]


def _unnamed_output(g: Graph) -> None:
    g.output_names = []


def _no_function(g: Graph) -> None:
    g.node("call").attributes = {"f": FunctionRef("ff")}


def _call_types(g: Graph) -> None:
    g.node("call").types = {"Tin[0]": float32, "Tout[0]": float16}


def _call_count(g: Graph) -> None:
    g.functions["f"].outputs = []
    g.functions["f"].output_names = []


def _constant(g: Graph) -> None:
    g.node("c").attributes = {"value": Tensor.of(np.float16(1))}


def _nx(g: Graph) -> None:
    assert g.nx.number_of_nodes()
    g.node("n").inputs[1] = g.value("x")


def _in_function(g: Graph) -> None:
    g.functions["f"].node("b").types = {"T": float16}


CASES: list[tuple[Callable[[Graph], None], str]] = [
    (_foreign, "[operand-defined] 'm' (MatMul) reads '%x' at input 0, but 'x' (Input) is not in this graph."),
    (_wrong_index, "[operand-defined] 'm' (MatMul) reads '%c:3' at input 0, but that is no result of 'c' (Const)."),
    (_omit, "[operand-defined] 'm' (MatMul) omits input 1, but TensorFlow ops have no optional inputs."),
    (_misplace_result, "[result-consistent] Result 0 of 'm' (MatMul) says it is result 1 of 'm' (MatMul)."),
    (_same_name, "[names-unique] 2 nodes are called 'r'."),
    (_no_name, "[names-unique] 1 TensorFlow nodes have no name."),
    (_same_value_name, "[names-unique] 2 values are called '%r'."),
    (_cycle, "[acyclic] Graph 'g' has a cycle: 'n' (AddN) -> 'm' (MatMul) -> 'n' (AddN)."),
    (_control_cycle, "[acyclic] Graph 'g' has a cycle: 'm' (MatMul) -> 'r' (Relu) -> 'c' (Const) -> 'm' (MatMul)."),
    (_more_inputs, "[arity] 'm' (MatMul) has 2 inputs by its definition. Received: 3"),
    (_other_count, "[arity] 'n' (AddN) has 3 inputs by its definition. Received: 2"),
    (_other_count, "[arity] 'n' (AddN) was changed, but its signature was not renewed."),
    (_no_count, "[arity] 'n' (AddN): Op AddN needs an integer attribute 'N' that counts operands. Received: nothing"),
    (_no_type, "[types-complete] 'm' (MatMul) has no dtype for its type variable T."),
    (_extra_type, "[types-complete] 'm' (MatMul) has a dtype for 'U', which is not a type variable of MatMul."),
    (_wrong_type, "[dtype-matches-schema] 'm' (MatMul) reads '%x' at input 0 as float16, but 'x' (Input) gives float32."),
    (_wrong_type, "[dtype-matches-schema] 'r' (Relu) reads '%m' at input 0 as float32, but 'm' (MatMul) gives float16."),
    (_forbidden_type, "[type-allowed] 'n' (AddN) has T=string, but its definition allows only bfloat16, "),
    (_fixed_type, "[dtype-matches-schema] 'switch' (Switch) reads '%x' at input 1 as bool, but 'x' (Input) gives float32."),
    (_reference, "[reference] 'assign' (Assign) needs a reference to a variable at input 0, but 'r' (Relu) gives a value."),
    (_attribute_kind, "[attribute-kind] 'm' (MatMul) needs a bool for attribute 'transpose_a'. Received: 1"),
    (_attribute_value, "[attribute-value] 'conv' (MaxPool) allows only 'EXPLICIT', 'SAME', 'VALID' for attribute 'padding'."),
    (_attribute_minimum, "[attribute-value] 'top' (TopK) needs at least 0 for attribute 'k'. Received: -1"),
    (_attribute_list, "[attribute-kind] 'conv' (MaxPool) needs a list(int) for attribute 'ksize'. Received: [1, 2.0, 2, 1]"),
    (_attribute_missing, "[attribute-required] 'conv' (MaxPool) has no attribute 'padding', which its definition requires."),
    (_foreign_control, "[control-in-graph] 'm' (MatMul) waits for 'c' (Const), which is not in this graph."),
    (_foreign_output, "[outputs-defined] Graph 'g' returns '%n', but no node or graph input defines it."),
    (_unnamed_output, "[outputs-defined] Graph 'g' has 1 outputs and 0 output names."),
    (_no_function, "[function-exists] 'call' (PartitionedCall) names function 'ff' in attribute 'f', but there is none."),
    (_call_types, "[call-signature] Function 'f' returns float32 at place 0, but 'call' (PartitionedCall) declares float16."),
    (_call_count, "[call-signature] Function 'f' returns 0 tensors, but 'call' (PartitionedCall) declares 1."),
    (_constant, "[constant-matches] 'c' (Const) declares float32, but its tensor is float16."),
    (_nx, "[nx-agrees] The edges into 'n' (AddN) are not those of graph.nx; change nodes through the graph's methods."),
    (_in_function, "[dtype-matches-schema] function 'f': 'b' (Neg) reads '%a' at input 0 as float16, but "),
]


@pytest.mark.parametrize(("damage", "message"), CASES, ids=[f"{d.__name__[1:]}-{i}" for i, (d, _) in enumerate(CASES)])
def test_each_rule(damage: Callable[[Graph], None], message: str) -> None:
    graph = parse_graph(GOOD)
    damage(graph)
    with pytest.raises(VerifyError, match=re.escape(message)) as caught:
        verify(graph)
    assert any(text.startswith(message) for text in caught.value.violations)


def test_all_violations_are_collected_and_twenty_shown() -> None:
    graph = Graph("many")
    start = graph.add("Const", attributes={"value": Tensor.of(np.float32(1))}, name="c").outputs[0]
    for i in range(25):
        graph.add("Neg", [start], types={"T": float16}, name=f"n{i}")
    with pytest.raises(VerifyError, match=re.escape("Graph 'many' is not valid (25 violations):")) as caught:
        verify(graph)
    assert len(caught.value.violations) == 25
    assert str(caught.value).endswith("and 5 more")
    assert len(str(caught.value).splitlines()) == 22


LOOP = """
graph loop(%x: f32, %p: bool) {
  %enter = tf.Enter(%x) {frame_name="f"}
  %merge, %index = tf.Merge(%enter, %next) {N=2}
  %cond = tf.LoopCond(%p)
  %done, %go = tf.Switch(%merge, %cond)
  %body = tf.Neg(%go)
  %next = tf.NextIteration(%body)
  %exit = tf.Exit(%done)
  return %exit
}"""


def test_the_back_edge_of_a_loop_is_no_cycle() -> None:
    verify(parse_graph(LOOP))
    bad = parse_graph(LOOP.replace("tf.Neg(%go)", "tf.Add(%go, %next)"))
    with pytest.raises(VerifyError, match=r"\[acyclic\] .*'next' \(NextIteration\)"):
        verify(bad)


def test_a_chain_of_many_nodes_out_of_order_is_no_cycle() -> None:
    graph = Graph("chain")
    nodes = [graph.add("Neg", [None], types={"T": float32}, name=f"n{i}") for i in range(20_000)]
    start = graph.add("Placeholder", types={"dtype": float32}, attributes={}, name="x")
    for node, after in zip(nodes, [*nodes[1:], start], strict=True):
        node.inputs[0] = after.outputs[0]
    verify(graph)


LISTS = """
graph g(%n: i32, %x: f16) {
  %list: variant = tf.TensorListReserve<element_dtype=ELEMENT>(%n, %n)
  %same = tf.Identity(%list)
  %i: i32, %out: variant = tf.While(%n, %same) {body=@body, cond=@cond}
  %item = tf.TensorListGetItem<element_dtype=ITEM>(%out, %n, %n)
  return %item
}
function body(%k: i32, %l: variant) {
  %v = tf.Const() {value=dense<SET[], [1.0]>}
  %new = tf.TensorListSetItem(%l, %k, %v)
  return %k, %new
}
function cond(%k: i32, %l: variant) { %less = tf.Less(%k, %k) return %less }
"""


def _lists(element: str, item: str, stored: str) -> Graph:
    return parse_graph(LISTS.replace("ELEMENT", element).replace("ITEM", item).replace("SET", stored))


def test_a_tensor_list_has_one_element_dtype_through_loops_and_functions() -> None:
    verify(_lists("f16", "f16", "f16"))
    with pytest.raises(VerifyError, match=r"\[list-dtype\] 'item' \(TensorListGetItem\) has element_dtype=float32"):
        verify(_lists("f16", "f32", "f16"))
    with pytest.raises(VerifyError, match=r"\[list-dtype\] function 'body': 'new' .* but 'list' .* has float16"):
        verify(_lists("f16", "f16", "f32"))


def test_a_function_called_twice_may_get_different_lists() -> None:
    verify(
        parse_graph(
            """
            graph g(%n: i32) {
              %a: variant = tf.TensorListReserve<element_dtype=f16>(%n, %n)
              %b: variant = tf.TensorListReserve<element_dtype=f32>(%n, %n)
              %c: variant = tf.PartitionedCall(%a) {f=@f}
              %d: variant = tf.PartitionedCall(%b) {f=@f}
            }
            function f(%l: variant) { return %l }
            """
        )
    )


def test_types_that_the_caller_supplies_may_be_missing() -> None:
    graph = parse_graph("graph g(%x: ?) {\n %y = tf.Neg<T=?>(%x) {T=$T} \n return %y }")
    assert graph.node("y").attributes["T"] == Placeholder("T")
    verify(graph)


def test_unknown_ops_and_unknown_attributes_are_left_alone() -> None:
    verify(parse_graph('graph g(%x: f32) { %y: f32 = acme.Op(%x, _) {k=none} %z = tf.Neg(%y) {_class=["loc:@x"], mine=1} }'))


def test_ref_producers_are_told_from_values() -> None:
    text = """
    graph g(%x: f32) {
      %v: f32[] = tf.VariableV2() {shape=shape[]}
      %a = tf.Assign(%v, %x)
      %i = tf.Identity(%v)
    }"""
    verify(parse_graph(text))
    with pytest.raises(VerifyError, match=r"\[reference\] 'a' \(Assign\)"):
        verify(parse_graph(text.replace("Assign(%v, %x)", "Assign(%i, %x)")))


def test_a_library_call_keeps_up_with_its_function() -> None:
    graph = parse_graph("graph g(%x: f32) { %y = tf.f(%x) } function f(%a: f32) { %b = tf.Neg(%a) return %b }")
    verify(graph)
    graph.functions["f"].node("b").types = {"T": int32}
    with pytest.raises(VerifyError, match=re.escape("Function 'f' returns int32 at place 0, but 'y' (f) declares float32.")):
        verify(graph)
