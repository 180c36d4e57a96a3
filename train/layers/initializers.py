"""What variables of layers start with: drawn from generators of their own, never from NumPy's global one."""

import math
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...graph.errors import TrainingError

#: A function of a generator and a shape that returns an array, or the array itself.
Start = Callable[[np.random.Generator, tuple[int, ...]], Any] | np.ndarray[Any, Any]


def zeros(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Return zeros."""
    return np.zeros(shape, np.float32)


def ones(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Return ones."""
    return np.ones(shape, np.float32)


def glorot_uniform(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Return numbers within ``sqrt(6 / (inputs + outputs))`` of 0, counting inputs and outputs of one number.

    Args:
        rng: The generator.
        shape: [..., inputs, outputs]; the sizes before are those of a filter.

    Source of the method: Glorot and Bengio, 2010.
    """
    places = math.prod(shape[:-2])
    limit = math.sqrt(6 / (places * (shape[-2] + shape[-1])))
    return rng.uniform(-limit, limit, shape).astype(np.float32)


def small_uniform(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Return numbers within 0.05 of 0."""
    return rng.uniform(-0.05, 0.05, shape).astype(np.float32)


def orthogonal(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Return a matrix whose shorter side's vectors are orthogonal and of length 1. Source of the method: Saxe and others, 2013."""
    rows, columns = shape
    q, r = np.linalg.qr(rng.standard_normal((max(shape), min(shape))))
    q *= np.sign(np.diag(r))
    return (q if rows >= columns else q.T).astype(np.float32)


class Starts:
    """Draws what the variables of one model start with, each from a generator of its own.

    Args:
        seed: Makes them the same every time, whatever the order in which they are made.
        saved: Arrays by the names of variables, which these start with instead.
    """

    def __init__(self, seed: int | None, saved: Mapping[str, Any] | None = None) -> None:
        self._seed = int(np.random.default_rng().integers(2**62)) if seed is None else seed
        self._saved = saved

    def seeded(self, seed: int | None) -> "Starts":
        """Return the same for a layer that may have a seed of its own."""
        return self if seed is None else Starts(seed, self._saved)

    def draw(self, path: str, shape: tuple[int, ...], dtype: "np.dtype[Any]", start: Start) -> Any:
        """Return the array that the variable called ``path`` starts with.

        Raises:
            TrainingError: If a saved one is missing, or of another shape or dtype.
        """
        if self._saved is None:
            rng = np.random.default_rng([self._seed, zlib.crc32(path.encode())])
            return start(rng, shape) if callable(start) else start
        found = self._saved.get(path)
        if found is None or (found.shape, found.dtype) != (shape, dtype):
            received = "none" if found is None else f"{found.dtype}{list(found.shape)}"
            raise TrainingError(f"A saved array {dtype}{list(shape)} is needed for {path!r}. Received: {received}")
        return found
