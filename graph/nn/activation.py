"""Activations and softmaxes: one op each in a graph; on NumPy arrays outside of a trace, NumPy."""

import math
from typing import Any

import numpy as np

from ..tracing.context import active
from ..tracing.operations import apply, axis_of, rank, symbolic


def relu(x: Any) -> Any:
    """Return ``max(x, 0)``."""
    return np.maximum(x, 0) if active() is None else apply("Relu", x)


def relu6(x: Any) -> Any:
    """Return ``min(max(x, 0), 6)``."""
    return np.clip(x, 0, 6) if active() is None else apply("Relu6", x)


def leaky_relu(x: Any, alpha: float = 0.2) -> Any:
    """Return ``x`` where it is positive, ``alpha * x`` elsewhere."""
    return np.where(x > 0, x, alpha * x) if active() is None else apply("LeakyRelu", x, alpha=float(np.float32(alpha)))


def elu(x: Any) -> Any:
    """Return ``x`` where it is positive, ``exp(x) - 1`` elsewhere."""
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0))) if active() is None else apply("Elu", x)


def selu(x: Any) -> Any:
    """Return the self-normalizing variant of :func:`elu`. Source: Klambauer and others, 2017."""
    if active() is not None:
        return apply("Selu", x)
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    return scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def softplus(x: Any) -> Any:
    """Return ``log(1 + exp(x))``."""
    return np.logaddexp(x, 0) if active() is None else apply("Softplus", x)


def softsign(x: Any) -> Any:
    """Return ``x / (1 + abs(x))``."""
    return x / (1 + np.abs(x)) if active() is None else apply("Softsign", x)


def sigmoid(x: Any) -> Any:
    """Return ``1 / (1 + exp(-x))``."""
    return np.exp(-np.logaddexp(0, -x)) if active() is None else apply("Sigmoid", x)


def silu(x: Any) -> Any:
    """Return ``x * sigmoid(x)``, also called swish."""
    return x * sigmoid(x)


def erf(x: Any) -> Any:
    """Return the error function."""
    if active() is not None:
        return apply("Erf", x)
    values = np.asarray(x)
    return np.vectorize(math.erf, otypes=[np.float64])(values).astype(values.dtype)


def gelu(x: Any, approximate: bool = False) -> Any:
    """Return ``x`` times the probability that a standard normal number is below it.

    Args:
        x: The array.
        approximate: Whether to use the form with ``tanh``. Source of both: Hendrycks and Gimpel, 2016.
    """
    if approximate:
        return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + erf(x * 0.7071067811865476))


def softmax(x: Any, axis: int = -1) -> Any:
    """Return ``exp(x)`` divided by its sum along an axis."""
    if active() is not None:
        return along_last("Softmax", x, axis)
    powers = np.exp(x - np.max(x, axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def log_softmax(x: Any, axis: int = -1) -> Any:
    """Return the logarithm of :func:`softmax`."""
    if active() is not None:
        return along_last("LogSoftmax", x, axis)
    centered = x - np.max(x, axis, keepdims=True)
    return centered - np.log(np.exp(centered).sum(axis, keepdims=True))


def along_last(op_type: str, x: Any, axis: int) -> Any:
    """Apply an op that works along the last axis along another one."""
    i, last = axis_of(axis, rank(x)), rank(x) - 1
    return apply(op_type, x) if i == last else np.swapaxes(apply(op_type, np.swapaxes(symbolic(x), i, last)), i, last)
