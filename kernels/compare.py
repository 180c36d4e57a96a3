"""Comparing two graphs value by value, on the same feeds."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..graph.dtypes import cast_array
from ..graph.errors import KernelError
from ..graph.graph import Graph, Value
from .call import constant_array
from .feeds import random_feeds
from .measure import wide_array
from .program import compile
from .pruning import inputs_of

#: A value whose error is a larger share of its own norm than this is called bad.
TOLERANCE = 0.05
#: What float16 cannot hold, and the least that a rewrite makes of a mask beyond it.
_LARGE, _LEAST_MASK = 65520.0, 24576.0


class Row(NamedTuple):
    """How a value of one graph differs from that of the other.

    Attributes:
        value, node, op: The value in the second graph, the node that computes it, and its op.
        dtypes: Dtypes in both graphs.
        size: Number of elements.
        max_error, mean_error: Largest and mean absolute difference, over the elements that are finite in both.
        norm_error: Norm of the differences over the norm of the first graph's value.
        overflow: Share of the elements that are finite in the first graph but not in the second.
        unlike: Share of the elements that are infinite or NaN in the first graph and something else in the second.
        underflow: Share of the elements that are zero in the second graph only.
        non_finite: Share of the elements that are not finite in the second graph.
        is_bad: Whether elements overflow or are unlike, or ``norm_error`` exceeds the tolerance, or the shapes differ.
    """

    value: str
    node: str
    op: str
    dtypes: tuple[str, str]
    size: int
    max_error: float
    mean_error: float
    norm_error: float
    overflow: float
    unlike: float
    underflow: float
    non_finite: float
    is_bad: bool


class Comparison(NamedTuple):
    """What :func:`compare` found.

    Attributes:
        rows: One for each value that both graphs compute, in the order in which the second graph does.
        outputs: Names of the rows that are outputs.
        only_a, only_b: Number of values that only one of the graphs computes.
        tolerance: As given.
    """

    rows: tuple[Row, ...]
    outputs: tuple[str, ...]
    only_a: int
    only_b: int
    tolerance: float

    @property
    def first_bad(self) -> Row | None:
        """The first bad row: what it is made of is fine in both graphs, or stands in only one."""
        return next((row for row in self.rows if row.is_bad), None)

    def json(self) -> dict[str, Any]:
        """Return all of it as plain data; numbers that JSON does not have are text."""
        bad = self.first_bad
        return {
            "first_bad": None if bad is None else bad.value,
            "tolerance": self.tolerance,
            "outputs": list(self.outputs),
            "only_a": self.only_a,
            "only_b": self.only_b,
            "values": [{name: _plain(item) for name, item in row._asdict().items()} for row in self.rows],
        }


def _plain(item: Any) -> Any:
    if isinstance(item, float) and not abs(item) < float("inf"):
        return str(item)
    return list(item) if isinstance(item, tuple) else item


def compare(
    a: Graph, b: Graph, feeds: Mapping[str, Any] | None = None, *, tolerance: float = TOLERANCE, device: str = "cpu"
) -> Comparison:
    """Run two graphs on the same feeds and compare the values that correspond.

    Elements that float16 cannot hold count as right where the second graph has from 24576 to 65504 of the same sign, those from
    2**127 on where it has at least 2**126: masks in front of a softmax, which a rewrite makes that small.

    Values correspond if their nodes have the same name and op, else if they have the same name themselves. Every node runs, and
    every value is in the dtype that the graph says. All values of the first graph are kept in memory meanwhile.

    Args:
        a: The graph that is right, such as the float32 original.
        b: The graph that is looked at.
        feeds: As for a program, for ``a``; made up where None. They are converted where an input of ``b`` has another dtype.
        tolerance: Values whose ``norm_error`` exceeds it are bad.
        device: Where to run both.

    Raises:
        KernelError: If a graph cannot be run, or the tolerance is no number from 0 on.
    """
    if not isinstance(tolerance, int | float) or not tolerance >= 0:
        raise KernelError(f"The tolerance of a comparison is a number from 0 on. Received: {tolerance!r}")
    program_a, program_b = (compile(graph, device, fuse=False) for graph in (a, b))
    feeds = random_feeds(a) if feeds is None else feeds
    first = _Recorder(a)
    results_a = program_a(feeds, on_value=first.record)
    second = _Second(first, tolerance)
    second.constants(b)
    results_b = program_b(converted_feeds(feeds, b), on_value=second.record)
    outputs = []
    for name, value in zip(program_b.output_names, b.outputs, strict=True):
        if value in second.matched or not hasattr(results_a.get(name), "dtype"):
            outputs.append(value.name)
            continue
        second.rows.append(_row(value, name, results_a[name], results_b[name], tolerance))
        outputs.append(name)
    left = sum(map(len, first.found.values()))
    return Comparison(tuple(second.rows), tuple(outputs), left, second.unmatched, tolerance)


def converted_feeds(feeds: Mapping[str, Any], graph: Graph) -> dict[str, Any]:
    """Return those feeds that a graph takes, in the dtypes in which it takes them."""
    import numpy as np

    found = dict(feeds)
    for value in inputs_of(graph):
        feed, dtype = found.get(value.name), value.dtype
        if isinstance(feed, np.ndarray) and dtype is not None and dtype.kind == "float" and feed.dtype.kind not in "OSU":
            with np.errstate(all="ignore"):
                found[value.name] = cast_array(feed, dtype)
    return found


class _Recorder:
    """Remembers the values of a run, under the names by which those of another graph ask for them."""

    def __init__(self, graph: Graph) -> None:
        self.found: dict[Value, list[Any]] = {}
        self.by_node: dict[tuple[str, str, int], Value | None] = {}
        self.by_name: dict[str, Value] = {}
        for part in graph.all_graphs():
            for node in part.nodes:
                for value in node.outputs:
                    self.by_name.setdefault(value.name, value)
                    key = (node.name, node.op_type, value.index)
                    self.by_node[key] = None if key in self.by_node else value  # the name says nothing if several have it

    def record(self, value: Value, array: Any) -> None:
        self.found.setdefault(value, []).append(array)

    def take(self, value: Value) -> Any:
        """Return what corresponds to a value of the other graph, each time the next; None if nothing does."""
        node = value.producer
        twin = (self.by_node.get((node.name, node.op_type, value.index)) if node.name else None) or self.by_name.get(value.name)
        found = None if twin is None else self.found.get(twin)
        return found.pop(0) if found else None


class _Second:
    """Compares each value of the second graph as it is computed."""

    def __init__(self, first: _Recorder, tolerance: float) -> None:
        self.first = first
        self.tolerance = tolerance
        self.rows: list[Row] = []
        self.matched: set[Value] = set()
        self.unmatched = 0

    def constants(self, graph: Graph) -> None:
        """Compare the constants that have another dtype."""
        for node in graph.nodes:
            value = node.outputs[0] if node.op_type == "Initializer" and node.domain == "ampgraph" else None
            twin = None if value is None else self.first.by_name.get(value.name)
            if value is None or twin is None or twin.producer.op_type != "Initializer" or twin.dtype is value.dtype:
                continue
            one, other = (constant_array(item.producer.attributes["value"]) for item in (twin, value))
            self.rows.append(_row(value, value.name, one, other, self.tolerance))

    def record(self, value: Value, array: Any) -> None:
        reference = self.first.take(value)
        if reference is None:
            self.unmatched += 1
        elif hasattr(reference, "dtype") and hasattr(array, "dtype"):
            self.matched.add(value)
            self.rows.append(_row(value, value.name, reference, array, self.tolerance))


def _row(value: Value, name: str, a: Any, b: Any, tolerance: float) -> Row:
    import numpy as np

    node = value.producer
    head = (name, node.name, node.op_type, (str(a.dtype), str(b.dtype)), int(b.size))
    x, y = wide_array(a), wide_array(b)
    if a.shape != b.shape or x is None or y is None:
        same = a.shape == b.shape and bool((a == b).all())
        error = 0.0 if same else float("inf")
        return Row(*head, error, error, error, 0.0, 0.0, 0.0, 0.0, not same)
    if not x.size:
        return Row(*head, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, False)
    with np.errstate(all="ignore"):
        fine_x, fine_y = np.isfinite(x), np.isfinite(y)
        kept = y * np.sign(x)
        masks = (np.abs(x) >= _LARGE) & (kept >= _LEAST_MASK) & (kept < _LARGE)
        masks |= (np.abs(x) >= 2.0**127) & (kept >= 2.0**126)  # of bfloat16
        x = np.where(fine_x & fine_y & masks & (np.abs(x) < 2.0**128), y, x)
        both = fine_x & fine_y
        x, y, wide_x, wide_y = np.where(both, x, 0), np.where(both, y, 0), x, y
        off = np.abs(y - x)
        unlike = ~fine_x & (wide_x != wide_y) & ~(np.isnan(wide_x) & np.isnan(wide_y))
        norm, error = _norm(x), _norm(off)
        mean = float((off / off.size).sum())
    overflow = float((fine_x & ~fine_y).mean())
    share = error / norm if norm else (float("inf") if error else 0.0)
    is_bad = overflow > 0 or bool(unlike.any()) or not share <= tolerance
    shares = (overflow, float(unlike.mean()), float(((wide_x != 0) & (wide_y == 0)).mean()), float((~fine_y).mean()))
    return Row(*head, float(off.max()), mean, share, *shares, is_bad)


def _norm(x: Any) -> float:
    """Return the Euclidean norm, of numbers whose squares over- or underflow too."""
    import numpy as np

    size = np.abs(x)
    largest = float(size.max())
    if not 0 < largest < float("inf"):
        return largest
    return largest * float(np.linalg.norm((size / largest).ravel()))
