"""Matrix products: MatMul, BatchMatMul, Einsum."""

from typing import TYPE_CHECKING

from ..types import Dim
from .dims import Conflict, Dims, broadcast, broadcast_dim, merge, merge_dim

if TYPE_CHECKING:
    from .call import Call, Rule


def _inner(a: Dim, b: Dim) -> None:
    try:
        merge_dim(a, b)
    except Conflict:
        raise Conflict(f"the inner dimensions of the product are {a} and {b}, and should be equal") from None


def _matrix(call: "Call", index: int, flag: str) -> tuple[Dim, Dim]:
    """The last two dimensions of an operand, swapped if the flag says so."""
    dims, swap = call.shape(index), call.flag(flag)
    if dims is None or swap is None:
        return (None, None)
    rows, columns = dims[-2:]
    return (columns, rows) if swap else (rows, columns)


def _product(call: "Call", flag_a: str, flag_b: str) -> tuple[Dim, Dim]:
    a, b = _matrix(call, 0, flag_a), _matrix(call, 1, flag_b)
    _inner(a[1], b[0])
    return (a[0], b[1])


def matmul(call: "Call") -> list[Dims]:
    """Rank 2 times rank 2."""
    call.ranked(0, 2)
    call.ranked(1, 2)
    return [_product(call, "transpose_a", "transpose_b")]


def batch_matmul(call: "Call") -> list[Dims]:
    """Stacks of matrices; the first version wants equal batch dimensions, later ones broadcast them."""
    a, b = call.shape(0), call.shape(1)
    for dims in (a, b):
        if dims is not None and len(dims) < 2:
            raise Conflict("the operands should be matrices or stacks of matrices")
    result = _product(call, "adj_x", "adj_y")
    if a is None or b is None:
        return [None]
    batch = merge(a[:-2], b[:-2]) if call.node.op_type == "BatchMatMul" else broadcast(a[:-2], b[:-2])
    return [None if batch is None else (*batch, *result)]


def einsum(call: "Call") -> list[Dims]:
    """Every label is one size; an ellipsis stands for dimensions that broadcast."""
    equation = call.text("equation").replace(" ", "")
    if not equation:
        return [None]
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if not arrow or len(terms) != len(call.dims):
        raise Conflict(f"equation {equation!r} should have {len(call.dims)} operands and an arrow")
    sizes: dict[str, Dim] = {}
    rest: Dims = ()
    for term, dims in zip(terms, call.dims, strict=True):
        front, dots, back = term.partition("...")
        if dims is None:
            rest = None if dots else rest
            for label in front + back:
                sizes.setdefault(label, None)
            continue
        named = len(front) + len(back)
        if named > len(dims) or (named != len(dims) and not dots):
            raise Conflict(f"term {term!r} of equation {equation!r} does not fit an operand of rank {len(dims)}")
        end = len(dims) - len(back)
        for label, size in zip(front + back, dims[: len(front)] + dims[end:], strict=True):
            seen = sizes.get(label)
            try:
                # A size of 1 broadcasts, also under a label.
                sizes[label] = broadcast_dim(seen, size) if label in sizes and 1 in (seen, size) else merge_dim(seen, size)
            except Conflict as conflict:
                raise Conflict(f"label {label!r} of equation {equation!r}: {conflict}") from None
        if dots:
            rest = broadcast(rest, dims[len(front) : end])
    front, dots, back = right.partition("...")
    unknown = [label for label in front + back if label not in sizes]
    if unknown:
        raise Conflict(f"label {unknown[0]!r} of the result of equation {equation!r} is in no operand")
    if dots and rest is None:
        return [None]
    middle = rest if dots and rest is not None else ()
    return [tuple(sizes[label] for label in front) + middle + tuple(sizes[label] for label in back)]


def triangular_solve(call: "Call") -> list[Dims]:
    """The right-hand side, batches broadcast."""
    a, b = call.shape(0), call.shape(1)
    if a is None or b is None or len(a) < 2 or len(b) < 2:
        return [None]
    batch = broadcast(a[:-2], b[:-2])
    return [None if batch is None else (*batch, *b[-2:])]


RULES: "dict[str, Rule]" = {
    "MatMul": matmul,
    "_FusedMatMul": matmul,
    "SparseMatMul": matmul,
    "BatchMatMul": batch_matmul,
    "BatchMatMulV2": batch_matmul,
    "BatchMatMulV3": batch_matmul,
    "Einsum": einsum,
    "MatrixTriangularSolve": triangular_solve,
    "MatrixSolve": triangular_solve,
}
