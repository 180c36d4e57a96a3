"""Slices, gathers, scatters, segments and ops whose result's size depends on data."""

from typing import TYPE_CHECKING

from ..types import Dim
from .dims import Conflict, Dims, axis_index, check_vector, merge, merge_dim, show, sub_dim, with_rank

if TYPE_CHECKING:
    from .call import Call, Rule


def slice_(call: "Call") -> list[Dims]:
    """From ``begin`` on, ``size`` elements; -1 means up to the end."""
    dims, begin, size = call.shape(0), call.ints(1), call.ints(2)
    if size is None:
        count = len(dims) if dims is not None else check_vector(merge(call.shape(1), call.shape(2)))
        return [(None,) * count if isinstance(count, int) and count <= 254 else None]
    if dims is None:
        return [tuple(None if n == -1 else n for n in size)]
    if len(size) != len(dims) or (begin is not None and len(begin) != len(dims)):
        raise Conflict(f"begin and size should have {len(dims)} entries")
    result: list[Dim] = []
    for i, (dim, count) in enumerate(zip(dims, size, strict=True)):
        start = None if begin is None else begin[i]
        if count == -1:
            result.append(sub_dim(dim, start))
        else:
            if isinstance(dim, int) and isinstance(count, int) and isinstance(start, int) and start + count > dim:
                raise Conflict(f"a slice of {count} from {start} does not fit into dimension {i} of size {dim}")
            result.append(count)
    return [tuple(result)]


def strided_slice(call: "Call") -> list[Dims]:
    """NumPy's basic indexing; see :func:`slice_plan`."""
    plan = slice_plan(call, call.shape(0))
    return [None if plan is None else tuple(size for kind, size, *_ in plan if kind != "shrink")]


def slice_plan(call: "Call", dims: Dims) -> list[tuple[str, Dim, int, Dim, Dim]] | None:
    """Read a StridedSlice's operands: for each dimension of operand and result what happens to it.

    Returns:
        Tuples (kind, size of the result, dimension of the operand, begin, stride), kind being ``"keep"``, ``"shrink"``
        or ``"new"``; None when the number of entries is not known or the operand's rank is needed and unknown.
    """
    begin, end, strides = call.ints(1), call.ints(2), call.ints(3)
    count = check_vector(merge(merge(call.shape(1), call.shape(2)), call.shape(3)))
    if dims is None or not isinstance(count, int) or count > 254:
        return None
    masks = [call.integer(f"{name}_mask") for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")]
    known_masks = [mask for mask in masks if mask is not None]
    if len(known_masks) != 5:
        return None
    begin_mask, end_mask, ellipsis_mask, new_mask, shrink_mask = known_masks
    dots = [i for i in range(count) if ellipsis_mask >> i & 1]
    if len(dots) > 1:
        raise Conflict("only one ellipsis is allowed")
    taken = sum(1 for i in range(count) if not (ellipsis_mask | new_mask) >> i & 1)
    if taken > len(dims):
        raise Conflict(f"{taken} indices are too many for {show(dims)}")
    plan: list[tuple[str, Dim, int, Dim, Dim]] = []
    axis = 0

    def keep_all(until: int) -> None:
        nonlocal axis
        while axis < until:
            plan.append(("keep", dims[axis], axis, 0, 1))
            axis += 1

    for i in range(count):
        if ellipsis_mask >> i & 1:
            after = sum(1 for j in range(i + 1, count) if not new_mask >> j & 1)
            keep_all(len(dims) - after)
        elif new_mask >> i & 1:
            plan.append(("new", 1, axis, None, 1))
        else:
            first = None if begin is None else begin[i]
            stride = None if strides is None else strides[i]
            if stride == 0:
                raise Conflict("strides should not be 0")
            dim = dims[axis]
            if shrink_mask >> i & 1:
                if isinstance(dim, int) and isinstance(first, int) and not -dim <= first < dim:
                    raise Conflict(f"index {first} is outside of dimension {axis}, which has size {dim}")
                plan.append(("shrink", None, axis, first, stride))
            else:
                start = 0 if begin_mask >> i & 1 and stride == 1 else first
                last = None if end is None else end[i]
                size = _slice_size(dim, first, last, stride, bool(begin_mask >> i & 1), bool(end_mask >> i & 1))
                plan.append(("keep", size, axis, start, stride))
            axis += 1
    keep_all(len(dims))
    return plan


def _slice_size(dim: Dim, begin: Dim, end: Dim, stride: Dim, from_start: bool, to_end: bool) -> Dim:
    if not isinstance(stride, int):
        return None
    if from_start and to_end and stride in (1, -1):
        return dim
    first = None if from_start else begin
    last = None if to_end else end
    if (not from_start and not isinstance(first, int)) or (not to_end and not isinstance(last, int)):
        # x[0:n] of a dimension n
        return dim if stride == 1 and to_end and begin == 0 else None
    if isinstance(dim, int):
        return len(range(*slice(first, last, stride).indices(dim)))
    if to_end and stride == 1 and begin == 0:
        return dim
    # Both ends counted from the same side: the size is at most their distance; it is not known.
    return 0 if isinstance(first, int) and isinstance(last, int) and stride == 1 and 0 <= last <= first else None


def strided_slice_grad(call: "Call") -> list[Dims]:
    """The shape that operand 0 holds."""
    return [call.as_shape(0)]


def gather(call: "Call") -> list[Dims]:
    """The indices' shape in place of the axis (after the batch dimensions)."""
    params, indices = call.shape(0), call.shape(1)
    axis: Dim = call.scalar(2) if call.node.op_type == "GatherV2" else 0
    batch = call.integer("batch_dims") if call.node.op_type == "GatherV2" else 0
    if params is None or indices is None or batch is None:
        return [None]
    if not params:
        raise Conflict("the first operand should have at least one dimension")
    batch = axis_index(batch, len(indices) + 1) if batch < 0 else batch
    if batch > len(indices) or batch >= len(params):
        raise Conflict(f"{batch} batch dimensions are too many")
    if not isinstance(axis, int):
        return [(None,) * (len(params) + len(indices) - 1 - batch)]
    i = axis_index(axis, len(params))
    if i < batch:
        raise Conflict(f"axis {axis} lies in the {batch} batch dimensions")
    lead = merge(params[:batch], indices[:batch]) or ()
    return [lead + params[batch:i] + indices[batch:] + params[i + 1 :]]


def resource_gather(call: "Call") -> list[Dims]:
    """Rows of a variable."""
    params, indices, batch = call.element(0).dims, call.shape(1), call.integer("batch_dims")
    if params is None or indices is None or batch != 0 or not params:
        return [None]
    return [indices + params[1:]]


def gather_nd(call: "Call") -> list[Dims]:
    """The last dimension of the indices indexes the first dimensions of the operand."""
    params, indices = call.shape(0), call.shape(1)
    if call.node.op_type == "ResourceGatherNd":
        params = call.element(0).dims
    if indices is not None and not indices:
        raise Conflict("the indices should have at least one dimension")
    if params is None or indices is None:
        return [None]
    depth = indices[-1]
    if not isinstance(depth, int):
        return [None]
    if depth > len(params):
        raise Conflict(f"{depth} indices are too many for {show(params)}")
    return [indices[:-1] + params[depth:]]


def one_hot(call: "Call") -> list[Dims]:
    """The indices with a dimension of ``depth`` at ``axis``."""
    indices, depth, axis = call.shape(0), call.scalar(1), call.integer("axis")
    if isinstance(depth, int) and depth < 0:
        raise Conflict(f"depth should not be negative, but is {depth}")
    if indices is None or axis is None:
        return [None]
    i = axis_index(axis, len(indices) + 1)
    return [(*indices[:i], depth, *indices[i:])]


def like_first(call: "Call") -> list[Dims]:
    """The tensor that is updated."""
    return [call.shape(0)]


def scatter_nd(call: "Call") -> list[Dims]:
    """The shape that operand 2 holds."""
    return [call.as_shape(2)]


def segment(call: "Call") -> list[Dims]:
    """One row per segment; the ids ascend, so the last one says how many."""
    dims, ids = call.shape(0), call.known(1)
    return [(ids[-1] + 1 if ids else None, *dims[1:]) if dims else None]


def unsorted_segment(call: "Call") -> list[Dims]:
    """``num_segments`` rows in place of the dimensions of the segment ids."""
    dims, ids, count = call.shape(0), call.shape(1), call.scalar(2)
    if isinstance(count, int) and count < 0:
        raise Conflict(f"the number of segments should not be negative, but is {count}")
    if dims is None or ids is None:
        return [None]
    if len(ids) > len(dims):
        raise Conflict(f"segment ids {show(ids)} do not fit data {show(dims)}")
    merge(dims[: len(ids)], ids)
    return [(count, *dims[len(ids) :])]


def where(call: "Call") -> list[Dims]:
    """A row of indices per element that is not zero."""
    dims = call.shape(0)
    return [(None, None if dims is None else len(dims))]


def unique(call: "Call") -> list[Dims]:
    """A vector of unknown length, the index of every element, and counts."""
    results: list[Dims] = [(None,), call.shape(0), (None,)]
    return results[: len(call.node.outputs)]


def dynamic_partition(call: "Call") -> list[Dims]:
    """Rows of the data; how many go where is in the data."""
    data, parts = call.shape(0), call.shape(1)
    if data is None or parts is None:
        return [None] * len(call.node.outputs)
    if len(parts) > len(data):
        raise Conflict(f"partitions {show(parts)} do not fit data {show(data)}")
    return [(None, *data[len(parts) :])] * len(call.node.outputs)


def dynamic_stitch(call: "Call") -> list[Dims]:
    """As many rows as the largest index says, if the indices are known."""
    half = len(call.dims) // 2
    rest: Dims = None
    largest: int | None = -1
    for i in range(half):
        indices, data = call.shape(i), call.shape(half + i)
        content = call.known(i)
        largest = None if content is None or largest is None else max([largest, *content])
        if indices is not None and data is not None:
            if len(indices) > len(data):
                raise Conflict(f"indices {show(indices)} do not fit data {show(data)}")
            merge(data[: len(indices)], indices)
            rest = merge(rest, data[len(indices) :])
    if call.node.op_type == "ParallelDynamicStitch":
        largest = None
    return [None if rest is None else (None if largest is None else largest + 1, *rest)]


def range_(call: "Call") -> list[Dims]:
    """``ceil((limit - start) / delta)`` integers."""
    start, limit, delta = call.scalar(0), call.scalar(1), call.scalar(2)
    for index in range(3):
        with_rank(call.shape(index), 0)
    if delta == 0:
        raise Conflict("the step of a range should not be 0")
    if isinstance(start, int) and isinstance(limit, int) and isinstance(delta, int):
        return [(max(0, -((start - limit) // delta)),)]
    return [(limit if start == 0 and delta == 1 else None,)]


def linspace(call: "Call") -> list[Dims]:
    """``num`` values; start and stop are scalars."""
    return [(call.scalar(2),) if call.shape(0) == () else None]


def in_top_k(call: "Call") -> list[Dims]:
    """One answer per row."""
    return [(merge_dim(call.ranked(0, 2)[0], call.ranked(1, 1)[0]),)]


def bincount(call: "Call") -> list[Dims]:
    """A count per value."""
    return [(call.scalar(1),)]


def sorted_search(call: "Call") -> list[Dims]:
    """The place of every value."""
    return [call.shape(1)]


_UPDATES = """
    InplaceAdd InplaceSub InplaceUpdate TensorScatterAdd TensorScatterMax TensorScatterMin TensorScatterSub TensorScatterUpdate
    TensorStridedSliceUpdate ScatterNdNonAliasingAdd
"""

RULES: "dict[str, Rule]" = {
    **dict.fromkeys(_UPDATES.split(), like_first),
    **dict.fromkeys([f"Segment{name}" for name in ("Max", "Mean", "Min", "Prod", "Sum")], segment),
    **dict.fromkeys([f"UnsortedSegment{name}" for name in ("Max", "Min", "Prod", "Sum")], unsorted_segment),
    "Bincount": bincount,
    "DynamicPartition": dynamic_partition,
    "DynamicStitch": dynamic_stitch,
    "Gather": gather,
    "GatherNd": gather_nd,
    "GatherV2": gather,
    "InTopK": in_top_k,
    "InTopKV2": in_top_k,
    "LinSpace": linspace,
    "LowerBound": sorted_search,
    "OneHot": one_hot,
    "ParallelDynamicStitch": dynamic_stitch,
    "Range": range_,
    "ResourceGather": resource_gather,
    "ResourceGatherNd": gather_nd,
    "ScatterNd": scatter_nd,
    "Slice": slice_,
    "StridedSlice": strided_slice,
    "StridedSliceGrad": strided_slice_grad,
    "Unique": unique,
    "UniqueV2": lambda call: [None, (None,)],
    "UniqueWithCounts": unique,
    "UpperBound": sorted_search,
    "Where": where,
}
