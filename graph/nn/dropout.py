"""Dropout."""

from typing import Any

import numpy as np

from .. import random
from ..errors import TraceError
from ..tracing.operations import apply, shape_of, symbolic


def dropout(x: Any, rate: float, *, training: bool = True, seed: int | None = None) -> Any:
    """Return an array of which each element is set to zero with a probability, and the others are scaled to keep the mean.

    Args:
        x: The array.
        rate: The probability, from 0 up to but not including 1.
        training: Whether to do anything.
        seed: Makes runs repeat the same choices, from one start of the program to the next.

    Raises:
        TraceError: If the rate is outside of its range.
    """
    if not isinstance(rate, int | float) or not 0 <= rate < 1:
        raise TraceError(f"The rate of dropout is a number from 0 up to 1, which is not included. Received: {rate!r}")
    if not training or not rate:
        return x
    kept = random.uniform(shape_of(x), seed=seed) >= rate
    scaled = symbolic(x) * (1 / (1 - rate))
    return apply("SelectV2", kept, scaled, np.zeros((), scaled.dtype))
