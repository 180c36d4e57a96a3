"""Activation functions by name, with the parameters that recurrent and fused ops give them."""

from collections.abc import Callable, Sequence
from typing import Any

from ..graph.errors import KernelError, did_you_mean
from .elementwise import sigmoid, softplus

#: Function of (array module, x, alpha, beta).
Formula = Callable[[Any, Any, float, float], Any]


#: Name in lower case -> (formula, default alpha, default beta); None where the function has no such parameter.
_FORMULAS: dict[str, tuple[Formula, float | None, float | None]] = {
    "relu": (lambda xp, x, a, b: xp.maximum(x, 0), None, None),
    "tanh": (lambda xp, x, a, b: xp.tanh(x), None, None),
    "sigmoid": (lambda xp, x, a, b: sigmoid(xp, x), None, None),
    "softsign": (lambda xp, x, a, b: x / (1 + xp.abs(x)), None, None),
    "softplus": (lambda xp, x, a, b: softplus(xp, x), None, None),
    "affine": (lambda xp, x, a, b: a * x + b, 1.0, 0.0),
    "leakyrelu": (lambda xp, x, a, b: xp.where(x < 0, a * x, x), 0.01, None),
    "thresholdedrelu": (lambda xp, x, a, b: xp.where(x > a, x, 0), 1.0, None),
    "scaledtanh": (lambda xp, x, a, b: a * xp.tanh(b * x), 1.0, 1.0),
    "hardsigmoid": (lambda xp, x, a, b: xp.clip(a * x + b, 0, 1), 0.2, 0.5),
    "elu": (lambda xp, x, a, b: xp.where(x < 0, a * xp.expm1(x), x), 1.0, None),
    "clip": (lambda xp, x, a, b: xp.clip(x, a, b), float("-inf"), float("inf")),
    "hardswish": (lambda xp, x, a, b: x * xp.clip(a * x + b, 0, 1), 1 / 6, 0.5),
}


def find_activations(
    names: Sequence[str], alphas: Sequence[float] | None, betas: Sequence[float] | None
) -> list[Callable[[Any, Any], Any]]:
    """Return functions of (array module, x), one per name.

    Args:
        names: Names in any case: ``"Tanh"``, ``"HardSigmoid"`` …
        alphas, betas: Parameters, taken in turn by the functions that have one; the rest have their defaults.

    Raises:
        KernelError: If a name is unknown.
    """
    alphas, betas = list(alphas or ()), list(betas or ())
    found = []
    for name in names:
        entry = _FORMULAS.get(name.lower())
        if entry is None:
            raise KernelError(f"Unknown activation function.{did_you_mean(name.lower(), _FORMULAS)} Received: {name!r}")
        formula, alpha, beta = entry
        if alpha is not None and alphas:
            alpha = alphas.pop(0)
        if beta is not None and betas:
            beta = betas.pop(0)
        found.append(_bind(formula, float(alpha or 0), float(beta or 0)))
    return found


def _bind(formula: Formula, alpha: float, beta: float) -> Callable[[Any, Any], Any]:
    return lambda xp, x: formula(xp, x, alpha, beta)
