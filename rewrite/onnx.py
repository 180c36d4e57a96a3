"""Rewriting an ONNX model: its graph, its functions and all bodies inside are decided together, as one type graph.

What differs from TensorFlow: constants are stored in the dtype their users want, outputs that keep their dtype get a Cast in
front, values pass between graphs (:mod:`~ampgraph.rewrite.borders`), and hazards are looked for.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence

from ..graph.dtypes import DType
from ..graph.errors import GraphError
from ..graph.graph import Graph, Node
from ..graph.infer import infer_shapes
from ..graph.types import ValueType
from ..lists import OpLists
from .affines import match_affines
from .borders import Tie, does_nothing, find_ties, is_call, owns_bodies
from .casts import Applied, apply
from .cleanup import drop_needless_casts
from .constants import is_constant, tensor_of
from .fold import fold_large_constants
from .hazards import Hazard, find_hazards
from .islands import drop_islands
from .only import first_result, keep_only
from .opset import raise_as_needed
from .paint import paint
from .painting import Facts, Painting
from .policy import Policy
from .report import BodyReport
from .scope import Scope
from .tables import find_tables
from .tails import free_tails
from .typegraph import CLEAR, CODES, CONSTANTS, UNLISTED, TypeGraph, op_name


def convert_model(model: Graph, scope: Scope, notes: list[str]) -> BodyReport:
    """Rewrite an ONNX model in place, with its functions and bodies, and report."""
    report = BodyReport("", model)
    given = dict(model.opsets)
    raised = raise_as_needed(model, scope.low, scope.lists)
    parts = live_graphs(model)
    if scope.policy.hazards:
        for part in parts:
            fold_large_constants(part, scope.low)
    nodes = [node for part in parts for node in part.all_nodes()]
    if any(value.shape.dims is None for node in nodes for value in node.outputs):
        with contextlib.suppress(GraphError):  # hazards that depend on lengths are then not found
            infer_shapes(model)
    reasons: dict[Node, str] = {}
    colors = scope.overridden(nodes, reasons)
    for value in model.inputs:
        if not is_constant(value.producer) and scope.policy.keeps(value.name):
            reasons[value.producer] = "it is an input, and inputs keep their dtype"
    for node in nodes:
        if node.label in scope.policy.preserve:
            reasons.setdefault(node, "the policy preserves it by name")
    report.frozen = lambda node: reasons.get(node, "")
    overrides = {nodes[i]: color for i, color in colors.items()}
    report.names = {node: first_result(node) for node in nodes}
    only = () if scope.only is None else (functools.partial(keep_only, names=report.names, wanted=scope.only),)
    report.painting = decide(parts, scope.policy, scope.lists, overrides, reasons, only)
    report.labels = {node: node.label for node in nodes if not node.name}
    report.applied = carry_out(report.painting, scope.low)
    if raised and (report.modified or model.opsets == given):  # a model in which nothing else changes is not raised
        notes.append(raised)
    clamps = report.painting.facts.clamps
    notes += [
        f"{node.label!r} only masks scores before a softmax, so it is clamped to {clamps[node].bound:g}, which {scope.low} can hold"
        for node in report.applied.clamped
    ]
    return report


def decide(
    parts: Sequence[Graph],
    policy: Policy,
    lists: OpLists,
    overrides: Mapping[Node, int],
    kept: Mapping[Node, str],
    only: Sequence[Callable[[Painting], None]] = (),
) -> Painting:
    """Decide about every type of a model.

    Args:
        parts: Its :func:`live_graphs`.
        policy: What is asked for.
        lists: The op lists.
        overrides: List colors of single nodes.
        kept: Nodes that must not change, and why.
        only: A last step that takes decisions back.
    """
    model = parts[0]
    nodes = [node for part in parts for node in part.all_nodes()]
    colors = {op: CODES[lists.list_of(op)] for op in {op_name(node) for node in nodes}} | {"Cast": UNLISTED}
    special: dict[int, int] = {}
    for i, node in enumerate(nodes):
        if node in overrides:
            special[i] = overrides[node]
        elif node.op_type == "Input" and node.domain == "ampgraph":
            special[i] = UNLISTED if is_constant(node) else CLEAR
        elif colors[op_name(node)] == UNLISTED and (owns_bodies(node, model.functions) or does_nothing(node)):
            special[i] = CLEAR
    results = {
        (part, i): part is not model or not policy.keeps(name) for part in parts for i, name in enumerate(part.output_names)
    }
    frozen = [node in kept or _says_its_type(node) for node in nodes]
    typegraph = TypeGraph(parts, policy.low, "GPU", colors.__getitem__, frozen, special, results)
    ties = find_ties(typegraph)
    found = find_hazards(typegraph, policy, lists, {i for i, node in enumerate(nodes) if node in overrides})
    tables, weights = find_tables(typegraph)
    tables, weights = ([vertex for vertex in vertices if vertex not in found.measured] for vertices in (tables, weights))
    typegraph.color[weights] = CLEAR
    for vertex in weights:
        found.hazards.pop(vertex, None)
    ties = [dataclasses.replace(tie, fixed=_held(tie, found.hazards)) for tie in ties]
    facts = Facts(
        ties=ties,
        hazards=found.hazards,
        bounded=found.bounded,
        tables=tables,
        clamps=found.clamps,
        affines=found.affines,
        measured=found.measured,
    )
    refine = (drop_islands, free_tails, match_affines, *only)
    return paint(typegraph, (), force_all=lists.force_all, exact=False, facts=facts, refine=refine)


def live_graphs(model: Graph) -> list[Graph]:
    """Return the main graph, the functions that are called from it, directly or not, and the bodies inside all of them."""
    found = [model]
    seen = {id(model)}
    for part in found:  # grows while it is walked
        called = (model.functions[f"{n.domain}:{n.op_type}"] for n in part.nodes if is_call(n, model.functions))
        for other in (*called, *(body for _, _, body in part.bodies())):
            if id(other) not in seen:
                seen.add(id(other))
                found.append(other)
    return found


def _says_its_type(node: Node) -> bool:
    """Whether an attribute that cannot be rewritten says a dtype: of a constant that a caller gives, or of an optional."""
    if node.op_type in CONSTANTS and tensor_of(node) is None:
        return True
    return node.op_type == "Optional" and isinstance(node.attributes.get("type"), ValueType)


def _held(tie: Tie, hazards: Mapping[int, Hazard]) -> int | None:
    """Return the member that keeps a tie float32: one that cannot change, or that a hazard holds."""
    if tie.fixed is not None:
        return tie.fixed
    return next((vertex for vertex in tie.members if vertex in hazards), None)


def carry_out(painting: Painting, low: DType) -> Applied:
    """Apply what was decided, to the painted model itself."""
    applied = apply(painting, low)
    added = applied.casts
    applied.casts = []
    for part in painting.typegraph.parts:
        own = [cast for cast in added if cast.graph is part]
        fixed = {value.producer for value in part.outputs}.difference(own) if part is painting.typegraph.parts[0] else set()
        applied.casts += drop_needless_casts(part, own, fixed)
    return applied
