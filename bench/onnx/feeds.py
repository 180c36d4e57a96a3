"""Feeds for models nobody gave feeds for: made from names, dtypes and shapes of the inputs, always the same."""

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ampgraph.graph import Graph, Value

_LENGTH = 16
_SIDE = 320
_CHANNELS = 3
_RATE = 16_000
_SMALL = 10
#: Ops that hand on indices.
_HANDS_ON = {"Cast", "Unsqueeze", "Squeeze", "Reshape", "Flatten", "Identity", "Slice", "Transpose"}


def make_feeds(graph: Graph) -> dict[str, Any]:
    """Return an array for every input of an ONNX model that has no default.

    Batches are 1, lengths 16, pictures 320 wide where the model leaves it open. Inputs of rank 4 are smooth pictures from 0 to
    1, other floats are normal, masks are ones, integers are in the range of the table that they look up (or below 10).

    Raises:
        ValueError: If an input is no plain array.
    """
    sizes: dict[str, int] = {}
    return {value.name: _make(value, sizes) for value in graph.inputs if "default" not in value.producer.attributes}


def _make(value: Value, sizes: dict[str, int]) -> Any:
    dtype, dims = value.dtype, value.shape.dims
    if dtype is None or dims is None or value.container:
        raise ValueError(
            f"Input {value.name!r} is no array of known rank and dtype: put a file with feeds, NAME.npz, beside NAME.onnx."
        )
    shape = [_size(dim, axis, len(dims), sizes) for axis, dim in enumerate(dims)]
    rng = np.random.default_rng(zlib.crc32(value.name.encode()))
    name = value.name.lower()
    if dtype.kind == "string":
        return np.full(shape, "a")
    if dtype.kind == "bool" or "mask" in name:
        return np.ones(shape, dtype.numpy)
    if dtype.kind == "float":
        array = _picture(rng, shape) if len(shape) == 4 else rng.standard_normal(shape)
        return array.astype(dtype.numpy)
    if name in ("sr", "sample_rate", "sampling_rate"):
        return np.full(shape, _RATE, dtype.numpy)
    if "token_type" in name or "segment" in name:
        return np.zeros(shape, dtype.numpy)
    return rng.integers(0, _rows(value), shape).astype(dtype.numpy)


def _size(dim: int | str | None, axis: int, rank: int, sizes: dict[str, int]) -> int:
    if isinstance(dim, int) and dim > 0:
        return dim
    if axis == 0 and rank > 1:
        return 1
    guess = {1: _CHANNELS, 2: _SIDE, 3: _SIDE}[axis] if rank == 4 else _LENGTH
    return sizes.setdefault(dim, guess) if isinstance(dim, str) else guess


def _picture(rng: np.random.Generator, shape: Sequence[int]) -> Any:
    """Return smoothed noise from 0 to 1."""
    field = rng.random(shape)
    for axis in (2, 3):
        for _ in range(2):
            field = 0.5 * field + 0.25 * np.roll(field, 1, axis) + 0.25 * np.roll(field, -1, axis)
    return (field - field.min()) / (np.ptp(field) + 1e-6)


def _rows(value: Value) -> int:
    """Return how many rows the smallest table has that an input is looked up in."""
    found = []
    seen = {value}
    waiting = [value]
    while waiting:
        for user, slot in waiting.pop().uses():
            if user.op_type == "Gather" and slot == 1 and user.inputs[0] is not None:
                dims, axis = user.inputs[0].shape.dims, user.attributes.get("axis", 0)
                size = dims[axis] if dims and -len(dims) <= axis < len(dims) else None
                found += [size] if isinstance(size, int) else []
            elif user.op_type in _HANDS_ON and slot == 0 and user.outputs[0] not in seen:
                seen.add(user.outputs[0])
                waiting.append(user.outputs[0])
    return max(1, min(found, default=_SMALL))
