"""Mixtures of experts, token by token. Weights of the router and the activations were compared with onnxruntime 1.32."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.one_node import run_op

EXPERTS, HIDDEN, INNER = 4, 8, 6


def normal(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def silu(x: Any) -> Any:
    return x / (1 + np.exp(-x))


@pytest.mark.parametrize(("count", "normal_weights"), [(1, 0), (2, 0), (2, 1)])
def test_experts(count: int, normal_weights: int) -> None:
    x, router = normal(2, 3, HIDDEN), normal(6, EXPERTS)
    w1, b1, w2, b2 = (
        normal(EXPERTS, INNER, HIDDEN),
        normal(EXPERTS, INNER),
        normal(EXPERTS, HIDDEN, INNER),
        normal(EXPERTS, HIDDEN),
    )
    options = {"activation_type": b"silu", "k": count, "normalize_routing_weights": normal_weights}
    y = run_op("com.microsoft:MoE", x, router, w1, b1, w2, b2, version=1, **options)
    for token, scores, result in zip(x.reshape(6, -1).astype(float), router.astype(float), y.reshape(6, -1), strict=True):
        shares = np.exp(scores) / np.exp(scores).sum()
        best = np.argsort(-shares)[:count]
        total = shares[best].sum() if normal_weights else 1.0
        wanted = sum(shares[e] / total * (w2[e] @ silu(w1[e] @ token + b1[e]) + b2[e]) for e in best)
        np.testing.assert_allclose(result, wanted, atol=1e-5)


def test_gated_activations() -> None:
    one, gate = np.array([[3, -2]], np.float32), np.array([[0.5, -4]], np.float32)
    wide = one.astype(float)
    y = run_op("com.microsoft:SwiGLU", one, gate, version=1)
    np.testing.assert_allclose(y, silu(wide) * gate, rtol=1e-6)
    both = np.concatenate([one, gate], axis=1)
    y = run_op("com.microsoft:SwiGLU", both, version=1, limit=1.0, activation_alpha=2.0, activation_beta=1.0)
    clamped = np.minimum(wide, 1)
    np.testing.assert_allclose(y, clamped / (1 + np.exp(-2 * clamped)) * (np.clip(gate, -1, 1) + 1), rtol=1e-6)


@pytest.mark.parametrize(("fusion", "order"), [(1, [0, 2, 1, 3]), (2, [0, 1, 2, 3])])
def test_halves_of_one_weight(fusion: int, order: list[int]) -> None:
    """The identity as both halves: silu(x) * x."""
    w1 = np.concatenate([np.eye(2), np.eye(2)])[order][None].astype(np.float32)
    x, router, w2 = np.array([[1, -2]], np.float32), np.zeros((1, 1), np.float32), np.eye(2, dtype=np.float32)[None]
    y = run_op("com.microsoft:MoE", x, router, w1, None, w2, version=1, activation_type=b"swiglu", swiglu_fusion=fusion)
    np.testing.assert_allclose(y, silu(x.astype(float)) * x, rtol=1e-6)
    with pytest.raises(KernelError, match="needs fc3, or both halves in fc1"):
        run_op("com.microsoft:MoE", x, router, w1, None, w2, version=1, activation_type=b"swiglu")
    with pytest.raises(KernelError, match="Received: activation_type='tanh'"):
        run_op("com.microsoft:MoE", x, router, w1, None, w2, version=1, activation_type=b"tanh")
