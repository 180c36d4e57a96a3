"""Signals: Fourier transforms, windows and mel weights. The last axis of a spectrum is its real and imaginary part."""

from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .registry import kernel
from .room import check_room

if TYPE_CHECKING:
    from .call import Call


def _complex(xp: Any, x: Any) -> Any:
    """Return the values of an array whose last axis is real (1) or real and imaginary (2)."""
    if x.shape[-1] not in (1, 2):
        raise KernelError(f"The last axis of a signal is 1 (real) or 2 (complex). Received: {list(x.shape)}")
    return x[..., 0] if x.shape[-1] == 1 else x[..., 0] + 1j * x[..., 1]


def _parts(xp: Any, x: Any) -> Any:
    return xp.stack([x.real, x.imag], -1)


def _fitted(xp: Any, x: Any, length: int, axis: int) -> Any:
    """Return ``x`` cut to ``length`` along an axis, or with zeros appended."""
    before = (slice(None),) * axis
    if x.shape[axis] >= length:
        return x[(*before, slice(0, length))]
    shape = (*x.shape[:axis], length, *x.shape[axis + 1 :])
    check_room(xp, shape, 16)
    result = xp.zeros(shape, x.dtype)
    result[(*before, slice(0, x.shape[axis]))] = x
    return result


@kernel("DFT")
def dft(call: "Call", x: Any, length: Any = None, axis: Any = None) -> Any:
    """The discrete Fourier transform along an axis, or its inverse; of real signals, or to them, one half of the spectrum."""
    xp = call.xp
    at = int(call.attr("axis", 1)) if call.opset < 20 else -2 if axis is None else int(axis.reshape(()))
    if not -x.ndim <= at < x.ndim or at % x.ndim == x.ndim - 1:
        raise KernelError(f"DFT goes along an axis of the signal, not along its last. Received: axis {at} of {list(x.shape)}")
    at %= x.ndim
    values = _complex(xp, x)
    inverse, half = bool(call.attr("inverse", 0)), bool(call.attr("onesided", 0))
    size = x.shape[at] if length is None else int(length.reshape(()))
    if size < 1:
        raise KernelError(f"DFT has at least one point. Received: {size}")
    if inverse and half:
        if length is None:
            size = 2 * (x.shape[at] - 1)
        return xp.fft.irfft(_fitted(xp, values, size // 2 + 1, at), size, at).astype(x.dtype, copy=False)[..., None]
    values = _fitted(xp, values, size, at)
    if half:
        return _parts(xp, xp.fft.rfft(values.real, axis=at)).astype(x.dtype, copy=False)
    return _parts(xp, (xp.fft.ifft if inverse else xp.fft.fft)(values, axis=at)).astype(x.dtype, copy=False)


@kernel("STFT")
def stft(call: "Call", x: Any, step: Any, window: Any = None, frame: Any = None) -> Any:
    """Fourier transforms of the frames of signals ``[batch, length]`` (the last axis real or complex)."""
    xp = call.xp
    values = _complex(xp, x) if x.ndim == 3 else x
    size = int(frame.reshape(())) if frame is not None else len(window) if window is not None else values.shape[1]
    hop = int(step.reshape(()))
    if hop < 1 or not 0 < size <= values.shape[1] or (window is not None and len(window) != size):
        raise KernelError(
            f"STFT needs frames within {values.shape[1]} samples and a window as long as a frame. Received: frames of {size} "
            f"every {hop}, {'no window' if window is None else f'a window of {len(window)}'}"
        )
    count = (values.shape[1] - size) // hop + 1
    values = xp.ascontiguousarray(values)
    rows, each = values.strides
    frames = xp.lib.stride_tricks.as_strided(values, (values.shape[0], count, size), (rows, each * hop, each))
    if window is not None:
        frames = frames * window
    real = frames.dtype.kind != "c"
    spectrum = xp.fft.rfft(frames) if real and call.attr("onesided", 1) else xp.fft.fft(frames)
    return _parts(xp, spectrum).astype(x.dtype, copy=False)


@kernel("com.microsoft:Rfft")
def rfft(call: "Call", x: Any) -> Any:
    """The Fourier transform of a real signal along its last axis (or axes, ``signal_ndim``), without scaling."""
    xp = call.xp
    return _parts(xp, xp.fft.rfftn(x, axes=tuple(range(-int(call.attr("signal_ndim", 1)), 0)))).astype(x.dtype, copy=False)


@kernel("com.microsoft:Irfft")
def irfft(call: "Call", x: Any) -> Any:
    """The inverse of :func:`rfft`."""
    xp = call.xp
    axes = tuple(range(-int(call.attr("signal_ndim", 1)), 0))
    return xp.fft.irfftn(_complex(xp, x), axes=axes).astype(x.dtype, copy=False)


def _cosine_window(call: "Call", size: Any, weights: tuple[float, ...]) -> Any:
    """Return the sum of cosines ``(-1)**k * weights[k] * cos(2 pi k n / N)``, of period ``size`` or one less."""
    xp = call.xp
    n = int(size.reshape(()))
    check_room(xp, [n], 8)
    at = 2 * xp.pi * xp.arange(n, dtype=xp.float64) / max(n if call.attr("periodic", 1) else n - 1, 1)
    window: Any = sum(((-1) ** k * weight * xp.cos(k * at) for k, weight in enumerate(weights)), start=xp.zeros(n))
    return window.astype(_declared(call))


def _declared(call: "Call") -> Any:
    """Return the NumPy dtype of the result; float32 for those that are rounded later."""
    dtype = call.dtypes[0]
    return "float32" if dtype is None or (dtype.kind == "float" and dtype.bits < 32) else dtype.numpy


@kernel("HannWindow")
def hann_window(call: "Call", size: Any) -> Any:
    """The window of Hann."""
    return _cosine_window(call, size, (0.5, 0.5))


@kernel("HammingWindow")
def hamming_window(call: "Call", size: Any) -> Any:
    """The window of Hamming, with his fraction 25/46."""
    return _cosine_window(call, size, (25 / 46, 21 / 46))


@kernel("BlackmanWindow")
def blackman_window(call: "Call", size: Any) -> Any:
    """The window of Blackman."""
    return _cosine_window(call, size, (0.42, 0.5, 0.08))


@kernel("MelWeightMatrix")
def mel_weight_matrix(call: "Call", bins: Any, length: Any, rate: Any, low: Any, high: Any) -> Any:
    """Triangles on the mel scale over the bins of a spectrum: ``[spectrum bins, mel bins]``; corners stand on bins."""
    xp = call.xp
    count, size, samples = (int(v.reshape(())) for v in (bins, length, rate))
    check_room(xp, [size // 2 + 1, count], 8)
    first, last = 2595 * xp.log10(1 + xp.asarray([float(low.reshape(())), float(high.reshape(()))]) / 700)
    mel = first + xp.arange(count + 2) * (last - first) / (count + 2)  # the standard's step, which ends before `high`
    edges = xp.floor((size + 1) * (700 * (10 ** (mel / 2595) - 1)) / samples).astype(xp.int64)
    left, middle, right = edges[:-2], edges[1:-1], edges[2:]
    at = xp.arange(size // 2 + 1)[:, None]
    rising = (at - left) / xp.maximum(middle - left, 1)
    falling = (right - at) / xp.maximum(right - middle, 1)
    up = (at >= left) & (at <= middle) & ((middle > left) | (at == middle))
    down = (at >= middle) & (at < right)
    weights = xp.where(down, falling, xp.where(up, xp.where(middle == left, 1, rising), 0))
    return weights.astype(_declared(call))
