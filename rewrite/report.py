"""The report: what was rewritten, what was not, and why, as text and JSON."""

import collections
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from ..graph.dtypes import DType
from ..graph.errors import GraphError, did_you_mean
from ..graph.graph import Node
from ..lists import OpLists
from .casts import Applied
from .explain import Explanation, explain
from .paint import Painting
from .policy import Policy


@dataclasses.dataclass
class BodyReport:
    """What happened to the main graph or to one function body.

    Attributes:
        name: Name of the function, empty for the main graph.
        nodes: Number of nodes before.
        painting: The decisions; None where the pass did not look.
        applied: What changed.
        upgraded: Nodes whose op was replaced by a version with separate statistics types.
        dropped_controls: Number of control inputs dropped because a data input says the same.
        frozen: Why a node may not be changed, or an empty string.
        skipped: Why the pass did not look at this body, or an empty string.
    """

    name: str
    nodes: int
    painting: Painting | None = None
    applied: Applied = dataclasses.field(default_factory=Applied)
    upgraded: list[Node] = dataclasses.field(default_factory=list)
    dropped_controls: int = 0
    frozen: Callable[[Node], str] = lambda node: ""
    skipped: str = ""

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
    """

    policy: Policy
    lists: OpLists
    bodies: list[BodyReport] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)

    @property
    def target(self) -> DType:
        """The low dtype."""
        return self.policy.low

    @property
    def device_type(self) -> str:
        """Whose kernels count: ``"GPU"`` or ``"CPU"``."""
        return self.policy.target.type.upper()

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
        return sum(len(body.applied.changed) for body in self.bodies)

    @property
    def nodes(self) -> int:
        """Number of nodes before the rewrite, function bodies included."""
        return sum(body.nodes for body in self.bodies)

    def explain(self, node: str | None = None, function: str | None = None) -> Iterator[Explanation]:
        """Explain every float32 type of every node, or of the nodes called ``node``.

        Args:
            node: Node name; all nodes when None.
            function: Only this function's body (empty string: the main graph).

        Raises:
            GraphError: If no node has that name.
        """
        found = False
        for body in self.bodies:
            if body.painting is None or (function is not None and body.name != function):
                continue
            if node is not None and not any(item.name == node for item in body.painting.typegraph.nodes):
                continue
            found = True
            for item in explain(body.painting, self.lists, self.target, self.device_type, body.frozen):
                if node is None or item.node == node:
                    yield item
        if node is not None and not found:
            names = (n.name for body in self.bodies if body.painting for n in body.painting.typegraph.nodes)
            raise GraphError(f"The graph has no node {node!r}.{did_you_mean(node, names)}")

    def by_op(self) -> list[tuple[str, int, int]]:
        """Return (op type, types now low, types still float32) per op type, most frequent first."""
        low: collections.Counter[str] = collections.Counter()
        kept: collections.Counter[str] = collections.Counter()
        for body in self.bodies:
            if body.painting is None:
                continue
            graph = body.painting.typegraph
            for vertex in range(graph.first[-1]):
                if graph.is_float[vertex] and isinstance(graph.key(vertex), str):
                    counter = low if body.painting.allow[vertex] else kept
                    counter[graph.nodes[graph.owner[vertex]].op_type] += 1
        total = low + kept
        return [(op, low[op], kept[op]) for op, _ in sorted(total.items(), key=lambda item: (-item[1], item[0]))]

    def bytes_saved(self) -> tuple[int, int]:
        """Return the bytes per run that values in the low dtype save, and how many such values have no known shape.

        Counted from ``Value.shape``, so infer shapes first where the file has none. Two bytes per element.
        """
        saved = unknown = 0
        for body in self.bodies:
            for node in body.applied.changed:
                for value in node.outputs:
                    if value.dtype is self.target:
                        size = value.shape.size
                        saved += 2 * (size or 0)
                        unknown += size is None
        return saved, unknown

    def text(self, most: int = 12) -> str:
        """Return a summary of one screen; ``most`` bounds the rows of its table."""
        lines = [
            f"policy    {self.policy}",
            f"nodes     {self.nodes} before, {self.low} of them now compute in {self.target}, {self.casts} casts added",
        ]
        changed = [body for body in self.bodies if body.modified]
        if len(self.bodies) > 1:
            lines.append(f"functions {len(self.bodies) - 1}, {sum(1 for body in changed if body.name)} changed")
        upgraded = sum(len(body.upgraded) for body in self.bodies)
        if upgraded:
            lines.append(f"upgraded  {upgraded} FusedBatchNorm ops to versions that keep their statistics in float32")
        saved, unknown = self.bytes_saved()
        if saved:
            lines.append(
                f"memory    {_bytes(saved)} less for the results of these nodes"
                + (f" ({unknown} of unknown size left out)" if unknown else "")
            )
        rows = [row for row in self.by_op() if row[1]]
        if rows:
            lines += ["", f"{'op':<36} {self.target.name:>9} {'float32':>9}"]
            lines += [f"{op:<36} {low:>9} {kept:>9}" for op, low, kept in rows[:most]]
            if len(rows) > most:
                lines.append(f"… and {len(rows) - most} more ops")
        lines += [f"note: {note}" for note in self.notes]
        lines += [f"note: function {body.name!r} left alone: {body.skipped}" for body in self.bodies if body.skipped]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()

    def json(self) -> dict[str, Any]:
        """Return everything, every explanation included, as plain JSON data."""
        saved, unknown = self.bytes_saved()
        return {
            "policy": str(self.policy),
            "dtype": self.target.name,
            "device": self.device_type,
            "modified": self.modified,
            "nodes": self.nodes,
            "low": self.low,
            "casts": self.casts,
            "bytes_saved": saved,
            "values_of_unknown_size": unknown,
            "notes": self.notes,
            "bodies": [
                {
                    "name": body.name,
                    "nodes": body.nodes,
                    "modified": body.modified,
                    "skipped": body.skipped,
                    "upgraded": [node.name for node in body.upgraded],
                    "casts": [
                        {"name": cast.name, "source": str(cast.inputs[0])[1:], "to": str(cast.types["DstT"])}
                        for cast in body.applied.casts
                    ],
                    "decisions": [dataclasses.asdict(item) for item in self.explain(function=body.name)] if body.painting else [],
                }
                for body in self.bodies
            ],
        }


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError
