"""Traces: the graph that is being built, and the symbolic arrays that stand for its values.

A function that is traced is run once, on :class:`~ampgraph.graph.tracing.array.SymbolicArray` objects; each operation on them adds
a node to the graph of the innermost trace. Bodies of branches and loops are traces inside of a trace: what they use of the graph
around becomes an input of theirs.
"""

import contextlib
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..dtypes import DType, dtype_of_array, find_dtype, resource
from ..errors import GraphError, TraceError
from ..graph import Graph, Node, Value, complete_types
from ..infer.control import NOTHING
from ..infer.dims import Dims, Element
from ..infer.engine import Library, Scope
from ..types import Shape, Tensor

if TYPE_CHECKING:
    from .array import SymbolicArray
    from .variable import Variable

#: Constants up to this many elements are looked for among those that the graph has already.
_SHARED = 16
_local = threading.local()


class Trace:
    """One graph that is being built.

    Attributes:
        graph: The graph.
        parent: The trace of the graph around, for bodies of branches and loops.
        captures: For a body, its inputs that stand for values of the graph around, by those values.
        variables: Handles of the variables that the function uses, those of bodies too; only of the outermost trace.
        prefix: Stands before the names of new nodes.
        float_scopes: Name scopes whose nodes stay float32; only of the outermost trace.
        optimizers: Those that take part in the function; only of the outermost trace.
        watched: The training steps among its nodes; only of the outermost trace.
        reads: Variables that were read, those of bodies too; only of the outermost trace.
        sizes: The shapes of values, where they were asked for because a size is not known.
    """

    def __init__(self, graph: Graph, parent: "Trace | None" = None) -> None:
        self.graph = graph
        self.parent = parent
        self.captures: dict[Value, Value] = {}
        self.variables: dict[Variable, Value] = {}
        self.prefix: str = "" if parent is None else parent.prefix
        self.float_scopes: list[str] = [] if parent is None else parent.float_scopes
        self.reads: set[Variable] = set() if parent is None else parent.reads
        self.optimizers: dict[Any, None] = {}
        self.watched: list[Watched] = []
        self._library: Library = Library(graph.functions) if parent is None else parent._library
        self._scope = Scope(graph, self._library, [NOTHING] * len(graph.inputs))
        self._constants: dict[tuple[Any, ...], Value] = {}
        self._order: dict[Value, _Order] = {}
        self.sizes: dict[Value, SymbolicArray] = {}

    # ---- nodes --------------------------------------------------------------------------------------------------

    def emit(
        self,
        op_type: str,
        inputs: Sequence[Value] = (),
        attributes: Mapping[str, Any] | None = None,
        types: Mapping[str, DType] | None = None,
        controls: Sequence[Node] = (),
        name: str = "",
        domain: str = "tf",
    ) -> Node:
        """Add a node; the shapes of its results follow from its operands.

        Raises:
            TraceError: If the op does not exist for a dtype.
            GraphError: If the operands' shapes do not fit.
        """
        schema = self.graph.find_schema(domain, op_type)
        assert schema is not None
        found = complete_types(schema, types or {}, attributes or {}, inputs)
        for key, dtype in found.items():
            variable = schema.type_vars[key.partition("[")[0]]
            if not variable.allows(dtype):
                allowed = ", ".join(sorted(map(str, variable.allowed or ())))
                raise TraceError(f"{op_type} exists for {allowed}; convert with .astype() first. Received: {dtype}")
        name = self.graph.fresh_name(self.prefix + (name or op_type))
        node = self.graph.add(op_type, inputs, domain=domain, name=name, attributes=attributes, types=found, controls=controls)
        try:
            self._follow(node)
        except GraphError:
            self.graph.remove_all([node])
            raise
        return node

    def _follow(self, node: Node) -> None:
        """Infer the shapes of a new node's results, and state them."""
        self._scope.follow(node)
        for value in node.outputs:
            dims, _ = self.fact(value)
            if dims is not None:
                value.shape = Shape(dims)

    def input(self, name: str, dtype: DType, dims: Dims, content: Element | None = None) -> Value:
        """Add a formal input to a body."""
        value = self.graph.add_input(self.graph.fresh_name(name), dtype, Shape(dims))
        self._scope.facts[value] = (dims, content)
        return value

    def constant(self, array: "np.ndarray[Any, Any]") -> Value:
        """Return a constant that holds a copy of an array."""
        if array.dtype.kind == "O" and not all(isinstance(item, str | bytes) for item in array.flat):
            raise TraceError(f"An array holds numbers, truth values or text. Received: {array.tolist()!r:.200}")
        try:
            dtype = dtype_of_array(array.dtype)
        except GraphError:
            raise TraceError(f"An array of {array.dtype} cannot be a constant of a graph.") from None
        array = np.array(array, dtype.numpy)
        key = (dtype, array.shape, array.tobytes()) if array.size <= _SHARED else None
        if key in self._constants:
            return self._constants[key]
        value = self.emit("Const", (), {"value": Tensor.of(array, dtype)}, {"dtype": dtype}).outputs[0]
        if key is not None:
            self._constants[key] = value
        return value

    def drop_functions(self, names: Collection[str]) -> None:
        """Remove bodies that nothing calls."""
        for name in names:
            del self.graph.functions[name]
            self._library.forget(name)

    def use(self, array: "SymbolicArray") -> Value:
        """Return the value of this graph that a symbolic array stands for.

        Raises:
            TraceError: If the array belongs to a trace that is over.
        """
        if array.trace is self:
            return array.value
        if self.parent is None:
            raise TraceError(
                f"{array!r} was made while another function was traced, and stands for no number outside of it. "
                "Return it from that function instead of keeping it."
            )
        return self.capture(self.parent.use(array))

    def capture(self, outer: Value) -> Value:
        """Return the input of this body that stands for a value of the graph around."""
        assert self.parent is not None
        inner = self.captures.get(outer)
        if inner is None:
            dims, content = self.parent.fact(outer)
            assert outer.dtype is not None
            element = content if isinstance(content, Element) else None
            inner = self.input(outer.name.replace(":", "_"), outer.dtype, dims, element)
            self.captures[outer] = inner
        return inner

    def fact(self, value: Value) -> Any:
        """Return what is known about a value: its shape, and what a handle or a small integer tensor holds."""
        return self._scope.facts.get(value, NOTHING)

    def wrap(self, value: Value) -> "SymbolicArray":
        """Return the symbolic array of a value of this graph, which may be one that others added to it."""
        from .array import SymbolicArray

        if value not in self._scope.facts:
            for node in self.graph.nodes:
                if node.outputs and node.outputs[0] not in self._scope.facts:
                    self._follow(node)
        return SymbolicArray(value, self)

    # ---- variables ----------------------------------------------------------------------------------------------

    def handle(self, variable: "Variable") -> Value:
        """Return what names a variable in this graph."""
        if self.parent is not None:
            return self.capture(self.parent.handle(variable))
        found = self.variables.get(variable)
        if found is None:
            name = self.graph.fresh_name(variable.name)
            attributes = {"shape": Shape(variable.shape), "shared_name": name.encode()}
            node = self.graph.add(
                "VarHandleOp", (), name=name, attributes=attributes, types={"dtype": find_dtype(variable.dtype.name)}
            )
            self._follow(node)
            found = self.variables[variable] = node.outputs[0]
        return found

    def read(self, handle: Value, dtype: DType) -> Value:
        """Return what a variable holds after all that was done to it so far."""
        order = self._order.setdefault(handle, _Order())
        if order.now is None:
            node = self.emit("ReadVariableOp", [handle], types={"dtype": dtype}, controls=order.writers())
            order.reads.append(node)
            order.now = node.outputs[0]
        return order.now

    @contextlib.contextmanager
    def fresh_reads(self) -> "Iterator[set[Variable]]":
        """Give the set of the variables that are read meanwhile."""
        before = set(self.reads)
        self.reads.clear()
        found: set[Variable] = set()
        try:
            yield found
        finally:
            found |= self.reads
            self.reads |= before

    def assign(self, handle: Value, value: Value) -> None:
        """Let a variable hold a value from now on."""
        self.effect("AssignVariableOp", [handle, value])

    def effect(
        self,
        op_type: str,
        inputs: Sequence[Value],
        attributes: Mapping[str, Any] | None = None,
        types: Mapping[str, DType] | None = None,
        domain: str = "tf",
    ) -> Node:
        """Add a node that may change every variable among its operands: it waits for their readers and their last change."""
        orders = [self._order.setdefault(value, _Order()) for value in inputs if value.dtype is resource]
        controls = dict.fromkeys(node for order in orders for node in (*order.reads, *order.writers()))
        node = self.emit(op_type, inputs, attributes, types, list(controls), domain=domain)
        for order in orders:
            order.last, order.reads, order.now = node, [], None
        return node

    def effects(self) -> list[Node]:
        """Return the last change of every variable, which results of the graph must wait for."""
        return list(dict.fromkeys(order.last for order in self._order.values() if order.last is not None))

    @property
    def is_stateful(self) -> bool:
        """Whether running the graph twice may differ or have effects."""
        return bool(self._order) or any(node.schema is not None and node.schema.stateful for node in self.graph.nodes)


class Watched(NamedTuple):
    """A training step in a graph, and who looks at it.

    Attributes:
        owner: What looks at every run: its method ``after_run``.
        step: The node that applies gradients.
        loss: The loss, not scaled.
    """

    owner: Any
    step: Node
    loss: Value | None


class _Order:
    """What was done to a variable so far.

    Attributes:
        last: The node that changed it last.
        reads: The nodes that read it since.
        now: What it holds, where it was read since.
    """

    def __init__(self) -> None:
        self.last: Node | None = None
        self.reads: list[Node] = []
        self.now: Value | None = None

    def writers(self) -> list[Node]:
        """Return the node that changed it last, if any."""
        return [] if self.last is None else [self.last]


def _stack() -> list[Trace]:
    stack: list[Trace] | None = getattr(_local, "stack", None)
    if stack is None:
        stack = _local.stack = []
    return stack


def active() -> Trace | None:
    """Return the innermost trace of this thread, or None."""
    stack = _stack()
    return stack[-1] if stack else None


def current() -> Trace:
    """Return the innermost trace of this thread.

    Raises:
        TraceError: If no function is being traced.
    """
    found = active()
    if found is None:
        raise TraceError(
            "No function is being traced: symbolic arrays, and operations that only graphs have, live inside of a function "
            "that is given to ampgraph.trace or ampgraph.function."
        )
    return found


@contextlib.contextmanager
def tracing(trace: Trace) -> Iterator[Trace]:
    """Make a trace the innermost one."""
    stack = _stack()
    stack.append(trace)
    try:
        yield trace
    finally:
        stack.pop()


@contextlib.contextmanager
def name_scope(name: str, dtype: str | None = None) -> Iterator[None]:
    """Put ``name/`` before the names of all nodes that are added inside; does nothing outside of a trace.

    Args:
        name: Letters, digits and ``_.-/``.
        dtype: ``"float32"`` keeps the nodes of this name scope, and their gradients, in float32 when the graph is rewritten.

    Raises:
        TraceError: If the name has other characters, or dtype is something else.

    Example:
        >>> import numpy as np
        >>> from ampgraph.graph.trace import TensorSpec, trace
        >>> def f(x):
        ...     with name_scope("dense"):
        ...         return np.tanh(x)
        >>> trace(f, TensorSpec([2])).has_node("dense/Tanh")
        True
    """
    from .structure import is_name

    if not isinstance(name, str) or not is_name(name):
        raise TraceError(f"A name scope is of letters, digits and _.-/. Received: {name!r}")
    if dtype not in (None, "float32"):
        raise TraceError(
            f"A name scope can be kept in 'float32'; what else becomes low is the policy's. Received: dtype={dtype!r}"
        )
    trace = active()
    if trace is None:
        yield
        return
    before, trace.prefix = trace.prefix, f"{trace.prefix}{name}/"
    if dtype is not None and trace.prefix not in trace.float_scopes:
        trace.float_scopes.append(trace.prefix)
    try:
        yield
    finally:
        trace.prefix = before
