"""Compare gradients with differences."""

import dataclasses
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ampgraph.graph import Graph, Value
from ampgraph.graph.dtypes import DType, dtype_of_array, find_dtype
from ampgraph.graph.gradients import gradients
from ampgraph.graph.schemas.tf import find
from ampgraph.graph.types import Shape, Tensor
from ampgraph.graph.verify import verify
from ampgraph.kernels.program import compile


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


class Checked:
    """A graph of one op and its gradients.

    Attributes:
        graph: The graph; inputs are ``x0``, ``x1`` …, and ``v0`` … for the gradients of the results.
        xs: What is differentiated by.
        found: The gradients.
    """

    def __init__(self, case: Case, known: bool) -> None:
        """Build it; with ``known``, shapes are stated and integers are constants."""
        self.case, self.graph = case, Graph("case")
        self.arrays = case.arrays()
        graph, schema = self.graph, find(case.op)
        assert schema is not None
        values: list[Value] = []
        for i, array in enumerate(self.arrays):
            dtype = dtype_of_array(array.dtype)
            if known and dtype.kind != "float":
                tensor = Tensor.of(array, dtype)
                values.append(graph.add("Const", attributes={"value": tensor}, types={"dtype": dtype}).outputs[0])
            else:
                values.append(graph.add_input(f"x{i}", dtype, Shape(array.shape if known else None)))
        types: dict[str, DType] = {name: find_dtype(dtype) for name, dtype in case.types.items()}
        attributes = {name: v.encode() if isinstance(v, str) else v for name, v in case.attributes.items()}
        node = graph.add(case.op, values, attributes=attributes, types=types)
        floats = [k for k, y in enumerate(node.outputs) if y.dtype is not None and y.dtype.kind == "float"]
        self.places = floats if case.results is None else list(case.results)
        self.ys = [node.outputs[k] for k in self.places]
        self.xs = [v for i, v in enumerate(values) if v.dtype is not None and v.dtype.kind == "float" and i not in case.fixed]
        self.vs = [graph.add_input(f"v{k}", y.dtype, Shape(None)) for k, y in enumerate(self.ys)]
        self.found = gradients(self.ys, self.xs, self.vs)

    def feeds(self, results: Sequence[Any] = ()) -> dict[str, Any]:
        """Return arrays for the operands, and weights of the shapes of results."""
        names = [value.name for value in self.graph.inputs]
        feeds = {f"x{i}": array for i, array in enumerate(self.arrays) if f"x{i}" in names}
        rng = np.random.default_rng(7)
        return feeds | {f"v{k}": rng.uniform(-1, 1, y.shape).astype(y.dtype) for k, y in enumerate(results)}

    def program(self, outputs: Sequence[Value]) -> Callable[[Mapping[str, Any]], list[Any]]:
        """Return what computes values of the graph from feeds, of which it takes those it needs."""
        graph = self.graph
        graph.outputs, graph.output_names = list(outputs), [f"y{i}" for i in range(len(outputs))]
        program = compile(graph)
        return lambda feeds: list(program({name: feeds[name] for name in program.input_names if name in feeds}).values())


def check(case: Case, known: bool) -> None:
    """Compare the gradients of a case with differences; then those of the gradients."""
    made = Checked(case, known)
    ys, xs = made.ys, made.xs
    dxs = [g for g in made.found if g is not None]
    assert xs
    assert len(dxs) == len(xs), made.found
    feeds = made.feeds(made.program(ys)(made.feeds()))
    _compare(made, ys, xs, dxs, [feeds[f"v{k}"] for k in range(len(ys))], feeds)
    if case.dtype == "float64":
        verify(made.graph)
    if not case.second:
        return
    rng = np.random.default_rng(3)
    us = [made.graph.add_input(f"u{k}", g.dtype, Shape(None)) for k, g in enumerate(dxs)]
    feeds |= {f"u{k}": rng.uniform(-1, 1, feeds[x.name].shape).astype(feeds[x.name].dtype) for k, x in enumerate(xs)}
    weights = [feeds[u.name] for u in us]
    by = [*xs, *made.vs]
    seconds = gradients(dxs, by, us)
    assert None not in seconds[len(xs) :], "a gradient is linear in what it is given"
    chosen = [(x, g) for x, g in zip(by, seconds, strict=True) if g is not None]
    _compare(made, dxs, [x for x, _ in chosen], [g for _, g in chosen], weights, feeds)
    run = made.program(dxs)
    for x, g in zip(by, seconds, strict=True):
        if g is None:  # no path: the gradient does not change with it
            assert abs(_slope(made, run, x, weights, feeds)[0]) < 1e-6, x


def _slope(
    made: Checked, run: Callable[[Mapping[str, Any]], list[Any]], x: Value, weights: Sequence[Any], feeds: Mapping[str, Any]
) -> tuple[float, Any]:
    """Return the slope of a weighted sum of results along a random direction of ``x``, and the direction."""
    rng = np.random.default_rng(11)
    at = feeds[x.name]
    direction = rng.uniform(-1, 1, at.shape)
    step = 1e-6 if made.case.dtype == "float64" else 4e-3
    ends = []
    for sign in (1, -1):
        moved = (at + sign * step * direction).astype(at.dtype)
        results = run({**feeds, x.name: moved})
        ends.append(sum(float((y.astype(np.float64) * w).sum()) for y, w in zip(results, weights, strict=True)))
    return (ends[0] - ends[1]) / (2 * step), direction


def _compare(
    made: Checked,
    ys: Sequence[Value],
    xs: Sequence[Value],
    dxs: Sequence[Value],
    weights: Sequence[Any],
    feeds: Mapping[str, Any],
) -> None:
    """Compare gradients of a weighted sum with its slopes."""
    results = made.program(dxs)(feeds)
    run = made.program(ys)
    loose = 1e-6 if made.case.dtype == "float64" else 1e-2
    for x, dx, got in zip(xs, dxs, results, strict=True):
        assert dx.dtype is x.dtype
        assert got.shape == feeds[x.name].shape, x
        slope, direction = _slope(made, run, x, weights, feeds)
        wanted = float((got.astype(np.float64) * direction).sum())
        scale = float(np.abs(got).max(initial=1)) * np.sqrt(max(1, got.size))
        assert abs(slope - wanted) <= loose * scale, f"by {x}: {wanted}, not {slope}"
