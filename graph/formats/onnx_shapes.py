"""Shapes of an ONNX model's values, by the standard's own inference.

Inference reads a skeleton of the model: the weights keep their shapes, but only small integer ones their elements, so a model
of any size is a small message.
"""

from typing import Any

from ..errors import FormatError, GraphError
from ..graph import Graph, Value
from ..types import Tensor, ValueType
from .onnx_attributes import read_type, read_type_once
from .onnx_tensor import write_head, write_tensor
from .onnx_write import write_message

#: Longer tensors are weights, not shapes or axes.
_MOST_ELEMENTS = 1024
#: With more nodes, calls expanded, inference would take minutes, and cannot be interrupted.
_MOST_NODES = 1_000_000


def correct_outputs(graph: Graph) -> None:
    """Correct the shapes that a model declares for its outputs, where inference finds another rank.

    A model may have lived with a wrong declaration because its version of the ops had no inference that saw it.
    """
    from onnx import ModelProto

    skeleton = write_message(graph, _write_skeleton, constants=_write_skeleton)
    for info in skeleton.graph.output:
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.ClearField("shape")
    found = ModelProto.FromString(_infer(graph, skeleton))
    for value, info in zip(graph.outputs, found.graph.output, strict=True):
        shape = read_type(info.type, "An output").shape
        if shape.dims is not None and value.shape.dims is not None and len(shape.dims) != len(value.shape.dims):
            value.shape = shape


def infer_shapes(graph: Graph) -> list[Value]:
    """Find the shapes of values of an ONNX model and of the bodies inside, as far as they are known; functions are left out.

    Shapes that are known already are refined, never changed into others.

    Returns:
        The values about whose shape more is known than before.
    """
    from onnx import ModelProto

    refined: list[Value] = []
    inferred = _infer(graph, write_message(graph, _write_skeleton, constants=_write_skeleton))
    _take(graph, ModelProto.FromString(inferred).graph, refined, {})
    return refined


def _infer(graph: Graph, skeleton: Any) -> bytes:
    from onnx.onnx_cpp2py_export import shape_inference

    if _expanded(graph) > _MOST_NODES:
        raise GraphError(f"The functions of graph {graph.name!r} call each other too often to infer shapes through them.")
    try:
        found: bytes = shape_inference.infer_shapes(skeleton.SerializeToString(), False, False, True)
    except (RuntimeError, ValueError, shape_inference.InferenceError) as error:
        raise GraphError(f"The shapes of graph {graph.name!r} do not fit together: {str(error)[:500]}") from error
    return found


def _expanded(graph: Graph) -> int:
    """Return how many nodes a model has once every call is replaced by its function: inference looks at them all."""
    sizes: dict[int, int] = {}
    stack = [graph]
    while stack:
        part = stack[-1]
        if len(stack) > _MOST_NODES:
            raise GraphError(f"The functions of graph {graph.name!r} call each other in a circle.")
        called = [body for _, _, body in part.bodies()]
        called += [f for n in part.nodes if n.domain and (f := graph.functions.get(f"{n.domain}:{n.op_type}")) is not None]
        waiting = [other for other in called if id(other) not in sizes]
        if waiting:
            stack.extend(waiting)
            continue
        sizes[id(part)] = len(part) + sum(sizes[id(other)] for other in called)
        stack.pop()
    return sizes[id(graph)]


def _write_skeleton(tensor: Tensor, proto: Any) -> None:
    if (tensor.size <= _MOST_ELEMENTS and tensor.dtype.kind in ("int", "uint", "float", "bool")) or hasattr(proto, "values"):
        write_tensor(tensor, proto)
    else:
        write_head(tensor, proto)


def _take(graph: Graph, proto: Any, refined: list[Value], known: dict[bytes, ValueType]) -> None:
    """Take over the shapes of one graph's values and go into its bodies; ``known`` are types that were read before."""
    values = {value.name: value for node in graph.all_nodes() for value in node.outputs}
    for info in (*proto.value_info, *proto.output):
        value = values.get(info.name)
        if value is None or value.shape.container or value.shape.size is not None:
            continue
        try:
            shape = read_type_once(info.type, "A value", known).shape
        except FormatError:
            continue
        dims = value.shape.dims
        if shape.container or shape.dims is None or shape.dims == dims:
            continue
        if dims is None or (len(dims) == len(shape.dims) and _refines(dims, shape.dims)):
            value.shape = shape
            refined.append(value)
    bodies = {(value.name, name): body for node, name, body in graph.bodies() for value in node.outputs}
    for node in proto.node if bodies else ():
        for attribute in node.attribute:
            if attribute.HasField("g"):
                for label in node.output:
                    if (label, attribute.name) in bodies:
                        _take(bodies[label, attribute.name], attribute.g, refined, known)
                        break


def _refines(old: tuple[Any, ...], new: tuple[Any, ...]) -> bool:
    """Whether every size that was known is the same in ``new``."""
    return all(a is None or a == b for a, b in zip(old, new, strict=True) if not isinstance(a, str))
