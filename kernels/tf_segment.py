"""TensorFlow: sums, products, means and extremes of the rows that have the same segment number. NumPy only: ``reduceat``."""

from collections.abc import Callable
from typing import Any

from ..graph.errors import KernelError
from .call import Call
from .registry import kernel
from .tf_reduce import lowest_finite

_UFUNCS = {"Sum": "add", "Prod": "multiply", "Max": "maximum", "Min": "minimum"}


def by_segment(call: Call, name: str, data: Any, segments: Any, count: int, start: Any) -> Any:
    """Return ``count`` rows: each the sum (or product …) of the rows of its number, ``start`` where there are none.

    Rows with a negative number are left out.
    """
    xp = call.xp
    if segments.size and int(segments.max()) >= count:
        raise KernelError(f"{call.node.op_type}: segment numbers are less than {count}. Received: {int(segments.max())}")
    order = xp.argsort(segments, kind="stable")
    order = order[int(xp.count_nonzero(segments < 0)) :]
    result = xp.full((count, *data.shape[1:]), start, dtype=data.dtype)
    if order.size:
        numbers = segments[order]
        first = xp.flatnonzero(xp.concatenate([xp.ones(1, bool), numbers[1:] != numbers[:-1]]))
        result[numbers[first]] = getattr(xp, _UFUNCS[name]).reduceat(data[order], first, axis=0, dtype=data.dtype)
    return result


def _neutral(call: Call, name: str) -> Any:
    """Return what a segment without rows is: 0, 1, or the extreme finite number."""
    if name in ("Sum", "Prod"):
        return int(name == "Prod")
    dtype = call.dtype("T")
    low = lowest_finite(dtype)
    if name == "Max":
        return low
    import numpy as np

    return np.iinfo(dtype.numpy).max if dtype.kind in ("int", "uint") else -low


def _sorted(call: Call, data: Any, segments: Any) -> None:
    if segments.ndim != 1 or not data.ndim or segments.shape[0] != data.shape[0]:
        shapes = f"{list(data.shape)} and {list(segments.shape)}"
        raise KernelError(f"{call.node.op_type} takes a segment number for each row. Received: shapes {shapes}")
    if segments.size and (segments[0] < 0 or (segments[1:] < segments[:-1]).any()):
        raise KernelError(f"{call.node.op_type}: segment numbers are at least 0 and go up.")


def _segment(name: str) -> Callable[..., Any]:
    def compute(call: Call, data: Any, segments: Any, count: Any = None) -> Any:
        _sorted(call, data, segments)
        if count is None:
            rows = int(segments[-1]) + 1 if segments.size else 0
            return by_segment(call, name, data, segments, rows, int(name == "Prod"))
        return by_segment(call, name, data, segments, int(count), _neutral(call, name))

    return compute


def _unsorted(name: str) -> Callable[..., Any]:
    def compute(call: Call, data: Any, segments: Any, count: Any) -> Any:
        if data.shape[: segments.ndim] != segments.shape:
            shapes = f"{list(data.shape)} and {list(segments.shape)}"
            raise KernelError(f"{call.node.op_type}: the shape of the data begins with that of the segments. Received: {shapes}")
        data = data.reshape(segments.size, *data.shape[segments.ndim :])
        return by_segment(call, name, data, segments.reshape(-1), int(count), _neutral(call, name))

    return compute


for _name in _UFUNCS:
    kernel(f"tf:Segment{_name}", f"tf:Segment{_name}V2")(_segment(_name))
    kernel(f"tf:UnsortedSegment{_name}")(_unsorted(_name))


def _counts(call: Call, segments: Any, rows: int, data: Any) -> Any:
    """Return the number of rows of each segment, at least 1, in the dtype of the data and of its rank."""
    counts = call.xp.maximum(call.xp.bincount(segments, minlength=rows), 1)
    return counts.reshape(-1, *[1] * (data.ndim - 1)).astype(data.real.dtype)


@kernel("tf:SegmentMean")
def _segment_mean(call: Call, data: Any, segments: Any) -> Any:
    _sorted(call, data, segments)
    rows = int(segments[-1]) + 1 if segments.size else 0
    summed = by_segment(call, "Sum", data, segments, rows, 0)
    counts = _counts(call, segments, rows, data)
    return summed / counts if data.dtype.kind in "fc" else call.xp.trunc(summed / counts).astype(data.dtype)


def _chosen(call: Call, data: Any, indices: Any) -> Any:
    if indices.size and (int(indices.min()) < 0 or int(indices.max()) >= data.shape[0]):
        raise KernelError(
            f"{call.node.op_type}: the data has no such row. Received: {int(indices.min())} to {int(indices.max())}"
        )
    return data[indices]


def _scale(call: Call, kind: str, segments: Any, rows: int, data: Any) -> Any:
    counts = _counts(call, segments, rows, data)
    return counts if kind == "Mean" else call.xp.sqrt(counts)


def _sparse(kind: str) -> Callable[..., Any]:
    def compute(call: Call, data: Any, indices: Any, segments: Any, count: Any = None) -> Any:
        """Reduce rows chosen by index."""
        rows = _chosen(call, data, indices)
        _sorted(call, rows, segments)
        number = int(count) if count is not None else int(segments[-1]) + 1 if segments.size else 0
        summed = by_segment(call, "Sum", rows, segments, number, 0)
        return summed if kind == "Sum" else summed / _scale(call, kind, segments, number, data)

    return compute


def _spread(call: Call, kind: str, dy: Any, segments: Any) -> Any:
    """Return the gradient of each row that was summed."""
    if kind != "Sum":
        dy = dy / _scale(call, kind, segments, dy.shape[0], dy)
    return _chosen(call, dy, segments)


def _sparse_grad(kind: str) -> Callable[..., Any]:
    def compute(call: Call, dy: Any, indices: Any, segments: Any, count: Any) -> Any:
        if indices.size and int(indices.min()) < 0:
            raise KernelError(f"{call.node.op_type}: rows have no negative numbers. Received: {int(indices.min())}")
        return by_segment(call, "Sum", _spread(call, kind, dy, segments), indices, int(count), 0)

    return compute


def _sparse_grad_v2(kind: str) -> Callable[..., Any]:
    def compute(call: Call, dy: Any, indices: Any, segments: Any, count: Any) -> Any:
        """Return the gradients of the rows that were used, and their numbers in order."""
        rows, places = call.xp.unique(indices, return_inverse=True)
        return by_segment(call, "Sum", _spread(call, kind, dy, segments), places.reshape(-1), rows.size, 0), rows

    return compute


for _name in ("Sum", "Mean", "SqrtN"):
    kernel(f"tf:SparseSegment{_name}", f"tf:SparseSegment{_name}WithNumSegments")(_sparse(_name))
    kernel(f"tf:SparseSegment{_name}Grad")(_sparse_grad(_name))
    kernel(f"tf:SparseSegment{_name}GradV2")(_sparse_grad_v2(_name))
