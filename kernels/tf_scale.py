"""TensorFlow: images scaled and moved, every pixel a sum of neighbours weighted by a kernel of their distance."""

from collections.abc import Callable
from math import ceil, pi
from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .registry import kernel
from .room import check_room
from .tf_image import Taps, resized, spread

if TYPE_CHECKING:
    from .call import Call


def _lanczos(radius: float) -> Callable[[Any, Any], Any]:
    def weights(xp: Any, x: Any) -> Any:
        far = xp.maximum(x, xp.float32(1e-3))
        return xp.where(x > 1e-3, radius * xp.sin(pi * far) * xp.sin(pi * far / radius) / (pi * pi * far * far), 1)

    return weights


def _box(xp: Any, x: Any) -> Any:
    return xp.where(x < 0.5, 1, xp.where(x == 0.5, 0.5, 0))


def _keys(xp: Any, x: Any) -> Any:
    return xp.where(x >= 1, ((-0.5 * x + 2.5) * x - 4) * x + 2, (1.5 * x - 2.5) * x * x + 1)


def _mitchell(xp: Any, x: Any) -> Any:
    return xp.where(x >= 1, ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9, (7 / 6 * x - 2) * x * x + 8 / 9)


#: Kernels of a distance within a radius, by name, and the radius.
_KERNELS: dict[str, tuple[float, Callable[[Any, Any], Any]]] = {
    **{f"lanczos{n}": (float(n), _lanczos(n)) for n in (1, 3, 5)},
    "gaussian": (1.5, lambda xp, x: xp.exp(-2 * x * x)),
    "box": (1.0, _box),
    "triangle": (1.0, lambda _, x: 1 - x),
    "keyscubic": (2.0, _keys),
    "mitchellcubic": (2.0, _mitchell),
}


def _taps(call: "Call", size: int, result: int, scale: Any, shift: Any) -> Taps:
    """Return which of ``size`` elements each of ``result`` ones takes, whose places are ``scale * place + shift``."""
    xp, name = call.xp, call.attr("kernel_type", "lanczos3")
    if name not in _KERNELS:
        raise KernelError(f"ScaleAndTranslate has the kernels {', '.join(_KERNELS)}. Received: {name!r}")
    if not scale > 0:
        raise KernelError(f"Images are scaled by positive factors. Received: {scale}")
    radius, weigh = _KERNELS[name]
    inverse = 1 / xp.float32(scale)
    width = max(inverse, xp.float32(1)) if call.attr("antialias", True) else xp.float32(1)
    at = (xp.arange(result, dtype=xp.float32) + xp.float32(0.5)) * inverse - inverse * xp.float32(shift)
    reach = xp.float32(radius) * width
    first = xp.clip(xp.ceil(at - reach - 0.5), 0, size - 1).astype(xp.int64)
    last = xp.clip(xp.floor(at + reach - 0.5), 0, size - 1).astype(xp.int64)
    index = first[:, None] + xp.arange(min(2 * ceil(reach) + 1, size))
    distance = xp.abs((index + xp.float32(0.5) - at[:, None]) / width).astype(xp.float32)
    seen = (index <= last[:, None]) & ((at >= 0) & (at <= size))[:, None] & (distance < radius)
    weights = xp.where(seen, weigh(xp, distance), 0).astype(xp.float32)
    total = weights.sum(1, keepdims=True)
    weights = xp.where(xp.abs(total) >= 1000 * xp.finfo(xp.float32).tiny, weights / total, weights)
    return Taps(xp.clip(index, 0, size - 1), weights)


def _both(call: "Call", x: Any, sizes: tuple[int, int], scale: Any, shift: Any) -> list[Taps]:
    if x.ndim != 4 or min(x.shape[1:3]) < 1 or min(sizes) < 1:
        raise KernelError(f"Images have four axes, of at least one pixel. Received: shape {list(x.shape)}, to {list(sizes)}")
    check_room(call.xp, (x.shape[0], *sizes, x.shape[3]), 4)
    return [_taps(call, x.shape[axis + 1], sizes[axis], scale[axis], shift[axis]) for axis in (0, 1)]


@kernel("tf:ScaleAndTranslate")
def scale_and_translate(call: "Call", x: Any, size: Any, scale: Any, shift: Any) -> Any:
    """Images whose pixels stand at ``scale * place + shift``, in float32."""
    rows, columns = _both(call, x, (int(size[0]), int(size[1])), scale, shift)
    return resized(call.xp, resized(call.xp, x.astype(call.xp.float32, copy=False), 1, rows), 2, columns)


@kernel("tf:ScaleAndTranslateGrad")
def scale_and_translate_grad(call: "Call", dy: Any, x: Any, scale: Any, shift: Any) -> Any:
    """The gradient of scaled and moved images by the images."""
    rows, columns = _both(call, x, dy.shape[1:3], scale, shift)
    return spread(call.xp, spread(call.xp, dy, 2, columns, x.shape[2]), 1, rows, x.shape[1])
