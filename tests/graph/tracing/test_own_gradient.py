"""Functions that say what their gradient is, against gradients derived by hand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph import train

X = np.array([-1.5, 0.25, 2.0])


@ag.custom_gradient
def log1pexp(x: Any) -> Any:
    """log(1 + exp(x)): the gradient that would be derived is inf / inf for large x."""
    e = np.exp(x)
    return np.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))


@ag.custom_gradient
def straight_through(x: Any) -> Any:
    return np.round(x), lambda dy: dy


@ag.custom_gradient
def clipped(x: Any) -> Any:
    return x, lambda dy: np.clip(dy, -1, 1)


@ag.custom_gradient
def weighted(x: Any, w: Any, power: int) -> Any:
    """x·w and x + w, with gradients that are none of theirs."""

    def grad(dy: Any, dz: Any) -> Any:
        return dy * w + dz * power, dz * 10, None

    return (x @ w, x + w), grad


def slopes(function: Callable[..., Any], *arrays: Any) -> Any:
    """Return the gradients of the sum of what a function returns, by its arguments."""

    @ag.function
    def run(*xs: Any) -> Any:
        y = function(*xs)
        return ag.gradients(y if isinstance(y, list) else np.sum(y), list(xs))

    return run(*arrays)


def test_takes_the_gradient_that_is_given() -> None:
    x = np.array([0.0, 1.0, 1000.0])
    (found,) = slopes(log1pexp, x)
    np.testing.assert_allclose(found, [0.5, 1 / (1 + np.exp(-1)), 1], rtol=1e-14)
    (derived,) = slopes(lambda x: np.log(1 + np.exp(x)), x)
    assert np.isnan(derived[2])


def test_straight_through_and_clipping() -> None:
    (found,) = slopes(lambda x: straight_through(x) ** 3, X)
    assert found.tolist() == (3 * np.round(X) ** 2).tolist()
    (found,) = slopes(lambda x: clipped(x * 2) ** 2, X)
    assert found.tolist() == [-2, 2, 2]


def test_several_arguments_and_results() -> None:
    x, w = X, np.array([3.0, 5.0, 7.0])

    def both(x: Any, w: Any) -> Any:
        y, z = weighted(x, w, 4)
        return [y * 2, z]

    found = slopes(both, x, w)
    assert [g.tolist() for g in found] == [[10, 14, 18], [10, 10, 10]]
    # By one result only: the other's gradient counts as zeros.
    found = slopes(lambda x, w: weighted(x, w, 4)[0], x, w)
    assert [g.tolist() for g in found] == [[3, 5, 7], [0, 0, 0]]
    # The same array twice: both gradients are added up.
    (found,) = slopes(lambda x: weighted(x, x, 4)[1], x)
    assert found.tolist() == [14, 14, 14]


def test_containers_and_what_is_no_float() -> None:
    seen = []

    @ag.custom_gradient
    def split(pair: Any, i: Any, scale: float, *, shift: Any) -> Any:
        def grad(dy: Any) -> Any:
            seen.append(dy["index"])
            return {"a": dy["out"] * scale, "b": None}, None, None

        return {"out": pair["a"] + pair["b"] + shift, "index": i + 1}, grad

    found = slopes(lambda a, b, c: split({"a": a, "b": b}, np.argmax(a), 3.0, shift=c)["out"], X, X, X)
    assert found[0].tolist() == [3, 3, 3]
    assert found[1:] == [None, None]
    assert seen == [None]
    result = ag.function(lambda a: split({"a": a, "b": a}, np.argmax(a), 3.0, shift=1))(X)
    assert (result["out"].tolist(), int(result["index"])) == ((2 * X + 1).tolist(), 3)


def test_the_second_order_differentiates_what_was_given() -> None:
    @ag.custom_gradient
    def square(x: Any) -> Any:
        return x * x, lambda dy: dy * x**5

    def twice(x: Any) -> Any:
        (first,) = ag.gradients(square(x), x)
        return first, ag.gradients(first, x)[0]

    first, second = ag.function(twice)(X)
    np.testing.assert_allclose(first, X**5)
    np.testing.assert_allclose(second, 5 * X**4)


def test_one_inside_of_another() -> None:
    @ag.custom_gradient
    def outer(x: Any) -> Any:
        def grad(dy: Any) -> Any:
            return dy * 7 * straight_through(x)

        return clipped(x) * 2, grad

    def twice(x: Any) -> Any:
        (first,) = ag.gradients(outer(x), x)
        return first, ag.gradients(first, x)[0]

    first, second = ag.function(twice)(X)
    assert first.tolist() == (7 * np.round(X)).tolist()
    assert second.tolist() == [7, 7, 7]


def test_in_branches_and_loops() -> None:
    scale = np.array(3.0)

    def branch(x: Any, s: Any) -> Any:
        @ag.custom_gradient
        def scaled(y: Any) -> Any:
            e = np.exp(y)
            return y * 2, lambda dy: dy * s * e

        return ag.cond(x.sum() > 0, lambda: scaled(x * 2), lambda: x)

    found, none = slopes(branch, X, scale)
    np.testing.assert_allclose(found, 2 * 3 * np.exp(2 * X))
    assert none is None  # s is used by the branch, but only in a gradient
    assert slopes(branch, -X, scale)[0].tolist() == [1, 1, 1]

    def loop(x: Any) -> Any:
        return ag.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, log1pexp(straight_through(y * 3))), (0, x))[1]

    (found,) = slopes(loop, X)
    y, expected = X, np.ones(3)
    for _ in range(4):
        rounded = np.round(y * 3)
        expected = expected * 3 / (1 + np.exp(-rounded))
        y = np.log(1 + np.exp(rounded))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_variables_are_arguments() -> None:
    w, other = ag.Variable(np.full(3, 2.0), "w"), ag.Variable(1.5, "other")

    @ag.custom_gradient
    def product(x: Any, w: Any) -> Any:
        return x * w, lambda dy: (dy * w, dy * x * 100)

    @ag.custom_gradient
    def forgetful(x: Any) -> Any:
        return ag.cond(x.sum() > 0, lambda: x * other, lambda: x), lambda dy: dy

    @ag.function
    def step(x: Any) -> Any:
        return ag.gradients(product(x, w) * other, [x, w, other])

    found = step(X)
    assert found[0].tolist() == [3, 3, 3]
    assert found[1].tolist() == (X * 150).tolist()
    assert float(found[2]) == pytest.approx(2 * X.sum())
    with pytest.raises(
        ag.TraceError, match="forgetful has a gradient of its own and reads variable 'other', which would get none"
    ):
        ag.function(forgetful)(X)


def test_a_training_step_in_float16() -> None:
    w = ag.Variable(np.eye(8) / 4, "w", np.float32)
    opt = ag.enable_mixed_precision_graph_rewrite(train.SGD(0.5), 64, target="cpu")

    @ag.custom_gradient
    def quantized(x: Any, w: Any) -> Any:
        y = np.round(x @ w)
        return y, lambda dy: (dy @ w.T, x.T @ dy)

    @ag.function
    def step(x: Any) -> Any:
        return opt.minimize(np.sum(quantized(x * 2, w)))

    x = np.ones((4, 8), np.float32)
    result = step(x)
    assert bool(result.applied)
    assert w.value.tolist() == (np.eye(8) / 4 - 0.5 * 8).tolist()
    found = step.specialize(x)
    ag.verify(found.program.graph)
    products = [node for node in found.program.graph.nodes if node.op_type == "MatMul"]
    assert [node.name for node in products] == ["MatMul", "gradients/IdentityN_grad/MatMul"]
    assert all(node.types["T"] is ag.find_dtype("float16") for node in products)


def test_a_scope_kept_in_float32_keeps_the_gradient_too() -> None:
    @ag.custom_gradient
    def product(x: Any, w: Any) -> Any:
        return x @ w, lambda dy: (dy @ w.T, x.T @ dy)

    def step(x: Any) -> Any:
        y = product(x, x + 1)
        with ag.name_scope("head", dtype="float32"):
            y = product(y, x + 2)
        return ag.gradients(y, x)

    found = ag.function(step, policy=ag.Policy(target="cpu")).specialize(np.ones((8, 8), np.float32)).program.graph
    names = {node.name: str(node.types["T"]) for node in found.nodes if node.op_type == "MatMul"}
    assert {name for name, dtype in names.items() if dtype == "float32"} == {name for name in names if "head/" in name}
    assert len(names) == 6


def test_files_keep_the_gradient(tmp_path: Path) -> None:
    graph = ag.trace(lambda x: np.sum(straight_through(x)), ag.TensorSpec([3], np.float64))
    for suffix in ("pb", "pbtxt", "json", "txt"):
        path = tmp_path / f"graph.{suffix}"
        ag.save(graph, path)
        loaded = ag.load(path, outputs=["output"]) if suffix.startswith("pb") else ag.load(path)
        ag.verify(loaded)
        (slope,) = ag.gradients(loaded.value("output"), loaded.value("x"))
        loaded.outputs, loaded.output_names = [slope], ["slope"]
        assert ag.compile(loaded)({"x": X})["slope"].tolist() == [1, 1, 1]


def test_a_rewritten_graph_is_not_differentiated_wrongly() -> None:
    graph = ag.trace(lambda x: np.sum(straight_through(x @ x) @ x), ag.TensorSpec([8, 8]))
    low = ag.auto_mixed_precision(graph, target="cpu").graph
    with pytest.raises(
        ag.GraphError, match=r"is a function of float32, where the node has float16. Differentiate a graph before"
    ):
        ag.gradients(low.value("output"), low.value("x"))


def test_a_gradient_from_a_file_must_fit() -> None:
    graph = ag.parse_graph("""graph g() {
      %x: f32 = tf.Placeholder<dtype=f32>()
      %y: f32 = tf.IdentityN<T=[f32]>(%x) {_gradient_function=@own}
      return %y
    }
    function own(%y: f32, %dy: f32) {
      return %dy
    }""")
    with pytest.raises(ag.GraphError, match=r"takes its 1 operands .* Received: function 'own' from 2 to 1"):
        ag.gradients(graph.outputs[0], graph.value("x"))


def test_outside_of_a_trace_it_is_called() -> None:
    assert straight_through(X).tolist() == [-2, 0, 2]
    assert log1pexp.__doc__ == "log(1 + exp(x)): the gradient that would be derived is inf / inf for large x."
    with pytest.raises(ag.TraceError, match=r"f has a gradient of its own, so it returns a pair: y, grad. Received: array"):
        _returning(lambda x: x)(X)


def _returning(function: Callable[[Any], Any]) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        return function(x)

    return ag.custom_gradient(f)


DRAWN = ag.Variable(np.ones(3), "drawn")

WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no-pair": (lambda x: (x, 2), r"f has a gradient of its own, so it returns a pair: y, grad. Received: \("),
    "number": (lambda x: (x, lambda dy: (dy, dy)), r"The gradient of f returns 1 array, one for each argument. Received: \("),
    "shape": (
        lambda x: (x, lambda dy: dy.sum()),
        r"The gradient of f by argument 0 has the shape of the argument, \[3\]. .*: \[\]",
    ),
    "dtype": (lambda x: (x, lambda dy: dy.astype("f4")), "The gradient of f by argument 0 is float64, as .* Received: float32"),
    "containers": (lambda x: (x, lambda dy: {"x": dy}), "The gradient of f by argument 0 has the containers of that argument"),
    "variable": (lambda x: (x, lambda dy: dy * DRAWN), "The gradient of f reads or changes variables, or draws random numbers"),
    "random": (lambda x: (x, lambda dy: dy * ag.random.normal([3])), "The gradient of f reads or changes variables, or draws"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_refused(name: str) -> None:
    function, match = WRONG[name]
    with pytest.raises(ag.TraceError, match=match):
        ag.trace(_returning(function), ag.TensorSpec([3], np.float64))


def test_unknown_sizes() -> None:
    def slope(x: Any) -> Any:
        return ag.gradients(_returning(lambda x: (x * 2, lambda dy: dy * x.shape[0]))(x), x)

    run = ag.function(slope, input_signature={"x": ag.TensorSpec([None, 3], np.float64)})
    assert [run(np.ones((n, 3)))[0].sum() for n in (1, 2, 5)] == [3, 12, 75]
