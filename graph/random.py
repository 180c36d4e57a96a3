"""Random numbers of graphs, new ones in every run: ``ampgraph.random``."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .errors import TraceError
from .tracing.array import SymbolicArray
from .tracing.operations import apply, is_symbolic, size_operand, symbolic


def uniform(shape: Sequence[Any], low: Any = 0.0, high: Any = 1.0, *, dtype: Any = np.float32, seed: int | None = None) -> Any:
    """Return numbers that are evenly spread from ``low`` up to ``high``, which is not included.

    Args:
        shape: The sizes, which may be symbolic: ``x.shape``.
        low, high: The bounds.
        dtype: A float dtype.
        seed: Makes the numbers of all runs the same from one start of the program to the next; an integer other than 0.
    """
    numbers = _draw("RandomUniform", shape, dtype, seed)
    if not is_symbolic(low) and not is_symbolic(high) and np.array_equal([low, high], [0, 1]):
        return numbers
    return numbers * (high - low) + low


def normal(shape: Sequence[Any], *, dtype: Any = np.float32, seed: int | None = None) -> Any:
    """Return normal numbers of mean 0 and variance 1: see :func:`uniform`."""
    return _draw("RandomStandardNormal", shape, dtype, seed)


def truncated_normal(shape: Sequence[Any], *, dtype: Any = np.float32, seed: int | None = None) -> Any:
    """Return normal numbers that are not further than 2 from 0: see :func:`uniform`."""
    return _draw("TruncatedNormal", shape, dtype, seed)


def integers(low: int, high: int, shape: Sequence[Any], *, dtype: Any = np.int64, seed: int | None = None) -> Any:
    """Return integers from ``low`` up to ``high``, which is not included: see :func:`uniform`."""
    bounds = symbolic(low, np.dtype(dtype)), symbolic(high, np.dtype(dtype))
    return apply("RandomUniformInt", _sizes(shape), *bounds, **_seeds(seed))


def _draw(op_type: str, shape: Sequence[Any], dtype: Any, seed: int | None) -> SymbolicArray:
    return apply(op_type, _sizes(shape), types={"dtype": dtype}, **_seeds(seed))


def _sizes(shape: Any) -> Any:
    sizes = size_operand(shape if isinstance(shape, tuple | list) else (shape,))
    if isinstance(sizes, np.ndarray) and (sizes < 0).any():
        raise TraceError(f"The sizes of random numbers are not negative. Received: {shape!r}")
    return sizes


def _seeds(seed: int | None) -> dict[str, int]:
    if seed is None:
        return {}
    if not isinstance(seed, int) or not seed:
        raise TraceError(f"A seed is an integer other than 0. Received: {seed!r}")
    return {"seed": seed, "seed2": 0}
