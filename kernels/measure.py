"""Measuring the ranges of a graph's values."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..graph.errors import KernelError
from ..graph.graph import Graph, Value
from .call import constant_array
from .feeds import random_feeds
from .program import compile
from .pruning import inputs_of


class Range(NamedTuple):
    """The range of a value's elements.

    Attributes:
        dtype: Its dtype.
        size: Number of elements seen.
        least, largest: Smallest and largest finite element; 0 where none is finite.
        smallest: Least absolute value of the finite elements that are not zero; 0 where there are none.
        non_finite: Number of elements that are not finite.
    """

    dtype: str
    size: int
    least: float
    largest: float
    smallest: float
    non_finite: int

    def joined(self, other: "Range") -> "Range":
        """Return the range of the elements of both."""
        smallest = min((x for x in (self.smallest, other.smallest) if x), default=0.0)
        least, largest = min(self.least, other.least), max(self.largest, other.largest)
        if self.size == self.non_finite or other.size == other.non_finite:
            one = other if self.size == self.non_finite else self
            least, largest = one.least, one.largest
        return Range(self.dtype, self.size + other.size, least, largest, smallest, self.non_finite + other.non_finite)


def measure(
    graph: Graph, feeds: Mapping[str, Any] | Iterable[Mapping[str, Any]] | None = None, *, device: str = "cpu"
) -> dict[str, Range]:
    """Run a graph and return the range of every floating-point value by name, constants and inputs too.

    Args:
        graph: The graph.
        feeds: Feeds for one run, or for each of several; made up where None.
        device: Where to run.

    Raises:
        KernelError: If the graph cannot be run.
    """
    found: dict[str, Range] = {}

    def record(value: Value, array: Any) -> None:
        dtype = getattr(array, "dtype", None)
        if dtype is not None and (
            dtype.kind == "f" or (dtype.kind == "V" and value.dtype is not None and value.dtype.kind == "float")
        ):
            now = _range(array)
            before = found.get(value.name)
            found[value.name] = now if before is None else before.joined(now)

    program = compile(graph, device, fuse=False)
    for node in graph.nodes:
        if node.op_type == "Initializer" and node.domain == "ampgraph":
            record(node.outputs[0], constant_array(node.attributes["value"]))
    runs: Any = [random_feeds(graph)] if feeds is None else [feeds] if isinstance(feeds, Mapping) else feeds
    if not isinstance(runs, Iterable):
        raise KernelError(f"A graph is measured on feeds for one run, or on feeds for each of several. Received: {feeds!r}")
    for run in runs:
        given = program.check(run)
        for value, array in zip(inputs_of(graph), given, strict=True):
            if value.name in run:
                record(value, array)
        program(run, on_value=record)
    return found


def _range(array: Any) -> Range:
    import numpy as np

    name = array.dtype.name
    x = wide_array(array)
    finite = x[np.isfinite(x)]
    sizes = np.abs(finite[finite != 0])
    bounds = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    return Range(name, int(x.size), *bounds, float(sizes.min()) if sizes.size else 0.0, int(x.size - finite.size))


def wide_array(array: Any) -> Any:
    """Return an array in float64 (or complex128), on the CPU; None of text."""
    import numpy as np

    array = array.get() if hasattr(array, "get") else array
    if array.dtype.kind in "OSU":
        return None
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
