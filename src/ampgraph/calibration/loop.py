"""The loop: measure, rewrite, run, search, and say what was kept."""

import dataclasses
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from ampgraph.calibration.result import CalibrationResult, Kept, Progress
from ampgraph.calibration.search import Errors, Search, Unit
from ampgraph.calibration.trials import OutOfTime, Trial, Trials
from ampgraph.graph.errors import KernelError
from ampgraph.graph.graph import Graph
from ampgraph.graph.verify import verify
from ampgraph.graph.wording import plural
from ampgraph.kernels.measure import measure
from ampgraph.rewrite import Policy, convert
from ampgraph.rewrite.hazards_measured import is_out_of_range, overflows
from ampgraph.rewrite.model_report import hazards

#: Bound of the errors, share of the FLOPs that stays low, and seconds that a calibration takes.
RTOL, LOW_SHARE, TIME_LIMIT = 1e-2, 0.9, 45.0


def calibrate(
    graph: Graph,
    feeds: Mapping[str, Any] | Iterable[Mapping[str, Any]],
    policy: Policy | None = None,
    *,
    rtol: float = RTOL,
    low_share: float = LOW_SHARE,
    time_limit: float = TIME_LIMIT,
    progress: Callable[[Progress], None] | None = None,
) -> CalibrationResult:
    """Rewrite a graph so that its outputs stay close to those of float32 on given data.

    1. The graph runs in float32. Values whose measured range the low dtype does not have stay float32.
    2. The rewritten graph runs, every value rounded as it says. If all outputs are within four fifths of the bound, that is the
       result: sums in another order, on another machine, round differently.
    3. Else it is searched for the fewest nodes that have to stay float32, elementwise ops and norms rather than matrix products
       and convolutions (:mod:`ampgraph.calibration.search`). The best rewrite found is the result, within the bound or not.

    The same data gives the same result unless the time runs out. An interrupt (Ctrl-C) ends the search, not the calibration.

    Args:
        graph: A float32 graph.
        feeds: Arrays by names of inputs, for one run; or such for each of several, which all have to be right.
        policy: What to rewrite for, as for :func:`~ampgraph.rewrite.auto_mixed_precision`; what it measured before stays in it.
        rtol: Bound of the errors of outputs, as shares of their largest magnitudes. Integers and text have to be equal.
        low_share: Share of the FLOPs of matrix products and convolutions that stays low, if the policy makes as many low.
        time_limit: Seconds after which no further trial begins.
        progress: Called after each trial.

    Raises:
        KernelError: If the graph cannot be run on the data, float32 runs of it differ by more than the bound, no output has an
            element to compare, or an argument makes no sense.
        VerifyError: If the graph breaks an invariant.
        PassError: If it cannot be rewritten.
    """
    for name, number, most in (("rtol", rtol, np.inf), ("time_limit", time_limit, np.inf), ("low_share", low_share, 1)):
        if not isinstance(number, Real) or isinstance(number, bool) or not 0 <= number <= most or (name == "rtol" and not number):
            raise KernelError(f"Argument {name} of calibrate makes no sense. Received: {number!r}")
    if not isinstance(graph, Graph):
        raise KernelError(f"calibrate takes a Graph; load a file with ampgraph.load. Received: {type(graph).__name__}")
    if policy is not None and not isinstance(policy, Policy):
        raise KernelError(f"Argument policy of calibrate is a Policy, such as Policy(preset=…). Received: {policy!r:.200}")
    if not isinstance(feeds, Iterable):
        raise KernelError(f"A graph is calibrated on arrays by the names of its inputs. Received: {type(feeds).__name__}")
    start = time.monotonic()
    runs: list[Any] = [feeds] if isinstance(feeds, Mapping) else list(feeds)
    if not runs:
        raise KernelError("A graph is calibrated on data: feeds for one run or more. Received: none")
    verify(graph)
    return _Calibration(graph, runs, policy or Policy(), rtol, low_share, start, time_limit, progress).run()


class _Calibration:
    """One call of :func:`calibrate`."""

    def __init__(
        self,
        graph: Graph,
        feeds: list[Mapping[str, Any]],
        policy: Policy,
        rtol: float,
        low_share: float,
        start: float,
        time_limit: float,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.policy = policy
        self.low_share = low_share
        self.start = start
        self.progress = progress
        self.ranges = measure(graph, feeds)
        self.trials = Trials(graph, feeds, rtol, start + time_limit)
        self.best: Trial | None = None
        self.lowest = np.inf
        self.stopped = ""
        #: What a group of units does to an output where nothing else is low.
        self.alone: dict[frozenset[str], tuple[str, float]] = {}

    def run(self) -> CalibrationResult:
        """Calibrate."""
        before = self.trials.run(self.policy, late=True)
        measured = self._with_ranges(before)
        base = self.trials.run(measured, late=True) if measured != self.policy else before
        self._take(base)
        search = self._search(base)
        best = self.best or base
        rows = tuple((name, self._why(search, name)) for name, _ in best.policy.kept[len(self.policy.kept) :])
        policy = dataclasses.replace(best.policy, kept=(*self.policy.kept, *rows))
        result = convert(self.trials.graph, policy)
        verify(result.graph)
        total = sum(self.trials.flops.values())
        low, most = (self.trials.low_flops(item.result.report) for item in (best, before))
        found = [(body, node, hazard) for body, node, hazard in hazards(result.report) if hazard.code.startswith("measured-")]
        return CalibrationResult(
            result=result,
            policy=policy,
            errors=dict(best.errors),
            before=dict(before.errors),
            rtol=self.trials.rtol,
            missed=best.missed,
            unchecked=self.trials.unchecked,
            is_met=not best.missed and low >= min(self.low_share * total, most),
            kept=tuple(Kept(body.label(node), node.op_type, hazard.code, hazard.why) for body, node, hazard in found),
            low_share=low / total if total else 1.0,
            trials=self.trials.count,
            seconds=time.monotonic() - self.start,
            stopped=self.stopped,
        )

    def _with_ranges(self, before: Trial) -> Policy:
        """Return the policy with those measured ranges that hold something.

        Values that are only near the end of the range stay low where too many FLOPs would not.
        """
        low = self.policy.low
        rows = {name: (smallest, largest) for name, smallest, largest in self.policy.ranges}
        for name, found in self.ranges.items():
            largest = max(abs(found.least), abs(found.largest))
            if found.dtype == "float32" and is_out_of_range(found.smallest, largest, low):
                smallest, large = rows.get(name, (found.smallest, largest))
                rows[name] = (min(smallest, found.smallest), max(large, largest))
        policy = self._holding(rows)
        report = convert(self.trials.graph, policy).report
        enough = min(self.low_share * sum(self.trials.flops.values()), self.trials.low_flops(before.result.report))
        if self.trials.low_flops(report) < enough:
            heavy = {
                body.painting.facts.measured[vertex]
                for body in report.bodies
                if body.painting is not None
                for vertex in body.painting.facts.measured
                if (owner := body.painting.typegraph.owner[vertex]) < len(body.painting.typegraph.nodes)
                and body.names[body.painting.typegraph.nodes[owner]] in self.trials.flops
            }
            policy = self._holding({name: row for name, row in rows.items() if name not in heavy or overflows(row[1], low)})
        return policy

    def _holding(self, rows: Mapping[str, tuple[float, float]]) -> Policy:
        """Return the policy with these ranges, without those that hold nothing."""
        policy = dataclasses.replace(self.policy, ranges=tuple((name, *row) for name, row in rows.items()))
        bodies = convert(self.trials.graph, policy).report.bodies
        used = {name for body in bodies if body.painting is not None for name in body.painting.facts.measured.values()}
        return dataclasses.replace(policy, ranges=tuple(row for row in policy.ranges if row[0] in used))

    def _search(self, base: Trial) -> Search | None:
        """Look for nodes to keep if the outputs are not within the bound."""
        if base.worst <= 1:
            return None
        low = self.trials.low_nodes(base.result.report)
        units = [Unit(name, self.trials.flops.get(name, 0)) for name in self.trials.order if name in low]
        room = self.trials.low_flops(base.result.report) - self.low_share * sum(self.trials.flops.values())
        order = {unit.name: i for i, unit in enumerate(units)}

        def look(names: Collection[str]) -> Errors:
            trial = self.trials.run(base.policy, frozenset(names))
            self.alone[frozenset(names)] = trial.worst_output
            self._report()
            return trial.scores

        def attempt(names: Collection[str]) -> Errors:
            rows = tuple((name, "") for name in sorted(names, key=order.__getitem__))
            trial = self.trials.run(dataclasses.replace(base.policy, kept=(*self.policy.kept, *rows)))
            self._take(trial)
            return trial.scores

        search = Search(units, max(room, 0.0), look, attempt)
        try:
            self.trials.check_repeats()
            search.run()
        except OutOfTime:
            self.stopped = "time"
        except KeyboardInterrupt:
            self.stopped = "interrupted"
        return search

    def _take(self, trial: Trial) -> None:
        """Remember a trial if it is the best so far."""
        self.lowest = min(self.lowest, trial.worst)
        if self.best is None or trial.is_better(self.best, self.lowest):
            self.best = trial
        self._report()

    def _report(self) -> None:
        if self.progress is not None:
            best = self.best
            error = np.inf if best is None else max(best.errors.values(), default=0.0)
            kept = 0 if best is None else len(best.policy.kept)
            is_met = best is not None and not best.missed
            self.progress(Progress(time.monotonic() - self.start, self.trials.count, error, kept, is_met))

    def _why(self, search: Search | None, name: str) -> str:
        """Return why a node is kept: what its group alone does to an output."""
        low = self.policy.low
        for group in search.groups if search is not None else ():
            if any(unit.name == name for unit in group.units):
                output, error = self.alone[frozenset(unit.name for unit in group.units)]
                if not error:
                    break
                others = f" and {plural(len(group.units) - 1, 'node')} next to it" if len(group.units) > 1 else ""
                return f"output {output!r} would be off by {error:.2g} if only this{others} were {low}"
        return f"with it in {low} errors were larger"
