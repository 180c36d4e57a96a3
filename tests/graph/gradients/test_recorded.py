"""Gradients of the losses that TensorFlow trained with are those that it recorded."""

import json
import os
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ampgraph import auto_mixed_precision, compile, gradients, load, save, verify
from ampgraph.graph import Graph
from ampgraph.graph.schemas.tf import find
from ampgraph.kernels.apply_step import Update, apply_step
from ampgraph.kernels.update_rules import UPDATE_RULES
from tests.contract.modules import ROOT
from tests.graph.gradients.check import constant, program
from tests.tools.replay_exec import read_manifest

SHARE = ROOT / "tests" / "data" / "exec" / "share.tar.xz"

#: How many gradients are recorded; the other differentiable inputs are pictures and labels.
TRAINED = {
    "k3.bilstm_masked_train_functional": 9,
    "k3.causal_attn_train": 12,
    "k3.conv1d_train": 6,
    "k3.conv3d_train": 4,
}
ALL = {
    **TRAINED,
    "k3.gru_train_lowered": 5,
    "k3.lstm_train_functional": 5,
    "k3.lstm_train_lowered": 5,
    "k3.mlp_lossscale_finite_lowered": 8,
    "k3.mlp_lossscale_grows_functional": 8,
    "k3.transformer_train": 19,
    "model.mlp_doc_train": 4,
    "model.mobilenetish_train": 12,
    "model.resnetish_train": 15,
    "v2.cond_grad_False.lowered": 2,
    "v2.cond_grad_True.lowered": 2,
    "v2.while_grad.functional": 2,
}


#: How the recorded steps go: a rule, its numbers, the learning rate, and which step it is. Steps of loss-scaled graphs are replayed
#: whole elsewhere.
_NESTEROV = ("nesterov", {"momentum": 0.9}, 0.05, 1)
STEPS: dict[str, tuple[str, dict[str, float], float, int]] = {
    "k3.bilstm_masked_train_functional": _NESTEROV,
    "k3.causal_attn_train": ("sgd", {}, 0.01, 1),
    "k3.conv1d_train": ("sgd", {}, 0.01, 1),
    "k3.conv3d_train": _NESTEROV,
    "k3.gru_train_lowered": _NESTEROV,
    "k3.lstm_train_functional": _NESTEROV,
    "k3.lstm_train_lowered": _NESTEROV,
    "k3.transformer_train": ("adam", {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7}, 0.01, 5),
    "model.mlp_doc_train": ("sgd", {}, 0.01, 1),
    "model.mobilenetish_train": ("sgd", {}, 0.1, 1),
    "model.resnetish_train": ("sgd", {}, 0.1, 1),
}

DATA = ROOT / "tests" / "data" / "gradients"


@pytest.mark.parametrize("case", json.loads((DATA / "kinks.json").read_text(encoding="utf-8")), ids=lambda case: case["op"])
def test_is_what_tensorflow_says_where_there_is_no_slope(case: dict[str, Any]) -> None:
    """At kinks and ties, where differences tell nothing."""
    graph, schema = Graph(), find(case["op"])
    assert schema is not None
    operands = []
    for formal in schema.inputs:
        given = case["operands"].get(formal.name, case["rest"].get(formal.name))
        dtype = "float64" if formal.name in case["operands"] or isinstance(np.ravel(given)[0], float) else "int32"
        operands.append(constant(graph, given, "int64" if case["op"] == "MatrixBandPart" and dtype == "int32" else dtype))
    attributes = {name: value for name, value in case["rest"].items() if name not in {f.name for f in schema.inputs}}
    y = graph.add(case["op"], operands, attributes=attributes).outputs[0]
    xs = [x for x, formal in zip(operands, schema.inputs, strict=True) if formal.name in case["operands"]]
    found = [g for g in gradients(y, xs) if g is not None]
    for got, wanted in zip(program(graph, found)({}), case["gradients"], strict=True):
        np.testing.assert_allclose(got, np.asarray(wanted), rtol=1e-12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exec")
    with tarfile.open(SHARE) as archive:
        archive.extractall(path, filter="data")
    return path


def found_among_recorded(folder: Path, case: dict[str, Any], dtype: str | None = None) -> int:
    """Differentiate the loss of a training step by all inputs; return how many of the results were recorded.

    With a dtype the graph is rewritten first, and results are only near.
    """
    graph = load(folder / case["pb"], outputs=[fetch["name"] for fetch in case["fetches"]])
    arrays = np.load(folder / case["npz"])
    feeds = {feed["name"]: arrays[feed["key"]] for feed in case["feeds"]}
    recorded = [arrays[fetch["key"]] for fetch in case["fetches"]]
    loss = next(y for y, array in zip(graph.outputs, recorded, strict=True) if array.dtype == np.float32 and not array.ndim)
    xs = [graph.value(feed["name"]) for feed in case["feeds"] if feed["dtype"] == "float32"]
    results = [dx for dx in gradients(loss, xs) if dx is not None]
    graph.outputs, graph.output_names = results, [value.name for value in results]
    verify(graph)
    with tempfile.TemporaryDirectory() as place:  # what a file cannot hold would be lost here
        save(graph, Path(place) / "graph.pb")
        graph = load(Path(place) / "graph.pb", outputs=graph.output_names)
    if dtype is not None:
        graph = auto_mixed_precision(graph, dtype=dtype, target="cpu").graph
    near = 1e-5 if dtype is None else 5e-2
    return sum(
        any(
            np.linalg.norm(got - array) <= near * np.linalg.norm(array) or np.abs(got - array).max() < 1e-7
            for array in recorded
            if array.shape == got.shape and array.dtype == got.dtype
        )
        for got in compile(graph)(feeds).values()
    )


def _cases(folder: Path) -> dict[str, dict[str, Any]]:
    return {case["id"]: case for case in map(json.loads, (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines())}


@pytest.mark.parametrize("name", TRAINED)
def test_are_what_tensorflow_recorded(name: str, folder: Path) -> None:
    assert found_among_recorded(folder, _cases(folder)[name]) == TRAINED[name]


def check_step(folder: Path, case: dict[str, Any]) -> None:
    """Apply the recorded gradients by our rule: variables and slots are those recorded after the step."""
    rule, numbers, rate, step = STEPS[case["id"]]
    arrays, count = np.load(folder / case["npz"]), ALL[case["id"]]
    given = [arrays[feed["key"]] for feed in case["feeds"]]
    _, *results = (arrays[fetch["key"]] for fetch in case["fetches"])
    gradients, expected = results[:count], results[count : 2 * count]
    width = len(UPDATE_RULES[rule].slots)
    slots_expected = results[len(results) - width * count :] if width else []
    feeds = iter(given)  # variables, states, slots and data follow each other; shapes tell which are meant
    variables = [next(x for x in feeds if x.shape == gradient.shape) for gradient in gradients]
    slots = [next(x for x in feeds if x.shape == slot.shape) for slot in slots_expected]
    update = Update(UPDATE_RULES[rule], numbers)
    done = apply_step(np, update, variables, [slots[i::count] for i in range(count)], gradients, step=step, rate=rate)
    found = [*done.variables, *(row[place] for place in range(width) for row in done.slots)]
    near = 1e-5 if rule == "adam" else 1e-6  # 1 - 0.999**5 in float32 has lost that many digits
    for got, wanted, before in zip(found, [*expected, *slots_expected], [*variables, *slots], strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=near * np.abs(wanted - before).max())


@pytest.mark.parametrize("name", TRAINED)
def test_rules_make_the_new_variables_that_tensorflow_recorded(name: str, folder: Path) -> None:
    check_step(folder, _cases(folder)[name])


@pytest.mark.parametrize("name", ["k3.bilstm_masked_train_functional", "k3.conv1d_train"])
def test_are_near_it_when_rewritten(name: str, folder: Path) -> None:
    assert found_among_recorded(folder, _cases(folder)[name], "float16") == TRAINED[name]


@pytest.mark.goldens
def test_are_what_tensorflow_recorded_everywhere() -> None:
    root = Path(os.environ["AMPGRAPH_GOLDENS"])
    root = root / "exec" if (root / "exec").is_dir() else root
    cases = [case for case in read_manifest(root) if case["id"] in ALL]
    assert {case["id"]: found_among_recorded(root, case) for case in cases} == ALL
    for case in cases:
        if case["id"] in STEPS:
            check_step(root, case)
