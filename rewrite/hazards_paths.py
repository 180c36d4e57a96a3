"""Hazards of where a value goes: into a logarithm, a phase, a position, an integer, a comparison, straight through, into a
quantized op.
"""

from collections.abc import Iterable

from .constants import count_weights
from .hazards import Found
from .typegraph import ALLOW, CLEAR, DENY, GRAY
from .view import LINEAR, View

#: Ops that tell magnitudes or powers, and what may stand between them and a logarithm.
_MAGNITUDES = frozenset(["Pow", "Square", "SquaredDifference", "Abs", "ReduceL2", "ReduceSumSquare", "Sqrt", "ReduceL1"])
_BEFORE_LOG = frozenset(
    [
        *("Add", "Sub", "Mul", "Div", "Sum", "Max", "Min", "Clip", "Neg", "Reciprocal", "Where", "BatchNormalization"),
        *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "AveragePool", "Cast", "Input", "If", "Loop", "Scan"),
        *("Reshape", "Transpose", "Unsqueeze", "Squeeze", "Flatten", "Identity", "Concat", "Split", "Slice", "Pad", "Gather"),
        *_MAGNITUDES,
    ]
)
#: Ops that only move elements, or hand them on.
_MOVES = frozenset(
    [
        *("Reshape", "Transpose", "Unsqueeze", "Squeeze", "Flatten", "Identity", "Concat", "Split", "Slice", "Pad", "Cast"),
        *("Gather", "GatherND", "GatherElements", "Expand", "Tile", "DepthToSpace", "SpaceToDepth", "ReverseSequence"),
        *("Compress", "Input", "If", "Loop", "Scan"),
    ]
)
#: Weights of a spectrum's linear ops that count: so many numbers, and so much of the model. Front ends of real audio models have
#: less of both; where a whole network leads to the logarithm of magnitudes it has all.
_HEAVY = 1 << 14
_HEAVY_SHARE = 0.1
_ACTIVATIONS = frozenset(
    ["Relu", "ThresholdedRelu", "LeakyRelu", "PRelu", "Elu", "Gelu", "Swish", "HardSwish", "Mish", "Softplus", "Selu", "Celu"]
)
#: A linear op that adds up at most so many products is arithmetic on its operands, such as a position times a frequency.
_SHALLOW = 16
_INTEGERS = ("int", "uint")


def find_logarithms(view: View, found: Found) -> None:
    """What reaches a logarithm, back to the linear ops it comes from.

    Where magnitudes or powers are told on the way, it is a spectrum: the linear ops before it stay float32 all the way from
    the input. They do not if their weights are much of the model, unless the spectrum is measured by its own extremes.
    """
    for i in view.with_op("LogSoftmax"):
        vertex = view.graph.vertex(view.nodes[i].outputs[0])
        found.hold(view, [vertex], "logarithm", "it is the logarithm of probabilities, which runtimes may round before")
    for i in view.with_op("Log", "ReduceLogSum"):
        vertex = view.graph.vertex(view.nodes[i].outputs[0])
        if not view.is_float[vertex]:
            continue
        way = _before_log(view, found, [vertex])
        linear = {other for other in way if view.is_linear(other)}
        for other in list(linear):  # a filter bank after the spectrum
            behind = _before_log(view, found, [other])
            if any(_tells_magnitude(view, item) for item in behind):
                way += behind
                linear.update(item for item in behind if view.is_linear(item))
        if any(_tells_magnitude(view, item) for item in way):
            front = view.walk(linear, lambda v: not view.is_fixed(v) and (view.is_linear(v) or view.op(v) in _MOVES))
            linear.update(front)
            weights = count_weights(view.constants_of({view.node_of(v) for v in linear}))
            if weights > max(_HEAVY, _HEAVY_SHARE * count_weights(view.nodes)) and not _told_by_extremes(view, vertex):
                way = [item for item in way if item not in linear]
            else:
                way += front
        if way:
            found.hold(view, [*way, vertex], "logarithm", f"it leads to the logarithm {view.nodes[i].label!r}", spreads=True)


def _told_by_extremes(view: View, vertex: int) -> bool:
    """Whether the smallest or largest of a logarithm's results scales all others."""
    after = view.walk([vertex], lambda v: view.color[v] in (GRAY, CLEAR, DENY) and not view.is_linear(v), up=False)
    return any(view.op(other) in ("ReduceMin", "ReduceMax") for other in after)


def _before_log(view: View, found: Found, starts: Iterable[int]) -> list[int]:
    def passes(vertex: int) -> bool:
        moves = view.color[vertex] == CLEAR and view.op(vertex) not in _ACTIVATIONS
        return (moves or view.op(vertex) in _BEFORE_LOG) and not view.is_linear(vertex)

    def enter(vertex: int) -> bool:
        if view.is_fixed(vertex) or _is_known(found, vertex, "logarithm"):
            return False
        return passes(vertex) or view.is_linear(vertex) or vertex in found.bounded

    def past(vertex: int) -> bool:
        return passes(vertex) and vertex not in found.bounded

    return view.walk(starts, enter, past=past)


def _tells_magnitude(view: View, vertex: int) -> bool:
    if view.op(vertex) == "Mul":
        inputs = view.nodes[view.node_of(vertex)].inputs
        return inputs[0] is inputs[1]
    return view.op(vertex) in _MAGNITUDES


def _is_known(found: Found, vertex: int, code: str) -> bool:
    hazard = found.hazards.get(vertex)
    return hazard is not None and hazard.code == code


def find_phases(view: View, found: Found) -> None:
    """What goes into a sine or cosine, back to where it comes from; deep linear ops make no phases worth the cost."""
    for i in view.with_op("Sin", "Cos", "Tan", "Mod"):
        vertex = view.graph.vertex(view.nodes[i].outputs[0])
        way = _upstream(view, found, [vertex], "phase", shallow=True)
        found.hold(view, way, "phase", f"it leads to {view.ops[i]} {view.nodes[i].label!r}")


def find_positions(view: View, found: Found) -> None:
    """Where an op samples: back to where the positions come from, and on to the positions that these are added to."""
    for i in view.with_op("GridSample"):
        vertex = view.graph.operand(i, 1)
        way = [vertex, *_upstream(view, found, [vertex], "position", shallow=True)]
        way += view.walk(way, lambda v: not view.is_fixed(v) and (view.op(v) in ("Add", "Sub") or view.op(v) in _MOVES), up=False)
        found.hold(view, way, "position", f"it leads to where {view.ops[i]} {view.nodes[i].label!r} samples")


def find_integers(view: View, found: Found) -> None:
    """Floats that become integers, or that decide which elements are taken."""
    choosing = ("TopK", "ArgMax", "ArgMin", "NonMaxSuppression", "NonZero", "Unique", "com.microsoft:Unique")
    for i in view.with_op("Cast", *choosing):
        node, op = view.nodes[i], view.ops[i]
        if op == "Cast":
            target = node.types.get("DstT" if view.is_tf else "T2")
            if target is None or target.kind not in _INTEGERS or not view.is_float[view.graph.operand(i, 0)]:
                continue
            starts = [view.graph.operand(i, 0)]
            why = f"it ends as an integer in {node.label!r}"
        else:
            operands = [slot for slot, value in enumerate(node.inputs) if value is not None and value.dtype is not None]
            starts = [v for slot in operands if view.is_float[v := view.graph.operand(i, slot)] or op == "NonMaxSuppression"]
            why = f"{node.op_type if view.is_tf else op} {node.label!r} chooses by it"
        found.hold(view, _upstream(view, found, starts, "integer"), "integer", why)


def find_equalities(view: View, found: Found) -> None:
    """Floats compared for equality."""
    for i in view.with_op("Equal"):
        vertex = view.graph.operand(i, 0)
        if view.is_float[vertex]:
            way = [vertex, *_upstream(view, found, [vertex], "equality")]
            found.hold(view, way, "equality", f"it is compared for equality in {view.nodes[i].label!r}")


def _upstream(view: View, found: Found, starts: Iterable[int], code: str, *, shallow: bool = False) -> list[int]:
    """Return the arithmetic that leads to ``starts``: back to inputs, constants, linear ops and bounded results.

    What was found before under the same ``code`` is not entered again. ``shallow``: pass through linear ops that add up few
    products, too.
    """

    def is_shallow(vertex: int) -> bool:
        depth = view.depth(view.node_of(vertex)) if shallow and view.ops[view.node_of(vertex)] in LINEAR else None
        return depth is not None and depth <= _SHALLOW

    def enter(vertex: int) -> bool:
        if view.is_fixed(vertex) or view.node_of(vertex) < 0:
            return view.node_of(vertex) < 0
        if _is_known(found, vertex, code):
            return False
        return is_shallow(vertex) if view.is_linear(vertex) else view.op(vertex) not in _ACTIVATIONS

    return view.walk(starts, enter, past=lambda vertex: vertex not in found.bounded)


def find_counts(view: View, found: Found) -> None:
    """Divisions by a number of elements that is counted when the model runs."""
    for i in view.with_op("Div"):
        source = view.source(view.operand(i, 1))
        while source is not None and view.op_of(source) in ("Unsqueeze", "Squeeze", "Reshape", "Expand", "Cast"):
            before = source.producer.inputs[0]
            if view.op_of(source) == "Cast" and (before is None or before.dtype is None or before.dtype.kind not in _INTEGERS):
                break
            source = view.source(before)
        if source is None or source.dtype is None or source.dtype.kind not in _INTEGERS:
            continue
        if view.op_of(source) in ("Input", "ReduceSum", "CumSum", "Size", "NonZero", "Range", "ArgMax", "TopK"):
            vertex = view.graph.vertex(view.nodes[i].outputs[0])
            found.hold(view, [vertex], "count", f"it divides by the count {source.name!r}", spreads=True)


def find_pass_throughs(view: View, found: Found) -> None:
    """Inputs and constants that reach a result of the model over ops that only move them: they come out bit by bit."""
    graph = view.graph
    main = graph.parts[0]
    ends = [
        graph.result_vertex(i)
        for i, (part, _) in enumerate(graph.results)
        if part is main and not graph.processed[graph.result_vertex(i)]
    ]

    def is_exact(vertex: int) -> bool:
        return view.color[vertex] == CLEAR and view.op(vertex) not in LINEAR

    if view.is_tf and not main.is_function:  # its results have no vertices, but the nodes that give them may not change
        ends = [v for value in main.outputs if not graph.processed[v := graph.vertex(value)] and is_exact(v)]

    def moves(vertex: int) -> bool:  # a constant that a Where or a Max chooses at times is no result
        return is_exact(vertex) and (view.op(vertex) in _MOVES or view.node_of(vertex) < 0)

    inputs = view.inputs if view.is_tf else [graph.vertex(value) for value in main.inputs]
    moved = set(view.walk(inputs, is_exact, up=False))
    both = view.walk(ends, moved.__contains__) if moved else []
    backward = set(view.walk(ends, moves))
    if backward:
        before = {other for vertex in (*backward, *ends) for other in graph.predecessors(vertex)}
        starts = [vertex for vertex in before if view.op(vertex) in ("Initializer", "Constant")]
        both += view.walk(starts, backward.__contains__, up=False)
    found.hold(view, both, "pass-through", "it hands an input or a constant on to a result, which stays exact")


def find_quantized(view: View, found: Found) -> None:
    """Ops that stand between DequantizeLinear and QuantizeLinear: runtimes replace the three by one on integers."""
    starts = [
        view.graph.vertex(view.nodes[i].outputs[0]) for i in view.with_op("DequantizeLinear", "com.microsoft:DequantizeLinear")
    ]
    if not starts:
        return
    first = view.walk(starts, lambda v: view.color[v] == CLEAR, up=False)
    for vertex in {other for start in (*starts, *first) for other in view.graph.successors(start)}:
        if view.is_float[vertex] and view.color[vertex] in (ALLOW, GRAY, CLEAR, DENY):
            found.hold(view, [vertex], "quantized", "it reads dequantized values")


def find_masks(view: View, found: Found) -> None:
    """Additive masks that are inputs of the model, and masks handed to attention ops."""
    graph = view.graph
    for i in view.with_op("Attention"):
        value = view.operand(i, 3)
        if value is not None and value.dtype is not None and value.dtype.kind == "float":
            vertex = graph.operand(i, 3)
            if vertex != graph.operand(i, 0):
                found.hold(view, [vertex], "mask", "it is an additive mask")
    starts = [vertex for vertex in view.inputs if view.is_float[vertex]]
    moved = [*starts, *view.walk(starts, lambda v: view.color[v] == CLEAR and not view.is_linear(v), up=False)]
    for start in moved:
        for vertex in graph.successors(start):
            if view.op(vertex) in ("Add", "Where") and view.is_float[vertex]:
                after = [v for v in graph.successors(vertex) if view.op(v) == "Softmax"]
                found.hold(view, [vertex, *after] if after else (), "mask", "it adds a mask that is an input of the model")


PATH_RULES = (
    find_quantized,
    find_logarithms,
    find_phases,
    find_positions,
    find_integers,
    find_equalities,
    find_counts,
    find_masks,
    find_pass_throughs,
)
