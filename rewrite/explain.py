"""Saying why: the chain of reasons behind the color of a vertex, as a sentence."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ..graph.dtypes import DType
from ..graph.graph import Node
from ..lists import OpLists
from .painting import Painting, Reason
from .typegraph import ALLOW, CLEAR, CODES, DENY, GRAY

_TITLES = {ALLOW: "AllowList", DENY: "DenyList", GRAY: "GrayList", CLEAR: "ClearList"}
_MOST_STEPS = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Explanation:
    """What was decided about one type of a node, and why.

    Attributes:
        node, op_type: Which node.
        key: Which of its types (``"T"``).
        dtype: The dtype it computes in now (``"float16"``).
        low: Whether that is the low dtype, by this decision.
        reason: A code for the kind of reason (:class:`~ampgraph.rewrite.painting.Reason`, in lower case).
        why: The reason, a sentence.
    """

    node: str
    op_type: str
    key: str
    dtype: str
    low: bool
    reason: str
    why: str

    def __str__(self) -> str:
        return f"{self.node} ({self.op_type}) {self.key}: {self.dtype}: {self.why}"


class _Chain(NamedTuple):
    """A chain of reasons: the vertex it starts at, the number of vertices between, and the first few of these."""

    start: int
    length: int
    steps: tuple[int, ...]


class Explainer:
    """Explains the vertices of one painting.

    Args:
        painting: The decisions.
        lists: The lists they were made with.
        low: The low dtype.
        device_type: ``"GPU"`` or ``"CPU"``: whose kernels count.
        frozen: Why a node may not be changed, or an empty string.
    """

    def __init__(self, painting: Painting, lists: OpLists, low: DType, device_type: str, frozen: Callable[[Node], str]) -> None:
        self._painting = painting
        self._graph = painting.typegraph
        self._lists = lists
        self._low = low
        self._device_type = device_type
        self._frozen = frozen
        self._chains: dict[int, _Chain] = {}
        self._clusters = {vertex: cluster for cluster in painting.clusters for vertex in cluster.members}

    def explain(self, nodes: Iterable[int]) -> Iterator[Explanation]:
        """Explain every type attribute of the nodes with these numbers that was float32."""
        graph = self._graph
        for number in nodes:
            node = graph.nodes[number]
            for vertex in graph.vertices_of(number):
                key = graph.key(vertex)
                if graph.is_float[vertex] and isinstance(key, str) and key in node.types:
                    low = bool(self._painting.allow[vertex])
                    dtype = self._low.name if low else "float32"
                    reason = Reason(self._painting.reason[vertex]).name.lower()
                    yield Explanation(node.label, node.op_type, key, dtype, low, reason, self._why(vertex, node))
            if node.schema is None:
                why = f"nobody defined {node.op_type}, so its operands and results keep their dtypes"
                yield Explanation(node.label, node.op_type, "all types", "as they were", False, "undefined", why)

    def _why(self, vertex: int, node: Node) -> str:
        painting, op = self._painting, node.op_type
        color = self._graph.color[vertex]
        title = f"{op} is on the {_TITLES[color]}" if color else f"{op} is on no list"
        listed = title
        if color and CODES[self._lists.list_of(op)] == color:
            listed += f" ({self._lists.why(op)})"
        via = painting.via[vertex]
        match Reason(painting.reason[vertex]):
            case Reason.ALLOW_LIST | Reason.DENY_LIST:
                return listed
            case Reason.FORCED:
                return "forced by UNSAFE_FORCE_ALL"
            case Reason.BETWEEN:
                return f"{title} and lies between AllowList ops; it leads to {self._origin(vertex, onwards=True)}"
            case Reason.BESIDE:
                return f"{title} and is connected to {self._origin(vertex)}"
            case Reason.DOWNSTREAM:
                return f"{title} and downstream of {self._origin(vertex)}"
            case Reason.FOLLOWS:
                return f"{title} and follows {self._origin(vertex)}"
            case Reason.LIST_LOW:
                return f"its list shares its elements with {self._describe(via)}, which is {self._low}"
            case Reason.LIST_FLOAT:
                return f"its list shares its elements with {self._describe(via)}, which stays float32"
            case Reason.LIST_ESCAPES:
                return f"its list leaves this graph through {self._clusters[vertex].escapes}"
            case Reason.LIST_IN_BODY:
                return f"its list is used in float32 by a function body of {self._clusters[vertex].bodies}"
            case Reason.LIST_FROZEN:
                return f"its list is also used by {self._clusters[vertex].frozen}, which may not be changed"
            case Reason.LOOP_LOW:
                return f"the Merge it feeds is {self._low}, and loop state has one dtype"
            case Reason.LOOP_FLOAT:
                return "loop state has one dtype, and not all of it could be low"
            case Reason.HAZARD:
                return f"{title}, but {painting.facts.hazards[vertex].why}"
            case Reason.TABLE:
                return "it reads a large constant, which is stored once, in the low dtype"
            case Reason.TIED_LOW:
                return f"the same value is {self._low} on the other side: {self._describe(via)}"
            case Reason.TIED_FLOAT:
                return f"the same value stays float32 on the other side: {self._describe(via)}"
            case Reason.TIED_FIXED if via == vertex:
                return self._why_untouched(vertex, node, title)
            case Reason.TIED_FIXED:
                return f"the same value cannot change on the other side: {self._describe(via)}"
            case Reason.CONSTANT:
                return f"all its readers are {self._low}, {self._describe(via)} among them"
            case Reason.ISLAND:
                return "the casts around its low region would cost more than the region saves"
            case Reason.AFFINE:
                return f"what is normalized in front of it is {self._low}: {self._describe(via)}"
            case Reason.NORMALIZED:
                return "it is only normalized, in float32, and casting its low operand costs no more"
            case Reason.TAIL:
                return "it is the last arithmetic before a result, which is cast in front of it as well as behind"
            case Reason.CAST:
                return f"what is on the other side is {self._low}: {self._describe(via)}"
            case Reason.NO_LOW_TYPE:
                return f"{title}, but its definition does not allow {self._low}"
            case Reason.NONE:
                return self._why_untouched(vertex, node, title)

    def _why_untouched(self, vertex: int, node: Node, title: str) -> str:
        graph = self._graph
        if reason := self._frozen(node):
            return reason
        if hazard := self._painting.facts.hazards.get(vertex):
            return hazard.why
        if not graph.color[vertex]:
            return title
        if not graph.allowed[vertex]:
            return f"{title}, but its definition does not allow {self._low}"
        if not graph.able[vertex]:
            return f"{title}, but no {self._device_type} kernel takes {self._low}"
        if graph.color[vertex] == GRAY:
            return f"{title}, but neither lies between AllowList ops nor follows a low-precision op"
        return f"{title} and has no low-precision neighbour"

    def _origin(self, vertex: int, *, onwards: bool = False) -> str:
        """Name the vertex at which the chain of reasons starts, and some steps: from there, or ``onwards`` to there."""
        chain = self._chain(vertex)
        steps = list(chain.steps)
        if onwards:
            steps, step = [], self._next(vertex)
            while len(steps) < min(chain.length, _MOST_STEPS):
                steps.append(step)
                step = self._next(step)
        names = ", ".join(repr(self._name(step)) for step in steps)
        more = f" and {chain.length - len(steps)} more" if chain.length > len(steps) else ""
        return self._describe(chain.start) + (f" through {names}{more}" if names else "")

    def _next(self, vertex: int) -> int:
        """Return the vertex the reason came from, or -1; shadows of list handles are passed over."""
        via = self._painting.via
        vertex = via[vertex]
        while vertex >= self._graph.count:
            vertex = via[vertex]
        return vertex

    def _chain(self, vertex: int) -> "_Chain":
        """Return where the chain of reasons of a vertex starts; every vertex is followed once, however many ask."""
        path: list[int] = []
        on_path: set[int] = set()
        here = vertex
        while here not in self._chains:
            step = self._next(here)
            if step < 0 or step in on_path:
                self._chains[here] = _Chain(here, 0, ())
            elif self._graph.color[step] in (ALLOW, DENY):
                self._chains[here] = _Chain(step, 0, ())
            else:
                path.append(here)
                on_path.add(here)
                here = step
        for previous in reversed(path):
            chain = self._chains[here]
            steps = chain.steps if len(chain.steps) == _MOST_STEPS else (*chain.steps, here)
            self._chains[previous] = _Chain(chain.start, chain.length + 1, steps)
            here = previous
        return self._chains[vertex]

    def _name(self, vertex: int) -> str:
        graph = self._graph
        owner = graph.owner[vertex]
        if owner < len(graph.nodes):
            return graph.nodes[owner].label
        part, position = graph.results[owner - len(graph.nodes)]
        return part.output_names[position]

    def _describe(self, vertex: int) -> str:
        graph = self._graph
        owner = graph.owner[vertex]
        if owner >= len(graph.nodes):
            part = graph.results[owner - len(graph.nodes)][0]
            return "a result of the function" if part.is_function else f"result {self._name(vertex)!r} of {part.name!r}"
        node = graph.nodes[owner]
        title = _TITLES.get(graph.color[vertex])
        return f"{node.op_type} {node.label!r}" + (f" ({title})" if title else "")
