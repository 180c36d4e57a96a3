"""Normalization against formulas in float64."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.one_node import run_op

RNG = np.random.default_rng(5)
X = RNG.standard_normal((2, 6, 3, 4))


def standard(x: Any, axes: Any, epsilon: float = 1e-5) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


@pytest.mark.parametrize("axis", [1, -1, 2])
def test_layers(axis: int) -> None:
    scale, bias = RNG.standard_normal((2, *X.shape[axis % 4 :]))
    axes = tuple(range(axis % 4, 4))
    y, mean, inverse = run_op("LayerNormalization", X, scale, bias, version=17, results=3, axis=axis, stash_type=1)
    np.testing.assert_allclose(y, standard(X, axes) * scale + bias, rtol=1e-12, atol=1e-12)
    assert mean.dtype == np.float32
    np.testing.assert_allclose(mean, X.mean(axes, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(inverse, 1 / np.sqrt(X.var(axes, keepdims=True) + 1e-5), rtol=1e-6)
    rms = run_op("RMSNormalization", X, scale, version=23, axis=axis)
    np.testing.assert_allclose(rms, X / np.sqrt((X * X).mean(axes, keepdims=True) + 1e-5) * scale, rtol=1e-12)


def test_a_large_mean_costs_no_digits() -> None:
    """Squares of the values themselves would lose everything in float32."""
    x = (1e4 + RNG.standard_normal((4, 256))).astype(np.float32)
    y = run_op("LayerNormalization", x, np.ones(256, np.float32), version=17)
    np.testing.assert_allclose(y, standard(x.astype(np.float64), -1), atol=2e-3)


def test_float16_squares_do_not_overflow() -> None:
    x = np.array([[1000, -1000, 3000, 5000]], np.float16)
    y = run_op("RMSNormalization", x, np.ones(4, np.float16), version=23)
    wanted = x.astype(np.float64) / np.sqrt((x.astype(np.float64) ** 2).mean())
    np.testing.assert_array_equal(y, wanted.astype(np.float16))


def test_batches_in_inference() -> None:
    scale, bias, mean, var = RNG.standard_normal((4, 6))
    var = 0.5 + var**2
    wanted = (X - mean[:, None, None]) / np.sqrt(var + 1e-5)[:, None, None] * scale[:, None, None] + bias[:, None, None]
    np.testing.assert_allclose(
        run_op("BatchNormalization", X, scale, bias, mean, var, version=15), wanted, rtol=1e-10, atol=1e-12
    )
    flat = X[..., 0, 0]
    y = run_op("BatchNormalization", flat, scale, bias, mean, var, version=9)
    np.testing.assert_allclose(y, wanted[..., 0, 0], rtol=1e-10, atol=1e-12)


def test_batches_in_inference_without_spatial_statistics() -> None:
    scale, bias, mean, var = RNG.standard_normal((4, *X.shape[1:]))
    var = 0.5 + var**2
    y = run_op("BatchNormalization", X, scale, bias, mean, var, version=7, spatial=0)
    np.testing.assert_allclose(y, (X - mean) / np.sqrt(var + 1e-5) * scale + bias, rtol=1e-10, atol=1e-12)


def test_batches_in_training() -> None:
    scale, bias, mean, var = RNG.standard_normal((4, 6))
    axes = (0, 2, 3)
    y, new_mean, new_var = run_op(
        "BatchNormalization", X, scale, bias, mean, var, version=15, results=3, training_mode=1, momentum=0.75
    )
    np.testing.assert_allclose(y, standard(X, axes) * scale[:, None, None] + bias[:, None, None], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(new_mean, mean * 0.75 + X.mean(axes) * 0.25, rtol=1e-12)
    np.testing.assert_allclose(new_var, var * 0.75 + X.var(axes) * 0.25, rtol=1e-12)


def test_instances_and_groups() -> None:
    scale, bias = RNG.standard_normal((2, 6))
    column = scale[:, None, None], bias[:, None, None]
    y = run_op("InstanceNormalization", X, scale, bias)
    np.testing.assert_allclose(y, standard(X, (2, 3)) * column[0] + column[1], rtol=1e-10, atol=1e-12)
    groups = standard(X.reshape(2, 3, 2, 3, 4), (2, 3, 4)).reshape(X.shape)
    y = run_op("GroupNormalization", X, scale, bias, version=21, num_groups=3)
    np.testing.assert_allclose(y, groups * column[0] + column[1], rtol=1e-10, atol=1e-12)
    y = run_op("GroupNormalization", X, scale[:3], bias[:3], version=18, num_groups=3)
    of_group = scale[[0, 0, 1, 1, 2, 2]][:, None, None], bias[[0, 0, 1, 1, 2, 2]][:, None, None]
    np.testing.assert_allclose(y, groups * of_group[0] + of_group[1], rtol=1e-10, atol=1e-12)
    with pytest.raises(KernelError, match="6 channels do not fall into groups"):
        run_op("GroupNormalization", X, scale, bias, version=21, num_groups=4)


def test_groups_with_channels_last_skip_and_silu() -> None:
    x, skip = (RNG.standard_normal((2, 3, 4, 6)).astype(np.float32) for _ in range(2))
    gamma, beta, bias = RNG.standard_normal((3, 6)).astype(np.float32)
    y, total = run_op(
        "com.microsoft:SkipGroupNorm", x, gamma, beta, skip, bias, version=1, results=2, groups=2, activation=1, epsilon=1e-5
    )
    wanted = (x + skip + bias).astype(np.float64)
    np.testing.assert_allclose(total, wanted, rtol=1e-6, atol=1e-6)
    z = standard(wanted.reshape(2, 12, 2, 3), (1, 3)).reshape(x.shape) * gamma + beta
    np.testing.assert_allclose(y, z / (1 + np.exp(-z)), rtol=1e-4, atol=1e-5)


def test_sums_that_are_normalized_are_results() -> None:
    x, skip = RNG.standard_normal((2, 2, 3, 8)).astype(np.float32)
    gamma, beta, bias = RNG.standard_normal((3, 8)).astype(np.float32)
    y, _, _, total = run_op("com.microsoft:SkipLayerNormalization", x, skip, gamma, beta, bias, version=1, results=4)
    np.testing.assert_allclose(total, x + skip + bias, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(y, standard(total.astype(np.float64), -1, 1e-12) * gamma + beta, rtol=1e-4, atol=1e-5)
    y, _, _, total = run_op("com.microsoft:SkipSimplifiedLayerNormalization", x, skip, gamma, version=1, results=4)
    wanted = (x + skip).astype(np.float64)
    np.testing.assert_allclose(y, wanted / np.sqrt((wanted**2).mean(-1, keepdims=True)) * gamma, rtol=1e-4, atol=1e-5)


def test_embeddings() -> None:
    words, positions, segments = (RNG.standard_normal((n, 4)).astype(np.float32) for n in (7, 5, 2))
    gamma, beta = RNG.standard_normal((2, 4)).astype(np.float32)
    ids, of = np.array([[6, 0, 3]], np.int32), np.array([[1, 1, 0]], np.int32)
    mask = np.array([[1, 1, 0]], np.int32)
    y, count, total = run_op(
        "com.microsoft:EmbedLayerNormalization",
        ids,
        of,
        words,
        positions,
        segments,
        gamma,
        beta,
        mask,
        version=1,
        results=3,
    )
    wanted = words[[6, 0, 3]] + positions[:3] + segments[[1, 1, 0]]
    assert count.tolist() == [2]
    np.testing.assert_allclose(total[0], wanted, rtol=1e-6)
    np.testing.assert_allclose(y[0], standard(wanted.astype(np.float64), -1, 1e-12) * gamma + beta, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [1, 2, 3, 6, 9])
def test_local_responses(size: int) -> None:
    y = run_op("LRN", X, size=size, alpha=0.5, beta=0.6, bias=2.0)
    wanted = np.empty_like(X)
    for c in range(6):
        low, high = max(0, c - (size - 1) // 2), min(5, c + size // 2)
        wanted[:, c] = X[:, c] / (2 + np.float32(0.5) / size * (X[:, low : high + 1] ** 2).sum(1)) ** np.float32(0.6)
    np.testing.assert_allclose(y, wanted, rtol=1e-7)


def test_norms_of_zero_give_zero() -> None:
    x = np.array([[0, 0], [3, -4]], np.float32)
    np.testing.assert_allclose(run_op("LpNormalization", x, version=22, p=2), [[0, 0], [0.6, -0.8]], rtol=1e-6)
    np.testing.assert_allclose(run_op("LpNormalization", x, version=22, p=1, axis=0), [[0, 0], [1, -1]], rtol=1e-6)


def test_means_and_variances() -> None:
    y = run_op("MeanVarianceNormalization", X, version=13)
    np.testing.assert_allclose(y, standard(X, (0, 2, 3), 0), rtol=1e-6)
    y = run_op("MeanVarianceNormalization", X, version=13, axes=[1])
    np.testing.assert_allclose(y, standard(X, (1,), 0), rtol=1e-6)


def test_axes_out_of_range() -> None:
    with pytest.raises(KernelError, match="axis"):
        run_op("LayerNormalization", X, np.ones(4), version=17, axis=4)
