"""Hazards: what op lists cannot see, because it depends on constants, lengths or where a value goes.

A rule is a function that looks at a :class:`~ampgraph.rewrite.view.View` and takes down what it finds in a :class:`Found`.
:func:`find_hazards` applies them all; docs/onnx.md lists the kinds of :data:`KINDS`.
"""

import dataclasses
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from ..graph.graph import Node
from ..lists import Color, OpLists
from .typegraph import ALLOW, CODES, DENY, TypeGraph, op_name
from .view import View

if TYPE_CHECKING:
    from .policy import Policy

#: Kind of hazard -> what it is.
KINDS = {
    "constant-overflow": "a constant is too large for the low dtype",
    "constant-vanishes": "a constant is too small for the low dtype: it becomes 0, or loses most of its digits",
    "epsilon": "an epsilon that guards a root, a logarithm or a division would vanish",
    "gain": "filters whose weights are all equal: what they add up grows from layer to layer",
    "scale": "a factor is so large or so small that the product leaves the range of ordinary values",
    "normalization": "squares, their mean and the root of it: the squares overflow, small variances vanish",
    "softmax-by-hand": "exponentials divided by their sum",
    "long-reduction": "a sum or mean over very many elements",
    "logarithm": "what goes into a logarithm: small values matter there as much as large ones",
    "phase": "what goes into a sine or cosine: a large phase has no fraction left in low precision",
    "position": "where an op samples: between two numbers of low precision lie many elements of a large picture",
    "integer": "a float that ends as an integer, an index, a size or a decision: a rounded one is another one",
    "equality": "floats that are compared for equality",
    "count": "a division by a count, which may be larger than the low dtype can hold",
    "pass-through": "an input or constant that is also a result, unchanged but for its order",
    "quantized": "an op between dequantized operands: runtimes compute it in integers",
    "mask": "an additive mask that comes in as an input and may be as low as the lowest float32",
    "measured-range": "calibration measured a value near or over the largest number of the low dtype, or one that vanishes there",
    "measured-error": "calibration found that a result misses its bound if it is low",
    "kernel": "the target has no kernel for it",
}

#: Ops whose results fit whatever the operands were, so that the effect of a deny op ends there.
BOUNDED = frozenset(
    [
        *("Softmax", "LogSoftmax", "Hardmax", "Sigmoid", "HardSigmoid", "Tanh", "Softsign", "Erf", "Sign", "Sin", "Cos"),
        *("Acos", "Asin", "Atan", "Asinh", "Acosh", "Log", "ReduceLogSum", "ReduceLogSumExp"),
        *("LayerNormalization", "GroupNormalization", "InstanceNormalization", "RMSNormalization", "LpNormalization"),
        *("MeanVarianceNormalization", "SimplifiedLayerNormalization", "LRN"),
        *("GridSample", "AffineGrid", "RoiAlign", "MaxRoiPool"),
        *("com.microsoft:BiasSoftmax", "com.microsoft:SkipLayerNormalization", "com.microsoft:SkipSimplifiedLayerNormalization"),
        *("com.microsoft:EmbedLayerNormalization", "com.microsoft:GroupNorm", "com.microsoft:SkipGroupNorm"),
        *("com.microsoft:GridSample", "com.microsoft:CropAndResize"),
    ]
)


@dataclasses.dataclass(frozen=True)
class Hazard:
    """Why a vertex stays float32.

    Attributes:
        code: A key of :data:`KINDS`.
        why: The reason, a sentence without its full stop.
        color: The list its vertex is treated as being on: deny where what is downstream is in danger too, else none.
    """

    code: str
    why: str
    color: Color | None


@dataclasses.dataclass(frozen=True)
class Clamp:
    """How a constant that masks scores is made to fit.

    Attributes:
        bound: The largest magnitude its finite elements may have.
        way: The vertices its values pass on the way to the softmax.
    """

    bound: float
    way: tuple[int, ...]


@dataclasses.dataclass
class Found:
    """What the rules found.

    Attributes:
        hazards: Vertex -> why it stays float32; the first rule that speaks of a vertex counts.
        bounded: Vertices whose values fit whatever the operands were.
        clamps: Nodes that hold a constant which only masks scores before a softmax.
        affines: What is normalized, and the scale and the offset behind that; see :mod:`~ampgraph.rewrite.affines`.
        measured: Vertices that calibration holds -> the name of the value that it measured.
    """

    hazards: dict[int, Hazard] = dataclasses.field(default_factory=dict)
    bounded: set[int] = dataclasses.field(default_factory=set)
    clamps: dict[Node, Clamp] = dataclasses.field(default_factory=dict)
    affines: list[tuple[int, list[int]]] = dataclasses.field(default_factory=list)
    measured: dict[int, str] = dataclasses.field(default_factory=dict)

    def hold(self, view: View, vertices: Iterable[int], code: str, why: str, *, spreads: bool = False) -> None:
        """Take down that vertices stay float32; ``spreads`` also to gray ops downstream of them."""
        hazard = Hazard(code, why, Color.DENY if spreads else None)
        for vertex in vertices:
            if not view.is_fixed(vertex):
                self.hazards.setdefault(vertex, hazard)


def find_hazards(typegraph: TypeGraph, policy: "Policy", lists: OpLists, named: Collection[int] = ()) -> Found:
    """Apply all rules and color what they hold; without those that look for hazards where the policy does not look.

    Only graphs with an op on the AllowList are looked at: nothing changes in the others. No rule speaks of an op that an edit
    of the lists names, or of a node that an override names: who names it knows better.

    Args:
        typegraph: Of an ONNX model, whose shapes are known as far as they can be, or of a TensorFlow graph.
        policy: What is asked for.
        lists: The op lists with their edits.
        named: Numbers of the nodes that an override gives a color.
    """
    from .hazards_constants import CONSTANT_RULES
    from .hazards_measured import hold_measured
    from .hazards_norms import NORM_RULES
    from .hazards_paths import PATH_RULES

    found = Found()
    if not (policy.hazards or policy.ranges or policy.kept) or not (typegraph.color == ALLOW).any():
        return found
    view = View(typegraph, policy.low)
    if policy.hazards:
        if not view.is_tf:
            _find_missing_kernels(view, found, policy, lists)
        found.bounded.update(view.graph.vertex(view.nodes[i].outputs[0]) for i in view.with_op(*BOUNDED))
        for rule in (*NORM_RULES, *PATH_RULES, *CONSTANT_RULES):
            rule(view, found)
    hold_measured(view, found, policy)
    edited = {edit.op for edit in lists.edits}
    if named or edited:
        for vertex in list(found.hazards):
            number = view.node_of(vertex)
            if number in named or (number >= 0 and op_name(view.nodes[number]) in edited):
                del found.hazards[vertex]
                found.measured.pop(vertex, None)
    if view.is_tf:
        found.hazards = {vertex: hazard for vertex, hazard in found.hazards.items() if _holds(view, vertex, hazard)}
    typegraph.color[list(found.hazards)] = [CODES[hazard.color] for hazard in found.hazards.values()]
    return found


def _holds(view: View, vertex: int, hazard: Hazard) -> bool:
    """Whether a vertex of a TensorFlow graph is held by a hazard: not if it stays float32, and its effect is the same, anyway."""
    return bool(view.graph.allowed[vertex]) and (hazard.color is not None or view.color[vertex] != DENY)


def _find_missing_kernels(view: View, found: Found, policy: "Policy", lists: OpLists) -> None:
    """Ops that only the target's list takes off the list they are on."""
    usual = OpLists.load(f"onnx_{policy.dtype}")
    if lists.mode == usual.mode:
        return
    for op in set(view.ops):
        if usual.list_of(op) is not None and lists.list_of(op) is None:
            vertices = (vertex for i in view.with_op(op) for vertex in view.graph.vertices_of(i) if view.is_float[vertex])
            found.hold(view, vertices, "kernel", lists.why(op))
