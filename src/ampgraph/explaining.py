"""Saying why nodes compute in low precision or in float32, of whatever was rewritten or could be."""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

from ampgraph.graph.errors import GraphError, did_you_mean
from ampgraph.graph.graph import Graph
from ampgraph.rewrite import Explanation, RewriteReport, RewriteResult, auto_mixed_precision
from ampgraph.rewrite.decisions import Decisions, decisions_of, without_types
from ampgraph.train.function import Function, Specialization
from ampgraph.train.model import Model


@dataclasses.dataclass(frozen=True)
class Explained:
    """What :func:`explain` returns; iterating gives all decisions, ``str`` the tables.

    Attributes:
        parts: The decisions of each rewrite: one for each signature of a function, else just one.
    """

    parts: tuple[Decisions, ...]

    def __iter__(self) -> Iterator[Explanation]:
        return (item for part in self.parts for item in part)

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.parts))

    def __repr__(self) -> str:
        return str(self)


def explain(what: Any, *nodes: str) -> Explained:
    """Say why nodes would be rewritten or not, as the command ``ampgraph explain`` does.

    Args:
        what: A :func:`~ampgraph.function`, of which every signature that was traced so far is explained; one of its
            specializations; a model that was compiled, for its training step; what :func:`~ampgraph.auto_mixed_precision`
            returned, or the report in it; or a graph, which is rewritten for the default policy to see.
        *nodes: Names of the nodes to explain, each type of theirs. Without, ``str`` of the result is a table by op with the first
            reason of each kind.

    Returns:
        The decisions, and sentences where there are none: about functions that were not traced or are not rewritten.

    Raises:
        GraphError: If it is something else, or no graph in it has a node of that name.
        TrainingError: If it is a model that was not compiled.
        VerifyError, PassError: As for :func:`~ampgraph.auto_mixed_precision`, if it is a graph.

    Example:
        >>> import ampgraph as ag
        >>> graph = ag.parse_graph('''graph g() {
        ...   %x: f32[8,8] = tf.Placeholder<dtype=f32>() {shape=shape[8,8]}
        ...   %y: f32[8,8] = tf.MatMul<T=f32>(%x, %x)
        ...   return %y
        ... }''')
        >>> print(ag.explain(graph, "x", "y"))
        x (Placeholder) dtype: float32: it is an input, and inputs keep their dtype
        y (MatMul) T: float32: the graph returns it, and outputs keep their dtype
    """
    if isinstance(what, functools.partial):
        what = what.func  # a function that is a method
    title = getattr(what, "__name__", "function")
    if isinstance(what, Model):
        what, title = what.train_step, "train_step"
    rewrites: list[tuple[str, Graph | None, RewriteReport | None]]
    match what:
        case Function():
            if not what.cache:
                sentence = f"{title} has not been traced yet, so nothing was decided; call it first"
                return Explained((Decisions(notes=(sentence,)),))
            rewrites = [(f"{title}({found.signature})", found.graph, found.report) for found in what.cache.values()]
        case Specialization():
            rewrites = [("", what.graph, what.report)]
        case RewriteResult():
            rewrites = [("", None, what.report)]
        case RewriteReport():
            rewrites = [("", None, what)]
        case Graph():
            rewrites = [("", None, auto_mixed_precision(what).report)]
        case _:
            raise GraphError(
                "explain takes a function made by ampgraph.function, a model, what ampgraph.auto_mixed_precision returned, or a "
                f"graph. Received: {what!r}"
            )
    names: dict[str, None] = {}
    for _, graph, report in rewrites if nodes else ():
        if report is not None:
            names.update(report.labels())
        elif graph is not None:
            names.update((node.label, None) for part in graph.all_graphs() for node in part.all_nodes())
    for node in nodes:
        if node not in names:
            raise GraphError(f"No node is called {node!r}.{did_you_mean(node, names)}")
    return Explained(tuple(_part(title, report, nodes) for title, _, report in rewrites))


def _part(title: str, report: RewriteReport | None, nodes: tuple[str, ...]) -> Decisions:
    """Return the decisions of one rewrite, or a sentence that says there was none."""
    if report is None:
        why = "it is not rewritten: neither policy= of ampgraph.function nor an optimizer that differentiates in it says for what"
        return Decisions(notes=(why,), title=title)
    found = decisions_of(report, nodes or None)
    notes = (*found.notes, *without_types(report, found, nodes))
    return dataclasses.replace(found, notes=notes, title=title)
