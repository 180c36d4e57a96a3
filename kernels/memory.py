"""How much memory a run takes: its values, what they would take at least, and the scratch memory of kernels."""

import tracemalloc
import weakref
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..graph.graph import Value
from .program import Program
from .steps import Plan, Step


class Memory(NamedTuple):
    """Memory of one run in bytes; feeds and constants do not count.

    Attributes:
        values: The most that arrays of values took at a time; those inside of bodies and functions count as scratch memory.
        least: The most that values had at a time which were still to be read: less is not possible in this order of nodes.
        scratch: The most that was taken at a time, less ``values``: what kernels needed beside them.
    """

    values: int
    least: int
    scratch: int


def measure_memory(program: Program, feeds: Mapping[str, Any]) -> Memory:
    """Run a program and return how much memory that takes."""
    import numpy as np

    plan = program._plan
    alive: dict[int, int] = {}
    sizes: dict[Value, tuple[int, int, int]] = {}
    most = 0

    def root(array: Any) -> Any:
        while isinstance(array.base, np.ndarray):
            array = array.base
        return array

    given = {id(root(array)) for array in [*feeds.values(), *plan.template] if isinstance(array, np.ndarray)}

    def record(value: Value, array: Any) -> None:
        nonlocal most
        if value.producer.graph is not program.graph or not isinstance(array, np.ndarray):
            return
        owner = root(array)
        key = id(owner)
        if key not in given and key not in alive:
            alive[key] = owner.nbytes
            weakref.finalize(owner, alive.pop, key, None)
        sizes[value] = (0 if key in given else array.nbytes, owner.nbytes, key)
        most = max(most, sum(alive.values()))

    tracemalloc.start()
    try:
        program(feeds)
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        results = program(feeds)
        peak = tracemalloc.get_traced_memory()[1] - before
        del results
    finally:
        tracemalloc.stop()
    program(feeds, on_value=record)
    return Memory(most, _least(program, sizes), max(0, peak - most))


def _least(program: Program, sizes: Mapping[Value, tuple[int, int, int]]) -> int:
    """Return the most bytes of values that are still to be read; those that share memory take no more than that memory."""
    plan, live, most = program._plan, dict[int, tuple[int, int, int]](), 0
    for step, dead in _in_turn(plan):
        for register, value in zip(step.results, step.node.outputs, strict=False):
            if register >= 0 and value in sizes:
                live[register] = sizes[value]
        shared: dict[int, int] = {}
        for size, whole, owner in live.values():
            shared[owner] = min(shared.get(owner, 0) + size, whole)
        most = max(most, sum(shared.values()))
        for register in dead:
            live.pop(register, None)
    return most


def _in_turn(plan: Plan) -> Iterator[tuple[Step, list[int]]]:
    """Iterate over the steps of a plan, those in clusters too, and the registers that each reads for the last time."""
    for step in plan.steps:
        if step.cluster is None:
            yield step, step.dead
            continue
        made = [member.results[0] for member in step.cluster.members]
        registers = [register if register in step.dead else -1 for register in step.operands] + made
        for member, dead in zip(step.cluster.members, step.cluster.dead, strict=True):
            yield member, [registers[at] for at in dead]
