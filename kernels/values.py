"""Values as kernels take and give them: operands widened, results rounded, and memory that is free."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from ..graph.dtypes import DTYPES, DType, cast_array, dtype_of_array
from ..graph.rounding import round_on_bfloat16_grid, round_on_grid
from .handle import Handle

#: What a value is in a branch of a TensorFlow graph that is not taken.
DEAD: Any = type("Dead", (), {"__repr__": lambda self: "a value in a branch that is not taken"})()
#: Elements from which on writing a result over an operand pays.
_LEAST_REUSED = 1 << 12


def kind_of(value: Any) -> str:
    """Return what a value is, for messages: an array, or what a resource or variant of TensorFlow stands for."""
    return "nothing" if value is None else getattr(value, "kind", "an array")


def number(xp: Any, value: float, dtype: Any) -> Any:
    """Return a number of a NumPy dtype in the form that functions of the array module take fastest."""
    return xp.array(value, dtype) if xp.__name__ == "numpy" else dtype.type(value)


def read_only(value: Any) -> Any:
    """Return a view of an array that neither kernels nor users can write to; what is no array as it is."""
    if not hasattr(value, "flags"):
        return value
    view = value.view()
    if hasattr(view, "setflags"):  # CuPy's arrays have no such flag
        view.setflags(write=False)
    return view


def on_grid(alone: list[Any], dtype: DType, is_exact: bool, reuses: bool) -> Any:
    """Return a result of low dtype as float32, rounded to the numbers that the dtype has.

    Args:
        alone: The result, of any dtype, in a list; where nothing else holds it, it is written over.
        dtype: Its declared dtype, float16 or bfloat16.
        is_exact: Whether it has such numbers only.
        reuses: Whether anything may be written over.
    """
    if getattr(alone[0], "dtype", None) != "float32":
        return widened(as_declared(alone[0], dtype))
    if is_exact:
        return alone[0]
    out = spare(alone) if reuses else None
    return (round_on_grid if dtype.name == "float16" else round_on_bfloat16_grid)(alone[0], out)


def detached(results: tuple[Any, ...]) -> Sequence[Any]:
    """Return the results, copied where they are small parts of arrays that may be dropped only when nothing shows them.

    The axes of a copy lie in memory as before: sums and products add up in that order.
    """
    total = sum(getattr(result, "nbytes", 0) for result in results)
    return [result.copy("K") if _is_part(result, 2 * total) else result for result in results]


def _is_part(array: Any, size: int) -> bool:
    if getattr(array, "base", None) is None or array.nbytes == 0:
        return False
    return getattr(_owner(array), "nbytes", 0) > size


def apart(array: Any, others: Iterable[Any]) -> Any:
    """Return an array, copied if it shares memory with one of the others."""
    owner = _owner(array)
    return array.copy() if any(_owner(other) is owner for other in others) else array


def _owner(array: Any) -> Any:
    """Return what owns the memory of an array."""
    while (base := getattr(array, "base", None)) is not None:
        array = base
    return array


def spare(operands: list[Any]) -> Any:
    """Return an operand that nobody else holds, which the result may be written over; None if there is none."""
    for i in range(len(operands)):
        if getattr(operands[i], "size", 0) < _LEAST_REUSED or _holders(operands, i) > _ALONE:
            continue  # a view of it would hold it too
        operand = operands[i]
        if operand.base is None and operand.flags.c_contiguous and operand.flags.writeable and operand.dtype.kind == "f":
            others = (other for other in operands if other is not operand)
            if all(_fits(other, operand) for other in others):
                return operand
    return None


def _holders(items: list[Any], i: int) -> int:
    return sys.getrefcount(items[i])


_ALONE = _holders([object()], 0)


def _fits(other: Any, operand: Any) -> bool:
    """Whether an operation on both has a result of ``operand``'s shape and dtype."""
    if other is None or other.dtype != operand.dtype:
        return False
    if other.shape == operand.shape:
        return True
    sizes = operand.shape[operand.ndim - other.ndim :]
    return other.ndim <= operand.ndim and all(a in (1, b) for a, b in zip(other.shape, sizes, strict=True))


def wide_dtype(dtype: DType) -> DType:
    """Return the dtype that kernels compute values of ``dtype`` in."""
    if dtype.kind == "float" and dtype.bits < 32:
        return DTYPES["float32"]
    if dtype.bits < 8:
        return DTYPES["int8" if dtype.kind == "int" else "uint8"] if dtype.kind in ("int", "uint") else dtype
    return dtype


def widened(value: Any) -> Any:
    """Return a value in the dtype in which kernels compute it."""
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return [widened(item) for item in value] if value.__class__ is list else value
    if dtype.char != "e" and dtype.kind != "V":
        return value
    return cast_array(value, wide_dtype(dtype_of_array(dtype)))


def as_declared(value: Any, dtype: DType | None) -> Any:
    """Return a result as an array of the declared dtype, rounded once."""
    if value.__class__ is list:
        return [as_declared(item, dtype) for item in value]
    if dtype is None or value is None or dtype.kind in ("string", "handle") or value is DEAD or value.__class__ is Handle:
        return value
    if not hasattr(value, "ndim") or not hasattr(value, "base"):
        import numpy as np

        value = np.asarray(value)
    if value.dtype != dtype.numpy:
        value = cast_array(value, dtype)
    return value if value.ndim else value.reshape(())[...]  # NumPy's scalars become arrays
