"""The report: what was rewritten, what was not, and why, as text and JSON."""

import collections
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from ..graph.dtypes import DType, float32
from ..graph.errors import GraphError, did_you_mean
from ..graph.graph import Graph, Node, Value
from ..graph.schemas.ampgraph import is_op
from ..graph.wording import plural
from ..graph.wording import size as byte_size
from ..lists import OpLists
from . import model_report
from .casts import Applied
from .explain import Explainer, Explanation
from .painting import Painting
from .policy import Policy
from .regions import float_nodes
from .typegraph import CONSTANTS


@dataclasses.dataclass
class BodyReport:
    """What happened to the main graph or to one function body.

    Attributes:
        name: Name of the function, empty for the main graph.
        graph: The graph, rewritten if it was.
        painting: The decisions; None where the pass did not look.
        applied: What changed.
        upgraded: Nodes whose op was replaced by a version with separate statistics types.
        dropped_controls: Number of control inputs dropped because a data input says the same.
        frozen: Why a node may not be changed, or an empty string.
        skipped: Why the pass did not look at this body, or an empty string.
        names: What every node's first result was called before.
        labels: What nodes without a name were called before: by their first result, which may have another name now.
    """

    name: str
    graph: Graph
    painting: Painting | None = None
    applied: Applied = dataclasses.field(default_factory=Applied)
    upgraded: list[Node] = dataclasses.field(default_factory=list)
    dropped_controls: int = 0
    frozen: Callable[[Node], str] = lambda node: ""
    skipped: str = ""
    names: dict[Node, str] = dataclasses.field(default_factory=dict)
    labels: dict[Node, str] = dataclasses.field(default_factory=dict)

    def label(self, node: Node) -> str:
        """Return what a node was called before the rewrite."""
        return self.labels.get(node) or node.label

    @property
    def nodes(self) -> int:
        """Number of nodes before: those that were looked at, or all of a body that was skipped."""
        nodes = self.graph.nodes if self.painting is None else self.painting.typegraph.nodes
        return sum(map(is_op, nodes))

    @property
    def low(self) -> list[Node]:
        """Nodes that now compute at least one type in the low dtype; constants of ONNX models do not compute."""
        return [node for node in self.applied.changed if node.domain or node.op_type not in CONSTANTS]

    @property
    def modified(self) -> bool:
        """Whether anything changed."""
        return bool(self.applied.changed or self.applied.casts or self.upgraded or self.dropped_controls)


@dataclasses.dataclass
class RewriteReport:
    """What a rewrite did and why.

    Attributes:
        policy: The policy it followed.
        lists: The op lists it used.
        bodies: The main graph first, then the function bodies.
        notes: Sentences about the whole rewrite: why nothing was done, where the result differs from Grappler's,
            overrides that matched nothing.
        file_bytes: Bytes of the files before and after, data files included, where somebody wrote them.
    """

    policy: Policy
    lists: OpLists
    bodies: list[BodyReport] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    file_bytes: tuple[int, int] | None = None

    @property
    def target(self) -> DType:
        """The low dtype."""
        return self.policy.low

    @property
    def device_type(self) -> str:
        """Whose kernels count: ``"GPU"`` or ``"CPU"``."""
        return self.policy.device_type.upper()

    @property
    def modified(self) -> bool:
        """Whether anything changed."""
        return any(body.modified for body in self.bodies)

    @property
    def casts(self) -> int:
        """Number of casts that were added."""
        return sum(len(body.applied.casts) for body in self.bodies)

    @property
    def low(self) -> int:
        """Number of nodes that now compute at least one type in the low dtype."""
        return sum(len(body.low) for body in self.bodies)

    @property
    def kept(self) -> int:
        """Number of nodes that compute in float32 only."""
        return sum(len(float_nodes(body.painting)) for body in self.bodies if body.painting is not None)

    @property
    def constants(self) -> int:
        """Number of constants of an ONNX model that are now stored in the low dtype."""
        return sum(len(body.applied.stored) for body in self.bodies)

    @property
    def is_onnx(self) -> bool:
        """Whether what was rewritten is an ONNX model."""
        return bool(self.bodies and self.bodies[0].graph.opsets)

    @property
    def nodes(self) -> int:
        """Number of nodes before the rewrite, function bodies included."""
        return sum(body.nodes for body in self.bodies)

    def explain(self, node: str | None = None, function: str | None = None) -> Iterator[Explanation]:
        """Explain every float32 type of every node, or of the nodes called ``node``.

        Args:
            node: Node name, or that of its first result where it has none; all nodes when None.
            function: Only this function's body (empty string: the main graph).

        Raises:
            GraphError: If no node has that name.
        """
        found = False
        for body in self.bodies:
            if function is not None and body.name != function:
                continue
            painting = body.painting
            nodes = body.graph.all_nodes() if painting is None else painting.typegraph.nodes
            numbered = [(i, item) for i, item in enumerate(nodes) if node is None or node in (item.name, body.label(item))]
            found = found or bool(numbered)
            if painting is None:
                for _, item in numbered:
                    for key in (key for key, dtype in item.types.items() if dtype is float32):
                        yield Explanation(item.label, item.op_type, key, "float32", False, "skipped", body.skipped)
                continue
            explainer = Explainer(painting, self.lists, self.target, self.device_type, body.frozen)
            for i, item in numbered:
                for reason in explainer.explain([i]):
                    yield dataclasses.replace(reason, node=body.labels[item]) if item in body.labels else reason
        if node is not None and not found:
            raise GraphError(f"The graph has no node {node!r}.{did_you_mean(node, self.labels())}")

    def labels(self) -> dict[str, None]:
        """Return what the nodes were called before the rewrite, those of functions and bodies included."""
        names: dict[str, None] = {}
        for body in self.bodies:
            parts = [part.all_nodes() for part in body.graph.all_graphs()]
            for nodes in parts if body.painting is None else [body.painting.typegraph.nodes]:
                names.update((body.label(node), None) for node in nodes)
        return names

    def by_op(self) -> list[tuple[str, int, int]]:
        """Return (op type, types now low, types still float32) per op type, most low ones first.

        Constants and inputs of an ONNX model are left out.
        """
        low: collections.Counter[str] = collections.Counter()
        kept: collections.Counter[str] = collections.Counter()
        for body in self.bodies:
            if body.painting is None:
                continue
            graph = body.painting.typegraph
            for vertex in range(graph.first[-1]):
                if graph.is_float[vertex] and isinstance(graph.key(vertex), str):
                    node = graph.nodes[graph.owner[vertex]]
                    if not body.graph.opsets or (is_op(node) and node.op_type not in CONSTANTS):
                        counter = low if body.painting.allow[vertex] else kept
                        counter[node.op_type] += 1
        total = low + kept
        return [(op, low[op], kept[op]) for op in sorted(total, key=lambda op: (-low[op], -kept[op], op))]

    def bytes_saved(self) -> tuple[int, int, int]:
        """Return how many bytes fewer all results of one run take, and of how many values the size is known and unknown.

        A result that became low saves two bytes per element; the result of an added cast costs what it takes. Counted from
        ``Value.shape``: infer shapes first where the file has none (:func:`ampgraph.graph.infer.infer`).
        """
        saved = known = unknown = 0
        for body in self.bodies:
            values = [(value, 16) for node in body.applied.changed for value in node.outputs if value.dtype is self.target]
            values += [(cast.outputs[0], -_bits(cast.outputs[0])) for cast in body.applied.casts]
            for value, bits in values:
                size = value.shape.size
                known, unknown = known + (size is not None), unknown + (size is None)
                saved += bits * (size or 0) // 8
        return saved, known, unknown

    def text(self, most: int = 12) -> str:
        """Return a summary of one screen; ``most`` bounds the rows of its table."""
        return "\n".join([*self._summary(), *self._table(most), *(f"note: {note}" for note in self.notes), *self._skipped()])

    def _summary(self) -> Iterator[str]:
        measured = len(self.policy.ranges) + len(self.policy.kept)
        more = f", and {plural(measured, 'measured value')}" if measured else ""
        yield f"policy    {self.policy.without_measurements()}{more}"
        if self.is_onnx:
            yield from model_report.lines(self)
            return
        rows = self.by_op()
        low, kept = sum(row[1] for row in rows), sum(row[2] for row in rows)
        if self.policy.emulates:
            yield f"nodes     {self.nodes} before; {self.casts} casts emulate {self.target} around {low} types, which stay float32"
        elif self.low:
            yield f"nodes     {self.nodes} before, {self.low} of them now compute in {self.target}, {self.casts} casts added"
        elif any(body.painting for body in self.bodies):
            low_before = any(
                dtype is self.target for body in self.bodies for node in body.graph.nodes for dtype in node.types.values()
            )
            why = (
                f"it computes in {self.target} already"
                if low_before
                else "no AllowList op in it computes in float32 and may change"
            )
            yield f"nodes     {self.nodes}, none of them changed: {why}"
        else:
            yield f"nodes     {self.nodes}, none of them changed"
        changed = [body for body in self.bodies if body.modified]
        if len(self.bodies) > 1:
            yield f"functions {len(self.bodies) - 1}, {sum(1 for body in changed if body.name)} changed"
        upgraded = sum(len(body.upgraded) for body in self.bodies)
        if upgraded:
            yield f"upgraded  {upgraded} FusedBatchNorm ops to versions that keep their statistics in float32"
        saved, known, unknown = self.bytes_saved()
        if known > unknown:
            what = (
                f"memory    {byte_size(abs(saved))} {'less' if saved >= 0 else 'more'} for all results of a run, casts included"
            )
            yield what + (f" ({unknown} of {known + unknown} sizes unknown)" if unknown else "")
        if low and kept:
            yield f"types     {low} {self.target}, {kept} still float32"
        yield from model_report.hazard_lines(self)

    def _table(self, most: int) -> Iterator[str]:
        rows = [row for row in self.by_op() if row[1]]
        if rows:
            yield f"\n{'types by op':<36} {self.target.name:>9} {'float32':>9}"
            shown = rows if len(rows) <= most + 1 else rows[:most]
            yield from (f"{op:<36} {low:>9} {kept:>9}" for op, low, kept in shown)
            if len(rows) > len(shown):
                yield f"… and {len(rows) - len(shown)} more ops"

    def _skipped(self) -> Iterator[str]:
        skipped = [body for body in self.bodies if body.skipped and body.name and body.skipped != self.policy.obstacle]
        yield from (f"note: function {body.name!r} left alone: {body.skipped}" for body in skipped)

    def __str__(self) -> str:
        return self.text()

    def json(self) -> dict[str, Any]:
        """Return everything, every explanation included, as plain JSON data."""
        saved, known, unknown = self.bytes_saved()
        return {
            "policy": str(self.policy),
            "dtype": self.target.name,
            "device": self.device_type,
            "modified": self.modified,
            "nodes": self.nodes,
            "low": self.low,
            "casts": self.casts,
            "bytes_saved": saved if known else None,
            "values_of_known_size": known,
            "values_of_unknown_size": unknown,
            **(model_report.facts(self) if self.is_onnx else {}),
            "hazards": model_report.hazard_facts(self),
            "notes": self.notes,
            "bodies": [
                {
                    "name": body.name,
                    "nodes": body.nodes,
                    "modified": body.modified,
                    "skipped": body.skipped,
                    "upgraded": [node.name for node in body.upgraded],
                    "casts": [
                        {"name": cast.name, "source": str(cast.inputs[0])[1:], "to": str(cast.outputs[0].dtype)}
                        for cast in body.applied.casts
                    ],
                    "decisions": [dataclasses.asdict(item) for item in self.explain(function=body.name)],
                }
                for body in self.bodies
            ],
        }


def _bits(value: Value) -> int:
    return 0 if value.dtype is None else value.dtype.bits
