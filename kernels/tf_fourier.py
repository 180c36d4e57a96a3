"""TensorFlow: Fourier transforms over the last one, two or three axes."""

from collections.abc import Callable
from typing import Any

from ..graph.errors import KernelError
from .call import Call
from .registry import kernel
from .shape import ints


def _transform(name: str, rank: int) -> Callable[..., Any]:
    def compute(call: Call, x: Any, length: Any = None) -> Any:
        sizes = [*x.shape[-rank:]] if length is None else ints(length)
        half = name == "irfftn"  # of a spectrum that is its own mirror image
        taken = [*sizes[:-1], sizes[-1] // 2 + 1] if half and sizes else sizes
        if x.ndim < rank or len(sizes) != rank or any(a < b for a, b in zip(x.shape[-rank:], taken, strict=True)):
            raise KernelError(
                f"{call.node.op_type}: an operand of shape {list(x.shape)} has too few axes or elements. Received: "
                f"fft_length={sizes}"
            )
        return getattr(call.xp.fft, name)(x, sizes, axes=list(range(-rank, 0)))

    return compute


for _rank, _end in ((1, ""), (2, "2D"), (3, "3D")):
    kernel(f"tf:FFT{_end}", f"tf:BatchFFT{_end}")(_transform("fftn", _rank))
    kernel(f"tf:IFFT{_end}", f"tf:BatchIFFT{_end}")(_transform("ifftn", _rank))
    kernel(f"tf:RFFT{_end}")(_transform("rfftn", _rank))
    kernel(f"tf:IRFFT{_end}")(_transform("irfftn", _rank))
