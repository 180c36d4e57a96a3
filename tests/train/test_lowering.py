"""Training steps in ops of TensorFlow do what the node does, step after step."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ampgraph as ag
from ampgraph import DynamicLossScale, FixedLossScale, Graph, LossScaleOptimizer, train
from ampgraph.kernels.handle import Handle
from ampgraph.kernels.update_rules import UPDATE_RULES
from ampgraph.train.lowering import lower_apply_gradients

from .step_graph import StepGraph

#: An optimizer for each rule.
RULES = {
    "sgd": train.SGD,
    "momentum": lambda rate, **clip: train.SGD(rate, momentum=0.9, **clip),
    "nesterov": lambda rate, **clip: train.SGD(rate, momentum=0.9, nesterov=True, **clip),
    "adam": lambda rate, **clip: train.AdamW(rate, weight_decay=0.1, **clip),
    "rmsprop": train.RMSprop,
    "rmsprop_momentum": lambda rate, **clip: train.RMSprop(rate, momentum=0.5, **clip),
    "adagrad": train.Adagrad,
    "lamb": train.LAMB,
}
CLIPS: list[dict[str, float]] = [{}, {"clipvalue": 0.3}, {"clipnorm": 0.5}, {"global_clipnorm": 1.0}]


def test_there_is_an_optimizer_for_every_rule() -> None:
    assert {name: make(0.1).update.rule.name for name, make in RULES.items()} == {name: name for name in UPDATE_RULES}


def run_both(step: StepGraph, gradients: list[list[Any]]) -> None:
    """Run the node and what it is lowered to on the same gradients; compare results and all state after each step."""
    programs = step.program(), step.program(lower_apply_gradients(step.graph))
    for values in gradients:
        feeds = {f"g{i}": value for i, value in enumerate(values)}
        programs[1].state.update({Handle(name): programs[0].state[Handle(name)] for name in step.starts})
        wanted, got = (program(feeds) for program in programs)
        for name, a in wanted.items():
            b = got[name]
            assert a.dtype == b.dtype
            if name == "grad_norm":
                np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-22)
            elif a.dtype.kind == "f" and a.ndim:
                np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-6, err_msg=name)
            else:
                assert a == b, name


@st.composite
def steps(draw: st.DrawFn) -> tuple[StepGraph, list[list[Any]]]:
    make = RULES[draw(st.sampled_from(sorted(RULES)))]
    inner = make(draw(st.sampled_from([0.0, 0.1, 0.01])), **draw(st.sampled_from(CLIPS)))
    dynamic = st.builds(
        DynamicLossScale,
        st.sampled_from([1.0, 8.0, 1000.0, 2.0**127]),
        growth_interval=st.integers(1, 3),
        growth_factor=st.sampled_from([2.0, 1.5]),
        backoff_factor=st.sampled_from([0.5, 0.3]),
        floor=st.sampled_from([1.0, 0.25]),
        hysteresis=st.integers(1, 3),
    )
    scale = draw(st.one_of(dynamic, st.builds(FixedLossScale, st.sampled_from([1.0, 128.0]))))
    dtype = draw(st.sampled_from(["float16", "bfloat16", "float32"]))
    skip = draw(st.booleans())
    optimizer = LossScaleOptimizer(inner, scale, accumulation_steps=draw(st.sampled_from([1, 1, 2, 3])))
    step = StepGraph(optimizer, dtype, scaled=draw(st.booleans()), skip_nonfinite=skip)
    numbers = np.random.default_rng(draw(st.integers(0, 999)))
    special = st.sampled_from([0.0, 1.0, 1.0, 1.0, 3e4, 1e-6, np.inf, -np.inf, np.nan])
    rows = draw(st.lists(st.tuples(special, special), min_size=1, max_size=5))
    kind = ag.find_dtype(dtype).numpy
    with np.errstate(all="ignore"):
        return step, [
            [
                (numbers.standard_normal((3,)) * first).astype(kind),
                np.where([[True, True], [True, False]], numbers.standard_normal((2, 2)), second).astype(kind),
            ]
            for first, second in rows
        ]


@settings(max_examples=60, deadline=None)
@given(steps())
def test_does_what_the_node_does(case: tuple[StepGraph, list[list[Any]]]) -> None:
    run_both(*case)


@pytest.mark.parametrize("clip", CLIPS, ids=str)
@pytest.mark.parametrize("rule", RULES)
def test_is_made_of_tensorflow_ops_for_every_rule(rule: str, clip: dict[str, float], tmp_path: Path) -> None:
    step = StepGraph(LossScaleOptimizer(RULES[rule](0.1, **clip), DynamicLossScale(8.0, growth_interval=2)))
    ag.verify(lower_apply_gradients(step.graph))
    gradients = np.random.default_rng(1).standard_normal((6, 7)).astype(np.float32)
    gradients[3, 2] = np.inf
    run_both(step, [[row[:3], row[3:].reshape(2, 2)] for row in gradients])
    for name in ("step.pb", "step.pbtxt", "step.pb.gz"):
        ag.save(step.graph, tmp_path / name)
        assert {node.domain for node in ag.load(tmp_path / name).nodes} == {"tf"}
    ag.save(step.graph, tmp_path / "step.json")
    assert ag.load(tmp_path / "step.json").node(step.node.name).op_type == "ApplyGradients"


@pytest.mark.parametrize("clip", CLIPS, ids=str)
def test_takes_float64_as_it_is_even_where_squares_overflow(clip: dict[str, float]) -> None:
    step = StepGraph(LossScaleOptimizer(train.SGD(1.0, **clip), 1), "float64", "float64")
    run_both(step, [[np.array([1.0, -2.0, 3.0]), np.ones((2, 2))], [np.array([1e200, -3e200, 0.0]), np.ones((2, 2))]])


def test_names_results_and_order_stay() -> None:
    step = StepGraph(LossScaleOptimizer(train.SGD(1.0), 1024))
    read = step.graph.add("ReadVariableOp", [step.graph.value("v0")], name="before", types={"dtype": ag.find_dtype("f32")})
    step.graph.set_control(step.node, [read])
    before = str(step.graph)
    lowered = lower_apply_gradients(step.graph)
    assert str(step.graph) == before
    node = lowered.node(step.node.name)
    assert (node.op_type, [value.name for value in lowered.outputs]) == ("IdentityN", [v.name for v in step.graph.outputs])
    assert {source.op_type for source in node.controls} == {"AssignVariableOp"}
    reads = [other for other in lowered.nodes if other.name.startswith(f"{node.name}/") and other.op_type == "ReadVariableOp"]
    assert len(reads) == 7
    assert all([source.name for source in other.controls] == ["before"] for other in reads)


def test_a_graph_without_steps_is_left_alone() -> None:
    graph = Graph()
    assert lower_apply_gradients(graph) is graph


def test_a_rewrite_for_float16_ends_before_the_step() -> None:
    """The gradient of an AllowList op may become float16; what the step makes of it does not."""
    step = StepGraph(LossScaleOptimizer(train.Adam(1.0), 1024))
    graph, float32 = step.graph, ag.find_dtype("float32")
    x = graph.add_input("x", float32, ag.Shape((2, 2)))
    product = graph.add("MatMul", [x, x], types={"T": float32})
    follower = graph.add("Relu", [product.outputs[0]], types={"T": float32})
    graph.set_input(step.node, len(step.node.inputs) - 1, follower.outputs[0])
    result = ag.auto_mixed_precision(lower_apply_gradients(graph), preset="grappler", target="gpu")
    low = {node.op_type for node in result.graph.nodes if "float16" in {dtype.name for dtype in node.types.values()}}
    assert low == {"MatMul", "Relu", "Cast"}
    inside = [node for node in result.graph.nodes if node.name.startswith(f"{step.node.name}/") and node.op_type != "Cast"]
    assert all("float16" not in {dtype.name for dtype in node.types.values()} for node in inside)


def test_a_step_on_variables_of_another_graph_is_refused() -> None:
    step = StepGraph(LossScaleOptimizer(train.SGD(1.0), 1024))
    handle = step.graph.add_input("elsewhere", ag.find_dtype("resource"))
    step.graph.set_input(step.node, 0, handle)
    with pytest.raises(ag.GraphError, match="changes variables of its own graph"):
        lower_apply_gradients(step.graph)
