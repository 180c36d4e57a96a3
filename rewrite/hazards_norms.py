"""Hazards of reductions: normalizations and softmaxes written out, and sums or means over very many elements."""

from .hazards import Found
from .typegraph import DENY
from .view import Stats, View

_REDUCTIONS = ("ReduceMean", "ReduceSum", "ReduceL2", "ReduceSumSquare", "ReduceL1", "GlobalAveragePool")
_SQUARES = ("ReduceL2", "ReduceSumSquare")
#: What may stand between a sum of squares and the division by its root.
_TAIL = frozenset(
    [
        *("Add", "Sub", "Sqrt", "Rsqrt", "Reciprocal", "Pow", "Max", "Min", "Clip", "Abs", "Neg", "Mul", "Div", "Where"),
        *("Expand", "Cast", "Unsqueeze", "Squeeze", "Reshape", "Transpose", "Identity", "Tile", "Sum"),
    ]
)
_SHAPES = frozenset(["Unsqueeze", "Squeeze", "Reshape", "Transpose", "Identity", "Flatten", "Cast", "Expand"])
_LONGEST_TAIL = 200
#: A mean of more elements is not taken in low precision.
_LONG = 4096
#: Normalized values are below the root of their number; a product with up to this stays far from 65504.
_LARGEST_SCALE = 256.0


def find_normalizations(view: View, found: Found) -> None:
    """Mean of squares, root, division: layer and RMS norms, L2 normalization, standard deviations, written out."""
    for i in view.with_op(*_REDUCTIONS):
        vertex = view.graph.vertex(view.nodes[i].outputs[0])
        if not view.is_float[vertex]:
            continue
        squares = _squares_before(view, i)
        if view.ops[i] not in _SQUARES and not squares:
            continue
        members = [vertex, *squares]
        for square in squares:
            members += _centering(view, square)
        tail, ends = _tail(view, vertex)
        affines = [_affine(view, end) for end in ends]
        ends += [other for affine in affines for other in affine]
        found.hold(
            view,
            [*members, *tail, *ends],
            "normalization",
            f"it is part of a normalization by the squares summed in {view.nodes[i].label!r}",
            spreads=True,
        )
        found.bounded.update(ends)
        if view.is_tf:  # whose normalizations no runtime takes for one op
            continue
        centered = [view.operand(view.node_of(member), 0) for member in members if view.op(member) == "Sub"]
        fitting = [affine for affine in affines if affine and _fits(view, affine)]
        found.affines += [(view.graph.vertex(value), affine) for value in centered if value is not None for affine in fitting]


def _squares_before(view: View, i: int) -> list[int]:
    """Return the vertices of the node, and of changes of shape, that square what node ``i`` reduces."""
    source = view.operand(i, 0)
    way: list[int] = []
    while source is not None:
        node = source.producer
        vertex = view.graph.vertex(source)
        number = view.node_of(vertex)
        op = view.ops[number] if number >= 0 else ""
        way.append(vertex)
        if op == "Pow":
            return way if view.scalar(view.operand(number, 1)) == 2 else []
        if op in ("Square", "SquaredDifference"):
            return way
        if op == "Mul":
            return way if node.inputs[0] is node.inputs[1] else []
        if op not in _SHAPES:
            return []
        source = view.operand(number, 0)
    return []


def _centering(view: View, square: int) -> list[int]:
    """Return the vertices that subtract the mean before a square: ``x - ReduceMean(x)``."""
    number = view.node_of(square)
    if view.ops[number] == "SquaredDifference":
        members = []
    else:
        value = view.operand(number, 0)
        if value is None or view.op_of(value) != "Sub":
            return []
        members = [view.graph.vertex(value)]
        number = view.node_of(members[0])
    mean = view.operand(number, 1)
    mean = view.source(mean) if view.is_tf else mean
    if mean is None or view.op_of(mean) not in ("ReduceMean", "GlobalAveragePool"):
        return []
    return [*members, view.graph.vertex(mean)]


def _affine(view: View, end: int) -> list[int]:
    """Return the product with a scale and the sum with an offset, both constant, that follow a division; runtimes fuse them."""
    found: list[int] = []
    for op in ("Mul", "Add"):
        readers = view.graph.successors(found[-1] if found else end)
        if len(readers) != 1 or view.op(readers[0]) != op or len(list(view.operands(view.node_of(readers[0])))) != 1:
            break
        found.append(readers[0])
    return found


def _fits(view: View, affine: list[int]) -> bool:
    """Whether scale and offset leave normalized values in the range of every low dtype."""
    constants = [view.constant(value) for vertex in affine for value in view.nodes[view.node_of(vertex)].inputs]
    return all(tensor is None or Stats(tensor).largest < _LARGEST_SCALE for tensor in constants)


def _tail(view: View, start: int) -> tuple[list[int], list[int]]:
    """Follow a sum of squares to where other values are divided by, or multiplied with, what it became.

    Returns:
        The vertices on the way, and those of the divisions and products.
    """
    way: set[int] = {start}
    ends: list[int] = []
    stack = [start]
    while stack and len(way) < _LONGEST_TAIL:
        for other in view.graph.successors(stack.pop()):
            if other in way or not view.is_float[other] or view.op(other) not in _TAIL:
                continue
            number = view.node_of(other)
            scales = view.ops[number] in ("Mul", "Div")
            if scales and any(True for _ in view.operands(number, besides=way)):  # something else
                ends.append(other)
                continue
            way.add(other)
            stack.append(other)
    way.discard(start)
    return list(way), [end for end in ends if end not in way]


def find_softmaxes(view: View, found: Found) -> None:
    """Exponentials divided by their sum: what comes out is between 0 and 1."""
    for i in view.with_op("ReduceSum"):
        source = view.operand(i, 0)
        if source is None or view.op(view.graph.vertex(source)) != "Exp":
            continue
        start = view.graph.vertex(view.nodes[i].outputs[0])
        way, ends = _tail(view, start)
        divisions = [end for end in ends if view.op(end) == "Div" or any(view.op(v) == "Reciprocal" for v in way)]
        why = f"it divides exponentials by their sum {view.nodes[i].label!r}"
        found.hold(view, [view.graph.vertex(source), start, *way, *divisions], "softmax-by-hand", why, spreads=True)
        found.bounded.update(divisions)


def find_long_reductions(view: View, found: Found) -> None:
    """Means over very many elements. (Sums are on the DenyList whatever their length.)"""
    for i in view.with_op("ReduceMean", "GlobalAveragePool", "AveragePool"):
        vertex = view.graph.vertex(view.nodes[i].outputs[0])
        count = view.reduced(i)
        if count is not None and count > _LONG and view.color[vertex] != DENY:
            found.hold(view, [vertex], "long-reduction", f"it is the mean of {count} elements")


NORM_RULES = (find_normalizations, find_softmaxes, find_long_reductions)
