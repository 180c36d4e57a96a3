"""Convolutions: windows are copied to columns, as many as the cache holds at a time, and multiplied with the weights.

All arrays are ``[batch, channels, spatial ...]`` and weights ``[results, channels / groups, kernel ...]``. One algorithm serves
every rank, stride, dilation and number of groups, depthwise ones included; windows of one element need no copy.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from ..graph.errors import KernelError
from .matmul import centred, integers
from .registry import kernel
from .room import check_room
from .windows import Geometry, axis_attr, fold, geometry, pad, scratch, view

if TYPE_CHECKING:
    from .call import Call

#: Elements of a block of columns: 512 KB of float32. Larger ones leave the cache, smaller ones make many small products.
BLOCK = 1 << 17
#: Rows of so few windows are short.
_SHORT = 16


def convolve(xp: Any, x: Any, w: Any, geo: Geometry, groups: int = 1, bias: Any = None) -> Any:
    """Return the convolution of ``x`` with ``w`` as :func:`~.windows.geometry` lays the windows.

    Products are added up in the dtype of the operands.

    Args:
        xp: Array module.
        x: ``[N, C, spatial ...]``.
        w: ``[M, C / groups, kernel ...]``, of the same dtype.
        geo: The windows.
        groups: Number of groups of channels.
        bias: ``[M]`` or None.
    """
    n, c, m, taps = x.shape[0], x.shape[1], w.shape[0], prod(geo.kernel)
    check_groups(c, w.shape[1], m, groups)
    if groups == 1 < m and w.strides[0] == 0:  # filters that are all one: so are their results, to the last bit
        result = convolve(xp, x, w[:1], geo)
        return xp.repeat(result, m, 1) if bias is None else result + bias.reshape(-1, *(1,) * len(geo.kernel))
    depth, length = c // groups * taps, prod(geo.counts)
    check_room(xp, (n, m, *geo.counts), x.itemsize)
    result = xp.empty((n, groups, m // groups, length), x.dtype)
    weights = w.reshape(groups, m // groups, depth)
    added = None if bias is None else bias.reshape(groups, m // groups, 1)
    if not result.size:
        pass
    elif geo.plain:
        xp.matmul(weights, xp.ascontiguousarray(x).reshape(n, groups, depth, length), out=result)
        if added is not None:
            result += added
    elif max(geo.strides) == 1 and len(geo.kernel) > 1 and (m == groups or _pays(m // groups, depth, geo)):
        _by_lines(xp, pad(xp, x, geo), geo, weights, added, result)
    else:
        _by_blocks(xp, view(xp, pad(xp, x, geo), geo), len(geo.kernel), weights, added, result)
    return result.reshape((n, m, *geo.counts))


def _pays(results: int, depth: int, geo: Geometry) -> bool:
    """Whether rows are so short that copying windows takes longer than products with some more columns."""
    return geo.counts[-1] <= _SHORT and 4 * results <= depth and results <= 4 * _SHORT


def _by_lines(xp: Any, padded: Any, geo: Geometry, weights: Any, added: Any, result: Any) -> None:
    """Fill ``result [n, groups, m, length]``, where one column after another is one element further in the padded operand.

    Rows run on through the padding, whose results are dropped: copies are long where rows are short.
    """
    padded = xp.ascontiguousarray(padded)
    steps = padded.strides[2:]
    sizes = padded.shape[2:]
    reach = sum((count - 1) * step for count, step in zip(geo.counts, steps, strict=True)) // padded.itemsize + 1
    windows = xp.lib.stride_tricks.as_strided(
        padded,
        (*padded.shape[:2], *geo.kernel, reach),
        (*padded.strides[:2], *(step * d for step, d in zip(steps, geo.dilations, strict=True)), padded.itemsize),
    )
    n, groups, m = result.shape[:3]
    wide = scratch(xp, "wide", (n, groups, m, geo.counts[0] * prod(sizes[1:])), result.dtype)
    _by_blocks(xp, windows, len(geo.kernel), weights, added, wide[..., :reach])
    rows = wide.reshape((n, groups, m, geo.counts[0], *sizes[1:]))
    result.reshape((n, groups, m, *geo.counts))[...] = rows[(..., *(slice(count) for count in geo.counts[1:]))]


def _by_blocks(xp: Any, windows: Any, rank: int, weights: Any, added: Any, result: Any) -> None:
    """Fill ``result [n, groups, m, length]`` from ``windows [n, c, *kernel, *counts]`` with ``rank`` kernel axes, block by block."""
    n, groups = result.shape[:2]
    depth = weights.shape[-1]
    windows = windows.reshape((n, groups, windows.shape[1] // groups, *windows.shape[2:]))
    blocks = Blocks.of(n, groups, windows.shape[3 + rank :], depth, BLOCK)
    columns = scratch(xp, "columns", (blocks.most * depth,), result.dtype)
    before = (slice(None),) * (1 + rank + blocks.axis)
    for images, some, rows in blocks.slices():
        part = windows[(images, some, *before, rows)]
        block = columns[: part.size].reshape(part.shape)
        block[...] = part
        block = block.reshape(*part.shape[:2], depth, (rows.stop - rows.start) * blocks.inner)
        start = rows.start * blocks.inner
        out = result[images, some, :, start : start + block.shape[-1]]
        xp.matmul(weights[some], block, out=out)
        if added is not None:
            out += added[some]


class Blocks(NamedTuple):
    """How windows are worked on block by block: slices of images, groups, and places along one axis.

    Attributes:
        images, groups, places: How many there are.
        axis: The axis along which the places are: blocks along it are contiguous in the result.
        inner: Windows at each of the places.
        many, some, rows: How many images, groups and places a block has at most.
    """

    images: int
    groups: int
    places: int
    axis: int
    inner: int
    many: int
    some: int
    rows: int

    @classmethod
    def of(cls, images: int, groups: int, counts: Sequence[int], depth: int, size: int) -> "Blocks":
        """Return blocks of about ``size`` elements of windows of ``depth`` elements."""
        axis = next((i for i, count in enumerate(counts) if count > 1), 0)
        inner = prod(counts) // counts[axis]
        rows = max(1, min(counts[axis], size // max(depth * inner, 1)))
        some = max(1, min(groups, size // max(depth * inner * rows, 1)))
        many = max(1, min(images, size // max(depth * inner * rows * some, 1))) if some == groups else 1
        return cls(images, groups, counts[axis], axis, inner, many, some, rows)

    @property
    def most(self) -> int:
        """How many windows a block has at most, each group's for itself."""
        return self.many * self.some * self.rows * self.inner

    def slices(self) -> Iterator[tuple[slice, slice, slice]]:
        """Iterate over the blocks: slices of images, groups and places."""
        images, groups, places = (
            [slice(i, min(i + step, end)) for i in range(0, end, step)]
            for end, step in ((self.images, self.many), (self.groups, self.some), (self.places, self.rows))
        )
        return product(images, groups, places)


def check_groups(channels: int, depth: int, results: int, groups: int) -> None:
    """Raise a KernelError unless channels and weights fit."""
    if groups < 1 or channels != depth * groups or results % groups:
        raise KernelError(
            f"A convolution of {groups} groups needs weights for {channels} channels. "
            f"Received: weights for {depth} channels per group and {results} results"
        )


def kernel_shape(call: "Call", w: Any) -> tuple[int, ...]:
    """Return the window shape that the weights have.

    Raises:
        KernelError: If the attribute says another.
    """
    shape = tuple(int(k) for k in w.shape[2:])
    given = tuple(int(k) for k in call.attr("kernel_shape", None) or shape)
    if given != shape:
        raise KernelError(f"Weights of shape {list(w.shape)} do not fit the attribute kernel_shape. Received: {list(given)}")
    return shape


def check_ranks(x: Any, w: Any) -> None:
    """Raise a KernelError unless both have a batch, channels and the same number of spatial axes."""
    if x.ndim != w.ndim or x.ndim < 3:
        raise KernelError(
            f"A convolution takes an array and weights of one rank, at least 3. Received: {list(x.shape)} and {list(w.shape)}"
        )


@kernel("Conv")
def conv(call: "Call", x: Any, w: Any, bias: Any = None) -> Any:
    """Convolution as machine learning has it, which is a correlation."""
    check_ranks(x, w)
    geo = geometry(call, x.shape[2:], kernel_shape(call, w))
    return convolve(call.xp, x, w, geo, int(call.attr("group", 1)), bias)


@kernel("ConvTranspose")
def conv_transpose(call: "Call", x: Any, w: Any, bias: Any = None) -> Any:
    """The transpose of a convolution whose weights are ``[C, M / groups, kernel ...]``."""
    xp = call.xp
    check_ranks(x, w)
    rank, groups = x.ndim - 2, int(call.attr("group", 1))
    size, shape = _transposed(call, x.shape[2:], kernel_shape(call, w))
    n, c = x.shape[:2]
    if groups < 1 or w.shape[0] != c or c % groups:
        raise KernelError(
            f"Weights of shape {list(w.shape)} do not fit {c} channels in {groups} groups. Received: {list(x.shape)}"
        )
    weights = xp.ascontiguousarray(w.reshape(groups, c // groups, -1).swapaxes(1, 2))
    columns = xp.matmul(weights, xp.ascontiguousarray(x).reshape(n, groups, c // groups, prod(x.shape[2:])))
    columns = columns.reshape((n, groups * w.shape[1], prod(size.kernel), *x.shape[2:]))
    result = fold(xp, columns, size, shape)
    if bias is not None:
        result += bias.reshape((-1, *(1,) * rank))
    return result


def _transposed(call: "Call", sizes: tuple[int, ...], taps: tuple[int, ...]) -> tuple[Geometry, tuple[int, ...]]:
    """Return the windows of the convolution that is transposed, and the spatial shape of the result."""
    rank = len(sizes)
    strides = axis_attr(call, "strides", rank)
    dilations = axis_attr(call, "dilations", rank)
    extra = axis_attr(call, "output_padding", rank, 0)
    pads = axis_attr(call, "pads", 2 * rank, 0)
    auto = call.attr("auto_pad", "NOTSET") or "NOTSET"
    wanted = [int(v) for v in call.attr("output_shape", None) or ()][-rank:]
    full = [s * (n - 1) + e + (k - 1) * d + 1 for s, n, e, k, d in zip(strides, sizes, extra, taps, dilations, strict=True)]
    if auto in ("SAME_UPPER", "SAME_LOWER") and not wanted:
        wanted = [n * s for n, s in zip(sizes, strides, strict=True)]
    begins, shape = list(pads[:rank]), [f - b - e for f, b, e in zip(full, pads[:rank], pads[rank:], strict=True)]
    if auto == "VALID" and not wanted:
        begins, shape = [0] * rank, full
    for i, size in enumerate(wanted):
        total = max(full[i] - size, 0)
        begins[i] = total - total // 2 if auto == "SAME_LOWER" else total // 2
        shape[i] = size
    if min(shape) < 0:
        raise KernelError(f"Padding is larger than the result of a transposed convolution. Received: pads {list(pads)}")
    return Geometry(taps, strides, dilations, tuple(begins), (0,) * rank, tuple(sizes)), tuple(shape)


@kernel("CausalConvWithState")
def causal_conv(call: "Call", x: Any, w: Any, bias: Any = None, past: Any = None) -> tuple[Any, Any]:
    """Depthwise convolution over past positions only; the last ``k - 1`` positions are handed on."""
    xp = call.xp
    k = w.shape[-1]
    if past is None:
        past = xp.zeros((*x.shape[:2], k - 1), x.dtype)
    joined = xp.concatenate([past, x], -1)
    geo = Geometry((k,), (1,), (1,), (0,), (0,), (x.shape[-1],))
    result = convolve(xp, joined, w, geo, x.shape[1], bias)
    if call.attr("activation", "none") in ("silu", "swish"):
        result = result / (1 + xp.exp(-result))
    return result, joined[..., joined.shape[-1] - (k - 1) :]


@kernel("ConvInteger")
def conv_integer(call: "Call", x: Any, w: Any, x_zero: Any = None, w_zero: Any = None) -> Any:
    """Convolution of 8-bit integers, exact in int32."""
    return _integer_sums(call, x, w, x_zero, w_zero, 1, 3)


def _integer_sums(call: "Call", x: Any, w: Any, x_zero: Any, w_zero: Any, *places: int) -> Any:
    """Convolve integers less their zero points, exactly: in float32 where no sum reaches 2**24, else in float64.

    ``places`` are those of the weights and their zero points among the operands.
    """
    xp = call.xp
    check_ranks(x, w)
    weights = call.kept(lambda: integers(xp, w.reshape(len(w), -1).T, w_zero), *places)
    x = centred(xp, x, x_zero, 1)
    values = weights.values.T.reshape(w.shape)
    if float(xp.abs(x).max(initial=0)) * weights.reach >= 1 << 24:
        x, values = x.astype(xp.float64), values.astype(xp.float64)
    geo = geometry(call, x.shape[2:], kernel_shape(call, w))
    return convolve(xp, x, values, geo, int(call.attr("group", 1))).astype(xp.int64).astype(xp.int32)


@kernel("QLinearConv", "com.microsoft:QLinearConv")
def qlinear_conv(
    call: "Call",
    x: Any,
    x_scale: Any,
    x_zero: Any,
    w: Any,
    w_scale: Any,
    w_zero: Any,
    y_scale: Any,
    y_zero: Any,
    bias: Any = None,
) -> Any:
    """Convolution of quantized arrays: exact sums in int32, scaled in float32, rounded once (ties to even)."""
    xp = call.xp
    last = bool(call.attr("channels_last", 0))
    sums = _integer_sums(call, xp.moveaxis(x, -1, 1) if last else x, w, x_zero, w_zero, 3, 5)
    column = (-1, *(1,) * (sums.ndim - 2))
    if bias is not None:
        sums = sums + bias.reshape(column)
    scale = (x_scale.astype(xp.float32) * w_scale.astype(xp.float32) / y_scale.astype(xp.float32)).reshape(-1)
    kept = xp.iinfo(y_zero.dtype)
    y = xp.rint(sums.astype(xp.float32) * scale.reshape(column)) + y_zero.astype(xp.float32).reshape(())
    y = xp.clip(y, kept.min, kept.max).astype(y_zero.dtype)
    return xp.moveaxis(y, 1, -1) if last else y
