"""TensorFlow's rarer layers: dilation, boxes, scaled images, spellings and fused convolutions, against definitions and slopes."""

from itertools import groupby, product
from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.tf_node import run_tf, slope

# They make arrays of lists, too.
F32: Any = np.float32
I32: Any = np.int32
I64: Any = np.int64

RNG = np.random.default_rng(23)
BOXES = F32([[0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9], [-0.2, 0.3, 1.2, 0.5], [0.9, 0.8, 0.1, 0.2]])
WHICH = I32([0, 1, 1, 0])


def dilated(x: Any, w: Any, stride: int, rate: int) -> Any:
    """Return a VALID dilation, an element at a time."""
    rows, columns = ((x.shape[1 + i] - (w.shape[i] - 1) * rate - 1) // stride + 1 for i in (0, 1))
    y = np.zeros((x.shape[0], rows, columns, x.shape[3]), x.dtype)
    for i, j in np.ndindex(rows, columns):
        seen = x[:, i * stride : i * stride + (w.shape[0] - 1) * rate + 1 : rate]
        y[:, i, j] = (seen[:, :, j * stride : j * stride + (w.shape[1] - 1) * rate + 1 : rate] + w).max((1, 2))
    return y


@pytest.mark.parametrize(("stride", "rate"), [(1, 1), (2, 1), (1, 2)])
def test_dilations_and_their_gradients(stride: int, rate: int) -> None:
    x, w = RNG.standard_normal((2, 6, 7, 2)), RNG.standard_normal((3, 2, 2))
    given = {"strides": [1, stride, stride, 1], "rates": [1, rate, rate, 1], "padding": "VALID"}
    y = dilated(x, w, stride, rate)
    np.testing.assert_array_equal(run_tf("Dilation2D", x, w, **given), y)
    dy = RNG.standard_normal(y.shape)
    by_x, by_w = (run_tf(f"Dilation2DBackprop{name}", x, w, dy, **given) for name in ("Input", "Filter"))
    np.testing.assert_allclose(by_x, slope(lambda v: dilated(v, w, stride, rate), x, dy), atol=1e-8)
    np.testing.assert_allclose(by_w, slope(lambda v: dilated(x, v, stride, rate), w, dy), atol=1e-8)


def test_whole_dilations_see_nothing_outside() -> None:
    x = RNG.integers(-9, 9, (1, 4, 4, 1)).astype(np.int32)
    given = {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "SAME"}
    y = run_tf("Dilation2D", x - 100, np.zeros((3, 3, 1), np.int32), **given)
    assert y[0, 0, 0, 0] == x[0, :2, :2].max() - 100
    assert y[0, 3, 3, 0] == x[0, 2:, 2:].max() - 100
    with pytest.raises(KernelError, match="structure"):
        run_tf("Dilation2D", x, np.zeros((3, 3, 2), np.int32), **given)


@pytest.mark.parametrize("size", [(4, 5), (1, 3)])
def test_gradients_of_boxes_are_slopes(size: tuple[int, int]) -> None:
    x, dy = RNG.standard_normal((2, 5, 6, 2)).astype(np.float32), RNG.standard_normal((4, *size, 2)).astype(np.float32)
    crop = I32(size)

    def cut(images: Any, boxes: Any) -> Any:
        return run_tf("CropAndResize", F32(images), F32(boxes), WHICH, crop).astype(np.float64)

    by_images = run_tf("CropAndResizeGradImage", dy, BOXES, WHICH, I32(x.shape), types={"T": "float32"})
    np.testing.assert_allclose(by_images, slope(lambda v: cut(v, BOXES), x, dy, 0.5), atol=2e-5)
    inner = F32([[0.11, 0.231, 0.83, 0.917], [0.2, 0.3, 0.7, 0.55], [0.31, 0.13, 0.77, 0.86], [0.903, 0.807, 0.107, 0.213]])
    by_boxes = run_tf("CropAndResizeGradBoxes", dy, x, inner, WHICH)
    np.testing.assert_allclose(by_boxes, slope(lambda v: cut(x, v), inner, dy, 1e-3), rtol=5e-3, atol=2e-2)
    with pytest.raises(KernelError, match="none of 2 images"):
        run_tf("CropAndResizeGradBoxes", dy, x, inner, WHICH + 1)


@pytest.mark.parametrize("name", ["lanczos3", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic"])
def test_scaled_images(name: str) -> None:
    flat, size = np.full((1, 6, 7, 1), 3, np.float32), I32([9, 5])
    scale, shift = F32([1.5, 0.7]), F32([0.5, 0])
    y = run_tf("ScaleAndTranslate", flat, size, scale, shift, kernel_type=name)
    np.testing.assert_allclose(y[:, 1:], np.full((1, 8, 5, 1), 3), rtol=1e-6)
    x, dy = RNG.standard_normal((1, 6, 7, 2)).astype(np.float32), RNG.standard_normal((1, 9, 5, 2)).astype(np.float32)
    y = run_tf("ScaleAndTranslate", x, size, scale, shift, kernel_type=name)
    back = run_tf("ScaleAndTranslateGrad", dy, x, scale, shift, kernel_type=name)
    assert float((y * dy).sum()) == pytest.approx(float((x * back).sum()), abs=1e-4)
    if name in ("lanczos3", "box", "triangle", "keyscubic"):
        moved = run_tf("ScaleAndTranslate", x, I32([6, 7]), F32([1, 1]), F32([2, 0]), kernel_type=name)
        np.testing.assert_allclose(moved[:, 2:], x[:, :-2], atol=1e-5)
        np.testing.assert_array_equal(moved[:, :2], 0)


def spelled_loss(logits: Any, labels: list[int]) -> float:
    """Return the loss of one sequence by trying every path."""
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    blank, total = logits.shape[1] - 1, 0.0
    for path in product(range(blank + 1), repeat=len(logits)):
        if [c for c, _ in groupby(path) if c != blank] == labels:
            total += float(np.prod(chances[np.arange(len(path)), list(path)]))
    return -float(np.log(total))


def test_spellings() -> None:
    logits, rows, lengths = RNG.standard_normal((5, 3, 3)), [[0, 1], [1, 1], [0]], I32([5, 4, 1])
    places = I64([[b, i] for b, row in enumerate(rows) for i in range(len(row))])
    values = I32([label for row in rows for label in row])

    def losses(x: Any) -> Any:
        return np.array([spelled_loss(x[:n, b], rows[b]) for b, n in enumerate(lengths)])

    loss, gradient = run_tf("CTCLoss", logits, places, values, lengths, results=2)
    np.testing.assert_allclose(loss, losses(logits), rtol=1e-12)
    np.testing.assert_allclose(gradient, slope(losses, logits, np.ones(3)), atol=1e-8)
    with pytest.raises(KernelError, match="Sequence 1 has 2 labels"):
        run_tf("CTCLoss", logits, places, values, I32([5, 1, 1]), results=2)
    ignored: dict[str, Any] = {"ignore_longer_outputs_than_inputs": True}
    loss, gradient = run_tf("CTCLoss", logits, places, values, I32([5, 1, 1]), results=2, **ignored)
    assert loss[1] == 0
    assert not gradient[:, 1].any()


def test_what_is_fused_comes_after_the_convolution() -> None:
    x, w = RNG.standard_normal((1, 4, 5, 3)), RNG.standard_normal((2, 2, 3, 4))
    windows = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    y = run_tf("Conv2D", x, w, **windows)
    bias = RNG.standard_normal(4)

    def fused(*operands: Any, ops: list[bytes]) -> Any:
        more = {"num_args": len(operands), "fused_ops": ops}
        return run_tf("_FusedConv2D", x, w, *operands, **windows, **more)

    np.testing.assert_allclose(fused(bias, ops=[b"BiasAdd", b"Relu"]), np.maximum(y + bias, 0))
    scale, offset, mean = RNG.standard_normal((3, 4))
    variance = RNG.random(4)
    wanted = (y - mean) / np.sqrt(variance + F32(1e-4)) * scale + offset
    np.testing.assert_allclose(fused(scale, offset, mean, variance, ops=[b"FusedBatchNorm"]), wanted)
    with pytest.raises(KernelError, match="'Sine'"):
        fused(ops=[b"Sine"])
    with pytest.raises(KernelError, match=r"read in the format HWIO only\. Received: 'OHWI'"):
        run_tf("_FusedConv2D", x, w, num_args=0, filter_format="OHWI", **windows)
    each = RNG.standard_normal((2, 2, 3, 1))
    plain = run_tf("DepthwiseConv2dNative", x, each, **windows)
    both = run_tf("_FusedDepthwiseConv2dNative", x, each, bias[:3], num_args=1, fused_ops=[b"BiasAdd", b"Relu6"], **windows)
    np.testing.assert_allclose(both, np.clip(plain + bias[:3], 0, 6))


def test_a_normalization_with_an_activation_behind_it() -> None:
    x, side = RNG.standard_normal((2, 3, 3, 2)).astype(np.float32), RNG.standard_normal((2, 3, 3, 2)).astype(np.float32)
    scale, offset, none = F32([0.5, 2]), F32([0.1, -0.2]), np.zeros(0, np.float32)
    given = {"activation_mode": "Relu", "num_side_inputs": 1}
    y, *_, mean, variance, _ = run_tf("_FusedBatchNormEx", x, scale, offset, none, none, side, results=6, **given)
    plain = run_tf("FusedBatchNormV3", x, scale, offset, none, none, results=6)[0]
    np.testing.assert_allclose(y, np.maximum(plain + side, 0), atol=1e-6)
    dy = RNG.standard_normal(x.shape).astype(np.float32)
    found = run_tf("_FusedBatchNormGradEx", dy, x, scale, mean, variance, none, offset, y, results=6, **given)
    wanted = run_tf("FusedBatchNormGradV3", dy * (y > 0), x, scale, mean, variance, none, results=5)
    for one, other in zip(found, [*wanted, dy * (y > 0)], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("scaled", [False, True])
def test_normalization_with_given_statistics(scaled: bool) -> None:
    x, (mean, variance, beta, gamma) = RNG.standard_normal((1, 2, 2, 3)), RNG.random((4, 3))
    given = {"variance_epsilon": 0.25, "scale_after_normalization": scaled}
    found = run_tf("BatchNormWithGlobalNormalization", x, mean, variance, beta, gamma, **given)
    np.testing.assert_allclose(found, (x - mean) / np.sqrt(variance + 0.25) * (gamma if scaled else 1) + beta)
