"""Attention of ONNX Runtime. Its masks and caches were compared with onnxruntime 1.32; here with sums over keys."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.one_node import run_op
from tests.kernels.test_attention import attended, normal

B, S, N, D = 2, 4, 3, 8
H = N * D


def run(op: str, *operands: Any, **options: Any) -> Any:
    return run_op(f"com.microsoft:{op}", *operands, version=1, **options)


def heads(x: Any, count: int = N) -> Any:
    return x.reshape(x.shape[0], x.shape[1], count, -1).swapaxes(1, 2)


def flat(x: Any) -> Any:
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


RAW = np.array([[1, 1, 0, 1], [0, 1, 1, 1]], np.int32)
SEEN = {
    "lengths": (np.array([3, 4], np.int32), lambda b, i, j: j < [3, 4][b]),
    "ends and starts": (np.array([4, 3, 1, 0], np.int32), lambda b, i, j: [1, 0][b] <= j < [4, 3][b]),
    "zeros and ones": (RAW, lambda b, i, j: RAW[b, j] == 1),
    "for each query": (np.stack([RAW] * S, axis=1), lambda b, i, j: RAW[b, j] == 1),
    "none": (None, lambda b, i, j: True),
}


@pytest.mark.parametrize("form", SEEN)
@pytest.mark.parametrize("causal", [0, 1])
def test_masks_add_a_number(form: str, causal: int) -> None:
    mask, seen = SEEN[form]
    x, w, b = normal(B, S, 10), normal(10, 3 * H), normal(3 * H)
    q, k, v = (heads(part) for part in np.split(x.astype(float) @ w + b, 3, axis=2))
    bias = np.array([[[[0.0 if seen(n, i, j) else -2.0 for j in range(S)] for i in range(S)]] * N for n in range(B)])
    y = run("Attention", x, w, b, mask, num_heads=N, unidirectional=causal, mask_filter_value=-2.0)
    see = (lambda n, h, i, j: j <= i) if causal else None
    np.testing.assert_allclose(y, flat(attended(q, k, v, D**-0.5, see, bias)), atol=1e-5)


def test_the_past_of_keys_and_values() -> None:
    x, w, past = normal(B, S, 10), normal(10, 3 * H), normal(2, B, N, 5, D)
    q, k, v = (heads(part) for part in np.split(x.astype(float) @ w, 3, axis=2))
    k, v = np.concatenate([past[0], k], axis=2), np.concatenate([past[1], v], axis=2)
    y, present = run("Attention", x, w, None, None, past, results=2, num_heads=N, unidirectional=1)
    np.testing.assert_allclose(present, np.stack([k, v]), atol=1e-5)
    np.testing.assert_allclose(y, flat(attended(q, k, v, D**-0.5, lambda b, h, i, j: j <= i + 5)), atol=1e-5)


def test_quantized_input_and_weight() -> None:
    rng = np.random.default_rng(0)
    x, w, b = (
        rng.integers(0, 256, (B, S, 16)).astype(np.uint8),
        rng.integers(-128, 128, (16, 3 * H)).astype(np.int8),
        normal(3 * H),
    )
    scale = np.float32(0.01)
    y = run("QAttention", x, w, b, scale, scale, None, np.array(120, np.uint8), np.array(3, np.int8), num_heads=N)
    projected = (x.astype(float) - 120) @ (w.astype(float) - 3) * 1e-4 + b
    q, k, v = (heads(part) for part in np.split(projected, 3, axis=2))
    np.testing.assert_allclose(y, flat(attended(q, k, v, D**-0.5)), atol=1e-4)


def test_multi_head_attention_takes_operands_of_many_forms() -> None:
    q, k, v, b = normal(B, S, H), normal(B, 6, H), normal(B, 6, H, seed=1), normal(3 * H)
    kept = [heads(x + p) for x, p in zip((q, k, v), np.split(b, 3), strict=True)]
    expected = flat(attended(kept[0], kept[1], kept[2], D**-0.5))
    np.testing.assert_allclose(run("MultiHeadAttention", q, k, v, b, num_heads=N), expected, atol=1e-5)
    packed = np.stack([x.swapaxes(1, 2) for x in kept[1:]], axis=3)
    np.testing.assert_allclose(run("MultiHeadAttention", flat(kept[0]), packed, num_heads=N), expected, atol=1e-5)
    # keys and values that are split into heads have their bias already
    np.testing.assert_allclose(run("MultiHeadAttention", q, kept[1], kept[2], b, num_heads=N), expected, atol=1e-5)
    all_packed = np.stack([x.swapaxes(1, 2) for x in (kept[0], kept[0], kept[0])], axis=3)
    expected = flat(attended(kept[0], kept[0], kept[0], D**-0.5))
    np.testing.assert_allclose(run("MultiHeadAttention", all_packed, num_heads=N), expected, atol=1e-5)


def test_packed_tokens_are_those_without_padding() -> None:
    x, w, b = normal(B, S, 10), normal(10, 3 * H), normal(3 * H)
    tokens, offsets, ends, longest = run("RemovePadding", x, np.array([3, 4], np.int32), results=4)
    assert offsets.tolist() == [[0, 1, 2, 4], [5, 6, 7, 3]]
    assert (ends.tolist(), longest.tolist()) == ([0, 3, 7], [4])
    np.testing.assert_array_equal(tokens, np.concatenate([x[0, :3], x[1]]))
    y = run("PackedAttention", tokens, w, b, offsets, ends, num_heads=N)
    expected = []
    for one in (x[:1, :3], x[1:]):
        q, k, v = (heads(part) for part in np.split(one.astype(float) @ w + b, 3, axis=2))
        expected.append(flat(attended(q, k, v, D**-0.5))[0])
    np.testing.assert_allclose(y, np.concatenate(expected), atol=1e-5)
    ready = [part.astype(np.float32) for part in np.split(tokens.astype(float) @ w + b, 3, axis=1)]
    y = run("PackedMultiHeadAttention", *ready, None, offsets, ends, num_heads=N)
    np.testing.assert_allclose(y, np.concatenate(expected), atol=1e-5)
    back = run("RestorePadding", tokens, offsets)
    np.testing.assert_array_equal(back, np.where(np.array([[1, 1, 1, 0], [1, 1, 1, 1]])[..., None] == 1, x, 0))


def test_group_query_attention_decodes_what_it_prompts() -> None:
    """A prompt, and tokens one by one with the cache, give what all tokens at once do: sequences may differ in length."""
    q, k, v = normal(B, 6, 4 * D), normal(B, 6, 2 * D), normal(B, 6, 2 * D, seed=1)
    wanted = flat(attended(heads(q, 4), heads(k, 2), heads(v, 2), D**-0.5, lambda b, h, i, j: j <= i))
    options = {"num_heads": 4, "kv_num_heads": 2, "results": 3}
    i32 = lambda *x: np.array(x, np.int32)
    y, ck, cv = run("GroupQueryAttention", q[:, :4], k[:, :4], v[:, :4], None, None, i32(3, 2), np.int32(4), **options)
    np.testing.assert_allclose(y[0], wanted[0, :4], atol=1e-5)
    np.testing.assert_allclose(y[1, :3], wanted[1, :3], atol=1e-5)
    step = [np.stack([x[0, 4:5], x[1, 3:4]]) for x in (q, k, v)]  # the second sequence is one token behind
    y, ck, cv = run("GroupQueryAttention", *step, ck, cv, i32(4, 3), np.int32(5), **options)
    np.testing.assert_allclose(y[:, 0], [wanted[0, 4], wanted[1, 3]], atol=1e-5)
    np.testing.assert_array_equal(ck[0], heads(k, 2)[0, :, :5])
    np.testing.assert_array_equal(cv[1, :, :4], heads(v, 2)[1, :, :4])


def test_group_query_attention_with_rotation_window_and_sink() -> None:
    q, k, v, sink = normal(B, 5, 4 * D), normal(B, 5, 2 * D), normal(B, 5, 2 * D, seed=1), normal(4)
    angles = np.random.default_rng(0).uniform(0, 6, (9, D // 2))
    turn = np.exp(1j * angles[:5])

    def rotated(x: Any) -> Any:
        y = (x[..., : D // 2] + 1j * x[..., D // 2 :]) * turn
        return np.concatenate([y.real, y.imag], axis=-1)

    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    whole = np.concatenate([q, k, v], axis=2)
    y = run(
        "GroupQueryAttention",
        *(whole, None, None, None, None, np.array([4, 4], np.int32), np.int32(5), cos, sin, None, None, sink),
        num_heads=4,
        kv_num_heads=2,
        do_rotary=1,
        local_window_size=2,
        scale=0.4,
    )
    see = lambda b, h, i, j: i - 2 < j <= i
    expected = attended(rotated(heads(q, 4)), rotated(heads(k, 2)), heads(v, 2), 0.4, see, sink=sink)
    np.testing.assert_allclose(y, flat(expected), atol=1e-5)


def test_what_has_no_kernel_says_so() -> None:
    x, w = normal(B, S, 10), normal(10, 3 * H)
    with pytest.raises(KernelError, match="do_rotary has no kernel"):
        run("Attention", x, w, num_heads=N, do_rotary=1)
    with pytest.raises(KernelError, match=r"knows no mask of shape \(7,\) for a batch of 2"):
        run("Attention", x, w, None, np.zeros(7, np.int32), num_heads=N)
    with pytest.raises(KernelError, match="do not make up 72 columns"):
        run("Attention", x, w, num_heads=N, qkv_hidden_sizes=[H, H, 6])
    with pytest.raises(KernelError, match="needs key and value"):
        run("MultiHeadAttention", normal(B, S, H), num_heads=N)
