"""What a kernel knows of the node it computes."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..graph.dtypes import BY_ONNX, DType
from ..graph.errors import KernelError
from ..graph.graph import Graph, Node
from ..graph.schema import REQUIRED
from ..graph.types import Placeholder, Tensor
from .handle import Handle

if TYPE_CHECKING:
    from .run import Run
    from .steps import Step


class Call:
    """One run of a node, handed to its kernel; or all of its runs, if the kernel needs neither state nor bodies.

    Attributes:
        node: The node.
        xp: The array module: ``numpy``, or ``cupy``.
        opset: Version of the op's domain that the model asks for.
        results: Number of results that the node has.
        dtypes: Declared dtype of each result, None where unknown.
        operand_dtypes: Declared dtype of each operand, None where omitted or unknown.
        out: An operand that the result may be written over, or None; only for kernels registered as ``inplace``.
    """

    __slots__ = ("_run", "_step", "dtypes", "node", "operand_dtypes", "opset", "out", "results", "xp")

    def __init__(self, step: "Step", dtypes: Sequence[DType | None], xp: Any, run: "Run | None" = None) -> None:
        self._step = step
        self._run = run
        self.node: Node = step.node
        self.xp = xp
        self.opset: int = step.opset
        self.results = len(step.results)
        self.dtypes = dtypes
        self.out: Any = None
        self.operand_dtypes = step.operand_dtypes

    def attr(self, name: str, default: Any = None) -> Any:
        """Return an attribute, the op definition's default, or ``default``: strings as ``str``, tensors as arrays."""
        value = self._step.attributes.get(name)
        return default if value is None else value

    def constant(self, place: int) -> Any:
        """Return an operand that is a constant; None where it is none, or omitted."""
        return self._step.constants.get(place)

    def is_used(self, place: int) -> bool:
        """Whether anybody reads a result, or may read it because it looks on."""
        return self._run is not None or self._step.results[place] >= 0

    @property
    def state(self) -> dict[Handle, Any]:
        """What outlives a run: what the variables of a TensorFlow graph hold."""
        assert self._run is not None
        return self._run.state

    def dtype(self, variable: str) -> DType:
        """Return the dtype that a type variable of the op has here.

        Raises:
            KernelError: If it is not known.
        """
        found = self._step.types.get(variable)
        if found is None:
            raise KernelError(f"{self.node.op_type}: the dtype {variable!r} is not known.")
        return found

    def kept(self, make: Callable[[], Any], *places: int) -> Any:
        """Return what ``make`` returns, made once for all runs of this node where the operands at ``places`` are constants.

        Kernels whose operands may be parts of arrays, elementwise ones, cannot use it.
        """
        if not all(place in self._step.constants for place in places if place < len(self._step.operands)):
            return make()
        if self._step.kept is None:
            self._step.kept = make()
        return self._step.kept

    def run(self, graph: Graph, inputs: Sequence[Any]) -> list[Any]:
        """Run a body of this node.

        Args:
            graph: The body, as :meth:`attr` returns it.
            inputs: A value for each of the graph's inputs; those of outer values come last.

        Returns:
            A value for each of the graph's outputs.
        """
        assert self._run is not None
        return self._run.graph(self._step.bodies[graph], inputs)

    def rng(self, seed: float | None = None) -> Any:
        """Return a source of random numbers: of this seed, or a fresh one.

        It is NumPy's ``RandomState``, whose numbers for a seed never change from one version to another.
        """
        import numpy as np

        if seed is None:
            return np.random.RandomState()
        is_whole = float(seed).is_integer() and 0 <= seed < 2**32
        return np.random.RandomState(int(seed) if is_whole else int(np.float32(seed).view(np.uint32)))


def readable_attributes(node: Node, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a node's attributes and the defaults of the others, in the form that kernels read them.

    Args:
        node: The node.
        given: What the caller of the function around supplies for its placeholders.

    Raises:
        KernelError: If an attribute that the op's definition requires is missing.
    """
    schema = node.schema
    found: dict[str, Any] = {}
    if schema is not None:
        found = {name: schema.default(name) for name in schema.attributes}
    for name, value in node.attributes.items():
        if isinstance(value, Placeholder):
            value = given.get(value.name)
            if value is None:
                continue
        found[name] = value
    for name, spec in schema.attributes.items() if schema is not None else ():
        if spec.default is REQUIRED and found[name] is None:
            raise KernelError(f"Node {node} has no attribute {name!r}, which its definition requires.")
    return {name: _readable(value) for name, value in found.items() if value is not None}


def supplied_types(node: Node, attributes: Mapping[str, Any]) -> dict[str, DType]:
    """Return the type variables of a node that the caller of the function around it says, by attributes such as ``to``.

    Args:
        node: The node.
        attributes: What :func:`readable_attributes` returned for it.

    Raises:
        KernelError: If the caller gives what is no dtype.
    """
    found = {}
    for name, (variable, _) in getattr(node.schema, "type_attributes", {}).items():
        number = attributes.get(name)
        if number is None or not isinstance(node.attributes.get(name), Placeholder):
            continue
        if not isinstance(number, int) or number not in BY_ONNX:
            raise KernelError(f"Node {node} takes a dtype from the caller of its function. Received: {name}={number!r}")
        found[variable] = BY_ONNX[number]
    return found


def _readable(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, Tensor):
        return constant_array(value)
    if isinstance(value, list):
        return [_readable(item) for item in value]
    return value


def constant_array(tensor: Tensor) -> Any:
    """Return a constant's elements: strings are ``str`` objects."""
    array = tensor.array()
    if tensor.dtype.kind == "string":
        return text_array(array)
    return array


def text_array(array: Any) -> Any:
    """Return an array of text as an array of ``str`` objects."""
    import numpy as np

    flat = [item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else str(item) for item in array.ravel().tolist()]
    result = np.empty(len(flat), object)
    result[:] = flat
    return result.reshape(array.shape)
