"""NumPy's universal functions as ops of TensorFlow, with NumPy's own promotion of dtypes."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import TraceError, did_you_mean
from .array import SymbolicArray
from .operations import apply, cast, kind_of, symbolic

#: Ufuncs that are one op, on operands of the dtype that NumPy computes in.
OPS: dict[str, str] = {
    "absolute": "Abs",
    "add": "AddV2",
    "arccos": "Acos",
    "arccosh": "Acosh",
    "arcsin": "Asin",
    "arcsinh": "Asinh",
    "arctan": "Atan",
    "arctan2": "Atan2",
    "arctanh": "Atanh",
    "bitwise_and": "BitwiseAnd",
    "bitwise_or": "BitwiseOr",
    "bitwise_xor": "BitwiseXor",
    "ceil": "Ceil",
    "conjugate": "Identity",
    "cos": "Cos",
    "cosh": "Cosh",
    "divide": "RealDiv",
    "equal": "Equal",
    "exp": "Exp",
    "expm1": "Expm1",
    "fabs": "Abs",
    "floor": "Floor",
    "floor_divide": "FloorDiv",
    "fmod": "TruncateMod",
    "greater": "Greater",
    "greater_equal": "GreaterEqual",
    "invert": "Invert",
    "isfinite": "IsFinite",
    "isinf": "IsInf",
    "isnan": "IsNan",
    "left_shift": "LeftShift",
    "less": "Less",
    "less_equal": "LessEqual",
    "log": "Log",
    "log1p": "Log1p",
    "maximum": "Maximum",
    "minimum": "Minimum",
    "multiply": "Mul",
    "negative": "Neg",
    "not_equal": "NotEqual",
    "positive": "Identity",
    "power": "Pow",
    "float_power": "Pow",
    "reciprocal": "Reciprocal",
    "remainder": "FloorMod",
    "right_shift": "RightShift",
    "rint": "Rint",
    "sign": "Sign",
    "sin": "Sin",
    "sinh": "Sinh",
    "sqrt": "Sqrt",
    "square": "Square",
    "subtract": "Sub",
    "tan": "Tan",
    "tanh": "Tanh",
}

#: The same on truth values, which TensorFlow's arithmetic does not take.
LOGICAL: dict[str, str] = {
    "absolute": "Identity",
    "add": "LogicalOr",
    "bitwise_and": "LogicalAnd",
    "bitwise_or": "LogicalOr",
    "bitwise_xor": "NotEqual",
    "invert": "LogicalNot",
    "logical_and": "LogicalAnd",
    "logical_not": "LogicalNot",
    "logical_or": "LogicalOr",
    "logical_xor": "NotEqual",
    "maximum": "LogicalOr",
    "minimum": "LogicalAnd",
    "multiply": "LogicalAnd",
    "square": "Identity",
}
#: Comparisons that TensorFlow does not make on truth values; NumPy compares them as integers.
_ORDERS = ("greater", "greater_equal", "less", "less_equal")
#: Powers that have an op of their own, as NumPy's operator takes them.
_POWERS = {-1: "Reciprocal", 0.5: "Sqrt", 1: "Identity", 2: "Square"}
#: Integers and truth values are whole, finite numbers: NumPy gives them back, or says so.
_WHOLE = {"ceil": True, "floor": True, "rint": True, "trunc": True, "isfinite": True, "isinf": False, "isnan": False}


def _scaled(factor: float) -> Callable[[SymbolicArray], SymbolicArray]:
    return lambda x: apply("Mul", x, np.asarray(factor, x.dtype))


def _trunc(x: SymbolicArray) -> SymbolicArray:
    return apply("SelectV2", x < 0, np.ceil(x), np.floor(x))


def _logaddexp(x: SymbolicArray, y: SymbolicArray) -> SymbolicArray:
    top: Any = np.maximum(x, y)
    bottom = np.minimum(x, y)
    gap = apply("SelectV2", x == y, np.zeros((), x.dtype), bottom - top)  # of equal infinities too
    total: SymbolicArray = top + np.log1p(np.exp(gap))
    return total


def _heaviside(x: SymbolicArray, at_zero: SymbolicArray) -> SymbolicArray:
    inside = apply("SelectV2", x == 0, at_zero, apply("SelectV2", x > 0, np.ones((), x.dtype), np.zeros((), x.dtype)))
    return apply("SelectV2", apply("IsNan", x), x, inside)


def _ignoring_nan(op_type: str) -> Callable[[SymbolicArray, SymbolicArray], SymbolicArray]:
    def build(x: SymbolicArray, y: SymbolicArray) -> SymbolicArray:
        if x.dtype.kind != "f":
            return apply(op_type, x, y)
        return apply("SelectV2", apply("IsNan", x), y, apply("SelectV2", apply("IsNan", y), x, apply(op_type, x, y)))

    return build


#: Ufuncs that are several ops.
BUILDERS: dict[str, Callable[..., SymbolicArray]] = {
    "deg2rad": _scaled(np.pi / 180),
    "degrees": _scaled(180 / np.pi),
    "exp2": lambda x: apply("Pow", np.asarray(2, x.dtype), x),
    "fmax": _ignoring_nan("Maximum"),
    "fmin": _ignoring_nan("Minimum"),
    "heaviside": _heaviside,
    "hypot": lambda x, y: apply("Sqrt", apply("AddV2", apply("Square", x), apply("Square", y))),
    "log10": lambda x: apply("Mul", apply("Log", x), np.asarray(1 / np.log(10), x.dtype)),
    "log2": lambda x: apply("Mul", apply("Log", x), np.asarray(1 / np.log(2), x.dtype)),
    "logaddexp": _logaddexp,
    "rad2deg": _scaled(180 / np.pi),
    "radians": _scaled(np.pi / 180),
    "trunc": _trunc,
}

#: What ``ufunc.reduce`` does, as a function of NumPy.
_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any"}


@functools.cache
def supported() -> tuple[str, ...]:
    """Return the names of all ufuncs that symbolic arrays take."""
    return tuple(sorted({*OPS, *LOGICAL, *BUILDERS, "matmul", "divmod", *_ORDERS}))


def call_ufunc(ufunc: "np.ufunc", method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Do what a ufunc does, on symbolic arrays.

    Args:
        ufunc: The function.
        method: ``"__call__"`` or ``"reduce"``.
        inputs: Its operands.
        kwargs: ``dtype``, or what ``reduce`` takes.

    Raises:
        TraceError: If there is no op for it, or it is asked for something that graphs do not do.
    """
    name = ufunc.__name__
    if method == "reduce" and name in _REDUCTIONS:
        from .functions import call_function

        kwargs.setdefault("axis", 0)
        return call_function(getattr(np, _REDUCTIONS[name]), inputs, kwargs)
    if method != "__call__":
        raise TraceError(f"numpy.{name}.{method} is not supported on symbolic arrays.")
    dtype = kwargs.pop("dtype", None)
    if kwargs:
        hint = " Use numpy.where on the result." if "where" in kwargs else ""
        raise TraceError(f"numpy.{name} takes no {', '.join(kwargs)} on symbolic arrays.{hint}")
    if name == "divmod":
        return inputs[0] // inputs[1], inputs[0] % inputs[1]
    if name not in supported():
        raise unsupported(name)
    kinds = [kind_of(x) for x in inputs]
    wanted: dict[str, Any] = {} if dtype is None else {"signature": (*[None] * ufunc.nin, np.dtype(dtype))}
    weak = all(isinstance(kind, type) for kind in kinds)
    try:
        loop = ufunc.resolve_dtypes((*(map(np.dtype, kinds) if weak else kinds), *[None] * ufunc.nout), **wanted)
    except TypeError as error:
        raise TraceError(f"{error}") from None
    if name == "matmul":
        from .products import matmul

        return matmul(inputs[0], inputs[1], loop[0])
    result = _build(name, loop, inputs)
    return SymbolicArray(result.value, result.trace, weak and result.dtype.kind in "if")


def _build(name: str, loop: tuple[Any, ...], inputs: tuple[Any, ...]) -> SymbolicArray:
    if name.startswith("logical_"):
        loop = (np.dtype(bool),) * len(loop)
    operands = [symbolic(x, dtype) for x, dtype in zip(inputs, loop, strict=False)]
    first = operands[0].dtype
    if name in _WHOLE and symbolic(inputs[0]).dtype.kind in "iub":
        return _of_whole(name, symbolic(inputs[0]))
    if first.kind == "b" and name in _ORDERS:
        operands = [cast(x, np.dtype(np.uint8)) for x in operands]
    elif first.kind == "b" and name in LOGICAL:
        return apply(LOGICAL[name], *operands)
    if first.kind == "u" and name in ("absolute", "sign", "negative"):
        return _of_unsigned(name, operands[0])
    if name == "power" and type(inputs[1]) in (int, float) and inputs[1] in _POWERS and first.kind == "f":
        return apply(_POWERS[inputs[1]], operands[0])
    if name == "fmod" and first.kind in "iu" and first.itemsize < 4:
        return cast(apply("TruncateMod", *(cast(x, np.dtype(np.int32)) for x in operands)), first)
    result = BUILDERS[name](*operands) if name in BUILDERS else apply(OPS[name], *operands)
    return result if result.dtype == loop[-1] else cast(result, loop[-1])


def _of_whole(name: str, x: SymbolicArray) -> SymbolicArray:
    """Return the nearest whole number of whole numbers, themselves; or whether they are finite."""
    if name.startswith("is"):
        return apply("OnesLike" if _WHOLE[name] else "ZerosLike", cast(x, np.dtype(bool)))
    kind = getattr(np, name).resolve_dtypes((x.dtype, None))[-1]
    return cast(x, kind)


def _of_unsigned(name: str, x: SymbolicArray) -> SymbolicArray:
    if name == "absolute":
        return x
    zero = np.zeros((), x.dtype)
    return apply("Sub", zero, x) if name == "negative" else cast(apply("NotEqual", x, zero), x.dtype)


#: What to use instead of functions whose results have shapes that depend on elements, or that have no op.
_INSTEAD = {
    "argsort": "numpy.argmax or numpy.argmin",
    "argwhere": "numpy.where(condition, x, y)",
    "array": "numpy.stack",
    "bincount": "numpy.sum of a comparison with numpy.arange",
    "compress": "numpy.where(condition, x, y)",
    "delete": "numpy.concatenate of slices",
    "extract": "numpy.where(condition, x, y)",
    "flatnonzero": "numpy.where(condition, x, y)",
    "insert": "numpy.concatenate of slices",
    "median": "numpy.mean",
    "nonzero": "numpy.where(condition, x, y)",
    "put": "numpy.where(condition, x, y)",
    "copyto": "numpy.where(condition, x, y)",
    "sort": "numpy.max or numpy.min",
    "unique": "numpy.where(condition, x, y)",
    "vectorize": "numpy's functions on whole arrays",
    "apply_along_axis": "numpy's functions with axis=",
    "interp": "numpy.where(condition, x, y)",
    "array_equal": "numpy.all(x == y)",
    "allclose": "numpy.all(numpy.isclose(x, y))",
    "array2string": "the results of the function",
}


def unsupported(name: str, module: str = "numpy") -> TraceError:
    """Return the error for a function of NumPy that has no ops, with the nearest one that has."""
    from .functions import names

    hint = f" Use {_INSTEAD[name]} instead." if name in _INSTEAD else did_you_mean(name, [*supported(), *names()])
    return TraceError(f"{module}.{name} is not supported on symbolic arrays.{hint}")
