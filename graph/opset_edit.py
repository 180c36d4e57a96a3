"""What a step from one version of the ONNX ops to the next may do to the graph around a node.

A step sees one node at a time (:attr:`Edit.node`). Nodes that it adds are of the version the whole model is raised to; values
that the rest of the graph reads keep their names.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from .dtypes import DType, float32, int64
from .errors import PassError
from .graph import Graph, Node, Value
from .types import UNKNOWN, Placeholder, Shape, Tensor


class Edit:
    """Edits one graph, node by node.

    Attributes:
        graph: The graph.
        old, version: The versions that its nodes are raised from and to.
        node: The node that is raised now.
        followers: Where the added nodes belong, for :meth:`Graph.place_after`.
    """

    node: Node

    def __init__(self, graph: Graph, old: int, version: int) -> None:
        self.graph = graph
        self.old = old
        self.version = version
        self.followers: dict[Node, list[Node]] = {}
        self._before: Node | None = None
        self._here: Node | None = next((value.producer for value in reversed(graph.inputs)), None)
        self._names: set[str] | None = None

    def move_to(self, node: Node) -> None:
        """Go on to the next node of the file."""
        self._before, self._here = self._here, node
        self.node = node

    def fail(self, why: str, advice: str) -> NoReturn:
        """Say that the node cannot be raised.

        Raises:
            PassError: Always.
        """
        raise PassError(
            f"Node {self.node} of graph {self.graph.name!r} cannot be raised from version {self.old} of the ONNX ops to "
            f"{self.version}: {why} {advice}"
        )

    @property
    def data(self) -> Value:
        """The first operand of the node.

        Raises:
            PassError: If it is omitted.
        """
        value = self.node.inputs[0] if self.node.inputs else None
        if value is None:
            self.fail("its first operand is omitted.", "Correct the node.")
        return value

    # ---- the node -----------------------------------------------------------------------------------------------------

    def take(self, name: str) -> Any:
        """Remove an attribute and return it; None where the node does not give it.

        Raises:
            PassError: If it is a parameter of the function the node stands in.
        """
        attributes = dict(self.node.attributes)
        value = attributes.pop(name, None)
        if isinstance(value, Placeholder):
            self.fail(f"attribute {name!r} is parameter {value.name!r} of the function.", "Inline the function first.")
        self.node.attributes = attributes
        return value

    def give(self, **attributes: Any) -> None:
        """Set attributes."""
        self.node.attributes = {**self.node.attributes, **attributes}

    def set_inputs(self, *values: Value | None) -> None:
        """Replace the operands; those omitted at the end are left out."""
        operands = list(values)
        while operands and operands[-1] is None:
            operands.pop()
        self.graph.set_inputs(self.node, operands)

    def dtype(self, value: Value) -> DType:
        """Return the dtype of a value that a new constant must share.

        Raises:
            PassError: If it is unknown.
        """
        if value.dtype is None:
            self.fail(f"the dtype of {value.name!r} is unknown.", "Declare it, or inline the function it stands in.")
        return value.dtype

    def is_read(self, value: Value) -> bool:
        """Whether anything reads a result."""
        return bool(value.uses()) or any(output is value for output in self.graph.outputs)

    @staticmethod
    def known(value: Value | None) -> Tensor | None:
        """Return the tensor of a constant; None for anything else."""
        if value is None or value.producer.op_type not in ("Initializer", "Constant"):
            return None
        tensor = value.producer.attributes.get("value")
        return tensor if isinstance(tensor, Tensor) else None

    # ---- around the node ------------------------------------------------------------------------------------------------

    def constant(self, role: str, data: Any, dtype: DType = int64) -> Value:
        """Add a constant; ``role`` becomes part of its name."""
        import numpy as np

        try:
            array = np.asarray(data, dtype=(int64 if dtype is int64 else float32).numpy)
        except OverflowError:
            self.fail(f"an attribute is out of range: {data}.", "Correct the node.")
        with np.errstate(over="ignore"):  # what no float16 reaches becomes infinite
            array = array.astype(dtype.numpy)
        tensor = Tensor.of(array, dtype)
        value = self._add("Initializer", [], role, {"value": tensor}, {"T": dtype}, "ampgraph")
        value.shape = Shape(tensor.shape)
        return value

    def before(
        self,
        op_type: str,
        inputs: Sequence[Value | None],
        types: Mapping[str, DType] | None = None,
        **attributes: Any,
    ) -> Value:
        """Add a node before the node and return its result."""
        return self._add(op_type, inputs, op_type.lower(), attributes, types, "")

    def after(self, op_type: str, others: Sequence[Value], **attributes: Any) -> None:
        """Let the first result go through another node, with further operands ``others``, before anybody reads it."""
        old = self.node.outputs[0]
        name = old.name
        new = self._add(op_type, [old, *others], op_type.lower(), attributes, None, "", follows=True)
        self.graph.replace_all_uses_with(old, new)
        old.name, new.name = new.name, name
        old.shape, new.shape = UNKNOWN, old.shape

    def _add(
        self,
        op_type: str,
        inputs: Sequence[Value | None],
        role: str,
        attributes: Mapping[str, Any],
        types: Mapping[str, DType] | None,
        domain: str,
        *,
        follows: bool = False,
    ) -> Value:
        name = self._fresh(f"{self.node.outputs[0].name}_{role}")
        node = self.graph.add(op_type, inputs, domain=domain, name=name, attributes=attributes, types=types, outputs=1)
        anchor = self.node if follows or self._before is None else self._before
        self.followers.setdefault(anchor, []).append(node)
        return node.outputs[0]

    def _fresh(self, base: str) -> str:
        if self._names is None:
            self._names = {value.name for node in self.graph.all_nodes() for value in node.outputs}
            self._names.update(self.graph.output_names)
        name, k = base, 0
        while name in self._names or self.graph.has_node(name):
            k += 1
            name = f"{base}_{k}"
        self._names.add(name)
        return name
