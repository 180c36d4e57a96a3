"""Constants of ONNX models, cast ahead of time: a weight is stored in the dtype its users want, never cast when it runs."""

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
}


def is_constant(node: Node) -> bool:
    """Whether a node is a constant tensor: an initializer (also one that is listed as an input) or a ``Constant``."""
    return node.op_type in ("Initializer", "Constant", "Input") and tensor_of(node) is not None


def tensor_of(node: Node) -> Tensor | None:
    """Return the tensor that a node holds, or None. Of ``ConstantOfShape`` it is the one element all others equal."""
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


def low_tensor(tensor: Tensor, dtype: DType, clamp: float | None = None) -> Tensor:
    """Return a tensor rounded to ``dtype``; the elements are read and cast when they are asked for, and not kept.

    ``clamp``: the largest magnitude that finite elements may have.
    """

    def load() -> "np.ndarray[Any, Any]":
        array = tensor.array()
        if clamp is not None:
            import numpy as np

            array = np.where(np.isfinite(array), np.clip(array, -clamp, clamp), array)
        return cast_array(array, dtype)

    return Tensor(dtype, tensor.shape, load)


def store_low(node: Node, dtype: DType, clamp: float | None = None) -> None:
    """Make a node that holds a float32 constant hold it in ``dtype``; its types say so already."""
    tensor = tensor_of(node)
    if tensor is None:
        return
    name = _HOLDERS[node.domain, node.op_type][0]
    rest: dict[str, Any] = {key: value for key, value in node.attributes.items() if key not in _HOLDERS[node.domain, node.op_type]}
    node.attributes = {**rest, name: low_tensor(tensor, dtype, clamp)}
