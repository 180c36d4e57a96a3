"""Reading arrays between their elements: GridSample, AffineGrid and deformable convolution.

Coordinates are ``[batch, rank, points]``, in elements; arrays ``[batch, channels, spatial ...]``.
"""

from collections.abc import Callable
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .conv import check_groups, check_ranks, kernel_shape
from .registry import kernel
from .room import check_room
from .windows import geometry

if TYPE_CHECKING:
    from .call import Call

Boundary = Callable[[Any, int], tuple[Any, Any]]


def zeros_outside(xp: Any, at: Any, size: int) -> tuple[Any, Any]:
    """Return the elements at integral coordinates ``at``, and the weight 0 of those that do not exist."""
    return xp.clip(at, 0, max(size - 1, 0)), (at >= 0) & (at < size)


def read(xp: Any, x: Any, at: Any, neighbours: Any, boundary: Boundary) -> Any:
    """Return weighted sums of the neighbours of points: ``[batch, channels, points]``.

    Args:
        xp: Array module.
        x: ``[batch, channels, spatial ...]``.
        at: ``[batch, rank, points]``.
        neighbours: Function of the coordinates along one axis, which returns a list of (integral coordinates, weights).
        boundary: Function of integral coordinates and the length of an axis: which elements stand there, and a factor.
    """
    sizes = x.shape[2:]
    flat = x.reshape(*x.shape[:2], prod(sizes))
    result = xp.zeros((*x.shape[:2], at.shape[-1]), x.dtype)
    if not result.size or not flat.size:
        return result
    found = []
    for axis, size in enumerate(sizes):
        entries = []
        for place, weight in neighbours(at[:, axis]):
            index, factor = boundary(xp.clip(xp.nan_to_num(place), -(2.0**31), 2.0**31), size)
            entries.append((index.astype(xp.int64), weight * factor))
        found.append(entries)
    for choice in product(*found):
        index, weight = choice[0]
        for (more, factor), size in zip(choice[1:], sizes[1:], strict=True):
            index, weight = index * size + more, weight * factor
        weight = weight.astype(x.dtype, copy=False)
        for image in range(len(x)):
            part = xp.take(flat[image], index[image], 1)
            part *= weight[image]
            result[image] += part
    return result


def linear(xp: Any, at: Any) -> list[tuple[Any, Any]]:
    """Return the two neighbours of coordinates and their weights."""
    low = xp.floor(at)
    part = at - low
    return [(low, 1 - part), (low + 1, part)]


def nearest(xp: Any, at: Any) -> list[tuple[Any, Any]]:
    """Return the nearest element, of two equally near ones the even."""
    return [(xp.rint(at), xp.ones_like(at))]


def cubic(xp: Any, at: Any, a: float = -0.75) -> list[tuple[Any, Any]]:
    """Return the four neighbours of coordinates and their weights in Keys' cubic convolution."""
    low = xp.floor(at)
    t = at - low

    def near(d: Any) -> Any:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Any) -> Any:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [(low - 1, far(t + 1)), (low, near(t)), (low + 1, near(1 - t)), (low + 2, far(2 - t))]


def _reflected(xp: Any, at: Any, size: int, aligned: bool) -> Any:
    """Return coordinates reflected at the borders until they lie inside."""
    low, length = (0.0, size - 1.0) if aligned else (-0.5, float(size))
    if length <= 0:
        return xp.zeros_like(at)
    away = xp.abs(at - low)
    turns = xp.floor(away / length)
    rest = away - turns * length
    return xp.where(turns % 2 == 0, rest, length - rest) + low


@kernel("GridSample", "com.microsoft:GridSample")
def grid_sample(call: "Call", x: Any, grid: Any) -> Any:
    """Read an array at the points of a grid, whose coordinates run from -1 to 1, the last axis first."""
    xp = call.xp
    rank = x.ndim - 2
    if grid.ndim != x.ndim or grid.shape[-1] != rank or grid.shape[0] != x.shape[0]:
        raise KernelError(f"GridSample of {list(x.shape)} needs a grid [N, ..., {rank}]. Received: {list(grid.shape)}")
    mode = str(call.attr("mode", "linear")).removeprefix("bi")
    padding = str(call.attr("padding_mode", "zeros"))
    aligned = bool(call.attr("align_corners", 0))
    points = xp.moveaxis(grid, -1, 1).reshape(grid.shape[0], rank, prod(grid.shape[1:-1]))[:, ::-1]
    if points.dtype != x.dtype:
        points = points.astype(xp.float64 if x.dtype.itemsize > 4 else xp.float32)
    at = xp.empty_like(points)
    for axis, size in enumerate(x.shape[2:]):
        g = points[:, axis]
        place = (g + 1) / 2 * (size - 1) if aligned else ((g + 1) * size - 1) / 2
        if mode == "nearest":
            place = xp.rint(place)
        if padding == "border":
            place = xp.clip(place, 0, size - 1)
        elif padding == "reflection":
            place = _reflected(xp, place, size, aligned)
        at[:, axis] = place

    def boundary(place: Any, size: int) -> tuple[Any, Any]:
        if padding == "zeros":
            return zeros_outside(xp, place, size)
        if padding == "reflection":
            place = _reflected(xp, place, size, aligned)
        return xp.clip(xp.trunc(place), 0, size - 1), 1

    choose = {"linear": linear, "nearest": nearest, "cubic": cubic}.get(mode)
    if choose is None:
        raise KernelError(f"GridSample knows the modes linear, nearest and cubic. Received: {mode!r}")
    source = x if x.dtype.kind in "fc" else x.astype(points.dtype)
    result = read(xp, source, at, lambda part: choose(xp, part), boundary)
    return result.astype(x.dtype, copy=False).reshape(*x.shape[:2], *grid.shape[1:-1])


@kernel("AffineGrid")
def affine_grid(call: "Call", theta: Any, size: Any) -> Any:
    """Return where the points of a regular grid from -1 to 1 go in affine maps."""
    xp = call.xp
    n, _, *sizes = (int(v) for v in size)
    if theta.shape != (n, len(sizes), len(sizes) + 1):
        raise KernelError(f"AffineGrid for size {[int(v) for v in size]} got maps of shape {list(theta.shape)}")
    check_room(xp, (n, *sizes, len(sizes)), theta.itemsize)
    lines = []
    for length in sizes:
        line = xp.arange(length, dtype=theta.dtype)
        if call.attr("align_corners", 0):
            lines.append(line * theta.dtype.type(2 / max(length - 1, 1)) - 1)
        else:
            lines.append((line * 2 + 1) / theta.dtype.type(length) - 1)
    grid = xp.stack([*xp.meshgrid(*lines, indexing="ij")][::-1], -1).reshape(-1, len(sizes))
    result = xp.matmul(grid, theta[:, :, :-1].swapaxes(1, 2)) + theta[:, None, :, -1]
    return result.reshape(n, *sizes, len(sizes))


@kernel("DeformConv")
def deform_conv(call: "Call", x: Any, w: Any, offset: Any, bias: Any = None, mask: Any = None) -> Any:
    """Convolution whose windows' elements are moved by offsets, and read linearly between elements; zeros outside."""
    xp = call.xp
    check_ranks(x, w)
    geo = geometry(call, x.shape[2:], kernel_shape(call, w))
    n, c = x.shape[:2]
    rank, taps, length = len(geo.kernel), prod(geo.kernel), prod(geo.counts)
    groups, parts = int(call.attr("group", 1)), int(call.attr("offset_group", 1))
    check_groups(c, w.shape[1], w.shape[0], groups)
    if parts < 1 or c % parts or offset.shape != (n, parts * taps * rank, *geo.counts):
        raise KernelError(
            f"DeformConv needs offsets [{n}, {parts * taps * rank}, {', '.join(map(str, geo.counts))}] for {c} channels. "
            f"Received: {list(offset.shape)}"
        )
    at = offset.reshape(n * parts, taps, rank, *geo.counts).swapaxes(1, 2).copy()
    for axis in range(rank):
        steps = xp.arange(geo.counts[axis]) * geo.strides[axis] - geo.begins[axis]
        at[:, axis] += steps.astype(at.dtype).reshape((-1, *(1,) * (rank - 1 - axis)))
        within = xp.arange(geo.kernel[axis]) * geo.dilations[axis]
        within = xp.broadcast_to(within.reshape((-1, *(1,) * (rank - 1 - axis))), geo.kernel).reshape(taps)
        at[:, axis] += within.astype(at.dtype).reshape((-1, *(1,) * rank))
    columns = read(
        xp,
        x.reshape(n * parts, c // parts, *x.shape[2:]),
        at.reshape(n * parts, rank, taps * length),
        lambda part: linear(xp, part),
        lambda place, size: zeros_outside(xp, place, size),
    )
    columns = columns.reshape(n, parts, c // parts, taps, length)
    if mask is not None:
        columns *= mask.reshape(n, parts, 1, taps, length)
    columns = columns.reshape(n, groups, c // groups * taps, length)
    result = xp.matmul(w.reshape(groups, w.shape[0] // groups, -1), columns).reshape(n, w.shape[0], *geo.counts)
    if bias is not None:
        result += bias.reshape((-1, *(1,) * rank))
    return result
