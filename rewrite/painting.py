"""What the pass decides: for every vertex of a type graph whether it becomes low, and why.

A :class:`Painting` has two sets, and a reason for each change of them:

* ``allow``: vertices that will compute in the low dtype;
* ``deny``: vertices that must not.

:mod:`~ampgraph.rewrite.paint` fills them; :mod:`~ampgraph.rewrite.casts` and :mod:`~ampgraph.rewrite.explain` read them.
"""

import dataclasses
import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from ..graph.graph import Node
from .borders import Tie
from .clusters import ListCluster
from .hazards import Clamp, Hazard
from .typegraph import Array, TypeGraph


class Reason(enum.IntEnum):
    """Why a vertex has its color. ``via`` names the neighbouring vertex the reason came from."""

    NONE = 0
    ALLOW_LIST = 1
    FORCED = 2
    BETWEEN = 3
    FOLLOWS = 4
    BESIDE = 5
    LIST_LOW = 6
    LOOP_LOW = 7
    CAST = 8
    DENY_LIST = 9
    DOWNSTREAM = 10
    LIST_ESCAPES = 11
    LIST_IN_BODY = 12
    LIST_FROZEN = 13
    LIST_FLOAT = 14
    NO_LOW_TYPE = 15
    LOOP_FLOAT = 16
    HAZARD = 17
    TABLE = 18
    TIED_LOW = 19
    TIED_FLOAT = 20
    TIED_FIXED = 21
    CONSTANT = 22
    ISLAND = 23
    TAIL = 24
    AFFINE = 25
    NORMALIZED = 26


_NO_ORIGINS: Mapping[int, int] = MappingProxyType({})


@dataclasses.dataclass(frozen=True)
class Facts:
    """What is known about a graph beyond its op lists: hazards, and more of an ONNX model; :mod:`~ampgraph.rewrite.onnx`.

    Attributes:
        ties: Vertices that must have one dtype because a value passes between graphs there.
        hazards: Vertices that stay float32 for what the values may be, and why.
        bounded: Vertices whose values fit whatever the operands were: a deny op's effect ends there.
        tables: Vertices that read rows of a large constant, which is stored in the low dtype.
        clamps: Constants that only mask scores before a softmax, and how they are made to fit.
        affines: Vertices of what is normalized, and of the scale and the offset behind that, which are hazards only if the
            former is float32.
        measured: Vertices that calibration holds -> the name of the value that it measured.
    """

    ties: Sequence[Tie] = ()
    hazards: Mapping[int, Hazard] = dataclasses.field(default_factory=dict)
    bounded: Collection[int] = ()
    tables: Sequence[int] = ()
    clamps: Mapping[Node, Clamp] = dataclasses.field(default_factory=dict)
    affines: Sequence[tuple[int, Sequence[int]]] = ()
    measured: Mapping[int, str] = dataclasses.field(default_factory=dict)


NO_FACTS = Facts()


class Painting:
    """The decision for every vertex of a type graph.

    Attributes:
        typegraph: What was painted.
        clusters: Tensor-list clusters that were kept in one color.
        facts: What was known besides.
        allow, deny: One byte per vertex.
        reason: A :class:`Reason` per vertex.
        via: The vertex a reason refers to, or -1.
        conflicts: Clusters that stay float32 where Grappler would make them low and the model invalid.
    """

    def __init__(self, typegraph: TypeGraph, clusters: Sequence[ListCluster], facts: Facts = NO_FACTS) -> None:
        size = typegraph.count + typegraph.shadows
        self.typegraph = typegraph
        self.clusters = clusters
        self.facts = facts
        self.allow = bytearray(size)
        self.deny = bytearray(size)
        self.reason = bytearray(size)
        self.via = [-1] * size
        self.conflicts: Sequence[ListCluster] = ()

    def allowed(self) -> Array:
        """Return, per vertex without shadows, whether it is allowed; the array shares memory with :attr:`allow`."""
        return np.frombuffer(self.allow, dtype=bool, count=self.typegraph.count)

    def denied(self) -> Array:
        """Return the same for :attr:`deny`."""
        return np.frombuffer(self.deny, dtype=bool, count=self.typegraph.count)

    def paint(self, vertices: Iterable[int], reason: Reason, origins: Mapping[int, int] = _NO_ORIGINS) -> None:
        """Add vertices to ``allow``; ``origins`` says for each which vertex the reason came from."""
        for vertex in vertices:
            if not self.allow[vertex]:
                self.allow[vertex] = 1
                self.reason[vertex] = reason
                self.via[vertex] = origins.get(vertex, -1)

    def forbid(self, vertices: Iterable[int], reason: Reason, origins: Mapping[int, int] = _NO_ORIGINS) -> None:
        """Add vertices to ``deny``; ``origins`` says for each which vertex the reason came from."""
        for vertex in vertices:
            if not self.deny[vertex]:
                self.deny[vertex] = 1
                self.reason[vertex] = reason
                self.via[vertex] = origins.get(vertex, -1)

    def permit(self, vertices: Iterable[int]) -> None:
        """Take vertices out of ``deny``."""
        for vertex in vertices:
            self.deny[vertex] = 0

    def erase(self, vertices: Iterable[int], reason: Reason) -> None:
        """Take vertices out of ``allow``."""
        for vertex in vertices:
            if self.allow[vertex]:
                self.allow[vertex] = 0
                self.reason[vertex] = reason
