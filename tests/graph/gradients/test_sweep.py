"""What gradients() accepts, adds and leaves alone."""

import dataclasses
import re
import tomllib
from collections import Counter
from typing import Any

import numpy as np
import pytest

from ampgraph import GraphError, verify
from ampgraph.graph import Graph, Node, Value, find_dtype
from ampgraph.graph.gradients import gradients
from ampgraph.graph.gradients.rules import CONSTANT, rules
from ampgraph.graph.schemas.tf import find, op_types
from ampgraph.graph.types import Shape
from tests.contract.modules import ROOT
from tests.graph.gradients.cases import CASES
from tests.graph.gradients.check import Case, check, constant, program

F32, F64, I32 = find_dtype("float32"), find_dtype("float64"), find_dtype("int32")


@pytest.fixture
def graph() -> Graph:
    """A graph with two inputs of shape (2, 3)."""
    made = Graph("main")
    for name in "xw":
        made.add_input(name, F64, Shape((2, 3)))
    return made


def op(name: str, *values: Value, **attributes: Any) -> Value:
    """Add a node to the graph of its operands."""
    return values[0].producer.graph.add(name, values, attributes=attributes).outputs[0]


def new_nodes(graph: Graph, before: set[Node]) -> Counter[str]:
    """Return the ops of nodes that were not there before, but for constants."""
    return Counter(node.op_type for node in graph.nodes if node not in before and node.op_type != "Const")


#: Ops for which TensorFlow registers a gradient.
REGISTERED = set((ROOT / "tests/data/gradients/registered.txt").read_text(encoding="utf-8").split())

# ---- the table ------------------------------------------------------------------------------------------------------

#: Ops that are tried in graphs of their own: functions, loops, branches, variables, lists; and those that only raise.
ELSEWHERE = {
    *[
        "Case",
        "If",
        "StatelessCase",
        "StatelessIf",
        "PartitionedCall",
        "StatefulPartitionedCall",
        "StatelessWhile",
        "While",
        "Merge",
        "Switch",
    ],
    *["RefMerge", "RefSwitch", "RefIdentity", "ReadVariableOp", "ResourceGather", "ResourceGatherNd"],
    *[
        "Enter",
        "Exit",
        "NextIteration",
        "RefEnter",
        "RefExit",
        "RefNextIteration",
        "PreventGradient",
    ],
    *(name for name in rules() if name.startswith("TensorList")),
}


def test_every_rule_is_tried() -> None:
    assert rules().keys() - {case.op for case in CASES} == ELSEWHERE
    assert {case.op for case in CASES} <= rules().keys()


def test_every_rule_is_of_an_op_that_exists() -> None:
    assert rules().keys() <= set(op_types())
    assert set(op_types()) >= CONSTANT
    assert not CONSTANT & rules().keys()


def test_every_listed_op_with_a_gradient_has_a_rule() -> None:
    """What TensorFlow registers a gradient for, and is on a list, has one here, unless its results are integers."""
    listed = set()
    for path in (ROOT / "lists").glob("tf_*.toml"):
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        listed |= {name for rows in table.values() if isinstance(rows, list) for row in rows for name in row["ops"]}
    wanted = listed & REGISTERED
    assert len(wanted) > 150
    lacking = wanted - rules().keys() - CONSTANT
    for name in lacking:
        schema = find(name)
        assert schema is not None
        outputs = [formal.dtype or schema.type_vars[formal.var or ""].default for formal in schema.outputs]
        assert all(getattr(dtype, "kind", "") == "int" for dtype in outputs), name
    assert lacking == {"ArgMax", "ArgMin"}


#: Cases where differences are no judge of the gradient's gradient: a product of zeros, and a constant.
UNJUDGED = {"Prod.zeros", "Sign"}


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES if not case.second])
def test_what_has_no_second_gradient_has_none_in_tensorflow(case: Case) -> None:
    """It is an error that names the op, and for that op TensorFlow registers no gradient."""
    if case.name in UNJUDGED:
        check(case, known=True)
        return
    with pytest.raises(GraphError, match=r"has no gradient") as caught:
        check(dataclasses.replace(case, second=True), known=True)
    found = re.match(r"Op (\w+) has no|Node '\S+' \((PreventGradient)\)", str(caught.value))
    assert found is not None
    assert found[1] not in REGISTERED


def test_everything_is_tried_in_float64_that_has_it() -> None:
    """All but ops with a float32 operand or result by definition, and the one whose gradient is an op without float64."""
    found = set()
    for name in {case.op for case in CASES if case.dtype != "float64"}:
        schema = find(name)
        assert schema is not None
        fixed = any(formal.dtype is F32 for formal in (*schema.inputs, *schema.outputs))
        if not fixed and any(var.allows(F64) for var in schema.type_vars.values()):
            found.add(name)
    assert found == {"MaxPool3DGradGrad"}


# ---- paths ----------------------------------------------------------------------------------------------------------


def test_no_path_is_none(graph: Graph) -> None:
    x, w = graph.inputs
    y = op("Sin", x)
    before = set(graph.nodes)
    assert gradients(y, w) == [None]
    assert not new_nodes(graph, before)


@pytest.mark.parametrize("name", ["StopGradient", "Floor", "Round", "OnesLike"])
def test_constant_ops_end_a_path(graph: Graph, name: str) -> None:
    x, w = graph.inputs
    dx, dw = gradients(op("Mul", op(name, x), w), [x, w])
    assert dx is None
    assert dw is not None


def test_integers_end_a_path(graph: Graph) -> None:
    x, _ = graph.inputs
    whole = graph.add("Cast", [x], types={"DstT": I32}).outputs[0]
    back = graph.add("Cast", [whole], types={"DstT": F64}).outputs[0]
    assert gradients(op("Mul", back, back), [x, whole]) == [None, None]


def test_a_value_by_itself(graph: Graph) -> None:
    x, _ = graph.inputs
    [dx] = gradients(x, x)
    assert dx is not None
    [got] = program(graph, [dx])({"x": np.zeros((2, 3))})
    assert np.array_equal(got, np.ones((2, 3)))


def test_xs_on_the_way_get_their_part_and_hand_it_on(graph: Graph) -> None:
    x, _ = graph.inputs
    h = op("Square", x)
    dh, dx = gradients(op("Square", h), [h, x])
    assert dh is not None
    assert dx is not None
    at = np.arange(6.0).reshape(2, 3)
    got = program(graph, [dh, dx])({"x": at})
    assert np.array_equal(got[0], 2 * at**2)
    assert np.array_equal(got[1], 4 * at**3)


def test_stop_gradients_are_constants(graph: Graph) -> None:
    x, _ = graph.inputs
    h = op("Square", x)
    y = op("Mul", h, x)
    partial, by_h = gradients(y, [x, h], stop_gradients=[h])
    assert partial is not None
    assert by_h is not None
    at = np.arange(6.0).reshape(2, 3)
    got = program(graph, [partial, by_h])({"x": at})
    assert np.array_equal(got[0], at**2)
    assert np.array_equal(got[1], at)


def test_several_ys_add_up_and_grad_ys_weigh_them(graph: Graph) -> None:
    x, w = graph.inputs
    y = op("Square", x)
    [dx] = gradients([y, y, x], x, [w, None, None])
    assert dx is not None
    at, weight = np.arange(6.0).reshape(2, 3), np.full((2, 3), 3.0)
    [got] = program(graph, [dx])({"x": at, "w": weight})
    assert np.array_equal(got, 2 * at * 3 + 2 * at + 1)


def test_uses_are_added_up_by_one_node(graph: Graph) -> None:
    x, _ = graph.inputs
    y = op("AddN", op("Sin", x), op("Cos", x), op("Tanh", x), N=3)
    before = set(graph.nodes)
    gradients(y, x)
    counts = new_nodes(graph, before)
    assert counts["AddN"] == 1
    assert not counts["AddV2"]


def test_only_what_is_asked_for_is_added(graph: Graph) -> None:
    """Neither the gradient by the other operand nor what only that one needs."""
    x, w = graph.inputs
    y = op("MatMul", x, op("Exp", w), transpose_b=True)
    before = set(graph.nodes)
    gradients(y, x)
    assert new_nodes(graph, before) == {"Fill": 1, "MatMul": 1}


def test_broadcasting_is_undone_without_asking_for_shapes(graph: Graph) -> None:
    x, _ = graph.inputs
    bias = graph.add_input("b", F64, Shape((3,)))
    y = op("AddV2", x, bias)
    before = set(graph.nodes)
    gradients(y, bias)
    assert new_nodes(graph, before) == {"Fill": 1, "Sum": 1}


def test_names_say_what_they_belong_to(graph: Graph) -> None:
    x, _ = graph.inputs
    [dx] = gradients(graph.add("Relu", [x], name="layer/act", device="/gpu:0").outputs[0], x)
    assert dx is not None
    assert dx.producer.name == "gradients/layer/act_grad/ReluGrad"
    assert dx.producer.device == "/gpu:0"
    assert dx.shape == Shape((2, 3))


def test_a_second_time_gives_other_nodes(graph: Graph) -> None:
    x, _ = graph.inputs
    y = op("Relu", x)
    [one], [two] = gradients(y, x), gradients(y, x)
    assert one is not None
    assert two is not None
    assert one.producer.name != two.producer.name
    graph.outputs, graph.output_names = [one, two], ["one", "two"]
    verify(graph)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_gradients_have_the_dtype_of_what_they_are_by(dtype: str) -> None:
    graph = Graph()
    kind = find_dtype(dtype)
    x, w = graph.add_input("x", kind, Shape((2, 2))), graph.add_input("w", F32, Shape((2, 2)))
    mixed = op("MatMul", x, graph.add("Cast", [w], types={"DstT": kind}).outputs[0])
    found = gradients(op("Mean", op("Erf", mixed), constant(graph, [0, 1], "int32")), [x, w])
    assert [g.dtype for g in found if g is not None] == [kind, F32]
    graph.outputs, graph.output_names = [g for g in found if g is not None], ["dx", "dw"]
    verify(graph)


def test_chains_may_be_deep() -> None:
    """Deeper than Python's stack; each op adds one node."""
    depth, graph = 30_000, Graph()
    x = y = graph.add_input("x", F64, Shape((2,)))
    for _ in range(depth):
        y = graph.add("Tanh", [y]).outputs[0]
    [dx] = gradients(y, x)
    assert dx is not None
    assert len(graph) == 2 * depth + 3


def test_what_lies_beside_is_not_looked_at(graph: Graph) -> None:
    """An op without a gradient does no harm where no path goes through it."""
    x, w = graph.inputs
    other = op("Qr", w)
    assert other.producer.op_type == "Qr"
    dx = gradients(op("Mul", x, op("Cast", other)), x)
    assert dx[0] is not None


def test_print_and_defaults_hand_on(graph: Graph) -> None:
    x, _ = graph.inputs
    shown = graph.add("Print", [x, x], attributes={"message": b"x"}, types={"U[0]": F64}).outputs[0]
    given = graph.add("PlaceholderWithDefault", [shown], attributes={"shape": Shape((2, 3))}).outputs[0]
    before = set(graph.nodes)
    gradients(given, x)
    assert new_nodes(graph, before) == {"Fill": 1}


# ---- errors ---------------------------------------------------------------------------------------------------------


def test_an_op_without_a_gradient_is_named(graph: Graph) -> None:
    x, _ = graph.inputs
    y = graph.add("Qr", [x], name="q").outputs[0]
    with pytest.raises(GraphError, match=r"Op Qr has no gradient, and node 'q' \(Qr\) of graph 'main' lies on the way"):
        gradients(y, x)
    assert gradients(op("Mul", y, x), x, stop_gradients=y)[0] is not None


def test_prevented_gradients_are_an_error(graph: Graph) -> None:
    x, _ = graph.inputs
    with pytest.raises(GraphError, match=r"says that it has no gradient: because"):
        gradients(op("PreventGradient", x, message=b"because"), x)


def test_the_inside_of_a_cycle_is_an_error(graph: Graph) -> None:
    x, _ = graph.inputs
    inside = op("Enter", x, frame_name=b"f")
    with pytest.raises(GraphError, match=r"Node 'Enter' \(Enter\) lies inside of a loop that is a cycle of ops"):
        gradients(op("Sin", inside), x)


def test_a_cycle_without_condition_is_an_error(graph: Graph) -> None:
    x, _ = graph.inputs
    with pytest.raises(GraphError, match=r"A loop has one LoopCond. Received: 0 in loop 'f' of graph 'main'"):
        gradients(op("Exit", op("Enter", x, frame_name=b"f")), x)


def test_complex_numbers_are_an_error(graph: Graph) -> None:
    x, w = graph.inputs
    y = op("ComplexAbs", graph.add("Complex", [x, w], types={"Tout": find_dtype("complex128")}).outputs[0])
    with pytest.raises(GraphError, match=r"Gradients of complex numbers are not supported. Received: %Complex"):
        gradients(y, x)


def test_integers_cannot_be_differentiated(graph: Graph) -> None:
    x, _ = graph.inputs
    count = op("Size", x)
    with pytest.raises(GraphError, match=r"Only floating numbers have a gradient. Received: %Size \(int32\)"):
        gradients(count, x)


def test_values_of_two_graphs_are_an_error(graph: Graph) -> None:
    other = Graph("other").add_input("x", F64)
    with pytest.raises(GraphError, match=r"Received: %x of 'other', not 'main'"):
        gradients(graph.inputs[0], other)


def test_what_is_no_value_is_an_error(graph: Graph) -> None:
    x, _ = graph.inputs
    with pytest.raises(GraphError, match=r"xs are values of a graph. Received: str"):
        gradients(x, ["x"])  # type: ignore[list-item]
    with pytest.raises(GraphError, match=r"Received: no ys"):
        gradients([], x)


def test_grad_ys_must_fit(graph: Graph) -> None:
    x, w = graph.inputs
    low = graph.add_input("low", F32)
    with pytest.raises(GraphError, match=r"one entry for each of ys, 1. Received: 2"):
        gradients(x, x, [w, w])
    with pytest.raises(GraphError, match=r"The gradient of %x is float64, as it is. Received: %low \(float32\)"):
        gradients(x, x, low)
    with pytest.raises(GraphError, match=r"grad_ys are values of graph 'main'. Received: 1.0"):
        gradients(x, x, [1.0])  # type: ignore[list-item]


def test_onnx_graphs_are_an_error() -> None:
    graph = Graph("g", opsets={"": 21})
    x = graph.add_input("x", F32)
    with pytest.raises(GraphError, match=r"Gradients are those of TensorFlow's ops. Received: graph 'g' of ONNX ops"):
        gradients(graph.add("Relu", [x], domain="").outputs[0], x)


@pytest.mark.parametrize(("op_type", "attributes"), [("CudnnRNN", {"is_training": False})])
def test_ops_that_kept_nothing_are_an_error(op_type: str, attributes: dict[str, Any]) -> None:
    graph = Graph()
    values = [graph.add_input(f"x{k}", F32) for k in range(4)]
    node = graph.add(op_type, values, attributes=attributes)
    with pytest.raises(GraphError, match="keeps nothing for its gradient, because its attribute is_training is false"):
        gradients(node.outputs[0], values[0])


def test_gru_gates_are_an_error() -> None:
    graph = Graph()
    values = [graph.add_input(f"x{k}", F32) for k in range(6)]
    node = graph.add("GRUBlockCell", values)
    with pytest.raises(GraphError, match="only the last result, its state, has a gradient"):
        gradients(node.outputs[0], values[0])


def test_a_gather_along_an_unknown_axis_is_an_error(graph: Graph) -> None:
    x, _ = graph.inputs
    index, axis = graph.add_input("i", I32), graph.add_input("axis", I32)
    with pytest.raises(GraphError, match="asks for a known axis"):
        gradients(op("GatherV2", x, index, axis), x)
