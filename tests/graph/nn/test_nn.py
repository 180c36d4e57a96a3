"""``ampgraph.nn``: what TensorFlow computes, in float32 and in both low precisions."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph import nn

from ...contract.modules import ROOT
from ..tracing.running import run_graph

RECORDED = json.loads((ROOT / "tests/data/nn/results.json").read_text(encoding="utf-8"))


def sines(*shape: int, k: float = 0.37) -> np.ndarray:
    """Return numbers that look irregular and are easy to make anywhere."""
    return np.sin(np.arange(int(np.prod(shape))) * k + 0.5).astype(np.float32).reshape(shape)


X, W, DW, L = sines(2, 4, 5, 3), sines(3, 2, 3, 2, k=0.71), sines(3, 3, 3, 2, k=0.71), sines(4, 5, k=1.3)
STATISTICS = (sines(3), sines(3, k=1.0), sines(3, k=2.0), sines(3, k=3.0) ** 2)
LSTM = (sines(2, 3, 4), sines(4, 8), sines(2, 8, k=0.9), sines(8, k=0.3))
GRU = (sines(2, 3, 4), sines(4, 6), sines(2, 6, k=0.9), sines(2, 6, k=0.3))

#: Recorded names of the results, the function, and its arrays.
CASES: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    ("conv_same", lambda x, w: nn.conv2d(x, w, 2), (X, W)),
    ("conv_dilated", lambda x, w: nn.conv2d(x, w, 1, [[1, 2], [2, 0]], dilation=2), (X, W)),
    ("conv_same", lambda x, w: np.moveaxis(nn.conv2d(np.moveaxis(x, -1, 1), w, 2, data_format="NCHW"), 1, -1), (X, W)),
    ("depthwise", lambda x, w: nn.depthwise_conv2d(x, w, padding="VALID"), (X, DW)),
    ("max_pool", lambda x: nn.max_pool(x, 3, 2, "SAME"), (X,)),
    ("avg_pool", lambda x: nn.avg_pool(x, (2, 3), 1, "SAME"), (X,)),
    ("bn_train bn_mean bn_variance", lambda x, *s: nn.batch_norm(x, *s, training=True, momentum=0.9), (X, *STATISTICS)),
    ("bn", lambda x, *s: nn.batch_norm(x, *s)[0], (X, *STATISTICS)),
    ("bn", lambda x, *s: nn.batch_norm(x.reshape(-1, 3), *s)[0], (X, *STATISTICS)),
    ("layer_norm", lambda x, s, o: nn.layer_norm(x, s, o), (L, sines(5), sines(5, k=2.0))),
    ("softmax_cross_entropy", lambda x, y: nn.softmax_cross_entropy(x, nn.softmax(y)), (L, sines(4, 5))),
    ("sparse", lambda x, y: nn.sparse_softmax_cross_entropy(x, y), (L, np.array([0, 4, 2, 2], np.uint8))),
    ("sparse", lambda x, y: nn.sparse_softmax_cross_entropy(x.reshape(2, 2, 5), y), (L, np.array([[0, 4], [2, 2]]))),
    ("log_softmax", lambda x: nn.log_softmax(x, 0), (L,)),
    *(
        (name, lambda x, name=name: getattr(nn, name)(x * 4), (L,))
        for name in ["relu6", "elu", "selu", "softplus", "softsign", "sigmoid", "silu"]
    ),
    ("leaky_relu", lambda x: nn.leaky_relu(x * 4), (L,)),
    ("gelu", lambda x: nn.gelu(x), (L,)),
    ("gelu_tanh", lambda x: nn.gelu(x, approximate=True), (L,)),
    ("erf", nn.erf, (L,)),
    (
        "attention",
        lambda q, k, v: nn.attention(q, k, v, causal=True),
        (sines(2, 2, 3, 4), sines(2, 2, 3, 4, k=0.6), sines(2, 2, 3, 5, k=0.8)),
    ),
    ("lstm lstm_hidden lstm_cell", nn.lstm, LSTM),
    ("gru gru_hidden", nn.gru, GRU),
]


@pytest.mark.parametrize(("names", "function", "arrays"), CASES)
def test_is_what_tensorflow_computes(names: str, function: Callable[..., Any], arrays: tuple[Any, ...]) -> None:
    opened = tuple(ag.TensorSpec((None, *x.shape[1:]), x.dtype) if i == 0 else x for i, x in enumerate(arrays))
    for results in (run_graph(function, arrays), run_graph(function, arrays, opened)):
        for name, result in zip(names.split(), results, strict=True):
            np.testing.assert_allclose(result.ravel(), RECORDED[name], rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("names", "function", "arrays"), CASES)
def test_runs_in_low_precision(names: str, function: Callable[..., Any], arrays: tuple[Any, ...], dtype: str) -> None:
    """Behind a matrix product, so that there is something to rewrite."""

    def whole(x: Any, *rest: Any) -> Any:
        return function(x @ np.eye(x.shape[-1], dtype=np.float32), *rest)

    graph = ag.trace(whole, *arrays)
    result = ag.auto_mixed_precision(graph, dtype=dtype, target="cpu")
    assert result.modified
    program = ag.compile(result.graph)
    outputs = program(dict(zip(program.input_names, arrays, strict=True)))
    for name, output in zip(names.split(), outputs.values(), strict=True):
        np.testing.assert_allclose(output.ravel(), RECORDED[name], rtol=0.05, atol=0.05 if dtype == "bfloat16" else 0.01)


@pytest.mark.parametrize(
    "name",
    [
        "relu",
        "relu6",
        "leaky_relu",
        "elu",
        "selu",
        "softplus",
        "softsign",
        "sigmoid",
        "silu",
        "erf",
        "gelu",
        "softmax",
        "log_softmax",
    ],
)
def test_activations_take_numpy_arrays_too(name: str) -> None:
    function = getattr(nn, name)
    result = function(L * 3)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, run_graph(function, (L * 3,))[0], rtol=1e-5, atol=1e-6)


def test_layer_norm_takes_numpy_arrays_too() -> None:
    np.testing.assert_allclose(
        nn.layer_norm(L, axis=(0, 1)), run_graph(lambda x: nn.layer_norm(x, axis=(0, 1)), (L,))[0], rtol=1e-5
    )


def test_rows_of_tables() -> None:
    table, rows = sines(5, 3), np.array([[0, 4], [2, 2]])
    assert run_graph(nn.embedding, (table, rows))[0].tolist() == table[rows].tolist()
    assert run_graph(lambda i: nn.one_hot(i, 5), (rows,))[0].tolist() == np.eye(5)[rows].tolist()
    assert run_graph(lambda x, b: nn.bias_add(x, b), (X, sines(3)))[0].tolist() == (X + sines(3)).tolist()


def test_attention_with_a_mask_looks_where_it_may() -> None:
    q, v = sines(3, 4), sines(3, 2)
    mask = np.eye(3, dtype=bool)
    np.testing.assert_allclose(run_graph(lambda q, v, m: nn.attention(q, q, v, m), (q, v, mask))[0], v, rtol=1e-6)


def test_a_state_is_where_recurrent_layers_go_on() -> None:
    x, *weights = LSTM
    whole = run_graph(nn.lstm, LSTM)

    def halves(x: Any, *weights: Any) -> Any:
        first, state = nn.lstm(x[:, :1], *weights)
        second, state = nn.lstm(x[:, 1:], *weights, state=state)
        return np.concatenate([first, second], 1), state

    for one, two in zip(whole, run_graph(halves, (x, *weights)), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-6)


def test_dropout_keeps_the_mean_and_draws_again() -> None:
    x = np.ones((100, 100), np.float32)
    graph = ag.trace(lambda x: nn.dropout(x, 0.25, seed=5), x)
    program = ag.compile(graph)
    one, two = program({"x": x})["output"], program({"x": x})["output"]
    assert set(np.unique(one)) == {np.float32(0), np.float32(4 / 3)}
    assert abs(one.mean() - 1) < 0.03
    assert (one != two).any()
    assert (ag.compile(graph)({"x": x})["output"] == one).all()
    assert nn.dropout(x, 0.5, training=False) is x


def test_random_numbers() -> None:
    def draw(x: Any) -> Any:
        shape = (x.shape[0], 1000)
        return (
            ag.random.uniform(shape, -1, 3, seed=1),
            ag.random.normal(shape),
            ag.random.truncated_normal(shape, dtype=np.float64),
            ag.random.integers(2, 5, shape),
        )

    uniform, normal, truncated, integers = run_graph(draw, (np.zeros(4, np.float32),), (ag.TensorSpec([None]),))
    assert -1 <= uniform.min() < -0.9 < 2.9 < uniform.max() < 3
    assert abs(normal.mean()) < 0.1
    assert 0.9 < normal.std() < 1.1
    assert truncated.dtype == np.float64
    assert 1.8 < np.abs(truncated).max() <= 2
    assert set(np.unique(integers)) == {2, 3, 4}


@pytest.mark.parametrize(
    ("function", "message"),
    [
        pytest.param(lambda x: nn.conv2d(x[0], W), "Images and filters have 4 dimensions", id="rank"),
        pytest.param(lambda x: nn.conv2d(x, W, data_format="NHCW"), "The layout of images is NHWC or NCHW", id="layout"),
        pytest.param(lambda x: nn.conv2d(x, W, (1, 0)), "one positive integer, or two", id="stride"),
        pytest.param(lambda x: nn.conv2d(x, W, padding="FULL"), "Padding is 'SAME', 'VALID' or two pairs", id="padding"),
        pytest.param(lambda x: nn.max_pool(x, padding="FULL"), "The padding of pooling is", id="pool-padding"),
        pytest.param(lambda x: nn.batch_norm(x[0], *STATISTICS), "batch_norm takes images, or", id="batch-norm"),
        pytest.param(lambda x: nn.softmax_cross_entropy(x, x[0]), "have the same shape", id="labels"),
        pytest.param(
            lambda x: nn.sparse_softmax_cross_entropy(x, x), "Labels of sparse_softmax_cross_entropy are integers", id="sparse"
        ),
        pytest.param(lambda x: nn.dropout(x, 1.0), "The rate of dropout is a number from 0 up to 1", id="rate"),
        pytest.param(lambda x: nn.dropout(x, 0.5, seed=0), "A seed is an integer other than 0", id="seed"),
        pytest.param(lambda x: nn.lstm(x, *LSTM[1:]), r"Inputs are \[batch, time, features\]", id="lstm"),
        pytest.param(lambda x: nn.attention(x, x[:, :, :2], x, causal=True), "as many keys as queries", id="causal"),
    ],
)
def test_refuses(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(ag.TraceError, match=message):
        ag.trace(function, ag.TensorSpec([None, 4, 5, 3]))


def test_lives_in_graphs() -> None:
    with pytest.raises(ag.TraceError, match="No function is being traced"):
        nn.conv2d(X, W)
