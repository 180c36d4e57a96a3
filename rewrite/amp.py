"""auto_mixed_precision: a float32 graph goes in, a mixed-precision graph comes out.

The order of things: verify, copy, build the type graph, paint it, apply the painting; verify again. A TensorFlow graph and each
of its functions are done one by one: nothing is decided across a call, and function bodies keep their signatures. An ONNX model
is one type graph (:mod:`~ampgraph.rewrite.onnx`).
"""

import contextlib
import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..graph.collector import paused_collector
from ..graph.dtypes import DType, float32
from ..graph.errors import GraphError, PassError, PolicyError, VerifyError, did_you_mean
from ..graph.graph import Graph, Node
from ..graph.infer import infer_shapes
from ..graph.schema import Signature
from ..graph.schemas import find_schema
from ..graph.schemas.onnx import op_names
from ..graph.schemas.tf import op_types
from ..graph.types import FunctionRef, Placeholder
from ..graph.verify import verify
from .casts import apply
from .cleanup import drop_needless_casts
from .clusters import ListBodies, find_list_clusters
from .constants import is_constant
from .emulate import emulate
from .fold import fold_large_constants
from .onnx import carry_out, decide, live_graphs
from .opset import raise_as_needed
from .paint import paint
from .painting import Painting
from .policy import Policy
from .report import BodyReport, RewriteReport
from .typegraph import CLEAR, CODES, UNLISTED, TypeGraph, op_name

#: Ops whose statistics share the type of the data, and the versions that keep them apart.
_UPGRADES = {"FusedBatchNorm": "FusedBatchNormV2", "FusedBatchNormGrad": "FusedBatchNormGradV2"}
_FEEDS = ("Placeholder", "PlaceholderV2", "Input")


@dataclasses.dataclass(frozen=True)
class RewriteResult:
    """What a rewrite returns.

    Attributes:
        graph: The rewritten graph; the graph that was given, itself, when nothing changed.
        modified: Whether anything changed.
        report: What was decided and why.
    """

    graph: Graph
    modified: bool
    report: RewriteReport


def auto_mixed_precision(graph: Graph, policy: Policy | None = None, **settings: Any) -> RewriteResult:
    """Rewrite a float32 graph to mixed precision.

    The given graph is not changed. The result type-checks, keeps the names and dtypes of inputs and outputs, and converts
    only what the policy's lists call safe.

    Args:
        graph: Any graph that verifies.
        policy: What to rewrite for; the default policy (preset ``safe``, float16, a GPU of capability 8.0) when None.
        **settings: Fields of :class:`Policy`, instead of ``policy`` or replacing some of its fields.

    Returns:
        The new graph, whether it differs, and a report.

    Raises:
        VerifyError: If the given graph breaks an invariant.
        PassError: If the graph cannot be rewritten (under ``grappler``: loop state that leaves its loop, and attributes that
            no definition knows).
        PolicyError: If the policy contradicts itself.

    Example:
        >>> from ampgraph.graph import Graph, find_dtype
        >>> g = Graph()
        >>> x = g.add("Placeholder", name="x", types={"dtype": find_dtype("f32")}).outputs[0]
        >>> y = g.add("MatMul", [x, x], name="y").outputs[0]
        >>> z = g.add("Identity", [y], name="z").outputs[0]
        >>> g.outputs, g.output_names = [z], ["z"]
        >>> result = auto_mixed_precision(g)
        >>> result.modified, result.graph.node("y").types
        (True, {'T': float16})
    """
    if not isinstance(graph, Graph):
        raise GraphError(f"auto_mixed_precision takes a Graph; load a file with ampgraph.load. Received: {graph!r}")
    fields = [field.name for field in dataclasses.fields(Policy)]
    if unknown := next((name for name in settings if name not in fields), None):
        raise PolicyError(f"A policy has no field {unknown!r}; it has {', '.join(fields)}.{did_you_mean(unknown, fields)}")
    policy = dataclasses.replace(policy or Policy(), **settings)
    verify(graph)
    result = convert(graph, policy)
    if result.modified:
        try:
            verify(result.graph)
        except VerifyError as error:
            if policy.level != "UNSAFE_FORCE_ALL":
                raise
            result.report.notes.append(f"UNSAFE_FORCE_ALL left an invalid graph, as Grappler does. {error}")
    return result


def convert(graph: Graph, policy: Policy) -> RewriteResult:
    """Do what :func:`auto_mixed_precision` does, without verifying before and after."""
    scope = _Scope(policy, onnx=bool(graph.opsets))
    report = RewriteReport(policy, scope.lists)
    if policy.obstacle:
        report.notes.append(f"nothing was rewritten. {policy.obstacle}")
        report.bodies = [BodyReport(name, body, skipped=policy.obstacle) for name, body in _bodies(graph).items()]
        return RewriteResult(graph, False, report)
    with paused_collector():
        copy = graph.copy()
        if copy.opsets:
            report.bodies.append(_convert_model(copy, scope, report.notes))
            report.notes += scope.unused(graph.all_graphs())
            return RewriteResult(copy if report.modified else graph, report.modified, report)
        bodies = {"": copy, **scope.functions_of(copy)}
        lists_in_bodies = ListBodies(copy.functions)
        for name, body in bodies.items():
            report.bodies.append(_convert_body(name, body, scope, lists_in_bodies, report.notes))
        report.bodies += [
            BodyReport(name, body, skipped="nothing in the main graph calls it")
            for name, body in copy.functions.items()
            if name not in bodies
        ]
    report.notes += scope.unused([graph, *graph.functions.values()])
    report.notes = list(dict.fromkeys(report.notes))
    return RewriteResult(copy if report.modified else graph, report.modified, report)


def _bodies(graph: Graph) -> dict[str, Graph]:
    """Return the main graph under the empty name, and the functions under theirs."""
    return {"": graph, **graph.functions}


class _Scope:
    """The policy, worked out for one rewrite."""

    def __init__(self, policy: Policy, *, onnx: bool = False) -> None:
        self.policy = policy
        self.exact = policy.preset == "grappler"
        self.low: DType = policy.low
        self.device_type = policy.device_type.upper()
        self.overrides = policy.overrides()
        self.lists = policy.lists(onnx=onnx)
        self.placement = functools.cache(self._placement)

    def _placement(self, device: str) -> str:
        """Return why nodes with this device string may not change, or an empty string."""
        if self.policy.may_change(device):
            return ""
        devices = self.policy.devices
        if not devices.is_on(device, self.device_type):
            return f"it is placed on {device or devices.default_device.name}, not on a {self.device_type}"
        return "its GPU has compute capability below 7.0"

    def color_of(self, op_type: str) -> int:
        """Return the list color of an op. Casts have none: they go with what they connect."""
        return UNLISTED if op_type == "Cast" and not self.exact else CODES[self.lists.list_of(op_type)]

    def functions_of(self, graph: Graph) -> Mapping[str, Graph]:
        """Return the function bodies to rewrite: Grappler's are those the main graph reaches."""
        if not self.exact or not graph.functions:
            return graph.functions
        found: dict[str, Graph] = {}
        stack = [graph]
        while stack:
            for name in _called(stack.pop()):
                if name in graph.functions and name not in found:
                    found[name] = graph.functions[name]
                    stack.append(found[name])
        return found

    def returned(self, body: Graph) -> set[Node]:
        """Return the nodes whose results a TensorFlow graph returns and which keep their dtype therefore."""
        if body.is_function:
            return set()
        outputs = zip(body.outputs, body.output_names, strict=True)
        return {value.producer for value, name in outputs if self.policy.keeps(name)}

    def frozen(self, body: Graph) -> dict[Node, str]:
        """Return the nodes of ``body`` that must not be changed, wherever they are placed, and why."""
        reasons: dict[Node, str] = {}
        by_file = "it is a control output of the function" if body.is_function else "the file refers to it by name"
        preserved = dict.fromkeys(body.attributes.get("preserved", ()), by_file)
        if not body.is_function:
            preserved.update(dict.fromkeys(self.policy.preserve, "the policy preserves it by name"))
        reasons.update((node, "the graph returns it, and outputs keep their dtype") for node in self.returned(body))
        for node in body.all_nodes():
            if node.op_type in _FEEDS:
                reasons[node] = "it is an input, and inputs keep their dtype"
            elif "_grappler_do_not_remove" in node.attributes and node.attributes["_grappler_do_not_remove"] is True:
                reasons[node] = "its attribute _grappler_do_not_remove preserves it"
            elif node.name in preserved:
                reasons.setdefault(node, preserved[node.name])
        return reasons

    def overridden(self, nodes: Iterable[Node], reasons: dict[Node, str]) -> dict[int, int]:
        """Return the list colors that overrides give single nodes, by position; add to ``reasons`` those they freeze."""
        colors: dict[int, int] = {}
        for i, node in enumerate(nodes if self.overrides else ()):
            rule = self.overrides.find(node.label)
            if rule is not None:
                colors[i] = CODES[rule.color] if self.exact or node.op_type != "Cast" else UNLISTED
                if rule.color is None:
                    reasons[node] = f"the policy's override {str(rule)!r} keeps its types"
        return colors

    def unused(self, bodies: Sequence[Graph]) -> list[str]:
        """Return a note for every edit, override and preserved name that matches nothing in the graphs as they were."""
        notes = [f"override {str(rule)!r} matches no node of this graph" for rule in self.overrides.unused()]
        if self.lists.edits:
            ops = {op_name(node) for body in bodies for node in body.nodes}
            vocabulary = op_names() if bodies[0].opsets else tuple(op_types())
            unknown = set(self.lists.unknown((*vocabulary, *ops)))
            for edit in self.lists.unused(ops):
                if edit in unknown:
                    what = f"names an op that nobody defines.{did_you_mean(edit.op, vocabulary)}"
                else:
                    what = "matches no op of this graph" if edit.op not in ops else "changes nothing: the op was there already"
                notes.append(f"list edit {str(edit)!r} {what}")
        missing = (name for name in self.policy.preserve if not any(body.has_node(name) for body in bodies))
        notes += [f"preserved name {name!r} matches no node of this graph" for name in missing]
        if isinstance(self.policy.keep_io, tuple):
            known = [*(value.name for value in bodies[0].inputs), *bodies[0].output_names]
            strange = [name for name in self.policy.keep_io if name not in known]
            notes += [f"{name!r} in keep_io is no input or output of this graph.{did_you_mean(name, known)}" for name in strange]
        return notes


def _called(graph: Graph) -> Iterable[str]:
    """Yield the names of functions a graph refers to, by attribute or as an op."""
    for node in graph.nodes:
        if node.schema is not None and node.schema.is_call:
            yield node.op_type
        for value in node.attributes.values():
            if isinstance(value, FunctionRef):
                yield value.name
            elif isinstance(value, list):
                yield from (item.name for item in value if isinstance(item, FunctionRef))


def _convert_body(name: str, body: Graph, scope: _Scope, bodies: ListBodies, notes: list[str]) -> BodyReport:
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
    clusters = find_list_clusters(typegraph, bodies if scope.exact else None)
    kept = scope.returned(body)
    report.painting = painting = paint(
        typegraph,
        clusters,
        kept=kept,
        force_all=scope.lists.force_all,
        exact=scope.exact,
        lists_may_differ=scope.policy.emulates,
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


def _convert_model(model: Graph, scope: _Scope, notes: list[str]) -> BodyReport:
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
    report.painting = decide(model, scope.policy, scope.lists, overrides, reasons)
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
