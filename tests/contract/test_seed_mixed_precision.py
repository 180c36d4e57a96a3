"""What ``enable_mixed_precision_graph_rewrite`` promises, statement by statement."""

from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph import layers, lists, train

RNG = np.random.default_rng(11)
X = RNG.random((32, 64), np.float32)
Y = RNG.random((32, 8), np.float32)
HALF, SINGLE = ag.find_dtype("float16"), ag.find_dtype("float32")


def enabled(opt: Any = None, *args: Any, **options: Any) -> ag.LossScaleOptimizer:
    return ag.enable_mixed_precision_graph_rewrite(opt or train.SGD(0.1), *args, **options)


def mlp_step(opt: Any, compute: str = "minimize") -> tuple[Any, ag.Variable]:
    """Return a training step that knows nothing of layers, and a variable that it changes."""
    w = ag.Variable(np.random.default_rng(0).standard_normal((64, 8)) / 8, "w", np.float32)

    @ag.function
    def step(x: Any, y: Any) -> Any:
        loss = np.mean(np.square(np.maximum(x @ w, 0) - y))
        if compute == "minimize":
            return opt.minimize(loss)
        return opt.apply_gradients(opt.compute_gradients(loss), loss)

    return step, w


def program_of(step: Any) -> ag.Program:
    (found,) = step.cache.values()
    return found.program


def low_nodes(graph: ag.Graph) -> list[str]:
    return [node.name for node in graph.nodes if node.op_type != "Cast" and HALF in node.types.values()]


def test_the_example_runs() -> None:
    model = train.Sequential(
        [
            layers.Dense(64, activation="relu"),
            layers.Dense(64, activation="softmax"),
        ]
    )

    opt = train.SGD()
    opt = ag.enable_mixed_precision_graph_rewrite(opt)
    model.compile(loss="mse", optimizer=opt)

    x_train = np.random.default_rng(0).random((1024, 64))
    y_train = np.random.default_rng(1).random((1024, 64))
    history = model.fit(x_train, y_train, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    assert (opt.global_step, opt.loss_scale.scale) == (32, 2.0**15)


def test_it_returns_the_optimizer_wrapped_with_a_dynamic_loss_scale() -> None:
    inner = train.SGD()
    opt = ag.enable_mixed_precision_graph_rewrite(inner)
    assert (type(opt), opt.inner, opt.loss_scale) == (ag.LossScaleOptimizer, inner, ag.DynamicLossScale())


@pytest.mark.parametrize("wrong", ["sgd", None, train.SGD, 3])
def test_only_optimizers_are_taken(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"An optimizer of ampgraph\.train is needed"):
        ag.enable_mixed_precision_graph_rewrite(wrong)


def test_an_optimizer_is_wrapped_once() -> None:
    with pytest.raises(ValueError, match="scales its loss already"):
        ag.enable_mixed_precision_graph_rewrite(enabled())  # type: ignore[arg-type]


def test_only_some_operations_are_done_in_float16() -> None:
    step, _ = mlp_step(enabled())
    step(X, Y)
    graph = program_of(step).graph
    low = low_nodes(graph)
    assert {"MatMul", "Maximum"} <= set(low)
    assert program_of(step).dtype("Mean") is SINGLE
    assert 0 < len(low) < len(list(graph.nodes)) / 2


def test_small_gradients_vanish_without_a_loss_scale_and_not_with_it() -> None:
    y = (Y * 1e-6).astype(np.float32)

    def gradient(scale: Any) -> Any:
        opt = enabled(None, scale)
        w = ag.Variable(np.zeros((64, 8)), "w", np.float32)
        step = ag.function(lambda x, y: opt.compute_gradients(np.mean(np.square(x @ w - y)))[0][0])
        return step(X, y)

    plain, scaled = gradient(ag.FixedLossScale(1.0)), gradient("dynamic")
    assert np.count_nonzero(plain) == 0
    assert np.count_nonzero(scaled) == scaled.size
    np.testing.assert_allclose(scaled, -2 / Y.size * X.T.astype(np.float64) @ y, rtol=0.05)  # y has few digits in float16


def test_a_nan_gradient_drops_the_update_keeps_the_global_step_and_lowers_the_loss_scale() -> None:
    opt = enabled()
    step, w = mlp_step(opt)
    step(X, Y)
    before = w.value.copy()
    with pytest.warns(RuntimeWarning, match="The loss itself is nan"):
        result = step(np.full_like(X, np.nan), Y)
    assert (bool(result.applied), int(result.global_step), opt.global_step) == (False, 1, 1)
    assert float(result.loss_scale) == opt.loss_scale.scale == 2.0**14
    np.testing.assert_array_equal(w.value, before)
    assert step(X, Y).applied


def test_the_accuracy_is_that_of_float32() -> None:
    losses = []
    for opt in (train.SGD(0.1), enabled(), enabled(dtype="bfloat16")):
        step, _ = mlp_step(opt)
        losses.append([float(step(X, Y).loss) for _ in range(100)][-1])
    np.testing.assert_allclose(losses[1:], losses[0], rtol=5e-3)


@pytest.mark.parametrize("compute", ["minimize", "compute_gradients"])
def test_gradients_are_computed_and_applied_with_the_returned_optimizer(compute: str) -> None:
    opt = enabled(None, 1024)
    step, w = mlp_step(opt, compute)
    before = w.value.copy()
    assert step(X, Y).applied
    assert not np.array_equal(w.value, before)
    assert any(name.startswith("gradients/") for name in low_nodes(program_of(step).graph))


def test_other_gradients_are_not_scaled_unless_the_loss_is() -> None:
    opt = enabled(None, 1024)
    w = ag.Variable(np.ones(4), "w", np.float32)

    @ag.function(policy=opt.policy)
    def both(x: Any) -> Any:
        loss = np.sum(x @ w)
        plain = ag.gradients(loss, [w])
        scaled = ag.gradients(opt.get_scaled_loss(loss), [w])
        return plain, scaled, opt.get_unscaled_gradients(scaled)

    plain, scaled, unscaled = both(np.ones((2, 4), np.float32))
    assert [array[0].tolist() for array in (plain, scaled, unscaled)] == [[2.0] * 4, [2048.0] * 4, [2.0] * 4]


@pytest.mark.parametrize(
    ("color", "ops"),
    [
        ("clear", ["ArgMax", "Floor"]),
        ("allow", ["Conv2D", "MatMul"]),
        ("deny", ["SoftmaxCrossEntropyWithLogits", "Exp"]),
        ("gray", ["AddV2", "AvgPool"]),
    ],
)
def test_operations_are_on_the_list_that_is_promised(color: str, ops: list[str]) -> None:
    known = ag.Policy().lists()
    assert {op: known.list_of(op) for op in ops} == dict.fromkeys(ops, lists.Color(color))


def test_softmax_is_gray_as_in_the_lists_of_today_and_can_be_denied() -> None:
    assert ag.Policy().lists().list_of("Softmax") is lists.Color.GRAY  # it was on the DenyList before kernels summed in float32
    assert ag.Policy(ops=("Softmax=deny",)).lists().list_of("Softmax") is lists.Color.DENY


def test_gray_operations_are_low_unless_they_follow_a_denied_one() -> None:
    w = ag.Variable(np.ones((64, 64)), "w", np.float32)

    @ag.function(policy=ag.Policy())
    def forward(x: Any) -> Any:
        with ag.name_scope("after_product"):
            a = (x @ w + 1.0) @ w
        with ag.name_scope("after_exp"):
            b = np.exp(a) + 1.0
        return b @ w

    forward(X)
    program = program_of(forward)
    add_low, add_wide = (
        next(n.name for n in program.graph.nodes if n.name.startswith(f"{s}/Add")) for s in ("after_product", "after_exp")
    )
    assert (program.dtype(add_low), program.dtype(add_wide)) == (HALF, SINGLE)


def test_code_outside_of_functions_is_not_affected() -> None:
    opt = enabled()
    w = ag.Variable(np.ones((64, 8)), "w", np.float32)
    product = X @ w
    assert isinstance(product, np.ndarray)
    assert product.dtype == np.float32
    np.testing.assert_array_equal(product, X @ np.ones((64, 8), np.float32))
    opt.apply_gradients([(np.ones((64, 8), np.float32), w)])
    np.testing.assert_array_equal(w.value, np.ones((64, 8), np.float32) - np.float32(0.1))


@pytest.mark.parametrize(("target", "low"), [("gpu:6.1", False), ("gpu:7.0", True), ("gpu:7.5", True), ("gpu:9.0", True)])
def test_gpus_below_compute_capability_7_are_left_alone(target: str, low: bool) -> None:
    step, _ = mlp_step(enabled(target=target))
    if low:
        step(X, Y)
    else:
        with pytest.warns(RuntimeWarning, match=r"Nothing in step.*7\.0"):
            step(X, Y)
    assert bool(low_nodes(program_of(step).graph)) == low


@pytest.mark.parametrize("device", ["/device:CPU:0", "/device:TPU:0"])
def test_parts_on_other_devices_are_not_affected(device: str) -> None:
    graph = ag.trace(lambda x: (x @ x, x @ x + 1), ag.TensorSpec([8, 8]))
    placed, free = (node for node in graph.nodes if node.op_type == "MatMul")
    placed.device = device
    found = ag.auto_mixed_precision(graph, target="gpu:8.0").graph
    assert found.node(placed.name).types["T"] is SINGLE
    assert found.node(free.name).types["T"] is HALF


def test_the_graph_is_built_in_float32_and_only_what_runs_is_changed() -> None:
    step, w = mlp_step(enabled())
    result = step(X, Y)
    (found,) = step.cache.values()
    assert not low_nodes(found.graph)
    assert (w.dtype, result.loss.dtype) == (np.float32, np.float32)


def test_the_dtype_of_any_tensor_can_be_asked_for() -> None:
    step, _ = mlp_step(enabled())
    step(X, Y)
    (found,) = step.cache.values()
    assert (found.dtype("MatMul"), found.dtype("x"), program_of(step).dtype("MatMul")) == (HALF, SINGLE, HALF)


def test_a_layer_can_be_kept_in_float32_and_nothing_raises_a_type_error() -> None:
    opt = enabled(None, 1024)  # with any start values no gradient overflows
    low, wide = layers.Dense(2), layers.Dense(2, dtype="float32")

    @ag.function
    def step(x: Any) -> Any:
        return opt.minimize(np.mean(np.square(low(x) + wide(x))))

    assert step(X).applied
    products = {node.name: node.types["T"] for node in program_of(step).graph.nodes if node.op_type == "MatMul"}
    assert {name for name, dtype in products.items() if dtype is SINGLE and "dense_1" in name} == {
        "dense_1/MatMul",
        "gradients/dense_1/MatMul_grad/MatMul_1",
    }
    assert products["dense/MatMul"] is products["gradients/dense/MatMul_grad/MatMul_1"] is HALF


def test_sizes_that_tensor_cores_do_not_like_are_named() -> None:
    graph = ag.trace(lambda x, w, v: (x @ w) @ v, *(ag.TensorSpec(shape) for shape in ([100, 64], [64, 300], [300, 10])))
    advice = ag.advise(graph, powers_of_two=True)
    assert {node.node: dict(node.padding) for node in advice.to_pad} == {
        "MatMul": {"M": 128, "N": 304},
        "MatMul_1": {"M": 128, "K": 304, "N": 16},
    }


def test_it_works_without_layers() -> None:
    step, _ = mlp_step(enabled(train.Adam(0.01)))
    losses = [float(step(X, Y).loss) for _ in range(50)]
    assert losses[-1] < losses[0] * 0.6


def test_float16_values_take_half_the_memory() -> None:
    def bytes_of_product(opt: Any) -> int:
        step, _ = mlp_step(opt)
        step(X, Y)
        plain = ag.compile(program_of(step).graph, fuse=False)
        plain.state.update(program_of(step).state)
        sizes: list[int] = []
        plain({"x": X, "y": Y}, on_value=lambda v, a: sizes.append(a.nbytes) if v.name == "MatMul" else None)
        return sum(sizes)

    assert bytes_of_product(enabled()) * 2 == bytes_of_product(train.SGD(0.1)) == 32 * 8 * 4
