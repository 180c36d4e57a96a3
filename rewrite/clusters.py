"""Vertices that must end up with one color: the element types of tensor lists that share a handle.

A tensor list is a variant handle; the dtype of its elements stands in an attribute (``element_dtype``) of every op that
touches it, and no edge of the type graph connects those attributes. Two things are added here:

* **Clusters**: all list ops that a handle may flow between, found by union-find over the handles' edges.
* **Shadows**: elements written to a list come out again at its readers. Each handle vertex gets a shadow vertex, with an
  edge from every writer's element type to the shadow of its handle, along the handles, and on to every reader's element
  type. Walks pass through shadows as through clear ops. (One edge per writer and reader would be quadratic.)
"""

import dataclasses
import itertools
from collections.abc import Iterable, Mapping

import numpy as np

from ..graph.dtypes import DType, float32, variant
from ..graph.graph import Graph, Node, Value
from ..graph.types import FunctionRef
from .typegraph import TypeGraph

_READERS = frozenset(f"TensorList{name}" for name in ("Concat", "ConcatV2", "Gather", "GetItem", "PopBack", "Stack"))
_WRITERS = frozenset(
    f"TensorList{name}"
    for name in ("FromTensor", "PushBack", "PushBackBatch", "Scatter", "ScatterV2", "ScatterIntoExistingList", "SetItem", "Split")
)
_LOOPS = ("Enter", "Exit", "Switch", "Merge", "NextIteration")
#: Ops that pass a handle on and do nothing else with it. Through any other op it may reach list ops that no edge leads to.
_CARRIERS = frozenset(
    {"Identity", "IdentityN", "StopGradient", "PreventGradient", "Snapshot", "Select", "SelectV2", "ZerosLike", "AddN"}
    | {*_LOOPS, *(f"Ref{name}" for name in _LOOPS)}
)
#: The ops that Grappler takes for exits. (It misses others, and its result is then not valid.)
_GRAPPLER_EXITS = frozenset(
    {
        "Input",
        "_Arg",
        "_Retval",
        "OptionalFromValue",
        "OptionalGetValue",
        "PartitionedCall",
        "Placeholder",
        "StatefulPartitionedCall",
    }
)
#: Functional control flow: handles go into bodies that are rewritten on their own. Type variables of operands and results.
_CONTROL_FLOW = {
    "While": ("T", "T"),
    "StatelessWhile": ("T", "T"),
    "If": ("Tin", "Tout"),
    "StatelessIf": ("Tin", "Tout"),
    "Case": ("Tin", "Tout"),
    "StatelessCase": ("Tin", "Tout"),
}


@dataclasses.dataclass
class ListCluster:
    """The element-type vertices of list ops that may hold the same list.

    Attributes:
        members: Vertices of the float32 element types.
        escapes: The node through which the handle leaves the graph, if any.
        bodies: The control-flow node whose function bodies keep the list in float32, if any.
        frozen: A member that may not be changed, if any.
    """

    members: list[int] = dataclasses.field(default_factory=list)
    escapes: Node | None = None
    bodies: Node | None = None
    frozen: Node | None = None


class DisjointSets:
    """Union-find over the numbers below ``size``, with path halving."""

    def __init__(self, size: int) -> None:
        self._parent = list(range(size))

    def find(self, item: int) -> int:
        """Return the number that stands for the set of ``item``."""
        parent = self._parent
        while parent[item] != item:
            parent[item] = item = parent[parent[item]]
        return item

    def union(self, a: int, b: int) -> None:
        """Make the sets of two numbers one."""
        self._parent[self.find(a)] = self.find(b)


def element_key(node: Node) -> str | None:
    """Return the key of a list op's float32 element type (``"element_dtype"``), or None if it is no float32 list op."""
    if "TensorList" not in node.op_type:
        return None
    return next((key for key, dtype in node.types.items() if dtype is float32 and not key.endswith("]")), None)


def find_list_clusters(typegraph: TypeGraph, bodies: "ListBodies | None") -> list[ListCluster]:
    """Find the tensor-list clusters of a type graph and link the shadows of its handles into it.

    Args:
        typegraph: The type graph; its edge index is rebuilt with the shadows.
        bodies: What function bodies do with the lists they are given, to let handles into functional control flow as
            Grappler does. None: a handle that reaches any op but list ops and :data:`_CARRIERS` is taken to escape.

    Returns:
        One cluster per set of connected handles that some float32 list op touches.
    """
    if not any("TensorList" in profile.op_type for profile in typegraph.profiles):
        return []
    handles = [vertex for vertex in range(typegraph.first[-1]) if typegraph.dtype(vertex) is variant]
    shadow = {vertex: typegraph.count + i for i, vertex in enumerate(handles)}
    owner, nodes = typegraph.owner, typegraph.nodes
    sets = DisjointSets(typegraph.count)
    for vertex in handles:
        for successor in typegraph.successors(vertex):
            sets.union(vertex, successor)
    for i in typegraph.with_op(*_CONTROL_FLOW):
        first, keys = typegraph.first[i], typegraph.keys_of(i)
        for one, other in bodies.connected(nodes[i]) if bodies is not None else ():
            if one in keys and other in keys:
                sets.union(first + keys.index(one), first + keys.index(other))
    clusters: dict[int, ListCluster] = {}
    for vertex in handles:
        node, cluster = nodes[owner[vertex]], clusters.setdefault(sets.find(vertex), ListCluster())
        key, element = typegraph.key(vertex), element_key(node)
        if element is not None and not isinstance(key, str):
            member = typegraph.first[owner[vertex]] + typegraph.keys_of(owner[vertex]).index(element)
            cluster.members.append(member)
            if not typegraph.processed[member]:
                cluster.frozen = node
        elif bodies is not None and node.op_type in _CONTROL_FLOW:
            if bodies.keeps_float(node, key):
                cluster.bodies = node
        elif _lets_escape(node, key, exact=bodies is not None):
            cluster.escapes = node
        if bodies is None:
            neighbours = itertools.chain(typegraph.successors(vertex), typegraph.predecessors(vertex))
            stranger = next((owner[other] for other in neighbours if other not in shadow), None)
            if stranger is not None:  # an op nobody defined, or a result of the function
                cluster.escapes = nodes[stranger] if stranger < len(nodes) else node
    graph = typegraph.parts[0]
    for value in graph.outputs if bodies is None or graph.is_function else ():
        if value.dtype is variant:
            clusters.setdefault(sets.find(typegraph.vertex(value)), ListCluster()).escapes = value.producer
    _link_shadows(typegraph, handles, shadow)
    return [cluster for cluster in clusters.values() if cluster.members]


def _lets_escape(node: Node, key: str | DType | None, *, exact: bool) -> bool:
    """Whether the handle behind type entry ``key`` of a node that is no float32 list op may go where no edge shows."""
    if exact:
        return node.op_type in _GRAPPLER_EXITS or (node.schema is not None and node.schema.is_call)
    if "TensorList" in node.op_type:
        return isinstance(key, str)  # it is an element of a list of lists
    return node.op_type not in _CARRIERS


def _link_shadows(typegraph: TypeGraph, handles: list[int], shadow: dict[int, int]) -> None:
    """Give each handle a shadow, with edges from the writers' element types and to the readers'."""
    sources: list[int] = []
    targets: list[int] = []
    processed, owner = typegraph.processed.tolist(), typegraph.owner
    for vertex in handles:
        if not processed[vertex]:
            continue
        for successor in typegraph.successors(vertex):
            if processed[successor] and successor in shadow:
                sources.append(shadow[vertex])
                targets.append(shadow[successor])
        node = typegraph.nodes[owner[vertex]]
        element = element_key(node)
        if element is None or isinstance(typegraph.key(vertex), str):
            continue
        member = typegraph.first[owner[vertex]] + typegraph.keys_of(owner[vertex]).index(element)
        if node.op_type in _WRITERS:
            sources.append(member)
            targets.append(shadow[vertex])
        elif node.op_type in _READERS:
            sources.append(shadow[vertex])
            targets.append(member)
    typegraph.link(np.asarray(sources, dtype=np.int64), np.asarray(targets, dtype=np.int64), len(handles))


@dataclasses.dataclass(frozen=True)
class _Summary:
    """What a function does with lists: which arguments and results it holds in float32, and which are the same list.

    Ends are ``(True, i)`` for argument i and ``(False, i)`` for result i.
    """

    floats: frozenset[tuple[bool, int]] = frozenset()
    groups: tuple[tuple[tuple[bool, int], ...], ...] = ()


class ListBodies:
    """Which arguments and results of function bodies are lists that a body holds in float32, and which are one list.

    Function bodies are rewritten on their own with their signatures kept, so a list that comes from or goes to the caller
    stays float32 inside; the caller's list ops must then stay float32 too.
    """

    def __init__(self, functions: Mapping[str, Graph]) -> None:
        self._functions = functions
        self._known: dict[str, _Summary] = {}

    def keeps_float(self, node: Node, key: str | DType | None) -> bool:
        """Whether a body of the control-flow ``node`` holds the list behind its type entry ``key`` in float32."""
        return any(key == self._key(node, end) for summary in self._of(node) for end in summary.floats)

    def connected(self, node: Node) -> Iterable[tuple[str, str]]:
        """Yield pairs of type entries of the control-flow ``node`` that a body makes the same list."""
        for summary in self._of(node):
            for group in summary.groups:
                keys = [self._key(node, end) for end in group]
                yield from itertools.pairwise(keys)

    @staticmethod
    def _key(node: Node, end: tuple[bool, int]) -> str:
        operands, results = _CONTROL_FLOW[node.op_type]
        return f"{operands if end[0] else results}[{end[1]}]"

    def _of(self, node: Node) -> list[_Summary]:
        names = list(_callees(node))
        self._summarise(names)
        return [self._known[name] for name in names if name in self._known]

    def _summarise(self, names: list[str]) -> None:
        """Work out the summaries of functions, those they call first. A recursive call adds nothing."""
        stack = [(name, False) for name in names]
        while stack:
            name, ready = stack.pop()
            if ready:
                self._known[name] = self._inspect(self._functions[name])
            elif name in self._functions and name not in self._known:
                self._known[name] = _Summary()  # what a recursive call sees
                stack.append((name, True))
                calls = (node for node in self._functions[name].nodes if node.op_type in _CONTROL_FLOW)
                stack += [(callee, False) for node in calls for callee in _callees(node)]

    def _inspect(self, body: Graph) -> _Summary:
        """Follow the handles of a body; a node's handles of one type entry count as one."""
        numbers: dict[tuple[Node, object], int] = {}

        def number(node: Node, port: object) -> int:
            return numbers.setdefault((node, port), len(numbers))

        def produced(value: Value) -> int:
            return number(value.producer, value.producer.signature.outputs[value.index])

        edges: list[tuple[int, int]] = []
        for node in body.all_nodes():
            for value, port in zip(node.inputs, node.signature.inputs, strict=False):
                if value is not None and value.dtype is variant:
                    edges.append((produced(value), number(node, port)))
            if node.op_type in _CONTROL_FLOW:
                for summary in (self._known[name] for name in _callees(node) if name in self._known):
                    for group in summary.groups:
                        edges += itertools.pairwise([number(node, self._key(node, end)) for end in group])
        ends = {(True, i): produced(value) for i, value in enumerate(body.inputs) if value.dtype is variant}
        ends |= {(False, i): produced(value) for i, value in enumerate(body.outputs) if value.dtype is variant}
        sets = DisjointSets(len(numbers))
        for a, b in edges:
            sets.union(a, b)
        floats = {
            sets.find(i)
            for (node, port), i in numbers.items()
            if element_key(node) is not None
            or (node.op_type in _CONTROL_FLOW and self.keeps_float(node, port if isinstance(port, str) else None))
        }
        groups: dict[int, list[tuple[bool, int]]] = {}
        for end, handle in ends.items():
            groups.setdefault(sets.find(handle), []).append(end)
        return _Summary(
            frozenset(end for end, handle in ends.items() if sets.find(handle) in floats),
            tuple(tuple(group) for group in groups.values() if len(group) > 1),
        )


def _callees(node: Node) -> Iterable[str]:
    return (ref.name for value in node.attributes.values() for ref in _function_refs(value))


def _function_refs(value: object) -> Iterable[FunctionRef]:
    if isinstance(value, FunctionRef):
        return (value,)
    if isinstance(value, list):
        return (item for item in value if isinstance(item, FunctionRef))
    return ()
