"""TensorFlow: functions of one number, and the gradients of those whose gradient is an op of its own."""

from collections.abc import Callable
from typing import Any

from ..graph.errors import KernelError
from .call import Call
from .elementwise import UNARY, bind_function, erf, in_place, sigmoid
from .registry import bound, kernel


def _plain(name: str) -> Callable[..., Any]:
    return lambda call, x: getattr(call.xp, name)(x)


for _op in (
    *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Exp", "Log", "Neg", "Sign", "Sin", "Sinh", "Sqrt"),
    *("Tan", "Tanh"),
):
    kernel(f"tf:{_op}", inplace=True)(in_place(UNARY[_op]))
    bound(f"tf:{_op}")(bind_function(UNARY[_op]))

for _op, _name in {"Expm1": "expm1", "Log1p": "log1p", "Rint": "rint", "Square": "square"}.items():
    kernel(f"tf:{_op}", inplace=True)(in_place(_name))
    bound(f"tf:{_op}")(bind_function(_name))

for _op, _name in {
    "Abs": "abs",
    "Angle": "angle",
    "ComplexAbs": "abs",
    "Imag": "imag",
    "Invert": "invert",
    "IsFinite": "isfinite",
    "IsInf": "isinf",
    "IsNan": "isnan",
    "LogicalNot": "logical_not",
    "Real": "real",
}.items():
    kernel(f"tf:{_op}", elementwise=True)(_plain(_name))
    bound(f"tf:{_op}")(bind_function(_name))


def _whole(name: str) -> Callable[..., Any]:
    return lambda call, x: x if x.dtype.kind in "iu" else getattr(call.xp, name)(x)


for _op, _name in {"Ceil": "ceil", "Floor": "floor", "Round": "rint"}.items():
    kernel(f"tf:{_op}", elementwise=True)(_whole(_name))

kernel("tf:Conj")(lambda call, x: x.conj() if hasattr(x, "conj") else x)
kernel("tf:Inv", "tf:Reciprocal", elementwise=True)(lambda call, x: x.dtype.type(1) / x)
kernel("tf:Rsqrt", elementwise=True)(lambda call, x: x.dtype.type(1) / call.xp.sqrt(x))
kernel("tf:Sigmoid", inplace=True)(lambda call, x: sigmoid(call.xp, x, call.out))
kernel("tf:Erf", elementwise=True)(lambda call, x: erf(call.xp, x))


def _conjugate(y: Any) -> Any:
    return y.conj() if y.dtype.kind == "c" else y


# Gradients from the result y and the gradient dy of it.
kernel("tf:TanhGrad", elementwise=True)(lambda call, y, dy: dy * (1 - y * y))  # TensorFlow conjugates neither this y nor the next
kernel("tf:SigmoidGrad", elementwise=True)(lambda call, y, dy: dy * y * (1 - y))
kernel("tf:InvGrad", "tf:ReciprocalGrad", elementwise=True)(lambda call, y, dy: -dy * _conjugate(y) * _conjugate(y))
kernel("tf:SqrtGrad", elementwise=True)(lambda call, y, dy: dy * y.dtype.type(0.5) / _conjugate(y))


@kernel("tf:RsqrtGrad", elementwise=True)
def _rsqrt_grad(call: Call, y: Any, dy: Any) -> Any:
    y = _conjugate(y)
    return y.dtype.type(-0.5) * (dy * y) * (y * y)


@kernel("tf:PopulationCount")
def _population_count(call: Call, x: Any) -> Any:
    import numpy as np

    octets = np.ascontiguousarray(x).view(np.uint8).reshape(*x.shape, x.dtype.itemsize)
    return np.unpackbits(octets, axis=-1).sum(-1, dtype=np.uint8)


@kernel("tf:CheckNumerics", "tf:CheckNumericsV2", moves=True)
def _check_numerics(call: Call, x: Any) -> Any:
    if not call.xp.isfinite(x).all():
        found = "NaN" if call.xp.isnan(x).any() else "infinity"
        raise KernelError(f"{call.node.op_type} found {found}: {call.attr('message')}")
    return x


@kernel("tf:L2Loss")
def _l2_loss(call: Call, x: Any) -> Any:
    flat = x.reshape(-1)
    return call.xp.dot(flat, flat) / x.dtype.type(2)
