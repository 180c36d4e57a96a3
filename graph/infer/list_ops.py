"""Tensor lists and tensor arrays: handles that remember the shape of their elements."""

from typing import TYPE_CHECKING

from ..types import Dim
from .dims import Content, Dims, Element, add_dim, join, merge, merge_dim

if TYPE_CHECKING:
    from .call import Call, ContentRule, Rule


def _elements(call: "Call", index: int, shape_operand: int) -> Dims:
    """Shape of the elements of the list in operand ``index``, which operand ``shape_operand`` may refine."""
    return merge(call.element(index).dims, call.as_shape(shape_operand))


def _front(call: "Call", index: int) -> Dim:
    dims = call.shape(index)
    return dims[0] if dims else None


def _rows(call: "Call", index: int) -> Dims:
    dims = call.shape(index)
    return dims[1:] if dims else None


def handle(call: "Call") -> list[Dims]:
    """A scalar handle."""
    return [()] * len(call.node.outputs)


def same_handle(call: "Call") -> list[Dims]:
    """The handle's own shape (batches of handles are vectors)."""
    return [call.shape(0)]


def get_item(call: "Call") -> list[Dims]:
    """One element."""
    return [_elements(call, 0, 2)]


def pop_back(call: "Call") -> list[Dims]:
    """The list without its last element, and that element."""
    return [(), _elements(call, 0, 1)]


def stack(call: "Call") -> list[Dims]:
    """All elements along a new first axis."""
    dims, count = _elements(call, 0, 1), call.integer("num_elements")
    length = merge_dim(call.element(0).length, None if count is None or count < 0 else count)
    return [None if dims is None else (length, *dims)]


def gather(call: "Call") -> list[Dims]:
    """The elements that operand 1 names, along a new first axis."""
    dims, indices = _elements(call, 0, 2), call.ranked(1, 1)
    return [None if dims is None else (*indices, *dims)]


def concat(call: "Call") -> list[Dims]:
    """Elements joined along their first axis, and their lengths."""
    if call.node.op_type == "TensorListConcatV2":
        dims = merge(call.element(0).dims, call.as_shape(1))
    else:
        dims = merge(call.element(0).dims, call.declared("element_shape"))
    return [None if not dims else (None, *dims[1:]), (call.element(0).length,)]


def element_shape(call: "Call") -> list[Dims]:
    """A vector, or a scalar -1 when the rank is unknown."""
    dims = call.element(0).dims
    return [None if dims is None else (len(dims),)]


def element_shape_content(call: "Call") -> list[Content]:
    """The shape of the elements."""
    return [call.element(0).dims]


def length_content(call: "Call") -> list[Content]:
    """How many elements there are."""
    return [(call.element(0).length,)]


def _list(dims: Dims, length: Dim = None) -> list[Content]:
    return [Element(dims, length)]


def push_back(call: "Call") -> list[Content]:
    """One element more."""
    held = call.element(0)
    return _list(held.dims, add_dim(held.length, 1))


def popped(call: "Call") -> list[Content]:
    """One element fewer."""
    held = call.element(0)
    return [Element(held.dims, add_dim(held.length, -1)), None]


def concat_lists(call: "Call") -> list[Content]:
    """The elements of both lists."""
    a, b = call.element(0), call.element(1)
    return _list(join(a.dims, b.dims), add_dim(a.length, b.length))


# ---- tensor arrays: results are (handle, flow) ---------------------------------------------------------------------


def array(call: "Call") -> list[Dims]:
    """A handle, which TensorFlow declares as a vector of 2, and the flow."""
    return [(2,), ()]


def stack_push(call: "Call") -> list[Dims]:
    """The element that was pushed."""
    return [call.shape(1)]


def array_read(call: "Call") -> list[Dims]:
    """One element."""
    return [call.element(0).dims]


def array_gather(call: "Call") -> list[Dims]:
    """The elements that operand 1 names, along a new first axis."""
    dims, indices = merge(call.element(0).dims, call.declared("element_shape")), call.ranked(1, 1)
    return [None if dims is None else (*indices, *dims)]


def array_concat(call: "Call") -> list[Dims]:
    """Elements joined along their first axis, and their lengths."""
    rest = call.declared("element_shape_except0")
    return [None if rest is None else (None, *rest), (None,)]


def array_held(call: "Call") -> list[Content]:
    """Elements of the declared shape."""
    return [Element(call.declared("element_shape")), None]


def array_grad(call: "Call") -> list[Content]:
    """The array of gradients has elements like the array."""
    return [Element(call.element(0).dims), None]


RULES: "dict[str, Rule]" = {
    **dict.fromkeys(["EmptyTensorList", "TensorListConcatLists", "TensorListFromTensor", "TensorListReserve"], handle),
    **dict.fromkeys(["TensorListScatter", "TensorListScatterV2", "TensorListSplit", "TensorListResize"], handle),
    **dict.fromkeys(["TensorListPushBack", "TensorListScatterIntoExistingList", "TensorListSetItem"], handle),
    **dict.fromkeys(["TensorListLength", "TensorArraySizeV3"], handle),
    **dict.fromkeys(["TensorArrayWriteV3", "TensorArrayScatterV3", "TensorArraySplitV3"], handle),
    **dict.fromkeys(["TensorArrayV3", "TensorArrayGradV3", "TensorArrayGradWithShape"], array),
    "StackPushV2": stack_push,
    "StackV2": lambda call: [(2,)],
    "TensorArrayConcatV3": array_concat,
    "TensorArrayGatherV3": array_gather,
    "TensorArrayReadV3": array_read,
    "TensorListConcat": concat,
    "TensorListConcatV2": concat,
    "TensorListElementShape": element_shape,
    "TensorListGather": gather,
    "TensorListGetItem": get_item,
    "TensorListPopBack": pop_back,
    "TensorListPushBackBatch": same_handle,
    "TensorListStack": stack,
}

CONTENTS: "dict[str, ContentRule]" = {
    "EmptyTensorList": lambda call: _list(call.as_shape(0), 0),
    "TensorArrayGradV3": array_grad,
    "TensorArrayGradWithShape": array_grad,
    "TensorArrayV3": array_held,
    "TensorListConcatLists": concat_lists,
    "TensorListElementShape": element_shape_content,
    "TensorListFromTensor": lambda call: _list(merge(_rows(call, 0), call.as_shape(1)), _front(call, 0)),
    "TensorListLength": length_content,
    "TensorListPopBack": popped,
    "TensorListPushBack": push_back,
    "TensorListPushBackBatch": lambda call: _list(merge(call.element(0).dims, _rows(call, 1))),
    "TensorListReserve": lambda call: _list(call.as_shape(0), call.scalar(1)),
    "TensorListResize": lambda call: _list(call.element(0).dims, call.scalar(1)),
    "TensorListScatter": lambda call: _list(merge(_rows(call, 0), call.as_shape(2))),
    "TensorListScatterIntoExistingList": lambda call: _list(merge(call.element(0).dims, _rows(call, 1))),
    "TensorListScatterV2": lambda call: _list(merge(_rows(call, 0), call.as_shape(2))),
    "TensorListSetItem": lambda call: [call.element(0)],
    "TensorListSplit": lambda call: _list(call.as_shape(1), _front(call, 2)),
}
