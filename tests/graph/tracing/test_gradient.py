"""Gradients inside of traced functions, against central differences."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph import nn

RNG = np.random.default_rng(3)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "dense": (lambda x, w: nn.gelu(nn.layer_norm(x @ w)).mean(), (normal(4, 6), normal(6, 6))),
    "sparse-loss": (
        lambda x, w, y: nn.sparse_softmax_cross_entropy(x @ w, y).mean(),
        (normal(4, 3), normal(3, 5), np.array([0, 1, 4, 2])),
    ),
    "loss": (lambda x, y: nn.softmax_cross_entropy(x, nn.softmax(y)).sum(), (normal(4, 3), normal(4, 3))),
    "images": (
        lambda x, w, d: (nn.avg_pool(nn.depthwise_conv2d(nn.conv2d(x, w), d)) ** 2).mean(),
        (normal(2, 4, 4, 3), normal(3, 3, 3, 2), normal(3, 3, 2, 1)),
    ),
    "attention": (
        lambda q, k, v: (nn.attention(q, k, v, causal=True) ** 2).sum(),
        (normal(2, 3, 4), normal(2, 3, 4), normal(2, 3, 4)),
    ),
    "lstm": (lambda *a: (nn.lstm(*a)[0] ** 2).sum(), (normal(2, 3, 3), normal(3, 8), normal(2, 8), normal(8))),
    "gru": (lambda *a: (nn.gru(*a)[0] ** 2).sum(), (normal(2, 3, 3), normal(3, 6), normal(2, 6), normal(2, 6))),
    "branch": (lambda x, w: ag.cond(x.sum() > 0, lambda: (x @ w).sum(), lambda: (x * w).sum()), (normal(3, 3), normal(3, 3))),
    "loop": (
        lambda x, w: ag.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, np.tanh(y @ w)), (0, x))[1].sum(),
        (normal(3, 3), normal(3, 3)),
    ),
    "indices": (
        lambda x, i: (x[:, i] * x[[0, -1]].sum() + x[np.arange(3), i].std() + np.take(x, i, 1)[::-1]).sum(),
        (normal(3, 3), np.array([0, -1, 2])),
    ),
    "numpy": (
        lambda x: (
            (np.einsum("ij,kj->ik", x, x) ** 2).sum()
            + x.var()
            + np.linalg.norm(x)
            + np.logaddexp(x, 0).sum()
            + np.roll(x, 1, 1)[0] @ x[1]
        ),
        (normal(5, 3),),
    ),
    "shapes": (lambda x: (np.pad(x, 1).T.reshape(-1, 7)[1:] * np.concatenate([x, x * 2])[:4, :1]).sum(), (normal(5, 3),)),
}


@pytest.mark.parametrize("name", CASES)
def test_is_the_slope(name: str) -> None:
    function, arrays = CASES[name]
    floats = [i for i, x in enumerate(arrays) if x.dtype.kind == "f"]

    @ag.function
    def both(*xs: Any) -> Any:
        y = function(*xs)
        return y, ag.gradients(y, [xs[i] for i in floats])

    _, found = both(*arrays)
    for i, gradient in zip(floats, found, strict=True):
        assert gradient.dtype == arrays[i].dtype
        assert gradient.shape == arrays[i].shape
        direction = RNG.standard_normal(arrays[i].shape)
        ends = [both(*arrays[:i], arrays[i] + step * direction, *arrays[i + 1 :])[0] for step in (1e-5, -1e-5)]
        np.testing.assert_allclose((gradient * direction).sum(), (ends[0] - ends[1]) / 2e-5, rtol=1e-5, atol=1e-7)


def test_gradients_have_the_containers_of_what_they_are_by() -> None:
    params = {"w": ag.Variable(normal(3, 2), name="w"), "b": [ag.Variable(normal(2), name="b")], "unused": ag.Variable(0.0)}

    @ag.function
    def step(x: Any) -> Any:
        loss = (x @ params["w"] + params["b"][0]).sum()
        slopes = ag.gradients(loss, params)
        params["b"][0].assign_sub(slopes["b"][0] * 0.5)
        return slopes

    x = normal(4, 3)
    before = np.array(params["b"][0])
    slopes = step(x)
    np.testing.assert_allclose(slopes["w"], np.repeat(x.sum(0)[:, None], 2, 1))
    assert slopes["b"][0].tolist() == [4, 4]
    assert slopes["unused"] is None
    np.testing.assert_allclose(params["b"][0].value, before - 2)


def test_what_was_computed_before_can_be_used_after() -> None:
    """Loops and branches are made anew for their gradients."""

    def function(x: Any) -> Any:
        steps, y = ag.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * x), (0, x))
        z = ag.cond(x.sum() > 0, lambda: y * 2, lambda: y)
        (slope,) = ag.gradients(z, x)
        (second,) = ag.gradients(slope, x)
        return steps, y, z, slope, second, ag.gradients(y.sum() * steps.astype("f8"), [x])[0]

    x = np.array([1.0, 2.0, 3.0])
    steps, y, z, slope, second, scaled = ag.function(function)(x)
    assert steps == 2
    for result, expected in [(y, x**3), (z, 2 * x**3), (slope, 6 * x**2), (second, 12 * x), (scaled, 6 * x**2)]:
        np.testing.assert_allclose(result, expected)


def test_stops_and_seeds() -> None:
    def function(x: Any) -> Any:
        y = x * x
        return ag.gradients(y * x, x, stop_gradients=y), ag.gradients(ag.stop_gradient(y) * x, x), ag.gradients([y], [x], [x + 1])

    x = np.array([2.0, 3.0])
    results = ag.function(function)(x)
    assert [part[0].tolist() for part in results] == [[4, 9], [4, 9], [12, 24]]


def test_a_rewrite_reaches_forward_and_backward() -> None:
    w = ag.Variable(normal(8, 8), name="w", dtype="float32")

    @ag.function(policy=ag.Policy(target="cpu"))
    def step(x: Any) -> Any:
        loss = nn.relu(x @ w).mean()
        return loss, ag.gradients(loss, [w])

    loss, (slope,) = step(normal(4, 8).astype(np.float32))
    (found,) = step.cache.values()
    low = [node.name for node in found.program.graph.nodes if node.types.get("T") is ag.find_dtype("float16")]
    assert "MatMul" in low
    assert any(name.startswith("gradients/") and "MatMul" in name for name in low)
    assert (loss.dtype, slope.dtype) == (np.float32, np.float32)
