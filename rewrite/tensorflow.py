"""Rewriting a TensorFlow graph: it and each of its functions are decided one by one.

Nothing is decided across a call, and function bodies keep their signatures.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence

from ..graph.dtypes import DType, float32
from ..graph.errors import PassError
from ..graph.graph import Graph, Node
from ..graph.schema import Signature
from ..graph.schemas import find_schema
from ..graph.types import Placeholder
from .casts import apply
from .cleanup import drop_needless_casts
from .clusters import ListBodies, find_list_clusters
from .emulate import emulate
from .hazards import Found, find_hazards
from .hazards_measured import hold_measured
from .only import first_result, keep_only
from .paint import paint
from .painting import Facts, Painting
from .report import BodyReport
from .scope import Scope
from .typegraph import CLEAR, DENY, UNLISTED, TypeGraph
from .view import View

#: Ops whose statistics share the type of the data, and the versions that keep them apart.
_UPGRADES = {"FusedBatchNorm": "FusedBatchNormV2", "FusedBatchNormGrad": "FusedBatchNormGradV2"}


def convert_graph(graph: Graph, scope: Scope, notes: list[str]) -> list[BodyReport]:
    """Rewrite a graph in place, with its functions, and report on each of them."""
    bodies = {"": graph, **scope.functions_of(graph)}
    lists_in_bodies = ListBodies(graph.functions)
    reports = [_convert_body(name, body, scope, lists_in_bodies, notes) for name, body in bodies.items()]
    reports += [
        BodyReport(name, body, skipped="nothing in the main graph calls it")
        for name, body in graph.functions.items()
        if name not in bodies
    ]
    return reports


def _convert_body(name: str, body: Graph, scope: Scope, bodies: ListBodies, notes: list[str]) -> BodyReport:
    """Rewrite one graph in place and report."""
    report = BodyReport(name, body)
    if any(isinstance(value, Placeholder) for node in body.nodes for value in node.attributes.values()):
        report.skipped = "its types are chosen by the caller"
        return report
    if scope.exact:
        _check_attributes(body)
        report.dropped_controls = _drop_redundant_controls(body)
    reasons = scope.frozen(body)
    overrides = scope.overridden(body.all_nodes(), reasons)
    named = frozenset(overrides)
    placement = scope.placement
    report.frozen = lambda node: reasons.get(node) or placement(node.device)
    placed = {device: bool(placement(device)) for device in {node.device for node in body.all_nodes()}}
    frozen = [placed[node.device] or node in reasons for node in body.all_nodes()]
    upgrades = _upgrade_batch_norm(body, frozen)
    for i, old in upgrades.items():
        if (color := scope.color_of(old.op_type)) != UNLISTED:
            overrides.setdefault(i, color)
    results = {(body, i): False for i in range(len(body.outputs))} if body.is_function else {}
    typegraph = TypeGraph([body], scope.low, scope.device_type, scope.color_of, frozen, overrides, results)
    found = Found()
    if scope.lists.force_all:
        hold_measured(View(typegraph, scope.low), found, scope.policy)
        typegraph.color[list(found.measured)] = UNLISTED
    else:
        found = find_hazards(typegraph, scope.policy, scope.lists, named)
    clusters = find_list_clusters(typegraph, bodies if scope.exact else None)
    held = [vertex for cluster in clusters for vertex in cluster.members if vertex in found.measured]
    typegraph.color[held] = DENY  # a list has one dtype, whatever its other users want
    report.names = {node: first_result(node) for node in typegraph.nodes}
    only = () if scope.only is None else (functools.partial(keep_only, names=report.names, wanted=scope.only),)
    kept = scope.returned(body)
    report.painting = painting = paint(
        typegraph,
        clusters,
        kept=kept,
        force_all=scope.lists.force_all,
        exact=scope.exact,
        lists_may_differ=scope.policy.emulates,
        facts=Facts(hazards=found.hazards, measured=found.measured),
        refine=only,
    )
    for i, old in upgrades.items():
        if scope.exact or any(painting.allow[vertex] for vertex in typegraph.vertices_of(i)):
            report.upgraded.append(typegraph.nodes[i])
        else:
            old.restore(typegraph.nodes[i])
    if scope.policy.emulates:
        report.applied = emulate(painting)
    else:
        report.applied = apply(painting, scope.low)
        if not scope.exact:
            fixed = {node for node in reasons if node.op_type == "Cast"}
            fixed.update(value.producer for value in body.outputs if not body.is_function)
            report.applied.casts = drop_needless_casts(body, report.applied.casts, fixed)
    if scope.exact:
        notes += [
            f"unlike Grappler, the tensor list through {cluster.bodies} stays float32, as in the function bodies that use it"
            for cluster in painting.conflicts
        ]
        notes += _kept_by_contract(painting)
    return report


def _kept_by_contract(painting: Painting) -> list[str]:
    """Name the nodes whose dtype Grappler would have changed although the caller or a function body relies on it."""
    graph = painting.typegraph
    notes = []
    main = graph.parts[0]
    for node in {value.producer: None for value in main.outputs if not main.is_function}:
        users = [user for value in node.outputs for user in graph.successors(graph.vertex(value))]
        if not users:
            continue
        if node.op_type == "Cast" and node.types.get("DstT") is float32 and all(painting.allow[user] for user in users):
            notes.append(f"unlike Grappler, {node} keeps its dtype, because the graph returns it")
        elif node.op_type == "NextIteration" and node.types.get("T") is float32:
            notes.append(f"unlike Grappler, {node} and its loop keep their dtype, because the graph returns it")
    for i in graph.with_op("While", "StatelessWhile"):
        floats = (v for v in graph.vertices_of(i) if graph.color[v] == CLEAR and graph.is_float[v] and graph.processed[v])
        if any(painting.allow[other] for v in floats for other in (*graph.successors(v), *graph.predecessors(v))):
            notes.append(f"unlike Grappler, {graph.nodes[i]} keeps its types, because its function bodies keep theirs")
    return notes


def _check_attributes(body: Graph) -> None:
    """Refuse what Grappler refuses: attributes and ops that no definition knows."""
    kinds = {(node.signature, id(node.attributes)): node for node in body.nodes}
    for node in kinds.values():
        schema = node.schema
        if schema is None:
            raise PassError(
                f"Node {node} has an op TensorFlow does not define. Preset 'grappler' refuses such graphs as TensorFlow does; "
                "preset 'safe' leaves the op alone."
            )
        for attribute in node.attributes if not schema.is_call else ():
            if attribute not in schema.attributes and attribute not in schema.type_vars and not attribute.startswith("_"):
                raise PassError(
                    f"Node {node} has an attribute {attribute!r} that the definition of {node.op_type} does not know. Preset "
                    "'grappler' refuses such graphs as TensorFlow does; preset 'safe' ignores it."
                )


def _drop_redundant_controls(body: Graph) -> int:
    """Drop control inputs from nodes that are data inputs too, and repeated ones, as Grappler does; return how many."""
    dropped = 0
    for node in body.nodes:
        if node.controls:
            data = {value.producer for value in node.inputs if value is not None}
            kept = [source for source in dict.fromkeys(node.controls) if source not in data]
            if len(kept) < len(node.controls):
                dropped += len(node.controls) - len(kept)
                body.set_control(node, kept)
    return dropped


@dataclasses.dataclass(frozen=True)
class _Old:
    """What a node was before its op was upgraded."""

    op_type: str
    types: Mapping[str, DType]
    signature: Signature

    def restore(self, node: Node) -> None:
        """Make ``node`` what it was."""
        node.op_type, node.types, node.signature = self.op_type, self.types, self.signature


def _upgrade_batch_norm(body: Graph, frozen: Sequence[bool]) -> dict[int, _Old]:
    """Replace old batch-norm ops by the versions whose statistics have a type of their own, kept float32.

    Returns what the nodes were, by position among all nodes.
    """
    upgraded = {}
    for i, node in enumerate(body.all_nodes()):
        if node.op_type in _UPGRADES and not frozen[i]:
            upgraded[i] = _Old(node.op_type, node.types, node.signature)
            schema = find_schema("tf", _UPGRADES[node.op_type])
            assert schema is not None
            node.op_type = schema.op_type
            node.types = {**node.types, "U": float32}
            node.signature = schema.signature(node.attributes, node.types)
    return upgraded
