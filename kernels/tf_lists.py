"""TensorFlow: lists of tensors, as functional loops carry them."""

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

from ..graph.dtypes import dtype_of_array
from ..graph.errors import KernelError
from .call import Call
from .registry import kernel
from .room import blank, check_room
from .shape import ints
from .tensor_list import Dims, TensorList, known, merged, stacked


def _dims(shape: Any) -> Dims:
    """Return a shape as the ops take it: a vector, or a scalar -1 if nothing is known."""
    return None if shape.ndim == 0 else tuple(-1 if size < 0 else size for size in ints(shape))


def _element(call: Call) -> Any:
    dtype = call.dtype("element_dtype")
    return None if dtype.kind == "handle" else dtype.numpy


def _new(call: Call, items: Iterable[Any], shape: Any, most: int = -1) -> TensorList:
    found = TensorList(tuple(items), _dims(shape), _element(call), most)
    for item in found.items:
        _check_item(call, found, item)
    return found


def _check_item(call: Call, to: TensorList, item: Any) -> None:
    """Refuse an item that does not fit a list."""
    if item is None or not hasattr(item, "shape"):
        return
    if to.element is not None and item.dtype != to.element:
        kind = dtype_of_array(to.element) if to.element.kind != "O" else "string"
        raise KernelError(f"{call.node.op_type}: the list holds {kind} tensors. Received: dtype {item.dtype}")
    merged(call, to.dims, item.shape)


def _place(call: Call, of: TensorList, index: Any) -> int:
    """Return an index.

    Raises:
        KernelError: If the list has no such item.
    """
    place = int(index)
    if not 0 <= place < len(of.items):
        raise KernelError(f"{call.node.op_type}: the list has {len(of.items)} items. Received: index {place}")
    return place


def _filled(call: Call, of: TensorList, items: Sequence[Any], shape: Any = None) -> list[Any]:
    """Return items, zeros in place of those that were not set."""
    dims = of.dims if shape is None else merged(call, of.dims, _dims(shape))
    if any(item is None for item in items):
        for item in items:
            dims = dims if item is None else merged(call, dims, item.shape)
        if dims is None or -1 in dims:
            raise KernelError(f"{call.node.op_type}: an item was not set, and the list does not know its shape.")
        if of.element is None:
            raise KernelError(f"{call.node.op_type}: an item, itself a list, was not set.")
        zeros = blank(call.xp, dims, of.element)
        items = [zeros if item is None else item for item in items]
    return list(items)


def _stacked(call: Call, of: TensorList, items: Sequence[Any], shape: Any) -> Any:
    """Return items joined along a new axis; of none, an array of the shape known."""
    return stacked(call, _filled(call, of, items, shape), merged(call, of.dims, _dims(shape)), of.element)


#: Bytes that an item takes without its array: places in the old list, the new one and in between.
_ITEM = 32


@kernel("tf:EmptyTensorList", moves=True)
def empty_list(call: Call, shape: Any, most: Any) -> TensorList:
    """Return a list without items."""
    return _new(call, (), shape, int(most))


@kernel("tf:TensorListReserve", moves=True)
def reserve(call: Call, shape: Any, count: Any) -> TensorList:
    """Return a list of items that are not set."""
    check_room(call.xp, [int(count)], _ITEM)
    return _new(call, [None] * int(count), shape)


@kernel("tf:TensorListLength", moves=True)
def length(call: Call, items: TensorList) -> Any:
    """Return the number of items."""
    return call.xp.asarray(len(items.items), call.xp.int32)


@kernel("tf:TensorListElementShape", moves=True)
def element_shape(call: Call, items: TensorList) -> Any:
    """Return the shape of each item as far as known."""
    return call.xp.asarray(-1 if items.dims is None else items.dims, call.dtype("shape_type").numpy)


@kernel("tf:TensorListResize", moves=True)
def resize(call: Call, items: TensorList, size: Any) -> TensorList:
    """Drop items at the end, or add ones that are not set."""
    count = int(size)
    check_room(call.xp, [count], _ITEM)
    return items.having([*items.items[:count], *[None] * (count - len(items.items))])


@kernel("tf:TensorListPushBack", moves=True)
def push_back(call: Call, items: TensorList, item: Any) -> TensorList:
    """Add an item."""
    _check_item(call, items, item)
    if 0 <= items.most <= len(items.items):
        raise KernelError(f"TensorListPushBack: the list may hold {items.most} items, and it does.")
    return items.having((*items.items, item))


@kernel("tf:TensorListPushBackBatch", moves=True)
def push_back_batch(call: Call, lists: Any, tensor: Any) -> Any:
    """Add a slice to each list."""
    if lists.shape != tensor.shape[:1]:
        raise KernelError(f"TensorListPushBackBatch: {lists.size} lists take as many slices. Received: {list(tensor.shape)}")
    out = call.xp.empty(lists.size, object)
    for i, items in enumerate(lists.tolist()):
        out[i] = push_back(call, items, tensor[i, ...])
    return out


@kernel("tf:TensorListPopBack", moves=True)
def pop_back(call: Call, items: TensorList, shape: Any) -> tuple[TensorList, Any]:
    """Take the last item away and return it."""
    if not items.items:
        raise KernelError("TensorListPopBack: the list is empty.")
    return items.having(items.items[:-1]), _filled(call, items, items.items[-1:], shape)[0]


@kernel("tf:TensorListGetItem", moves=True)
def get_item(call: Call, items: TensorList, index: Any, shape: Any) -> Any:
    """Return an item."""
    place = _place(call, items, index)
    item = items.items[place]
    if item is not None:
        return item
    known = next((other for other in items.items if other is not None), None)
    if known is not None and (items.dims is None or -1 in items.dims) and hasattr(known, "shape"):
        return call.xp.zeros_like(known)
    return _filled(call, items, [None], shape)[0]


@kernel("tf:TensorListSetItem", moves=True)
def set_item(call: Call, items: TensorList, index: Any, item: Any) -> TensorList:
    """Set an item."""
    _check_item(call, items, item)
    held = list(items.items)
    if call.attr("resize_if_index_out_of_bounds", False) and int(index) >= len(held):
        check_room(call.xp, [int(index)], 8)
        held += [None] * (int(index) + 1 - len(held))
    else:
        _place(call, items, index)
    held[int(index)] = item
    return items.having(held)


@kernel("tf:TensorListStack", moves=True)
def stack(call: Call, items: TensorList, shape: Any) -> Any:
    """Join the items along a new axis."""
    wanted = call.attr("num_elements", -1)
    if wanted not in (-1, len(items.items)):
        raise KernelError(f"TensorListStack: {wanted} items are wanted. Received: a list of {len(items.items)}")
    return _stacked(call, items, items.items, shape)


@kernel("tf:TensorListFromTensor", moves=True)
def from_tensor(call: Call, tensor: Any, shape: Any) -> TensorList:
    """Return a list of the slices along the first axis."""
    return _new(call, (tensor[i, ...] for i in range(tensor.shape[0])), shape)


@kernel("tf:TensorListGather", moves=True)
def gather(call: Call, items: TensorList, indices: Any, shape: Any) -> Any:
    """Join some items along a new axis."""
    return _stacked(call, items, [items.items[_place(call, items, i)] for i in ints(indices)], shape)


@kernel("tf:TensorListScatter", "tf:TensorListScatterV2", moves=True)
def scatter(call: Call, tensor: Any, indices: Any, shape: Any, count: Any = None) -> TensorList:
    """Return a list of the slices along the first axis, each at its index."""
    wanted = -1 if count is None else int(count)
    least = 1 + max(ints(indices), default=-1)
    if wanted != -1 and wanted < least:
        raise KernelError(f"{call.node.op_type}: a list of {wanted} items has no such index. Received: {least - 1}")
    check_room(call.xp, [max(wanted, least)], 8)
    return scatter_into(call, _new(call, [None] * max(wanted, least), shape), tensor, indices)


@kernel("tf:TensorListScatterIntoExistingList", moves=True)
def scatter_into(call: Call, items: TensorList, tensor: Any, indices: Any) -> TensorList:
    """Set some items to the slices along the first axis."""
    places = ints(indices)
    if len(places) != tensor.shape[0] or min(places, default=0) < 0:
        raise KernelError(
            f"{call.node.op_type}: {tensor.shape[0]} slices take as many indices, none negative. Received: {places}"
        )
    held = list(items.items)
    check_room(call.xp, [max(places, default=0)], 8)
    held += [None] * (1 + max(places, default=-1) - len(held))
    for i, place in enumerate(places):
        _check_item(call, items, tensor[i, ...])
        held[place] = tensor[i, ...]
    return items.having(held)


@kernel("tf:TensorListConcat", "tf:TensorListConcatV2", moves=True)
def concat(call: Call, items: TensorList, shape: Any = None, leading: Any = None) -> tuple[Any, Any]:
    """Join the items along their first axis; return their sizes there too.

    Items that were not set have the sizes in ``leading``.
    """
    dims = merged(call, items.dims, known(call.attr("element_shape")) if shape is None else _dims(shape))
    rest: Dims = None if dims is None else dims[1:]
    held = list(items.items)
    for item in held:
        if item is not None:
            rest = merged(call, rest, item.shape[1:])
    if not held or any(item is None for item in held):
        if rest is None or -1 in rest:
            raise KernelError(f"{call.node.op_type}: an item was not set, or there is none, and its shape is not known.")
        sizes = [] if leading is None else ints(leading)
        for i, item in enumerate(held):
            if item is None:
                size = dims[0] if dims and dims[0] >= 0 else sizes[i] if i < len(sizes) else -1
                if size < 0:
                    raise KernelError(f"{call.node.op_type}: item {i} was not set, and its size is not known.")
                held[i] = blank(call.xp, (size, *rest), items.element)
    lengths = call.xp.asarray([item.shape[0] for item in held], call.xp.int64)
    return (call.xp.concatenate(held) if held else call.xp.zeros((0, *(rest or ())), items.element)), lengths


@kernel("tf:TensorListSplit", moves=True)
def split(call: Call, tensor: Any, shape: Any, lengths: Any) -> TensorList:
    """Return a list of parts along the first axis, of the sizes given."""
    sizes = ints(lengths)
    if min(sizes, default=0) < 0 or sum(sizes) != tensor.shape[0]:
        raise KernelError(f"TensorListSplit: {tensor.shape[0]} rows cannot be so divided. Received: {sizes}")
    ends = list(itertools.accumulate(sizes))
    return _new(call, (tensor[end - size : end] for size, end in zip(sizes, ends, strict=True)), shape)


@kernel("tf:TensorListConcatLists", moves=True)
def concat_lists(call: Call, a: Any, b: Any) -> Any:
    """Join two lists, or two arrays of lists pair by pair."""
    if isinstance(a, TensorList):
        return a.having([*a.items, *b.items])
    out = call.xp.empty(math.prod(a.shape), object)
    for i, (one, other) in enumerate(zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)):
        out[i] = one.having([*one.items, *other.items])
    return out.reshape(a.shape)
