"""The node that ends a training step does what the optimizer on the host does, its state in variables."""

from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph import DynamicLossScale, LossScaleOptimizer, Shape, Tensor, train
from ampgraph.graph.graph import Node
from ampgraph.kernels.loss_scaling import ScaleRules
from tests.train.step_graph import STARTS, StepGraph
from tests.train.variables import Box


def outputs(step: StepGraph, results: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return what the node says, and what variables hold."""
    values = list(results.values())
    return [value.item() for value in values[:4]], dict(zip(step.names, values[4:], strict=True))


OPTIMIZERS = [
    train.SGD(0.1),
    train.SGD(0.1, momentum=0.9, nesterov=True),
    train.AdamW(0.1, weight_decay=0.1, clipnorm=0.5),
    train.RMSprop(0.1, momentum=0.5, clipvalue=0.3),
    train.Adagrad(0.1),
    train.LAMB(0.1, global_clipnorm=1.0),
]


@pytest.mark.parametrize("inner", OPTIMIZERS, ids=repr)
def test_steps_as_the_optimizer_on_the_host_does(inner: train.Optimizer) -> None:
    optimizer = LossScaleOptimizer(inner, DynamicLossScale(8.0, growth_interval=2, hysteresis=2))
    step, rng = StepGraph(optimizer), np.random.default_rng(3)
    program, boxes = step.program(), [Box(f"v{i}", start) for i, start in enumerate(STARTS)]
    for bad in (None, None, np.inf, np.nan, None, None, None):
        scale = optimizer.loss_scale.scale
        gradients = [rng.standard_normal(box.value.shape).astype(np.float32) * np.float32(scale) for box in boxes]
        if bad is not None:
            gradients[1][0, 1] = bad
        said, held = outputs(step, program({f"g{i}": gradient for i, gradient in enumerate(gradients)}))
        result = optimizer.apply_gradients(zip(optimizer.get_unscaled_gradients(gradients), boxes, strict=True))
        assert said[:3] == [result.applied, result.loss_scale, result.global_step]
        assert said[3] == pytest.approx(result.grad_norm, nan_ok=True)
        for box in boxes:
            assert held[box.name].tobytes() == box.value.tobytes()
            for slot, array in inner.slots[box.name].items():
                assert held[f"{box.name}/{slot}"].tobytes() == array.tobytes()
        state = optimizer.loss_scale
        assert isinstance(state, DynamicLossScale)
        assert (held["good_steps"], held["bad_steps"], held["global_step"]) == (
            state.good_steps,
            state.bad_steps,
            optimizer.global_step,
        )
    assert (optimizer.loss_scale.scale, optimizer.global_step) == (16.0, 5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_low_gradients_are_widened_before_they_are_unscaled(dtype: str) -> None:
    step = StepGraph(LossScaleOptimizer(train.SGD(1.0), 1024))
    low = StepGraph(LossScaleOptimizer(train.SGD(1.0), 1024), dtype)
    gradients = [np.full(np.shape(start), 2.0**-14, ag.find_dtype(dtype).numpy) for start in STARTS]
    _, wanted = outputs(step, step.program()({f"g{i}": g.astype(np.float32) for i, g in enumerate(gradients)}))
    _, held = outputs(low, low.program()({f"g{i}": g for i, g in enumerate(gradients)}))
    assert held["v1"].tolist() == wanted["v1"].tolist() == (np.array(STARTS[1], np.float32) - np.float32(2.0**-24)).tolist()


def test_gradients_that_are_no_longer_scaled_are_taken_as_they_are() -> None:
    step = StepGraph(LossScaleOptimizer(train.SGD(1.0), 1024), scaled=False)
    said, held = outputs(step, step.program()({"g0": np.ones(3, np.float32), "g1": np.zeros((2, 2), np.float32)}))
    assert held["v0"].tolist() == [0.0, -3.0, -0.5]
    assert said == [True, 1024.0, 1, pytest.approx(3**0.5)]


def test_the_rewrite_leaves_the_node_and_its_gradients_in_float32() -> None:
    step = StepGraph(LossScaleOptimizer(train.SGD(1.0), 1024))
    graph = step.graph
    x = graph.add_input("x", ag.find_dtype("float32"), Shape((2, 2)))
    product = graph.add("MatMul", [x, x], types={"T": ag.find_dtype("float32")})
    graph.set_input(step.node, len(step.node.inputs) - 1, product.outputs[0])
    result = ag.auto_mixed_precision(graph, target="gpu")
    ag.verify(result.graph)
    assert result.graph.node(product.name).types["T"].name == "float16"
    assert {dtype.name for dtype in result.graph.node(step.node.name).types.values()} == {"float32"}


def test_the_text_form_keeps_it() -> None:
    graph = StepGraph(LossScaleOptimizer(train.Adam())).graph
    assert str(ag.parse_graph(str(graph))) == str(graph)


def changed(attributes: dict[str, Any]) -> ag.Program:
    step = StepGraph(LossScaleOptimizer(train.SGD(1.0, momentum=0.5)))
    node: Node = step.node
    node.attributes = {**node.attributes, **attributes}
    return step.program()


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"rule": b"guess"}, "knows the rules sgd, momentum.*Received: 'guess'"),
        ({"rule": b"sgd", "numbers": Tensor.of([], "float64")}, "Rule sgd has 0 slots for each of 2 variables.*Received: M=2"),
        ({"accumulation_steps": 2}, "each has an accumulator if .*Received: M=2, A=0, accumulation_steps=2"),
        ({"clip": b"hair"}, "clips by value, norm, global_norm, or not at all. Received: 'hair'"),
        ({"numbers": Tensor.of([], "float64")}, "needs the 1 numbers of rule momentum, and 6 or no numbers"),
        ({"scale_rules": Tensor.of([2.0], "float64")}, "needs the 1 numbers of rule momentum, and 6 or no numbers"),
    ],
)
def test_attributes_that_make_no_sense_are_refused(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(ag.KernelError, match=message):
        changed(attributes)({"g0": np.ones(3, np.float32), "g1": np.zeros((2, 2), np.float32)})


def test_a_gradient_of_another_shape_is_refused() -> None:
    step = StepGraph(LossScaleOptimizer(train.SGD(1.0)))
    step.starts["v0"] = np.zeros(4, np.float32)
    with pytest.raises(ag.KernelError, match=r"Variable 'v0' must be .* of its shape. Received: float32\[4\], .* float32\[3\]"):
        step.program()({"g0": np.ones(3, np.float32), "g1": np.zeros((2, 2), np.float32)})


def test_the_rules_are_those_of_the_host() -> None:
    assert DynamicLossScale().rules == ScaleRules()
