"""Compare gradients with differences."""

import dataclasses
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ampgraph.graph import Graph, Value
from ampgraph.graph.dtypes import DType, dtype_of_array, find_dtype
from ampgraph.graph.gradients import gradients
from ampgraph.graph.types import Shape, Tensor
from ampgraph.graph.verify import verify
from ampgraph.kernels.program import compile

Run = Callable[[Mapping[str, Any]], list[Any]]


@dataclasses.dataclass(frozen=True)
class Case:
    """An op with operands.

    Attributes:
        op: Its name.
        operands: Arrays; the floating ones are differentiated by. A shape stands for a random array.
        attributes: Attributes, strings as ``str``.
        results: Indices of the results that are differentiated; all floating ones if None.
        second: Whether its gradient has a gradient.
        dynamic: Whether it has a gradient where no shape and no operand is known.
        dtype: Of floating operands; also how exact the check can be.
        among: Bounds of random arrays.
        fixed: Indices of floating operands that are not differentiated by.
        types: Type variables that operands do not give.
        note: Tells cases of the same op apart.
    """

    op: str
    operands: Sequence[Any]
    attributes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    results: Sequence[int] | None = None
    second: bool = True
    dynamic: bool = True
    dtype: str = "float64"
    among: tuple[float, float] = (-2.0, 2.0)
    fixed: Sequence[int] = ()
    types: Mapping[str, str] = dataclasses.field(default_factory=dict)
    note: str = ""

    @property
    def name(self) -> str:
        """What the test is called."""
        return f"{self.op}.{self.note}" if self.note else self.op

    def arrays(self) -> list[Any]:
        """Return the operands."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        arrays = [rng.uniform(*self.among, x) if isinstance(x, tuple) else np.asarray(x) for x in self.operands]
        return [x.astype(self.dtype) if x.dtype == np.float64 else x for x in arrays]


def check(case: Case, known: bool) -> None:
    """Compare the gradients of an op with differences; with ``known``, shapes are stated and integers are constants."""
    graph = Graph("case")
    feeds, values = {}, []
    for i, array in enumerate(case.arrays()):
        dtype = dtype_of_array(array.dtype)
        if known and dtype.kind != "float":
            values.append(constant(graph, array))
        else:
            feeds[f"x{i}"] = array
            values.append(graph.add_input(f"x{i}", dtype, Shape(array.shape if known else None)))
    types: dict[str, DType] = {name: find_dtype(dtype) for name, dtype in case.types.items()}
    attributes = {name: v.encode() if isinstance(v, str) else v for name, v in case.attributes.items()}
    outputs = graph.add(case.op, values, attributes=attributes, types=types).outputs
    floats = [y for y in outputs if y.dtype is not None and y.dtype.kind == "float"]
    ys = floats if case.results is None else [outputs[k] for k in case.results]
    xs = [v for i, v in enumerate(values) if v.dtype is not None and v.dtype.kind == "float" and i not in case.fixed]
    agree(graph, ys, xs, feeds, exact=case.dtype == "float64", second=case.second)


def constant(graph: Graph, array: Any, dtype: str | None = None) -> Value:
    """Add a constant."""
    tensor = Tensor.of(array, dtype)
    return graph.add("Const", attributes={"value": tensor}).outputs[0]


def program(graph: Graph, outputs: Sequence[Value]) -> Run:
    """Return what computes values of a graph from feeds, of which it takes those it needs."""
    graph.outputs, graph.output_names = list(outputs), [f"y{i}" for i in range(len(outputs))]
    compiled = compile(graph)
    return lambda feeds: list(compiled({name: feeds[name] for name in compiled.input_names if name in feeds}).values())


def agree(
    graph: Graph, ys: Sequence[Value], xs: Sequence[Value], feeds: Mapping[str, Any], *, exact: bool = True, second: bool = True
) -> None:
    """Compare the gradients of values with differences, then the gradients of those.

    Args:
        graph: The graph.
        ys: What is differentiated, each weighted by random numbers.
        xs: What by: inputs of the graph.
        feeds: The point at which, by name of the input.
        exact: Whether all is float64.
        second: Whether the gradients are differentiated, too.
    """
    ys, xs = list(ys), list(xs)
    compared = _Differences(graph, dict(feeds), exact)
    vs = compared.weights(ys, "v")
    found = gradients(ys, xs, vs)
    dxs = [g for g in found if g is not None]
    assert xs
    assert len(dxs) == len(xs), found
    compared.compare(ys, xs, dxs, vs)
    if exact:
        verify(graph)
    if not second:
        return
    us = compared.weights(dxs, "u")
    by = [*xs, *vs]
    seconds = gradients(dxs, by, us)
    assert None not in seconds[len(xs) :], "a gradient is linear in what it is given"
    chosen = [(x, g) for x, g in zip(by, seconds, strict=True) if g is not None]
    compared.compare(dxs, [x for x, _ in chosen], [g for _, g in chosen], us)
    for x, g in zip(by, seconds, strict=True):
        if g is None:  # no path: the gradient does not change with it
            assert abs(compared.slope(program(graph, dxs), x, us)[0]) < 1e-6, x
    if exact:
        verify(graph)


class _Differences:
    """A graph at a point."""

    def __init__(self, graph: Graph, feeds: dict[str, Any], exact: bool) -> None:
        self.graph, self.feeds, self.exact = graph, feeds, exact

    def weights(self, ys: Sequence[Value], letter: str) -> list[Value]:
        """Add an input of random numbers for each value."""
        rng = np.random.default_rng(7)
        found = []
        for k, array in enumerate(program(self.graph, ys)(self.feeds)):
            found.append(self.graph.add_input(f"{letter}{k}", dtype_of_array(array.dtype), Shape(None)))
            self.feeds[f"{letter}{k}"] = rng.uniform(-1, 1, array.shape).astype(array.dtype)
        return found

    def slope(self, run: Run, x: Value, weights: Sequence[Value]) -> tuple[float, Any]:
        """Return the slope of a weighted sum of results along a random direction of ``x``, and the direction."""
        at = self.feeds[x.name]
        direction = np.random.default_rng(11).uniform(-1, 1, at.shape)
        step = 1e-6 if self.exact else 4e-3
        ends = []
        for sign in (1, -1):
            results = run({**self.feeds, x.name: (at + sign * step * direction).astype(at.dtype)})
            pairs = zip(results, weights, strict=True)
            ends.append(sum(float((y.astype(np.float64) * self.feeds[w.name]).sum()) for y, w in pairs))
        return (ends[0] - ends[1]) / (2 * step), direction

    def compare(self, ys: Sequence[Value], xs: Sequence[Value], dxs: Sequence[Value], weights: Sequence[Value]) -> None:
        """Compare gradients of a weighted sum with its slopes."""
        results = program(self.graph, dxs)(self.feeds)
        run = program(self.graph, ys)
        for x, dx, got in zip(xs, dxs, results, strict=True):
            assert dx.dtype is x.dtype
            assert got.shape == self.feeds[x.name].shape, x
            slope, direction = self.slope(run, x, weights)
            wanted = float((got.astype(np.float64) * direction).sum())
            scale = float(np.abs(got).max(initial=1)) * np.sqrt(max(1, got.size))
            assert abs(slope - wanted) <= (1e-6 if self.exact else 1e-2) * scale, f"by {x}: {wanted}, not {slope}"
