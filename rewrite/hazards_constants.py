"""Hazards of constants: too large, too small, epsilons, scale factors, and masks (which are clamped instead)."""

from ..graph.dtypes import bfloat16, float16
from ..graph.graph import Node
from .hazards import Clamp, Found
from .view import Stats, View

#: Of each low dtype: the first magnitude that rounds to infinity, the smallest normal number.
LIMITS = {float16: (65520.0, 2.0**-14), bfloat16: (3.3961775e38, 2.0**-126)}
#: Factors from this on move ordinary values, up to 32 or down to 1/8, out of float16's range (65504) or below its normal numbers
#: (2**-14).
_FACTOR = 2048.0

#: What a huge negative mask becomes. It has to absorb scores when they are added, which 2**15 and more do to scores below 16, half
#: a step there; to leave room for scores added to it, up to 16352; and it is 3 * 2**14, exact in float16.
#: In bfloat16, where the lowest float32 rounds to infinity and a row of only infinities has no softmax, 2**127 leaves room for two.
_MASKS = {float16: 49152.0, bfloat16: 2.0**127}
#: Ops whose results are no larger than their operands.
_KEEP_SIZE = frozenset(
    [
        *("Relu", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "Concat", "Dropout", "Identity", "Reshape"),
        *("Cast", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Slice", "Pad"),
    ]
)
#: Ops for which an infinite bound is as good as a huge one, by operand slot (None: all).
_BOUNDS: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(("Max", "Min", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")),
    "Clip": (1, 2),
    "Pad": (2,),
    "com.microsoft:Pad": (2,),
}
_PASSING = frozenset(["Identity", "Input", "If", "Loop", "Scan", "Unsqueeze", "Squeeze", "Reshape", "Expand", "Flatten"])
#: Operands that are added to the result.
_BIASES = {
    **dict.fromkeys(("Conv", "ConvTranspose", "Gemm", "LayerNormalization", "InstanceNormalization", "GroupNormalization"), (2,)),
    "BatchNormalization": (2, 3),
}
#: Ops that an additive mask passes on its way to the softmax, with the scores or without them.
_MASK_WAY = frozenset(
    [
        *("Add", "Sub", "Mul", "Where", "Sum", "Max", "Min", "Neg", "Expand", "Unsqueeze", "Squeeze", "Reshape", "Flatten"),
        *("Transpose", "Slice", "Concat", "Split", "Tile", "Gather", "Identity", "Cast", "Trilu", "ScatterND", "Pad"),
        *("ScatterElements", "If", "Loop", "Scan", "Input", "ConstantOfShape", "Initializer", "Constant"),
    ]
)
_MASK_ENDS = frozenset(["Softmax", "com.microsoft:BiasSoftmax", "Attention", "com.microsoft:MultiHeadAttention"])


def find_bad_constants(view: View, found: Found) -> None:
    """Constants that overflow or vanish, where it matters to the op that reads them."""
    infinite, normal = LIMITS[view.low]
    for node in view.constants:
        stats = view.stats(node)
        if stats is None or not stats.largest or _is_ordinary(view, stats):
            continue
        readers = _readers(view, node)
        if stats.largest >= infinite:
            _overflow(view, found, node, stats, readers)
        else:
            for reader in readers:
                _underflow(view, found, node, stats, reader, normal)
        if view.low is float16:
            for reader in readers:
                _scale(view, found, node, stats, reader)


def _readers(view: View, node: Node) -> list[int]:
    """Return the vertices that read a constant, directly or through what hands it on."""
    vertex = view.graph.vertex(node.outputs[0])
    direct = view.graph.successors(vertex)
    if _PASSING.isdisjoint([view.op(reader) for reader in direct]):
        return [reader for reader in dict.fromkeys(direct) if view.is_float[reader]]
    found = view.walk([vertex], lambda v: True, up=False, past=lambda v: _passes_on(view, v))
    return [reader for reader in found if not _passes_on(view, reader)]


def _is_ordinary(view: View, stats: Stats) -> bool:
    """Whether the elements of a constant are such that none of its readers is in danger."""
    infinite, normal = LIMITS[view.low]
    if stats.largest >= infinite or (view.low is float16 and not 1 / _FACTOR < stats.largest < _FACTOR):
        return False
    return stats.smallest >= normal


def _passes_on(view: View, vertex: int) -> bool:
    """Whether a vertex hands a constant on unchanged: identities, borders of bodies, changes of shape."""
    return view.op(vertex) in _PASSING


def _overflow(view: View, found: Found, node: Node, stats: Stats, readers: list[int]) -> None:
    if not view.is_tf and _only_masks(view, found, node):
        return
    held = [other for other in readers if not _is_bound(view, node, other)]
    grown = [other for other in held if view.op(other) in ("Mul", "Add", "Sub", "Sum")]
    behind = view.walk(
        grown, lambda v: not view.is_fixed(v), up=False, past=lambda v: not view.is_linear(v) and v not in found.bounded
    )
    held += [other for other in behind if view.is_linear(other)]
    found.hold(
        view,
        held,
        "constant-overflow",
        f"its constant {node.label!r} holds {_show(stats.largest)}, too large for {view.low}",
        spreads=True,
    )


def _only_masks(view: View, found: Found, node: Node) -> bool:
    """Whether a constant only masks scores before a softmax; it is clamped then, which needs a constant that is stored."""
    vertex = view.graph.vertex(node.outputs[0])
    way = view.walk([vertex], lambda v: True, up=False, past=lambda v: view.op(v) in _MASK_WAY and not view.is_linear(v))
    ends = [other for other in way if view.op(other) not in _MASK_WAY]
    masks = any(view.op(other) in _MASK_ENDS for other in ends) and all(
        view.op(other) in _MASK_ENDS or _is_bound(view, node, other) for other in ends
    )
    masks = masks and not any(view.is_returned(other) for other in (vertex, *way) if view.op(other) not in _MASK_ENDS)
    if masks:
        sums = any(view.op(v) in ("Add", "Sum") and _adds_masks(view, v, {vertex, *way}) for v in way)
        most = _MASKS[view.low]
        found.clamps[node] = Clamp(most / 2 if sums else most, (vertex, *way))
    return masks


def _adds_masks(view: View, vertex: int, way: set[int]) -> bool:
    """Whether a sum adds two masks."""
    operands = list(view.operands(view.node_of(vertex)))
    return len(operands) > 1 and all(view.graph.vertex(value) in way for _, value in operands)


def _is_bound(view: View, node: Node, vertex: int) -> bool:
    """Whether all a reader does with a constant is to bound other values by it."""
    op = view.op(vertex)
    if op not in _BOUNDS:
        return False
    slots = _BOUNDS[op]
    if slots is None:
        return True
    number = view.node_of(vertex)
    return all(view.source(view.operand(number, i)) is not node.outputs[0] for i in range(3) if i not in slots)


def _underflow(view: View, found: Found, node: Node, stats: Stats, reader: int, normal: float) -> None:
    op = view.op(reader)
    if op in ("Add", "Sub", "Sum", "Max", "Clip", "Where", "Min") and stats.size == 1:
        if stats.largest >= normal:
            return
        found.hold(
            view,
            [reader],
            "epsilon",
            f"its constant {node.label!r} is {_show(stats.largest)}, which {view.low} cannot hold",
            spreads=True,
        )
    elif _is_added(view, node, reader):
        return
    elif stats.largest < normal or (op in ("Div", "Reciprocal", "Pow", "Log") and stats.smallest < normal):
        what = "at most " if stats.size > 1 else ""
        number = stats.largest if stats.largest < normal else stats.smallest
        why = f"its constant {node.label!r} holds {what}{_show(number)}, which loses its digits in {view.low}"
        found.hold(view, [reader], "constant-vanishes", why, spreads=not view.is_linear(reader))


def _is_added(view: View, node: Node, reader: int) -> bool:
    """Whether a constant is only added to results that are not small for being so: a bias."""
    op, number = view.op(reader), view.node_of(reader)
    if op in ("Add", "Sub", "Sum", "Concat", "Max", "Min", "Where"):
        return True
    slots = _BIASES.get(op, ())
    return bool(slots) and all(
        i in slots for i, value in enumerate(view.nodes[number].inputs) if view.source(value) is node.outputs[0]
    )


def _scale(view: View, found: Found, node: Node, stats: Stats, reader: int) -> None:
    """Products and quotients with a large or small factor. (A weight of a linear op is no factor.)"""
    op = view.op(reader)
    if op in ("Add", "Sub") and _FACTOR <= stats.largest < LIMITS[float16][0] and not _masks(view, reader):
        why = f"it adds {node.label!r}, {_show(stats.largest)}, next to which {view.low} keeps no small differences"
        found.hold(view, [reader], "scale", why, spreads=True)
    if op not in ("Mul", "Div") or not stats.largest:
        return
    number = view.node_of(reader)
    divides = op == "Div" and view.source(view.operand(number, 1)) is node.outputs[0]
    if op == "Div" and not divides:
        return
    if _FACTOR <= stats.largest < LIMITS[float16][0] or stats.largest <= 1 / _FACTOR:
        verb = "divides by" if divides else "multiplies by"
        why = f"it {verb} {node.label!r}, {_show(stats.largest)}: ordinary values leave the range of {view.low}"
        found.hold(view, [reader], "scale", why, spreads=True)


def _masks(view: View, vertex: int) -> bool:
    """Whether a sum goes to a softmax."""
    way = view.walk([vertex], lambda v: True, up=False, past=lambda v: view.op(v) in _MASK_WAY and not view.is_linear(v), most=64)
    return any(view.op(other) in _MASK_ENDS for other in (vertex, *way))


def _show(number: float) -> str:
    return f"{number:.6g}"


def find_gains(view: View, found: Found) -> None:
    """Follow what filters with equal weights make of an input of about 1: there, and only there, the sums are known.

    Such models are real: test files of exporters and runtimes have their weights replaced by one number, to be small.
    """
    graph = view.graph
    size = {} if view.is_tf and graph.parts[0].is_function else dict.fromkeys(view.inputs, 1.0)
    if view.low is not float16 or not size or not any(_may_gain(view, node) for node in view.constants):
        return
    for i, node in enumerate(view.nodes):
        if not node.outputs:
            continue
        known = [size[v] for value in node.inputs if value is not None and (v := graph.vertex(value)) in size]
        if not known:
            continue
        gain = _gain(view, i)
        if gain is None:
            continue
        for value in node.outputs:
            size[graph.vertex(value)] = max(known) * gain
        if max(known) * gain > LIMITS[float16][0] / 4 and view.is_float[graph.vertex(node.outputs[0])]:
            why = f"equal weights add up to about {_show(max(known) * gain)} here, for an input of about 1"
            found.hold(view, [graph.vertex(node.outputs[0])], "gain", why, spreads=True)


def _may_gain(view: View, node: Node) -> bool:
    """Whether a constant, as weights, could enlarge an operand: all equal, and more than 1 if as many as possible add up."""
    stats = view.stats(node)
    if stats is None or not stats.size or not stats.shape:
        return False
    most: float = stats.size if len(stats.shape) < 2 else stats.size // min(stats.shape)
    if node.op_type == "ConstantOfShape":  # which holds one number for all elements, however many
        most = node.outputs[0].shape.size or float("inf")
    if stats.largest * most <= 1 or not stats.is_even:
        return False
    readers = view.graph.successors(view.graph.vertex(node.outputs[0]))
    return any(view.op(reader) in ("Conv", "Gemm", "MatMul") or _passes_on(view, reader) for reader in readers)


def _gain(view: View, i: int) -> float | None:
    """Return by how much a node enlarges its operand at most; None if that is not known."""
    if view.ops[i] in ("Conv", "Gemm", "MatMul"):
        weights, depth = view.operand(i, 1), view.depth(i)
        source = view.source(weights)
        stats = None if source is None else view.stats(source.producer)
        if stats is None or depth is None or not stats.is_even:
            return None
        return stats.largest * depth
    return 1.0 if view.ops[i] in _KEEP_SIZE else None


CONSTANT_RULES = (find_bad_constants, find_gains)
