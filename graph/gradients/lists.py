"""Lists of tensors: the gradient of a list is a list of the gradients of its items."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..dtypes import DType
from ..graph import Node, Value
from .builder import INT32, Builder, operands

if TYPE_CHECKING:
    from .rules import Rule


def _item_shape(b: Builder, items: Value) -> Value:
    """Return what a list knows of the shape of its items."""
    return b.op("TensorListElementShape", items, types={"shape_type": INT32})


def _dtype(node: Node) -> dict[str, DType]:
    return {"element_dtype": node.types["element_dtype"]}


def _reserved(b: Builder, node: Node, like: Value) -> Value:
    """Return a list as long as another, whose items are not set."""
    length = b.op("TensorListLength", like)
    return b.node("TensorListReserve", [_item_shape(b, like), length], types=_dtype(node)).outputs[0]


def _shape_of_items(b: Builder, tensor: Value) -> Value:
    """Return the shape of the slices of a tensor along its first axis."""
    return b.ends(b.shape(tensor), 1)


def _push(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The last item, and the list without it."""
    item = operands(node)[1]
    shape = b.shape(item) if node.types["element_dtype"].kind != "handle" else b.vector([])
    return b.node("TensorListPopBack", [dy, shape], types=_dtype(node)).outputs


def _pop(b: Builder, node: Node, d_list: Value | None, d_item: Value | None) -> Sequence[Value | None]:
    """The list with the item's gradient at its end."""
    rest, item = node.outputs
    d_item = b.zeros_like(item) if d_item is None else d_item
    if d_list is None:
        d_list = b.zeros_like(rest)
    return [b.node("TensorListPushBack", [d_list, d_item]).outputs[0]]


def _stack(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The slices."""
    return [b.node("TensorListFromTensor", [dy, _shape_of_items(b, dy)]).outputs[0]]


def _from_tensor(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The items side by side."""
    shape = _shape_of_items(b, operands(node)[0])
    return [b.node("TensorListStack", [dy, shape], types=_dtype(node)).outputs[0]]


def _concat(b: Builder, node: Node, dy: Value | None, _: Value | None) -> Sequence[Value | None]:
    """Divided as it was."""
    if dy is None:
        return []
    return [b.node("TensorListSplit", [dy, _item_shape(b, operands(node)[0]), node.outputs[1]]).outputs[0]]


def _split(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """Joined as it was."""
    tensor, _, lengths = operands(node)
    shape = b.concat([b.vector([-1]), _shape_of_items(b, tensor)], 0)
    return [b.node("TensorListConcatV2", [dy, shape, lengths], types=_dtype(node)).outputs[0]]


def _get(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """A list of which only that item is set."""
    items, index = operands(node)[:2]
    return [b.node("TensorListSetItem", [_reserved(b, node, items), index, dy]).outputs[0]]


def _set(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The list but for that item, and the item."""
    items, index, item = operands(node)
    d_item = b.node("TensorListGetItem", [dy, index, b.shape(item)], types=_dtype(node)).outputs[0]
    rest = b.node("TensorListSetItem", [dy, index, b.zeros_like(item)]).outputs[0]
    if node.attr("resize_if_index_out_of_bounds"):
        rest = b.node("TensorListResize", [rest, b.op("TensorListLength", items)]).outputs[0]
    return [rest, None, d_item]


def _resize(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """Resized back."""
    return [b.node("TensorListResize", [dy, b.op("TensorListLength", operands(node)[0])]).outputs[0]]


def _gather(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """A list of which only those items are set."""
    items, indices, _ = operands(node)
    return [b.node("TensorListScatterIntoExistingList", [_reserved(b, node, items), dy, indices]).outputs[0]]


def _scatter(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """Those items side by side."""
    tensor, indices = operands(node)[:2]
    return [b.node("TensorListGather", [dy, indices, _shape_of_items(b, tensor)], types=_dtype(node)).outputs[0]]


def _scatter_into(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """The list but for those items, and the items side by side."""
    _, tensor, indices = operands(node)
    picked = b.node("TensorListGather", [dy, indices, _shape_of_items(b, tensor)], types=_dtype(node)).outputs[0]
    rest = b.node("TensorListScatterIntoExistingList", [dy, b.zeros_like(tensor), indices]).outputs[0]
    return [rest, picked]


RULES: dict[str, "Rule"] = {
    **dict.fromkeys(["TensorListConcat", "TensorListConcatV2"], _concat),
    **dict.fromkeys(["TensorListScatter", "TensorListScatterV2"], _scatter),
    "TensorListFromTensor": _from_tensor,
    "TensorListGather": _gather,
    "TensorListGetItem": _get,
    "TensorListPopBack": _pop,
    "TensorListPushBack": _push,
    "TensorListResize": _resize,
    "TensorListScatterIntoExistingList": _scatter_into,
    "TensorListSetItem": _set,
    "TensorListSplit": _split,
    "TensorListStack": _stack,
}
