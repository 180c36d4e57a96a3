"""Attention against sums over keys, one query at a time, in float64."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.one_node import run_op


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed + sum(shape)).normal(size=shape).astype(np.float32)


def attended(q: Any, k: Any, v: Any, scale: float, see: Any = None, bias: Any = None, sink: Any = None) -> Any:
    """Return the attention of ``[batch, heads, sequence, size]``; ``see(b, h, i, j)`` says whether query i may look at key j."""
    batch, heads, length, _ = q.shape
    share, keys = heads // k.shape[1], k.shape[2]
    y = np.zeros((batch, heads, length, v.shape[3]))
    for b, h, i in np.ndindex(batch, heads, length):
        allowed = [j for j in range(keys) if see is None or see(b, h, i, j)]
        scores = [scale * np.dot(q[b, h, i].astype(float), k[b, h // share, j].astype(float)) for j in allowed]
        scores = [s + (0 if bias is None else bias[b, h, i, j]) for s, j in zip(scores, allowed, strict=True)]
        weights = np.exp(scores)
        total = weights.sum() + (0 if sink is None else np.exp(sink[h]))
        for weight, j in zip(weights, allowed, strict=True):
            y[b, h, i] += weight / total * v[b, h // share, j]
    return y


def test_fewer_key_heads_and_a_float_mask() -> None:
    q, k, v, bias = normal(2, 4, 3, 5), normal(2, 2, 6, 5), normal(2, 2, 6, 7), normal(2, 4, 3, 6)
    np.testing.assert_allclose(
        run_op("Attention", q, k, v, bias, version=23, scale=0.3), attended(q, k, v, 0.3, bias=bias), atol=1e-6
    )


def test_flat_operands_have_their_heads_side_by_side() -> None:
    q, k, v = normal(2, 4, 3, 5), normal(2, 2, 6, 5), normal(2, 2, 6, 7)
    flat = [x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1) for x in (q, k, v)]
    y = run_op("Attention", *flat, version=23, q_num_heads=4, kv_num_heads=2)
    np.testing.assert_allclose(y, attended(q, k, v, 5**-0.5).swapaxes(1, 2).reshape(2, 3, 28), atol=1e-6)
    with pytest.raises(KernelError, match=r"must divide the hidden size 20. Received: 3"):
        run_op("Attention", *flat, version=23, q_num_heads=3, kv_num_heads=2)


def test_keys_of_the_past_come_first() -> None:
    q, k, v, pk, pv = (
        normal(1, 2, 2, 4),
        normal(1, 2, 2, 4, seed=1),
        normal(1, 2, 2, 4, seed=2),
        normal(1, 2, 3, 4),
        normal(1, 2, 3, 4, seed=3),
    )
    y, present_k, present_v = run_op("Attention", q, k, v, None, pk, pv, version=23, results=3, is_causal=1)
    np.testing.assert_array_equal(present_k, np.concatenate([pk, k], axis=2))
    np.testing.assert_array_equal(present_v, np.concatenate([pv, v], axis=2))
    np.testing.assert_allclose(y, attended(q, present_k, present_v, 0.5, lambda b, h, i, j: j <= i + 3), atol=1e-6)


def test_windows_lengths_and_short_masks() -> None:
    q, k, v = normal(2, 1, 3, 4), normal(2, 1, 6, 4), normal(2, 1, 6, 4, seed=1)
    lengths = np.array([6, 4])
    y = run_op("Attention", q, k, v, None, None, None, lengths, version=25, left_window_size=1, right_window_size=0)
    see = lambda b, h, i, j: i + lengths[b] - 4 <= j <= i + lengths[b] - 3
    np.testing.assert_allclose(y, attended(q, k, v, 0.5, see), atol=1e-6)
    mask = np.array([[True, False, True, True]] * 3)
    y = run_op("Attention", q, k, v, mask, version=23)
    np.testing.assert_allclose(y, attended(q, k, v, 0.5, lambda b, h, i, j: j in (0, 2, 3)), atol=1e-6)


def test_who_may_see_nothing_gets_zeros() -> None:
    q, k, v = normal(1, 1, 2, 4), normal(1, 1, 3, 4), normal(1, 1, 3, 4)
    mask = np.array([[True, True, False], [False, False, False]])
    y, *_, shares = run_op("Attention", q, k, v, mask, version=23, results=4, qk_matmul_output_mode=3)
    assert not y[0, 0, 1].any()
    assert shares[0, 0, 1].tolist() == [0, 0, 0]
    np.testing.assert_allclose(shares.sum(axis=-1), [[[1, 0]]], atol=1e-6)


def test_scores_of_every_stage() -> None:
    q, k, v, bias = normal(1, 1, 2, 4), normal(1, 1, 3, 4), normal(1, 1, 3, 4), normal(1, 1, 2, 3)
    raw = 0.5 * (q[0, 0].astype(float) @ k[0, 0].T)
    capped = 2 * np.tanh(raw / 2)
    exps = np.exp(capped + bias[0, 0])
    for mode, wanted in enumerate([raw, capped, capped + bias[0, 0], exps / exps.sum(axis=1, keepdims=True)]):
        found = run_op("Attention", q, k, v, bias, version=23, results=4, softcap=2.0, qk_matmul_output_mode=mode)[3]
        np.testing.assert_allclose(found[0, 0], wanted, atol=1e-6)


def test_half_scores_do_not_overflow() -> None:
    """A score of 4 * 300 * 300 is no float16; its softmax is one of float32."""
    q = np.full((1, 1, 1, 4), 300, np.float16)
    k = np.concatenate([q, -q], axis=2)
    v = np.array([[[[1], [2]]]], np.float16)
    assert run_op("Attention", q, k, v, version=23, scale=1.0).tolist() == [[[[1]]]]


def test_rotations_are_products_of_complex_numbers() -> None:
    x, angles = normal(2, 3, 4, 10), np.random.default_rng(0).uniform(0, 6, (20, 3))
    at = np.array([[0, 1, 2, 3], [7, 8, 9, 19]])
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    turn = np.exp(1j * angles[at])[:, None]
    half = (x[..., :3] + 1j * x[..., 3:6]) * turn
    even = (x[..., 0:6:2] + 1j * x[..., 1:6:2]) * turn
    expected = np.concatenate([half.real, half.imag, x[..., 6:]], axis=-1)
    np.testing.assert_allclose(
        run_op("RotaryEmbedding", x, cos, sin, at, version=23, rotary_embedding_dim=6), expected, atol=1e-6
    )
    expected = np.concatenate([np.stack([even.real, even.imag], axis=-1).reshape(2, 3, 4, 6), x[..., 6:]], axis=-1)
    y = run_op("RotaryEmbedding", x, cos, sin, at, version=23, rotary_embedding_dim=6, interleaved=1)
    np.testing.assert_allclose(y, expected, atol=1e-6)
    flat = x.swapaxes(1, 2).reshape(2, 4, 30)
    y = run_op("com.microsoft:RotaryEmbedding", flat, at, cos, sin, version=1, num_heads=3, rotary_embedding_dim=6, interleaved=1)
    np.testing.assert_allclose(y, expected.swapaxes(1, 2).reshape(2, 4, 30), atol=1e-6)
    first = run_op("com.microsoft:RotaryEmbedding", x[..., :6], np.array([3]), cos, sin, version=1)
    there = run_op("RotaryEmbedding", x[..., :6], cos[None, 3:7].repeat(2, 0), sin[None, 3:7].repeat(2, 0), version=23)
    np.testing.assert_array_equal(first, there)
    with pytest.raises(KernelError, match=r"must have 5 columns"):
        run_op("RotaryEmbedding", x, cos, sin, at, version=23)


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
def test_linear_attention_is_a_recurrence(rule: str) -> None:
    q, k, v = normal(1, 3, 8), normal(1, 3, 4, seed=1), normal(1, 3, 6)
    decay, beta, state = -np.abs(normal(1, 3, 4)), np.abs(normal(1, 3, 2)), normal(1, 2, 2, 3)
    y, last = run_op(
        "LinearAttention",
        q,
        k,
        v,
        state,
        decay,
        beta,
        version=27,
        results=2,
        q_num_heads=4,
        kv_num_heads=2,
        update_rule=rule.encode(),
    )
    for head in range(2):
        s = state[0, head].astype(float)
        for t in range(3):
            key, value = k[0, t, 2 * head : 2 * head + 2].astype(float), v[0, t, 3 * head : 3 * head + 3].astype(float)
            if "gated" in rule:
                s = np.exp(decay[0, t, 2 * head : 2 * head + 2].astype(float))[:, None] * s
            if "delta" in rule:
                value = beta[0, t, head] * (value - s.T @ key)
            s = s + np.outer(key, value)
            for part in range(2):
                h = 2 * head + part
                np.testing.assert_allclose(y[0, t, 3 * h : 3 * h + 3], 2**-0.5 * q[0, t, 2 * h : 2 * h + 2] @ s, atol=1e-5)
        np.testing.assert_allclose(last[0, head], s, atol=1e-5)
    with pytest.raises(KernelError, match=r"update_rule 'gated' needs operand decay"):
        run_op("LinearAttention", q, k, v, version=27, results=2, q_num_heads=4, kv_num_heads=2, update_rule=b"gated")


def test_rotations_by_angles_and_quarter_turns() -> None:
    angles, x, turned = normal(1, 3, 4), normal(1, 2, 3, 4), normal(1, 2, 3, 4, seed=1)
    expected = x * np.cos(angles.astype(float))[:, None] + turned * np.sin(angles.astype(float))[:, None]
    half = [t.astype(np.float16) for t in (x, turned, x, turned)]
    y, _ = run_op("com.microsoft:GemmaRotaryEmbedding", angles, *half, version=1, results=2)
    assert y.dtype == np.float16
    np.testing.assert_allclose(y, expected, atol=4e-3)
