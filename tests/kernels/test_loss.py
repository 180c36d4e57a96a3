"""Losses: numbers of the standard's own examples, and sums written out."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.one_node import run_op

LOG = np.array([[[1, 2], [2, 2], [3, 2]], [[0, 1], [2, 2], [1, 2]]], np.float32)
LABELS = np.array([[2, 1], [0, 2]])
WEIGHT = np.array([0.2, 0.3, 0.1], np.float32)


@pytest.mark.parametrize(
    ("weight", "reduction", "loss"),
    [(None, b"none", [[-3, -2], [0, -2]]), (WEIGHT, b"sum", -1.1), (WEIGHT, b"mean", -1.1 / 0.7), (None, b"mean", -7 / 4)],
)
def test_negative_log_likelihood(weight: Any, reduction: bytes, loss: Any) -> None:
    y = run_op("NegativeLogLikelihoodLoss", LOG, LABELS, weight, version=13, reduction=reduction)
    np.testing.assert_allclose(y, loss, rtol=1e-6)


def test_a_label_to_ignore_counts_for_nothing() -> None:
    labels = np.where(LABELS == 0, -5, LABELS)
    y = run_op("NegativeLogLikelihoodLoss", LOG, labels, version=13, ignore_index=-5)
    np.testing.assert_allclose(y, -7 / 3, rtol=1e-6)
    y = run_op("NegativeLogLikelihoodLoss", np.full_like(LOG, np.inf), labels, version=13, ignore_index=-5, reduction=b"none")
    assert y.tolist() == [[-np.inf, -np.inf], [0, -np.inf]]


def test_softmax_cross_entropy_of_large_scores() -> None:
    """exp(1000) overflows, the loss does not."""
    scores = np.array([[1000, 1001, 999]], np.float32)
    loss, log = run_op("SoftmaxCrossEntropyLoss", scores, np.array([0]), version=13, results=2)
    wanted = np.array([0, 1, -1]) - np.log(1 + np.e + 1 / np.e)
    np.testing.assert_allclose(log, [wanted], rtol=1e-5)
    np.testing.assert_allclose(loss, -wanted[0], rtol=1e-5)


def test_half_scores_lose_nothing_but_the_last_rounding() -> None:
    scores = np.linspace(-3, 3, 4096, dtype=np.float16)[None]
    loss = run_op("SoftmaxCrossEntropyLoss", scores, np.array([7], np.int32), version=13)
    wide = scores.astype(float)
    assert loss.dtype == np.float16
    assert loss == np.float16(np.log(np.exp(wide).sum()) - wide[0, 7])


def test_mistakes_are_named() -> None:
    with pytest.raises(KernelError, match=r"NegativeLogLikelihoodLoss has 3 classes. Received: labels 0 … 3"):
        run_op("NegativeLogLikelihoodLoss", LOG, LABELS + (LABELS == 1) * 2, version=13)
    with pytest.raises(KernelError, match=r"none, sum or mean. Received: 'max'"):
        run_op("NegativeLogLikelihoodLoss", LOG, LABELS, version=13, reduction=b"max")
