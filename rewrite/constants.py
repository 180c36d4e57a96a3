"""Constants: what they are and, of ONNX models, casting them ahead of time instead of when the model runs.

Constants of TensorFlow graphs are only read: they keep their dtype and are cast when the graph runs.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..graph.dtypes import DType, cast_array, float32
from ..graph.graph import Node, Value
from ..graph.types import Tensor

if TYPE_CHECKING:
    import numpy as np

#: Where the nodes that hold a constant hold it: op -> attributes.
_HOLDERS = {
    ("ampgraph", "Initializer"): ("value",),
    ("ampgraph", "Input"): ("default",),
    ("", "Constant"): ("value", "value_float", "value_floats", "sparse_value"),
    ("", "ConstantOfShape"): ("value",),
    ("tf", "Const"): ("value",),
}
_HOLDING = frozenset(op for _, op in _HOLDERS)


def is_constant(node: Node) -> bool:
    """Whether a node is a constant tensor: an initializer (also one that is listed as an input), a ``Constant`` or ``Const``."""
    return node.op_type in ("Initializer", "Constant", "Input", "Const") and tensor_of(node) is not None


def tensor_of(node: Node) -> Tensor | None:
    """Return the tensor that a node holds, or None. Of ``ConstantOfShape`` it is the one element all others equal."""
    if node.op_type not in _HOLDING:
        return None
    for name in _HOLDERS.get((node.domain, node.op_type), ()):
        found = node.attributes.get(name)
        if isinstance(found, Tensor):
            return found
        if isinstance(found, float | list) and name.startswith("value_"):
            return Tensor.of(found, float32)
    if node.op_type == "ConstantOfShape" and not node.domain and "value" not in node.attributes:
        return Tensor.of([0.0], float32)
    return None


def constant_of(value: Value | None) -> Tensor | None:
    """Return the constant that a value is, or None."""
    return None if value is None or not is_constant(value.producer) else tensor_of(value.producer)


def count_weights(nodes: Iterable[Node]) -> int:
    """Return how many floating-point numbers the constants among some nodes are, whatever dtype they have by now."""
    tensors = (tensor_of(node) for node in nodes if is_constant(node))
    return sum(tensor.size for tensor in tensors if tensor is not None and tensor.dtype.kind == "float")


def low_tensor(tensor: Tensor, dtype: DType, bound: float | None = None) -> Tensor:
    """Return a tensor rounded to ``dtype``; the elements are read and cast when they are asked for, and not kept.

    ``bound``: the largest magnitude that finite elements may have.
    """

    def load() -> "np.ndarray[Any, Any]":
        array = tensor.array()
        return cast_array(array if bound is None else _clamp(array, bound), dtype)

    return Tensor(dtype, tensor.shape, load)


def clamped(node: Node, bound: float) -> Tensor:
    """Return a node's constant with its finite elements clamped to a magnitude."""
    tensor = tensor_of(node)
    assert tensor is not None
    return Tensor(tensor.dtype, tensor.shape, lambda: _clamp(tensor.array(), bound))


def _clamp(array: "np.ndarray[Any, Any]", bound: float) -> "np.ndarray[Any, Any]":
    import numpy as np

    return np.where(np.isfinite(array), np.clip(array, -bound, bound), array)


def store_low(node: Node, dtype: DType, bound: float | None = None) -> None:
    """Make a node that holds a float32 constant hold it in ``dtype``; its types say so already."""
    tensor = tensor_of(node)
    if tensor is not None:
        replace_tensor(node, low_tensor(tensor, dtype, bound))


def replace_tensor(node: Node, tensor: Tensor) -> None:
    """Make a node hold another tensor."""
    names = _HOLDERS[node.domain, node.op_type]
    rest: dict[str, Any] = {key: value for key, value in node.attributes.items() if key not in names}
    node.attributes = {**rest, names[0]: tensor}
