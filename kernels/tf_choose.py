"""TensorFlow: elements compared to choose among them."""

from typing import Any

from ..graph.errors import KernelError
from .call import Call
from .choose import distinct
from .gather import axis_of
from .registry import kernel
from .shape import ints


def _index(call: Call, position: int, numbers: Any) -> Any:
    dtype = call.dtypes[position]
    return numbers.astype(call.xp.int32 if dtype is None else dtype.numpy)


@kernel("tf:TopKV2", moves=True)
def top_k(call: Call, x: Any, k: Any) -> tuple[Any, Any]:
    """Return the ``k`` largest along the last axis, in falling order, and where they are; of equals the first."""
    return _largest(call, x, int(k.reshape(())))


@kernel("tf:TopK", moves=True)
def top_k_v1(call: Call, x: Any) -> tuple[Any, Any]:
    """Do as :func:`top_k`."""
    return _largest(call, x, call.attr("k"))


def _largest(call: Call, x: Any, count: int) -> tuple[Any, Any]:
    xp = call.xp
    if not x.ndim or not 0 <= count <= x.shape[-1]:
        raise KernelError(f"{call.node.op_type}: a last axis of shape {list(x.shape)} has not so many. Received: k={count}")
    keys = x.astype(xp.float32) if x.dtype.kind == "V" else x
    if count == 1 and keys.dtype.kind == "f":  # the maximum passes over NaNs, which otherwise are the largest
        keys = xp.where(xp.isnan(keys), -xp.inf, keys)
    order = (x.shape[-1] - 1 - xp.argsort(keys[..., ::-1], axis=-1, kind="stable"))[..., ::-1][..., :count]
    return xp.take_along_axis(x, order, axis=-1), _index(call, 1, order)


@kernel("tf:InTopK", "tf:InTopKV2")
def in_top_k(call: Call, predictions: Any, targets: Any, k: Any = None) -> Any:
    """Return for each row whether fewer than ``k`` elements are larger than the one that its target names."""
    xp, count = call.xp, call.attr("k") if k is None else int(k.reshape(()))
    classes = predictions.shape[1]
    good = (targets >= 0) & (targets < classes)
    chosen = xp.take_along_axis(predictions, xp.where(good, targets, 0)[:, None], axis=1)
    return good & xp.isfinite(predictions).all(axis=1) & ((predictions > chosen).sum(axis=1) < count)


@kernel("tf:NthElement")
def nth_element(call: Call, x: Any, n: Any) -> Any:
    """Return the ``n``-th smallest (``reverse``: largest) element along the last axis, counted from 0."""
    place = int(n.reshape(()))
    if not x.ndim or not 0 <= place < x.shape[-1]:
        raise KernelError(f"NthElement: a last axis of shape {list(x.shape)} has no such element. Received: n={place}")
    if call.attr("reverse", False):
        place = x.shape[-1] - 1 - place
    return call.xp.partition(x, place, axis=-1)[..., place]


@kernel("tf:Where", moves=True)
def where(call: Call, x: Any) -> Any:
    """Return the coordinates of the elements that are not 0, one row each."""
    return call.xp.argwhere(x).astype(call.xp.int64)


@kernel("tf:Unique", "tf:UniqueWithCounts", moves=True)
def unique(call: Call, x: Any) -> tuple[Any, ...]:
    """Return the distinct elements as they come first, for each element which it is, and how often each is there."""
    if x.ndim != 1:
        raise KernelError(f"{call.node.op_type} takes a vector. Received: shape {list(x.shape)}")
    return _distinct(call, x, 0)


@kernel("tf:UniqueV2", "tf:UniqueWithCountsV2", moves=True)
def unique_v2(call: Call, x: Any, axis: Any) -> tuple[Any, ...]:
    """Do as :func:`unique` with the slices along an axis; without one, ``x`` is a vector."""
    axes = ints(axis)
    if len(axes) > 1 or (not axes and x.ndim != 1):
        raise KernelError(f"{call.node.op_type} takes a vector, or one axis. Received: shape {list(x.shape)}, axis {axes}")
    return _distinct(call, x, axis_of(call, axes[0], x.ndim) if axes else 0)


def _distinct(call: Call, x: Any, axis: int) -> tuple[Any, ...]:
    first, inverse, counts = distinct(call.xp, x, axis, by_value=False, equal_nan=False)
    parts = [inverse, counts][: call.results - 1]
    return call.xp.take(x, first, axis=axis), *(_index(call, i, part) for i, part in enumerate(parts, 1))


@kernel("tf:ListDiff", moves=True)
def list_diff(call: Call, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the elements of ``x`` that are not in ``y``, and where they are."""
    places = call.xp.flatnonzero(~call.xp.isin(x, y))
    return x[places], _index(call, 1, places)
