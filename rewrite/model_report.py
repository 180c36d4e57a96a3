"""What a report says about ONNX models: nodes, constants, file sizes, what keeps most nodes in float32; and about hazards."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..graph.graph import Node
from ..graph.wording import plural, size
from .explain import Explainer
from .hazards import Hazard
from .regions import Region, largest_float_region

if TYPE_CHECKING:
    from .report import BodyReport, RewriteReport


def lines(report: "RewriteReport") -> Iterator[str]:
    """Yield the lines of the summary between the policy and the table of ops."""
    low, kept, name = report.low, report.kept, report.target.name
    if report.low:
        rest = report.nodes - low - kept
        others = f", {rest} without floats to compute" if rest else ""
        yield f"nodes     {report.nodes}: {low} in {name}, {kept} in float32{others}; {plural(report.casts, 'Cast')} added"
    else:
        yield f"nodes     {report.nodes}, none of them changed"
    if report.constants:
        yield f"constants {report.constants} stored in {name}"
    if report.file_bytes is not None:
        before, after = report.file_bytes
        yield f"size      {size(before)} -> {size(after)} ({after / max(before, 1):.0%})"
    yield from hazard_lines(report)
    region = float_region(report)
    if region is not None and report.low:
        where, why = region
        yield (
            f"float32   the largest region is {plural(len(where.nodes), 'node')} at {_name(report, where.nodes[0])}, "
            f"{'held' if where.held == len(where.nodes) else f'{where.held} of them held'} by {why}"
        )


def facts(report: "RewriteReport") -> dict[str, Any]:
    """Return the same as plain JSON data."""
    found = float_region(report)
    sizes = report.file_bytes
    return {
        "float": report.kept,
        "constants_stored": report.constants,
        "size": None if sizes is None else {"before": sizes[0], "after": sizes[1]},
        "float_region": None
        if found is None
        else {
            "nodes": len(found[0].nodes),
            "first": report.bodies[0].label(found[0].nodes[0]),
            "held": found[0].held,
            "why": found[1],
        },
    }


def hazard_lines(report: "RewriteReport") -> Iterator[str]:
    """Yield the lines of the summary about hazards, of TensorFlow graphs too: how many of each kind, and an example."""
    found = _by_code(report)
    if found:
        yield "hazards   " + ", ".join(f"{code} {len(nodes)}" for code, nodes in found.items())
        yield from (f"          {code}: {_name(report, nodes[0][0])}, {nodes[0][1].why}" for code, nodes in found.items())


def hazard_facts(report: "RewriteReport") -> list[dict[str, str]]:
    """Return the hazards as plain JSON data."""
    return [{"code": hazard.code, "node": body.label(node), "why": hazard.why} for body, node, hazard in hazards(report)]


def hazards(report: "RewriteReport") -> "list[tuple[BodyReport, Node, Hazard]]":
    """Return the nodes that something besides the op lists keeps in float32, where, and what; each once per kind."""
    found: dict[tuple[Node, str], tuple[BodyReport, Node, Hazard]] = {}
    for body in report.bodies:
        if body.painting is not None:
            graph = body.painting.typegraph
            for vertex, hazard in body.painting.facts.hazards.items():
                if graph.owner[vertex] < len(graph.nodes) and graph.is_float[vertex] and not body.painting.allow[vertex]:
                    node = graph.nodes[graph.owner[vertex]]
                    found.setdefault((node, hazard.code), (body, node, hazard))
    return list(found.values())


def float_region(report: "RewriteReport") -> tuple[Region, str] | None:
    """Return the largest connected float32 region and what most of it is held by; None if there is none."""
    body = report.bodies[0]
    region = None if body.painting is None else largest_float_region(body.painting)
    return None if region is None else (region, _why(report, body, region.origin))


def _why(report: "RewriteReport", body: "BodyReport", vertex: int) -> str:
    painting = body.painting
    assert painting is not None
    graph = painting.typegraph
    number = graph.owner[vertex]
    if number >= len(graph.nodes):
        return "a result, and outputs keep their dtype"
    node = graph.nodes[number]
    hazard = painting.facts.hazards.get(vertex)
    explainer = Explainer(painting, report.lists, report.target, report.device_type, body.frozen)
    reasons = (item.why for item in explainer.explain([number]) if item.key == graph.key(vertex))
    return f"{_name(report, node)}: " + (hazard.why if hazard else next(reasons, "it keeps its types"))


def _name(report: "RewriteReport", node: Node) -> str:
    return f"{report.bodies[0].label(node)!r} ({node.op_type})"


def _by_code(report: "RewriteReport") -> dict[str, list[tuple[Node, Hazard]]]:
    """Group the hazards by kind, the most frequent first."""
    found: dict[str, list[tuple[Node, Hazard]]] = {}
    for _, node, hazard in hazards(report):
        found.setdefault(hazard.code, []).append((node, hazard))
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))
