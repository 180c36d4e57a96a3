"""Products of matrices."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import GraphError
from ..graph import Node, Value
from .builder import Builder, operands

if TYPE_CHECKING:
    from .rules import Rule


def _products(b: Builder, node: Node, dy: Value, op: str, names: tuple[str, str]) -> tuple[Value, Value]:
    """Return the gradients of a product whose operands may be transposed, as attributes of these names say."""
    x, y = operands(node)
    tx, ty = bool(node.attr(names[0])), bool(node.attr(names[1]))

    def product(left: Value, right: Value, t_left: bool, t_right: bool) -> Value:
        given = {name: True for name, is_set in zip(names, (t_left, t_right), strict=True) if is_set}
        return b.node(op, [left, right], given).outputs[0]

    dx = product(y, dy, ty, True) if tx else product(dy, y, False, not ty)
    return dx, product(dy, x, True, tx) if ty else product(x, dy, not tx, False)


def _matmul(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    return _products(b, node, dy, "MatMul", ("transpose_a", "transpose_b"))


def _batch(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """For each matrix; batches that were broadcast are summed."""
    found = _products(b, node, dy, node.op_type, ("adj_x", "adj_y"))
    return [b.sum_to(g, operand) for g, operand in zip(found, operands(node), strict=True)]


def _einsum(b: Builder, node: Node, dy: Value) -> Sequence[Value | None]:
    """Each operand is exchanged with the result.

    Axes that an operand alone has were summed over: its gradient is the same all along them. Letters that it has twice
    stand for a diagonal.
    """
    terms, result = _spelt_out(b, node)
    values = operands(node)
    found: list[Value | None] = []
    for i, (x, term) in enumerate(zip(values, terms, strict=True)):
        others = [other for k, other in enumerate(terms) if k != i]
        distinct = "".join(dict.fromkeys(term))
        shared = "".join(c for c in distinct if c in result or any(c in other for other in others))
        equation = f"{','.join([result, *others])}->{shared}"
        rest = [value for k, value in enumerate(values) if k != i]
        g = dy if not others and shared == result else b.op("Einsum", dy, *rest, equation=equation.encode(), N=len(terms))
        for axis, letter in enumerate(distinct):
            if letter not in shared:
                g = b.node("ExpandDims", [g, b.vector([axis])]).outputs[0]
        if shared != distinct:
            at = b.vector([term.index(letter) for letter in distinct])
            shape = b.shape(x) if distinct == term else b.node("GatherV2", [b.shape(x), at, b.vector([0])]).outputs[0]
            g = b.node("BroadcastTo", [g, shape]).outputs[0]
        if distinct != term:
            g = b.op("Einsum", g, equation=f"{distinct}->{term}".encode(), N=1)
        found.append(g)
    return found


def _spelt_out(b: Builder, node: Node) -> tuple[list[str], str]:
    """Return the terms of an equation and its result with letters in the place of every ellipsis.

    An axis of size 1 that the result has longer gets a letter of its own: it is summed over.
    """
    equation: str = node.attr("equation").decode("utf-8", "replace").replace(" ", "")
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if not arrow or len(terms) != len(node.inputs):
        raise GraphError(f"Einsum {node} has a term for each operand and a result. Received: {equation!r}")
    if not any("..." in term for term in terms):
        return terms, result.replace("...", "")
    free = iter([c for c in map(chr, range(97, 400)) if c.isalpha() and c not in equation])
    parts = []
    for x, term in zip(operands(node), terms, strict=True):
        dims = b.dims(x)
        if dims is None or None in dims:
            raise GraphError(f"The gradient of Einsum {node} with '...' asks for known shapes. Received: {x}{x.shape}")
        start, stop = term.find("..."), len(term) - 3 - term.find("...")
        parts.append(dims[start : len(dims) - stop] if start >= 0 else ())
    most = max(map(len, parts))
    sizes = [next((p[k - most] for p in parts if len(p) >= most - k and p[k - most] != 1), 1) for k in range(most)]
    letters = [next(free) for _ in range(most)]
    spelt = []
    for part, term in zip(parts, terms, strict=True):
        own = "".join(letters[k - len(part)] if size == sizes[k - len(part)] else next(free) for k, size in enumerate(part))
        spelt.append(term.replace("...", own))
    return spelt, result.replace("...", "".join(letters))


RULES: dict[str, "Rule"] = {
    "BatchMatMul": _batch,
    "BatchMatMulV2": _batch,
    "Einsum": _einsum,
    "MatMul": _matmul,
}
