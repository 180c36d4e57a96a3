"""TensorFlow's normalizations, activations, cross entropies and fused cells: formulas, and gradients against differences."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.tf_node import run_tf, slope

# They make arrays of lists, too.
F32: Any = np.float32
I32: Any = np.int32
F64: Any = np.float64
I64: Any = np.int64

RNG = np.random.default_rng(13)
NAN, INF = np.nan, np.inf
NUMBERS = F32([NAN, INF, -INF, 0, -0.0, 1, -1, 6, 7])


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_batch_normalization_in_training(layout: str) -> None:
    x = RNG.standard_normal((3, 4, 2, 5)).astype(np.float32) + 3
    axis = 3 if layout == "NHWC" else 1
    axes = tuple(i for i in range(4) if i != axis)
    along = tuple(-1 if i == axis else 1 for i in range(4))
    scale, offset, mean, variance = (np.abs(RNG.standard_normal(x.shape[axis])).astype(np.float32) for _ in range(4))
    given = {"data_format": layout, "epsilon": 1e-3}
    y, new_mean, new_variance, saved_mean, saved_variance, _ = run_tf(
        "FusedBatchNormV3", x, scale, offset, mean, variance, results=6, exponential_avg_factor=0.25, **given
    )
    wide = x.astype(np.float64)
    now, spread = wide.mean(axes), wide.var(axes)
    exact = (wide - now.reshape(along)) / np.sqrt(spread + 1e-3).reshape(along)
    np.testing.assert_allclose(y, exact * scale.reshape(along) + offset.reshape(along), atol=1e-5)
    count = x.size // len(scale)
    np.testing.assert_allclose(new_mean, 0.75 * mean + 0.25 * now, rtol=1e-5)
    np.testing.assert_allclose(new_variance, 0.75 * variance + 0.25 * spread * count / (count - 1), rtol=1e-5)
    np.testing.assert_allclose(saved_mean, now, rtol=1e-5)
    np.testing.assert_allclose(saved_variance, spread, rtol=1e-5)

    def normalized(x: Any, scale: Any) -> Any:
        centered = x - x.mean(axes).reshape(along)
        return centered * (scale / np.sqrt(x.var(axes) + 1e-3)).reshape(along)

    dy = RNG.standard_normal(x.shape).astype(np.float32)
    dx, by_scale, by_offset, _, _ = run_tf(
        "FusedBatchNormGradV3", dy, x, scale, saved_mean, saved_variance, scale, results=5, **given
    )
    np.testing.assert_allclose(dx, slope(lambda v: normalized(v, scale), wide, dy), atol=1e-4)
    np.testing.assert_allclose(by_scale, slope(lambda v: normalized(wide, v), scale.astype(np.float64), dy), atol=1e-4)
    np.testing.assert_allclose(by_offset, dy.astype(np.float64).sum(axes), atol=1e-5)


def test_batch_normalization_in_use_and_of_nothing() -> None:
    x = RNG.standard_normal((2, 3, 3, 2)).astype(np.float32)
    scale, offset, mean, variance = F32([[1, 2], [3, 4], [5, 6], [7, 8]])
    y = run_tf("FusedBatchNorm", x, scale, offset, mean, variance, results=5, is_training=False)[0]
    np.testing.assert_allclose(y, (x - mean) / np.sqrt(variance + 1e-4) * scale + offset, atol=1e-5)
    dx, by_scale, by_offset, _, _ = run_tf("FusedBatchNormGrad", x, x, scale, mean, variance, results=5, is_training=False)
    np.testing.assert_allclose(dx, x * scale / np.sqrt(variance + 1e-4), atol=1e-6)
    np.testing.assert_allclose(by_scale, (x * (x - mean)).sum((0, 1, 2)) / np.sqrt(variance + 1e-4), rtol=1e-4)
    np.testing.assert_allclose(by_offset, x.sum((0, 1, 2)), atol=1e-5)
    found = run_tf("FusedBatchNormV3", x[:0], scale, offset, mean, variance, results=6)
    assert found[0].shape == (0, 3, 3, 2)
    assert np.isnan(found[1]).all()


def test_statistics_of_half_precision_are_float32() -> None:
    x = RNG.standard_normal((2, 3, 3, 2)).astype(np.float16)
    one = np.ones(2, np.float32)
    y, mean, *_ = run_tf("FusedBatchNormV3", x, one, one, one, one, results=6)
    assert (y.dtype, mean.dtype) == (np.float16, np.float32)
    np.testing.assert_allclose(mean, x.astype(np.float64).mean((0, 1, 2)), rtol=1e-6)


@pytest.mark.parametrize(("layout", "axis"), [("NHWC", 3), ("NCHW", 1)])
def test_bias(layout: str, axis: int) -> None:
    x = RNG.integers(-9, 9, (2, 3, 4, 3)).astype(np.int32)
    bias = I32([1, 2, 3])
    along = [-1 if i == axis else 1 for i in range(4)]
    np.testing.assert_array_equal(run_tf("BiasAdd", x, bias, data_format=layout), x + bias.reshape(along))
    axes = tuple(i for i in range(4) if i != axis)
    np.testing.assert_array_equal(run_tf("BiasAddGrad", x, data_format=layout), x.sum(axes))
    with pytest.raises(KernelError, match="a number for each channel"):
        run_tf("BiasAdd", x, bias[:2], data_format=layout)


@pytest.mark.parametrize("beta", [0.5, 0.75])
def test_response_normalization(beta: float) -> None:
    x = RNG.standard_normal((1, 2, 1, 6)).astype(np.float32)
    given = {"depth_radius": 2, "bias": 1.5, "alpha": 0.3, "beta": beta}

    def normalized(x: Any) -> Any:
        total = np.stack([np.square(x[..., max(0, c - 2) : c + 3]).sum(-1) for c in range(6)], -1)
        return x / (1.5 + 0.3 * total) ** beta

    y = run_tf("LRN", x, **given)
    np.testing.assert_allclose(y, normalized(x.astype(np.float64)), rtol=1e-5)
    dy = RNG.standard_normal(x.shape).astype(np.float32)
    np.testing.assert_allclose(run_tf("LRNGrad", dy, x, y, **given), slope(normalized, x, dy), atol=1e-5)


@pytest.mark.parametrize(
    ("op", "wanted"),
    [
        ("Relu", [NAN, INF, 0, 0, 0, 1, 0, 6, 7]),
        ("Relu6", [NAN, 6, 0, 0, 0, 1, 0, 6, 6]),
        ("Elu", [NAN, INF, -1, 0, 0, 1, -0.63212055, 6, 7]),
        ("Selu", [NAN, INF, -1.7580993, 0, 0, 1.050701, -1.1113307, 6.3042059, 7.3549069]),
        ("LeakyRelu", [NAN, INF, -INF, 0, 0, 1, -0.2, 6, 7]),
        ("Softplus", [NAN, INF, 0, 0.69314718, 0.69314718, 1.3132616, 0.31326169, 6.0024757, 7.0009117]),
        ("Softsign", [NAN, NAN, NAN, 0, 0, 0.5, -0.5, 0.85714287, 0.875]),
    ],
)
def test_activations_are_as_tensorflow_printed_them(op: str, wanted: list[float]) -> None:
    np.testing.assert_allclose(run_tf(op, NUMBERS), F32(wanted), rtol=1e-6)


@pytest.mark.parametrize("op", ["Relu", "Relu6", "Elu", "Selu", "LeakyRelu", "Softplus", "Softsign"])
def test_gradients_of_activations_are_slopes(op: str) -> None:
    x = F64([-3, -0.7, 0.2, 2, 5.5, 8])
    dy = RNG.standard_normal(6)
    other = run_tf(op, x) if op in ("Elu", "Selu") else x
    np.testing.assert_allclose(run_tf(f"{op}Grad", dy, other), slope(lambda v: run_tf(op, v), x, dy), atol=1e-7)


def test_gradients_at_kinks_and_of_what_is_not_finite() -> None:
    one = np.ones(9, np.float32)
    assert run_tf("ReluGrad", one, NUMBERS).tolist() == [0, 1, 0, 0, 0, 1, 0, 1, 1]
    assert run_tf("Relu6Grad", one, NUMBERS).tolist() == [0, 0, 0, 0, 0, 1, 0, 0, 0]
    assert np.isnan(run_tf("ReluGrad", one * INF, -one)).all()


def test_softmax_and_cross_entropies() -> None:
    x, labels = RNG.standard_normal((4, 3)) * 5, RNG.dirichlet(np.ones(3), 4)
    share = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    np.testing.assert_allclose(run_tf("Softmax", x), share)
    np.testing.assert_allclose(run_tf("LogSoftmax", x), np.log(share))
    loss, gradient = run_tf("SoftmaxCrossEntropyWithLogits", x, labels, results=2)
    np.testing.assert_allclose(loss, -(labels * np.log(share)).sum(-1))
    np.testing.assert_allclose(gradient, share - labels, atol=1e-12)
    loss, gradient = run_tf("SparseSoftmaxCrossEntropyWithLogits", x, np.array([0, 2, 1, 1]), results=2)
    np.testing.assert_allclose(loss, -np.log(share)[np.arange(4), [0, 2, 1, 1]])
    np.testing.assert_allclose(gradient, share - np.eye(3)[[0, 2, 1, 1]], atol=1e-12)
    loss, gradient = run_tf("SoftmaxCrossEntropyWithLogits", np.zeros((1, 3)), np.ones((2, 1)), results=2)
    np.testing.assert_allclose(loss, [3 * np.log(3)] * 2)
    assert gradient.shape == (2, 3)
    with pytest.raises(KernelError, match="one of 3 classes"):
        run_tf("SparseSoftmaxCrossEntropyWithLogits", x, np.array([0, 3, 1, 1]), results=2)


def _logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _lstm(x: Any, cs: Any, h: Any, w: Any, peepholes: Any, b: Any, order: str, forget: float) -> tuple[Any, Any]:
    """Return cell states and outputs of an LSTM; ``order`` names the columns of the weights."""
    states, outputs = [], []
    for row in x:
        columns = dict(zip(order, np.split(np.concatenate([row, h], 1) @ w + b, 4, 1), strict=True))
        i, f = _logistic(columns["i"] + cs * peepholes[0]), _logistic(columns["f"] + cs * peepholes[1] + forget)
        cs = np.tanh(columns["c"]) * i + cs * f
        h = _logistic(columns["o"] + cs * peepholes[2]) * np.tanh(cs)
        states.append(cs)
        outputs.append(h)
    return np.stack(states), np.stack(outputs)


lstm: Any = _lstm  # called with lists of operands


@pytest.mark.parametrize("peephole", [False, True])
@pytest.mark.parametrize(("version", "order", "forget"), [("", "icfo", 1.0), ("V2", "ifco", 0.0)])
def test_lstm_and_its_gradient(version: str, order: str, forget: float, peephole: bool) -> None:
    x, cs, h = (RNG.standard_normal(s).astype(np.float32) for s in ((3, 2, 2), (2, 3), (2, 3)))
    w, b = RNG.standard_normal((5, 12)).astype(np.float32), RNG.standard_normal(12).astype(np.float32)
    peepholes = list(RNG.standard_normal((3, 3)).astype(np.float32))
    used = peepholes if peephole else [np.zeros(3)] * 3
    operands = [I64(3), x, cs, h, w, *peepholes, b]
    given: dict[str, Any] = {"use_peephole": peephole}
    saved = run_tf(f"BlockLSTM{version}", *operands, results=7, **given)
    wide = [v.astype(np.float64) for v in (x, cs, h, w)]
    states, outputs = lstm(*wide, used, b, order, forget)
    assert np.abs(states).max() < 3  # so that V1's clipping at 3 plays no part
    np.testing.assert_allclose(saved[1], states, atol=1e-5)
    np.testing.assert_allclose(saved[6], outputs, atol=1e-5)
    d_states, d_outputs = RNG.standard_normal((2, 3, 2, 3)).astype(np.float32)
    found = run_tf(f"BlockLSTMGrad{version}", *operands, *saved, d_states, d_outputs, results=8, **given)
    dy = np.concatenate([d_states, d_outputs])
    for k in range(4):

        def moved(v: Any, k: int = k) -> Any:
            return np.concatenate(lstm(*wide[:k], v, *wide[k + 1 :], used, b, order, forget))

        np.testing.assert_allclose(found[k], slope(moved, wide[k], dy), atol=2e-4)
    by_b = slope(lambda v: np.concatenate(lstm(*wide, used, v, order, forget)), b, dy)
    np.testing.assert_allclose(found[7], by_b, atol=2e-4)
    if peephole:
        for k in range(3):
            by_peephole = slope(
                lambda v, k=k: np.concatenate(lstm(*wide, [*used[:k], v, *used[k + 1 :]], b, order, forget)), used[k], dy
            )
            np.testing.assert_allclose(found[4 + k], by_peephole, atol=2e-4)


def test_one_step_of_an_lstm_is_a_sequence_of_one() -> None:
    x, cs, h = (RNG.standard_normal(s).astype(np.float32) for s in ((2, 2), (2, 3), (2, 3)))
    w, b = RNG.standard_normal((5, 12)).astype(np.float32), RNG.standard_normal(12).astype(np.float32)
    rest = [cs, h, w, *RNG.standard_normal((3, 3)).astype(np.float32), b]
    given = {"use_peephole": True, "cell_clip": 0.2}
    step = run_tf("LSTMBlockCell", x, *rest, results=7, **given)
    whole = run_tf("BlockLSTM", I64(1), x[None], *rest, results=7, **given)
    assert np.abs(step[1]).max() == F32(0.2)
    for one, many in zip(step, whole, strict=True):
        np.testing.assert_allclose(one, many[0], rtol=1e-5, atol=1e-6)
    d = list(RNG.standard_normal((2, 2, 3)).astype(np.float32))
    grads = run_tf("LSTMBlockCellGrad", x, *rest, *step[:6], *d, results=5, use_peephole=True)
    wholes = run_tf("BlockLSTMGrad", I64(1), x[None], *rest, *whole, *(v[None] for v in d), results=8, use_peephole=True)
    np.testing.assert_allclose(grads[0], wholes[1], atol=1e-5)
    np.testing.assert_allclose(grads[1].sum(0), wholes[7], atol=1e-5)


def test_gru_and_its_gradient() -> None:
    x, h, w_ru, w_c, b_ru, b_c = (RNG.standard_normal(s).astype(np.float32) for s in ((2, 3), (2, 2), (5, 4), (5, 2), 4, 2))

    def step(x: Any, h: Any) -> tuple[Any, ...]:
        r, u = np.split(_logistic(np.concatenate([x, h], 1) @ w_ru + b_ru), 2, 1)
        c = np.tanh(np.concatenate([x, h * r], 1) @ w_c + b_c)
        return r, u, c, u * h + (1 - u) * c

    found = run_tf("GRUBlockCell", x, h, w_ru, w_c, b_ru, b_c, results=4)
    for a, b in zip(found, step(x.astype(np.float64), h), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    dh = RNG.standard_normal((2, 2)).astype(np.float32)
    grads = run_tf("GRUBlockCellGrad", x, h, w_ru, w_c, b_ru, b_c, *found[:3], dh, results=4)
    np.testing.assert_allclose(grads[0], slope(lambda v: step(v, h)[3], x, dh), atol=1e-4)
    np.testing.assert_allclose(grads[1], slope(lambda v: step(x, v)[3], h, dh), atol=1e-4)
