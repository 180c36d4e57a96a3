import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

import ampgraph as ag
from ampgraph.cli.demo_model import demo_model
from bench.__main__ import main
from bench.executor import serve, summary
from bench.executor.built import build
from bench.executor.kinds import find_kind
from bench.executor.models import MODELS
from bench.executor.plain import Plain
from bench.executor.process import Process
from bench.executor.turns import time_in_turns
from bench.executor.weights import draw_filled
from bench.onnx.arrays import write_arrays

# Stands in for a Python with the peers: onnxruntime takes no time, the reference evaluator for ever, and a side "crash" is none.
_STAND_IN = """
import os, sys, time
sys.path.insert(0, FOLDER)
from serve import serve
sides = {"onnxruntime": lambda: time.sleep(0.001), "reference": lambda: time.sleep(60), "crash": lambda: os._exit(3)}
serve(lambda question: sides[question["open"]], FACTS | {"threads": os.environ["OPENBLAS_NUM_THREADS"]})
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> Any:
    def make(**facts: str) -> str:
        program, script = tmp_path / "stand_in.py", tmp_path / "python"
        folder = str(Path(serve.__file__).parent)
        program.write_text(f"FOLDER, FACTS = {folder!r}, {facts!r}\n{_STAND_IN}")
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}"\n')
        script.chmod(0o755)
        return str(script)

    return make


def test_made_up_models_beside_peers(tmp_path: Path, stand_in: Any, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "--only", "made_bert", "demo", "--repeat", "2", "--threads", "1", "--patience", "0.5"]
    arguments += ["--peer", stand_in(onnx="1.0", onnxruntime="2.0")]
    assert main([*arguments, "--json", str(tmp_path / "out.json"), "--markdown", str(tmp_path / "out.md")]) == 0
    text = capsys.readouterr().out
    assert "1 thread: medians of the ratios" in text
    content = json.loads((tmp_path / "out.json").read_text())
    assert content["peers"] == {"onnx": "1.0", "onnxruntime": "2.0", "threads": "1"}
    demo, bert = content["models"]
    assert (demo["name"], demo["kind"], demo["drawn"], demo["feeds"]) == ("demo", "transformer", 0, "made up")
    assert bert["sides"].pop("plain, 1")["cpu"]
    for result in (demo, bert):
        assert result["sides"].pop("reference, 1") == {"failed": "over 0.5 s"}
        assert sorted(result["sides"]) == ["bfloat16, 1", "float16, 1", "float32, 1", "onnxruntime, 1"]
        assert all(len(found["cpu"]) == len(found["wall"]) == 2 for found in result["sides"].values())
        assert min(result["sides"]["onnxruntime, 1"]["wall"]) >= 0.001
    page = (tmp_path / "out.md").read_text()
    assert re.search(r"^\| made_bert \| transformer( \| \d+\.\d\d){6} \| over 0\.5 s \|$", page, re.MULTILINE)
    assert "onnxruntime 2.0" in page


def test_a_folder_without_peers(tmp_path: Path, stand_in: Any, capsys: pytest.CaptureFixture[str]) -> None:
    models, feeds = tmp_path / "models", tmp_path / "feeds"
    models.mkdir()
    feeds.mkdir()
    weights = [helper.make_tensor("shape", TensorProto.INT64, [2], [8, 4])]
    fill = numpy_helper.from_array(np.array([0.5], np.float32))
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["w"], value=fill),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, size]) for name, size in (("x", 8), ("y", 4)))
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y], weights), opset_imports=[helper.make_opsetid("", 17)])
    save(model, models / "filled.onnx")
    write_arrays(feeds / "filled.npz", {"x": np.ones((3, 8), np.float32)})
    arguments = ["run", str(models), "--feeds", str(feeds), "--peer", stand_in(), "--repeat", "1", "--threads", "2", "--dtype"]
    assert main([*arguments, "--json", str(tmp_path / "out.json")]) == 0
    text = capsys.readouterr().out
    assert "onnxruntime: left out" in text
    assert "filled (weights drawn)" in text
    (result,) = json.loads((tmp_path / "out.json").read_text())["models"]
    assert (result["kind"], result["feeds"], result["drawn"], list(result["sides"])) == ("other", "filled.npz", 1, ["float32, 2"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--repeat", "0"], r"--repeat is at least 1\. Received: 0"),
        (["--threads", "1", "0"], r"--threads is at least 1\. Received: \[1, 0\]"),
        (["--only", "a"], r"holds no model a\.onnx"),
        (["--only", "demo", "--peer", "/missing/python"], r"/missing/python: cannot be started: No such file"),
    ],
)
def test_bad_arguments_end_with_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *arguments]) == 1
    error = capsys.readouterr().err
    assert re.search(message, error)
    assert error.count("\n") == 1


@pytest.mark.parametrize("name", MODELS)
def test_plain_programs_compute_what_the_graphs_do(name: str) -> None:
    model = MODELS[name]
    graph = build(name, model)
    x = np.random.default_rng(1).standard_normal(model.shape).astype(np.float32)
    expected = ag.compile(graph)({"x": x})["y"]
    plain = Plain(model)
    for _ in range(2):
        found = plain(x)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert np.ptp(expected) > 0.01, "an output that says something"
    assert find_kind(graph) == model.kind


def test_kinds_of_models() -> None:
    assert find_kind(demo_model()) == "transformer"
    graph = build("made_cnn", MODELS["made_cnn"])
    assert find_kind(graph) == "CNN"
    graph.add("DynamicQuantizeLinear", [graph.outputs[0]], domain="")
    assert find_kind(graph) == "other"


def test_filled_weights_are_drawn_and_nothing_else(tmp_path: Path) -> None:
    weights = {
        "kernel": np.full((4, 2, 3, 3), 0.02, np.float32),
        "bias": np.full(4, 0.02, np.float32),
        "square": np.arange(16, dtype=np.float32).reshape(4, 4),
        "sizes": np.array([32]),
    }

    def fill(number: float) -> Any:
        return numpy_helper.from_array(np.array([number], np.float32))

    nodes = [
        helper.make_node("Conv", ["x", "kernel", "bias"], ["a"]),
        helper.make_node("ConstantOfShape", ["sizes"], ["halves"], value=fill(0.5)),
        helper.make_node("ConstantOfShape", ["sizes"], ["zeros"], value=fill(0)),
        helper.make_node("Add", ["halves", "zeros"], ["b"]),
        helper.make_node("MatMul", ["square", "square"], ["c"]),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 9, 9])]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "abc"]
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    model = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs, tensors), opset_imports=[helper.make_opsetid("", 17)]
    )
    save(model, tmp_path / "model.onnx")
    graph = ag.load(tmp_path / "model.onnx")
    assert draw_filled(graph) == 2
    feeds = {"x": np.ones((1, 2, 9, 9), np.float32)}
    found = ag.compile(graph)(feeds)
    channels = found["a"][0, :, 0, 0]
    assert len(set(channels.tolist())) == 4
    assert (found["b"] >= 0.25).all()
    assert (found["b"] <= 0.75).all()
    assert np.unique(found["b"]).size == 32
    assert (found["c"] == weights["square"] @ weights["square"]).all()
    again = ag.load(tmp_path / "model.onnx")
    draw_filled(again)
    assert (ag.compile(again)(feeds)["a"] == found["a"]).all()


def test_processes_that_fail_hang_or_end(stand_in: Any) -> None:
    with Process([stand_in(it="1.0")], 3) as process:
        assert process.facts == {"it": "1.0", "threads": "3"}
        assert process.ask({"open": "nothing"}, 60) == {"failed": "KeyError: 'nothing'"}
        assert process.ask({"open": "onnxruntime"}, 60)["wall"] >= 0.001
        start = time.perf_counter()
        assert process.ask({"open": "reference"}, 0.2) == {"failed": "over 0.2 s"}
        assert time.perf_counter() - start < 30
        assert process.ask({"run": "onnxruntime", "count": 1}, 60) == {"failed": "KeyError: 'onnxruntime'"}, "a new process"
        assert process.ask({"open": "crash"}, 60) == {"failed": "ended early"}
        found = time_in_turns({"it": (process, {"open": "onnxruntime"}), "no": (process, {"open": "no"})}, 3, 60)
        assert found["no"] == {"failed": "KeyError: 'no'"}
        assert len(found["it"]["wall"]) == len(found["it"]["cpu"]) == 3
        assert process.ask({"run": "onnxruntime", "count": 1}, 60) == {"failed": "KeyError: 'onnxruntime'"}, "models are closed"


def test_ratios_and_medians_of_made_results() -> None:
    def result(name: str, kind: str, ours: float, low: float, peer: float | None) -> dict[str, Any]:
        sides: dict[str, Any] = {
            f"{side}, {threads}": {"cpu": [threads * seconds, 9.0], "wall": [8.0, threads * seconds / 4]}
            for side, seconds in (("float32", ours), ("float16", low), ("onnxruntime", peer))
            if seconds is not None
            for threads in (1, 2)
        }
        sides["reference, 1"] = {"cpu": [5.0], "wall": [7.0]}
        return {"name": name, "kind": kind, "drawn": 0, "sides": sides}

    results = [result("a", "CNN", 1, 2, 0.5), result("b", "CNN", 1, 3, 0.25), result("c", "other", 2, 2, None)]
    tables = {title: rows for title, _, rows in summary.tables(results)}
    models, medians, _, both = tables.values()
    assert models[0] == ("a", "CNN", "1000.00", "2.00", "4.00", "2.00", "-", "-", "5.0")
    assert models[2] == ("c", "other", "2000.00", "-", "-", "1.00", "-", "-", "2.5")
    assert medians == [
        ("CNN", "2", "3.00", "8.00", "2.50", "-", "-"),
        ("other", "1", "-", "-", "1.00", "-", "-"),
        ("all", "3", "3.00", "8.00", "2.00", "-", "-"),
    ]
    assert summary.best(results[0]["sides"]["float32, 2"], 2) == 0.5, "of the clock"
    assert both == medians
