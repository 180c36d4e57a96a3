"""The type graph: what the pass walks over.

Its vertices are (node, type) pairs: one per entry of ``Node.types``, and one per fixed dtype among a node's operands. Each
data edge of the graph becomes an edge between the vertices at its two ends. A decision about a vertex is a decision about
one type attribute, so a node with two type attributes may be half low and half float.

Graphs have 100,000 nodes and this is Python, so facts that depend only on a node's op, operand counts and types are worked
out once per combination, in a :class:`_Profile`, and spread over the vertices by NumPy.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any

import numpy as np

from ..graph.dtypes import DType, float32
from ..graph.errors import PassError
from ..graph.graph import Graph, Node, Value
from ..graph.schemas import tf
from ..lists import Color

Array = np.ndarray[Any, np.dtype[Any]]

#: Color codes in the vertex arrays.
UNLISTED, ALLOW, DENY, GRAY, CLEAR = range(5)
_PLAIN = ("", "tf", "ampgraph")
#: ONNX ops that hold a constant in an attribute. (Initializers are nodes of domain "ampgraph".)
CONSTANTS = ("Constant", "ConstantOfShape")
CODES = {None: UNLISTED, Color.ALLOW: ALLOW, Color.DENY: DENY, Color.GRAY: GRAY, Color.CLEAR: CLEAR}


def op_name(node: Node) -> str:
    """Return the name of a node's op as op lists spell it: ``"Relu"``, but ``"com.microsoft:Gelu"``."""
    return node.op_type if node.domain in _PLAIN else f"{node.domain}:{node.op_type}"


class _Profile:
    """What all nodes of one op, signature and types share: their vertices, relative to the node's first."""

    __slots__ = ("able", "allowed", "inputs", "is_float", "keys", "op_type", "outputs", "quantized", "unknown")

    def __init__(self, node: Node, target: DType, device_type: str, fixed: frozenset[str]) -> None:
        signature, schema, types = node.signature, node.schema, node.types
        keys: list[str | DType | None] = [key for key in signature.keys if key in types]
        keys += dict.fromkeys(port for port in signature.inputs + signature.outputs if port not in types)
        where = {key: i for i, key in enumerate(keys)}
        dtypes = [types.get(key) if isinstance(key, str) else key for key in keys]
        self.op_type = op_name(node)
        self.keys = tuple(keys)
        self.inputs = [where[port] for port in signature.inputs]
        self.outputs = [where[port] for port in signature.outputs]
        self.is_float = [dtype is float32 for dtype in dtypes]
        self.unknown = [dtype is None for dtype in dtypes]
        self.quantized = any(dtype is not None and dtype.kind == "quantized" for dtype in types.values())
        self.allowed: list[bool] = []
        self.able: list[bool] = []
        accepted: Mapping[str, bool] = {}
        if schema is not None and node.domain == "tf":
            accepted = tf.kernels_accept(schema, device_type, types, node.attributes, target)
        for key in keys:
            var = key.partition("[")[0] if isinstance(key, str) else ""
            allowed = isinstance(key, str) and schema is not None and var not in fixed
            if allowed and schema is not None and not var.startswith("capture:"):
                allowed = schema.type_vars[var].allows(target)
            self.allowed.append(allowed)
            self.able.append(allowed and isinstance(key, str) and accepted.get(key, True))


def _fixed_vars(node: Node) -> frozenset[str]:
    """Return the type variables that must keep their dtype whatever the lists say, since more than a cast would be needed.

    These are the types of operands that function bodies rely on, of a constant's value, and of variables by reference.
    Grappler would break the graph if an edited list told it to.
    """
    schema = node.schema
    if schema is None or node.domain == "ampgraph" or (node.domain == "" and node.op_type in CONSTANTS):
        return frozenset()
    if node.domain != "tf" and "stash_type" in schema.attributes:  # it says what U is
        return frozenset(["U"])
    if any("func" in spec.kind or spec.kind == "tensor" for spec in schema.attributes.values()):
        return frozenset(schema.type_vars)
    return frozenset(formal.var for formal in schema.inputs + schema.outputs if formal.is_ref and formal.var is not None)


_NO_RESULTS: Mapping[tuple[Graph, int], bool] = MappingProxyType({})


class TypeGraph:
    """The vertices, edges and per-vertex facts of one graph, or of an ONNX model: its graph, functions and bodies.

    Attributes:
        parts: The graphs it describes.
        target: The low dtype.
        nodes: For each of them the graph inputs' nodes, then the nodes in file order.
        results: Results of the graphs that have a vertex of their own: (graph, position).
        count: Number of vertices, without shadows (see :mod:`~ampgraph.rewrite.clusters`).
        shadows: Number of shadows.
        first: First vertex of each node; one more entry closes the last. After the nodes' vertices comes one for each
            of :attr:`results`.
        owner: Index into :attr:`nodes` of each vertex; ``len(nodes)`` and more for :attr:`results`.
        color: List color of each vertex's op (:data:`UNLISTED`, :data:`ALLOW` …).
        is_float: Whether the vertex's dtype is float32.
        unknown: Whether nothing says what its dtype is (ONNX, after ops that nobody defined).
        able: Whether op definition and a registered kernel accept the low dtype there.
        allowed: Whether the op definition does, kernels aside.
        processed: Whether the node may be changed at all.
        sources, targets: The two ends of every operand edge; a source of -1 is an omitted operand.
        out_first, out_edges: Successors of vertex v are ``out_edges[out_first[v]:out_first[v + 1]]``.
        in_first, in_edges: Predecessors likewise.
    """

    def __init__(
        self,
        parts: Sequence[Graph],
        target: DType,
        device_type: str,
        color_of: Callable[[str], int],
        frozen: Sequence[bool],
        overrides: Mapping[int, int],
        results: Mapping[tuple[Graph, int], bool] = _NO_RESULTS,
    ) -> None:
        """Build the type graph.

        Args:
            parts: The graphs; only read.
            target: The low dtype that is asked for.
            device_type: ``"GPU"`` or ``"CPU"``: whose kernels count.
            color_of: List color of an op type.
            frozen: For every node of :attr:`nodes`, whether it must not be changed.
            overrides: List colors of single nodes, by index into :attr:`nodes`.
            results: Which results of the graphs get a vertex: ``(graph, position)``, and whether it may change; one that
                may not keeps the dtype that the caller relies on.

        Raises:
            PassError: If a node has another number of operands than its op takes.
        """
        self.parts = parts
        self.target = target
        self.nodes = nodes = list(chain.from_iterable(part.all_nodes() for part in parts))
        self.results = list(results)
        self._number_profiles(target, device_type)
        profile = self._profile
        sizes = np.array([len(p.keys) for p in self.profiles], np.int64)[profile]
        first = np.concatenate([[0], np.cumsum(sizes)])
        owner = np.repeat(np.arange(len(nodes)), sizes)
        local = np.arange(len(owner)) - first[owner]
        node_color = np.array([color_of(p.op_type) for p in self.profiles], np.uint8)[profile]
        for i, code in overrides.items():
            node_color[i] = code
        ends = [part.outputs[i] for part, i in results]
        free = np.array([is_free and end.dtype is float32 for end, is_free in zip(ends, results.values(), strict=True)], bool)

        def spread(rows: Iterable[Sequence[bool]]) -> Array:
            return np.concatenate([_Ragged(rows).at(profile[owner], local), free]).astype(np.uint8)

        self.is_float = spread(p.is_float for p in self.profiles)
        self.able = spread(p.able for p in self.profiles)
        self.allowed = spread(p.allowed for p in self.profiles)
        self.unknown = spread(p.unknown for p in self.profiles)
        self.color = np.concatenate([node_color[owner], free * np.uint8(CLEAR)])
        self.processed = np.concatenate([~np.array(frozen, bool)[owner], free]).astype(np.uint8)
        self.first: list[int] = first.tolist()
        self.owner: list[int] = owner.tolist() + list(range(len(nodes), len(nodes) + len(ends)))
        self.count = len(self.owner)
        self._connect(first, ends)

    def _number_profiles(self, target: DType, device_type: str) -> None:
        self.profiles: list[_Profile] = []
        known: dict[Any, int] = {}
        strings = tf.kernel_strings() if any(part.opsets == {} for part in self.parts) else {}
        numbers: list[int] = []
        for node in self.nodes:
            number = known.get((node.signature, id(node.types)))
            if number is None:
                key: Any = (node.signature, *node.types.items())
                if node.op_type in strings:  # its kernels also depend on string attributes
                    key += tuple(node.attr(name) for name in strings[node.op_type])
                number = known.get(key)
                if number is None:
                    number = known[key] = len(self.profiles)
                    fixed = _fixed_vars(node)
                    self.profiles.append(_Profile(node, target, device_type, fixed))
                if node.op_type not in strings:
                    known[node.signature, id(node.types)] = number
            numbers.append(number)
        self._profile = np.array(numbers, np.int64)
        self.numbers = numbers

    def _connect(self, first: Array, results: Sequence[Value]) -> None:
        """Fill in the edges: for each operand the producer's vertex and the consumer's."""
        nodes, profile = self.nodes, self._profile
        outputs = [value for node in nodes for value in node.outputs]
        self._where = where = dict(zip(outputs, self._ports(first, [p.outputs for p in self.profiles]).tolist(), strict=True))
        arity = np.array([len(p.inputs) for p in self.profiles], np.int64)[profile]
        given = np.fromiter((len(node.inputs) for node in nodes), np.int64, len(nodes))
        for i in np.flatnonzero(arity != given)[:1].tolist():
            raise PassError(
                f"Node {nodes[i]} has {given[i]} operands, but {nodes[i].op_type} with these attributes takes {arity[i]}."
            )
        self._edge_first = np.concatenate([[0], np.cumsum(arity)])
        operands = chain((value for node in nodes for value in node.inputs), results)
        sources = [-1 if value is None else where[value] for value in operands]
        self.sources = np.array(sources, np.int64)
        targets = self._ports(first, [p.inputs for p in self.profiles])
        self.targets = np.concatenate([targets, np.arange(self.count - len(results), self.count)])
        empty = np.empty(0, np.int64)
        self.link(empty, empty, 0)

    def _ports(self, first: Array, ports: Sequence[Sequence[int]]) -> Array:
        """Return the vertex of every operand (or result) of every node, in order."""
        profile = self._profile
        counts = np.array([len(row) for row in ports], np.int64)[profile]
        owner = np.repeat(np.arange(len(self.nodes)), counts)
        local = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        return first[owner] + _Ragged(ports).at(profile[owner], local)

    def link(self, sources: Array, targets: Array, shadows: int) -> None:
        """Index the edges for walks, together with extra ones among ``shadows`` further vertices."""
        real = self.sources >= 0
        all_sources = np.concatenate([self.sources[real], sources])
        all_targets = np.concatenate([self.targets[real], targets])
        size = self.count + shadows
        self.shadows = shadows
        self.out_first, self.out_edges = _index(all_sources, all_targets, size)
        self.in_first, self.in_edges = _index(all_targets, all_sources, size)

    def operands(self, edges: Array) -> tuple[list[int], list[int]]:
        """Return (indices into :attr:`nodes`, operand slots) of the consumer ends of edges.

        For one of :attr:`results` the node index is ``len(nodes)`` and the slot is the index into :attr:`results`.
        """
        owners = np.searchsorted(self._edge_first, edges, side="right") - 1
        return owners.tolist(), (edges - self._edge_first[owners]).tolist()

    def operand(self, node: int, slot: int) -> int:
        """Return the vertex of operand ``slot`` of node number ``node``."""
        return self.first[node] + self.profiles[self.numbers[node]].inputs[slot]

    def result_vertex(self, index: int) -> int:
        """Return the vertex of :attr:`results` number ``index``."""
        return self.count - len(self.results) + index

    def vertex(self, value: Value) -> int:
        """Return the vertex that holds the dtype of a value."""
        vertex: int = self._where[value]
        return vertex

    def keys_of(self, node: int) -> tuple[str | DType | None, ...]:
        """Return the keys of the vertices of node number ``node``, as :meth:`key` does."""
        return self.profiles[self.numbers[node]].keys

    def ports_of(self, node: int) -> tuple[Sequence[int], Sequence[int]]:
        """Return, for node number ``node``, the vertices of its operands and of its results, relative to its first."""
        profile = self.profiles[self.numbers[node]]
        return profile.inputs, profile.outputs

    def with_op(self, *op_types: str) -> list[int]:
        """Return the numbers of the nodes with one of these ops, in order."""
        return self.with_profile([i for i, profile in enumerate(self.profiles) if profile.op_type in op_types])

    def with_profile(self, numbers: Sequence[int]) -> list[int]:
        """Return the numbers of the nodes that have one of these :attr:`profiles`, in order."""
        if not numbers:
            return []
        matching = np.zeros(len(self.profiles), bool)
        matching[numbers] = True
        return np.flatnonzero(matching[self._profile]).tolist()

    def quantized(self) -> Array:
        """Return, per vertex, whether its node has a quantized type."""
        rows = np.array([profile.quantized for profile in self.profiles] + [False], bool)
        owner = np.minimum(self.owner, len(self.nodes))
        found: Array = rows[np.append(self._profile, len(self.profiles))][owner]
        return found

    def vertices_of(self, node: int) -> range:
        """Return the vertices of node number ``node``."""
        return range(self.first[node], self.first[node + 1])

    def key(self, vertex: int) -> str | DType | None:
        """Return which entry of ``Node.types`` a vertex is; for a fixed port its dtype."""
        owner = self.owner[vertex]
        if owner >= len(self.nodes):
            part, position = self.results[owner - len(self.nodes)]
            return part.outputs[position].dtype
        return self.keys_of(owner)[vertex - self.first[owner]]

    def dtype(self, vertex: int) -> DType | None:
        """Return the dtype a vertex has before rewriting."""
        key = self.key(vertex)
        return self.nodes[self.owner[vertex]].types.get(key) if isinstance(key, str) else key

    def successors(self, vertex: int) -> list[int]:
        """Return the vertices an edge leads to from ``vertex``."""
        return self.out_edges[self.out_first[vertex] : self.out_first[vertex + 1]]

    def predecessors(self, vertex: int) -> list[int]:
        """Return the vertices an edge comes from into ``vertex``."""
        return self.in_edges[self.in_first[vertex] : self.in_first[vertex + 1]]


class _Ragged:
    """Rows of different lengths, stored one after the other."""

    def __init__(self, rows: Iterable[Sequence[int]]) -> None:
        rows = list(rows)
        self._flat = np.array([value for row in rows for value in row], np.int64)
        self._first = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)

    def at(self, rows: Array, columns: Array) -> Array:
        """Return the values at these places."""
        found: Array = self._flat[self._first[rows] + columns]
        return found


def _index(keys: Array, values: Array, size: int) -> tuple[list[int], list[int]]:
    order = np.argsort(keys, kind="stable")
    first = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(keys, minlength=size), out=first[1:])
    return first.tolist(), values[order].tolist()
