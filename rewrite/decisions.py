"""The decisions of a rewrite as a person reads them: a table by op, or the reasons for single nodes."""

import dataclasses
from collections.abc import Collection, Iterator
from typing import Any

from ..graph.wording import table
from .explain import Explanation
from .report import RewriteReport

#: The columns of :attr:`Decisions.rows`.
HEADER = ("op", "dtype", "types", "the first of them, and why")


@dataclasses.dataclass(frozen=True)
class Decisions:
    """Decisions of one rewrite, all or those about some nodes.

    Attributes:
        items: Each with the name of the function it is in, empty for the main graph.
        named: Whether they are about nodes that somebody asked for; ``str`` then gives a line for each, else a table by op.
        notes: Sentences about the whole.
        title: What was rewritten, where that has to be said.
    """

    items: tuple[tuple[str, Explanation], ...] = ()
    named: bool = False
    notes: tuple[str, ...] = ()
    title: str = ""

    def __iter__(self) -> Iterator[Explanation]:
        return (item for _, item in self.items)

    @property
    def rows(self) -> list[tuple[str, str, int, str]]:
        """A row for each op and dtype: how many types, and the first reason."""
        groups: dict[tuple[str, bool], list[tuple[str, Explanation]]] = {}
        for function, item in self.items:
            groups.setdefault((item.op_type, item.low), []).append((function, item))
        rows = []
        for (op, _), group in sorted(groups.items(), key=lambda entry: (entry[0][0], not entry[0][1])):
            function, first = group[0]
            rows.append((op, first.dtype, len(group), f"{_place(function)}{first.node}: {first.why}"))
        return rows

    @property
    def lines(self) -> list[str]:
        """A line for each node, or several where the reasons for its types differ."""
        groups: dict[tuple[str, Explanation], list[str]] = {}
        for function, item in self.items:
            groups.setdefault((function, dataclasses.replace(item, key="")), []).append(item.key)
        return [f"{_place(function)}{dataclasses.replace(item, key=_keys(keys))}" for (function, item), keys in groups.items()]

    def json(self) -> list[dict[str, Any]]:
        """Return the decisions as plain JSON data."""
        return [{"function": function, **dataclasses.asdict(item)} for function, item in self.items]

    def __str__(self) -> str:
        body = self.lines if self.named else table(HEADER, self.rows) if self.items else []
        return "\n".join([*([self.title] if self.title else ()), *body, *(f"note: {text}" for text in self.notes)])


def decisions_of(
    report: RewriteReport, nodes: Collection[str] | None = None, *, function: str | None = None, only: str | None = None
) -> Decisions:
    """Return the decisions that a report holds.

    Args:
        report: What a rewrite did.
        nodes: Only those about nodes of these names (for nodes without one: of their first results).
        function: Only those in this function's body.
        only: ``"low"`` or ``"float"``: only what becomes low precision, or what stays float32.
    """
    bodies = [body for body in report.bodies if body.painting is not None and (function is None or body.name == function)]
    items = (
        (body.name, item)
        for body in bodies
        for item in report.explain(function=body.name)
        if (nodes is None or item.node in nodes) and (only is None or item.low == (only == "low"))
    )
    decided = any(body.painting is not None for body in report.bodies)
    return Decisions(tuple(items), nodes is not None, tuple(report.notes if nodes is None or not decided else ()))


def without_types(report: RewriteReport, decisions: Decisions, nodes: Collection[str]) -> list[str]:
    """Return a sentence for each of some nodes that the decisions say nothing about, where the rewrite looked at the graph."""
    if all(body.painting is None for body in report.bodies):
        return []
    explained = {item.node for item in decisions}
    return [f"node {node!r} has no type to decide about: none is float32" for node in nodes if node not in explained]


def _place(function: str) -> str:
    return f"in function {function!r}: " if function else ""


def _keys(keys: list[str]) -> str:
    """Return keys as text, runs of list entries short: ``T[0], T[1], U`` as ``T[0..1], U``."""
    runs: list[tuple[str, int, int]] = []
    for key in keys:
        name, _, index = key.rstrip("]").partition("[")
        place = int(index) if index else -1
        if runs and place > 0 and (runs[-1][0], runs[-1][2] + 1) == (name, place):
            runs[-1] = name, runs[-1][1], place
        else:
            runs.append((name, place, place))
    return ", ".join(
        name if first < 0 else f"{name}[{first}]" if first == last else f"{name}[{first}..{last}]" for name, first, last in runs
    )
