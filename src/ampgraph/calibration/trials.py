"""Trying rewrites of a graph: the float32 results are computed once, those of each rewrite are compared with them."""

import dataclasses
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ampgraph.calibration.search import SLACK, Errors
from ampgraph.graph.dtypes import float32
from ampgraph.graph.errors import KernelError
from ampgraph.graph.graph import Graph, Value
from ampgraph.graph.schemas.ampgraph import is_op
from ampgraph.graph.wording import plural
from ampgraph.kernels.compare import converted_feeds
from ampgraph.kernels.flops import FlopCounter
from ampgraph.kernels.measure import wide_array
from ampgraph.kernels.program import compile
from ampgraph.rewrite import Policy, RewriteReport, RewriteResult, convert
from ampgraph.rewrite.only import first_result
from ampgraph.rewrite.typegraph import CONSTANTS

#: Sums in another order, on another machine or by other threads, round differently: so much of the bound is aimed at.
_AIM = 0.8
#: What a result that is not finite counts as, in multiples of the bound.
_HUGE = 1e3
#: Ops that compute nothing with floats.
_PASSIVE = frozenset([*CONSTANTS, "Const", "Cast", "CastLike"])
#: A trial starts if the time that is left is that many times what the longest one took.
_SPARE = 1.2


class OutOfTime(Exception):
    """There is no time for another trial."""


@dataclasses.dataclass(frozen=True)
class Trial:
    """A rewrite that was run.

    Attributes:
        result: The rewrite.
        policy: What was asked for.
        errors: The error of each output by name, see :func:`output_error`; the largest of all runs.
        scores: The same in multiples of what is aimed at; above 1 for integers and text that are not equal.
        missed: Names of the outputs that are not within the bound.
    """

    result: RewriteResult
    policy: Policy
    errors: Mapping[str, float]
    scores: Errors
    missed: tuple[str, ...]

    @property
    def worst(self) -> float:
        """The largest score."""
        return float(self.scores.max(initial=0.0))

    @property
    def worst_output(self) -> tuple[str, float]:
        """The output with the largest score, and its error."""
        return list(self.errors.items())[int(self.scores.argmax())]

    @property
    def level(self) -> int:
        """0 if all outputs are as good as they should be, 1 if they are within the bound, else 2."""
        return 0 if self.worst <= 1 else 2 if self.missed else 1

    def is_better(self, other: "Trial", lowest: float) -> bool:
        """Whether this trial is to be preferred: for what it reaches, then with fewer kept nodes or with smaller errors.

        ``lowest`` is the lowest :attr:`worst` of any trial: errors close to that are as good.
        """
        if self.level != other.level:
            return self.level < other.level
        count, others = len(self.policy.kept), len(other.policy.kept)
        if self.level == 0:
            return (count, self.worst) < (others, other.worst)
        good, others_good = (worst <= SLACK * lowest for worst in (self.worst, other.worst))
        if good and others_good:
            return (count, self.worst) < (others, other.worst)
        return good or (not others_good and self.worst < other.worst)


class Trials:
    """Runs a graph, and rewrites of it.

    Args:
        graph: The float32 graph.
        feeds: Feeds for each of one or more runs.
        rtol: The bound.
        deadline: When the last trial should have ended, by ``time.monotonic``.

    Attributes:
        rtol, aim: The bound, and the somewhat smaller one that is aimed at.
        order: Names of the nodes that ran, in that order; :func:`~ampgraph.rewrite.only.first_result` says how they are called.
        flops: FLOPs of matrix products and convolutions of float32 by the same names.
        count: How many rewrites were run.
        unchecked: Names of the outputs that have no element to compare.

    Raises:
        KernelError: If the graph cannot be run, or no output has an element to compare.
    """

    def __init__(self, graph: Graph, feeds: Sequence[Mapping[str, Any]], rtol: float, deadline: float) -> None:
        self.graph = graph
        self.feeds = feeds
        self.rtol = rtol
        self.aim = _AIM * rtol
        self.deadline = deadline
        self.count = 0
        self.flops: dict[str, int] = {}
        self._longest = 0.0
        self._expected: list[dict[str, Any]] = []
        order: dict[str, None] = {}
        program = compile(graph, fuse=False)
        for feed in feeds:
            counter = FlopCounter(graph, feed)

            def see(value: Value, array: Any, counter: FlopCounter = counter) -> None:
                counter.see(value, array)
                order[first_result(value.producer)] = None

            self._expected.append(program(feed, on_value=see))
            for node, count in counter.by_node.items():
                if node.outputs[0].dtype is float32 and count:
                    name = first_result(node)
                    self.flops[name] = self.flops.get(name, 0) + count
        self.order = tuple(order)
        names = program.output_names
        self.unchecked = tuple(name for name in names if not any(_is_comparable(run[name]) for run in self._expected))
        if len(self.unchecked) == len(names):
            raise KernelError(
                "On this data there is nothing to compare: no output has an element that is finite in float32. "
                f"Received: {plural(len(feeds), 'run')}, outputs {', '.join(map(repr, names)) or '(none)'}"
            )

    def check_repeats(self) -> None:
        """Run the graph again, as it was.

        Raises:
            KernelError: If an output is not within the bound of what it was the first time.
        """
        program = compile(self.graph, fuse=False)
        for feed, expected in zip(self.feeds, self._expected, strict=True):
            found = program(feed)
            for name, right in expected.items():
                error, exact = output_error(right, found[name])
                if error > (0 if exact else self.rtol):
                    raise KernelError(
                        f"Output {name!r} differs by {error:.2g} from one float32 run to the next, so no rewrite can be judged by it: "
                        "give the nodes that draw random numbers a seed."
                    )

    def run(self, policy: Policy, only: Collection[str] | None = None, *, late: bool = False) -> Trial:
        """Rewrite the graph and run the result on all feeds.

        Args:
            policy: What to rewrite for.
            only: As for :func:`ampgraph.rewrite.convert`.
            late: Whether to run even if there is no time.

        Raises:
            OutOfTime: If there is no time for it.
            KernelError: If the result cannot be run.
        """
        start = time.monotonic()
        if not late and start + _SPARE * self._longest > self.deadline:
            raise OutOfTime
        result = convert(self.graph, policy, only)
        program = compile(result.graph)
        errors: dict[str, float] = {}
        scores: dict[str, float] = {}
        missed: dict[str, None] = {}
        for feed, expected in zip(self.feeds, self._expected, strict=True):
            found = program(converted_feeds(feed, result.graph))
            for name, right in expected.items():
                error, exact = output_error(right, found[name])
                score = min(error / self.aim, _HUGE)
                if error > (0 if exact else self.rtol):
                    missed[name] = None
                errors[name] = max(error, errors.get(name, 0.0))
                scores[name] = max(1 + score if exact and error else score, scores.get(name, 0.0))
        self.count += 1
        self._longest = max(self._longest, time.monotonic() - start)
        return Trial(result, policy, errors, np.array(list(scores.values())), tuple(missed))

    def low_nodes(self, report: RewriteReport) -> set[str]:
        """Return the names of the nodes that a rewrite makes low, constants and casts left out."""
        found = set()
        for body in report.bodies:
            if body.painting is None:
                continue
            graph, allow = body.painting.typegraph, body.painting.allow
            for i, node in enumerate(graph.nodes):
                if is_op(node) and node.op_type not in _PASSIVE and any(allow[vertex] for vertex in graph.vertices_of(i)):
                    found.add(body.names[node])
        return found

    def low_flops(self, report: RewriteReport) -> int:
        """Return how many of the FLOPs a rewrite makes low."""
        low = self.low_nodes(report)
        return sum(count for name, count in self.flops.items() if name in low)


def _is_comparable(array: Any) -> bool:
    """Whether :func:`output_error` has anything to look at."""
    if array.__class__ is list:
        return any(map(_is_comparable, array))
    if not hasattr(array, "dtype"):
        return True
    return bool(array.size if array.dtype.kind in "OSUbiu" else np.isfinite(wide_array(array)).any())


def output_error(expected: Any, found: Any) -> tuple[float, bool]:
    """Return how far a result is off, and whether it has to be equal.

    1. Floats: the largest difference over the largest magnitude that is expected (or as it is where only zeros are), both where
       the latter is finite; infinite if something is not finite there. They need not be equal.
    2. Integers, booleans and text: the share of elements that differ.
    3. Sequences: the largest error of an element.
    4. Infinite if the shapes, lengths or kinds differ.
    """
    if expected.__class__ is list and found.__class__ is list:
        errors = [output_error(*pair) for pair in zip(expected, found, strict=False)]
        worst = max((error for error, _ in errors), default=0.0)
        return (worst if len(expected) == len(found) else np.inf), any(exact for _, exact in errors)
    if not (hasattr(expected, "dtype") and hasattr(found, "dtype")):
        return (0.0 if type(expected) is type(found) else np.inf), True
    if expected.shape != found.shape:
        return np.inf, expected.dtype.kind in "OSUbiu"
    if expected.dtype.kind in "OSUbiu":
        return (float((np.asarray(expected) != np.asarray(found)).mean()) if expected.size else 0.0), True
    x, y = wide_array(expected), wide_array(found)
    fine = np.isfinite(x)
    x, y = x[fine], y[fine]
    if not x.size:
        return 0.0, False
    if not np.isfinite(y).all():
        return np.inf, False
    return float(np.abs(y - x).max() / (np.abs(x).max() or 1.0)), False
