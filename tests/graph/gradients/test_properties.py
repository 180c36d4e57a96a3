"""Gradients of broadcasting, reductions and slices of any shape, known or not, agree with differences."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ampgraph.graph import Graph, Value, find_dtype
from ampgraph.graph.types import Dim, Shape
from tests.graph.gradients.check import agree, constant

F64 = find_dtype("float64")
SIZES = st.lists(st.integers(1, 3), max_size=4)


@st.composite
def broadcast_pairs(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Draw two shapes that broadcast."""
    full = draw(SIZES)
    shapes = []
    for _ in range(2):
        kept = full[draw(st.integers(0, len(full))) :]
        shapes.append([size if draw(st.booleans()) else 1 for size in kept])
    return shapes[0], shapes[1]


def stated(draw: st.DrawFn, shape: list[int]) -> Shape:
    """Draw what a graph says of a shape: nothing, or its sizes, some of them unknown or by a symbol."""
    how = draw(st.sampled_from(["unknown", "sizes", "some"]))
    if how == "unknown":
        return Shape(None)
    dims: list[Dim] = [draw(st.sampled_from([size, None, f"s{size}"])) if how == "some" else size for size in shape]
    return Shape(dims)


def inputs(draw: st.DrawFn, graph: Graph, *shapes: list[int]) -> tuple[list[Value], dict[str, Any]]:
    """Add an input for each shape; return them and arrays for them."""
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    values = [graph.add_input(f"x{k}", F64, stated(draw, shape)) for k, shape in enumerate(shapes)]
    return values, {f"x{k}": rng.uniform(0.5, 2, shape) for k, shape in enumerate(shapes)}


@settings(max_examples=60, deadline=None)
@given(st.data(), broadcast_pairs(), st.sampled_from(["AddV2", "Mul", "RealDiv", "SquaredDifference", "Pow"]))
def test_broadcasting(data: st.DataObject, shapes: tuple[list[int], list[int]], op: str) -> None:
    graph = Graph()
    values, feeds = inputs(data.draw, graph, *shapes)  # type: ignore[arg-type]
    agree(graph, graph.add(op, values).outputs, values, feeds)


@settings(max_examples=60, deadline=None)
@given(st.data(), SIZES, st.sampled_from(["EuclideanNorm", "Max", "Mean", "Prod", "Sum"]), st.booleans())
def test_reductions(data: st.DataObject, shape: list[int], op: str, keep: bool) -> None:
    graph = Graph()
    values, feeds = inputs(data.draw, graph, shape)  # type: ignore[arg-type]
    axes = data.draw(st.sets(st.integers(0, len(shape) - 1)) if shape else st.just(set()))
    signed = [axis - len(shape) if data.draw(st.booleans()) else axis for axis in sorted(axes)]
    result = graph.add(op, [values[0], constant(graph, np.array(signed, np.int32))], attributes={"keep_dims": keep})
    agree(graph, result.outputs, values, feeds)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_slices(data: st.DataObject, shape: list[int]) -> None:
    graph = Graph()
    values, feeds = inputs(data.draw, graph, shape)  # type: ignore[arg-type]
    bounds = [sorted((data.draw(st.integers(0, size)), data.draw(st.integers(0, size)))) for size in shape]
    ends = [constant(graph, np.array(column, np.int32)) for column in zip(*bounds, strict=True)]
    strides = constant(graph, np.array([data.draw(st.integers(1, 2)) for _ in shape], np.int32))
    attributes = {"begin_mask": data.draw(st.integers(0, 7)), "end_mask": data.draw(st.integers(0, 7))}
    agree(graph, graph.add("StridedSlice", [values[0], *ends, strides], attributes=attributes).outputs, values, feeds)
