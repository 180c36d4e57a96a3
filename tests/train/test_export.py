"""Functions as files for TensorFlow: training steps in its ops, and a node that starts variables."""

from pathlib import Path

import numpy as np
import pytest

import ampgraph as ag
from ampgraph.train.export import export_graph

W = np.arange(6, dtype=np.float32).reshape(3, 2)


def descend() -> tuple[ag.Function, ag.Variable]:
    """Return a function that makes a step, and the variable that it changes."""
    w = ag.Variable(W, name="w")

    def step(x):  # type: ignore[no-untyped-def]
        loss = np.mean((x @ w) ** 2)
        w.assign_sub(ag.gradients(loss, [w])[0] * np.float32(0.1))
        return loss, w.value

    return ag.Function(step, ag.Policy(target="cpu"), None), w


@pytest.mark.parametrize("rewritten", [True, False])
def test_init_starts_variables_with_what_they_hold_now(rewritten: bool, tmp_path: Path) -> None:
    step, w = descend()
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    step(x)
    exported = step.specialize(x).export(rewritten=rewritten)
    assert exported.attributes["preserved"] == ["init"]
    assert any("float16" in {t.name for t in node.types.values()} for node in exported.nodes) == rewritten
    ag.save(exported, tmp_path / "step.pb")
    start = ag.load(tmp_path / "step.pb", outputs=["w"])
    read = start.add("ReadVariableOp", [start.value("w")], types={"dtype": ag.find_dtype("f32")}, controls=[start.node("init")])
    start.outputs, start.output_names = [read.outputs[0]], ["w"]
    program = ag.compile(ag.load(tmp_path / "step.pb", outputs=["output_0", "output_1"]))
    before = ag.compile(start)
    held = before({})["w"]
    assert held.tobytes() == w.value.tobytes() != W.tobytes()
    program.state.update(before.state)
    loss, after = program({"x": x}).values()
    wanted_loss, wanted = step(x)
    near = 0 if rewritten else 1e-2  # what runs here is in float16
    np.testing.assert_allclose(loss, wanted_loss, rtol=near)
    np.testing.assert_allclose(after, wanted, rtol=near)


def test_the_graph_stays_as_it_was() -> None:
    step, w = descend()
    found = step.specialize(np.ones((4, 3), np.float32))
    before = str(found.program.graph)
    exported = found.export()
    assert str(found.program.graph) == before
    w.assign(W + 1)
    starts = [node for node in exported.nodes if node.name == "init/w/value"]
    assert starts[0].attributes["value"].array().tolist() == W.tolist()


def test_names_that_are_taken_are_left_alone() -> None:
    v = ag.Variable(1.0, name="init")

    def f(x):  # type: ignore[no-untyped-def]
        return x * v

    found = ag.Function(f, None, None).specialize(np.float32(1))
    exported = export_graph(export_graph(found.graph, found.variables), found.variables)
    assert exported.attributes["preserved"] == ["init_1", "init_2"]
    ag.verify(exported)
