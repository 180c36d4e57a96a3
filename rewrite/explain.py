"""Saying why: the chain of reasons behind the color of a vertex, as a sentence."""

import dataclasses
from collections.abc import Callable, Iterator

from ..graph.dtypes import DType
from ..graph.graph import Node
from ..lists import OpLists
from .paint import Painting, Reason
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
        why: The reason, a sentence.
        low: Whether that is the low dtype, by this decision.
    """

    node: str
    op_type: str
    key: str
    dtype: str
    why: str
    low: bool

    def __str__(self) -> str:
        return f"{self.node} ({self.op_type}) {self.key}: {self.dtype}: {self.why}"


def explain(
    painting: Painting, lists: OpLists, target: DType, device_type: str, frozen: Callable[[Node], str]
) -> Iterator[Explanation]:
    """Explain every type attribute that was float32, in file order.

    Args:
        painting: The decisions.
        lists: The lists they were made with.
        target: The low dtype.
        device_type: ``"GPU"`` or ``"CPU"``.
        frozen: Why a node may not be changed, or an empty string.
    """
    graph = painting.typegraph
    for vertex in range(graph.first[-1]):
        key = graph.key(vertex)
        if not graph.is_float[vertex] or not isinstance(key, str):
            continue
        node = graph.nodes[graph.owner[vertex]]
        low = bool(painting.allow[vertex])
        why = _why(painting, vertex, node, lists, target, device_type, frozen)
        yield Explanation(node.name, node.op_type, key, target.name if low else "float32", why, low)


def _why(
    painting: Painting,
    vertex: int,
    node: Node,
    lists: OpLists,
    target: DType,
    device_type: str,
    frozen: Callable[[Node], str],
) -> str:
    graph = painting.typegraph
    reason, op = Reason(painting.reason[vertex]), node.op_type
    color = graph.color[vertex]
    title = f"{op} is on the {_TITLES[color]}" if color else f"{op} is on no list"
    entry = lists.why(op)
    because = f" ({entry})" if entry and CODES[lists.list_of(op)] == color else ""
    via = painting.via[vertex]
    chain = _chain(painting, vertex)
    match reason:
        case Reason.ALLOW_LIST:
            return title + because
        case Reason.FORCED:
            return "forced by UNSAFE_FORCE_ALL"
        case Reason.BETWEEN:
            return (
                f"{title} and lies between AllowList ops; it leads to {_describe(painting, chain[-1])}{_through(painting, chain)}"
            )
        case Reason.FOLLOWS:
            return f"{title} and follows {_describe(painting, via)}"
        case Reason.BESIDE:
            return f"{title} and is connected to {_describe(painting, chain[-1])}{_through(painting, chain)}"
        case Reason.LIST_LOW:
            return f"its list shares its elements with {_describe(painting, via)}, which is {target}"
        case Reason.LOOP_LOW:
            return f"the Merge it feeds is {target}, and loop state has one dtype"
        case Reason.CAST:
            return f"all its readers are {target}, such as {_describe(painting, via)}"
        case Reason.DENY_LIST:
            return title + because
        case Reason.DOWNSTREAM:
            return f"{title} and downstream of {_describe(painting, chain[-1])}{_through(painting, chain)}"
        case Reason.LIST_ESCAPES:
            cluster = next(c for c in painting.clusters if vertex in c.members)
            return f"its list leaves this graph through {cluster.escapes}"
        case Reason.LIST_IN_BODY:
            cluster = next(c for c in painting.clusters if vertex in c.members)
            return f"its list is used in float32 by a function body of {cluster.bodies}"
        case Reason.LIST_FROZEN:
            cluster = next(c for c in painting.clusters if vertex in c.members)
            return f"its list is also used by {cluster.frozen}, which may not be changed"
        case Reason.LIST_FLOAT:
            return f"its list shares its elements with {_describe(painting, via)}, which stays float32"
        case Reason.NO_LOW_TYPE:
            return f"{title}, but its definition does not allow {target}"
        case Reason.LOOP_FLOAT:
            return "loop state has one dtype, and not all of it could be low"
        case Reason.NONE:
            return _why_untouched(painting, vertex, node, title, target, device_type, frozen)


def _why_untouched(
    painting: Painting,
    vertex: int,
    node: Node,
    title: str,
    target: DType,
    device_type: str,
    frozen: Callable[[Node], str],
) -> str:
    graph = painting.typegraph
    if reason := frozen(node):
        return reason
    if not graph.color[vertex]:
        return title
    if not graph.allowed[vertex]:
        return f"{title}, but its definition does not allow {target}"
    if not graph.able[vertex]:
        return f"{title}, but no {device_type} kernel takes {target}"
    if graph.color[vertex] == GRAY:
        return f"{title} and does not lie between AllowList ops"
    return f"{title} and has no low-precision neighbour"


def _chain(painting: Painting, vertex: int) -> list[int]:
    """Follow ``via`` to the vertex that started it; shadows of list handles are passed over."""
    chain: list[int] = []
    limit = painting.typegraph.count
    seen = {vertex}
    while (vertex := painting.via[vertex]) >= 0 and vertex not in seen:
        seen.add(vertex)
        if vertex < limit:
            chain.append(vertex)
        if painting.typegraph.color[vertex] in (ALLOW, DENY) if vertex < limit else False:
            break
    return chain or [next(iter(seen))]


def _through(painting: Painting, chain: list[int]) -> str:
    steps = chain[:-1]
    if not steps:
        return ""
    names = [repr(painting.typegraph.nodes[painting.typegraph.owner[vertex]].name) for vertex in steps[:_MOST_STEPS]]
    more = f" and {len(steps) - _MOST_STEPS} more" if len(steps) > _MOST_STEPS else ""
    return f" through {', '.join(names)}{more}"


def _describe(painting: Painting, vertex: int) -> str:
    graph = painting.typegraph
    owner = graph.owner[vertex]
    if owner >= len(graph.nodes):
        return "a result of the function"
    node = graph.nodes[owner]
    title = _TITLES.get(graph.color[vertex])
    return f"{node.op_type} {node.name!r}" + (f" ({title})" if title else "")
