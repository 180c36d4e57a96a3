"""Lines: steps of a plan, one after another, as one Python function, for runs that nobody looks on.

All is decided beforehand that the graph decides: registers are variables of the function, constants are its globals, kernels are bound
to attributes and constants. On small arrays that is most of the work. A function is written like this::

    def line(env):
      r2 = env[2]
      try:
        r5 = f0(r2, r4)
        if r5.__class__ is not array or r5.dtype is not t0: r5 = d0(r5)
        r2 = None
        ...
      except failures as error:
        return stop(env, locals(), error.__traceback__.tb_lineno)
      env[5] = r5
      return 7

What is known beforehand is not asked: that NumPy makes floats of floats, that an array is small. A result is written over an operand
of its kind that the line itself made and reads for the last time. The function returns which step is the next. Where one raises, that
is this step: the ordinary way computes it, or says what is wrong.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..graph.dtypes import DType
from ..graph.errors import AmpgraphError
from ..graph.types import Shape
from .call import Call
from .steps import STATE, Line, Plan, Step
from .values import as_declared, detached, on_grid, spare, widened

#: What kernels may raise on operands that make no sense.
FAILURES = (
    *(AmpgraphError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError, MemoryError, NotImplementedError),
)
#: Operands of fewer elements are not worth being written over.
_LEAST_REUSED = 1 << 14
#: Plans of more steps are not worth the time that Python takes to compile them.
_MOST_STEPS = 1 << 14


def lines_of(plan: Plan, xp: Any) -> list[Line | None]:
    """Return for every step of a plan the line that begins there, or None.

    Args:
        plan: The plan.
        xp: The array module.
    """
    lines: list[Line | None] = [None] * len(plan.steps)
    if plan.branches or len(lines) > _MOST_STEPS:
        return lines
    functions = [_function(step, xp) for step in plan.steps]
    start = 0
    while start < len(lines):
        end = start
        while end < len(lines) and functions[end] is not None:
            end += 1
        if end > start:
            lines[start] = _line(plan, start, end, functions, xp)
        start = end + 1
    return lines


def _function(step: Step, xp: Any) -> Callable[..., Any] | None:
    """Return a function of the operands that computes the results of a step, None where there is none."""
    kernel = step.kernel
    if kernel is None or step.loop or step.cluster or step.bodies or step.reads or step.gates or not step.is_typed:
        return None
    call = Call(step, step.dtypes, xp)
    if kernel.bind is not None:
        try:
            function: Callable[..., Any] | None = kernel.bind(call)
        except FAILURES:  # the kernel says so
            return None
        if function is not None:
            return function
    schema = step.node.schema
    if schema is None or schema.stateful or any(formal.is_ref for formal in (*schema.inputs, *schema.outputs)):
        return None  # it may need what outlives a run
    return partial(kernel.function, call)


def _line(plan: Plan, start: int, end: int, functions: Sequence[Callable[..., Any] | None], xp: Any) -> Line:
    """Return the function that runs the steps from ``start`` to before ``end``."""
    steps = plan.steps[start:end]
    known: dict[str, Any] = {"array": xp.ndarray, "failures": FAILURES, "widened": widened}
    body, at, fresh = list[str](), list[int](), dict[int, Any]()
    for i, step in enumerate(steps):
        known[f"f{i}"] = functions[start + i]
        written = _written(i, step, known, fresh, xp)
        body += written
        at += [start + i] * len(written)
    made = {register for step in steps for register in step.results}
    read = {register for step in steps for register in step.operands} - made - {-1}
    constants = {register for register in read if plan.template[register] is not None}
    known.update((f"r{register}", plan.template[register]) for register in constants)
    dead = {register for step in steps for register in step.dead}
    given = [*sorted(read - constants), STATE]
    head = [
        "def line(env):",
        *(f"  r{r} = env[{r}]" for r in given),
        *(f"  env[{r}] = None" for r in given if r in dead),
        "  try:",
    ]
    tail = ["  except failures as error:", "    return stop(env, locals(), error.__traceback__.tb_lineno)"]
    left = sorted(made - dead - {-1})

    def stop(env: list[Any], found: dict[str, Any], number: int) -> int:
        """Put what the function has into the registers; return the step that it did not get through."""
        for name, value in found.items():
            if name[0] == "r":
                env[int(name[1:])] = value
        place = at[number - len(head) - 1]
        for register, value in zip(plan.steps[place].operands, found.get("operands") or (), strict=False):
            if register >= 0:
                env[register] = value
        return place

    known["stop"] = stop
    text = "\n".join([*head, *(f"    {line}" for line in body), *tail, *(f"  env[{r}] = r{r}" for r in left), f"  return {end}"])
    exec(compile(text, f"<steps {start} to {end} of graph {plan.graph.name!r}>", "exec"), known)  # noqa: S102 - of numbers only
    return known["line"]  # type: ignore[no-any-return]


def _written(i: int, step: Step, known: dict[str, Any], fresh: dict[int, Any], xp: Any) -> list[str]:
    """Return the lines of text that run a step whose function is called ``f{i}``; add what they need to the names.

    ``fresh`` are the registers of arrays that the line made and nothing else shows a part of, with what they are like.
    """
    kernel, like = step.kernel, _float_arrays(step)
    assert kernel is not None
    if like is None:
        for register in step.operands:  # a result may be an operand, or show a part of it
            fresh.pop(register, None)
    operands = [
        "None" if r < 0 else f"widened(r{r})" if not kernel.moves and _is_narrow(dtype) else f"r{r}"
        for r, dtype in zip(step.operands, step.operand_dtypes, strict=True)
    ]
    call = f"f{i}({', '.join([f'r{STATE}', *operands] if kernel.is_stateful else operands)})"
    ends = ["".join(f"r{r} = " for r in step.dead) + "None"] if step.dead else []
    if len(step.results) != 1 or step.results[0] < 0:
        targets = ", ".join(f"r{r}" if r >= 0 else "_" for r in step.results)
        if kernel.is_stateful:  # what it returns is nobody's part, and declared
            return [f"{f'{targets}, = ' if targets else ''}{call}", *ends]
        known[f"d{i}"] = _finish_all(step)
        return [f"{f'[{targets}] = ' if targets else ''}d{i}({call})", *ends]
    result = f"r{step.results[0]}"
    if step.node.op_type == "Identity" and kernel.moves:
        return [f"{result} = {operands[0]}", *ends]
    if kernel.moves:
        known[f"d{i}"] = _moved
        if kernel.bind is None or (step.dead and not kernel.is_stateful):
            return [f"{result} = d{i}({call}, {bool(step.dead)})", *ends]
        if not step.operands and not kernel.is_stateful:
            known[f"c{i}"] = known[f"f{i}"]()
            return [f"{result} = c{i}"]
        return [f"{result} = {call}", *ends]
    if like is not None:
        free = [r for r in step.dead if fresh.get(r) == like]
        if like[1].size is not None:
            fresh[step.results[0]] = like
        function = known[f"f{i}"]
        if free and isinstance(function, xp.ufunc) and getattr(function, "signature", None) is None:  # of single numbers
            return [f"{result} = {call[:-1]}, out=r{free[0]})", *ends]
    return [*_computed(i, step, known, operands, call, ends, xp, is_sure=like is not None), *ends]


def _computed(
    i: int, step: Step, known: dict[str, Any], operands: list[str], call: str, ends: list[str], xp: Any, is_sure: bool
) -> list[str]:
    """Return the lines that compute the result of a step, over a large operand that dies, and make it one of its declared dtype.

    ``is_sure``: It is such a result anyway.
    """
    kernel, result, (dtype,) = step.kernel, f"r{step.results[0]}", step.dtypes
    assert kernel is not None
    assert dtype is not None
    known[f"d{i}"] = _finish(step, dtype, xp)
    if step.stays_wide:
        return [f"{result} = d{i}([{call}])"]
    lines = [f"{result} = {call}"]
    sizes = dict(zip(step.operands, [None if value is None else value.shape.size for value in step.node.inputs], strict=False))
    large = [
        r for r in step.dead if kernel.inplace and xp.__name__ == "numpy" and (sizes.get(r) or _LEAST_REUSED) >= _LEAST_REUSED
    ]
    if large:
        known[f"o{i}"] = partial(_over, step, xp)
        lines = [
            f"if {' and '.join(f'r{r}.size < {_LEAST_REUSED}' for r in large)}: {lines[0]}",
            "else:",
            f"  operands = [{', '.join(operands)}]; {ends[0]}",
            f"  {result} = o{i}(operands); operands = None",
        ]
    if is_sure:
        return lines
    if dtype.kind in ("string", "handle"):
        return [*lines, f"{result} = d{i}({result})"]
    known[f"t{i}"] = dtype.numpy
    return [*lines, f"if {result}.__class__ is not array or {result}.dtype is not t{i}: {result} = d{i}({result})"]


def _float_arrays(step: Step) -> tuple[DType, Shape] | None:
    """Return dtype and shape of the result if it is sure to be a new array of floats that no kernel widens, like the operands."""
    kernel, value = step.kernel, step.node.outputs[0] if len(step.results) == 1 else None
    if kernel is None or kernel.bind is None or kernel.moves or value is None or not value.shape.rank:
        return None
    dtype = step.dtypes[0]
    if dtype is None or dtype.kind != "float" or dtype.bits < 32 or dtype not in step.operand_dtypes:
        return None
    return dtype, value.shape


def _is_narrow(dtype: DType | None) -> bool:
    """Whether arrays of a dtype may be ones that kernels compute in a wider dtype."""
    if dtype is None or dtype.kind not in ("float", "int", "uint", "bool", "complex"):
        return True
    return dtype.bits < (32 if dtype.kind == "float" else 8)


def _over(step: Step, xp: Any, operands: list[Any]) -> Any:
    """Return the result of a step, written over one of the operands where nobody else holds one."""
    call = Call(step, step.dtypes, xp)
    call.out = spare(operands)
    assert step.kernel is not None
    return step.kernel.function(call, *operands)


def _moved(result: Any, is_last: bool) -> Any:
    """Return the result of a step that moves elements; ``is_last``: an operand is read for the last time."""
    if result.__class__ is tuple:
        result = result[0]
    if is_last and getattr(result, "base", None) is not None:
        return detached((result,))[0]
    return result


def _finish(step: Step, dtype: DType, xp: Any) -> Callable[[Any], Any]:
    """Return what makes the result of a step one of its declared dtype: given the result, or it in a list if it stays wide."""
    reuses, number = xp.__name__ == "numpy", None if dtype.kind in ("string", "handle") else dtype.numpy.type

    def wide(alone: list[Any]) -> Any:
        if alone[0].__class__ is tuple:
            alone[0] = alone[0][0]
        return on_grid(alone, dtype, step.is_exact, reuses)

    def declared(result: Any) -> Any:
        if result.__class__ is number and reuses:  # NumPy's, in place of an array without axes
            return xp.asarray(result)
        return as_declared(result[0] if result.__class__ is tuple else result, dtype)

    return wide if step.stays_wide else declared


def _finish_all(step: Step) -> Callable[[Any], Sequence[Any]]:
    """Return what makes the results of a step, or the only one, as many as it has, of their declared dtypes."""
    kernel, count = step.kernel, len(step.results)
    assert kernel is not None

    def finish(results: Any) -> Sequence[Any]:
        if results.__class__ is not tuple:
            results = (results,)
        if not kernel.moves:
            results = [as_declared(result, dtype) for result, dtype in zip(results, step.dtypes, strict=False)]
        elif step.dead:
            results = detached(results)
        return [*results[:count], *[None] * (count - len(results))]

    return finish
