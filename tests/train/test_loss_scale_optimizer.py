"""The optimizer that scales the loss: what it drops, says and refuses."""

import math
from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph import LossScaleOptimizer, train

from .variables import Box

NAN, INF = float("nan"), float("inf")


def pair(gradient: list[float], box: Box) -> list[tuple[Any, Box]]:
    return [(np.array(gradient, np.float32), box)]


def test_a_scaled_loss_gives_gradients_that_are_unscaled() -> None:
    optimizer = LossScaleOptimizer(train.SGD(), 1024)
    loss = optimizer.get_scaled_loss(np.float16(100))
    assert (loss, loss.dtype) == (102400, np.float32)  # more than float16 has
    assert optimizer.get_scaled_loss(2) == 2048
    assert optimizer.get_scaled_loss(np.float64(0.1)).dtype == np.float64
    half, none = optimizer.get_unscaled_gradients([np.array([2.0**-14], np.float16), None])
    assert (half.tolist(), half.dtype, none) == ([2.0**-24], np.float32, None)


def test_a_step_that_is_not_finite_changes_nothing_but_the_scale() -> None:
    optimizer, a, b = LossScaleOptimizer(train.Adam(0.1)), Box("a", [1.0]), Box("b", [1.0])
    first = optimizer.apply_gradients([*pair([1], a), *pair([3], b)], loss=0.5)
    assert first == (0.5, True, 2.0**15, 1, pytest.approx(10**0.5))
    slots = {name: {slot: array.tolist() for slot, array in row.items()} for name, row in optimizer.inner.slots.items()}
    values = a.value.tolist(), b.value.tolist()
    for bad in (NAN, INF, -INF):
        result = optimizer.apply_gradients([*pair([1], a), *pair([bad], b)])
        assert (result.applied, result.global_step, math.isfinite(result.grad_norm or 0.0)) == (False, 1, False)
    assert optimizer.loss_scale.scale == 2.0**12
    assert (a.value.tolist(), b.value.tolist(), a.assigned, b.assigned) == (*values, 1, 1)
    assert slots == {name: {slot: array.tolist() for slot, array in row.items()} for name, row in optimizer.inner.slots.items()}


def test_a_fixed_scale_that_skips_nothing_applies_everything() -> None:
    optimizer, box = LossScaleOptimizer(train.SGD(1.0), ag.FixedLossScale(8, skip_nonfinite=False)), Box("w", [1.0])
    assert optimizer.apply_gradients(pair([INF], box)).applied
    assert box.value.tolist() == [-INF]


def test_gradients_are_averaged_over_calls() -> None:
    optimizer, a, b = LossScaleOptimizer(train.SGD(1.0), accumulation_steps=3), Box("a", [0.0]), Box("b", [0.0])
    given = np.array([3.0], np.float32)
    for gradients in ([(given, a), (None, b)], [(given, a), (np.array([6.0], np.float16), b)]):
        *result, norm = optimizer.apply_gradients(gradients, loss=1.0)
        assert (result, math.isnan(norm)) == ([1.0, False, 2.0**15, 0], True)
    assert given.tolist() == [3.0]
    assert optimizer.apply_gradients([(None, a), (None, b)]).applied
    assert (a.value.tolist(), b.value.tolist()) == ([-2.0], [-2.0])
    for gradient in ([INF], [1.0], [1.0]):
        last = optimizer.apply_gradients(pair(gradient, a))
    assert (last.applied, last.global_step, last.loss_scale) == (False, 1, 2.0**14)


def test_a_call_that_makes_a_step_names_all_variables() -> None:
    optimizer, a, b = LossScaleOptimizer(train.SGD(1.0), accumulation_steps=2), Box("a", [0.0]), Box("b", [0.0])
    optimizer.apply_gradients(pair([1], a))
    with pytest.raises(ag.TrainingError, match=r"names all variables with gradients. Received: none for \['a'\]"):
        optimizer.apply_gradients(pair([1], b))


def test_several_wrapped_optimizers_know_nothing_of_each_other() -> None:
    one, two, box = LossScaleOptimizer(train.SGD(1.0)), LossScaleOptimizer(train.SGD(1.0)), Box("w", [1.0])
    one.apply_gradients(pair([NAN], box))
    two.apply_gradients(pair([1.0], box))
    assert (one.loss_scale.scale, one.global_step) == (2.0**14, 0)
    assert (two.loss_scale.scale, two.global_step) == (2.0**15, 1)


def test_a_loss_that_is_not_finite_is_told_apart_once() -> None:
    optimizer, box = LossScaleOptimizer(train.SGD(1.0)), Box("w", [1.0])
    optimizer.apply_gradients(pair([INF], box), loss=1.0)  # only gradients overflowed: no warning
    with pytest.warns(RuntimeWarning, match=r"The loss itself is nan, after 0 steps: a smaller loss scale will not help"):
        optimizer.apply_gradients(pair([NAN], box), loss=NAN)
    optimizer.apply_gradients(pair([NAN], box), loss=NAN)  # said already
    optimizer.apply_gradients(pair([1.0], box), loss=1.0)
    with pytest.warns(RuntimeWarning, match="The loss itself is inf, after 1 steps"):
        optimizer.apply_gradients(pair([1.0], box), loss=INF)


@pytest.mark.parametrize(("scale", "skips"), [(ag.DynamicLossScale(4.0), 2), (128, 0)])
def test_says_which_gradient_keeps_training_from_getting_on(scale: Any, skips: int) -> None:
    box, fine = Box("dense/kernel", [1.0]), Box("fine", [1.0])
    bad = [*pair([1.0], fine), *pair([INF], box)]
    optimizer = LossScaleOptimizer(train.SGD(1.0), scale, max_skips=3)
    for _ in range(skips + 2):  # the scale goes down, then three steps are dropped where it cannot
        optimizer.apply_gradients(bad)
    with pytest.warns(
        RuntimeWarning, match=r"3 steps in a row were dropped at the loss scale 1.*gradient of 'dense/kernel' is not"
    ):
        optimizer.apply_gradients(bad)
    optimizer.apply_gradients(bad)  # warned once
    optimizer = LossScaleOptimizer(train.SGD(1.0), 1000.1, max_skips=2, on_stall="raise")
    optimizer.apply_gradients(bad)
    optimizer.apply_gradients(pair([1.0], box))  # no longer in a row
    optimizer.apply_gradients(bad)
    with pytest.raises(ag.TrainingError, match=r"2 steps in a row were dropped at the loss scale 1000.1"):
        optimizer.apply_gradients(bad)


@pytest.mark.parametrize("opt", ["sgd", None, train.SGD, 3, object()], ids=repr)
def test_what_is_no_optimizer_is_refused(opt: Any) -> None:
    with pytest.raises(ValueError, match=r"An optimizer of ampgraph\.train is needed, such as SGD"):
        ag.enable_mixed_precision_graph_rewrite(opt)
    with pytest.raises(ag.TrainingError, match=r"An optimizer is needed\. Received: "):
        ag.disable_mixed_precision_graph_rewrite(opt)


def test_wrapping_twice_is_refused() -> None:
    wrapped = ag.enable_mixed_precision_graph_rewrite(train.SGD())
    with pytest.raises(ValueError, match="scales its loss already"):
        ag.enable_mixed_precision_graph_rewrite(wrapped)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("loss_scale", ["fixed", None, 0, -1, 0.5, NAN, True, [2]], ids=repr)
def test_bad_loss_scales_are_refused(loss_scale: Any) -> None:
    with pytest.raises(ValueError, match="Received: "):
        ag.enable_mixed_precision_graph_rewrite(train.SGD(), loss_scale)


def test_enabling_says_what_to_rewrite_for() -> None:
    inner = train.SGD()
    wrapped = ag.enable_mixed_precision_graph_rewrite(inner, 64, dtype="bfloat16", target="cpu")
    assert isinstance(wrapped, LossScaleOptimizer)
    assert wrapped.policy == ag.Policy(dtype="bfloat16", target="cpu")
    assert wrapped.loss_scale == ag.FixedLossScale(64.0)
    assert ag.disable_mixed_precision_graph_rewrite(wrapped) is inner
    with pytest.warns(RuntimeWarning, match=r"SGD\(\) is not wrapped"):
        assert ag.disable_mixed_precision_graph_rewrite(inner) is inner
    for options in ({"dtype": "float32"}, {"target": "abacus"}):
        with pytest.raises(ag.PolicyError, match="Received: "):
            ag.enable_mixed_precision_graph_rewrite(inner, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"accumulation_steps": 0}, "accumulation_steps is a positive integer. Received: 0"),
        ({"max_skips": 1.5}, "max_skips is a positive integer. Received: 1.5"),
        ({"on_stall": "shout"}, "on_stall is 'warn' or 'raise'. Received: 'shout'"),
    ],
)
def test_bad_options_are_refused(options: Any, message: str) -> None:
    with pytest.raises(ag.TrainingError, match=message):
        LossScaleOptimizer(train.SGD(), **options)
