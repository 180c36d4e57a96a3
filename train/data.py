"""The arrays that models are given: what cannot be trained on is refused before anything runs."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..graph.errors import TrainingError


def as_data(name: str, given: Any) -> Any:
    """Return an array of examples: floats as float32, all others as they are.

    Args:
        name: What messages call it.
        given: What NumPy makes an array of; the first axis is that of examples.

    Raises:
        TrainingError: If it is no array, is empty, holds no numbers, or some that are not finite.
    """
    if isinstance(given, np.ma.MaskedArray):
        raise TrainingError(
            f"{name} is a masked array, whose masked elements would count: give it .filled(…), or what is not masked."
        )
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise TrainingError(f"{name} is no array: its rows differ in their lengths, or hold something else. {error}") from None
    if array.dtype.kind not in "fiub" or not array.ndim:
        received = f"{array.dtype}{list(array.shape)}" if array.dtype.kind != "O" or array.ndim else type(given).__name__
        raise TrainingError(f"{name} is an array of numbers whose first axis is that of the examples. Received: {received}")
    if not array.size:
        raise TrainingError(f"{name} holds nothing. Received: {array.dtype}{list(array.shape)}")
    if array.dtype.kind != "f":
        return array
    with np.errstate(over="ignore"):
        array = array.astype(np.float32, copy=False)
    for start in range(0, len(array), rows := _rows(array)):
        finite = np.isfinite(array[start : start + rows])
        if not finite.all():
            place = np.unravel_index(int(np.argmin(finite)), finite.shape)
            index = [start + int(place[0]), *map(int, place[1:])]
            raise TrainingError(
                f"{name} holds numbers that are not finite in float32. Received: {array[tuple(index)]} at {index}"
            )
    return array


def _rows(array: Any) -> int:
    """Return how many examples are looked at at once, so that it takes little memory."""
    return max(1, 2**20 * len(array) // int(array.size))


def as_pair(x: Any, y: Any, names: tuple[str, str] = ("x", "y")) -> tuple[Any, Any]:
    """Return inputs and targets: see :func:`as_data`.

    Raises:
        TrainingError: If they are not as many.
    """
    x, y = as_data(names[0], x), as_data(names[1], y)
    if len(x) != len(y):
        raise TrainingError(
            f"Every example in {names[0]} has its target in {names[1]}. Received: {len(x)} examples and {len(y)} targets"
        )
    return x, y


def check_count(name: str, number: Any, least: int = 1) -> None:
    """Refuse what is no integer of at least ``least``.

    Raises:
        TrainingError: If it is not.
    """
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < least:
        raise TrainingError(f"{name} is an integer of at least {least}. Received: {number!r}")


def batches(count: int, batch_size: int, order: Any = None) -> Iterator[Any]:
    """Iterate over what selects the examples of each batch, the last of which may be shorter: a slice, or indices in an order."""
    for start in range(0, count, batch_size):
        chosen = slice(start, min(start + batch_size, count))
        yield chosen if order is None else order[chosen]
