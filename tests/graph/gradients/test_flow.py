"""Gradients through functions, branches and loops agree with differences, twice."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from ampgraph import GraphError, auto_mixed_precision
from ampgraph.graph import FunctionRef, Graph, Value, find_dtype
from ampgraph.graph.dtypes import DType
from ampgraph.graph.gradients import gradients
from ampgraph.graph.text import parse_graph
from ampgraph.graph.types import Shape, Tensor
from ampgraph.kernels.program import compile
from tests.graph.gradients.check import agree, constant, program

F64, I32, BOOL = find_dtype("float64"), find_dtype("int32"), find_dtype("bool")
RESOURCE, VARIANT = find_dtype("resource"), find_dtype("variant")


def function(graph: Graph, name: str, dtypes: Sequence[DType], body: Callable[..., Sequence[Value]]) -> FunctionRef:
    """Add a function to a graph's library."""
    made = graph.functions[name] = Graph(name, graph.functions)
    made.outputs = list(body(made, *(made.add_input(f"a{k}", dtype, Shape(None)) for k, dtype in enumerate(dtypes))))
    made.output_names = [f"o{k}" for k in range(len(made.outputs))]
    return FunctionRef(name)


def op(name: str, *values: Value, **attributes: Any) -> Value:
    """Add a node to the graph of its operands."""
    return values[0].producer.graph.add(name, values, attributes=attributes).outputs[0]


@pytest.fixture
def graph() -> Graph:
    """A graph with inputs ``x``, ``w``, ``p`` and ``n``."""
    made = Graph("main")
    for name, dtype, shape in (("x", F64, (2, 2)), ("w", F64, (2, 2)), ("p", BOOL, ()), ("n", I32, ())):
        made.add_input(name, dtype, Shape(shape))
    return made


_RNG = np.random.default_rng(0)
FEEDS = {"x": _RNG.uniform(-1, 1, (2, 2)), "w": _RNG.uniform(-1, 1, (2, 2)), "p": np.array(True), "n": np.int32(3)}


def tout(*dtypes: DType) -> dict[str, DType]:
    """Return the result types of a call."""
    return {f"Tout[{k}]": dtype for k, dtype in enumerate(dtypes)}


def _product_and_exp(f: Graph, a: Value, b: Value) -> list[Value]:
    return [op("Mul", op("Sin", a), b), op("Exp", b)]


@pytest.mark.parametrize("kind", ["PartitionedCall", "StatefulPartitionedCall"])
def test_a_call(graph: Graph, kind: str) -> None:
    x, w, *_ = graph.inputs
    f = function(graph, "f", [F64, F64], _product_and_exp)
    call = graph.add(kind, [x, w], attributes={"f": f}, types=tout(F64, F64))
    agree(graph, call.outputs, [x, w], FEEDS)
    assert {node.op_type for node in graph.nodes if "Call" in node.op_type} == {kind}


def test_a_call_named_after_its_function(graph: Graph) -> None:
    x, w, *_ = graph.inputs
    function(graph, "f", [F64, F64], _product_and_exp)
    call = graph.add("f", [x, w])
    agree(graph, call.outputs, [x, w], FEEDS)


def test_calls_in_calls_and_two_of_one_function(graph: Graph) -> None:
    x, w, *_ = graph.inputs
    inner = function(graph, "inner", [F64, F64], _product_and_exp)

    def outer(f: Graph, a: Value, b: Value) -> list[Value]:
        one = f.add("PartitionedCall", [a, b], attributes={"f": inner}, types=tout(F64, F64)).outputs
        return [f.add("PartitionedCall", one, attributes={"f": inner}, types=tout(F64, F64)).outputs[0]]

    ref = function(graph, "outer", [F64, F64], outer)
    call = graph.add("PartitionedCall", [x, w], attributes={"f": ref}, types=tout(F64))
    before = len(list(graph.functions["outer"].nodes)), len(graph.functions["inner"].outputs)
    agree(graph, call.outputs, [x, w], FEEDS)
    assert (len(list(graph.functions["outer"].nodes)), len(graph.functions["inner"].outputs)) == before


def test_nothing_inside_is_computed_twice(graph: Graph) -> None:
    x, w, *_ = graph.inputs
    f = function(graph, "f", [F64, F64], lambda g, a, b: [op("Tanh", op("MatMul", a, b))])
    call = graph.add("PartitionedCall", [x, w], attributes={"f": f}, types=tout(F64))
    gradients(call.outputs, [x, w])
    back = graph.functions["f_backward"]
    assert sorted(node.op_type for node in back.nodes) == ["MatMul", "MatMul", "TanhGrad"]
    assert len(back.inputs) == 4  # gradient, both operands, the result of Tanh, which the call returns anyway
    assert len(call.outputs) == 1


@pytest.mark.parametrize("kind", ["If", "StatelessIf"])
@pytest.mark.parametrize("taken", [True, False])
def test_a_branch(graph: Graph, kind: str, taken: bool) -> None:
    x, w, p, _ = graph.inputs
    branches = {
        "then_branch": function(graph, "f", [F64, F64], lambda g, a, b: [op("Mul", op("Tanh", a), op("Sin", b))]),
        "else_branch": function(graph, "g", [F64, F64], lambda g, a, b: [op("Cos", op("Exp", a))]),
    }
    node = graph.add(kind, [p, x, w], attributes=branches, types=tout(F64))
    agree(graph, node.outputs, [x, w], {**FEEDS, "p": np.array(taken)})


@pytest.mark.parametrize("kind", ["Case", "StatelessCase"])
@pytest.mark.parametrize("index", [0, 1, 2, 7])
def test_one_of_several_branches(graph: Graph, kind: str, index: int) -> None:
    x, w, _, n = graph.inputs
    branches = [
        function(graph, f"f{k}", [F64, F64], body)
        for k, body in enumerate(
            (
                lambda g, a, b: [op("Mul", a, op("Sin", b))],
                lambda g, a, b: [op("Tanh", a)],
                lambda g, a, b: [op("Exp", op("Mul", b, b))],
            )
        )
    ]
    node = graph.add(kind, [n, x, w], attributes={"branches": branches}, types=tout(F64))
    agree(graph, node.outputs, [x, w], {**FEEDS, "n": np.int32(index)})


def _less(f: Graph, i: Value, n: Value, *rest: Value) -> list[Value]:
    return [op("Less", i, n)]


def _step(f: Graph, i: Value, n: Value, x: Value, w: Value) -> list[Value]:
    return [op("AddV2", i, constant(f, 1, "int32")), n, op("Tanh", op("MatMul", x, w)), op("Identity", w)]


def _loop(graph: Graph, kind: str, values: Sequence[Value], body: Callable[..., Sequence[Value]], name: str = "body") -> Any:
    dtypes = [value.dtype or F64 for value in values]
    refs = {"cond": function(graph, f"{name}_cond", dtypes, _less), "body": function(graph, name, dtypes, body)}
    return graph.add(kind, values, attributes=refs)


@pytest.mark.parametrize("kind", ["While", "StatelessWhile"])
@pytest.mark.parametrize("turns", [0, 1, 3])
def test_a_loop(graph: Graph, kind: str, turns: int) -> None:
    x, w, _, n = graph.inputs
    loop = _loop(graph, kind, [constant(graph, 0, "int32"), n, x, w], _step)
    agree(graph, loop.outputs[2:3], [x, w], {**FEEDS, "n": np.int32(turns)})


def test_what_stays_the_same_in_a_loop_is_not_collected(graph: Graph) -> None:
    x, w, _, n = graph.inputs
    loop = _loop(graph, "While", [constant(graph, 0, "int32"), n, x, w], _step)
    gradients(loop.outputs[2], [x])
    # the count; what MatMul was given is needed for w only; the result of Tanh
    assert [str(value.dtype) for value in loop.outputs[4:]] == ["int32", "variant"]


def test_a_loop_in_a_loop(graph: Graph) -> None:
    x, w, _, n = graph.inputs

    def outer(f: Graph, i: Value, n: Value, x: Value, w: Value) -> list[Value]:
        inner = _loop(f, "While", [constant(f, 0, "int32"), i, op("Sin", x), w], _step, "inner")
        return [op("AddV2", i, constant(f, 1, "int32")), n, inner.outputs[2], w]

    loop = _loop(graph, "While", [constant(graph, 0, "int32"), n, x, w], outer)
    agree(graph, loop.outputs[2:3], [x, w], FEEDS)


def test_a_branch_in_a_loop(graph: Graph) -> None:
    x, w, _, n = graph.inputs

    def body(f: Graph, i: Value, n: Value, x: Value, w: Value) -> list[Value]:
        branches = {
            "then_branch": function(f, "f", [F64, F64], lambda g, a, b: [op("MatMul", a, b)]),
            "else_branch": function(f, "g", [F64, F64], lambda g, a, b: [op("Sin", a)]),
        }
        even = op("Equal", op("FloorMod", i, constant(f, 2, "int32")), constant(f, 0, "int32"))
        node = f.add("If", [even, x, w], attributes=branches, types=tout(F64))
        return [op("AddV2", i, constant(f, 1, "int32")), n, node.outputs[0], w]

    loop = _loop(graph, "While", [constant(graph, 0, "int32"), n, x, w], body)
    agree(graph, loop.outputs[2:3], [x, w], FEEDS)


def test_lists_carried_by_a_loop(graph: Graph) -> None:
    """As a recurrent layer reads its steps from a list and collects its results in one."""
    x, w, _, n = graph.inputs
    rows = graph.add("TensorListFromTensor", [x, constant(graph, [2], "int32")]).outputs[0]
    empty = graph.add(
        "TensorListReserve", [constant(graph, [1, 2], "int32"), constant(graph, 2, "int32")], types={"element_dtype": F64}
    ).outputs[0]

    def body(f: Graph, i: Value, n: Value, state: Value, w: Value, rows: Value, out: Value) -> list[Value]:
        row = f.add("TensorListGetItem", [rows, i, constant(f, [2], "int32")], types={"element_dtype": F64}).outputs[0]
        state = op("Tanh", op("AddV2", op("MatMul", state, w), row))
        out = f.add("TensorListSetItem", [out, i, state]).outputs[0]
        return [op("AddV2", i, constant(f, 1, "int32")), n, state, w, rows, out]

    start = op("Slice", x, constant(graph, [0, 0], "int32"), constant(graph, [1, 2], "int32"))
    loop = _loop(graph, "While", [constant(graph, 0, "int32"), n, start, w, rows, empty], body)
    stacked = graph.add("TensorListStack", [loop.outputs[5], constant(graph, [1, 2], "int32")], types={"element_dtype": F64})
    agree(graph, [stacked.outputs[0], loop.outputs[2]], [x, w], {**FEEDS, "n": np.int32(2)})


def _variable(graph: Graph, shape: tuple[int, ...]) -> Value:
    attributes = {"shape": Shape(shape), "shared_name": b"v"}
    return graph.add("VarHandleOp", attributes=attributes, types={"dtype": F64}).outputs[0]


def test_a_variable_read_in_a_loop(graph: Graph) -> None:
    """Its gradient is that of the constant that it holds."""
    x, w, _, n = graph.inputs
    handle = _variable(graph, (2, 2))
    assigned = graph.add("AssignVariableOp", [handle, w])

    def body(f: Graph, i: Value, n: Value, x: Value, v: Value) -> list[Value]:
        read = f.add("ReadVariableOp", [v], types={"dtype": F64}).outputs[0]
        return [op("AddV2", i, constant(f, 1, "int32")), n, op("Tanh", op("MatMul", x, read)), v]

    loop = _loop(graph, "While", [constant(graph, 0, "int32"), n, x, handle], body)
    graph.set_control(loop, [assigned])
    dx, dv = gradients(loop.outputs[2], [x, handle])
    assert dx is not None
    assert dv is not None
    assert dv.dtype is F64
    plain = _loop(graph, "While", [constant(graph, 0, "int32"), n, x, w], _step, "plain")
    wanted = [g for g in gradients(plain.outputs[2], [x, w]) if g is not None]
    got = program(graph, [dx, dv, *wanted])(FEEDS)
    np.testing.assert_allclose(got[0], got[2], rtol=1e-12)
    np.testing.assert_allclose(got[1], got[3], rtol=1e-12)


@pytest.mark.parametrize("taken", [True, False])
def test_a_variable_read_in_one_branch(graph: Graph, taken: bool) -> None:
    x, w, p, _ = graph.inputs
    handle = _variable(graph, (2, 2))
    assigned = graph.add("AssignVariableOp", [handle, w])
    read = lambda g, a, v: [op("MatMul", a, g.add("ReadVariableOp", [v], types={"dtype": F64}).outputs[0])]
    branches = {
        "then_branch": function(graph, "f", [F64, RESOURCE], read),
        "else_branch": function(graph, "g", [F64, RESOURCE], lambda g, a, v: [op("Sin", a)]),
    }
    node = graph.add("If", [p, x, handle], attributes=branches, types=tout(F64), controls=[assigned])
    [dv] = gradients(node.outputs, handle)
    assert dv is not None
    [got] = program(graph, [dv])({**FEEDS, "p": np.array(taken)})
    wanted = np.broadcast_to(FEEDS["x"].sum(0)[:, None], (2, 2)) if taken else np.zeros((2, 2))
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_reads_of_a_variable_add_up() -> None:
    graph = Graph()
    handle = _variable(graph, (3,))
    start = graph.add("AssignVariableOp", [handle, constant(graph, [1.0, 2.0, 3.0])])
    reads = [graph.add("ReadVariableOp", [handle], types={"dtype": F64}, controls=[start]).outputs[0] for _ in range(2)]
    places: dict[str, Any] = {"controls": [start], "types": {"dtype": F64, "Tindices": I32}}
    gathered = graph.add("ResourceGather", [handle, constant(graph, [2, 2], "int32")], **places).outputs[0]
    picked = graph.add("ResourceGatherNd", [handle, constant(graph, [[0], [2]], "int32")], **places).outputs[0]
    [by_handle] = gradients([op("Square", reads[0]), reads[1], gathered, picked], handle)
    [by_read] = gradients(op("Square", reads[0]), reads[0])
    assert by_handle is not None
    assert by_read is not None
    got = program(graph, [by_handle, by_read])({})
    assert got[0].tolist() == [2 + 1 + 1, 4 + 1, 6 + 1 + 2 + 1]
    assert got[1].tolist() == [2, 4, 6]


def _cycle(values: Sequence[Value], same: Sequence[Value], body: Callable[..., Sequence[Value]], name: str) -> list[Value]:
    """Make a loop of ops: as long as the first value is less than the first that stays the same; return what leaves it."""
    graph = values[0].producer.graph
    frame = {"frame_name": name.encode()}
    enters = [op("Enter", value, **frame) for value in values]
    constants = [op("Enter", value, is_constant=True, **frame) for value in same]
    merges = [op("Merge", enter, enter, N=2) for enter in enters]
    go_on = op("LoopCond", op("Less", merges[0], constants[0]))
    switches = [graph.add("Switch", [merge, go_on]).outputs for merge in merges]
    results = body(graph, *(op("Identity", switch[1]) for switch in switches), *constants)
    for merge, result in zip(merges, results, strict=True):
        graph.set_input(merge.producer, 1, op("NextIteration", result))
    return [op("Exit", switch[0]) for switch in switches]


def _turn(f: Graph, i: Value, x: Value, n: Value, w: Value) -> list[Value]:
    one = f.add("Const", attributes={"value": Tensor.of(1, I32)}, controls=[i.producer]).outputs[0]
    return [op("AddV2", i, one), op("Tanh", op("MatMul", x, w))]


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_a_loop_that_is_a_cycle_of_ops(graph: Graph, turns: int) -> None:
    x, w, _, n = graph.inputs
    left = _cycle([constant(graph, 0, "int32"), x], [n, w], _turn, "turn")
    y = op("Sin", left[1])
    [before] = program(graph, [y])({**FEEDS, "n": np.int32(turns)})
    agree(graph, [y], [x, w], {**FEEDS, "n": np.int32(turns)})
    assert not [node for node in graph.nodes if node.op_type in ("Enter", "Exit", "Merge")]
    assert np.array_equal(program(graph, [y])({**FEEDS, "n": np.int32(turns)})[0], before)


def test_a_cycle_in_a_cycle(graph: Graph) -> None:
    x, w, _, n = graph.inputs

    def outer(f: Graph, i: Value, x: Value, n: Value, w: Value, zero: Value) -> list[Value]:
        inner = _cycle([zero, op("Sin", x)], [i, w], _turn, "inner")
        one = f.add("Const", attributes={"value": Tensor.of(1, I32)}, controls=[i.producer]).outputs[0]
        return [op("AddV2", i, one), inner[1]]

    zero = constant(graph, 0, "int32")
    agree(graph, _cycle([zero, x], [n, w, zero], outer, "outer")[1:], [x, w], FEEDS)


@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_of_ops_in_a_cycle(graph: Graph, taken: bool) -> None:
    x, w, p, n = graph.inputs

    def turn(f: Graph, i: Value, x: Value, n: Value, w: Value, p: Value) -> list[Value]:
        data, weight = (f.add("Switch", [value, p]).outputs for value in (x, w))
        one = f.add("Const", attributes={"value": Tensor.of(1, I32)}, controls=[i.producer]).outputs[0]
        return [op("AddV2", i, one), op("Merge", op("Sin", data[0]), op("MatMul", data[1], weight[1]), N=2)]

    left = _cycle([constant(graph, 0, "int32"), x], [n, w, p], turn, "turn")
    agree(graph, left[1:], [x, w], {**FEEDS, "p": np.array(taken)})


def test_a_cycle_in_a_function(graph: Graph) -> None:
    x, w, _, n = graph.inputs

    def body(f: Graph, n: Value, x: Value, w: Value) -> list[Value]:
        return _cycle([constant(f, 0, "int32"), x], [n, w], _turn, "turn")[1:]

    ref = function(graph, "f", [I32, F64, F64], body)
    call = graph.add("PartitionedCall", [n, x, w], attributes={"f": ref}, types=tout(F64))
    agree(graph, call.outputs, [x, w], FEEDS)


def test_by_a_value_inside_of_a_cycle_is_an_error(graph: Graph) -> None:
    x, w, _, n = graph.inputs
    left = _cycle([constant(graph, 0, "int32"), x], [n, w], _turn, "turn")
    inside = graph.node("Tanh").outputs[0]
    with pytest.raises(GraphError, match=r"A value inside of a loop that is a cycle of ops cannot .* Received: %Tanh"):
        gradients(left[1], inside)


@pytest.mark.parametrize("taken", [True, False])
def test_switch_and_merge(graph: Graph, taken: bool) -> None:
    x, w, p, _ = graph.inputs
    data, weight = graph.add("Switch", [x, p]).outputs, graph.add("Switch", [w, p]).outputs
    merged = graph.add("Merge", [op("Sin", data[0]), op("Mul", data[1], op("Exp", weight[1]))], attributes={"N": 2}).outputs[0]
    agree(graph, [merged], [x, w], {**FEEDS, "p": np.array(taken)})


@pytest.mark.parametrize("taken", [True, False])
def test_a_variable_behind_a_switch(graph: Graph, taken: bool) -> None:
    x, w, p, _ = graph.inputs
    handle = _variable(graph, (2, 2))
    assigned = graph.add("AssignVariableOp", [handle, w])
    data, v = graph.add("Switch", [x, p]).outputs, graph.add("Switch", [handle, p], controls=[assigned]).outputs
    read = graph.add("ReadVariableOp", [v[1]], types={"dtype": F64}).outputs[0]
    merged = graph.add("Merge", [op("Sin", data[0]), op("MatMul", data[1], read)], attributes={"N": 2}).outputs[0]
    [dv] = gradients(merged, handle)
    assert dv is not None
    [got] = program(graph, [dv])({**FEEDS, "p": np.array(taken)})
    wanted = np.broadcast_to(FEEDS["x"].sum(0)[:, None], (2, 2)) if taken else np.zeros((2, 2))
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_a_function_may_bring_its_gradient(graph: Graph) -> None:
    x, w, *_ = graph.inputs
    f = function(graph, "f", [F64, F64], _product_and_exp)
    own = function(graph, "own", [F64] * 4, lambda g, a, b, da, db: [op("Mul", da, a), op("Neg", db)])
    attributes = {"f": f, "_gradient_function": own}
    call = graph.add("PartitionedCall", [x, w], attributes=attributes, types=tout(F64, F64))
    found = [g for g in gradients(call.outputs[0], [x, w]) if g is not None]
    got = program(graph, found)(FEEDS)
    assert np.array_equal(got[0], FEEDS["x"])
    assert not got[1].any()


def test_a_gradient_of_its_own_must_fit(graph: Graph) -> None:
    x, w, *_ = graph.inputs
    f = function(graph, "f", [F64, F64], _product_and_exp)
    attributes = {"f": f, "_gradient_function": f}
    call = graph.add("PartitionedCall", [x, w], attributes=attributes, types=tout(F64, F64))
    with pytest.raises(GraphError, match=r"4 values, and gives one for each operand, 2\. Received: function 'f' from 2 to 2"):
        gradients(call.outputs, [x, w])


def test_functions_without_a_path_leave_nothing_behind(graph: Graph) -> None:
    x, w, *_ = graph.inputs
    f = function(graph, "f", [F64, F64], lambda g, a, b: [op("Floor", a)])
    call = graph.add("PartitionedCall", [x, w], attributes={"f": f}, types=tout(F64))
    assert gradients(call.outputs, [x, w]) == [None, None]
    assert list(graph.functions) == ["f"]


def test_a_missing_function_is_an_error(graph: Graph) -> None:
    x, *_ = graph.inputs
    call = graph.add("PartitionedCall", [x], attributes={"f": FunctionRef("nope")}, types=tout(F64))
    with pytest.raises(GraphError, match="differentiated through its function, and there is none"):
        gradients(call.outputs, x)


def test_what_is_made_can_be_printed_and_rewritten() -> None:
    graph = Graph("main")
    f32 = find_dtype("float32")
    x, w = (graph.add_input(name, f32, Shape((8, 8))) for name in "xw")

    def body(f: Graph, i: Value, n: Value, x: Value, w: Value) -> list[Value]:
        return [op("AddV2", i, constant(f, 1, "int32")), n, op("Relu", op("MatMul", x, w)), w]

    zero, three = constant(graph, 0, "int32"), constant(graph, 3, "int32")
    dtypes = [I32, I32, f32, f32]
    refs = {"cond": function(graph, "c", dtypes, _less), "body": function(graph, "b", dtypes, body)}
    loop = graph.add("While", [zero, three, x, w], attributes=refs)
    loss = op("L2Loss", loop.outputs[2])
    found = [g for g in gradients(loss, [x, w]) if g is not None]
    graph.outputs, graph.output_names = [loss, *found], ["loss", "dx", "dw"]
    assert str(parse_graph(str(graph))) == str(graph)
    feeds = {name: (array * 0.5).astype(np.float32) for name, array in zip("xw", _RNG.uniform(-1, 1, (2, 8, 8)), strict=True)}
    wanted = compile(graph)(feeds)
    result = auto_mixed_precision(graph, dtype="float16", target="cpu")
    used = [result.graph.functions[name] for name in ("b_forward", "b_backward")]
    low = [n for g in used for n in g.nodes if n.op_type == "MatMul" and n.types["T"].name == "float16"]
    assert len(low) == 3
    got = compile(result.graph)(feeds)
    for name, array in wanted.items():
        np.testing.assert_allclose(got[name], array, atol=1e-2 * np.abs(array).max())
