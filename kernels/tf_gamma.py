"""TensorFlow: incomplete gamma and beta functions, zeta and polygamma functions, modified Bessel functions; all in float64."""

from collections.abc import Callable
from math import pi
from typing import Any

from .registry import kernel
from .room import check_broadcast
from .tf_special import digamma, in_double, lgamma

#: Terms and factors after which series and fractions are cut off; hard cases end with what they have.
_MOST = 2000
_TINY = 1e-300
#: B(2k) / (2k)!, from k = 1 on.
_BERNOULLI = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600)


def _series(xp: Any, a: Any, x: Any) -> Any:
    """Return ``1 + x / (a + 1) + x**2 / ((a + 1) (a + 2)) + …``."""
    total = term = xp.ones_like(x)
    for n in range(1, _MOST):
        term = term * x / (a + n)
        total = total + term
        if not (xp.abs(term) > 1e-17 * total).any():
            break
    return total


def _fraction(xp: Any, first: Any, factors: Any) -> Any:
    """Return ``b0 + a1 / (b1 + a2 / (b2 + …))``, from the left; ``factors(n)`` is (a, b) of place n."""
    result = numerator = xp.where(first == 0, _TINY, first)
    denominator = xp.zeros_like(result)
    for n in range(1, _MOST):
        a, b = factors(n)
        denominator = b + a * denominator
        denominator = 1 / xp.where(denominator == 0, _TINY, denominator)
        numerator = b + a / numerator
        numerator = xp.where(numerator == 0, _TINY, numerator)
        factor = numerator * denominator
        result = result * factor
        if not (xp.abs(factor - 1) > 1e-16).any():
            break
    return result


def _incomplete_gamma(xp: Any, a: Any, x: Any) -> tuple[Any, Any]:
    """Return the lower and the upper incomplete gamma function, regularized.

    Source of the method: Abramowitz and Stegun, 6.5.29, a series, where x is small beside a, else 6.5.31, a continued fraction.
    """
    check_broadcast(xp, a, x)
    is_known = (a > 0) & (x >= 0) & (x < xp.inf) & (a < xp.inf)
    a0, x0 = xp.where(is_known, a, 1.0), xp.where(is_known, x, 1.0)
    is_small = x0 < a0 + 1
    front = xp.exp(a0 * xp.log(xp.maximum(x0, _TINY)) - x0 - lgamma(xp, a0))
    low = front / a0 * _series(xp, a0, xp.where(is_small, x0, 0.0))
    far = xp.where(is_small, a0 + 1, x0)
    high = front / _fraction(xp, far + 1 - a0, lambda n: (n * (a0 - n), far + 1 - a0 + 2 * n))
    lower = xp.where(is_small, low, 1 - high)
    upper = xp.where(is_small, 1 - low, high)
    lower, upper = xp.where(x0 == 0, 0.0, lower), xp.where(x0 == 0, 1.0, upper)
    ends = (a > 0) & (x == xp.inf) & (a < xp.inf)
    return tuple(xp.where(is_known, value, xp.where(ends, end, xp.nan)) for value, end in ((lower, 1.0), (upper, 0.0)))


def _betainc(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """Return the regularized incomplete beta function.

    Source of the method: Abramowitz and Stegun, 26.5.8, a continued fraction, of 1 - x where that converges faster.
    """
    check_broadcast(xp, a, b, x)
    is_known = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
    a0, b0, x0 = (xp.where(is_known, value, 0.5) for value in (a, b, x))
    swapped = x0 > (a0 + 1) / (a0 + b0 + 2)
    p, q, z = xp.where(swapped, b0, a0), xp.where(swapped, a0, b0), xp.where(swapped, 1 - x0, x0)

    def factors(n: int) -> tuple[Any, float]:
        m = n // 2
        if n % 2:
            return -(p + m) * (p + q + m) * z / ((p + 2 * m) * (p + 2 * m + 1)), 1.0
        return m * (q - m) * z / ((p + 2 * m - 1) * (p + 2 * m)), 1.0

    logarithm = p * xp.log(xp.maximum(z, _TINY)) + q * xp.log(xp.maximum(1 - z, _TINY))
    front = xp.exp(logarithm - lgamma(xp, p) - lgamma(xp, q) + lgamma(xp, p + q))
    result = front / p / _fraction(xp, xp.ones_like(z), factors)
    result = xp.where(z == 0, 0.0, result)
    return xp.where(is_known, xp.where(swapped, 1 - result, result), xp.nan)


def _zeta(xp: Any, x: Any, q: Any) -> Any:
    """Return the sum of ``(q + n) ** -x`` over all n from 0 on: ten terms, and the rest by the formula of Euler and Maclaurin."""
    check_broadcast(xp, x, q)
    total: Any = 0.0
    for n in range(10):
        total = total + xp.power(q + n, -x)
    end = q + 10
    total = total + xp.power(end, 1 - x) / (x - 1) + xp.power(end, -x) / 2
    term = x * xp.power(end, -x - 1)
    for k, c in enumerate(_BERNOULLI):
        total = total + c * term
        term = term * (x + 2 * k + 1) * (x + 2 * k + 2) / (end * end)
    pole = (q <= 0) & (q == xp.floor(q))
    total = xp.where((q <= 0) & (x != xp.floor(x)), xp.nan, xp.where(pole, xp.inf, total))
    return xp.where(x > 1, total, xp.where(x == 1, xp.inf, xp.nan))


def _polygamma(xp: Any, n: Any, x: Any) -> Any:
    """Return the n-th derivative of the digamma function."""
    sign = xp.where(n % 2 == 0, -1.0, 1.0)
    high = sign * xp.exp(lgamma(xp, n + 1)) * _zeta(xp, n + 1, x)
    result = xp.where(n == 0, digamma(xp, x), high)
    return xp.where((n >= 0) & (n == xp.floor(n)), result, xp.nan)


def _bessel(xp: Any, order: int, x: Any) -> Any:
    """Return the modified Bessel function of order 0 or 1, times ``exp(-abs(x))``.

    Source of the method: Abramowitz and Stegun, 9.6.16, an integral over a whole period, where the trapezoidal rule converges
    faster than any power; from 50 on 9.7.1, an asymptotic series.
    """
    size = xp.abs(x)
    near, far = xp.minimum(size, 50), xp.maximum(size, 50)
    total = (1 + (-1) ** order * xp.exp(-2 * near)) / 2
    count = 64
    for k in range(1, count):
        cosine = xp.cos(pi * k / count)
        total = total + xp.exp(near * (cosine - 1)) * cosine**order
    term = series = xp.ones_like(far)
    for k in range(1, 20):
        term = -term * (4 * order - (2 * k - 1) ** 2) / (8 * k * far)
        series = series + term
    result = xp.where(size < 50, total / count, series / xp.sqrt(2 * pi * far))
    return xp.where(xp.isnan(x), x, result * xp.sign(x) if order else result)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "BesselI0": lambda xp, x: _bessel(xp, 0, x) * xp.exp(xp.abs(x)),
    "BesselI0e": lambda xp, x: _bessel(xp, 0, x),
    "BesselI1": lambda xp, x: _bessel(xp, 1, x) * xp.exp(xp.abs(x)),
    "BesselI1e": lambda xp, x: _bessel(xp, 1, x),
    "Betainc": _betainc,
    "Igamma": lambda xp, a, x: _incomplete_gamma(xp, a, x)[0],
    "Igammac": lambda xp, a, x: _incomplete_gamma(xp, a, x)[1],
    "Polygamma": _polygamma,
    "Zeta": _zeta,
}
for _op, _function in _FUNCTIONS.items():
    kernel(f"tf:{_op}")(in_double(_function))
