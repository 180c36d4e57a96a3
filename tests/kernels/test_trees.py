"""Ensembles of trees, small enough to walk by hand."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.dtypes import find_dtype
from ampgraph.graph.errors import KernelError
from ampgraph.graph.types import Tensor
from tests.kernels.one_node import run_op

NAN = float("nan")
X = np.array([[0, 5], [1, 5], [2, 5], [NAN, 5]], np.float32)


def run(op: str, x: Any, version: int = 3, **options: Any) -> Any:
    return run_op(f"ai.onnx.ml:{op}", x, version=version, **options)


def stumps(modes: list[bytes], missing: int = 0) -> dict[str, Any]:
    """Return trees of one decision each, at 1 on feature 0: node 1 is the true leaf, node 2 the false one."""
    count = len(modes)
    return {
        "nodes_treeids": [t for t in range(count) for _ in range(3)],
        "nodes_nodeids": [0, 1, 2] * count,
        "nodes_featureids": [0] * 3 * count,
        "nodes_values": [1.0, 0.0, 0.0] * count,
        "nodes_modes": [mode for first in modes for mode in (first, b"LEAF", b"LEAF")],
        "nodes_truenodeids": [1, 0, 0] * count,
        "nodes_falsenodeids": [2, 0, 0] * count,
        "nodes_missing_value_tracks_true": [missing] * 3 * count,
    }


def leaf_values(stem: str, values: list[tuple[int, int, int, float]]) -> dict[str, Any]:
    """Return contributions (tree, node, target, weight)."""
    trees, nodes, targets, weights = (list(column) for column in zip(*values, strict=True))
    return {f"{stem}_treeids": trees, f"{stem}_nodeids": nodes, f"{stem}_ids": targets, f"{stem}_weights": weights}


@pytest.mark.parametrize(
    ("mode", "taken"),
    [
        (b"BRANCH_LEQ", [1, 1, 0, 0]),
        (b"BRANCH_LT", [1, 0, 0, 0]),
        (b"BRANCH_GTE", [0, 1, 1, 0]),
        (b"BRANCH_GT", [0, 0, 1, 0]),
        (b"BRANCH_EQ", [0, 1, 0, 0]),
        (b"BRANCH_NEQ", [1, 0, 1, 1]),
    ],
)
def test_decisions(mode: bytes, taken: list[int]) -> None:
    values = leaf_values("target", [(0, 1, 0, 1.0), (0, 2, 0, 0.0)])
    assert run("TreeEnsembleRegressor", X, **stumps([mode]), **values, n_targets=1)[:, 0].tolist() == taken
    got = run("TreeEnsembleRegressor", X, **stumps([mode], missing=1), **values, n_targets=1)[:, 0].tolist()
    assert got == [*taken[:3], 1]


@pytest.mark.parametrize(
    ("how", "first", "last"),
    [(b"SUM", [13, 2], [23, 0]), (b"AVERAGE", [6.5, 1], [11.5, 0]), (b"MIN", [3, 2], [3, 0]), (b"MAX", [10, 2], [20, 0])],
)
def test_aggregates(how: bytes, first: list[float], last: list[float]) -> None:
    """Tree 0 gives target 0 10 or 20, and target 1 2 on the true side only; tree 1 always 3."""
    values = leaf_values("target", [(0, 1, 0, 10.0), (0, 1, 1, 2.0), (0, 2, 0, 20.0), (1, 1, 0, 3.0), (1, 2, 0, 3.0)])
    trees = stumps([b"BRANCH_LEQ", b"BRANCH_LEQ"])
    y = run("TreeEnsembleRegressor", X, **trees, **values, n_targets=2, aggregate_function=how)
    assert (y[0].tolist(), y[2].tolist()) == (first, last)
    y = run("TreeEnsembleRegressor", X, **trees, **values, n_targets=2, aggregate_function=how, base_values=[100.0, 0.0])
    assert y[0].tolist() == [first[0] + 100, first[1]]


def test_classes() -> None:
    values = leaf_values("class", [(0, 1, 0, 0.75), (0, 1, 2, 0.25), (0, 2, 1, 1.0)])
    label, scores = run(
        "TreeEnsembleClassifier", X, **stumps([b"BRANCH_LEQ"]), **values, classlabels_strings=[b"a", b"b", b"c"], results=2
    )
    assert label.tolist() == ["a", "a", "b", "b"]
    assert scores[1:3].tolist() == [[0.75, 0, 0.25], [0, 1, 0]]


def test_one_weight_may_speak_for_two_classes() -> None:
    """As a probability if no weight is negative, else as a score of either sign (as onnxruntime 1.32 has it)."""
    options: dict[str, Any] = {**stumps([b"BRANCH_LEQ"]), "classlabels_int64s": [3, 7], "results": 2}
    values = leaf_values("class", [(0, 1, 0, 0.25), (0, 2, 0, 0.75)])
    label, scores = run("TreeEnsembleClassifier", X, **options, **values)
    assert (label.tolist(), scores[0].tolist()) == ([3, 3, 7, 7], [0.75, 0.25])
    values = leaf_values("class", [(0, 1, 0, -2.0), (0, 2, 0, 0.25)])
    label, scores = run("TreeEnsembleClassifier", X, **options, **values)
    assert (label.tolist(), scores[0].tolist()) == ([3, 3, 7, 7], [2, -2])
    label, scores = run("TreeEnsembleClassifier", X, **options, **values, base_values=[3.0], post_transform=b"LOGISTIC")
    np.testing.assert_allclose(scores[0], [1 / (1 + np.e), np.e / (1 + np.e)], rtol=1e-6)
    assert label.tolist() == [7, 7, 7, 7]


def test_double_thresholds_are_not_rounded() -> None:
    values = leaf_values("target", [(0, 1, 0, 1.0), (0, 2, 0, 0.0)])
    x = np.array([[1.0], [1 + 1e-12]])
    assert run("TreeEnsembleRegressor", x, **stumps([b"BRANCH_LEQ"]), **values, n_targets=1)[:, 0].tolist() == [1, 0]


def tensor(dtype: str, values: list[float]) -> Tensor:
    return Tensor.of(np.array(values, find_dtype(dtype).numpy))


def test_sets_of_members() -> None:
    """Two roots: one asks whether feature 0 is 0 or 2, the other whether feature 1 is 5 or 6."""
    y = run(
        "TreeEnsemble",
        X,
        version=5,
        n_targets=1,
        tree_roots=[0, 1],
        nodes_modes=tensor("uint8", [6, 6]),
        nodes_featureids=[0, 1],
        nodes_splits=tensor("float32", [0, 0]),
        nodes_truenodeids=[0, 1],
        nodes_trueleafs=[1, 1],
        nodes_falsenodeids=[2, 2],
        nodes_falseleafs=[1, 1],
        leaf_targetids=[0, 0, 0],
        leaf_weights=tensor("float32", [1, 10, 100]),
        membership_values=tensor("float32", [0, 2, NAN, 5, 6, NAN]),
    )
    assert y[:, 0].tolist() == [11, 110, 11, 110]


def test_broken_trees_are_named() -> None:
    values = leaf_values("target", [(0, 1, 0, 1.0)])
    trees = stumps([b"BRANCH_LEQ"])
    two = {**trees, "nodes_modes": [b"BRANCH_LEQ", b"BRANCH_LEQ", b"LEAF"], "n_targets": 1}
    with pytest.raises(KernelError, match="run in a circle"):
        run("TreeEnsembleRegressor", X, **{**two, "nodes_truenodeids": [1, 1, 0], "nodes_falsenodeids": [2, 2, 0]}, **values)
    with pytest.raises(KernelError, match=r"Every tree needs one root. Received: 0 roots in 1 trees"):
        run("TreeEnsembleRegressor", X, **{**two, "nodes_truenodeids": [1, 2, 0], "nodes_falsenodeids": [2, 0, 0]}, **values)
    with pytest.raises(KernelError, match="a node that does not exist"):
        run("TreeEnsembleRegressor", X, **{**trees, "nodes_truenodeids": [9, 0, 0]}, **values, n_targets=1)
    with pytest.raises(KernelError, match="use feature 4, but the rows have 2"):
        run("TreeEnsembleRegressor", X, **{**trees, "nodes_featureids": [4, 0, 0]}, **values, n_targets=1)
