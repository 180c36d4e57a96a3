"""Pooling: the greatest, the mean or the norm of every window, axis by axis because all three separate."""

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .registry import kernel
from .room import check_room
from .windows import Geometry, geometry, pad, trimmed

if TYPE_CHECKING:
    from .call import Call

#: Elements of the operand that are worked on at a time, so that they stay in the cache.
_BLOCK = 1 << 19


def pool_geometry(call: "Call", x: Any) -> Geometry:
    """Return the windows that a pooling node describes, over the axes after batch and channels."""
    shape = call.attr("kernel_shape", None)
    if x.ndim < 3 or shape is None:
        raise KernelError(f"A pool takes an array [N, C, spatial ...] and a kernel_shape. Received: {list(x.shape)} and {shape}")
    return geometry(call, x.shape[2:], [int(k) for k in shape])


def windowed(xp: Any, x: Any, geo: Geometry, combine: Any, outside: Any = 0) -> Any:
    """Combine the elements of every window with a ufunc, one axis after another, some channels at a time.

    Args:
        xp: Array module.
        x: ``[N, C, spatial ...]``.
        geo: The windows.
        combine: A ufunc of two operands that is associative.
        outside: What stands around ``x``.
    """
    geo = trimmed(geo, x.shape[2:])
    images = x.reshape((prod(x.shape[:2]), *x.shape[2:]))
    check_room(xp, (len(images), *geo.counts), x.itemsize)
    result = xp.empty((len(images), *geo.counts), x.dtype)
    if not result.size:
        return result.reshape((*x.shape[:2], *geo.counts))
    some = max(1, _BLOCK // max(prod(x.shape[2:]), 1))
    last = len(geo.kernel) - 1
    for i in range(0, len(images), some):
        part = pad(xp, images[i : i + some], geo, outside)
        for axis in range(last):
            part = _along(part, axis + 1, axis, geo, combine)
        # Along the last axis windows run on over the ends of rows, for the sake of long loops; those are dropped.
        k, d = geo.kernel[last], geo.dilations[last]
        if k > 1:
            part = xp.ascontiguousarray(part)
            line = part.reshape(-1)
            sums = xp.empty_like(line)
            good = sums[: line.size - (k - 1) * d]
            combine(line[: good.size], line[d : d + good.size], out=good)
            for tap in range(2, k):
                combine(good, line[tap * d : tap * d + good.size], out=good)
            part = sums.reshape(part.shape)
        result[i : i + some] = part[(..., geo.slices((0,) * (last + 1))[last])]
    return result.reshape((*x.shape[:2], *geo.counts))


def _along(x: Any, axis: int, spatial: int, geo: Geometry, combine: Any) -> Any:
    """Combine windows along one axis."""
    before = (slice(None),) * axis
    parts = [x[(*before, geo.slices((tap,) * len(geo.kernel))[spatial])] for tap in range(geo.kernel[spatial])]
    if len(parts) == 1:
        return parts[0]
    result = combine(parts[0], parts[1])
    for part in parts[2:]:
        combine(result, part, out=result)
    return result


def lowest(xp: Any, dtype: Any) -> Any:
    """Return what no element of a dtype is less than."""
    return -xp.inf if dtype.kind == "f" else xp.iinfo(dtype).min


@kernel("MaxPool", "com.microsoft:NhwcMaxPool")
def max_pool(call: "Call", x: Any) -> Any:
    """The greatest element of every window, and its index in the operand if asked."""
    xp = call.xp
    last = call.node.op_type == "NhwcMaxPool"
    if last:
        x = xp.moveaxis(x, -1, 1)
    geo = pool_geometry(call, x)
    if call.results > 1:
        geo = trimmed(geo, x.shape[2:])
        return _max_and_index(call, x, pad(xp, x, geo, lowest(xp, x.dtype)), geo)
    result = windowed(xp, x, geo, xp.maximum, lowest(xp, x.dtype))
    return xp.moveaxis(result, 1, -1) if last else result


def _max_and_index(call: "Call", x: Any, padded: Any, geo: Geometry) -> tuple[Any, Any]:
    """Return the greatest element of every window and its index in the flattened operand; the first of equal ones."""
    xp = call.xp
    spatial = x.shape[2:]
    rank = len(spatial)
    steps = [prod(spatial[i + 1 :]) for i in range(rank)]
    if call.attr("storage_order", 0):  # column major
        steps = [prod(spatial[:i]) for i in range(rank)]
    best: Any = None
    index: Any = None
    for tap in geo.taps():
        value = padded[(..., *geo.slices(tap))]
        place: Any = 0
        inside: Any = True
        for i, t in enumerate(tap):
            at = xp.arange(geo.counts[i], dtype=xp.int64) * geo.strides[i] + t * geo.dilations[i] - geo.begins[i]
            at = at.reshape((-1, *(1,) * (rank - 1 - i)))
            place = place + at * steps[i]
            inside = inside & (at >= 0) & (at < spatial[i])
        if best is None:
            best, index = value.copy(), xp.broadcast_to(xp.where(inside, place, -1), value.shape).copy()
        else:
            better = ((value > best) | (xp.isnan(value) & ~xp.isnan(best)) | (index < 0)) & inside
            xp.copyto(best, value, where=better)
            xp.copyto(index, xp.broadcast_to(place, value.shape), where=better)
    images = xp.arange(prod(x.shape[:2]), dtype=xp.int64).reshape(*x.shape[:2], *(1,) * rank)
    return best, index + images * prod(spatial)


@kernel("AveragePool")
def average_pool(call: "Call", x: Any) -> Any:
    """The mean of every window: over its elements, or over those and its padding (never what ``ceil_mode`` adds)."""
    geo = pool_geometry(call, x)
    return window_means(call.xp, x, geo, bool(call.attr("count_include_pad", 0)))


def window_means(xp: Any, x: Any, geo: Geometry, padding: bool = False) -> Any:
    """Return the mean of every window of ``x [N, C, spatial ...]``, with or without the padding in it."""
    sums = windowed(xp, x, geo, xp.add)
    sums /= window_counts(xp, x.shape[2:], geo, x.dtype, padding)
    return sums


def window_counts(xp: Any, shape: Sequence[int], geo: Geometry, dtype: Any, padding: bool = False) -> Any:
    """Return how many elements of an array of this spatial shape, or of it and its padding, every window sees."""
    counts = xp.ones((), dtype)
    for i, size in enumerate(shape):
        starts = xp.arange(geo.counts[i]) * geo.strides[i] - geo.begins[i]
        low, high = (-geo.begins[i], size + geo.ends[i]) if padding else (0, size)
        first = xp.maximum(0, -((starts - low) // geo.dilations[i]))
        last = xp.minimum(geo.kernel[i] - 1, (high - 1 - starts) // geo.dilations[i])
        counts = counts[..., None] * xp.maximum(last - first + 1, 0).astype(dtype)
    return counts


@kernel("LpPool")
def lp_pool(call: "Call", x: Any) -> Any:
    """The p-norm of every window."""
    xp = call.xp
    p = call.attr("p", 2)
    geo = pool_geometry(call, x)
    return _root(xp, windowed(xp, _power(xp, x, p), geo, xp.add), p)


def _power(xp: Any, x: Any, p: float) -> Any:
    return xp.square(x) if p == 2 else xp.abs(x) ** x.dtype.type(p)


def _root(xp: Any, x: Any, p: float) -> Any:
    return xp.sqrt(x) if p == 2 else x ** x.dtype.type(1 / p)


def _spatial(x: Any) -> tuple[int, ...]:
    return tuple(range(2, x.ndim))


@kernel("GlobalMaxPool")
def global_max_pool(call: "Call", x: Any) -> Any:
    """The greatest element of every channel."""
    return x.max(_spatial(x), keepdims=True, initial=lowest(call.xp, x.dtype))


@kernel("GlobalAveragePool")
def global_average_pool(call: "Call", x: Any) -> Any:
    """The mean of every channel."""
    return x.mean(_spatial(x), keepdims=True)


@kernel("GlobalLpPool")
def global_lp_pool(call: "Call", x: Any) -> Any:
    """The p-norm of every channel."""
    p = call.attr("p", 2)
    return _root(call.xp, _power(call.xp, x, p).sum(_spatial(x), keepdims=True), p)


@kernel("MaxUnpool")
def max_unpool(call: "Call", x: Any, index: Any, shape: Any = None) -> Any:
    """Put the results of a MaxPool back where they came from, zeros elsewhere."""
    xp = call.xp
    taps = [int(k) for k in call.attr("kernel_shape", ())]
    rank = len(taps)
    strides = call.attr("strides", None) or [1] * rank
    pads = call.attr("pads", None) or [0] * 2 * rank
    inferred = [
        (n - 1) * s - b - e + k for n, s, b, e, k in zip(x.shape[2:], strides, pads[:rank], pads[rank:], taps, strict=True)
    ]
    small = (*x.shape[:2], *inferred)
    full = small if shape is None else tuple(int(v) for v in shape)
    # Indices speak of the shape that the pool had: the inferred one, whatever larger shape is asked for.
    size = prod(small)
    for each in (small, full):
        check_room(xp, each, x.itemsize)
    flat = xp.zeros(max(size, 1), x.dtype)
    if x.size and not 0 <= int(index.min()) <= int(index.max()) < size:
        raise KernelError(
            f"An index of MaxUnpool lies outside the {size} elements of {list(small)}. "
            f"Received: {int(index.min())} to {int(index.max())}"
        )
    flat[index.reshape(-1)] = x.reshape(-1)
    back = flat[:size].reshape(small)
    if full == small:
        return back
    result = xp.zeros(full, x.dtype)
    common = tuple(slice(0, min(a, b)) for a, b in zip(full, small, strict=True))
    result[common] = back[common]
    return result
