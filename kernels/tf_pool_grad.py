"""Gradients of TensorFlow's pools: what came out of a window goes back to its greatest element, or to all in equal parts."""

from collections.abc import Sequence
from math import prod
from operator import gt
from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .pool import window_counts
from .registry import kernel
from .room import check_room
from .tf_pool import pool_windows, pooled
from .tf_windows import as_asked, channels_last, channels_second
from .windows import Geometry, fold, pad

if TYPE_CHECKING:
    from .call import Call

#: Elements of a gradient that are handed back at a time, so that they stay in the cache.
_BLOCK = 1 << 16


def first_greatest(xp: Any, x: Any, geo: Geometry) -> tuple[Any, Any]:
    """Return the greatest element of every window and its place among the elements of ``x``, as it lies in memory.

    The first element stays unless a later one is greater, so NaN stays where it comes first, and is passed over elsewhere.

    Args:
        xp: Array module.
        x: ``[N, C, spatial ...]``.
        geo: The windows.
    """
    rank = len(geo.kernel)
    lead = (*x.shape[:2], *geo.counts)
    check_room(xp, lead, 16)
    best, index = xp.zeros(lead, x.dtype), xp.full(lead, -1, xp.int64)
    padded = pad(xp, x, geo)
    images = xp.arange(prod(x.shape[:2]), dtype=xp.int64).reshape(*x.shape[:2], *(1,) * rank) * prod(x.shape[2:])
    for tap in geo.taps():
        value = padded[(..., *geo.slices(tap))]
        place: Any = images
        inside: Any = True
        for i, t in enumerate(tap):
            at = xp.arange(geo.counts[i], dtype=xp.int64) * geo.strides[i] + t * geo.dilations[i] - geo.begins[i]
            at = at.reshape(-1, *(1,) * (rank - 1 - i))
            place = place + at * prod(x.shape[3 + i :])
            inside = inside & (at >= 0) & (at < x.shape[2 + i])
        better = ((value > best) | (index < 0)) & inside
        xp.copyto(best, value, where=better)
        xp.copyto(index, xp.broadcast_to(place, lead), where=better)
    return best, index


def _put_back(xp: Any, values: Any, index: Any, size: int) -> Any:
    """Return ``size`` numbers: the sums of the values that have each index; indices below 0 are dropped."""
    index, values = index.reshape(-1), values.reshape(-1)
    keep = index >= 0
    if not keep.all():
        index, values = index[keep], values[keep]
    result = xp.zeros(size, values.dtype)
    if values.dtype.kind == "f":
        result[:] = xp.bincount(index, values, size) if size else 0
    else:
        xp.add.at(result, index, values)
    return result


def _to_equal(xp: Any, x: Any, y: Any, dy: Any, geo: Geometry) -> Any:
    """Return the gradient of a MaxPool, found by comparing all elements with its result: much faster than by their places.

    Args:
        xp: Array module.
        x: ``[N, C, spatial ...]``.
        y: The result, ``[N, C, counts ...]``.
        dy: Its gradient.
        geo: The windows.

    Returns:
        The gradient by ``x``; None where windows overlap or see padding, or there is NaN, or what is no result of a MaxPool.
    """
    reach = [(n - 1) * s + k for n, s, k in zip(geo.counts, geo.strides, geo.kernel, strict=True)]
    is_apart = all(s >= k for s, k in zip(geo.strides, geo.kernel, strict=True))
    if not is_apart or any(geo.begins) or any(map(gt, reach, x.shape[2:])) or y.shape != dy.shape:
        return None
    if x.dtype != dy.dtype or x.dtype.kind != "f" or not x.size or xp.isnan(x.max()):
        return None
    covers = prod(reach) == prod(geo.kernel) * prod(geo.counts) == prod(x.shape[2:])
    if dy.strides != y.strides:  # axes in one order in memory are fast
        aligned = xp.empty_like(y)
        aligned[...] = dy
        dy = aligned
    bits = xp.dtype(f"i{x.dtype.itemsize}")
    dx = (xp.empty_like if covers else xp.zeros_like)(x)
    gone, came = dx.view(bits), dy.view(bits)
    many = max(1, _BLOCK * len(x) // y.size)
    for i in range(0, len(x), many):
        some = slice(i, i + many)
        found: Any = None
        for tap in geo.taps():
            place = (some, ..., *geo.slices(tap))
            here = x[place] == y[some]
            if found is not None:
                xp.greater(here, found, out=here)  # not the first
            xp.multiply(came[some], here, out=gone[place])  # the bits of the gradient, or of 0, whatever it is
            found = here if found is None else xp.logical_or(found, here, out=found)
        if not found.all():
            return None
    return dx


def _check(geo: Geometry, dy: Any, lead: Sequence[int]) -> None:
    if tuple(dy.shape) != (*lead, *geo.counts):
        raise KernelError(
            f"The gradient of a pool should have the shape {[*lead, *geo.counts]}. Received: {list(dy.shape)}, channels second"
        )


@kernel("tf:MaxPoolGrad", "tf:MaxPoolGradV2")
def max_pool_grad(call: "Call", x: Any, y: Any, dy: Any, ksize: Any = None, strides: Any = None) -> Any:
    """The gradient of a MaxPool: of equal elements of a window the first gets all."""
    xp = call.xp
    images, geo, dy = _turned(call, x, dy, ksize, strides)
    dx = _to_equal(xp, images, pooled(channels_second(call, y), geo), dy, geo)
    if dx is not None:
        return _result(call, dx, x)
    _, index = first_greatest(xp, images, geo)
    return _result(call, _put_back(xp, dy, index, images.size).reshape(images.shape), x)


def _turned(call: "Call", x: Any, dy: Any, ksize: Any = None, strides: Any = None) -> tuple[Any, Geometry, Any]:
    """Return images and the gradient of their pool, ``[N, C, axes of the windows]``, and the windows."""
    images, dy = channels_second(call, x), channels_second(call, dy)
    geo = pool_windows(call, images.shape, ksize, strides)
    images, dy = pooled(images, geo), pooled(dy, geo)
    _check(geo, dy, images.shape[:2])
    return images, geo, dy


def _result(call: "Call", dx: Any, x: Any) -> Any:
    """Return a gradient ``[N, C, axes of the windows]`` in the layout of the node."""
    return as_asked(call, dx if dx.ndim == x.ndim else dx[0, 0])


@kernel("tf:MaxPoolGradGrad", "tf:MaxPoolGradGradV2", "tf:MaxPool3DGradGrad")
def max_pool_grad_grad(call: "Call", x: Any, y: Any, ddx: Any, ksize: Any = None, strides: Any = None) -> Any:
    """The gradient of a MaxPool's gradient: what stands where the windows have their greatest elements."""
    images = channels_second(call, x)
    ddx = channels_second(call, ddx)
    if ddx.shape != images.shape:
        raise KernelError(f"A gradient by the images should have their shape {list(x.shape)}. Received: {list(ddx.shape)}")
    geo = pool_windows(call, images.shape, ksize, strides)
    _, index = first_greatest(call.xp, pooled(images, geo), geo)
    flat = call.xp.ascontiguousarray(ddx).reshape(-1)
    found = call.xp.take(flat, index, mode="clip") if flat.size else call.xp.zeros(index.shape, ddx.dtype)
    return _result(call, found, x)


@kernel("tf:MaxPool3DGrad")
def max_pool_3d_grad(call: "Call", x: Any, y: Any, dy: Any) -> Any:
    """The gradient of a MaxPool of volumes: every element of a window that is its result gets all."""
    xp = call.xp
    images, geo, dy = _turned(call, x, dy)
    y = pooled(channels_second(call, y), geo)
    padded = pad(xp, images, geo, xp.nan)
    gone = xp.zeros(padded.shape, dy.dtype)
    for tap in geo.taps():
        place = (..., *geo.slices(tap))
        gone[place] += dy * (padded[place] - y == 0)
    inner = (..., *(slice(b, b + n) for b, n in zip(geo.begins, images.shape[2:], strict=True)))
    return _result(call, gone[inner], x)


@kernel("tf:MaxPoolWithArgmax")
def max_pool_with_argmax(call: "Call", x: Any) -> tuple[Any, Any]:
    """The first greatest element of every window and its place in the image, or in the batch if asked."""
    xp = call.xp
    images = channels_second(call, x)
    geo = pool_windows(call, images.shape)
    if len(geo.kernel) == x.ndim:
        raise KernelError("MaxPoolWithArgmax pools along the spatial axes only.")
    best, index = first_greatest(xp, images, geo)
    channels, size = images.shape[1], prod(images.shape[2:])
    batch, rest = xp.divmod(index, max(channels * size, 1))
    channel, place = xp.divmod(rest, max(size, 1))
    index = place * channels + channel
    if call.attr("include_batch_in_index", False):
        index = index + batch * (channels * size)
    return as_asked(call, best), as_asked(call, index)


def _given_places(call: "Call", x: Any, index: Any) -> Any:
    """Return argmax as places in the whole batch.

    Raises:
        KernelError: If one lies outside.
    """
    xp = call.xp
    if not call.attr("include_batch_in_index", False):
        each = prod(x.shape[1:])
        index = index + (xp.arange(x.shape[0], dtype=index.dtype) * each).reshape(-1, *(1,) * (index.ndim - 1))
    if index.size and not 0 <= int(index.min()) <= int(index.max()) < x.size:
        raise KernelError(
            f"An argmax lies outside of images of shape {list(x.shape)}. Received: {int(index.min())} to {int(index.max())}"
        )
    return index


@kernel("tf:MaxPoolGradWithArgmax")
def max_pool_grad_with_argmax(call: "Call", x: Any, dy: Any, index: Any) -> Any:
    """The gradient of MaxPoolWithArgmax, given the places."""
    return _put_back(call.xp, dy, _given_places(call, x, index), x.size).reshape(x.shape)


@kernel("tf:MaxPoolGradGradWithArgmax")
def max_pool_grad_grad_with_argmax(call: "Call", x: Any, ddx: Any, index: Any) -> Any:
    """What stands at the given places."""
    return call.xp.ascontiguousarray(ddx).reshape(-1)[_given_places(call, x, index)]


@kernel("tf:AvgPoolGrad", "tf:AvgPool3DGrad")
def average_pool_grad(call: "Call", shape: Any, dy: Any) -> Any:
    """The gradient of a mean: every element that a window sees gets an equal part."""
    xp = call.xp
    sizes: Sequence[int] = [int(n) for n in shape]
    if channels_last(call):
        sizes = [sizes[0], sizes[-1], *sizes[1:-1]]
    dy = channels_second(call, dy)
    geo = pool_windows(call, sizes)
    inner = sizes[len(sizes) - len(geo.kernel) :]
    parts = pooled(dy, geo)
    _check(geo, parts, sizes[:2] if len(inner) < len(sizes) else (1, 1))
    parts = parts / window_counts(xp, inner, geo, dy.dtype)
    columns = xp.broadcast_to(parts[(slice(None), slice(None), None)], (*parts.shape[:2], prod(geo.kernel), *geo.counts))
    return _result(call, fold(xp, columns, geo, inner), dy)
