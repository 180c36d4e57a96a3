"""TensorFlow: numbers counted, put into intervals, and places within a shape told apart."""

from math import prod
from typing import Any

from ..graph.errors import KernelError
from .call import Call
from .choose import row_places
from .registry import kernel
from .room import check_room
from .shape import ints


@kernel("tf:Bincount", "tf:DenseBincount")
def _bincount(call: Call, x: Any, size: Any, weights: Any) -> Any:
    """Return how often each number below ``size`` occurs, or the sum of its weights; for rows of DenseBincount, of each row.

    With ``binary_output`` only whether it occurs. Numbers from ``size`` on are left out.
    """
    xp, count = call.xp, int(size)
    if count < 0 or (x.size and int(x.min()) < 0):
        raise KernelError(f"{call.node.op_type} counts numbers from 0 on. Received: {int(x.min()) if x.size else count}")
    is_rows = call.node.op_type == "DenseBincount" and x.ndim == 2
    rows = x if is_rows else x.reshape(1, -1)
    check_room(xp, [len(rows), count], 8)
    kept = rows < count
    places = (rows + count * xp.arange(len(rows))[:, None])[kept]
    share = weights.reshape(rows.shape)[kept] if weights.size else None
    if call.attr("binary_output", False):
        found = xp.bincount(places, minlength=len(rows) * count) > 0
    elif share is None or share.dtype.kind == "f":
        found = xp.bincount(places, share, minlength=len(rows) * count)
    else:
        found = xp.zeros(len(rows) * count, dtype=share.dtype)
        xp.add.at(found, places, share)
    found = found.astype(weights.dtype)
    return found.reshape(-1, count) if is_rows else found


@kernel("tf:Bucketize")
def _bucketize(call: Call, x: Any) -> Any:
    """Return the number of boundaries that are not above each element."""
    boundaries = call.xp.asarray(call.attr("boundaries"), dtype=call.xp.float32)
    if (boundaries[1:] < boundaries[:-1]).any():
        raise KernelError(f"Bucketize: boundaries go up. Received: {boundaries.tolist()}")
    return call.xp.searchsorted(boundaries, x, side="right").astype(call.xp.int32)


def _search(side: str) -> Any:
    def compute(call: Call, rows: Any, values: Any) -> Any:
        """Return, for each value, the place in a sorted row where it would go."""
        if rows.ndim != 2 or values.ndim != 2 or len(rows) != len(values):
            shapes = f"{list(rows.shape)} and {list(values.shape)}"
            raise KernelError(f"{call.node.op_type} takes as many sorted rows as rows of values. Received: {shapes}")
        return row_places(call.xp, rows, values, side)

    return compute


kernel("tf:LowerBound")(_search("left"))
kernel("tf:UpperBound")(_search("right"))


@kernel("tf:UnravelIndex")
def _unravel_index(call: Call, places: Any, sizes: Any) -> Any:
    """Return the index along each axis of places in a flattened tensor: [axes, …]."""
    shape = ints(sizes)
    if places.size and not (int(places.min()) >= 0 and int(places.max()) < prod(shape)):
        raise KernelError(f"UnravelIndex: a tensor of shape {shape} has no such place. Received: {int(places.max())}")
    return call.xp.stack(call.xp.unravel_index(places, shape)).astype(places.dtype)


@kernel("tf:HistogramFixedWidth")
def _histogram(call: Call, x: Any, limits: Any, count: Any) -> Any:
    """Return how many elements fall into each of equal intervals; those outside count at the ends."""
    xp, bins = call.xp, int(count)
    low, high = limits.reshape(-1)
    if bins < 1 or not low < high:
        raise KernelError(f"HistogramFixedWidth has intervals. Received: {bins} between {low} and {high}")
    if x.dtype.kind == "f" and xp.isnan(x).any():
        raise KernelError("HistogramFixedWidth: NaN falls into no interval.")
    places = xp.clip(xp.floor((x.reshape(-1) - low) / ((high - low) / x.dtype.type(bins))), 0, bins - 1)
    return xp.bincount(places.astype(xp.int64), minlength=bins)


def _order(call: Call) -> list[int]:
    """Return where each axis of the source's layout is in the wanted one."""
    source, wanted = str(call.attr("src_format", "NHWC")), str(call.attr("dst_format", "NCHW"))
    if sorted(source) != sorted(wanted):
        raise KernelError(f"{call.node.op_type}: both layouts have the same axes. Received: {source} and {wanted}")
    return [wanted.index(axis) for axis in source]


@kernel("tf:DataFormatDimMap")
def _dim_map(call: Call, axes: Any) -> Any:
    """Return axes of one layout in another."""
    order = call.xp.asarray(_order(call), dtype=axes.dtype)
    if axes.size and not (int(axes.min()) >= -len(order) and int(axes.max()) < len(order)):
        raise KernelError(f"DataFormatDimMap: a layout of {len(order)} axes has no such axis. Received: {axes.ravel().tolist()}")
    return order[axes]


@kernel("tf:DataFormatVecPermute", moves=True)
def _vec_permute(call: Call, x: Any) -> Any:
    """Return what is said of each axis of one layout, or of its spatial axes only, in the order of another."""
    source, wanted = str(call.attr("src_format", "NHWC")), str(call.attr("dst_format", "NCHW"))
    if len(x) == len(source) - 2:
        source, wanted = ("".join(axis for axis in text if axis not in "NC") for text in (source, wanted))
    if len(x) != len(source) or sorted(source) != sorted(wanted):
        raise KernelError(f"DataFormatVecPermute takes an element for each axis of {source}. Received: {len(x)}")
    return x[[source.index(axis) for axis in wanted]]
