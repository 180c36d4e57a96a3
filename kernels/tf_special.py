"""TensorFlow: the error function's complement and inverses, the gamma function and its relatives, Bessel functions.

All but the first are computed in float64 and rounded.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

from .call import Call
from .elementwise import erf
from .registry import kernel

_Formula = Callable[..., Any]


def in_double(function: _Formula) -> _Formula:
    """Return the kernel that hands float64 operands to a function of (array module, arrays), and rounds to the operands' dtype."""

    def compute(call: Call, *operands: Any) -> Any:
        xp = call.xp
        wide = [xp.asarray(x, dtype=xp.float64) for x in operands]
        return xp.asarray(function(xp, *wide)).astype(operands[0].dtype)

    return compute


def erfc(xp: Any, x: Any) -> Any:
    """Return ``1 - erf(x)``, to full precision where it is small; of float32, computed in float32.

    Source of the method: the integral of ``exp(-t**2) / (t**2 + x**2)`` over t by the midpoint rule, with the residue that is
    the rule's whole error; Matta and Reichel, Math. Comp. 25 (1971).
    """
    step, terms = (0.6, 8) if x.dtype == xp.float32 else (0.5, 13)
    near = xp.minimum(xp.abs(x), 30)
    square, total, term = near * near, xp.zeros_like(near), xp.empty_like(near)
    for k in range(terms):
        t = (k + 0.5) * step
        xp.add(square, t * t, out=term)
        xp.divide(math.exp(-t * t), term, out=term)
        total += term
    coarse = xp.rint(near * 16) / 16  # whose square is exact
    total *= near * (2 * step / math.pi)
    total *= xp.exp(-coarse * coarse) * xp.exp((coarse - near) * (coarse + near))
    total += xp.where(near * step < math.pi, 2 / (1 + xp.exp(near * (2 * math.pi / step))), 0)
    return xp.where(x < 0, 2 - total, total)


kernel("tf:Erfc")(lambda call, x: erfc(call.xp, call.xp.asarray(x)))


# A published rational approximation of the normal distribution's quantiles, good to 1.2e-9.
_CENTRE = (
    (-39.69683028665376, 220.9460984245205, -275.9285104469687, 138.3577518672690, -30.66479806614716, 2.506628277459239),
    (-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572, 1.0),
)
_TAIL = (
    (-0.007784894002430293, -0.3223964580411365, -2.400758277161838, -2.549732539343734, 4.374664141464968, 2.938163982698783),
    (0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661907416, 1.0),
)


def _polynomial(coefficients: tuple[float, ...], x: Any) -> Any:
    return functools.reduce(lambda total, c: total * x + c, coefficients, 0 * x)


def ndtri(xp: Any, p: Any) -> Any:
    """Return the quantile of the normal distribution, refined by Halley's method to some 1e-15."""
    small = xp.minimum(p, 1 - p)  # by symmetry
    safe = xp.clip(xp.where(xp.isnan(small), 0.5, small), 1e-300, 0.5)
    q = safe - 0.5
    centre = q * _polynomial(_CENTRE[0], q * q) / _polynomial(_CENTRE[1], q * q)
    t = xp.sqrt(-2 * xp.log(safe))
    x = xp.where(safe < 0.02425, _polynomial(_TAIL[0], t) / _polynomial(_TAIL[1], t), centre)
    for _ in range(2):
        error = 0.5 * erfc(xp, -x / xp.sqrt(2.0)) - safe
        step = error * xp.sqrt(2 * xp.pi) * xp.exp(x * x / 2)
        x = x - step / (1 + x * step / 2)
    x = xp.where(p > 0.5, -x, x)
    x = xp.where(p == 0, -xp.inf, xp.where(p == 1, xp.inf, x))
    return xp.where((p >= 0) & (p <= 1), x, xp.nan)


def erfinv(xp: Any, x: Any) -> Any:
    """Return the inverse of the error function; near 0, where quantiles lose digits, by Newton's method."""
    near = xp.abs(x) < 0.25
    far = ndtri(xp, (xp.where(near, 0.5, x) + 1) / 2) / xp.sqrt(2.0)
    start = xp.where(near, x, 0)
    y = start * xp.sqrt(xp.pi) / 2
    for _ in range(4):
        y = y - (erf(xp, xp.asarray(y)) - start) * xp.exp(y * y) * xp.sqrt(xp.pi) / 2
    return xp.where(near, y, far)


# Coefficients of Stirling's series, B(2k) / (2k (2k - 1)).
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
# B(2k) / 2k.
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


def _log_gamma_above(xp: Any, x: Any) -> Any:
    """Return log(gamma(x)) for positive x: Stirling's series at x + 10 and up, less the factors in between."""
    shifted = xp.where(x < 10, x + 10, x)
    square = 1 / (shifted * shifted)
    series = _polynomial(_STIRLING[::-1], square) / shifted
    result = (shifted - 0.5) * xp.log(shifted) - shifted + 0.5 * xp.log(2 * xp.pi) + series
    factors = xp.ones_like(x)
    for k in range(10):
        factors = factors * (xp.where(x < 10, x, 1) + k * (x < 10))
    return result - xp.log(factors)


def lgamma(xp: Any, x: Any) -> Any:
    """Return the logarithm of the absolute value of the gamma function."""
    positive = xp.where(x > 0, x, 1 - x)
    above = _log_gamma_above(xp, positive)
    reflected = xp.log(xp.pi / xp.abs(xp.sin(xp.pi * (x - xp.rint(x))))) - above
    result = xp.where(x > 0, above, reflected)
    result = xp.where(xp.isinf(x) | ((x <= 0) & (x == xp.floor(x))), xp.inf, result)
    return xp.where((x == 1) | (x == 2), 0.0, result)


def digamma(xp: Any, x: Any) -> Any:
    """Return the derivative of the gamma function's logarithm."""
    positive = xp.where(x > 0, x, 1 - x)
    total = xp.zeros_like(positive)
    shifted = positive
    for _ in range(10):
        is_low = shifted < 10
        total = total - xp.where(is_low, 1 / shifted, 0)
        shifted = xp.where(is_low, shifted + 1, shifted)
    square = 1 / (shifted * shifted)
    above = xp.log(shifted) - 0.5 / shifted - _polynomial(_DIGAMMA[::-1], square) * square + total
    result = xp.where(x > 0, above, above - xp.pi / xp.tan(xp.pi * (x - xp.rint(x))))
    result = xp.where(x == xp.inf, xp.inf, result)
    result = xp.where((x < 0) & (x == xp.floor(x)), xp.nan, result)
    return xp.where(x == 0, xp.nan, result)  # as TensorFlow has it


for _op, _function in {"Digamma": digamma, "Erfinv": erfinv, "Lgamma": lgamma, "Ndtri": ndtri}.items():
    kernel(f"tf:{_op}")(in_double(_function))
