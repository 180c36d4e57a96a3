"""Matrix products: M x K times K x N."""

from typing import TYPE_CHECKING

from ..infer.dims import Conflict, broadcast, broadcast_dim, product
from ..types import Dim
from .sizes import Dims, Rule, ShapeOf, Work, dims_of, operand

if TYPE_CHECKING:
    from ..graph import Node

#: Ops that take two matrices and no stacks of them, besides TensorFlow's ``MatMul``.
_PLAIN = ("Gemm", "FusedGemm", "_FusedMatMul")


def _work(left: Dims, right: Dims, flip_left: bool, flip_right: bool) -> Work:
    """Return the work of a product of stacks of matrices; vectors count as NumPy's ``matmul`` takes them.

    A stack times one matrix is one product of more rows.
    """
    one: Dims = (1, left[0]) if left is not None and len(left) == 1 else left
    two: Dims = (right[0], 1) if right is not None and len(right) == 1 else right
    rows, inner = (None, None) if not one else (one[-1], one[-2]) if flip_left else (one[-2], one[-1])
    depth, columns = (None, None) if not two else (two[-1], two[-2]) if flip_right else (two[-2], two[-1])
    inner = inner if isinstance(inner, int) or depth is None else depth
    if one is None or two is None:
        return Work.product({"M": None, "N": columns, "K": inner}, None if two is None or len(two) > 2 else 1)
    if len(two) == 2 and not flip_left:
        return Work.product({"M": product(one[:-1]), "N": columns, "K": inner}, 1)
    try:
        stack = broadcast(tuple(one[:-2]), tuple(two[:-2])) or ()
    except Conflict:
        stack = (None,)
    return Work.product({"M": rows, "N": columns, "K": inner}, *stack)


def _flag(node: "Node", *names: str) -> bool:
    return any(bool(node.attributes.get(name)) for name in names)


def _matmul(node: "Node", shape_of: ShapeOf) -> Work:
    """Return the work of a product, whatever its attributes for transposing are called."""
    flips = _flag(node, "transpose_a", "adj_x", "transA"), _flag(node, "transpose_b", "adj_y", "transB")
    left, right = operand(node, shape_of, 0), operand(node, shape_of, 1)
    if node.op_type in _PLAIN or (node.op_type == "MatMul" and node.domain == "tf"):
        left, right = dims_of(left, 2), dims_of(right, 2)
    return _work(left, right, *flips)


def _quantized(node: "Node", shape_of: ShapeOf) -> Work:
    """Return the work of a product whose packed weights have no shape of their own."""
    left = operand(node, shape_of, 0)
    return _work(left, (node.attr("K"), node.attr("N")), False, False)


def _einsum(node: "Node", shape_of: ShapeOf) -> Work | None:
    """Return the work of a sum of products of two operands.

    What both operands and the result have is a stack, what only the operands have is added up; the rest are rows and columns.
    """
    equation = node.attr("equation")
    text = equation.decode(errors="replace").replace(" ", "") if isinstance(equation, bytes) else ""
    terms, arrow, result = text.partition("->")
    labels = terms.split(",")
    if len(labels) != 2 or len(node.inputs) != 2:
        return None
    if not arrow:
        result = "".join(sorted(label for label in set(terms) - set(",.") if terms.count(label) == 1)) + "..."
    found: list[dict[str, Dim]] = []
    for term, dims in zip(labels, (operand(node, shape_of, slot) for slot in (0, 1)), strict=True):
        front, dots, back = term.partition("...")
        known = dims if dims is not None and len(dims) >= len(front) + len(back) else None
        sizes: dict[str, Dim] = {}
        if known is None:
            sizes.update(dict.fromkeys(front + back))
            if dots:
                sizes["..."] = None
        else:
            rest = len(known) - len(back)
            sizes.update(zip(front + back, (*known[: len(front)], *known[rest:]), strict=True))
            if dots:
                sizes["..."] = product(known[len(front) : rest])
        found.append(sizes)
    left, right = found
    both = {label: _either(left[label], right[label]) for label in left.keys() & right.keys()}
    kept = {label for label in both if label in result}
    return Work.product(
        {
            "M": product(size for label, size in left.items() if label not in both),
            "N": product(size for label, size in right.items() if label not in both),
            "K": product(size for label, size in both.items() if label not in kept),
        },
        *(both[label] for label in kept),
    )


def _either(a: Dim, b: Dim) -> Dim:
    try:
        return broadcast_dim(a, b)
    except Conflict:
        return None


RULES: dict[tuple[str, str], Rule] = {
    **{("tf", op): _matmul for op in ("MatMul", "_FusedMatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")},
    **{("", op): _matmul for op in ("MatMul", "Gemm")},
    **{
        ("com.microsoft", op): _matmul
        for op in ("FusedMatMul", "TransposeMatMul", "FusedMatMulActivation", "FusedGemm", "GemmFastGelu")
    },
    **{("com.microsoft", op): _quantized for op in ("MatMulNBits", "MatMulBnb4")},
    ("tf", "Einsum"): _einsum,
    ("", "Einsum"): _einsum,
}
