"""Functions that run as graphs: signatures, variables, rewriting."""

from typing import Any

import numpy as np
import pytest

import ampgraph as ag

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_is_traced_once_for_each_signature() -> None:
    runs = []

    @ag.function
    def f(x: Any, training: bool = False, **rest: Any) -> Any:
        """Doubles."""
        runs.append(1)
        return {"x": x * 2, "training": training, "sum": sum(rest.values(), np.float32(0))}

    assert f.__doc__ == "Doubles."
    for _ in range(2):
        result = f(X)
        assert result["x"].tolist() == (X * 2).tolist()
        assert result["training"] is False
    assert f(X, training=True)["training"] is True
    f(X[:1])
    f(X, a=np.float32(1), b=X)
    assert list(f.cache) == [
        "x: f32[2,3], training=False",
        "x: f32[2,3], training=True",
        "x: f32[1,3], training=False",
        "x: f32[2,3], training=False, rest/a: f32[], rest/b: f32[2,3]",
    ]
    assert len(runs) == 4
    assert repr(f) == "<Function f: 4 signatures>"
    assert repr(f.cache["x: f32[1,3], training=False"]).startswith("<Specialization (x: f32[1,3], training=False): ")


def test_an_input_signature_serves_all_sizes() -> None:
    f = ag.function(lambda x, p: x @ p["w"], input_signature={"x": ag.TensorSpec([None, 3]), "p/w": ag.TensorSpec([3, None])})
    for rows, columns in [(1, 2), (4, 3)]:
        assert f(np.ones((rows, 3), np.float32), {"w": np.ones((3, columns), np.float32)}).tolist() == [[3] * columns] * rows
    assert list(f.cache) == ["x: f32[?,3], p/w: f32[3,?]"]
    with pytest.raises(ag.KernelError, match=r"Input 'x' takes shape \[\?,3\]. Received: \[2, 2\]"):
        f(X[:, :2], {"w": X.T})
    with pytest.raises(ag.TraceError, match=r"names arguments that are not there. Received: \['y'\]"):
        ag.function(lambda x: x, input_signature={"y": ag.TensorSpec([])})(X)


def test_variables_hold_what_functions_assign() -> None:
    total, count = ag.Variable(np.zeros(3, np.float32), name="total"), ag.Variable(0, name="count")

    @ag.function
    def add(x: Any) -> Any:
        total.assign_add(x.sum(axis=0))
        count.assign_add(1)
        return total / count

    @ag.function
    def reset() -> None:
        total.assign(np.zeros(3))
        count.assign(0)

    assert add(X).tolist() == [3, 5, 7]
    assert add(X[:1]).tolist() == [1.5, 3, 4.5]
    assert (total.value.tolist(), int(count)) == ([3, 6, 9], 2)
    assert reset() is None
    assert add(X).tolist() == [3, 5, 7]
    total.assign(np.ones(3))
    assert add(X).tolist() == [2, 3, 4]


def test_nobody_else_changes_what_a_variable_holds() -> None:
    v = ag.Variable(np.zeros((2, 3), np.float32), name="v")

    @ag.function
    def keep(x: Any) -> Any:
        v.assign(x)
        return v.value

    x = X.copy()
    result = keep(x)
    x[:] = 7
    result[:] = 8
    assert v.value.tolist() == X.tolist()


def test_a_failed_run_changes_nothing() -> None:
    v, table = ag.Variable(0, name="v"), np.ones(3, np.float32)

    @ag.function
    def f(i: Any) -> Any:
        v.assign_add(1)
        return ag.nn.embedding(table, i) + v

    with pytest.raises(ag.KernelError):
        f(np.int32(5))
    assert int(v) == 0
    assert f(np.int32(1)) == 2


def test_a_policy_rewrites_the_graph() -> None:
    w = ag.Variable(np.eye(3, dtype=np.float32) / 3, name="w")

    @ag.function(policy=ag.Policy(target="cpu", dtype="bfloat16"))
    def f(x: Any) -> Any:
        with ag.name_scope("dense"):
            y = x @ w
        w.assign(w * 2)
        return y

    result = f(X)
    assert result.dtype == np.float32
    assert result[1, 1] == np.float32(1.3359375)  # 4 times 1/3 in bfloat16, not 1.3333334
    (found,) = f.cache.values()
    assert found.dtype("dense/MatMul") is ag.find_dtype("bfloat16")
    assert found.program.dtype("dense/MatMul").name == "bfloat16"
    assert found.graph.value("dense/MatMul").dtype is ag.find_dtype("float32")
    assert found.report is not None
    assert w.value[0, 0] == np.float32(1 / 3) * 2  # the variable stays float32
    with pytest.raises(ag.GraphError, match="has no value 'dense/MatMull'"):
        found.dtype("dense/MatMull")


def test_inside_of_another_function_it_is_a_part_of_it() -> None:
    inner = ag.function(lambda x: x * 2)
    outer = ag.function(lambda x: inner(x) + inner(x + 1))
    assert outer(X).tolist() == (X * 4 + 2).tolist()
    assert not inner.cache


def test_methods() -> None:
    class Model:
        def __init__(self) -> None:
            self.w = ag.Variable(2.0, name="w")

        @ag.function
        def scale(self, x: Any) -> Any:
            return x * self.w

    one, two = Model(), Model()
    two.w.assign(3.0)
    assert (one.scale(X)[1, 2], two.scale(X)[1, 2]) == (10, 15)


def test_specialize_needs_no_arrays() -> None:
    f = ag.function(lambda x: np.tanh(x))
    found = f.specialize(ag.TensorSpec([None, 2]))
    assert found.signature == "x: f32[?,2]"
    assert found.graph.has_node("Tanh")
    with pytest.raises(ag.TraceError, match="A TensorSpec has no elements to run on"):
        f(ag.TensorSpec([None, 2]))


def test_random_numbers_go_on_from_run_to_run() -> None:
    f = ag.function(lambda x: x + ag.random.uniform((1000,), seed=4))
    g = ag.function(lambda x: x + ag.random.uniform((1000,), seed=4))
    zero = np.float32(0)
    one, two = f(zero), f(zero)
    assert (one != two).any()
    assert (g(zero) == one).all()


def test_refuses() -> None:
    with pytest.raises(ag.TraceError, match="Argument x is neither an array nor hashable"):
        ag.function(lambda x: 1)(bytearray(b"a"))
    with pytest.raises(ag.TraceError, match=r"A policy is an ampgraph.Policy, or None. Received: 'float16'"):
        ag.function(lambda x: x, policy="float16")  # type: ignore[arg-type]
    with pytest.raises(ag.TraceError, match=r"ampgraph.function takes a function. Received: 3"):
        ag.function(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        ag.function(lambda x: x)()
