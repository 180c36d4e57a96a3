"""What `ampgraph.explain` says, of everything it takes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import ampgraph as ag
from ampgraph import train
from ampgraph.cli import program

GRAPH = """graph g() {
  %x: f32[8,8] = tf.Placeholder<dtype=f32>() {shape=shape[8,8]}
  %i: i32 = tf.Placeholder<dtype=i32>()
  %h: f32[8,8] = tf.MatMul<T=f32>(%x, %x)
  %y: f32[8,8] = tf.Exp<T=f32>(%h)
  return %y, %i
}"""
X = np.ones((8, 8), np.float32)


def test_a_table_for_each_signature_of_a_training_step() -> None:
    w = ag.Variable(np.eye(8), "w", np.float32)
    opt = ag.enable_mixed_precision_graph_rewrite(train.SGD(0.1), target="cpu")

    @ag.function
    def step(x: Any) -> Any:
        return opt.minimize(np.mean(np.exp(x @ w)))

    step(X)
    step(X[:4])
    first, second = str(ag.explain(step)).split("\n\n")
    for text, title in [(first, "step(x: f32[8,8])"), (second, "step(x: f32[4,8])")]:
        lines = text.splitlines()
        assert lines[0] == title
        assert lines[1].split() == ["op", "dtype", "types", "the", "first", "of", "them,", "and", "why"]
        rows = {tuple(line.split()[:2]): line for line in lines[2:]}
        assert "MatMul: MatMul is on the AllowList (" in rows["MatMul", "float16"]
        assert "Exp: Exp is on the DenyList (" in rows["Exp", "float32"]
    lines = str(ag.explain(step, "Exp", "MatMul")).splitlines()
    assert [line.split()[:4] for line in lines if line and not line.startswith("step(")] == [
        ["MatMul", "(MatMul)", "T:", "float16:"],
        ["Exp", "(Exp)", "T:", "float32:"],
    ] * 2
    (found,) = ag.explain(step.specialize(X), "Exp")
    assert (found.node, found.low, found.reason) == ("Exp", False, "deny_list")


def test_says_that_nothing_was_decided() -> None:
    @ag.function
    def plain(x: Any) -> Any:
        return np.exp(x)

    assert str(ag.explain(plain)) == "note: plain has not been traced yet, so nothing was decided; call it first"
    plain(X)
    for text in (str(ag.explain(plain)), str(ag.explain(plain, "Exp"))):
        assert text.startswith(
            "plain(x: f32[8,8])\nnote: it is not rewritten: neither policy= of ampgraph.function nor an optimizer"
        )
    assert str(ag.explain(plain.specialize(X))).startswith("note: it is not rewritten")
    with pytest.raises(ag.GraphError, match=r"No node is called 'Ex'. Did you mean 'Exp'\?"):
        ag.explain(plain, "Ex")


def test_a_function_that_is_a_method() -> None:
    class Thing:
        product = ag.function(lambda self, x: x @ x, policy=ag.Policy(target="cpu"))

    thing = Thing()
    thing.product(X)
    assert [item.dtype for item in ag.explain(thing.product, "MatMul")] == ["float16"]


def test_results_reports_and_graphs() -> None:
    graph = ag.parse_graph(GRAPH)
    result = ag.auto_mixed_precision(graph)
    for what in (graph, result, result.report):
        assert [(item.node, item.dtype) for item in ag.explain(what)] == [("x", "float32"), ("h", "float16"), ("y", "float32")]
        assert str(ag.explain(what, "h")).startswith("h (MatMul) T: float16: MatMul is on the AllowList (")
        assert str(ag.explain(what, "i")) == "note: node 'i' has no type to decide about: none is float32"
        with pytest.raises(ag.GraphError, match="No node is called 'h/Cast'"):
            ag.explain(what, "h/Cast")
    old = ag.auto_mixed_precision(graph, target="gpu:6.1")
    assert "compute capability 7.0" in str(ag.explain(old, "h"))
    assert repr(ag.explain(old)) == f"note: {old.report.notes[0]}"


def test_says_what_the_command_says(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text(GRAPH)
    runner = CliRunner()
    for nodes in ((), ("y",), ("h", "y")):
        assert runner.invoke(program, ["explain", str(path), *nodes]).stdout == f"{ag.explain(ag.load(path), *nodes)}\n"


def test_other_things_are_refused() -> None:
    with pytest.raises(ag.GraphError, match=r"explain takes a function made by ampgraph.function, .* Received: <built-in"):
        ag.explain(len)


def test_a_model_is_its_training_step() -> None:
    model = ag.Sequential([train.layers.Dense(8, activation="relu"), train.layers.Dense(8)])
    with pytest.raises(ag.TrainingError, match="says how <Sequential 'sequential'> is trained"):
        ag.explain(model)
    model.compile(ag.enable_mixed_precision_graph_rewrite(train.SGD(0.1)), "mse")
    assert str(ag.explain(model)).startswith("note: train_step has not been traced yet")
    model.fit(X, X, verbose=0)
    assert [item.dtype for item in ag.explain(model, "dense/MatMul")] == ["float16"]
    assert str(ag.explain(model)).startswith("train_step(x: f32[8,8], y: f32[8,8])\n")
