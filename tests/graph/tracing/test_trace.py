"""Tracing as a whole: arguments and results, what Python may not decide, constants, names."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest

import ampgraph as ag
from ampgraph.graph.tracing.array import SymbolicArray

from .running import check, run_graph

SPEC = ag.TensorSpec([2, 3])


@dataclasses.dataclass(frozen=True)
class Layer:
    w: Any
    b: Any
    units: int = 3


class Pair(NamedTuple):
    one: Any
    two: Any


def test_nested_arguments_and_results() -> None:
    def function(layers: dict[str, Any], *rest: Any, scale: float = 2.0) -> Any:
        first = layers["first"][0]
        assert first.units == 3
        h = rest[0] @ first.w + first.b
        return {"all": Pair(h * scale, [rest[1].one, None]), "layer": Layer(h, h.sum())}

    x, w, b = np.ones((2, 3), np.float32), np.eye(3, dtype=np.float32), np.arange(3, dtype=np.float32)
    graph = ag.trace(function, {"first": [Layer(w, b)]}, x, Pair(b, 1), scale=3.0)
    program = ag.compile(graph)
    assert program.input_names == ("layers/first/0/w", "layers/first/0/b", "rest/0", "rest/1/one")
    assert program.output_names == ("all/one", "all/two/0", "layer/w", "layer/b")
    outputs = program({"layers/first/0/w": w, "layers/first/0/b": b, "rest/0": x, "rest/1/one": b})
    assert outputs["all/one"].tolist() == ((x @ w + b) * 3).tolist()


def test_the_text_of_a_graph() -> None:
    def scaled(x: Any) -> Any:
        with ag.name_scope("layer"), ag.name_scope("one"):
            y = np.tanh(x) * 2
        return y

    assert str(ag.trace(scaled, ag.TensorSpec([None, 3]))).splitlines() == [
        "graph scaled() {",
        "  %x: f32[?,3] = tf.Placeholder<dtype=f32>() {shape=shape[?,3]}",
        '  %"layer/one/Tanh": f32[?,3] = tf.Tanh<T=f32>(%x)',
        '  %"layer/one/Const": f32[] = tf.Const<dtype=f32>() {value=dense<f32[], [2.0]>}',
        '  %"layer/one/Mul": f32[?,3] = tf.Mul<T=f32>(%"layer/one/Tanh", %"layer/one/Const")',
        '  %output: f32[?,3] = tf.Identity<T=f32>(%"layer/one/Mul")',
        "  return %output",
        "}",
    ]


def test_names_that_tensorflow_does_not_allow_are_changed() -> None:
    graph = ag.trace(lambda x: {"a b": x["_c"], "d": x["d"]}, {"_c": SPEC, "d": SPEC})
    assert ag.compile(graph).input_names == ("x/_c", "x/d")
    assert graph.output_names == ["a_b", "d"]
    with (
        pytest.raises(ag.TraceError, match=r"A name scope is of letters, digits and _.-/. Received: 'a b'"),
        ag.name_scope("a b"),
    ):
        pass


def test_arrays_made_on_the_way_are_constants_that_nothing_changes_later() -> None:
    weights = np.ones(3, np.float32)
    graph = ag.trace(lambda x: x * weights + np.arange(3, dtype=np.float32), SPEC)
    weights[:] = 7
    assert ag.compile(graph)({"x": np.zeros((2, 3), np.float32)})["output"][0].tolist() == [0, 1, 2]
    assert sum(node.op_type == "Const" for node in ag.trace(lambda x: (x * 2.0) * 2.0 - 2, SPEC).nodes) == 1


def test_a_function_may_return_no_symbolic_array() -> None:
    x = np.zeros(1, np.float32)
    assert ag.compile(ag.trace(lambda x: (np.arange(2), 1.5), x))({"x": x})["output_0"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        pytest.param(
            lambda x: x if x.sum() > 0 else -x, "numpy.where.condition, x, y., ampgraph.cond or ampgraph.while_loop", id="if"
        ),
        pytest.param(lambda x: x.any() and x, "its truth is not known", id="and"),
        pytest.param(lambda x: 1 < x < 2, "its truth is not known", id="chain"),
        pytest.param(lambda x: float(x.sum()), "it is not a number yet", id="float"),
        pytest.param(lambda x: int(x.sum()), "it is not a number yet", id="int"),
        pytest.param(lambda x: range(x.sum()), "it is not a number yet", id="index"),
        pytest.param(lambda x: x.sum().item(), "it is not a number yet", id="item"),
        pytest.param(lambda x: f"{x.sum():.3f}", "it is not a number yet", id="format"),
        pytest.param(lambda x: x.tolist(), "it is not a number yet", id="list"),
        pytest.param(lambda x: np.asarray(x), "it cannot become a NumPy array", id="asarray"),
        pytest.param(lambda x: np.array([x[0], x[1]]), "numpy.stack instead of numpy.array", id="array"),
        pytest.param(lambda x: 3 in x, "whether it contains something is not known", id="in"),
        pytest.param(lambda x: x.__setitem__(0, 1), "cannot be changed in place", id="assignment"),
        pytest.param(lambda x: np.random.rand(3) * x, "Use ampgraph.random, or ampgraph.nn.dropout", id="random"),
        pytest.param(lambda x: np.array(["a"]) == x, "", id="text"),
        pytest.param(lambda x: ag.trace(np.exp, x), "cannot be traced while another one is", id="trace-inside"),
        pytest.param(lambda x: ag.Variable(x), "A variable starts with a NumPy array", id="variable"),
    ],
)
def test_python_cannot_decide_by_elements(function: Any, message: str) -> None:
    with pytest.raises(ag.TraceError, match=message or "."):
        ag.trace(function, SPEC)


def test_unknown_sizes_cannot_be_counted_or_gone_through() -> None:
    spec = ag.TensorSpec([None, 3])
    with pytest.raises(ag.TraceError, match=r"its first size is not known. Use x.shape\[0\]"):
        ag.trace(len, spec)
    with pytest.raises(ag.TraceError, match="an unknown number of elements to go through"):
        ag.trace(lambda x: [row for row in x], spec)  # noqa: C416
    check(lambda x: [row * len(x) for row in x], np.ones((2, 3), np.float32), open_sizes=False)


def test_a_symbolic_array_does_not_leave_its_trace() -> None:
    kept: list[SymbolicArray] = []
    ag.trace(lambda x: kept.append(x), SPEC)
    with pytest.raises(ag.TraceError, match="was made while another function was traced"):
        ag.trace(lambda x: x + kept[0], SPEC)
    with pytest.raises(ag.TraceError, match="No function is being traced"):
        _ = kept[0] + 1
    with pytest.raises(ag.TraceError, match="An argument is an array or a TensorSpec"):
        ag.trace(np.exp, kept[0])


def test_an_error_leaves_the_graph_whole() -> None:
    def function(x: Any) -> Any:
        with pytest.raises(ag.GraphError):
            _ = x @ x
        return x * 2

    ag.verify(ag.trace(function, SPEC))


def test_random_numbers_of_generators_are_constants() -> None:
    state = np.random.get_state(legacy=False)
    graph = ag.trace(lambda x: x + np.random.default_rng(0).random(3), SPEC)
    assert sum(node.op_type == "Const" for node in graph.nodes) == 1
    assert str(np.random.get_state(legacy=False)) == str(state)


def test_specs_say_what_they_are() -> None:
    assert repr(ag.TensorSpec([None, 2], "float16")) == "TensorSpec([?,2], float16)"
    assert ag.compile(ag.trace(np.exp, ag.TensorSpec([], np.float64, name="z"))).input_names == ("z",)
    assert ag.TensorSpec([2], ag.find_dtype("bfloat16")).dtype is ag.find_dtype("bfloat16")
    ag.verify(ag.trace(lambda x: (x * 2.0).sum(), ag.TensorSpec([2], ag.find_dtype("bfloat16"))))


@pytest.mark.parametrize("shape", [3, "ab", [-2], [2.5], [[3]]])
def test_specs_have_sizes(shape: Any) -> None:
    with pytest.raises(ag.TraceError, match="The shape of a TensorSpec is a list of sizes"):
        ag.TensorSpec(shape)


def test_sizes_of_specs_may_be_numpys_integers() -> None:
    assert ag.TensorSpec(np.array([2, 3])).shape == ag.TensorSpec([2, 3]).shape
    assert type(ag.TensorSpec([np.int64(2)]).shape.size) is int


def test_variables_hold_numbers_or_text() -> None:
    assert ag.Variable(np.array(["a"], object)).value.tolist() == ["a"]
    with pytest.raises(ag.TraceError, match=r"A variable holds numbers, truth values or text. Received: None"):
        ag.Variable(None)


def test_values_that_others_add_to_the_graph_get_shapes() -> None:
    def function(x: SymbolicArray) -> Any:
        first = x.trace.graph.add("Tanh", [x.value]).outputs[0]
        second = x.trace.graph.add("MatMul", [first, first], attributes={"transpose_b": True}).outputs[0]
        return x.trace.wrap(second) * 2

    assert ag.trace(function, ag.TensorSpec([None, 3])).value("Mul").shape.dims == (None, None)
    np.testing.assert_allclose(run_graph(function, (np.ones((1, 3), np.float32),))[0], 6 * np.tanh(1) ** 2, rtol=1e-6)
