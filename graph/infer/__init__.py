"""Dtype and shape inference: :func:`infer_dtypes`, :func:`infer_shapes`, and :func:`infer` for both.

Shape rules stand in tables by op family; an op without a rule gets results of unknown shape.
"""

from typing import TYPE_CHECKING

from .dtypes import infer_dtypes

if TYPE_CHECKING:
    from ..graph import Graph, Value

__all__ = ["infer", "infer_dtypes", "infer_shapes"]


def infer(graph: "Graph") -> bool:
    """Infer dtypes, then shapes; return whether anything became known.

    Raises:
        GraphError: If operand shapes do not fit an op, or contradict a shape that the graph states.
    """
    dtypes, shapes = infer_dtypes(graph), infer_shapes(graph)
    return bool(dtypes or shapes)


def infer_shapes(graph: "Graph") -> "list[Value]":
    """Find the shapes of all values of ``graph`` and of the functions in its library, as far as they are known.

    Shapes that the graph states (``Value.shape``) are refined, never changed into others. Functions are inferred for
    the operands they are called with; a value of a function body gets the shape it has in every call in this graph.
    The sizes of a graph's inputs may be symbols (``"batch"``), which are followed. Nothing is changed if an error is
    raised. Time is linear in the size of the graph.

    Returns:
        The values about whose shape more is known than before.

    Raises:
        GraphError: If operand shapes do not fit an op, or contradict a shape that the graph states. The message names
            node, operand shapes and what was expected.
    """
    if graph.opsets:
        from ..formats.onnx_shapes import infer_shapes as infer_onnx

        return infer_onnx(graph)
    from ..types import Shape
    from .control import NOTHING
    from .dims import merge
    from .engine import Library, Scope

    library = Library(graph.functions)
    scopes = []
    if graph not in graph.functions.values():
        scope = Scope(graph, library, [NOTHING] * len(graph.inputs))
        scope.run()
        scopes.append(scope.facts)
    done: set[str] = set()
    while todo := [
        name for name in graph.functions if name not in done and (name in library.opaque or name not in library.found)
    ]:
        for name in todo:
            library.infer(name, [NOTHING] * len(graph.functions[name].inputs))
        done.update(todo)
    scopes += library.found.values()
    refined: list[Value] = []
    for facts in scopes:
        for value, (dims, _) in facts.items():
            if dims is not None and dims != value.shape.dims:
                value.shape = Shape(merge(value.shape.dims, dims))
                refined.append(value)
    return refined
