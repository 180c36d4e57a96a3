"""auto_mixed_precision: a float32 graph goes in, a mixed-precision graph comes out.

The order of things: verify, copy, build the type graph, paint it, apply the painting; verify again. What happens between is in
:mod:`~ampgraph.rewrite.tensorflow` and :mod:`~ampgraph.rewrite.onnx`.
"""

import dataclasses
from collections.abc import Collection
from typing import Any

from ..graph.collector import paused_collector
from ..graph.errors import GraphError, PolicyError, VerifyError, did_you_mean
from ..graph.graph import Graph
from ..graph.verify import verify
from .onnx import convert_model
from .policy import Policy
from .report import BodyReport, RewriteReport
from .scope import Scope
from .tensorflow import convert_graph


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


def convert(graph: Graph, policy: Policy, only: Collection[str] | None = None) -> RewriteResult:
    """Do what :func:`auto_mixed_precision` does, without verifying before and after.

    Args:
        graph: The graph.
        policy: What to rewrite for.
        only: Rewrite no other nodes than these, named by their first results, to see what they do to the outputs.
    """
    scope = Scope(policy, onnx=bool(graph.opsets), only=only)
    report = RewriteReport(policy, scope.lists)
    if policy.obstacle:
        report.notes.append(f"nothing was rewritten. {policy.obstacle}")
        report.bodies = [BodyReport(name, body, skipped=policy.obstacle) for name, body in _bodies(graph).items()]
        return RewriteResult(graph, False, report)
    with paused_collector():
        copy = graph.copy()
        if copy.opsets:
            report.bodies = [convert_model(copy, scope, report.notes)]
        else:
            report.bodies = convert_graph(copy, scope, report.notes)
        report.notes += scope.unused(graph)
        if not report.modified:
            report.notes += scope.too_wide(graph)
    report.notes = list(dict.fromkeys(report.notes))
    return RewriteResult(copy if report.modified else graph, report.modified, report)


def _bodies(graph: Graph) -> dict[str, Graph]:
    """Return the main graph under the empty name, and the functions under theirs."""
    return {"": graph, **graph.functions}
