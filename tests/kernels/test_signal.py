"""Fourier transforms against their definition; windows and mel weights against formulas."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.one_node import run_op

RNG = np.random.default_rng(2)


def parts(z: Any) -> Any:
    return np.stack([z.real, z.imag], -1)


def matrix(n: int, sign: int = -1) -> Any:
    k = np.arange(n)
    return np.exp(sign * 2j * np.pi * np.outer(k, k) / n)


@pytest.mark.parametrize("version", [17, 20])
@pytest.mark.parametrize("length", [None, 4, 9])
def test_transforms_are_sums_of_waves(version: int, length: int | None) -> None:
    x = RNG.standard_normal((2, 6, 3, 1))
    n = length or 6
    fitted = np.zeros((2, n, 3))
    fitted[:, : min(n, 6)] = x[:, :n, :, 0]
    wanted = np.einsum("kn,bnc->bkc", matrix(n), fitted)
    size = None if length is None else np.array(length)
    if version == 17:
        y = run_op("DFT", x, size, version=17, axis=1)
        half = run_op("DFT", x, size, version=17, axis=1, onesided=1)
    else:
        y = run_op("DFT", x, size, np.array(-3), version=20)
        half = run_op("DFT", x, size, np.array(1), version=20, onesided=1)
    np.testing.assert_allclose(y, parts(wanted), atol=1e-12)
    np.testing.assert_allclose(half, parts(wanted[:, : n // 2 + 1]), atol=1e-12)


def test_inverse_transforms_give_the_signal_back() -> None:
    z = RNG.standard_normal((2, 5, 2))
    there = run_op("DFT", z, version=20)
    np.testing.assert_allclose(there, parts((z[..., 0] + 1j * z[..., 1]) @ matrix(5).T), atol=1e-12)
    np.testing.assert_allclose(run_op("DFT", there, version=20, inverse=1), z, atol=1e-12)
    real = RNG.standard_normal((2, 7, 1))
    half = run_op("DFT", real, version=20, onesided=1)
    assert half.shape == (2, 4, 2)
    back = run_op("DFT", half, np.array(7), version=20, onesided=1, inverse=1)
    np.testing.assert_allclose(back, real, atol=1e-12)
    assert run_op("DFT", half, version=20, onesided=1, inverse=1).shape == (2, 6, 1)
    with pytest.raises(KernelError, match="not along its last"):
        run_op("DFT", real, None, np.array(-1), version=20)


def test_short_transforms() -> None:
    x = RNG.standard_normal((2, 20))
    window = RNG.standard_normal(6)
    frames = np.stack([x[:, 4 * i : 4 * i + 6] for i in range(4)], 1)
    spectrum = (frames * window) @ matrix(6).T
    half = run_op("STFT", x[..., None], np.array(4), window, np.array(6), version=17)
    np.testing.assert_allclose(half, parts(spectrum[..., :4]), atol=1e-12)
    full = run_op("STFT", x[..., None], np.array(4), window, version=17, onesided=0)
    np.testing.assert_allclose(full, parts(spectrum), atol=1e-12)
    with pytest.raises(KernelError, match="a window of 6"):
        run_op("STFT", x[..., None], np.array(4), window, np.array(5), version=17)


def test_transforms_of_the_runtime_do_not_scale() -> None:
    x = RNG.standard_normal((3, 8)).astype(np.float32)
    y = run_op("com.microsoft:Rfft", x, version=1, signal_ndim=1, normalized=0, onesided=1)
    np.testing.assert_allclose(y, parts((x @ matrix(8))[:, :5]), atol=1e-5)
    np.testing.assert_allclose(run_op("com.microsoft:Irfft", y, version=1, signal_ndim=1, normalized=0, onesided=1), x, atol=1e-6)


@pytest.mark.parametrize("periodic", [0, 1])
@pytest.mark.parametrize(("name", "function"), [("Hann", np.hanning), ("Blackman", np.blackman)])
def test_windows(name: str, function: Any, periodic: int) -> None:
    wanted = function(11)[:10] if periodic else function(10)
    y = run_op(f"{name}Window", np.array(10), version=17, periodic=periodic)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, wanted, atol=1e-7)


def test_hamming_has_his_fraction() -> None:
    y = run_op("HammingWindow", np.array(8), version=17)
    np.testing.assert_allclose(y[[0, 4]], [25 / 46 - 21 / 46, 1], rtol=1e-6)
    assert run_op("HannWindow", np.array(1), version=17).shape == (1,)


def test_mel_weights_are_triangles_of_height_one() -> None:
    operands = [np.array(8), np.array(512), np.array(16000), np.array(100, np.float32), np.array(6000, np.float32)]
    weights = run_op("MelWeightMatrix", *operands, version=17)
    assert weights.shape == (257, 8)
    assert (weights.max(0) == 1).all()
    step = 2595 * np.log10((1 + 6000 / 700) / (1 + 100 / 700)) / 10
    corners = 700 * ((1 + 100 / 700) * 10 ** (step * np.arange(10) / 2595) - 1)
    assert weights.argmax(0).tolist() == np.floor(513 * corners[1:-1] / 16000).tolist()
    assert weights.min() == 0
