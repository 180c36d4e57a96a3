"""Weights of few bits: packed by a loop, unpacked by the kernels."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.one_node import run_op

N, SIZE = 5, 16


def run(op: str, *operands: Any, **options: Any) -> Any:
    return run_op(f"com.microsoft:{op}", *operands, version=1, **options)


def packed(rows: Any, bits: int) -> Any:
    """Pack integers along the last axis, the first in the lowest bits."""
    result = np.zeros((*rows.shape[:-1], -(-rows.shape[-1] * bits // 8)), np.uint8)
    for index in np.ndindex(*rows.shape):
        for bit in range(bits):
            at = index[-1] * bits + bit
            result[(*index[:-1], at // 8)] |= (int(rows[index]) >> bit & 1) << at % 8
    return result


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", ["default", "packed", "floats"])
def test_blocks_along_k(bits: int, zeros: str) -> None:
    """The last of three blocks is cut short."""
    rng, k = np.random.default_rng(bits), 40
    q, z = rng.integers(0, 1 << bits, (N, 3, SIZE)), rng.integers(0, 1 << bits, (N, 3))
    a, scales, bias = (
        rng.normal(size=(2, 3, k)).astype(np.float32),
        rng.normal(size=(N, 3)).astype(np.float32),
        np.arange(N, dtype=np.float32),
    )
    given = {"default": None, "packed": packed(z, bits), "floats": (z + 0.5).astype(np.float32)}[zeros]
    used = {"default": np.full((N, 3), 1 << (bits - 1)), "packed": z, "floats": z + 0.5}[zeros]
    weight = ((q - used[..., None]) * scales[..., None]).reshape(N, -1)[:, :k]
    y = run("MatMulNBits", a, packed(q, bits), scales, given, None, bias, K=k, N=N, bits=bits, block_size=SIZE)
    np.testing.assert_allclose(y, a @ weight.T + bias, atol=1e-4 * np.abs(weight).max())


def test_columns_in_groups_of_any_order() -> None:
    rng = np.random.default_rng(0)
    q, groups, scales = (
        rng.integers(0, 16, (N, 2, SIZE)),
        rng.integers(0, 2, 32).astype(np.int32),
        rng.normal(size=(N, 2)).astype(np.float32),
    )
    y = run("MatMulNBits", np.eye(32, dtype=np.float32), packed(q, 4), scales, None, groups, K=32, N=N, bits=4, block_size=SIZE)
    np.testing.assert_allclose(y.T, (q.reshape(N, 32) - 8) * scales[:, groups], rtol=1e-6)


def test_an_empty_weight_stands_for_zeros() -> None:
    a, none = np.ones((2, 32), np.float32), np.zeros((0, 2, 8), np.uint8)
    y = run(
        "MatMulNBits",
        a,
        none,
        np.zeros((0, 2), np.float32),
        None,
        None,
        np.ones(N, np.float32),
        K=32,
        N=N,
        bits=4,
        block_size=SIZE,
    )
    assert y.tolist() == [[1] * N] * 2


def test_too_few_bytes_are_an_error() -> None:
    with pytest.raises(KernelError, match="4 bytes do not hold 16 numbers of 4 bits"):
        run(
            "MatMulNBits",
            np.ones((1, 16), np.float32),
            np.zeros((N, 1, 4), np.uint8),
            np.ones((N, 1), np.float32),
            K=16,
            N=N,
            block_size=16,
        )


def test_table_entries_with_scales_along_the_flat_weight() -> None:
    """Values recorded of bitsandbytes' tables: 3 is 1 and 11 -1 in fp4, 15 is 1 and 0 -1 in nf4."""
    a = np.eye(2, dtype=np.float32)
    b = np.array([0x3B, 0x00], np.uint8)  # high half first: 3, 11, 0, 0
    assert run("MatMulBnb4", a, b, np.array([2.0], np.float32), K=2, N=2, block_size=16, quant_type=0).T.tolist() == [
        [2, -2],
        [0, 0],
    ]
    b = np.array([0xF0, 0x7F], np.uint8)
    y = run("MatMulBnb4", a, b, np.array([2.0, 3.0], np.float32), K=2, N=2, block_size=2, quant_type=1)
    assert y.T.tolist() == [[2, -2], [0, 3]]


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_gathering_from_bytes(bits: int) -> None:
    rng = np.random.default_rng(bits)
    q, z = rng.integers(0, 1 << bits, (6, 32)), rng.integers(0, 1 << bits, (6, 2))
    scales, at = rng.normal(size=(6, 2)).astype(np.float32), np.array([[5, 0], [2, 2]])
    wide = lambda x: np.repeat(x, 16, axis=1)
    y = run("GatherBlockQuantized", packed(q, bits), at, scales, packed(z, bits), bits=bits, block_size=16)
    np.testing.assert_allclose(y, ((q - wide(z)) * wide(scales))[at], rtol=1e-6)
    y = run("GatherBlockQuantized", packed(q, bits), at, scales, bits=bits, block_size=16)
    np.testing.assert_allclose(y, ((q - (1 << (bits - 1))) * wide(scales))[at], rtol=1e-6)


def test_gathering_from_integers_of_4_bits() -> None:
    import ml_dtypes

    q, scales = np.arange(-8, 8).reshape(2, 8), np.array([[0.5], [2]], np.float32)
    table = q.astype(ml_dtypes.int4)
    y = run("GatherBlockQuantized", table, np.array([1]), scales, block_size=16)
    np.testing.assert_array_equal(y, q[1:] * 2.0)
    y = run("GatherBlockQuantized", table, np.array([3]), scales, block_size=16, gather_axis=1, quantize_axis=1)
    np.testing.assert_array_equal(y, q[:, 3:4] * scales)
