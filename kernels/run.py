"""Running a plan: operands are widened, kernels called, results rounded, dead values dropped."""

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..graph.dtypes import DTYPES, DType, cast_array, dtype_of_array
from ..graph.errors import AmpgraphError, KernelError
from ..graph.graph import Node, Value
from ..graph.rounding import round_on_grid
from .call import Call
from .handle import Handle, held

if TYPE_CHECKING:
    from .steps import LoopPlan, Plan, Step

#: What kernels may raise on operands that make no sense.
_ERRORS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, MemoryError, NotImplementedError)
#: What a value is in a branch of a TensorFlow graph that is not taken.
DEAD: Any = type("Dead", (), {"__repr__": lambda self: "a value in a branch that is not taken"})()
#: Elements from which on writing a result over an operand pays.
_LEAST_REUSED = 1 << 12


class Run:
    """One run of a program: what its kernels share.

    Args:
        xp: The array module.
        on_value: Called with every value that is computed, and its array.
        on_node: Called with every node that ran and the seconds it took.
        state: What outlives the run: what the variables of TensorFlow graphs hold.
    """

    def __init__(
        self,
        xp: Any,
        on_value: Callable[[Value, Any], None] | None = None,
        on_node: Callable[[Node, float], None] | None = None,
        state: dict[Handle, Any] | None = None,
    ) -> None:
        self.xp = xp
        self.state = {} if state is None else state
        self.reuses: bool = xp.__name__ == "numpy"
        self.on_value = on_value
        self.on_node = on_node
        self.failed: KernelError | None = None

    def graph(self, plan: "Plan", inputs: Sequence[Any]) -> list[Any]:
        """Run a plan on a value for each input; return a value for each output."""
        env = list(plan.template)
        for register, value in zip(plan.inputs, inputs, strict=True):
            if register >= 0:
                env[register] = value
        del inputs
        for step in plan.steps:
            operands = [env[register] if register >= 0 else None for register in step.operands]
            for register in step.dead:
                env[register] = None
            start = time.perf_counter() if self.on_node is not None else 0.0
            try:
                for i in step.reads:
                    operand = operands[i]
                    if isinstance(operand, Handle):
                        operands[i] = held(self.state, operand)
                if plan.branches and self._is_dead(step, operands, env):
                    results: Sequence[Any] = [DEAD] * len(step.results)
                elif step.loop is not None:
                    results = self._loop(step.loop, operands, len(step.results))
                else:
                    results = self.step(step, operands)
            except AmpgraphError as error:
                raise self._placed(error, step) from error
            except _ERRORS as error:
                raise self._placed(KernelError(f"{type(error).__name__}: {error}"), step) from error
            if self.on_node is not None:
                self.on_node(step.node, time.perf_counter() - start)
            if self.on_value is not None and step.loop is None:
                for value, result in zip(step.node.outputs, results, strict=False):
                    if result is not DEAD:
                        self.on_value(value, result)
            for register, result in zip(step.results, results, strict=False):
                if register >= 0:
                    env[register] = result
            operands = results = operand = None  # type: ignore[assignment]  # nothing outlives its last use
        return [env[register] for register in plan.outputs]

    @staticmethod
    def _is_dead(step: "Step", operands: list[Any], env: list[Any]) -> bool:
        """Whether a node of a TensorFlow graph is in a branch that is not taken; tell those that wait for it."""
        if step.node.op_type in ("Merge", "RefMerge"):
            dead = all(operand is DEAD for operand in operands)
        else:
            dead = any(operand is DEAD for operand in operands) or any(env[gate] is DEAD for gate in step.gates)
        if step.mark >= 0:
            env[step.mark] = DEAD if dead else None
        return dead

    def _loop(self, loop: "LoopPlan", operands: Sequence[Any], count: int) -> Sequence[Any]:
        """Run a loop of a TensorFlow graph until no loop variable goes on; return what left it, ``count`` values."""
        inputs = [operands[i] for i in loop.first]
        lasting = inputs[: len(inputs) - loop.variables]
        variables = inputs[len(lasting) :]
        left: list[Any] = [DEAD] * count
        while True:
            results = self.graph(loop.body, [*lasting, *variables])
            left = [old if new is DEAD else new for old, new in zip(left, results[loop.variables :], strict=True)]
            variables = results[: loop.variables]
            if not variables or any(variable is DEAD for variable in variables):
                return left

    def step(self, step: "Step", operands: list[Any]) -> Sequence[Any]:
        """Run one node; return its results."""
        if step.function is not None:
            missing = len(step.function.inputs) - len(operands)
            return self.graph(step.function, operands + [None] * missing)
        kernel = step.kernel
        assert kernel is not None
        dtypes = step.dtypes if step.is_typed else actual_dtypes(step, operands)
        call = Call(step, self, dtypes)
        if kernel.moves:
            results = kernel.function(call, *operands)
            if results.__class__ is not tuple:
                results = (results,)
            return _detached(results) if step.dead else results
        for i, operand in enumerate(operands):
            operands[i] = widened(operand)
        operand = None
        if kernel.inplace and self.reuses:
            call.out = _spare(operands)
        results = kernel.function(call, *operands)
        if results.__class__ is not tuple:
            results = (results,)
        if step.stays_wide:
            rounded = [results[0]]
            operands.clear()
            del results, call  # which hold operands that the result may have been written over
            out = _spare(rounded) if self.reuses else None
            return [round_on_grid(rounded[0], out)]
        return [as_declared(result, dtype) for result, dtype in zip(results, dtypes, strict=False)]

    def _placed(self, error: AmpgraphError, step: "Step") -> KernelError:
        """Return the error with nodes in its message: this one and, where bodies and functions are nested, the innermost."""
        dtypes = ", ".join("-" if dtype is None else dtype.name for dtype in step.operand_dtypes)
        placed = KernelError(f"Node {step.node} on ({dtypes}) failed: {self.failed or error}")
        self.failed = self.failed or placed
        return placed


def _detached(results: tuple[Any, ...]) -> Sequence[Any]:
    """Return the results, copied where they are small parts of arrays that may be dropped only when nothing shows them."""
    total = sum(getattr(result, "nbytes", 0) for result in results)
    return [result.copy() if _is_part(result, 2 * total) else result for result in results]


def _is_part(array: Any, size: int) -> bool:
    base = getattr(array, "base", None)
    if base is None or array.nbytes == 0:
        return False
    while getattr(base, "base", None) is not None:
        base = base.base
    return getattr(base, "nbytes", 0) > size


def _spare(operands: list[Any]) -> Any:
    """Return an operand that nobody else holds, which the result may be written over; None if there is none."""
    for i in range(len(operands)):
        if getattr(operands[i], "size", 0) < _LEAST_REUSED or _holders(operands, i) > _ALONE:
            continue  # a view of it would hold it too
        operand = operands[i]
        if operand.base is None and operand.flags.c_contiguous and operand.flags.writeable and operand.dtype.kind == "f":
            others = (other for other in operands if other is not operand)
            if all(_fits(other, operand) for other in others):
                return operand
    return None


def _holders(items: list[Any], i: int) -> int:
    return sys.getrefcount(items[i])


_ALONE = _holders([object()], 0)


def _fits(other: Any, operand: Any) -> bool:
    """Whether an operation on both has a result of ``operand``'s shape and dtype."""
    if other is None or other.dtype != operand.dtype:
        return False
    if other.shape == operand.shape:
        return True
    sizes = operand.shape[operand.ndim - other.ndim :]
    return other.ndim <= operand.ndim and all(a in (1, b) for a, b in zip(other.shape, sizes, strict=True))


def wide_dtype(dtype: DType) -> DType:
    """Return the dtype that kernels compute values of ``dtype`` in."""
    if dtype.kind == "float" and dtype.bits < 32:
        return DTYPES["float32"]
    if dtype.bits < 8:
        return DTYPES["int8" if dtype.kind == "int" else "uint8"] if dtype.kind in ("int", "uint") else dtype
    return dtype


def widened(value: Any) -> Any:
    """Return a value in the dtype in which kernels compute it."""
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return [widened(item) for item in value] if value.__class__ is list else value
    if dtype.char != "e" and dtype.kind != "V":
        return value
    return cast_array(value, wide_dtype(dtype_of_array(dtype)))


def as_declared(value: Any, dtype: DType | None) -> Any:
    """Return a result as an array of the declared dtype, rounded once."""
    if value.__class__ is list:
        return [as_declared(item, dtype) for item in value]
    if dtype is None or value is None or dtype.kind in ("string", "handle") or value is DEAD or value.__class__ is Handle:
        return value
    if not hasattr(value, "ndim") or not hasattr(value, "base"):
        import numpy as np

        value = np.asarray(value)
    value = cast_array(value, dtype)
    return value if value.ndim else value.reshape(())[...]  # NumPy's scalars become arrays


def actual_dtypes(step: "Step", operands: Sequence[Any]) -> list[DType | None]:
    """Return the dtypes of the results of a node whose types are not known before it runs."""
    ports = step.node.signature
    known: dict[Any, DType] = dict(step.types)
    for port, operand in zip(ports.inputs, operands, strict=False):
        while operand.__class__ is list and operand:
            operand = operand[0]
        dtype = getattr(operand, "dtype", None)
        if isinstance(port, str) and dtype is not None:
            known.setdefault(port, dtype_of_array(dtype))
    for variable, default in getattr(ports.schema, "type_attributes", {}).values():
        if variable not in known and default:
            found = DTYPES.get(default) or known.get(default)
            if found is not None:
                known[variable] = found
    return [known.get(port) if isinstance(port, str) else port for port in ports.outputs]
