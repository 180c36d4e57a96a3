"""A policy, worked out for one rewrite."""

import functools
from collections.abc import Collection, Iterable, Mapping

from ..graph.dtypes import DType
from ..graph.errors import PolicyError, did_you_mean
from ..graph.graph import Graph, Node
from ..graph.schemas.onnx import op_names
from ..graph.schemas.tf import op_types
from ..graph.types import FunctionRef
from .policy import Policy
from .typegraph import CODES, UNLISTED, op_name

_FEEDS = ("Placeholder", "PlaceholderV2", "Input")


class Scope:
    """The policy, worked out for one rewrite.

    Args:
        policy: What is asked for.
        onnx: Whether an ONNX model is rewritten.
        only: Names of the nodes that may become low at all, see :func:`~ampgraph.rewrite.only.keep_only`; None = all.
    """

    def __init__(self, policy: Policy, *, onnx: bool = False, only: Collection[str] | None = None) -> None:
        self.policy = policy
        self.only = only
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

    def too_wide(self, graph: Graph) -> list[str]:
        """Return a note if an op on the AllowList computes in float64, which is never rewritten."""
        nodes = (node for body in graph.all_graphs() for node in body.nodes if op_name(node) in self.lists.allow)
        wide = next((node for node in nodes if any(dtype.name == "float64" for dtype in node.types.values())), None)
        if wide is None:
            return []
        return [f"{wide.label!r} ({wide.op_type}) computes in float64, and only float32 is rewritten: give it float32 arrays"]

    def unused(self, graph: Graph) -> list[str]:
        """Return a note for every edit, override and preserved name that matches nothing in a graph as it was, and inside.

        Raises:
            PolicyError: If a name in ``keep_io`` matches nothing: all inputs and outputs would lose their dtypes.
        """
        notes = [f"override {str(rule)!r} matches no node of this graph" for rule in self.overrides.unused()]
        measured = [*(name for name, _, _ in self.policy.ranges), *(name for name, _ in self.policy.kept)]
        if not (self.lists.edits or self.policy.preserve or isinstance(self.policy.keep_io, tuple) or measured):
            return notes
        bodies = graph.all_graphs()
        if measured:
            values = {value.name for body in bodies for node in body.all_nodes() for value in node.outputs}
            strangers = [name for name in measured if name not in values]
            if strangers:
                notes.append(
                    f"{len(strangers)} of {len(measured)} measured values are not in this graph, such as {strangers[0]!r}"
                )
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
            if strange := next((name for name in self.policy.keep_io if name not in known), None):
                raise PolicyError(f"{strange!r} in keep_io is no input or output of this graph.{did_you_mean(strange, known)}")
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
