"""The errors of ampgraph: everything raised on purpose is an :class:`AmpgraphError`.

::

    AmpgraphError
    ├── GraphError(ValueError)        a graph, node or value is used wrongly
    │   ├── VerifyError               a graph breaks an invariant (all violations at once)
    │   ├── ParseError                the text form cannot be read (line and column)
    │   └── TraceError(TypeError)     a Python function cannot become a graph
    ├── FormatError(ValueError)       a file cannot be read or written
    ├── OpListError(ValueError)       the op lists contradict themselves
    ├── PolicyError(ValueError)       a policy, preset or target makes no sense
    ├── PassError                     the rewrite cannot handle this graph
    ├── TrainingError(ValueError)     an optimizer or a loss scale is used wrongly, or training does not get on
    └── KernelError                   a graph cannot be run: a feed, an op or the device

A message says who, what, where and how to go on; received values are shown.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class AmpgraphError(Exception):
    """Base class of all errors raised on purpose by ampgraph."""


class GraphError(AmpgraphError, ValueError):
    """A graph, node or value is used in a way that makes no sense."""


class VerifyError(GraphError):
    """A graph breaks one or more invariants; :attr:`violations` lists every one."""

    def __init__(self, message: str, violations: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.violations = violations


class ParseError(GraphError):
    """The text form of a graph cannot be read."""


class TraceError(GraphError, TypeError):
    """A Python function does what a graph cannot, such as a decision that depends on the elements of an array."""


class FormatError(AmpgraphError, ValueError):
    """A file cannot be read, understood or written."""


class OpListError(AmpgraphError, ValueError):
    """The op lists contradict themselves or name an unknown list."""


class PolicyError(AmpgraphError, ValueError):
    """A policy, preset, dtype or target is unknown or contradicts another."""


class PassError(AmpgraphError):
    """The rewrite cannot handle this graph."""


class TrainingError(AmpgraphError, ValueError):
    """An optimizer, a schedule, a loss scale or what they saved is used in a way that makes no sense, or training does not get on."""


class KernelError(AmpgraphError):
    """A graph cannot be run: a feed does not fit, an op has no kernel or cannot compute what it was given, a device is missing."""


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the nearest candidate, or an empty string."""
    near = get_close_matches(name, list(candidates), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
