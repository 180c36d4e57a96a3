"""Lines: steps made plain functions ahead of time, for runs that nobody looks on.

A line does what :meth:`.Run.step` does, with all decided beforehand that the graph decides. On small arrays that is most of the work.
It leaves to the ordinary way what it cannot do: large arrays that can be written over, and whatever raises an error.
"""

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from ..graph.dtypes import DType
from .call import Call
from .steps import NOTHING, STATE, Line, Step
from .values import as_declared, detached, on_grid, widened

#: Operands of fewer elements are not worth being written over.
_LEAST_REUSED = 1 << 14


def line_of(step: Step, xp: Any) -> Line | None:
    """Return the line of a step; None if it runs the ordinary way only.

    Args:
        step: The step, its operands, results and dead registers known.
        xp: The array module.
    """
    function = _function(step, xp)
    if function is None:
        return None
    kernel = step.kernel
    assert kernel is not None
    sources = [register if register >= 0 else NOTHING for register in step.operands]
    get = _getter(([STATE] if kernel.is_stateful else []) + sources)
    if kernel.moves:
        return _moving(function, get, step.results, step.dead)
    narrow = [i for i, dtype in enumerate(step.operand_dtypes) if step.operands[i] >= 0 and _is_narrow(dtype)]
    if narrow:
        get = _widening(get, narrow)
    large = [r for r in step.dead if kernel.inplace] if xp.__name__ == "numpy" else []
    line = _computing(step, function, get, xp)
    return line if line is None or not large else _unless_large(line, large)


def _function(step: Step, xp: Any) -> Callable[..., Any] | None:
    """Return a function of the operands that computes the results of a step, None where there is none."""
    kernel = step.kernel
    if kernel is None or step.loop or step.cluster or step.bodies or step.reads or step.gates or not step.is_typed:
        return None
    call = Call(step, step.dtypes, xp)
    function = None if kernel.bind is None else kernel.bind(call)
    if function is not None:
        return function  # type: ignore[no-any-return]
    schema = step.node.schema
    if schema is None or schema.stateful or any(formal.is_ref for formal in (*schema.inputs, *schema.outputs)):
        return None  # it may need what outlives a run
    return partial(kernel.function, call)


def _getter(sources: Sequence[int]) -> Callable[[list[Any]], Sequence[Any]]:
    """Return a function that returns a tuple of what some registers hold."""
    if len(sources) > 1:
        return itemgetter(*sources)
    if not sources:
        return lambda env: ()
    (source,) = sources
    return lambda env: (env[source],)


def _is_narrow(dtype: DType | None) -> bool:
    """Whether arrays of a dtype may be ones that kernels compute in a wider dtype."""
    return (
        dtype is None
        or dtype.kind not in ("float", "int", "uint", "bool", "complex")
        or dtype.bits < (32 if dtype.kind == "float" else 8)
    )


def _widening(get: Callable[[list[Any]], Sequence[Any]], narrow: Sequence[int]) -> Callable[[list[Any]], Sequence[Any]]:
    def getter(env: list[Any]) -> Sequence[Any]:
        operands = list(get(env))
        for i in narrow:
            operands[i] = widened(operands[i])
        return operands

    return getter


def _moving(
    function: Callable[..., Any], get: Callable[[list[Any]], Sequence[Any]], results: Sequence[int], dead: Sequence[int]
) -> Line:
    """Return the line of a step whose results are as its kernel gives them."""
    if len(results) == 1:
        (target,) = results

        def single(env: list[Any]) -> bool:
            result = function(*get(env))
            if result.__class__ is tuple:
                result = result[0]
            if dead:
                if getattr(result, "base", None) is not None:
                    (result,) = detached((result,))
                for register in dead:
                    env[register] = None
            env[target] = result
            return True

        if target >= 0:
            return single

    def several(env: list[Any]) -> bool:
        found = function(*get(env))
        if found.__class__ is not tuple:
            found = (found,)
        if dead:
            found = detached(found)
            for register in dead:
                env[register] = None
        for register, result in zip(results, found, strict=False):
            if register >= 0:
                env[register] = result
        return True

    return several


def _computing(step: Step, function: Callable[..., Any], get: Callable[[list[Any]], Sequence[Any]], xp: Any) -> Line:
    """Return the line of a step whose results are rounded to their declared dtypes."""
    results, dead, dtypes = step.results, step.dead, step.dtypes
    if len(results) != 1 or results[0] < 0:

        def several(env: list[Any]) -> bool:
            found = function(*get(env))
            if found.__class__ is not tuple:
                found = (found,)
            for register in dead:
                env[register] = None
            for register, result, dtype in zip(results, found, dtypes, strict=False):
                if register >= 0:
                    env[register] = as_declared(result, dtype)
            return True

        return several
    (target,), dtype = results, dtypes[0]
    assert dtype is not None
    if step.stays_wide:
        reuses = xp.__name__ == "numpy"

        def wide(env: list[Any]) -> bool:
            alone = [function(*get(env))]
            if alone[0].__class__ is tuple:
                alone[0] = alone[0][0]
            for register in dead:
                env[register] = None
            env[target] = on_grid(alone, dtype, step.is_exact, reuses)
            return True

        return wide
    wanted = None if dtype.kind in ("string", "handle") else dtype.numpy
    plain, number = xp.ndarray, None if wanted is None else wanted.type

    def single(env: list[Any]) -> bool:
        result = function(*get(env))
        if result.__class__ is number:  # NumPy's, in place of an array without axes
            result = xp.asarray(result)
        if result.__class__ is not plain or result.dtype is not wanted:
            result = as_declared(result[0] if result.__class__ is tuple else result, dtype)
        for register in dead:
            env[register] = None
        env[target] = result
        return True

    return single


def _unless_large(line: Line, registers: Sequence[int]) -> Line:
    """Return a line that leaves a step to the ordinary way, which may write over operands, where one that dies is large."""
    if len(registers) == 1:
        (register,) = registers
        return lambda env: getattr(env[register], "size", 0) < _LEAST_REUSED and line(env)
    return lambda env: all(getattr(env[register], "size", 0) < _LEAST_REUSED for register in registers) and line(env)
