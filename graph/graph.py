"""The graph: nodes, the values they produce, and the edges between them.

``Node.inputs`` is the truth about data edges and ``Node.controls`` about control edges. ``Graph.nx`` shows the same
edges as a :class:`networkx.MultiDiGraph`, for any algorithm of that library; it is built at first access and from then
on written by the mutators of :class:`Graph`, so nodes are edited through those.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from .dtypes import DType, find_dtype
from .errors import GraphError, did_you_mean
from .schema import OpSchema, Signature, untyped_signature
from .schemas import find_schema
from .schemas.onnx_schema import OnnxSchema, function_schema
from .types import UNKNOWN, Shape, Tensor

if TYPE_CHECKING:
    import networkx

_NOTHING: Mapping[str, Any] = {}
#: Ops out of which the back edges of TensorFlow's loops come.
_BACK_EDGES = ("NextIteration", "RefNextIteration")


class Value:
    """One result of a node: the tensor that flows along the edges from it.

    Values compare by identity: two values are the same only if they are the same object.

    Attributes:
        producer: The node that computes it.
        index: Which of the producer's outputs it is.
        shape: Its shape as far as known.
    """

    __slots__ = ("_dtype", "_name", "index", "producer", "shape")

    def __init__(
        self, producer: "Node", index: int, name: str | None = None, shape: Shape = UNKNOWN, dtype: DType | None = None
    ) -> None:
        self.producer = producer
        self.index = index
        self.shape = shape
        self._name = name
        self._dtype = dtype

    @property
    def name(self) -> str:
        """Unique name in its graph; unless given, the producer's name, with ``:index`` after the first output."""
        if self._name is not None:
            return self._name
        return f"{self.producer.name}:{self.index}" if self.index else self.producer.name

    @name.setter
    def name(self, name: str | None) -> None:
        self._name = name

    @property
    def dtype(self) -> DType | None:
        """Element type, read from the producer's types; None when nothing says what it is."""
        port = self.producer.signature.outputs[self.index]
        if isinstance(port, str):
            return self.producer.types.get(port)
        return self._dtype if port is None else port

    @property
    def container(self) -> str:
        """What holds the tensors if the value is no plain tensor: see :attr:`Shape.container`."""
        return self.shape.container

    def uses(self) -> list[tuple["Node", int]]:
        """Return the (node, input slot) pairs that read this value, in no particular order."""
        edges = self.producer.graph.nx.out_edges(self.producer, keys=True)
        return [(user, slot) for _, user, slot in edges if type(slot) is int and user.inputs[slot] is self]

    def __str__(self) -> str:
        return f"%{self.name}"

    def __repr__(self) -> str:
        return f"<Value %{self.name}: {self.dtype}{'' if self.shape.dims is None else self.shape}>"


class Node:
    """An operation. Made by :meth:`Graph.add`; changed through the graph it belongs to.

    Attributes:
        op_type, domain: Which op; ``domain`` is ``"tf"``, ``"ampgraph"``, ``""`` (ONNX) or a vendor's.
        name: Name in the file; unique for TensorFlow, may be empty or repeated for ONNX.
        inputs: The operands; None where an optional one is omitted.
        outputs: The results.
        attributes: Attributes that are not types, as given (defaults are not filled in). Replaced, never edited in
            place, because copies of a graph share it.
        types: Dtype of every type variable, ``{"T": float32}``; entries of a list variable are ``"T[0]"``,
            ``"T[1]"`` … Replaced, never edited in place.
        controls: Nodes that must run before this one.
        device: Placement asked for by the file, or an empty string.
        signature: Which entry of ``types`` each operand has.
        graph: The graph it belongs to.
        meta: What the file format must remember to write the node back losslessly; nobody else looks at it.
    """

    __slots__ = (
        "attributes",
        "controls",
        "device",
        "domain",
        "graph",
        "inputs",
        "meta",
        "name",
        "op_type",
        "outputs",
        "signature",
        "types",
    )

    def __init__(
        self,
        graph: "Graph",
        op_type: str,
        domain: str,
        name: str,
        signature: Signature,
        attributes: Mapping[str, Any],
        types: Mapping[str, DType],
        device: str,
        meta: Any,
    ) -> None:
        self.graph = graph
        self.op_type = op_type
        self.domain = domain
        self.name = name
        self.signature = signature
        self.attributes = attributes
        self.types = types
        self.device = device
        self.meta = meta
        self.inputs: list[Value | None] = []
        self.outputs: list[Value] = []
        self.controls: tuple[Node, ...] = ()

    @property
    def schema(self) -> OpSchema | None:
        """The op's schema, or None for an op that nobody defined."""
        return self.signature.schema

    def attr(self, name: str) -> Any:
        """Return an attribute, or its default from the op definition, or None."""
        if name in self.attributes:
            return self.attributes[name]
        schema = self.signature.schema
        return None if schema is None else schema.default(name)

    @property
    def label(self) -> str:
        """The node's name, or that of its first result if it has none (ONNX)."""
        return self.name or (self.outputs[0].name if self.outputs else "?")

    def __str__(self) -> str:
        return f"{self.label!r} ({self.op_type})"

    def __repr__(self) -> str:
        return f"<Node {self.op_type} {self.name!r}>"


class Graph:
    """A dataflow graph.

    Attributes:
        name: Name of the graph or function.
        inputs: Formal inputs of a function or model; each is produced by an ``ampgraph.Input`` node that is not among
            :attr:`nodes`. A TensorFlow GraphDef has none: its placeholders are nodes.
        outputs: The values the graph is run for.
        output_names: One name per output, as callers know it.
        functions: Library of functions by name, shared by the main graph and all function bodies.
        attributes: Facts about the graph itself (``{"producer": 2474}``).
        opsets: For ONNX, the version of each domain's vocabulary, shared with the bodies of If, Loop and the like.
        captures: For such a body, labels of the outer values it uses: the last inputs are theirs. The owner has an operand
            for each label of its bodies, in :func:`capture_labels`' order, after its formal operands.
        meta: What the file format must remember to write the graph back losslessly.
    """

    def __init__(
        self,
        name: str = "graph",
        functions: "dict[str, Graph] | None" = None,
        *,
        opsets: dict[str, int] | None = None,
        captures: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        self.output_names: list[str] = []
        self.functions: dict[str, Graph] = {} if functions is None else functions
        self.attributes: dict[str, Any] = {}
        self.opsets: dict[str, int] = {} if opsets is None else opsets
        self.captures: tuple[str, ...] = tuple(captures)
        self.meta: Any = None
        self._nodes: dict[Node, None] = {}
        self._names: dict[str, Node] | None = None
        self._fresh: dict[str, int] = {}
        self._nx: networkx.MultiDiGraph[Node] | None = None

    @property
    def is_function(self) -> bool:
        """Whether it is a body of its library: callers rely on the dtypes of its inputs and outputs."""
        return self.functions.get(self.name) is self

    # ---- reading ------------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> Iterable[Node]:
        """The nodes in file order (which need not be topological); graph inputs are not among them."""
        return self._nodes.keys()

    def __len__(self) -> int:
        return len(self._nodes)

    def __bool__(self) -> bool:
        return True

    def __contains__(self, node: object) -> bool:
        return node in self._nodes

    def all_nodes(self) -> Iterator[Node]:
        """Iterate over the graph inputs' nodes, then the nodes in file order."""
        return chain((value.producer for value in self.inputs), self._nodes)

    def node(self, name: str) -> Node:
        """Return the node (or graph input) called ``name``.

        Raises:
            GraphError: If there is none.
        """
        found = self._by_name().get(name)
        if found is None:
            raise GraphError(f"Graph {self.name!r} has no node {name!r}.{did_you_mean(name, self._by_name())}")
        return found

    def value(self, name: str) -> Value:
        """Return the value called ``name``: ``"node"``, ``"node:1"``, or a name of its own.

        Raises:
            GraphError: If there is none.
        """
        stem, _, index = name.rpartition(":")
        if stem and index.isdecimal() and (node := self._by_name().get(stem)) is not None:
            if int(index) < len(node.outputs):
                return node.outputs[int(index)]
            raise GraphError(f"Node {node} of graph {self.name!r} has {len(node.outputs)} outputs. Received: {name!r}")
        direct = self._by_name().get(name)
        if direct is not None and direct.outputs:
            return direct.outputs[0]
        for node in self.all_nodes():
            for value in node.outputs:
                if value.name == name:
                    return value
        if direct is not None:
            raise GraphError(f"Node {direct} of graph {self.name!r} has no outputs.")
        raise GraphError(f"Graph {self.name!r} has no value {name!r}.{did_you_mean(name, self._by_name())}")

    def has_node(self, name: str) -> bool:
        """Whether a node or graph input is called ``name``."""
        return name in self._by_name()

    def fresh_name(self, base: str) -> str:
        """Return ``base``, or ``base_1``, ``base_2`` …: the first that no node has."""
        names, name, k = self._by_name(), base, self._fresh.get(base, 0)
        while name in names:
            k += 1
            name = f"{base}_{k}"
        self._fresh[base] = k
        return name

    def topological(self) -> list[Node]:
        """Return graph inputs and nodes, every producer before its consumers, file order where free.

        Back edges of TensorFlow loops (out of ``NextIteration``) are left out.

        Raises:
            GraphError: If there is another cycle; the message names its nodes.
        """
        nodes = list(self.all_nodes())
        if _is_sorted(nodes):
            return nodes
        waiting: dict[Node, int] = {}
        followers: dict[Node, list[Node]] = {}
        order: list[Node] = []
        for node in nodes:
            sources = {value.producer for value in node.inputs if value is not None}
            sources.update(node.controls)
            count = 0
            for source in sources:
                if source.op_type in _BACK_EDGES:
                    continue
                followers.setdefault(source, []).append(node)
                count += 1
            if count:
                waiting[node] = count
            else:
                order.append(node)
        position = {node: i for i, node in enumerate(nodes)}
        order = _settle(order, followers, waiting, position)
        if len(order) != len(nodes):
            raise GraphError(f"Graph {self.name!r} has a cycle: {self._describe_cycle(set(waiting))}.")
        return order

    @staticmethod
    def _describe_cycle(nodes: set[Node]) -> str:
        """Walk upstream inside ``nodes`` until one repeats."""
        node = next(iter(nodes))
        path: list[Node] = []
        seen: dict[Node, int] = {}
        while node not in seen:
            seen[node] = len(path)
            path.append(node)
            sources = chain((value.producer for value in node.inputs if value is not None), node.controls)
            node = next(source for source in sources if source in nodes)
        cycle = path[seen[node] :][::-1]
        names = [str(member) for member in cycle[:8]] + (["…"] if len(cycle) > 8 else [])
        return " -> ".join([*names, str(cycle[0])])

    @property
    def nx(self) -> "networkx.MultiDiGraph[Node]":
        """The edges as a NetworkX graph: nodes are :class:`Node` objects, keys are input slots or ``("control", i)``."""
        if self._nx is None:
            import networkx

            self._nx = networkx.MultiDiGraph()
            self._nx.add_nodes_from(self.all_nodes())
            self._nx.add_edges_from(edge for node in self.all_nodes() for edge in _edges(node))
        return self._nx

    def _by_name(self) -> dict[str, Node]:
        if self._names is None:
            self._names = {}
            for node in self.all_nodes():
                if node.name:
                    self._names.setdefault(node.name, node)
        return self._names

    # ---- changing -----------------------------------------------------------------------------------------------

    def add(
        self,
        op_type: str,
        inputs: Sequence[Value | None] = (),
        *,
        domain: str = "tf",
        name: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        types: Mapping[str, DType] | None = None,
        device: str = "",
        controls: Sequence[Node] = (),
        outputs: int | None = None,
        meta: Any = None,
    ) -> Node:
        """Append a node.

        Args:
            op_type, domain: Which op. An op that no vocabulary defines is allowed.
            inputs: The operands, None for an omitted one.
            name: Node name; one is made up from the op type when None.
            attributes: Attributes that are not types; left-out ones take the op definition's defaults.
            types: Type variables; those left out are inferred from the operands, then from the op's defaults.
            device: Placement, as in the file.
            controls: Nodes that must run before.
            outputs: Number of results; needed only for ops that no vocabulary defines, and for optional results of ONNX ops.

        Raises:
            GraphError: If the counts of operands cannot be determined, or an operand or dtype is something else.
        """
        wrong = (
            [inputs]
            if isinstance(inputs, str | Node | Value)
            else [item for item in inputs if not isinstance(item, Value | None)]
        )
        if wrong:
            text = f"Inputs of a new {op_type} are a list of values, such as [node.outputs[0]]."
            raise GraphError(f"{text} Received: {wrong[0]!r}")
        if types is not None and any(dtype.__class__ is not DType for dtype in types.values()):
            types = {key: dtype if dtype.__class__ is DType else find_dtype(str(dtype)) for key, dtype in types.items()}
        schema = self.find_schema(domain, op_type)
        attributes = _NOTHING if attributes is None else attributes
        if outputs is None and isinstance(schema, OnnxSchema):
            outputs = schema.least_outputs
        if schema is None:
            types = _NOTHING if types is None else types
            signature = untyped_signature(len(inputs), outputs or 0)
        else:
            types = complete_types(schema, types or {}, attributes, inputs, outputs or 0)
            signature = schema.signature(attributes, types, inputs, outputs)
        node = Node(
            self, op_type, domain, self.fresh_name(op_type) if name is None else name, signature, attributes, types, device, meta
        )
        node.outputs = [Value(node, i) for i in range(len(signature.outputs))]
        node.inputs = list(inputs)
        node.controls = tuple(controls)
        self.append(node)
        return node

    def find_schema(self, domain: str, op_type: str) -> OpSchema | None:
        """Return the schema of an op, looking into this graph's function library too."""
        if domain not in ("tf", "ampgraph"):
            function = self.functions.get(f"{domain}:{op_type}")
            return find_schema(domain, op_type, self.opsets.get(domain, 0)) if function is None else function_schema(function)
        schema = find_schema(domain, op_type)
        if schema is None and domain == "tf" and op_type in self.functions:
            return call_schema(self.functions[op_type])
        return schema

    def add_input(self, name: str, dtype: DType | None, shape: Shape = UNKNOWN, meta: Any = None) -> Value:
        """Append a formal input and return its value."""
        schema = find_schema("ampgraph", "Input")
        assert schema is not None
        types = _NOTHING if dtype is None else {"T": dtype}
        node = Node(self, "Input", "ampgraph", name, schema.signature(_NOTHING, types), _NOTHING, types, "", meta)
        value = Value(node, 0, None, shape)
        node.outputs = [value]
        self.inputs.append(value)
        self._register(node)
        return value

    def append(self, node: Node) -> None:
        """Append a finished node; :meth:`add` is the comfortable way."""
        self._nodes[node] = None
        self._register(node)

    def _register(self, node: Node) -> None:
        if self._names is not None and node.name:
            self._names.setdefault(node.name, node)
        if self._nx is not None:
            self._nx.add_node(node)
            self._nx.add_edges_from(_edges(node))

    def remove(self, node: Node) -> None:
        """Remove a node that nothing uses any more.

        Raises:
            GraphError: If one of its values is still read or returned, or another node waits for it.
        """
        if node not in self._nodes:
            raise GraphError(f"Node {node} is not in graph {self.name!r}.")
        users = [user for user in self.nx.successors(node) if user is not node]
        if users:
            raise GraphError(f"Node {node} cannot be removed: {users[0]} still uses it. Redirect its users first.")
        if any(value.producer is node for value in self.outputs):
            raise GraphError(f"Node {node} cannot be removed: graph {self.name!r} returns one of its values.")
        del self._nodes[node]
        self.nx.remove_node(node)
        if self._names is not None and self._names.get(node.name) is node:
            del self._names[node.name]

    def remove_all(self, nodes: Iterable[Node]) -> None:
        """Remove nodes that nothing but themselves uses any more, in one sweep over the graph.

        Raises:
            GraphError: As for :meth:`remove`; then no node is removed.
        """
        gone = set(nodes)
        for node in gone:
            if node not in self._nodes:
                raise GraphError(f"Node {node} is not in graph {self.name!r}.")
        for user in self._nodes:
            if user not in gone:
                for source in (*(value.producer for value in user.inputs if value is not None), *user.controls):
                    if source in gone:
                        raise GraphError(f"Node {source} cannot be removed: {user} still uses it. Redirect its users first.")
        for value in self.outputs:
            if value.producer in gone:
                raise GraphError(f"Node {value.producer} cannot be removed: graph {self.name!r} returns one of its values.")
        for node in gone:
            del self._nodes[node]
            if self._nx is not None:
                self._nx.remove_node(node)
            if self._names is not None and self._names.get(node.name) is node:
                del self._names[node.name]

    def set_input(self, node: Node, slot: int, value: Value | None) -> None:
        """Make operand ``slot`` of ``node`` read ``value``.

        Raises:
            GraphError: If the node has no such operand.
        """
        if not 0 <= slot < len(node.inputs):
            raise GraphError(f"Node {node} has {len(node.inputs)} inputs. Received: slot {slot}")
        old = node.inputs[slot]
        node.inputs[slot] = value
        if self._nx is not None:
            if old is not None:
                self._nx.remove_edge(old.producer, node, key=slot)
            if value is not None:
                self._nx.add_edge(value.producer, node, key=slot)

    def set_inputs(self, node: Node, values: Iterable[Value | None]) -> None:
        """Replace all operands of ``node``."""
        if self._nx is not None:
            self._nx.remove_edges_from([edge for edge in _edges(node) if type(edge[2]) is int])
        node.inputs = list(values)
        if self._nx is not None:
            self._nx.add_edges_from(edge for edge in _edges(node) if type(edge[2]) is int)

    def set_control(self, node: Node, controls: Iterable[Node]) -> None:
        """Replace the nodes that ``node`` waits for."""
        if self._nx is not None:
            self._nx.remove_edges_from([edge for edge in _edges(node) if type(edge[2]) is not int])
        node.controls = tuple(controls)
        if self._nx is not None:
            self._nx.add_edges_from(edge for edge in _edges(node) if type(edge[2]) is not int)

    def replace_all_uses_with(self, old: Value, new: Value) -> None:
        """Make every reader of ``old``, and every graph output that is ``old``, take ``new`` instead."""
        for user, slot in old.uses():
            if user is not new.producer:
                self.set_input(user, slot, new)
        self.outputs = [new if value is old else value for value in self.outputs]

    def place_after(self, followers: Mapping[Node, Sequence[Node]]) -> None:
        """Move nodes in file order: each key (a node or graph input) is followed at once by its nodes, and these by theirs."""
        moved = {node for nodes in followers.values() for node in nodes}
        order: list[Node] = []
        for node in self.all_nodes():
            if node in moved:
                continue
            if node in followers:
                stack = [node]
                while stack:
                    node = stack.pop()
                    order.append(node)
                    stack.extend(reversed(followers.get(node, ())))
            else:
                order.append(node)
        self._nodes = dict.fromkeys(order)
        for value in self.inputs:
            del self._nodes[value.producer]

    def bodies(self) -> "Iterator[tuple[Node, str, Graph]]":
        """Iterate over the nodes that own graphs (the bodies of If, Loop and the like): node, attribute name, graph."""
        for node in self._nodes:
            if node.attributes and node.domain != "tf":
                for name, value in node.attributes.items():
                    if value.__class__ is Graph:
                        yield node, name, value
                    elif value.__class__ is list and value and value[0].__class__ is Graph:
                        for item in value:
                            yield node, name, item

    def all_graphs(self) -> "list[Graph]":
        """Return this graph, its functions, and the bodies inside all of them, outer ones first."""
        found = list({id(part): part for part in [self, *self.functions.values()]}.values())
        for part in found:  # grows while it is walked
            found += [body for _, _, body in part.bodies()]
        return found

    def copy(self) -> "Graph":
        """Return an independent copy of this graph and its functions; constants and attributes are shared."""
        library: dict[str, Graph] = {}
        for name, function in self.functions.items():
            library[name] = function._copy(library)
        return next((library[name] for name, function in self.functions.items() if function is self), None) or self._copy(library)

    def copy_as(self, name: str) -> "Graph":
        """Return a copy of this function as another one of the same library."""
        copy = self._copy(self.functions)
        copy.name = name
        self.functions[name] = copy
        return copy

    def __copy__(self) -> "Graph":
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> "Graph":
        return self.copy()

    def __reduce__(self) -> tuple[Any, tuple[str, str | None]]:
        """Pickle as the JSON text, which is flat however deep the graph; ``meta`` is not in it."""
        from .formats.json import print_json

        return _from_json, (print_json(self), self.name if self.is_function else None)

    def _copy(self, library: "dict[str, Graph]", opsets: dict[str, int] | None = None) -> "Graph":
        graph = Graph.__new__(Graph)
        graph.name = self.name
        graph.functions = library
        graph.attributes = dict(self.attributes)
        graph.opsets = dict(self.opsets) if opsets is None else opsets
        graph.captures = self.captures
        graph.meta = self.meta
        graph._names = None
        graph._fresh = {}
        graph._nx = None
        values: dict[Value | None, Any] = {None: None}
        old = list(self.all_nodes())
        new: list[Node] = []
        new_node, new_value = Node.__new__, Value.__new__
        for node in old:
            copy = new_node(Node)
            copy.graph = graph
            copy.op_type = node.op_type
            copy.domain = node.domain
            copy.name = node.name
            copy.signature = node.signature
            copy.attributes = node.attributes
            copy.types = node.types
            copy.device = node.device
            copy.meta = node.meta
            copy.controls = ()
            copy.outputs = outputs = []
            for value in node.outputs:
                twin = new_value(Value)
                twin.producer = copy
                twin.index = value.index
                twin.shape = value.shape
                twin._name = value._name
                twin._dtype = value._dtype
                values[value] = twin
                outputs.append(twin)
            new.append(copy)
        bodies = {node for node, _, _ in self.bodies()}
        for node, copy in zip(old, new, strict=True) if bodies else ():
            if node in bodies:
                copy.attributes = {name: _copy_bodies(value, library, graph.opsets) for name, value in node.attributes.items()}
        find = values.__getitem__
        for node, copy in zip(old, new, strict=True):
            copy.inputs = list(map(find, node.inputs))
        waiting = [(node, copy) for node, copy in zip(old, new, strict=True) if node.controls]
        if waiting:
            twins = dict(zip(old, new, strict=True))
            for node, copy in waiting:
                copy.controls = tuple(map(twins.__getitem__, node.controls))
        graph.inputs = [values[value] for value in self.inputs]
        graph.outputs = [values[value] for value in self.outputs]
        graph.output_names = list(self.output_names)
        graph._nodes = dict.fromkeys(new[len(self.inputs) :])
        return graph

    def __str__(self) -> str:
        from .text import print_graph

        return print_graph(self)

    def __repr__(self) -> str:
        return f"<Graph {self.name!r}: {len(self)} nodes, {len(self.functions)} functions>"


def _from_json(text: str, function: str | None) -> Graph:
    from .formats.json import parse_json

    graph = parse_json(text)
    return graph if function is None else graph.functions[function]


def _copy_bodies(value: Any, library: dict[str, Graph], opsets: dict[str, int]) -> Any:
    """Return an attribute value with its graphs copied; all others are the same objects."""
    if value.__class__ is Graph:
        return value._copy(library, opsets)
    if value.__class__ is list and value and value[0].__class__ is Graph:
        return [item._copy(library, opsets) for item in value]
    return value


def _edges(node: Node) -> Iterator[tuple[Node, Node, Any]]:
    for slot, value in enumerate(node.inputs):
        if value is not None:
            yield value.producer, node, slot
    for i, source in enumerate(node.controls):
        yield source, node, ("control", i)


def _is_sorted(nodes: Iterable[Node]) -> bool:
    """Whether every producer stands before its consumers, but for back edges of loops."""
    seen: set[Node] = set()
    for node in nodes:
        for value in node.inputs:
            if value is not None and value.producer not in seen and value.producer.op_type not in _BACK_EDGES:
                return False
        for source in node.controls:
            if source not in seen and source.op_type not in _BACK_EDGES:
                return False
        seen.add(node)
    return True


def _settle(
    ready: list[Node], followers: Mapping[Node, list[Node]], waiting: dict[Node, int], position: Mapping[Node, int]
) -> list[Node]:
    """Kahn's algorithm; among the ready nodes the one that stands first in the file goes first."""
    from heapq import heapify, heappop, heappush

    heap = [position[node] for node in ready]
    heapify(heap)
    nodes = list(position)
    order: list[Node] = []
    while heap:
        node = nodes[heappop(heap)]
        order.append(node)
        for follower in followers.get(node, ()):
            waiting[follower] -= 1
            if not waiting[follower]:
                del waiting[follower]
                heappush(heap, position[follower])
    return order


def call_schema(function: Graph) -> OpSchema:
    """Return the schema of a node whose op is ``function``: every operand has a fixed dtype."""
    from .schema import Formal

    return OpSchema(
        function.name,
        "tf",
        [Formal(value.name, dtype=value.dtype) for value in function.inputs],
        [Formal(name, dtype=value.dtype) for name, value in zip(function.output_names, function.outputs, strict=True)],
        is_call=True,
        stateful=True,
    )


def complete_types(
    schema: OpSchema,
    types: Mapping[str, DType],
    attributes: Mapping[str, Any],
    inputs: Sequence[Value | None],
    outputs: int = 0,
) -> Mapping[str, DType]:
    """Fill in the type variables that ``types`` leaves out.

    A variable takes the dtype of the first operand that has it; a constant's variable takes its tensor's dtype; then the
    op definition's default. What remains unknown stays out (``verify`` will say so). Source of the rule: how
    TensorFlow's own graph builders infer type attributes.
    """
    if isinstance(schema, OnnxSchema):
        return schema.complete(types, attributes, inputs, outputs)
    missing = [var for name, var in schema.type_vars.items() if name not in types and not (var.is_list and f"{name}[0]" in types)]
    if not missing:
        return types
    found: dict[str, DType] = dict(types)
    slot = 0
    for formal in schema.inputs:
        if formal.is_list:
            # A list takes every operand that later formals do not need.
            after = schema.inputs[schema.inputs.index(formal) + 1 :]
            length = max(0, len(inputs) - slot - sum(_count(f, attributes) for f in after))
            if any(var.name == formal.var for var in missing):
                for i, value in enumerate(inputs[slot : slot + length]):
                    dtype = None if value is None else value.dtype
                    if dtype is not None:
                        found.setdefault(f"{formal.var}[{i}]", dtype)
            slot += length
            continue
        count = _count(formal, attributes)
        for value in inputs[slot : slot + count]:
            if formal.var is not None and value is not None and value.dtype is not None:
                found.setdefault(formal.var, value.dtype)
        slot += count
    for var in missing:
        if var.is_list:
            if isinstance(var.default, tuple) and f"{var.name}[0]" not in found:
                found.update({f"{var.name}[{i}]": dtype for i, dtype in enumerate(var.default)})
        elif var.name not in found:
            value = attributes.get("value")
            if isinstance(value, Tensor) and var.name == "dtype":
                found["dtype"] = value.dtype
            elif isinstance(var.default, DType):
                found[var.name] = var.default
    return found


def _count(formal: Any, attributes: Mapping[str, Any]) -> int:
    if not formal.number:
        return 1
    count = attributes.get(formal.number, 0)
    return count if isinstance(count, int) else 0
