"""Vertices that must end up with one color: the element types of tensor lists that share a handle.

A tensor list is a variant handle; the dtype of its elements stands in an attribute (``element_dtype``) of every op that
touches it, and no edge of the type graph connects those attributes. Two things are added here:

* **Clusters**: all list ops that a handle may flow between, found by union-find over the handles' edges.
* **Shadows**: elements written to a list come out again at its readers. Each handle vertex gets a shadow vertex, with an
  edge from every writer's element type to the shadow of its handle, along the handles, and on to every reader's element
  type. Walks pass through shadows as through clear ops. (One edge per writer and reader would be quadratic.)
"""

import dataclasses
from collections.abc import Iterable, Mapping

import numpy as np

from ..graph.dtypes import DType, float32, variant
from ..graph.graph import Graph, Node
from ..graph.types import FunctionRef
from .typegraph import TypeGraph

_READERS = frozenset(f"TensorList{name}" for name in ("Concat", "ConcatV2", "Gather", "GetItem", "PopBack", "Stack"))
_WRITERS = frozenset(
    f"TensorList{name}"
    for name in ("FromTensor", "PushBack", "PushBackBatch", "Scatter", "ScatterV2", "ScatterIntoExistingList", "SetItem", "Split")
)
#: Ops through which a handle leaves the graph that is being rewritten.
_ESCAPES = frozenset(
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
#: Functional control flow: handles go into bodies that are rewritten on their own.
_CONTROL_FLOW = frozenset({"While", "StatelessWhile", "If", "StatelessIf", "Case", "StatelessCase"})


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


class _Sets:
    """Union-find with path halving."""

    def __init__(self, size: int) -> None:
        self._parent = list(range(size))

    def find(self, item: int) -> int:
        parent = self._parent
        while parent[item] != item:
            parent[item] = item = parent[parent[item]]
        return item

    def union(self, a: int, b: int) -> None:
        self._parent[self.find(a)] = self.find(b)


def element_key(node: Node) -> str | None:
    """Return the key of a list op's float32 element type (``"element_dtype"``), or None if it is no float32 list op."""
    if "TensorList" not in node.op_type:
        return None
    return next((key for key, dtype in node.types.items() if dtype is float32 and not key.endswith("]")), None)


def find_list_clusters(typegraph: TypeGraph, bodies: "ListBodies") -> list[ListCluster]:
    """Find the tensor-list clusters of a type graph and link the shadows of its handles into it.

    Args:
        typegraph: The type graph; its edge index is rebuilt with the shadows.
        bodies: What the function bodies do with the lists they are given.

    Returns:
        One cluster per set of connected handles that some changeable float32 list op touches.
    """
    if not any("TensorList" in profile.op_type for profile in typegraph.profiles):
        return []
    handles = [vertex for vertex in range(typegraph.first[-1]) if typegraph.dtype(vertex) is variant]
    shadow = {vertex: typegraph.count + i for i, vertex in enumerate(handles)}
    sets = _Sets(typegraph.count)
    sources: list[int] = []
    targets: list[int] = []
    processed, owner, nodes = typegraph.processed.tolist(), typegraph.owner, typegraph.nodes
    for vertex in handles:
        for successor in typegraph.successors(vertex):
            sets.union(vertex, successor)
            if processed[vertex] and processed[successor] and successor in shadow:
                sources.append(shadow[vertex])
                targets.append(shadow[successor])
    clusters: dict[int, ListCluster] = {}
    for vertex in handles:
        node = nodes[owner[vertex]]
        cluster = clusters.setdefault(sets.find(vertex), ListCluster())
        key = element_key(node)
        if key is not None:
            element = typegraph.first[owner[vertex]] + typegraph.keys_of(owner[vertex]).index(key)
            cluster.members.append(element)
            if not processed[element]:
                cluster.frozen = node
            elif node.op_type in _WRITERS:
                sources.append(element)
                targets.append(shadow[vertex])
            elif node.op_type in _READERS:
                sources.append(shadow[vertex])
                targets.append(element)
        elif node.op_type in _ESCAPES or (node.schema is not None and node.schema.is_call):
            cluster.escapes = node
        elif node.op_type in _CONTROL_FLOW and bodies.keeps_float(node, typegraph.key(vertex)):
            cluster.bodies = node
    for value in typegraph.graph.outputs if typegraph.graph.is_function else ():
        if value.dtype is variant:
            clusters.setdefault(sets.find(typegraph.vertex(value)), ListCluster()).escapes = value.producer
    typegraph.link(np.asarray(sources, dtype=np.int64), np.asarray(targets, dtype=np.int64), len(handles))
    return [cluster for cluster in clusters.values() if cluster.members]


class ListBodies:
    """Which arguments and results of function bodies are lists that a body holds in float32.

    Function bodies are rewritten on their own with their signatures kept, so a list that comes from or goes to the caller
    stays float32 inside; the caller's list ops must then stay float32 too.
    """

    def __init__(self, functions: Mapping[str, Graph]) -> None:
        self._functions = functions
        self._known: dict[str, tuple[frozenset[int], frozenset[int]]] = {}

    def keeps_float(self, node: Node, key: str | DType | None) -> bool:
        """Whether a body of the control-flow ``node`` holds the list behind its type entry ``key`` in float32."""
        if not isinstance(key, str):
            return False
        name, _, index = key.removesuffix("]").partition("[")
        if not index:
            return False
        refs = [ref for value in node.attributes.values() for ref in _function_refs(value)]
        for ref in refs:
            arguments, results = self._lists(ref.name)
            if name != "Tout" and int(index) in arguments:
                return True
            if name != "Tin" and int(index) in results:
                return True
        return False

    def _lists(self, name: str) -> tuple[frozenset[int], frozenset[int]]:
        if name not in self._functions:
            return frozenset(), frozenset()
        if name not in self._known:
            self._known[name] = frozenset(), frozenset()  # a recursive call adds nothing
            self._known[name] = self._inspect(self._functions[name])
        return self._known[name]

    def _inspect(self, body: Graph) -> tuple[frozenset[int], frozenset[int]]:
        """Find the arguments and results connected, over handles, to a float32 list op of the body."""
        nodes = list(body.all_nodes())
        # One element per handle port group: a node's handles of one type entry count as one.
        numbers: dict[tuple[Node, object], int] = {}

        def number(node: Node, port: object) -> int:
            return numbers.setdefault((node, port), len(numbers))

        edges: list[tuple[int, int]] = []
        for node in nodes:
            for value, port in zip(node.inputs, node.signature.inputs, strict=False):
                if value is not None and value.dtype is variant:
                    edges.append((number(value.producer, value.producer.signature.outputs[value.index]), number(node, port)))
        arguments = {i: number(value.producer, "T") for i, value in enumerate(body.inputs) if value.dtype is variant}
        results = {
            i: number(value.producer, value.producer.signature.outputs[value.index])
            for i, value in enumerate(body.outputs)
            if value.dtype is variant
        }
        sets = _Sets(len(numbers))
        for a, b in edges:
            sets.union(a, b)
        float_lists = {
            sets.find(i)
            for (node, port), i in numbers.items()
            if element_key(node) is not None or (node.op_type in _CONTROL_FLOW and self.keeps_float(node, port))  # type: ignore[arg-type]
        }
        return (
            frozenset(i for i, handle in arguments.items() if sets.find(handle) in float_lists),
            frozenset(i for i, handle in results.items() if sets.find(handle) in float_lists),
        )


def _function_refs(value: object) -> Iterable[FunctionRef]:
    if isinstance(value, FunctionRef):
        return (value,)
    if isinstance(value, list):
        return (item for item in value if isinstance(item, FunctionRef))
    return ()
