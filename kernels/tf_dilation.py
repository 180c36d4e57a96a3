"""TensorFlow: grey dilation, the greatest sum of a window's elements and a structure's, and its gradients."""

from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .registry import kernel
from .tf_windows import laid, spatial
from .windows import Geometry, fold, pad

if TYPE_CHECKING:
    from .call import Call


def _windows(call: "Call", x: Any, w: Any) -> Geometry:
    """Return the windows over images ``[N, H, W, C]`` for a structure ``[rows, columns, C]``.

    Raises:
        KernelError: If the two do not fit.
    """
    if x.ndim != 4 or w.ndim != 3 or x.shape[-1] != w.shape[-1]:
        raise KernelError(
            f"A dilation takes images [N, H, W, C] and a structure [rows, columns, C]. "
            f"Received: {list(x.shape)} and {list(w.shape)}"
        )
    return laid(call, x.shape[1:3], w.shape[:2], spatial(call, "strides", 2), spatial(call, "rates", 2))


def _greatest(call: "Call", x: Any, w: Any, geo: Geometry) -> tuple[Any, Any]:
    """Return the greatest sum of every window, ``[N, C, counts ...]``, and the number of the tap that has it first."""
    xp = call.xp
    floats = x.dtype.kind == "f"
    inside = None if floats else pad(xp, xp.ones((1, 1, *x.shape[1:3]), bool), geo).copy()  # pad's memory is used again
    images = pad(xp, xp.moveaxis(x, -1, 1), geo, -xp.inf if floats else 0)
    lead = (x.shape[0], x.shape[3], *geo.counts)
    best = xp.full(lead, (xp.finfo if floats else xp.iinfo)(x.dtype).min, x.dtype)
    which = xp.zeros(lead, xp.int32)
    for i, tap in enumerate(geo.taps()):
        place = (..., *geo.slices(tap))
        value = images[place] + w[tap].reshape(-1, 1, 1)
        better = value > best
        if inside is not None:
            better &= inside[place]
        xp.copyto(best, value, where=better)
        which[better] = i
    return best, which


@kernel("tf:Dilation2D")
def dilation(call: "Call", x: Any, w: Any) -> Any:
    """The greatest sum of every window."""
    return call.xp.moveaxis(_greatest(call, x, w, _windows(call, x, w))[0], 1, -1)


def _going_back(call: "Call", x: Any, w: Any, dy: Any) -> tuple[Geometry, Any, Any]:
    """Return the windows, the gradient with channels second, and which tap it goes to."""
    geo = _windows(call, x, w)
    dy = call.xp.moveaxis(dy, -1, 1)
    if dy.shape != (x.shape[0], x.shape[3], *geo.counts):
        raise KernelError(
            f"The gradient of a dilation should have the shape {[x.shape[0], *geo.counts, x.shape[3]]}. "
            f"Received: {[dy.shape[0], *dy.shape[2:], dy.shape[1]]}"
        )
    return geo, dy, _greatest(call, x, w, geo)[1]


@kernel("tf:Dilation2DBackpropInput")
def dilation_by_images(call: "Call", x: Any, w: Any, dy: Any) -> Any:
    """The gradient of a dilation by its images: of equal sums the first gets all."""
    xp = call.xp
    geo, dy, which = _going_back(call, x, w, dy)
    columns = xp.stack([dy * (which == i) for i, _ in enumerate(geo.taps())], 2)
    return xp.moveaxis(fold(xp, columns, geo, x.shape[1:3]), 1, -1)


@kernel("tf:Dilation2DBackpropFilter")
def dilation_by_structure(call: "Call", x: Any, w: Any, dy: Any) -> Any:
    """The gradient of a dilation by its structure."""
    geo, dy, which = _going_back(call, x, w, dy)
    result = call.xp.empty_like(w)
    for i, tap in enumerate(geo.taps()):
        result[tap] = (dy * (which == i)).sum((0, 2, 3), dtype=dy.dtype)
    return result
