"""What an ONNX file says beyond the IR, kept in ``Node.meta`` and ``Graph.meta`` so that writing it back loses nothing.

All of it is shared between copies of a graph and never changed. Messages here are parts of the file's own message, those of
graphs with what the IR models taken out of them: copying one and filling in the IR's values restores the original, with
unknown fields. A node that is as it was is copied whole.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ..types import ValueType

_NONE: Mapping[Any, Any] = {}


class NodeMeta:
    """Facts about one node of the file.

    Attributes:
        template: The ``NodeProto``, but for the graphs among its attributes.
        head: The op, name and domain that the node had in the file.
        operands, results: The names of its operands, without those that bodies add, and of its results.
        attributes: Attribute -> (value, ``AttributeProto``) in the file's order; for a type attribute, the value is its dtype.
        omitted: Indices of results that the file leaves without a name.
    """

    __slots__ = ("attributes", "head", "omitted", "operands", "results", "template")

    def __init__(
        self,
        template: Any,
        head: tuple[str, str, str] = ("", "", ""),
        operands: Sequence[str] = (),
        results: Sequence[str] = (),
        omitted: frozenset[int] = frozenset(),
    ) -> None:
        self.template = template
        self.head = head
        self.operands = operands
        self.results = results
        self.attributes: Mapping[str, tuple[Any, Any]] = _NONE
        self.omitted = omitted


class GraphMeta:
    """Facts about a main graph, body or function of the file.

    Attributes:
        model: ``ModelProto`` without graph and functions, for the main graph only.
        template: ``GraphProto`` or ``FunctionProto`` without nodes, initializers and what describes values.
        inputs, outputs: Name -> ``ValueInfoProto``, and the type it says, None where it says none.
        infos: The same for the others, in the file's order.
        dangling: Names among ``infos`` that no value has.
        initializers: Name -> place among the file's initializers.
        external: Whether constants of the model lie in data files.
    """

    __slots__ = ("dangling", "external", "infos", "initializers", "inputs", "model", "outputs", "template")

    def __init__(
        self,
        template: Any,
        *,
        model: Any = None,
        inputs: Mapping[str, tuple[Any, ValueType | None]] = _NONE,
        outputs: Mapping[str, tuple[Any, ValueType | None]] = _NONE,
        infos: Sequence[tuple[Any, ValueType | None]] = (),
        dangling: frozenset[str] = frozenset(),
        initializers: Mapping[str, int] = _NONE,
    ) -> None:
        self.external = False
        self.model = model
        self.template = template
        self.inputs = inputs
        self.outputs = outputs
        self.infos = infos
        self.dangling = dangling
        self.initializers = initializers
