"""Optimizers in functions that are traced: minimize, compute_gradients and apply_gradients, and the rewrite of such graphs."""

import math
import warnings
from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph import DynamicLossScale, LossScaleOptimizer, train

RNG = np.random.default_rng(5)
X = RNG.standard_normal((16, 8)).astype(np.float32)
Y = RNG.standard_normal((16, 4)).astype(np.float32)
START = (RNG.standard_normal((8, 4)) / 4).astype(np.float32)


def gradient_of(w: Any, x: Any = X, y: Any = Y) -> Any:
    """Return the gradient of the mean squared error of ``x @ w`` by hand, in float64."""
    return 2 * x.T.astype(np.float64) @ (x.astype(np.float64) @ w - y) / y.size


def step_of(optimizer: Any, **options: Any) -> tuple[Any, ag.Variable]:
    w = ag.Variable(START, "w")

    @ag.function(**options)
    def step(x: Any, y: Any) -> Any:
        return optimizer.minimize(np.mean(np.square(x @ w - y)))

    return step, w


def low_ops(step: Any) -> set[str]:
    """Return the ops of a traced function that compute in float16."""
    (found,) = step.cache.values()
    return {n.op_type for n in found.program.graph.nodes if n.op_type != "Cast" and ag.find_dtype("float16") in n.types.values()}


MAKERS = [
    lambda: train.SGD(0.1),
    lambda: train.SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    lambda: train.AdamW(train.Warmup(train.CosineDecay(0.1, 20), 3), global_clipnorm=0.1),
    lambda: train.RMSprop(0.01, momentum=0.5, clipvalue=0.01),
    lambda: train.Adagrad(0.1, initial_accumulator_value=0.3),
    lambda: train.LAMB(0.1, clipnorm=0.1),
]


@pytest.mark.parametrize("scale", [None, 1024, DynamicLossScale(8.0, growth_interval=2)], ids=["plain", "fixed", "dynamic"])
@pytest.mark.parametrize("make", MAKERS)
def test_steps_are_those_of_the_optimizer_on_the_host(make: Any, scale: Any) -> None:
    optimizer, other = make(), make()
    if scale is not None:
        optimizer, other = LossScaleOptimizer(optimizer, scale), LossScaleOptimizer(other, scale)
    step, w = step_of(optimizer)
    v = ag.Variable(START, "v")
    for _ in range(5):
        result = step(X, Y)
        expected = other.apply_gradients([(gradient_of(v.value).astype(np.float32), v)])
        assert (bool(result.applied), int(result.global_step)) == (True, expected.global_step)
        assert float(result.loss_scale) == expected.loss_scale
        assert float(result.grad_norm) == pytest.approx(expected.grad_norm, rel=1e-5)
        np.testing.assert_allclose(w.value, v.value, rtol=1e-4, atol=1e-6)
    assert optimizer.global_step == other.global_step == 5
    assert getattr(optimizer, "loss_scale", None) == getattr(other, "loss_scale", None)


def test_the_host_and_graphs_go_on_from_each_other() -> None:
    mixed, pure = (LossScaleOptimizer(train.Adam(0.1), DynamicLossScale(8.0, growth_interval=3)) for _ in range(2))
    (step, w), (other, v) = step_of(mixed), step_of(pure)
    for turn in range(6):
        other(X, Y)
        if turn % 2:
            mixed.apply_gradients([(gradient_of(w.value).astype(np.float32), w)])
        else:
            step(X, Y)
        np.testing.assert_allclose(w.value, v.value, rtol=1e-4, atol=1e-6)
    assert (mixed.global_step, mixed.loss_scale) == (pure.global_step, pure.loss_scale)
    assert mixed.loss_scale.scale == 32.0


def test_compute_and_apply_are_minimize_and_gradients_can_be_changed_between() -> None:
    optimizer = LossScaleOptimizer(train.SGD(1.0), 1024)
    w, unused = ag.Variable(START, "w"), ag.Variable(np.ones(3), "unused", np.float32)

    @ag.function
    def step(x: Any, y: Any) -> Any:
        loss = np.mean(np.square(x @ w - y))
        pairs = optimizer.compute_gradients(loss, [w, unused])
        assert pairs[1] == (None, unused)
        (gradient, _), other = pairs
        return gradient, optimizer.apply_gradients([(gradient / 2, w), other], loss)

    gradient, result = step(X, Y)
    np.testing.assert_allclose(gradient, gradient_of(START), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(w.value, START - gradient / 2, rtol=1e-6)
    assert (bool(result.applied), unused.value.tolist()) == (True, [1.0, 1.0, 1.0])
    assert float(result.loss) == pytest.approx(float(np.mean(np.square(X @ START - Y))), rel=1e-5)


def test_gradients_of_the_scaled_loss_by_hand() -> None:
    optimizer = ag.enable_mixed_precision_graph_rewrite(train.SGD(1.0), 64)
    w = ag.Variable(START, "w")

    @ag.function(policy=optimizer.policy)
    def step(x: Any, y: Any) -> Any:
        loss = np.mean(np.square(x @ w - y))
        scaled = ag.gradients(optimizer.get_scaled_loss(loss), [w])
        (gradient,) = optimizer.get_unscaled_gradients(scaled)
        return scaled[0], gradient, optimizer.apply_gradients([(gradient, w)])

    scaled, gradient, result = step(X, Y)
    np.testing.assert_allclose(gradient, gradient_of(START), rtol=0.01, atol=1e-3)
    np.testing.assert_array_equal(scaled, gradient * np.float32(64))
    assert (result.loss, bool(result.applied)) == (None, True)
    assert "MatMul" in low_ops(step)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_forward_and_backward_are_rewritten_and_variables_stay_float32(dtype: str) -> None:
    optimizer = ag.enable_mixed_precision_graph_rewrite(train.SGD(0.1), dtype=dtype)
    step, w = step_of(optimizer)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        losses = [float(step(X, Y).loss) for _ in range(30)]
    (found,) = step.cache.values()
    low = [n for n in found.program.graph.nodes if n.types.get("T") is ag.find_dtype(dtype)]
    assert {"MatMul", "gradients/MatMul_grad/MatMul_1"} <= {node.name for node in low}
    assert (w.dtype, found.dtype("MatMul")) == (np.float32, ag.find_dtype(dtype))
    plain, v = step_of(train.SGD(0.1))
    expected = [float(plain(X, Y).loss) for _ in range(30)]
    assert losses[-1] < losses[0]
    np.testing.assert_allclose(losses, expected, rtol=0.02)
    np.testing.assert_allclose(w.value, v.value, atol=0.01)


def test_a_gradient_that_overflows_drops_the_step_and_lowers_the_scale() -> None:
    optimizer = ag.enable_mixed_precision_graph_rewrite(train.Adam(0.01), DynamicLossScale(2.0**24))
    step, w = step_of(optimizer)
    before, results = w.value.tobytes(), []
    for _ in range(20):
        results.append(step(X, Y))
        if not results[-1].applied:
            assert (w.value.tobytes(), optimizer.global_step) == (before, 0)
            assert all(not array.any() for array in optimizer.inner.slots["w"].values())
    applied = [bool(result.applied) for result in results]
    dropped = applied.index(True)
    assert 0 < dropped < 20
    assert all(applied[dropped:])
    assert (optimizer.global_step, optimizer.loss_scale.scale) == (20 - dropped, 2.0 ** (24 - dropped))


def test_gradients_are_averaged_over_runs() -> None:
    optimizer = LossScaleOptimizer(train.SGD(1.0), DynamicLossScale(8.0, growth_interval=1), accumulation_steps=3)
    step, w = step_of(optimizer)
    parts = [(X[i : i + 4], Y[i : i + 4]) for i in (0, 4, 8)]
    results = [step(x, y) for x, y in parts]
    assert [bool(result.applied) for result in results] == [False, False, True]
    assert [math.isnan(result.grad_norm) for result in results] == [True, True, False]
    mean = np.mean([gradient_of(START, x, y) for x, y in parts], axis=0)
    np.testing.assert_allclose(w.value, START - mean, rtol=1e-4, atol=1e-6)
    assert (optimizer.global_step, optimizer.loss_scale.scale) == (1, 16.0)
    with pytest.warns(RuntimeWarning, match="The loss itself is nan"):
        results = [step(x, y) for x, y in (parts[0], (np.full_like(parts[1][0], np.nan), parts[1][1]), parts[2])]
    assert [bool(result.applied) for result in results] == [False, False, False]
    assert (optimizer.global_step, optimizer.loss_scale.scale) == (1, 8.0)


def test_half_accumulated_gradients_are_saved(tmp_path: Any) -> None:
    def make() -> Any:
        scale = DynamicLossScale(8.0, growth_interval=2)
        optimizer = ag.enable_mixed_precision_graph_rewrite(train.Adam(0.1), scale, accumulation_steps=2)
        return optimizer, *step_of(optimizer)

    optimizer, step, w = make()
    other, resumed, v = make()
    for _ in range(3):
        step(X, Y)
    resumed(X, Y)  # what it accumulated and counted is replaced
    train.save_checkpoint(tmp_path / "a.npz", [w], optimizer)
    train.load_checkpoint(tmp_path / "a.npz", [v], other)
    for _ in range(4):
        assert [np.asarray(x).tobytes() for x in step(X, Y)] == [np.asarray(x).tobytes() for x in resumed(X, Y)]
    assert w.value.tobytes() == v.value.tobytes()
    assert (optimizer.global_step, optimizer.loss_scale) == (other.global_step, other.loss_scale)


def test_disabling_drops_the_rewrite_from_functions() -> None:
    optimizer: Any = ag.enable_mixed_precision_graph_rewrite(train.SGD(0.1))
    w = ag.Variable(START, "w")

    @ag.function
    def step(x: Any, y: Any) -> Any:
        return optimizer.minimize(np.mean(np.square(x @ w - y)))

    step(X, Y)
    assert "MatMul" in low_ops(step)
    optimizer = ag.disable_mixed_precision_graph_rewrite(optimizer)
    assert (int(step(X, Y).global_step), low_ops(step)) == (2, set())
    assert step.cache["x: f32[16,8], y: f32[16,4]"].report is None


def test_other_functions_and_optimizers_are_not_affected() -> None:
    wrapped, plain = ag.enable_mixed_precision_graph_rewrite(train.SGD(0.1)), train.SGD(0.1)
    (one, _), (two, _) = step_of(wrapped), step_of(plain)
    forward = ag.function(lambda x: x @ ag.Variable(START, "w"))
    for run in (lambda: one(X, Y), lambda: two(X, Y), lambda: forward(X)):
        run()
    assert ("MatMul" in low_ops(one), low_ops(two), low_ops(forward)) == (True, set(), set())


def test_two_optimizers_in_one_function() -> None:
    first, second = (ag.enable_mixed_precision_graph_rewrite(train.SGD(0.1), scale) for scale in (8, 16))
    w, v = ag.Variable(START, "w"), ag.Variable(START, "v")

    @ag.function
    def step(x: Any, y: Any) -> Any:
        error = np.mean(np.square(x @ w - y))
        return first.minimize(error, [w]), second.minimize(error + np.mean(np.square(x @ v - y)), [v])

    one, two = step(X, Y)
    assert (float(one.loss_scale), float(two.loss_scale), first.global_step, second.global_step) == (8.0, 16.0, 1, 1)
    np.testing.assert_allclose(w.value, v.value, atol=1e-5)
    other = ag.enable_mixed_precision_graph_rewrite(train.SGD(0.1), dtype="bfloat16")

    def both(x: Any, y: Any) -> Any:
        error = np.mean(np.square(x @ w - y))
        return first.minimize(error, [w]), other.minimize(error, [w])

    with pytest.raises(ag.TrainingError, match="the optimizers in it want it differently; say which with policy="):
        ag.function(both)(X, Y)
    assert ag.function(both, policy=ag.Policy(dtype="bfloat16"))(X, Y)[1].applied


def test_name_scopes_kept_in_float32_stay_so_forward_and_backward() -> None:
    optimizer = ag.enable_mixed_precision_graph_rewrite(train.SGD(0.1))
    w, v = ag.Variable(START, "w"), ag.Variable(START, "v")

    @ag.function
    def step(x: Any, y: Any) -> Any:
        with ag.name_scope("low"):
            a = x @ w
        with ag.name_scope("model"), ag.name_scope("wide", dtype="float32"):
            b = ag.cond(np.sum(y) < 1e9, lambda: x @ v, lambda: x @ v * 2)
        return optimizer.minimize(np.mean(np.square(a + b - y)))

    step(X, Y)
    (found,) = step.cache.values()
    half = ag.find_dtype("float16")
    low = {
        node.name
        for graph in found.program.graph.all_graphs()
        for node in graph.nodes
        if node.op_type == "MatMul" and node.types["T"] is half
    }
    assert low == {"low/MatMul", "gradients/low/MatMul_grad/MatMul_1"}
    with pytest.raises(ag.TraceError, match="can be kept in 'float32'"), ag.name_scope("x", dtype="float16"):
        pass


def test_a_warning_says_why_nothing_is_rewritten() -> None:
    optimizer = ag.enable_mixed_precision_graph_rewrite(train.SGD(0.1), target="gpu:6.0")
    step, _ = step_of(optimizer)
    with pytest.warns(RuntimeWarning, match=r"Nothing in step\(x: f32\[16,8\].* is rewritten: .*7\.0"):
        step(X, Y)
    w = ag.Variable(np.ones(8), "w", np.float32)
    sums = ag.function(lambda x: ag.enable_mixed_precision_graph_rewrite(train.SGD(0.1)).minimize(np.sum(np.exp(x * w))))
    with pytest.warns(RuntimeWarning, match="is rewritten: no op of it is on the AllowList"):
        sums(X)


def test_a_loss_that_is_not_finite_names_where_it_comes_from() -> None:
    optimizer = LossScaleOptimizer(train.SGD(0.1), DynamicLossScale(8.0))
    w = ag.Variable(np.array([1.0, 2.0], np.float32), "w")

    @ag.function
    def step(x: Any) -> Any:
        with ag.name_scope("head"):
            logs = np.log(x * w)
        return optimizer.minimize(np.sum(logs) + np.sum(np.tanh(w)))

    step(np.array([1, 1], np.float32))
    with pytest.warns(
        RuntimeWarning, match=r"The loss itself is -inf, .*first node .* not finite is 'head/Log' \(Log, float32\)"
    ):
        step(np.array([1, 0], np.float32))
    assert step(np.array([1, 1], np.float32)).applied
    with pytest.warns(RuntimeWarning, match="first values that are not finite are those of input 'x'"):
        step(np.array([1, np.nan], np.float32))
    step(np.array([1, 1], np.float32))
    w.assign(np.array([1, np.inf], np.float32))
    with pytest.warns(RuntimeWarning, match="those of variable 'w'"):
        step(np.array([1, 1], np.float32))


def test_training_that_does_not_get_on_names_the_gradient() -> None:
    def make(on_stall: Any) -> Any:
        optimizer = LossScaleOptimizer(train.SGD(0.1), DynamicLossScale(1.0), max_skips=3, on_stall=on_stall)
        w, v = ag.Variable(np.array([1.0], np.float32), "w"), ag.Variable(np.array([0.0], np.float32), "v")
        return ag.function(lambda x: optimizer.minimize(np.sum(w * x + np.sqrt(v))))

    step = make("warn")
    for _ in range(2):
        assert not step(np.array([1.0], np.float32)).applied
    with pytest.warns(RuntimeWarning, match=r"3 steps in a row .* the gradient of 'v' is not finite\."):
        step(np.array([1.0], np.float32))
    step = make("raise")
    for _ in range(2):
        step(np.array([1.0], np.float32))
    with pytest.raises(ag.TrainingError, match=r"3 steps in a row .* the gradient of 'v' is not finite"):
        step(np.array([1.0], np.float32))


def test_what_makes_no_sense_is_refused() -> None:
    optimizer, w = LossScaleOptimizer(train.SGD(0.1)), ag.Variable(START, "w")
    with pytest.raises(ag.TraceError, match="No function is being traced"):
        optimizer.minimize(np.float32(1.0), [w])

    def refused(function: Any, message: str) -> None:
        with pytest.raises(ag.TrainingError, match=message):
            ag.function(function)(X)

    refused(lambda x: optimizer.minimize(x @ w), "A loss is one symbolic number")
    refused(lambda x: optimizer.minimize(1.0), "A loss is one symbolic number of floats.* Received: 1.0")
    refused(lambda x: optimizer.minimize(np.sum(x)), "used no variable of floats")
    refused(lambda x: optimizer.minimize(np.sum(x), [w]), "No variable has a gradient.* Received: 'w'")
    refused(lambda x: optimizer.minimize(np.sum(x), [x]), "variables are ampgraph.Variable objects")
    refused(lambda x: optimizer.apply_gradients([(x, w)]), r"must have its shape, \[8, 4\]. Received: .*\[16, 8\]")
    refused(lambda x: optimizer.apply_gradients([(w, w), (w, w)]), "told apart by their names.*Received: 'w' twice")
    refused(lambda x: optimizer.apply_gradients([(np.zeros((8, 4), np.int32), w)]), "A gradient is of floats")
    refused(
        lambda x: ag.cond(np.sum(x) > 0, lambda: optimizer.minimize(np.sum(x @ w)).applied, lambda: np.array(False)),
        "not inside of ampgraph.cond",
    )


def test_results_of_steps_are_shown_as_numbers() -> None:
    step, _ = step_of(train.SGD(0.1))
    result = step(X, Y)
    assert (
        repr(result) == f"StepResult(loss={result.loss!s}, applied=True, loss_scale=1.0, global_step=1, grad_norm={result[4]!s})"
    )
    assert repr(train.StepResult(None, True, 1.0, 1, 0.5)).startswith("StepResult(loss=None, applied=True, ")
