"""Products of matrices and other sums of products."""

from collections.abc import Sequence
from string import ascii_letters
from typing import Any

import numpy as np

from ..errors import TraceError
from .array import SymbolicArray
from .functions import implements
from .operations import apply, cast, common_dtype, rank, symbolic
from .reductions import sum_
from .shapes import expand_dims, reshape, squeeze


def _computable(arrays: Sequence[Any], dtype: Any = None) -> tuple[list[SymbolicArray], "np.dtype[Any]"]:
    """Return operands in a dtype that products have ops for, and the dtype of the result."""
    kind = common_dtype(*arrays) if dtype is None else np.dtype(dtype)
    if kind.kind == "b":
        raise TraceError("A product of arrays of truth values has no op; convert with .astype(int) first.")
    inner = np.dtype(np.int32) if kind.kind in "iu" and kind.itemsize < 4 else kind
    return [symbolic(x, inner) for x in arrays], kind


def matmul(a: Any, b: Any, dtype: Any = None) -> SymbolicArray:
    """The product of matrices, or of stacks of them that broadcast, as ``numpy.matmul``."""
    if not rank(a) or not rank(b):
        raise TraceError("matmul takes arrays of one dimension at least; multiply numbers with *.")
    (x, y), kind = _computable([a, b], dtype)
    row, column = rank(x) == 1, rank(y) == 1
    x = expand_dims(x, 0) if row else x
    y = expand_dims(y, 1) if column else y
    result = apply("MatMul" if rank(x) == rank(y) == 2 else "BatchMatMulV2", x, y)
    axes = (*([-2] if row else []), *([-1] if column else []))
    return symbolic(squeeze(result, axes) if axes else result, kind)


@implements("dot")
def dot(a: Any, b: Any) -> Any:
    """The product of matrices and vectors; of more axes, the sum over the last of ``a`` and the last but one of ``b``."""
    if not rank(a) or not rank(b):
        return np.multiply(symbolic(a), symbolic(b))
    return matmul(a, b) if rank(b) <= 2 else tensordot(a, b, ([-1], [-2]))


@implements("vdot")
def vdot(a: Any, b: Any) -> Any:
    """The sum of the products of all elements."""
    return matmul(reshape(a, (-1,)), reshape(b, (-1,)))


@implements("inner")
def inner(a: Any, b: Any) -> Any:
    """The sum of products over the last axes."""
    return np.multiply(symbolic(a), symbolic(b)) if not rank(a) or not rank(b) else tensordot(a, b, ([-1], [-1]))


@implements("outer")
def outer(a: Any, b: Any) -> Any:
    """The products of each two elements."""
    return np.multiply(reshape(a, (-1, 1)), reshape(b, (1, -1)))


@implements("tensordot")
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """The sum of products over pairs of axes."""
    if isinstance(axes, int):
        ones, twos = list(range(rank(a) - axes, rank(a))), list(range(axes))
    else:
        ones, twos = ([axis] if isinstance(axis, int) else list(axis) for axis in axes)
    left = list(range(rank(a)))
    right = [rank(a) + i for i in range(rank(b))]
    for one, two in zip(ones, twos, strict=True):
        right[two] = left[one]
    rest = [i for i in left if i not in right] + [i for i in right if i not in left]
    if (len(left), len(right), rest) == (2, 2, [0, 3]) and right[0] == 1:
        return matmul(a, b)
    text = ["".join(ascii_letters[i] for i in axes) for axes in (left, right, rest)]
    return einsum(f"{text[0]},{text[1]}->{text[2]}", a, b)


@implements("einsum")
def einsum(*operands: Any, optimize: Any = False) -> Any:
    """Einstein's sum convention, by an equation as text; more than two arrays are combined from left to right."""
    equation, *arrays = operands
    if not isinstance(equation, str):
        raise TraceError("numpy.einsum on symbolic arrays takes an equation as text first.")
    inputs, output = _terms(equation, len(arrays))
    found, kind = _computable(arrays)
    while len(found) > 2:
        later = set("".join(inputs[2:])) | set(output)
        term = "".join(dict.fromkeys(c for c in inputs[0] + inputs[1] if c in later and c != "."))
        term = ("..." if "..." in inputs[0] + inputs[1] else "") + term
        joined = apply("Einsum", *found[:2], N=2, equation=f"{inputs[0]},{inputs[1]}->{term}")
        found, inputs = [joined, *found[2:]], [term, *inputs[2:]]
    result = apply("Einsum", *found, N=len(found), equation=f"{','.join(inputs)}->{output}")
    return cast(result, kind) if result.dtype != kind else result


def _terms(equation: str, number: int) -> tuple[list[str], str]:
    """Return the axes of each operand and of the result, which NumPy may leave out: those that occur once, sorted."""
    left, arrow, output = equation.replace(" ", "").partition("->")
    inputs = left.split(",")
    if len(inputs) != number:
        raise TraceError(f"Equation {equation!r} is for {len(inputs)} arrays. Received: {number}")
    if not arrow:
        letters = left.replace(",", "").replace(".", "")
        output = ("..." if "..." in left else "") + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    return inputs, output


@implements("trace")
def trace_(a: Any) -> Any:
    """The sum of the diagonal of a matrix."""
    kind = np.trace(np.ones((1, 1), symbolic(a).dtype)).dtype
    return sum_(np.diagonal(a), -1, dtype=kind)


@implements("diagonal")
def diagonal(a: Any) -> Any:
    """The diagonal of a matrix."""
    if rank(a) != 2:
        raise TraceError(f"numpy.diagonal on symbolic arrays takes a matrix. Received: {a!r}")
    return apply("MatrixDiagPart", a)
