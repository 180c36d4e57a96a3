"""Training at its edges: arrays without sizes, threads, shared optimizers, and arguments that make no sense."""

import threading
import warnings
from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph import DynamicLossScale, LossScaleOptimizer, train

X = np.random.default_rng(3).standard_normal((16, 8)).astype(np.float32)


@pytest.mark.parametrize("accumulation_steps", [1, 2])
@pytest.mark.parametrize("make", [train.SGD, train.Adam, train.LAMB])
def test_variables_without_sizes_on_the_host_and_in_graphs(make: Any, accumulation_steps: int) -> None:
    host, graph = (LossScaleOptimizer(make(0.1), 8.0, accumulation_steps=accumulation_steps) for _ in range(2))
    v, w = ag.Variable(2.0, "w"), ag.Variable(2.0, "w")
    step = ag.function(lambda x: graph.minimize(w * np.sum(x)))
    for _ in range(4):
        result = step(np.array([1, 2], np.float32))
        expected = host.apply_gradients([(np.float32(3), v)])
        assert (bool(result.applied), int(result.global_step)) == (expected.applied, expected.global_step)
    assert v.value < 2.0
    assert isinstance(w.value, np.ndarray)
    assert v.value.tobytes() == w.value.tobytes()
    one, two = host.state_dict(), graph.state_dict()
    assert {name: np.asarray(array).tobytes() for name, array in one.items()} == {
        name: np.asarray(array).tobytes() for name, array in two.items()
    }


def test_threads_do_not_lose_each_others_steps() -> None:
    optimizer = LossScaleOptimizer(train.Adam(0.01))
    w, calls = ag.Variable(X[:8, :4], "w"), ag.Variable(0, "calls")

    @ag.function
    def step(x: Any) -> Any:
        calls.assign_add(1)
        return optimizer.minimize(np.mean(np.square(x @ w)))

    def run(count: int) -> None:
        for _ in range(25):
            step(X[:count])

    threads = [threading.Thread(target=run, args=(count,)) for count in (16, 16, 8, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (optimizer.global_step, int(calls.value)) == (100, 100)
    assert len(step.cache) == 3


def test_a_loss_of_one_number_may_have_any_shape_and_other_losses_are_refused() -> None:
    optimizer, w = LossScaleOptimizer(train.SGD(0.1), 8.0), ag.Variable(X[:8, :4], "w")
    step = ag.function(lambda x: optimizer.minimize(np.mean(np.square(x @ w), keepdims=True)))
    assert (step(X).loss.shape, optimizer.global_step) == ((1, 1), 1)
    before = w.value.tobytes()

    def rows(x: Any) -> Any:
        losses = np.mean(np.square(x @ w), 1)
        return optimizer.apply_gradients(optimizer.compute_gradients(np.mean(losses)), losses)

    with pytest.raises(ag.TrainingError, match="A loss is one symbolic number"):
        ag.function(rows)(X)
    for loss in ("none", np.ones(3), [1.0, 2.0], 1j, object()):
        with pytest.raises(ag.TrainingError, match=r"A loss is one number. Received: "):
            optimizer.apply_gradients([(np.ones((8, 4)), w)], loss)
    assert (w.value.tobytes(), optimizer.global_step) == (before, 1)


def test_variables_come_in_any_container() -> None:
    w, v = ag.Variable(X[:8, :4], "w"), ag.Variable(X[:8, :4], "v")
    for given in (w, {"a": w}, [[w]], iter([w]), {"a": w}.values()):
        optimizer = train.SGD(0.1)
        ag.function(lambda x, o=optimizer, g=given: o.minimize(np.sum(x @ w) + np.sum(x @ v), g))(X)
        assert (optimizer.global_step, v.value.tobytes()) == (1, X[:8, :4].tobytes())
    with pytest.raises(ag.TrainingError, match=r"variables are ampgraph.Variable objects. Received: 5"):
        ag.function(lambda x: train.SGD(0.1).minimize(np.sum(x @ w), 5))(X)


def test_what_optimizers_own_and_what_is_not_trainable_is_not_trained() -> None:
    optimizer = LossScaleOptimizer(train.SGD(0.1), 8.0)
    w, fixed = ag.Variable(np.array([1, 2], np.float32), "w"), ag.Variable(np.array([3, 4], np.float32), "fixed", trainable=False)
    step = ag.function(lambda: optimizer.minimize(optimizer.get_scaled_loss(np.sum(w * fixed))))
    step()
    assert (optimizer.loss_scale.scale, list(optimizer.inner.slots), fixed.value.tolist()) == (8.0, ["w"], [3.0, 4.0])
    ag.function(lambda: train.SGD(1.0).minimize(np.sum(w * fixed), [fixed]))()
    np.testing.assert_allclose(fixed.value, [3, 4] - w.value)


def test_gradients_of_other_variables_do_not_wait_forever() -> None:
    def make() -> Any:
        optimizer = LossScaleOptimizer(train.SGD(1.0), 8.0, accumulation_steps=2)
        w, v = (ag.Variable(np.array([1, 1], np.float32), name) for name in "wv")
        return optimizer, w, v, *(ag.function(lambda x, u=u: optimizer.minimize(np.sum(u * x))) for u in (w, v))  # type: ignore[misc]

    ones = np.ones(2, np.float32)
    optimizer, w, v, first, second = make()
    first(ones)
    with pytest.raises(ag.TrainingError, match=r"Every call that makes a step names all variables .* none for \['w'\]"):
        second(ones)
    first(ones)
    assert first(ones).applied
    assert w.value.tolist() == [0.0, 0.0]
    optimizer, w, v, first, second = make()
    both = ag.function(lambda x: (optimizer.minimize(np.sum(w * x), [w]), optimizer.minimize(np.sum(v * x), [v])))
    with pytest.raises(ag.TrainingError, match=r"none for \['w'\]"):
        both(ones)
    optimizer, w, v, first, second = make()
    for _ in range(2):
        optimizer.apply_gradients([(ones, w), (ones, v)])
    first(ones)
    assert optimizer.state_dict().keys() & {"accumulated/w", "accumulated/v"} == {"accumulated/w"}
    assert optimizer.apply_gradients([(ones, w)]).applied


def test_what_a_warning_interrupts_is_still_saved() -> None:
    optimizer = LossScaleOptimizer(train.SGD(1.0), 8.0, accumulation_steps=2)
    w = ag.Variable(np.array([1, 1], np.float32), "w")
    step = ag.function(lambda x: optimizer.minimize(np.sum(w * x)))
    with pytest.raises(RuntimeWarning, match="The loss itself is nan"):  # warnings are errors here
        step(np.array([np.nan, 1], np.float32))
    np.testing.assert_array_equal(optimizer.state_dict()["accumulated/w"], [np.nan, 1])


def test_gradients_of_several_dtypes_are_accumulated() -> None:
    optimizer = LossScaleOptimizer(train.SGD(1.0), 8.0, accumulation_steps=3)
    w = ag.Variable(np.array([0, 0], np.float32), "w")
    for dtype in (np.float32, np.float64, np.float16):
        result = optimizer.apply_gradients([(np.full(2, 3, dtype), w)])
    assert result.applied
    assert w.value.tolist() == [-3.0, -3.0]


def test_the_run_that_is_looked_into_draws_the_same_random_numbers() -> None:
    optimizer = LossScaleOptimizer(train.SGD(0.0), DynamicLossScale(8.0))
    w = ag.Variable(np.float32(1), "w")

    @ag.function
    def step(x: Any) -> Any:
        drawn = ag.random.uniform((1,), seed=7)
        with ag.name_scope("head"):
            risky = np.log(np.where(drawn < 0.5, x, 0.0))
        return drawn, optimizer.minimize(np.sum(w * risky))

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        draws = [float(step(np.array([1], np.float32))[0][0]) for _ in range(40)]
    assert len(set(draws)) == 40
    assert len(found) > 5
    assert all("is 'head/Log' (Log, float32)" in str(warning.message) for warning in found)


def test_scales_are_float32_numbers_within_their_bounds() -> None:
    for scale in (DynamicLossScale(1000.1, floor=1000.1), DynamicLossScale(0.1, floor=0.05, ceiling=0.1)):
        optimizer = LossScaleOptimizer(train.SGD(0.1), scale)
        assert optimizer.loss_scale == scale
        assert scale.floor <= scale.scale <= scale.ceiling
        assert np.float32(scale.scale) == scale.scale


@pytest.mark.parametrize("accumulation_steps", [1, 2])
def test_what_makes_no_sense_changes_nothing_on_the_host(accumulation_steps: int) -> None:
    optimizer, w = (
        LossScaleOptimizer(train.SGD(0.1), accumulation_steps=accumulation_steps),
        ag.Variable(np.ones(3), "w", np.float32),
    )
    before = repr(optimizer.state_dict())
    for gradient in (["a"] * 3, [None] * 3, [1j] * 3, np.array(["2020"] * 3, "M8[Y]")):
        with pytest.raises(ag.TrainingError, match=r"The gradient of 'w' is of numbers. Received: "):
            optimizer.apply_gradients([(gradient, w)])
    for pairs in (None, 5, [w], [(w,)], [(1, 2, 3)]):
        with pytest.raises(ag.TrainingError, match=r"in pairs with their variables: \[\(gradient, variable\), …\]. Received: "):
            optimizer.apply_gradients(pairs)  # type: ignore[arg-type]
    with pytest.raises(ag.TrainingError, match=r"A variable has a name, a value and a method assign. Received: array"):
        optimizer.apply_gradients([(w, np.ones(2))])  # type: ignore[list-item]
    with pytest.raises(ag.TrainingError, match=r"A loss is of numbers. Received: 'abc'"):
        optimizer.get_scaled_loss("abc")
    with pytest.raises(ag.TrainingError, match=r"A gradient is of numbers. Received: 'abc'"):
        optimizer.get_unscaled_gradients(["abc"])
    assert (repr(optimizer.state_dict()), w.value.tolist()) == (before, [1.0, 1.0, 1.0])


@pytest.mark.parametrize("rate", ["x", None, np.nan, -1.0, np.float32("inf"), np.ones(2)])
def test_what_a_schedule_returns_is_looked_at(rate: Any) -> None:
    optimizer, w = train.SGD(lambda step: rate), ag.Variable(1.0, "w")
    with pytest.raises(ag.TrainingError, match="The learning rate that the schedule returns is a finite number, not negative"):
        optimizer.apply_gradients([(np.float32(1), w)])
    with pytest.raises(ag.TrainingError, match="The learning rate that the schedule returns"):
        ag.function(lambda: optimizer.minimize(w * 2))()
    assert (float(w.value), optimizer.global_step) == (1.0, 0)


WRONG_STATES = [
    np.array("x"),
    np.array([1, 2]),
    np.array(np.nan),
    np.array(-5),
    np.array(None, object),
    np.zeros(0),
    np.array(1 + 2j),
    np.array(b"x"),
    np.array(True),
    np.zeros(3, np.float32),
    None,
    "s",
]


def test_wrong_states_are_refused_and_change_nothing() -> None:
    optimizer = LossScaleOptimizer(train.Adam(0.1), accumulation_steps=2)
    w = ag.Variable(np.array([1, 1], np.float32), "w")
    step = ag.function(lambda x: optimizer.minimize(np.sum(w * x)))
    for _ in range(3):
        step(np.ones(2, np.float32))
    state = optimizer.state_dict()
    before = repr(state)
    assert {"accumulated/w", "inner/slots/w/momentum"} <= state.keys()
    for name in state:
        for wrong in WRONG_STATES:
            with pytest.raises(ag.TrainingError):
                optimizer.load_state_dict({**state, name: wrong})
            assert repr(optimizer.state_dict()) == before
    for wrong in (None, 5, [], {1: np.ones(2)}, {"a": 1}):
        with pytest.raises(ag.TrainingError, match=r"goes on from"):
            optimizer.load_state_dict(wrong)  # type: ignore[arg-type]
    with pytest.raises(ag.TrainingError, match=r"makes a step of every 1 calls. Received: a state after 1"):
        LossScaleOptimizer(train.Adam(0.1)).load_state_dict(state)
    optimizer.load_state_dict(state)
    assert repr(optimizer.state_dict()) == before
    assert step(np.ones(2, np.float32)).applied
