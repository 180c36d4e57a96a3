"""Variables, branches and loops."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph.graph.trace import trace_function
from ampgraph.kernels.handle import Handle

from .running import check

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def run_stateful(function: Callable[..., Any], *arrays: Any, **variables: ag.Variable) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run a function once as a graph; return its outputs and what the variables hold, beside the same in NumPy."""
    traced = trace_function(function, arrays, {})
    ag.verify(traced.graph)
    assert set(traced.variables) == set(variables)
    program = ag.compile(traced.graph)
    program.state.update({Handle(name): np.asarray(variable) for name, variable in variables.items()})
    outputs = program(dict(zip(traced.inputs, arrays, strict=True)))
    return outputs, {name: program.state[Handle(name)] for name in variables}


def test_reads_and_assignments_run_in_the_order_of_the_function() -> None:
    v = ag.Variable(np.ones(3, np.float32), name="v")

    def function(x: Any) -> Any:
        before = v * x
        v.assign_add(x[0])
        between = v.value
        v.assign(v * 2)
        v.assign_sub(1)
        return {"before": before, "between": between, "after": v.value}

    outputs, state = run_stateful(function, X, v=v)
    expected = function(X)
    for name, value in expected.items():
        np.testing.assert_array_equal(outputs[name], value)
    np.testing.assert_array_equal(state["v"], v.value)


def test_a_function_that_only_assigns_has_an_output_to_wait_for() -> None:
    v = ag.Variable(0.0, name="v")
    outputs, state = run_stateful(lambda x: v.assign(x.sum()), X, v=v)
    assert list(outputs) == ["done"]
    assert state["v"] == 15


def test_a_variable_is_a_numpy_array_outside() -> None:
    v = ag.Variable([1.0, 2.0], name="v")
    assert v.dtype == np.float32
    assert (v + 1).tolist() == (1 + v).tolist() == [2, 3]
    assert np.concatenate([v, v]).tolist() == [1, 2, 1, 2]
    assert (v.shape, v.ndim, v.size, len(v), list(v), v[1]) == ((2,), 1, 2, 2, [1, 2], 2)
    assert float(v[:1].sum()) == 1
    v += 1
    assert isinstance(v, ag.Variable)
    assert v.value.tolist() == [2, 3]
    with pytest.raises(ValueError, match="read-only"):
        v.value[0] = 5
    with pytest.raises(ag.TraceError, match=r"Variable 'v' keeps its shape, \[2\]. Received: \[3\]"):
        v.assign(np.zeros(3))
    with pytest.raises(ag.TraceError, match=r"Variable 'n' holds int32; convert with .astype.. first. Received: float32"):
        ag.Variable(1, "n", np.int32).assign(np.float32(1))
    assert repr(v) == "<Variable 'v' float32[2]>"


def test_two_variables_may_have_one_name() -> None:
    one, two = ag.Variable(1.0, name="v"), ag.Variable(2.0, name="v")
    outputs, _ = run_stateful(lambda x: x * one + two, X, v=one, v_1=two)
    np.testing.assert_array_equal(outputs["output"], X + 2)


@pytest.mark.parametrize("sign", [1, -1])
def test_branches(sign: int) -> None:
    def function(x: Any, y: Any) -> Any:
        def negative() -> Any:
            return {"a": y - 1, "b": np.float32(2), "c": None}

        return ag.cond(x.sum() > 0, lambda: {"a": x * 2, "b": 1, "c": None}, negative)

    with np.errstate(all="ignore"):
        expected = function(X * sign, X)
    traced = trace_function(function, (X, X), {})
    ag.verify(traced.graph)
    outputs = ag.compile(traced.graph)({"x": X * sign, "y": X})
    np.testing.assert_array_equal(outputs["a"], expected["a"])
    assert outputs["b"] == expected["b"]
    assert traced.results["c"] is None
    assert traced.graph.has_node("StatelessIf")


def test_branches_change_variables() -> None:
    v = ag.Variable(np.zeros(3, np.float32), name="v")

    def function(x: Any, n: Any) -> Any:
        ag.cond(n > 0, lambda: v.assign_add(x[0]), lambda: v.assign(x[1]))
        return v.value

    for n in (1, -1):
        v.assign(np.ones(3, np.float32))
        outputs, state = run_stateful(function, X, np.int32(n), v=v)
        np.testing.assert_array_equal(outputs["output"], function(X, n))
        np.testing.assert_array_equal(state["v"], v.value)


def test_loops() -> None:
    check(
        lambda x, n: ag.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, np.tanh(y) + x), (0, x)),
        X,
        np.int64(3),
        open_sizes=False,
    )
    check(lambda x: ag.while_loop(lambda y: y.sum() < 100, lambda y: y * 2, (x,)), X)
    check(lambda x: ag.while_loop(lambda y: y.shape[0] < 9, lambda y: np.concatenate([y, y]), [x]), X)
    check(
        lambda x: ag.while_loop(
            lambda s, i: i < 3, lambda s, i: ({"a": s["a"] + x, "b": i * 1.0}, i + 1), ({"a": x, "b": 0.0}, 0)
        ),
        X,
    )


def test_a_loop_that_is_traced_again_leaves_nothing_behind() -> None:
    def body(y: Any) -> Any:
        return np.concatenate([y, ag.cond(y.sum() > 0, lambda: y, lambda: -y)])

    graph = ag.trace(lambda x: ag.while_loop(lambda y: y.shape[0] < 9, body, (x,)), X)
    assert sorted(graph.functions) == ["cond_false", "cond_true", "while_body", "while_cond"]
    assert ag.compile(graph)({"x": -X})["output_0"].shape == (16, 3)


def test_loops_nest_and_hold_branches_and_variables() -> None:
    v = ag.Variable(np.float32(0), name="v")

    def function(x: Any) -> Any:
        def body(i: Any, y: Any) -> Any:
            _, inner = ag.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, z + x), (0, y))
            v.assign_add(inner.sum())
            return i + 1, ag.cond(inner.sum() > 50, lambda: inner - v, lambda: inner)

        return ag.while_loop(lambda i, y: i < 4, body, (0, x))[1]

    outputs, state = run_stateful(function, X, v=v)
    np.testing.assert_allclose(outputs["output"], function(X), rtol=1e-6)
    np.testing.assert_allclose(state["v"], v.value, rtol=1e-6)


def test_a_known_condition_is_taken_at_once() -> None:
    graph = ag.trace(lambda x: ag.cond(x.ndim == 2, lambda: x, lambda: -x), X)
    assert [node.op_type for node in graph.nodes] == ["Placeholder", "Identity"]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        pytest.param(lambda x: ag.cond(x.sum() > 0, lambda: x, lambda: (x, x)), "in the same containers", id="containers"),
        pytest.param(
            lambda x: ag.while_loop(lambda y: True, lambda y: y.astype("f8"), (x,)),
            "is float32, and the body makes it",
            id="dtype",
        ),
        pytest.param(
            lambda x: ag.while_loop(lambda y: y > 0, lambda y: y, (x,)), "returns a truth value of shape", id="condition"
        ),
        pytest.param(lambda x: ag.while_loop(lambda y, z: y, lambda y, z: y, (x, x)), "returns 2 loop variables", id="count"),
        pytest.param(lambda x: ag.while_loop(lambda: x, lambda: x, ()), "needs a loop variable", id="nothing"),
    ],
)
def test_refuses(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(ag.TraceError, match=message):
        ag.trace(function, X)


def test_a_rewrite_reaches_bodies() -> None:
    w = np.eye(3, dtype=np.float32)
    graph = ag.trace(lambda x, w: ag.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, np.tanh(y @ w)), (0, x))[1], X, w)
    for dtype in ("float16", "bfloat16"):
        result = ag.auto_mixed_precision(graph, dtype=dtype, target="cpu")
        assert result.graph.functions["while_body"].node("MatMul").types["T"].name == dtype
        output = ag.compile(result.graph)({"x": X, "w": w})["output"]
        np.testing.assert_allclose(output, ag.compile(graph)({"x": X, "w": w})["output"], atol=0.02)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: ag.cond(x > 0, lambda: x, lambda: x), "one truth value, .* Received: <SymbolicArray 'Greater'"),
        (lambda x: ag.cond(np.array([True, False]), lambda: x, lambda: x), "one truth value, .* Received: array"),
        (lambda x: ag.cond(x[0, 0] > 0, x, lambda: x), "takes functions: .* Received: <SymbolicArray 'x'"),
        (lambda x: ag.cond(x[0, 0] > 0, lambda: x, lambda: None), "return an array, or both None. Received: an array and None"),
        (lambda x: ag.cond(x[0, 0] > 0, lambda: None, lambda: x), "return an array, or both None. Received: None and an array"),
        (lambda x: ag.while_loop(lambda x: x < 3, lambda x: x + 1, x), "takes a tuple of loop variables. Received: <Symb"),
        (lambda x: ag.while_loop(lambda x: x < 3, None, (x,)), "takes functions: .* Received: None"),  # type: ignore[arg-type]
        (lambda x: ag.while_loop(lambda x: x < 3, lambda x: None, (x,)), "holds numbers, truth values or text. Received: None"),
    ],
)
def test_odd_branches_and_loops_are_refused(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(ag.TraceError, match=message):
        ag.trace(function, X)
