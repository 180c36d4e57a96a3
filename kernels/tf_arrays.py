"""TensorFlow: TensorArrays, as loops of ops use them. They change in place, in the order in which ``flow`` runs through them."""

from typing import Any

from ..graph.errors import KernelError
from .call import Call
from .registry import kernel
from .room import blank, check_room
from .shape import ints
from .tensor_list import Dims, known, merged, nothing, stacked
from .tf_variables import declared
from .values import as_declared, widened

#: What stands in place of an item that was read and is not kept.
_GONE: Any = type("Gone", (), {})()


class TensorArray:
    """A TensorArray of one run.

    Attributes:
        items: The tensors; None where none was written.
        shapes: For an array of gradients: the shape that each has.
        element: The NumPy dtype of each.
        dims: The shape of each as far as known.
        grows: Whether writing past the end makes it longer.
        forgets: Whether an item is read only once.
        adds: Whether what is written is added to what is there: so in arrays of gradients.
        gradients: Its arrays of gradients, by the name of the gradient computation.
    """

    kind = "a TensorArray"

    def __init__(self, size: int, element: Any, dims: Dims) -> None:
        self.items: list[Any] = [None] * size
        self.shapes: list[Any] = []
        self.element = element
        self.dims = dims
        self.grows = False
        self.forgets = False
        self.adds = False
        self.gradients: dict[str, TensorArray] = {}

    def write(self, call: Call, index: int, item: Any) -> None:
        """Write an item, or add to it."""
        if index >= len(self.items) and index >= 0 and self.grows:
            check_room(call.xp, [index], 8)
            self.items += [None] * (index + 1 - len(self.items))
        self._check(call, index)
        if item.dtype != self.element:
            raise KernelError(f"{call.node.op_type}: the array holds {self.element}. Received: {item.dtype}")
        merged(call, self.dims, item.shape)
        before = self.items[index]
        if before is None:
            self.items[index] = item
        elif self.adds and before is not _GONE:
            if before.shape != item.shape:
                raise KernelError(
                    f"{call.node.op_type}: item {index} has shape {list(before.shape)}. Received: {list(item.shape)}"
                )
            self.items[index] = as_declared(widened(before) + widened(item), declared(before))
        else:
            raise KernelError(f"{call.node.op_type}: item {index} was written before.")

    def read(self, call: Call, index: int, dims: Dims = None) -> Any:
        """Return an item; zeros if it was not written, where its shape is known."""
        self._check(call, index)
        item = self.items[index]
        if item is _GONE:
            raise KernelError(f"{call.node.op_type}: item {index} was read before, and clear_after_read lets it go.")
        if item is None:
            shape = merged(call, self.dims, dims)
            shape = self.shapes[index] if index < len(self.shapes) and self.shapes[index] is not None else shape
            if shape is None or -1 in shape:
                raise KernelError(f"{call.node.op_type}: item {index} was not written, and its shape is not known.")
            item = blank(call.xp, shape, self.element)
        if self.forgets:
            self.items[index] = _GONE
        return item

    def _check(self, call: Call, index: int) -> None:
        if not 0 <= index < len(self.items):
            raise KernelError(f"{call.node.op_type}: the array has {len(self.items)} items. Received: index {index}")


@kernel("tf:TensorArrayV2", "tf:TensorArrayV3", moves=True)
def tensor_array(call: Call, size: Any) -> tuple[Any, ...]:
    """Return an array of items that are not written."""
    check_room(call.xp, [int(size)], 8)
    array = TensorArray(int(size), call.dtype("dtype").numpy, known(call.attr("element_shape")))
    array.grows, array.forgets = call.attr("dynamic_size", False), call.attr("clear_after_read", True)
    return array, call.xp.zeros((), call.xp.float32)


@kernel("tf:TensorArrayGradV2", "tf:TensorArrayGradV3", "tf:TensorArrayGradWithShape", moves=True)
def gradient_array(call: Call, array: TensorArray, flow: Any, before: Any = None) -> tuple[Any, ...]:
    """Return the array that gradients of an array's items are added up in; each computation has one."""
    source = call.attr("source")
    found = array.gradients.get(source)
    if found is None:
        lead = () if before is None else tuple(ints(before))
        found = TensorArray(len(array.items), array.element, None if array.dims is None else (*lead, *array.dims))
        found.shapes = [(*lead, *item.shape) if hasattr(item, "shape") else None for item in array.items]
        found.adds = True
        array.gradients[source] = found
    return found, flow


@kernel("tf:TensorArrayWriteV2", "tf:TensorArrayWriteV3", moves=True)
def write(call: Call, array: TensorArray, index: Any, item: Any, flow: Any) -> Any:
    """Write an item."""
    array.write(call, int(index), item)
    return flow


@kernel("tf:TensorArrayReadV2", "tf:TensorArrayReadV3", moves=True)
def read(call: Call, array: TensorArray, index: Any, flow: Any) -> Any:
    """Return an item."""
    return array.read(call, int(index))


@kernel("tf:TensorArrayGatherV2", "tf:TensorArrayGatherV3", moves=True)
def gather(call: Call, array: TensorArray, indices: Any, flow: Any) -> Any:
    """Join some items along a new axis."""
    dims = known(call.attr("element_shape"))
    items = [array.read(call, index, dims) for index in ints(indices)]
    return stacked(call, items, merged(call, array.dims, dims), array.element)


@kernel("tf:TensorArrayScatterV2", "tf:TensorArrayScatterV3", moves=True)
def scatter(call: Call, array: TensorArray, indices: Any, value: Any, flow: Any) -> Any:
    """Write the slices along the first axis, each at its index."""
    places = ints(indices)
    if len(places) != value.shape[0]:
        raise KernelError(f"{call.node.op_type}: {value.shape[0]} slices take as many indices. Received: {len(places)}")
    for i, place in enumerate(places):
        array.write(call, place, value[i, ...])
    return flow


@kernel("tf:TensorArrayConcatV2", "tf:TensorArrayConcatV3", moves=True)
def concat(call: Call, array: TensorArray, flow: Any) -> tuple[Any, Any]:
    """Join the items along their first axis; return their sizes there too."""
    items = [array.read(call, i) for i in range(len(array.items))]
    lengths = call.xp.asarray([item.shape[0] for item in items], call.xp.int64)
    rest = known(call.attr("element_shape_except0"))
    return call.xp.concatenate(items) if items else nothing(call, rest, array.element), lengths


@kernel("tf:TensorArraySplitV2", "tf:TensorArraySplitV3", moves=True)
def split(call: Call, array: TensorArray, value: Any, lengths: Any, flow: Any) -> Any:
    """Write parts along the first axis, of the sizes given."""
    sizes, start = ints(lengths), 0
    if sum(sizes) != value.shape[0] or min(sizes, default=0) < 0:
        raise KernelError(f"{call.node.op_type}: {value.shape[0]} rows cannot be so divided. Received: {sizes}")
    for i, size in enumerate(sizes):
        array.write(call, i, value[start : start + size])
        start += size
    return flow


@kernel("tf:TensorArraySizeV2", "tf:TensorArraySizeV3", moves=True)
def size(call: Call, array: TensorArray, flow: Any) -> Any:
    """Return the number of items."""
    return call.xp.asarray(len(array.items), call.xp.int32)


@kernel("tf:TensorArrayCloseV2", "tf:TensorArrayCloseV3", moves=True)
def close(call: Call, array: TensorArray) -> tuple[Any, ...]:
    """Let the items go."""
    array.items = []
    return ()
