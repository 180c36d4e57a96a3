"""Deciding: which vertices of the type graph become low precision, and why.

The phases are those of Grappler's auto_mixed_precision, in its order; each is one function of a
:class:`~ampgraph.rewrite.painting.Painting` and only adds to or takes from its two sets.

Nothing here changes the graph; :mod:`~ampgraph.rewrite.casts` applies a finished painting.
"""

from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np

from ..graph.dtypes import float32
from ..graph.errors import PassError
from ..graph.graph import Node
from .clusters import ListCluster
from .painting import NO_FACTS, Facts, Painting, Reason
from .typegraph import ALLOW, CLEAR, CONSTANTS, DENY, GRAY, Array, TypeGraph


def paint(
    typegraph: TypeGraph,
    clusters: Sequence[ListCluster],
    *,
    kept: Collection[Node] = (),
    force_all: bool = False,
    exact: bool = False,
    lists_may_differ: bool = False,
    facts: Facts = NO_FACTS,
    refine: Sequence[Callable[[Painting], None]] = (),
) -> Painting:
    """Run all phases.

    Args:
        typegraph: The type graph with the shadows of its lists linked in.
        clusters: Its tensor-list clusters.
        kept: Nodes whose results keep their dtype whatever their users are, because the graph returns them.
        force_all: Grappler's UNSAFE_FORCE_ALL: paint all it can and look at no deny op.
        exact: Decide exactly like Grappler, whose result depends on the order of nodes in the file: gray ops and loops are
            visited once, in that order. Otherwise both are settled until nothing changes.
        lists_may_differ: Whether a list may have low elements here and float32 ones in function bodies (emulation, where
            no type changes). Grappler always allows that, and the model then fails when it runs; here such lists stay
            float32, and :attr:`Painting.conflicts` has those for which Grappler decides otherwise.
        facts: What is known about an ONNX model.
        refine: Take back what costs more than it saves, before casts and constants are looked at.

    Raises:
        PassError: If a NextIteration feeds something else than a Merge, and ``exact``.
    """
    painting = _run_phases(typegraph, clusters, (), kept, force_all, exact, facts, refine)
    in_bodies = (cluster for cluster in clusters if cluster.bodies is not None)
    conflicts = [cluster for cluster in in_bodies if any(painting.allow[member] for member in cluster.members)]
    if conflicts and not lists_may_differ:
        painting = _run_phases(typegraph, clusters, conflicts, kept, force_all, exact, facts, refine)
        painting.conflicts = conflicts
    return painting


def _run_phases(
    typegraph: TypeGraph,
    clusters: Sequence[ListCluster],
    float_lists: Sequence[ListCluster],
    kept: Collection[Node],
    force_all: bool,
    exact: bool,
    facts: Facts,
    refine: Sequence[Callable[[Painting], None]],
) -> Painting:
    painting = Painting(typegraph, clusters, facts)
    for cluster in clusters:
        if cluster.escapes is not None:
            painting.forbid(cluster.members, Reason.LIST_ESCAPES)
        elif cluster.frozen is not None:
            painting.forbid(cluster.members, Reason.LIST_FROZEN)
    for cluster in float_lists:
        painting.forbid(cluster.members, Reason.LIST_IN_BODY)
    for tie in facts.ties:
        if tie.fixed is not None:
            painting.forbid(tie.members, Reason.TIED_FIXED, dict.fromkeys(tie.members, tie.fixed))
    paint_allow_list(painting)
    if force_all:
        paint_nearly_all(painting, exact=exact)
    if 1 not in painting.allow:
        return painting
    if not force_all:
        forbid_downstream_of_deny(painting)
    painting.paint((vertex for vertex in facts.tables if not painting.deny[vertex]), Reason.TABLE)
    match_clusters(painting)
    paint_between_allow(painting)
    paint_gray_after_allow(painting, to_fixpoint=not exact)
    paint_clear_beside_allow(painting)
    erase_without_low_type(painting)
    match_clusters(painting)
    before = 0
    while not exact and before != (before := painting.allow.count(1)):
        paint_gray_after_allow(painting, to_fixpoint=True)
        paint_clear_beside_allow(painting)
        match_clusters(painting)
    settle_loops(painting, kept, to_fixpoint=not exact)
    for step in refine:
        step(painting)
    paint_casts(painting, kept, both_ends=not exact)
    paint_constants(painting)
    return painting


def paint_allow_list(painting: Painting) -> None:
    """Every vertex of an AllowList op that may be changed."""
    graph = painting.typegraph
    rows = (graph.color == ALLOW) & graph.processed.astype(bool)
    painting.paint(np.flatnonzero(rows).tolist(), Reason.ALLOW_LIST)


def paint_nearly_all(painting: Painting, *, exact: bool) -> None:
    """Level UNSAFE_FORCE_ALL: every op but constants, stateful ops, ops on references and one loss.

    Grappler paints types that have no low version too, calls of functions that keep theirs, and casts, and then fails or
    leaves an invalid graph; unless ``exact``, those are passed over.
    """
    graph = painting.typegraph
    rows = graph.processed if exact else graph.processed & graph.is_float & graph.able
    may = rows.tolist()
    for i, node in enumerate(graph.nodes):
        schema = node.schema
        if (
            schema is None
            or schema.stateful
            or node.op_type in ("Const", "Constant", "Initializer", "SoftmaxCrossEntropyWithLogits")
        ):
            continue
        if not exact and (node.op_type == "Cast" or any("func" in spec.kind for spec in schema.attributes.values())):
            continue
        if not any(formal.is_ref for formal in schema.inputs + schema.outputs):
            painting.paint((v for v in graph.vertices_of(i) if may[v] and v not in painting.facts.measured), Reason.FORCED)


def forbid_downstream_of_deny(painting: Painting) -> None:
    """DenyList ops, and what they reach through gray and clear ops.

    A clear op is only reached if a deny or gray op lies further downstream: an effect that nothing sensitive sees is none.
    """
    graph = painting.typegraph
    color = graph.color
    sensitive = (color == DENY) | (color == GRAY)
    reachable = _with_shadows(graph, color == CLEAR)
    roots = np.flatnonzero(sensitive).tolist()
    upstream = _reach(roots, graph.in_first, graph.in_edges, reachable)
    inside = _with_shadows(graph, sensitive, shadows=False)
    for vertex in upstream:
        inside[vertex] = 1
    for vertex in np.flatnonzero(painting.denied()).tolist():
        inside[vertex] = 0
    roots = np.flatnonzero((color == DENY) & ~painting.denied()).tolist()
    for vertex in roots:
        inside[vertex] = 0
    painting.forbid((vertex for vertex in roots if vertex in painting.facts.hazards), Reason.HAZARD)
    painting.forbid(roots, Reason.DENY_LIST)
    origins: dict[int, int] = {}
    found = _reach(roots, graph.out_first, graph.out_edges, inside, origins, painting.facts.bounded)
    painting.forbid(found, Reason.DOWNSTREAM, origins)


def match_clusters(painting: Painting) -> None:
    """One color per tensor-list cluster and tie: deny if any member is denied, else allow if any is allowed."""
    for tie in painting.facts.ties:
        _match(painting, tie.members, Reason.TIED_LOW, Reason.TIED_FLOAT)
    for cluster in painting.clusters:
        _match(painting, cluster.members, Reason.LIST_LOW, Reason.LIST_FLOAT)


def _match(painting: Painting, members: Sequence[int], low: Reason, kept: Reason) -> None:
    denied = next((vertex for vertex in members if painting.deny[vertex]), None)
    if denied is not None:
        painting.erase(members, kept)
        painting.forbid(members, kept, dict.fromkeys(members, denied))
        return
    allowed = next((vertex for vertex in members if painting.allow[vertex]), None)
    if allowed is not None:
        painting.paint(members, low, dict.fromkeys(members, allowed))


def paint_between_allow(painting: Painting) -> None:
    """Gray and clear ops that lie on a path from one AllowList op to another."""
    graph = painting.typegraph
    color = graph.color
    allow_list = (color == ALLOW) & graph.processed.astype(bool)
    passable = _with_shadows(graph, _changeable(painting) & ((color == GRAY) | (color == CLEAR)))
    roots = np.flatnonzero(allow_list).tolist()
    downstream = _reach(roots, graph.out_first, graph.out_edges, passable)
    inside = bytearray(len(painting.allow))
    for vertex in downstream:
        inside[vertex] = 1
    origins: dict[int, int] = {}
    painting.paint(_reach(roots, graph.in_first, graph.in_edges, inside, origins), Reason.BETWEEN, origins)


def paint_gray_after_allow(painting: Painting, *, to_fixpoint: bool) -> None:
    """Gray ops with an allowed producer and no denied one.

    Args:
        painting: The decisions so far.
        to_fixpoint: Look again at the users of what was painted. Grappler looks at every vertex once, in file order, and
            sees its own results only further down.
    """
    graph = painting.typegraph
    facts = graph.processed & graph.is_float & graph.allowed & (graph.color == GRAY)
    allow, deny = painting.allow, painting.deny
    waiting = np.flatnonzero(facts).tolist()
    candidates = bytearray(facts.tobytes()) + bytearray(graph.shadows)
    waiting.reverse()
    while waiting:
        vertex = waiting.pop()
        if allow[vertex] or deny[vertex]:
            continue
        producers = graph.predecessors(vertex)
        source = next((producer for producer in producers if allow[producer]), None)
        if source is not None and not any(deny[producer] for producer in producers):
            painting.paint((vertex,), Reason.FOLLOWS, {vertex: source})
            if to_fixpoint:
                waiting += [user for user in graph.successors(vertex) if candidates[user]]


def paint_clear_beside_allow(painting: Painting) -> None:
    """Clear ops connected to an allowed vertex, up or down, through clear ops only.

    The walk goes both ways, except inside the shadows of list handles: what came from a writer goes on to readers, what
    came from a reader goes back to writers. The second kind of visit is numbered behind the first.
    """
    graph = painting.typegraph
    count, shadows = graph.count, graph.shadows
    passable = _changeable(painting) & (graph.color == CLEAR) & ~painting.allowed()
    open_ = _with_shadows(graph, passable) + bytearray([True]) * shadows
    for vertex in _variable_reads(graph):
        open_[vertex] = 0
    out_first, out_edges, in_first, in_edges = graph.out_first, graph.out_edges, graph.in_first, graph.in_edges
    origins: dict[int, int] = {}
    found: list[int] = []
    stack = np.flatnonzero(painting.allowed() & graph.processed).tolist()
    while stack:
        vertex = stack.pop()
        upwards = vertex >= count + shadows
        origin = vertex if vertex < count else origins[vertex]  # say which op it came from, not which shadow
        if not upwards:
            for other in out_edges[out_first[vertex] : out_first[vertex + 1]]:
                if open_[other]:
                    open_[other] = 0
                    origins[other] = origin
                    found.append(other)
                    stack.append(other)
        if upwards or vertex < count:
            here = vertex - shadows if upwards else vertex
            for other in in_edges[in_first[here] : in_first[here + 1]]:
                if other >= count:
                    other += shadows
                if open_[other]:
                    open_[other] = 0
                    origins[other] = origin
                    found.append(other)
                    stack.append(other)
    painting.paint((vertex for vertex in found if vertex < count), Reason.BESIDE, origins)


def erase_without_low_type(painting: Painting) -> None:
    """AllowList vertices whose op definition does not allow the low dtype after all; what they caused stays."""
    graph = painting.typegraph
    rows = (graph.color == ALLOW) & painting.allowed() & ((graph.allowed == 0) | graph.quantized())
    painting.erase(np.flatnonzero(rows).tolist(), Reason.NO_LOW_TYPE)


def settle_loops(painting: Painting, kept: Collection[Node], *, to_fixpoint: bool) -> None:
    """The value a loop carries has one dtype: each NextIteration agrees with the Merges it feeds.

    Both turn low only if all the Merges are; otherwise none is. A NextIteration that feeds something else than Merges keeps
    its dtype.

    Raises:
        PassError: If there is such a NextIteration and ``to_fixpoint`` is false: Grappler gives up.
    """
    graph = painting.typegraph
    loops = []
    is_merge = {vertex for i in graph.with_op("Merge", "RefMerge") for vertex in graph.vertices_of(i)}
    for i in graph.with_op("NextIteration", "RefNextIteration"):
        node = graph.nodes[i]
        vertex = graph.first[i]
        users = graph.successors(vertex)
        merges = [user for user in users if user in is_merge]
        strays = [user for user in users if user not in is_merge]
        if strays and not to_fixpoint:
            owner = graph.owner[strays[0]]
            raise PassError(
                f"Node {node} must feed a Merge only, because loop state has one dtype; it also feeds "
                f"{graph.nodes[owner] if owner < len(graph.nodes) else 'a result of its function'}. Preset 'safe' keeps such "
                "loops in float32."
            )
        loops.append((vertex, merges, node in kept or bool(strays) or (to_fixpoint and not graph.processed[vertex])))
    changed = True
    while changed:
        changed = False
        for vertex, merges, fixed in loops:
            group = [vertex, *merges]
            if fixed or not all(painting.allow[merge] for merge in merges):
                changed = changed or any(painting.allow[member] for member in group)
                painting.erase(group, Reason.LOOP_FLOAT)
            else:
                changed = changed or not painting.allow[vertex]
                painting.paint((vertex,), Reason.LOOP_LOW)
        changed = changed and to_fixpoint


def paint_casts(painting: Painting, kept: Collection[Node], *, both_ends: bool) -> None:
    """Casts to float32 that only low-precision ops read convert to the low dtype at once.

    Args:
        painting: The decisions so far.
        kept: Casts whose result keeps its dtype, because the graph returns it.
        both_ends: Also let casts from float32 read a value that became low as it is. (Grappler does not.)
    """
    graph = painting.typegraph
    for i in graph.with_op("Cast"):
        node = graph.nodes[i]
        to, source = ("DstT", "SrcT") if node.domain == "tf" else ("T2", "T1")
        for key, ends in ((to, graph.successors), (source, graph.predecessors)):
            if node.types.get(key) is not float32 or (key == source and not both_ends) or (key == to and node in kept):
                continue
            vertex = graph.first[i] + graph.keys_of(i).index(key)
            others = ends(vertex)
            if others and all(painting.allow[other] for other in others):
                painting.paint((vertex,), Reason.CAST, {vertex: others[0]})


def paint_constants(painting: Painting) -> None:
    """Constants whose every reader is low are stored in the low dtype (ONNX)."""
    graph = painting.typegraph
    for i in graph.with_op("Initializer", "Input", *CONSTANTS):
        node = graph.nodes[i]
        if node.op_type == "Input" and "default" not in node.attributes:
            continue
        vertex = graph.vertex(node.outputs[0])
        if node.domain == "tf" or not graph.is_float[vertex] or not graph.able[vertex] or not graph.processed[vertex]:
            continue
        readers = graph.successors(vertex)
        if readers and all(painting.allow[reader] for reader in readers):
            painting.paint((vertex,), Reason.CONSTANT, {vertex: readers[0]})


def _changeable(painting: Painting) -> Array:
    """Float32 vertices of processed nodes whose kernels take the low dtype and that nothing denied."""
    graph = painting.typegraph
    facts = graph.processed & graph.is_float & graph.able
    return facts.astype(bool) & ~painting.denied()


def _with_shadows(graph: TypeGraph, vertices: Array, *, shadows: bool = True) -> bytearray:
    """Return a byte per vertex; shadows of list handles are passable."""
    return bytearray(vertices.astype(np.uint8).tobytes()) + bytearray([shadows]) * graph.shadows


def _variable_reads(graph: TypeGraph) -> Iterable[int]:
    """Identity of a reference variable, or Enter of such: changing what they read would change the variable's contract."""
    if not graph.with_op("Variable", "VariableV2"):
        return
    known: dict[Node, bool] = {}
    for i in graph.with_op("Identity", "Enter"):
        path = []
        node = graph.nodes[i]
        while node.op_type == "Enter" and node not in known and (source := _first_producer(node)) is not None:
            known[node] = False
            path.append(node)
            node = source
        if node not in known:
            source = _first_producer(node) if node.op_type == "Identity" else None
            known[node] = source is not None and source.op_type in ("Variable", "VariableV2")
        known.update(dict.fromkeys(path, known[node]))
        if known[graph.nodes[i]]:
            yield from graph.vertices_of(i)


def _first_producer(node: Node) -> Node | None:
    return node.inputs[0].producer if node.inputs and node.inputs[0] is not None else None


def _reach(
    roots: Iterable[int],
    first: Sequence[int],
    edges: Sequence[int],
    passable: bytearray,
    origins: dict[int, int] | None = None,
    ends: Collection[int] = (),
) -> list[int]:
    """Walk from the roots along edges into passable vertices; return those entered. ``passable`` is used up.

    ``origins`` takes down from which vertex each was entered; the walk goes no further from ``ends``.
    """
    stack = list(roots)
    found: list[int] = []
    while stack:
        vertex = stack.pop()
        if vertex in ends:
            continue
        for other in edges[first[vertex] : first[vertex + 1]]:
            if passable[other]:
                passable[other] = 0
                if origins is not None:
                    origins[other] = vertex
                found.append(other)
                stack.append(other)
    return found
