"""What a calibration found, and how far it is."""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ampgraph.graph.wording import plural
from ampgraph.rewrite import Policy, RewriteResult


class Kept(NamedTuple):
    """A node that stays float32 because of what was measured.

    Attributes:
        node: Its name, or that of its first result.
        op: Its op.
        code: ``"measured-range"`` or ``"measured-error"``.
        why: The reason.
    """

    node: str
    op: str
    code: str
    why: str


class Progress(NamedTuple):
    """How far a calibration is.

    Attributes:
        seconds: Since it began.
        trials: How many rewrites were run.
        error: The largest error of an output of the best one; infinite where none was run yet.
        kept: How many nodes the best one keeps for their errors.
        is_met: Whether the best one is within the bound.
    """

    seconds: float
    trials: int
    error: float
    kept: int
    is_met: bool


@dataclasses.dataclass(frozen=True)
class CalibrationResult:
    """What a calibration found.

    Attributes:
        result: The rewritten graph, with its report.
        policy: The policy that leads to the same graph without data.
        errors: The error of each output by name: the largest difference from float32 as share of the largest magnitude, where
            float32 is finite; of integers and text the share of elements that differ. Infinite where something should be finite.
        before: The same without calibration.
        rtol: The bound of errors of floats; all else has to be equal.
        missed: Names of the outputs that are not within the bound.
        unchecked: Names of the outputs that have no element to compare: they are empty, or float32 itself is not finite there.
        is_met: Whether there are none, and as many FLOPs are low as was asked for or as would be without calibration.
        kept: The nodes that stay float32 because of what was measured.
        low_share: Share of the FLOPs of float32 matrix products and convolutions that became low; 1 if there are none.
        trials: How many rewrites were run.
        seconds: How long it took.
        stopped: ``"time"`` or ``"interrupted"`` where the search was cut short, else empty.
    """

    result: RewriteResult
    policy: Policy
    errors: dict[str, float]
    before: dict[str, float]
    rtol: float
    missed: tuple[str, ...]
    unchecked: tuple[str, ...]
    is_met: bool
    kept: tuple[Kept, ...]
    low_share: float
    trials: int
    seconds: float
    stopped: str

    @property
    def worst(self) -> float:
        """The largest error of an output."""
        return max(self.errors.values(), default=0.0)

    @property
    def verdict(self) -> str:
        """A sentence that says whether the bound is met, and what misses it."""
        if self.is_met:
            return f"All outputs are within the bound {self.rtol:g}."
        if not self.missed:
            return f"Only {self.low_share:.1%} of the FLOPs are low: the other values are out of range."
        name = max(self.missed, key=self.errors.__getitem__)
        more = f", and {plural(len(self.missed) - 1, 'other output')} too" if len(self.missed) > 1 else ""
        return f"The bound {self.rtol:g} is missed: output {name!r} is off by {self.errors[name]:.2g}{more}."

    def text(self, most: int = 12) -> str:
        """Return a summary; ``most`` bounds the nodes that are named."""
        return "\n".join(self._lines(most))

    def _lines(self, most: int) -> Iterator[str]:
        before = max(self.before.values(), default=0.0)
        yield (
            f"checked   {plural(len(self.errors) - len(self.unchecked), 'output')} on the data: {'NOT within' if self.missed else 'within'} the bound "
            f"{self.rtol:g}; the largest error is {self.worst:.2g}, without calibration {before:.2g}"
        )
        for name in self.missed[:most]:
            yield f"          output {name!r} is off by {self.errors[name]:.2g}"
        for name in self.unchecked[:most]:
            yield f"          output {name!r} has no finite element in float32 that could be compared"
        yield f"low       {self.low_share:.1%} of the FLOPs of matrix products and convolutions"
        cut = {"time": ", cut short by the time limit", "interrupted": ", interrupted"}.get(self.stopped, "")
        yield f"searched  {plural(self.trials, 'trial')} in {self.seconds:.1f} s{cut}"
        codes = Counter(item.code for item in self.kept)
        counts = f": {', '.join(f'{code} {count}' for code, count in codes.items())}" if self.kept else ""
        yield f"kept      {plural(len(self.kept), 'node')} in float32 because of the data{counts}"
        for item in self.kept[:most]:
            yield f"          {item.node} ({item.op}): {item.why}"
        if len(self.kept) > most:
            yield f"          … and {len(self.kept) - most} more"

    def __str__(self) -> str:
        return self.text()

    def json(self) -> dict[str, Any]:
        """Return all but the rewrite as plain JSON data; what is not finite is text."""
        return {
            "is_met": self.is_met,
            "rtol": self.rtol,
            "missed": list(self.missed),
            "unchecked": list(self.unchecked),
            "errors": _plain(self.errors),
            "errors_before": _plain(self.before),
            "low_share": self.low_share,
            "trials": self.trials,
            "seconds": round(self.seconds, 3),
            "stopped": self.stopped,
            "kept": [item._asdict() for item in self.kept],
        }


def _plain(errors: Mapping[str, float]) -> dict[str, float | str]:
    return {name: error if np.isfinite(error) else str(error) for name, error in errors.items()}
