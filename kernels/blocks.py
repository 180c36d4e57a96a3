"""Running a cluster of elementwise steps on blocks of elements that stay in the cache; values in between are never whole in memory.

Members whose results are broadcast to more elements are computed whole, once, before the blocks of the others.
"""

import time
from collections.abc import Collection, Iterator, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from .call import Call
from .norm import column
from .room import check_room
from .values import as_declared, on_grid, spare, widened

if TYPE_CHECKING:
    from .run import Run
    from .steps import Cluster, Step

#: Elements of a block: fewer make more calls than they save memory traffic.
_BLOCK = 1 << 18
#: Results of so many elements leave the caches, and are worth it.
_LEAST = 1 << 22


def pays(cluster: "Cluster", values: Sequence[Any]) -> bool:
    """Whether running a cluster in blocks pays: on a large operand, and where results are rounded, which takes many passes."""
    is_large = any(value is not None and value.size >= _LEAST for value in values)
    return is_large and any(member.is_low for member in cluster.members)


def run_blocks(run: "Run", cluster: "Cluster", values: list[Any]) -> list[Any] | None:
    """Run a cluster.

    Args:
        run: The run it belongs to.
        cluster: The cluster.
        values: What comes from outside.

    Returns:
        The results that leave it; None where arrays have such shapes that there are no blocks, or no values in between.

    Raises:
        Exception: Whatever a kernel raises on a block.
    """
    values = list(values)
    shapes = [() if value is None else value.shape for value in values]
    for sources in cluster.sources:
        for i in sources:
            if i in cluster.columns:
                values[i] = column(values[i], len(shapes[sources[0]]))
                shapes[i] = values[i].shape
        shapes.append(_broadcast([shapes[i] for i in sources if i >= 0]))
    made = shapes[cluster.outside :]
    full = max(made, key=prod)
    early = [i for i, shape in enumerate(made) if prod(shape) < prod(full)]
    late = [i for i in range(len(made)) if i not in early]
    if len(late) == 1 or not all(_fits(shape, full) for shape in made):
        return None
    axis = next(i for i in range(len(full)) if prod(full[i + 1 :]) <= _BLOCK)
    xp = run.xp
    calls = [Call(member, member.dtypes, xp, run) for member in cluster.members]
    times = [0.0] * len(calls) if run.on_node is not None else None
    orders = _orders(cluster, values)
    values += [None] * len(calls)
    for at in {at for i in early for at in cluster.sources[i] if at >= 0}:
        values[at] = widened(values[at])
    _run_members(cluster, early, calls, values, {at for i in late for at in cluster.sources[i]}, times, run.reuses)
    cut = [value is not None and _is_cut(value.shape, len(full), axis) for value in values]
    values = [value if is_cut else widened(value) for value, is_cut in zip(values, cut, strict=True)]
    leaving = [(i, _room(xp, made[i], orders[i], cluster.members[i])) for i in cluster.leaving if i not in early]
    for index in _blocks(full, axis):
        table = [
            widened(value[_within(index, value.shape, len(full))]) if is_cut else value
            for value, is_cut in zip(values, cut, strict=True)
        ]
        _run_members(cluster, late, calls, table, set(), times, run.reuses)
        for i, whole in leaving:
            whole[_within(index, whole.shape, len(full))] = _left(xp, cluster.members[i], table[cluster.outside + i])
    if times is not None and run.on_node is not None:
        for member, seconds in zip(cluster.members, times, strict=True):
            run.on_node(member.node, seconds)
    found = dict(leaving)
    return [found[i] if i in found else _left(xp, cluster.members[i], values[cluster.outside + i]) for i in cluster.leaving]


def _left(xp: Any, member: "Step", result: Any) -> Any:
    """Return a member's result, or a block of it, as it leaves the cluster."""
    return result if result.dtype == _left_dtype(xp, member) else as_declared(result, member.dtypes[0])


def _left_dtype(xp: Any, member: "Step") -> Any:
    dtype = member.dtypes[0]
    assert dtype is not None
    return xp.dtype(xp.float32) if member.stays_wide else dtype.numpy


def _run_members(
    cluster: "Cluster",
    some: Sequence[int],
    calls: Sequence[Call],
    table: list[Any],
    lasting: Collection[int],
    times: list[float] | None,
    reuses: bool,
) -> None:
    """Compute some members, float16 and bfloat16 values kept as float32, rounded.

    Args:
        cluster: The cluster.
        some: Which members.
        calls: One for each member.
        table: The values; the results are put there.
        lasting: Which values others still read.
        times: Seconds that each member took are added here, if wanted.
        reuses: Whether anything may be written over.
    """
    for i in some:
        member, sources, dead = cluster.members[i], cluster.sources[i], cluster.dead[i]
        start = time.perf_counter() if times is not None else 0.0
        operands = [table[at] if at >= 0 else None for at in sources]
        for at in dead:
            if at not in lasting:
                table[at] = None
        call, kernel, dtype = calls[i], member.kernel, member.dtypes[0]
        assert kernel is not None
        assert dtype is not None
        call.out = spare(operands) if kernel.inplace and reuses else None
        result = kernel.function(call, *operands)
        if result.__class__ is tuple:
            result = result[0]
        alone = [result]
        operands.clear()
        call.out = result = None
        table[cluster.outside + i] = (
            on_grid(alone, dtype, member.is_exact, reuses) if member.is_low else as_declared(alone[0], dtype)
        )
        alone.clear()
        if times is not None:
            times[i] += time.perf_counter() - start


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape that arrays are broadcast to.

    Raises:
        ValueError: If they are not.
    """
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    import numpy as np

    return np.broadcast_shapes(*shapes)


def _fits(shape: tuple[int, ...], full: tuple[int, ...]) -> bool:
    """Whether an array is broadcast to ``full``, and blocks of it are blocks of the array."""
    return len(shape) <= len(full) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(full), strict=False))


def _is_cut(shape: tuple[int, ...], rank: int, axis: int) -> bool:
    """Whether an operand has more than one element along the axes that blocks are cut on."""
    return any(size > 1 for size in shape[: max(axis + 1 + len(shape) - rank, 0)])


def _within(index: tuple[slice, ...], shape: tuple[int, ...], rank: int) -> tuple[slice, ...]:
    """Return which part of an operand a block of the result needs."""
    parts = index[rank - len(shape) :]
    return tuple(part if size > 1 else slice(None) for part, size in zip(parts, shape, strict=False))


def _blocks(full: tuple[int, ...], axis: int) -> Iterator[tuple[slice, ...]]:
    """Iterate over the blocks of an array: one place of each axis before ``axis``, some along it, all along those after it."""
    rows = max(1, _BLOCK // max(prod(full[axis + 1 :]), 1))
    leads = product(*([slice(i, i + 1) for i in range(size)] for size in full[:axis]))
    parts = [slice(start, min(start + rows, full[axis])) for start in range(0, full[axis], rows)]
    for lead in leads:
        for part in parts:
            yield (*lead, part)


def _orders(cluster: "Cluster", values: Sequence[Any]) -> list[list[int]]:
    """Return for each member's result its axes as they would lie in memory if it were computed whole, the innermost last: sums of it
    then add up in the same order.
    """
    import numpy as np

    byte = np.empty(1, np.int8)
    found, orders = [], list[list[int]]()
    for value in values:  # stand-ins of at most two elements along an axis, which nobody reads
        small = () if value is None else tuple(min(size, 2) for size in value.shape)
        found.append(np.lib.stride_tricks.as_strided(byte, small, () if value is None else value.strides))
    for sources in cluster.sources:
        operands = [found[i] for i in sources if i >= 0]
        modes: list[Any] = [["readonly"]] * len(operands) + [["writeonly", "allocate"]]
        made: Any = np.nditer([*operands, None], ["zerosize_ok"], modes).operands[-1]
        found.append(made)
        orders.append(sorted(range(made.ndim), key=lambda axis: -made.strides[axis]))
    return orders


def _room(xp: Any, shape: tuple[int, ...], order: list[int], member: "Step") -> Any:
    """Return an array for a result, whose axes lie in memory in this order."""
    wanted = _left_dtype(xp, member)
    check_room(xp, shape, wanted.itemsize)
    array = xp.empty([shape[axis] for axis in order], wanted)
    back = sorted(range(len(order)), key=order.__getitem__)
    return array if back == sorted(back) else array.transpose(back)
