"""Encoders, linear models and support vector machines. Scores of two classes are those of onnxruntime 1.32."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.one_node import run_op

NAN = float("nan")


def run(op: str, *operands: Any, version: int = 3, **options: Any) -> Any:
    return run_op(f"ai.onnx.ml:{op}", *operands, version=version, **options)


def f(x: Any) -> Any:
    return np.array(x, np.float32)


def text(*items: str) -> Any:
    return np.array(items, object)


def test_labels() -> None:
    x, keys = text("b", "a", "?"), {"keys_strings": [b"a", b"b"]}
    assert run("LabelEncoder", x, **keys, values_int64s=[1, 2], version=2).tolist() == [2, 1, -1]
    assert run("LabelEncoder", x, **keys, values_strings=[b"A", b"B"], version=2).tolist() == ["B", "A", "_Unused"]
    y = run("LabelEncoder", f([1, NAN, 3]), keys_floats=[NAN, 1.0, 1.0], values_floats=[0.5, 2, 4], default_float=7.0, version=4)
    assert y.tolist() == [4, 0.5, 7]
    assert run("LabelEncoder", x, classes_strings=[b"a", b"b"], version=1).tolist() == [1, 0, -1]
    assert run("LabelEncoder", np.array([1, 5]), classes_strings=[b"a", b"b"], version=1).tolist() == ["b", "_Unused"]
    categories = {"cats_strings": [b"a", b"b"], "cats_int64s": [4, 8]}
    assert run("CategoryMapper", x, **categories, default_int64=9).tolist() == [8, 4, 9]
    assert run("CategoryMapper", np.array([8, 1]), **categories).tolist() == ["b", "_Unused"]
    with pytest.raises(KernelError, match=r"needs one of the attributes keys_\*"):
        run("LabelEncoder", np.array([8, 1]), values_int64s=[1], version=2)


def test_columns() -> None:
    x = f([[1, 2, 3], [4, 5, 6]])
    assert run("ArrayFeatureExtractor", x, np.array([2, 0])).tolist() == [[3, 1], [6, 4]]
    assert run("ArrayFeatureExtractor", x[0], np.array([2])).tolist() == [[3]]
    assert run("Binarizer", x, threshold=3.0).tolist() == [[0, 0, 0], [1, 1, 1]]
    assert run("Scaler", x, offset=[1.0, 2, 3], scale=[2.0, 1, 0]).tolist() == [[0, 0, 0], [6, 3, 0]]
    assert run("FeatureVectorizer", x, np.ones((2, 1), np.float32), inputdimensions=[2, 2]).tolist() == [
        [1, 2, 1, 0],
        [4, 5, 1, 0],
    ]
    assert run("OneHotEncoder", np.array([3, 1, 9]), cats_int64s=[1, 3]).tolist() == [[0, 1], [1, 0], [0, 0]]
    assert run("OneHotEncoder", text("b"), cats_strings=[b"a", b"b"]).tolist() == [[0, 1]]
    with pytest.raises(KernelError, match="none of its categories"):
        run("OneHotEncoder", np.array([9]), cats_int64s=[1, 3], zeros=0)


def test_missing_values() -> None:
    x = f([[1, NAN], [NAN, 4]])
    assert run("Imputer", x, imputed_value_floats=[7.0, 8.0], replaced_value_float=NAN).tolist() == [[1, 8], [7, 4]]
    assert run("Imputer", np.array([[0, 1]]), imputed_value_int64s=[5], replaced_value_int64=0).tolist() == [[5, 1]]
    with pytest.raises(KernelError, match="needs values of the operand's kind"):
        run("Imputer", np.array([[0, 1]]), imputed_value_floats=[7.0])


@pytest.mark.parametrize(("norm", "row"), [(b"MAX", [0.75, -1]), (b"L1", [3 / 7, -4 / 7]), (b"L2", [0.6, -0.8])])
def test_norms(norm: bytes, row: list[float]) -> None:
    x = f([[3, -4], [0, 0]]) if norm != b"MAX" else f([[-3, 4], [0, 0]])
    y = run("Normalizer", x, norm=norm)
    np.testing.assert_allclose(y, [row if norm != b"MAX" else [-0.75, 1], [0, 0]], rtol=1e-6)


def test_linear_models() -> None:
    x = f([[1, 2], [0, -1]])
    y = run("LinearRegressor", x, coefficients=[1.0, 1, 2, 0], intercepts=[0.5, 0], targets=2)
    assert y.tolist() == [[3.5, 2], [-0.5, 0]]
    options = {"coefficients": [1.0, 1, 2, 0, 0, -3], "intercepts": [0.5, 0, 0], "classlabels_ints": [5, 6, 7], "results": 2}
    label, scores = run("LinearClassifier", x, **options)
    assert (label.tolist(), scores.tolist()) == ([5, 7], [[3.5, 2, -6], [-0.5, 0, 3]])
    shares = run("LinearClassifier", x, **options, post_transform=b"SOFTMAX")[1]
    np.testing.assert_allclose(shares[0], np.exp([3.5, 2, -6]) / np.exp([3.5, 2, -6]).sum(), rtol=1e-6)
    shares = run("LinearClassifier", x, **options, post_transform=b"SOFTMAX_ZERO")[1]
    np.testing.assert_allclose(shares[1], [np.exp(-3.5), 0, 1] / (np.exp(-3.5) + 1), rtol=1e-6)


def test_one_score_for_two_classes() -> None:
    x = f([[2], [-1]])
    options = {"coefficients": [1.0], "intercepts": [0.0], "classlabels_strings": [b"no", b"yes"], "results": 2}
    label, scores = run("LinearClassifier", x, **options)
    assert (label.tolist(), scores.tolist()) == (["yes", "no"], [[-1, 2], [2, -1]])
    scores = run("LinearClassifier", x, **options, post_transform=b"LOGISTIC")[1]
    np.testing.assert_allclose(scores[0], [1 / (1 + np.exp(2)), 1 / (1 + np.exp(-2))], rtol=1e-6)


def test_probits() -> None:
    """The median is 0, and 0.841345 lies one deviation above it; the method is good to 2e-3."""
    y = run("LinearRegressor", f([[0.5], [0.841345], [0.158655]]), coefficients=[1.0], post_transform=b"PROBIT")
    np.testing.assert_allclose(y, [[0], [1], [-1]], atol=2e-3)


@pytest.mark.parametrize("kind", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vectors(kind: str) -> None:
    x, vectors, weights = f([[1, 2]]), f([[0, 1], [2, 0.5]]), [0.5, -2.0]
    function = {
        "LINEAR": lambda a, b: a @ b,
        "POLY": lambda a, b: (0.5 * a @ b + 1) ** 3,
        "RBF": lambda a, b: np.exp(-0.5 * ((a - b) ** 2).sum()),
        "SIGMOID": lambda a, b: np.tanh(0.5 * a @ b + 1),
    }[kind]
    options: dict[str, Any] = {
        "coefficients": weights,
        "support_vectors": vectors.reshape(-1).tolist(),
        "n_supports": 2,
        "rho": [0.25],
    }
    options |= {"kernel_type": kind.encode(), "kernel_params": [0.5, 1.0, 3.0]}
    wanted = sum(w * function(x[0].astype(float), v.astype(float)) for w, v in zip(weights, vectors, strict=True)) + 0.25
    np.testing.assert_allclose(run("SVMRegressor", x, **options), [[wanted]], rtol=1e-5)
    assert run("SVMRegressor", x, **options, one_class=1).tolist() == [[np.sign(wanted)]]


def test_votes_of_pairs() -> None:
    """Vectors at 0, 10 and 20; each pair's plane lies halfway: the nearest class has two votes."""
    options: dict[str, Any] = {
        "coefficients": [-1.0, 0, -1, 0, -1, 0],
        "support_vectors": [1.0, 1, 1],
        "vectors_per_class": [1, 1, 1],
        "rho": [5.0, 10, 15],
        "classlabels_ints": [7, 8, 9],
        "results": 2,
    }
    label, scores = run("SVMClassifier", f([[1], [11], [19]]), **options)
    assert scores.tolist() == [[4, 9, 14], [-6, -1, 4], [-14, -9, -4]]
    assert label.tolist() == [7, 8, 9]


def test_probabilities_of_pairs() -> None:
    """Recorded of onnxruntime 1.32."""
    options: dict[str, Any] = {
        "coefficients": [-1.0, 0, -1, 0, -1, 0],
        "support_vectors": [1.0, 1, 1],
        "vectors_per_class": [1, 1, 1],
        "rho": [5.0, 10, 15],
        "prob_a": [-0.5, -0.25, -0.5],
        "prob_b": [0.0, 0.1, -0.1],
        "classlabels_ints": [7, 8, 9],
        "results": 2,
    }
    scores = run("SVMClassifier", f([[1], [11]]), **options)[1]
    np.testing.assert_allclose(scores, [[0.835601, 0.118624, 0.045775], [0.049913, 0.851521, 0.098566]], atol=1e-5)
