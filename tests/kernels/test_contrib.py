"""The other ops of ONNX Runtime. Orders of axes and borders were compared with onnxruntime 1.32."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.one_node import run_op


def run(op: str, *operands: Any, **options: Any) -> Any:
    return run_op(f"com.microsoft:{op}", *operands, version=1, **options)


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed + sum(shape)).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(("ta", "tb", "ba", "bb"), list(itertools.product((0, 1), repeat=4)))
def test_fused_matmul_arranges_axes(ta: int, tb: int, ba: int, bb: int) -> None:
    axes_a = [["bcmk", "mbck"], ["bckm", "kbcm"]][ta][ba]
    axes_b = [["bckn", "kbcn"], ["bcnk", "nbck"]][tb][bb]
    size = {"b": 2, "c": 3, "m": 4, "k": 5, "n": 6}
    a, b = normal(*(size[x] for x in axes_a)), normal(*(size[x] for x in axes_b))
    y = run("FusedMatMul", a, b, transA=ta, transB=tb, transBatchA=ba, transBatchB=bb, alpha=0.5)
    np.testing.assert_allclose(y, 0.5 * np.einsum(f"{axes_a},{axes_b}->bcmn", a.astype(float), b), atol=1e-5)


def test_products_and_sums_with_an_activation() -> None:
    x, w, bias = normal(2, 3), normal(3, 4), normal(4)
    product = x.astype(float) @ w
    y = run("FusedMatMulActivation", x, w, activation=b"LeakyRelu", activation_alpha=0.1, alpha=2.0)
    np.testing.assert_allclose(y, np.where(product > 0, 2 * product, 0.2 * product), atol=1e-5)
    for operands, total in (((x, w), product), ((x, w, bias), product + bias)):
        fast = total * (1 + np.tanh(math.sqrt(2 / math.pi) * (total + 0.044715 * total**3))) / 2
        np.testing.assert_allclose(run("GemmFastGelu", *operands), fast, atol=1e-5)
    np.testing.assert_array_equal(run("BiasAdd", x, x[0], x), x + x[0] + x)
    gate = normal(2, 3, seed=4)
    y = run_op("SwiGLU", gate, x, version=25, alpha=0.5)
    np.testing.assert_allclose(y, gate / (1 + np.exp(-0.5 * gate.astype(float))) * x, rtol=1e-5, atol=1e-6)
    with pytest.raises(KernelError, match="FusedMatMulActivation with activation Softmax has no kernel"):
        run("FusedMatMulActivation", x, w, activation=b"Softmax")


def test_simplified_layer_normalization_keeps_the_inverse_deviation() -> None:
    x, scale = normal(2, 3, 4), normal(4)
    inverse = 1 / np.sqrt((x.astype(float) ** 2).mean(-1, keepdims=True) + 1e-5)
    y, kept = run("SimplifiedLayerNormalization", x, scale, results=2)
    np.testing.assert_allclose(y, x * inverse * scale, rtol=1e-5)
    np.testing.assert_allclose(kept, inverse, rtol=1e-5)


def test_fused_gemm_and_convolution() -> None:
    a, b, c = normal(4, 3), normal(5, 4), normal(5)
    y = run("FusedGemm", a, b, c, transA=1, transB=1, alpha=0.5, beta=2.0, activation=b"LeakyRelu", activation_alpha=0.1)
    wide = 0.5 * a.T.astype(float) @ b.T + 2 * c
    np.testing.assert_allclose(y, np.where(wide < 0, 0.1 * wide, wide), atol=1e-6)
    x, w, z = normal(1, 2, 5, 5), normal(3, 2, 1, 1), normal(1, 3, 5, 5)
    y = run("FusedConv", x, w, None, z, activation=b"Clip", activation_params=[-0.5, 0.5])
    np.testing.assert_allclose(y, np.clip(np.einsum("nchw,oc->nohw", x.astype(float), w[..., 0, 0]) + z, -0.5, 0.5), atol=1e-6)


def test_gelus() -> None:
    x, bias = np.linspace(-6, 6, 40, dtype=np.float32).reshape(10, 4), normal(4)
    exact = np.vectorize(lambda v: v / 2 * math.erfc(-v / math.sqrt(2)))
    tanh = lambda v: v / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))
    wide = x.astype(float)
    np.testing.assert_allclose(run("Gelu", x), exact(wide), atol=1e-6)
    np.testing.assert_allclose(run("BiasGelu", x, bias), exact(wide + bias), atol=1e-6)
    np.testing.assert_allclose(run("FastGelu", x, bias), tanh(wide + bias), atol=1e-6)
    np.testing.assert_allclose(run("QuickGelu", x), wide / (1 + np.exp(-1.702 * wide)), atol=1e-6)
    np.testing.assert_allclose(run("BiasSplitGelu", x, bias), (wide + bias)[:, :2] * exact((wide + bias)[:, 2:]), atol=1e-5)


def test_sums_before_softmax_and_dropout() -> None:
    x, bias = normal(2, 3, 4), normal(1, 3, 4)
    exps = np.exp(x.astype(float) + bias)
    np.testing.assert_allclose(
        run("BiasSoftmax", x, bias, axis=1, is_inner_broadcast=0), exps / exps.sum(axis=(1, 2), keepdims=True), atol=1e-6
    )
    x, half = np.zeros((100, 100), np.float32), np.float32(0.25)
    y, mask = run(
        "BiasDropout", x, np.ones(1, np.float32) * 3, np.ones(1, np.float32) * 10, half, np.array(True), results=2, seed=1
    )
    assert set(np.unique(y)) == {10, 14}
    assert 0.23 < 1 - mask.mean() < 0.27
    np.testing.assert_array_equal(mask, y == 14)
    y, mask = run("BiasDropout", x, np.ones(1, np.float32) * 3, results=2)
    assert (y == 3).all()
    assert mask.all()


def test_inverses_and_distances() -> None:
    x = np.array([[[2, 0], [0, 4]], [[0, 1], [1, 0]]], np.float32)
    assert run("Inverse", x).tolist() == [[[0.5, 0], [0, 0.25]], [[0, 1], [1, 0]]]
    with pytest.raises(KernelError, match="cannot invert its matrix"):
        run("Inverse", np.zeros((2, 2), np.float32))
    a, b = np.array([[0, 0], [3, 4]], np.float32), np.array([[3, 4]], np.float32)
    assert run("CDist", a, b).tolist() == [[25], [0]]
    assert run("CDist", a, b, metric=b"euclidean").tolist() == [[5], [0]]


def test_unique_elements_in_the_order_of_appearance() -> None:
    values, index, counts = run("Unique", np.array([2, 1, 1, 3, 4, 3], np.float32), results=3)
    assert (values.tolist(), index.tolist(), counts.tolist()) == ([2, 1, 3, 4], [0, 1, 1, 2, 3, 2], [1, 2, 2, 1])


def test_repeated_ngrams_are_blocked() -> None:
    ids, scores = np.array([[1, 2, 3, 1, 2], [4, 4, 4, 4, 4], [1, 2, 3, 4, 5]]), np.zeros((3, 6), np.float32)
    y = run("NGramRepeatBlock", ids, scores, ngram_size=3)
    assert [np.flatnonzero(np.isneginf(row)).tolist() for row in y] == [[3], [4], []]
    assert not np.isneginf(run("NGramRepeatBlock", ids, scores, ngram_size=6)).any()


def test_crops() -> None:
    x = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
    boxes = np.array([[0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 2, 1]], np.float32)
    y = run("CropAndResize", x, boxes, np.zeros(3, np.int32), np.array([2, 2], np.int32), extrapolation_value=-1.0)
    assert y[:, 0].tolist() == [[[0, 3], [8, 11]], [[11, 8], [3, 0]], [[0, 3], [-1, -1]]]
    y = run("CropAndResize", x, boxes[:1], np.zeros(1, np.int32), np.array([1, 1], np.int32))
    assert y.tolist() == [[[[5.5]]]]
    y = run("CropAndResize", x, boxes[:1], np.zeros(1, np.int32), np.array([1, 3], np.int32), mode=b"nearest")
    assert y.tolist() == [[[[4, 6, 7]]]]
    with pytest.raises(KernelError, match=r"bilinear and nearest. Received: 'cubic'"):
        run("CropAndResize", x, boxes[:1], np.zeros(1, np.int32), np.array([1, 1], np.int32), mode=b"cubic")


def test_transforms_and_complex_products() -> None:
    x = np.array([[1, 0, -1, 0]], np.float32)
    y = run("Rfft", x)
    assert y.tolist() == [[[0, 0], [2, 0], [0, 0]]]
    assert run("Irfft", y, signal_ndim=1).tolist() == x.tolist()
    square = run("Rfft", np.array([[1, 0], [0, 0]], np.float32), signal_ndim=2)
    assert square.tolist() == [[[1, 0], [1, 0]]] * 2
    a, b = np.array([[1, 2]], np.float32), np.array([[3, 4]], np.float32)
    assert run("ComplexMul", a, b).tolist() == [[-5, 10]]
    assert run("ComplexMulConj", a, b).tolist() == [[11, 2]]


def test_ranges_and_new_axes() -> None:
    assert run("Range", *(np.array(v, np.int64) for v in (5, 0, -2))).tolist() == [5, 3, 1]
    assert run("Range", np.float32(1), np.float32(3)).tolist() == [1, 2]
    with pytest.raises(KernelError, match="step that is not 0"):
        run("Range", np.float32(1), np.float32(3), np.float32(0))
    assert run("ExpandDims", np.zeros((2, 3), np.float32), np.array(-1, np.int32)).shape == (2, 3, 1)


def test_biases_by_distance() -> None:
    """Distances 0, 1 have buckets of their own, then they widen: 2 … 3 and beyond, twice, for the keys before and after."""
    table = np.arange(8, dtype=np.float32)[:, None]
    y = run("RelativePositionBias", table, np.array(6), np.array(6), max_distance=8, is_bidirectional=1)
    assert y[0, 0, 0].tolist() == [0, 5, 6, 6, 7, 7]
    assert y[0, 0, 5].tolist() == [3, 3, 2, 2, 1, 0]
    y = run("RelativePositionBias", table, np.array(1), np.array(3), max_distance=8)
    assert y.tolist() == [[[[0, 0, 0]]]]


def test_gated_biases() -> None:
    q, qb, rel = normal(2, 3, 8), normal(8), normal(1, 2, 3, 3)
    w, b, eco = normal(4, 6), normal(6), normal(1, 2, 1, 1)
    y = run("GatedRelativePositionBias", q, qb, rel, w, b, eco, num_heads=2)
    for n, h, i in np.ndindex(2, 2, 3):
        projected = (q + qb)[n, i, 4 * h : 4 * h + 4].astype(float) @ w + b
        u, r = 1 / (1 + np.exp(-projected.reshape(2, 3).sum(axis=1)))
        np.testing.assert_allclose(y[n, h, i], (u * (r * eco[0, h, 0, 0] - 1) + 2) * rel[0, h, i], atol=1e-5)


def test_slices_and_checks_of_elements() -> None:
    y = run("UnfoldTensor", np.arange(6, dtype=np.float32)[None], dim=1, size=3, step=2)
    assert y.tolist() == [[[0, 1, 2], [2, 3, 4]]]
    good, bad = np.ones(3, np.float32), np.array([1, np.inf], np.float16)
    assert [bool(run("IsAllFinite", good, bad, **options)) for options in ({}, {"isnan_only": 1}, {"isinf_only": 1})] == [
        False,
        True,
        False,
    ]
    assert bool(run("IsAllFinite", good))
    u8 = lambda x: np.array(x, np.uint8)
    assert run("MulInteger", u8([0, 255]), u8(1), u8([255, 255])).tolist() == [-255, 254 * 255]
