"""The type graph: what the pass walks over.

Its vertices are (node, type) pairs: one per entry of ``Node.types``, and one per fixed dtype among a node's operands. Each
data edge of the graph becomes an edge between the vertices at its two ends. A decision about a vertex is a decision about
one type attribute, so a node with two type attributes may be half low and half float.

Everything is kept in flat arrays indexed by vertex, because graphs have 100,000 nodes and this is plain Python. Facts
about a node that depend only on its op, types and device kind are worked out once per combination, in a :class:`_Profile`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ..graph.dtypes import DType, float32
from ..graph.errors import PassError
from ..graph.graph import Graph, Node, Value
from ..graph.schemas import tf
from ..lists.tables import Color

Array = np.ndarray[Any, np.dtype[Any]]

#: Color codes in the vertex arrays.
UNLISTED, ALLOW, DENY, GRAY, CLEAR = range(5)
CODES = {None: UNLISTED, Color.ALLOW: ALLOW, Color.DENY: DENY, Color.GRAY: GRAY, Color.CLEAR: CLEAR}


class _Profile:
    """What all nodes of one op, signature and types share: their vertices, relative to the node's first."""

    __slots__ = ("able", "allowed", "color", "count", "inputs", "is_float", "keys", "ones", "outputs", "zeros")

    def __init__(self, node: Node, target: DType, device_type: str, color: int) -> None:
        signature, schema, types = node.signature, node.schema, node.types
        keys: list[str | DType | None] = [key for key in signature.keys if key in types]
        for port in signature.inputs + signature.outputs:
            if port not in keys:
                keys.append(port)
        where = {key: i for i, key in enumerate(keys)}
        dtypes = [types.get(key) if isinstance(key, str) else key for key in keys]
        self.keys = tuple(keys)
        self.count = len(keys)
        self.inputs = tuple(where[port] for port in signature.inputs)
        self.outputs = tuple(where[port] for port in signature.outputs)
        self.is_float = bytes(dtype is float32 for dtype in dtypes)
        allowed, able = [], []
        for key in keys:
            ok = isinstance(key, str) and schema is not None and schema.type_vars[key.partition("[")[0]].allows(target)
            allowed.append(ok)
            if ok and node.domain == "tf":
                assert schema is not None and isinstance(key, str)
                ok = tf.kernel_accepts(schema, device_type, types, node.attributes, key, target)
            able.append(ok)
        self.allowed = bytes(allowed)
        self.able = bytes(able)
        self.color = bytes([color]) * self.count
        self.ones = b"\1" * self.count
        self.zeros = b"\0" * self.count


class TypeGraph:
    """The vertices, edges and per-vertex facts of one graph.

    Attributes:
        graph: The graph it describes.
        nodes: Graph inputs' nodes, then the nodes in file order.
        first: First vertex of each node; one more entry closes the last.
        owner: Index into :attr:`nodes` of each vertex; ``len(nodes)`` and more for results of a function body.
        color: List color of each vertex's op (:data:`UNLISTED`, :data:`ALLOW` …).
        is_float: Whether the vertex's dtype is float32.
        able: Whether op definition and a registered kernel accept the low dtype there.
        allowed: Whether the op definition does, kernels aside.
        processed: Whether the node may be changed at all.
        sources, targets: The two ends of every edge, and for each the consumer (:attr:`users`) and its operand slot.
        out_first, out_edges: Successors of vertex v are ``out_edges[out_first[v]:out_first[v + 1]]``.
        in_first, in_edges: Predecessors likewise.
        count: Number of vertices without shadows (see :mod:`~ampgraph.rewrite.clusters`).
    """

    def __init__(
        self,
        graph: Graph,
        target: DType,
        device_type: str,
        color_of: Callable[[Node], int],
        processed: Callable[[Node], bool],
    ) -> None:
        """Build the type graph.

        Args:
            graph: The graph; only read.
            target: The low dtype that is asked for.
            device_type: ``"GPU"`` or ``"CPU"``: whose kernels count.
            color_of: List color of a node.
            processed: Whether a node may be changed.

        Raises:
            PassError: If a node has another number of operands than its op takes.
        """
        self.graph = graph
        self.nodes = list(graph.all_nodes())
        self.color = color = bytearray()
        self.is_float = is_float = bytearray()
        self.able = able = bytearray()
        self.allowed = allowed = bytearray()
        self.processed = may_change = bytearray()
        self.first = first = []
        self.profiles: list[_Profile] = []
        profiles: dict[Any, _Profile] = {}
        where: dict[Value, int] = {}
        strings = tf.kernel_strings()
        count = 0
        for node in self.nodes:
            code = color_of(node)
            key: Any = (node.signature, id(node.types), code)
            if node.op_type in strings:
                key += tuple(node.attr(name) for name in strings[node.op_type])
            profile = profiles.get(key)
            if profile is None:
                profile = profiles[key] = _Profile(node, target, device_type, code)
            self.profiles.append(profile)
            first.append(count)
            color += profile.color
            is_float += profile.is_float
            able += profile.able
            allowed += profile.allowed
            may_change += profile.ones if processed(node) else profile.zeros
            for value, port in zip(node.outputs, profile.outputs, strict=True):
                where[value] = count + port
            count += profile.count
        first.append(count)
        self._where = where
        self._connect(where, graph.outputs if graph.inputs or graph.is_function else [])

    def _connect(self, where: Mapping[Value, int], results: Iterable[Value]) -> None:
        sources: list[int] = []
        targets: list[int] = []
        edge_first: list[int] = []
        for node, profile, base in zip(self.nodes, self.profiles, self.first, strict=False):
            edge_first.append(len(sources))
            ports = profile.inputs
            inputs = node.inputs
            if len(inputs) != len(ports):
                raise PassError(
                    f"Node {node} has {len(inputs)} operands, but {node.op_type} with these attributes takes {len(ports)}."
                )
            for value, port in zip(inputs, ports, strict=True):
                sources.append(-1 if value is None else where[value])
                targets.append(base + port)
        edge_first.append(len(sources))
        count = self.first[-1]
        for value in results:
            # A result of a function body: it must stay what the signature says, like a float32 operand of an unlisted op.
            sources.append(where[value])
            targets.append(count)
            self.is_float.append(self.is_float[where[value]])
            for facts in (self.able, self.allowed, self.processed, self.color):
                facts.append(0)
            count += 1
        self.count = count
        sizes = np.diff(np.asarray(self.first))
        owners = np.repeat(np.arange(len(self.nodes)), sizes)
        self.owner: list[int] = [*owners.tolist(), *range(len(self.nodes), len(self.nodes) + count - self.first[-1])]
        self._edge_first = np.asarray(edge_first)
        self.sources = np.asarray(sources, dtype=np.int64)
        self.targets = np.asarray(targets, dtype=np.int64)
        self.link(np.empty(0, np.int64), np.empty(0, np.int64), 0)

    def link(self, sources: Array, targets: Array, shadows: int) -> None:
        """Index the edges for walks, together with extra ones among ``shadows`` further vertices."""
        real = self.sources >= 0
        all_sources = np.concatenate([self.sources[real], sources])
        all_targets = np.concatenate([self.targets[real], targets])
        size = self.count + shadows
        self.shadows = shadows
        self.out_first, self.out_edges = _index(all_sources, all_targets, size)
        self.in_first, self.in_edges = _index(all_targets, all_sources, size)

    def operand(self, edge: int) -> tuple[int, int]:
        """Return (index into :attr:`nodes`, operand slot) of the consumer end of an edge.

        For a result of a function body the node index is ``len(nodes)`` and the slot is the result's position.
        """
        owner = int(np.searchsorted(self._edge_first, edge, side="right")) - 1
        return owner, edge - int(self._edge_first[owner])

    def vertex(self, value: Value) -> int:
        """Return the vertex that holds the dtype of a value."""
        return self._where[value]

    def vertices_of(self, node: int) -> range:
        """Return the vertices of node number ``node``."""
        return range(self.first[node], self.first[node + 1])

    def key(self, vertex: int) -> str | DType | None:
        """Return which entry of ``Node.types`` a vertex is; for a fixed port its dtype."""
        owner = self.owner[vertex]
        if owner >= len(self.nodes):
            return float32
        return self.profiles[owner].keys[vertex - self.first[owner]]

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


def _index(keys: Array, values: Array, size: int) -> tuple[list[int], list[int]]:
    order = np.argsort(keys, kind="stable")
    first = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(keys, minlength=size), out=first[1:])
    return first.tolist(), values[order].tolist()


def mask(facts: bytearray) -> Array:
    """View per-vertex facts as a NumPy array (shares memory)."""
    return np.frombuffer(facts, dtype=np.uint8)
