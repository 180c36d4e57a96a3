"""Running a plan: operands are widened, kernels called, results rounded, dead values dropped."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..graph.dtypes import DTYPES, DType, dtype_of_array
from ..graph.errors import AmpgraphError, KernelError
from ..graph.graph import Node, Value
from .blocks import pays, run_blocks
from .call import Call
from .handle import Handle, held
from .lines import FAILURES, lines_of
from .steps import STATE
from .values import DEAD, as_declared, detached, kind_of, on_grid, spare, widened

if TYPE_CHECKING:
    from .steps import Cluster, Line, LoopPlan, Plan, Step

#: So many runs of a plan go by before it is made faster, which takes as long as some runs.
HOT = 2


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
        self.is_watched = on_value is not None or on_node is not None
        self.failed: KernelError | None = None

    def graph(self, plan: "Plan", inputs: Sequence[Any]) -> list[Any]:
        """Run a plan on a value for each input; return a value for each output."""
        env = list(plan.template)
        for register, value in zip(plan.inputs, inputs, strict=True):
            if register >= 0:
                env[register] = value
        env[STATE] = self.state
        del inputs
        lines = None if self.is_watched else self._lines(plan)
        at, end = 0, len(plan.steps)
        while at < end:
            line = None if lines is None else lines[at]
            if line is not None:
                at = line(env)
                if at == end:
                    break
            step = plan.steps[at]
            at += 1
            if step.cluster is not None:
                self._cluster(step, step.cluster, env)
                continue
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
            except FAILURES as error:
                raise self._placed(error, step, operands) from error
            if self.on_node is not None:
                self.on_node(step.node, time.perf_counter() - start)
            if self.on_value is not None and step.loop is None:
                for value, result in zip(step.node.outputs, results, strict=False):
                    if result is not DEAD:
                        self.on_value(value, result)
            for register, result in zip(step.results, results, strict=False):
                if register >= 0:
                    env[register] = result
            operands = results = operand = result = None  # type: ignore[assignment]  # nothing outlives its last use
        return [env[register] for register in plan.outputs]

    def _lines(self, plan: "Plan") -> "list[Line | None] | None":
        """Return the lines of a plan, which it has when it ran some times."""
        if plan.lines is None:
            plan.runs += 1
            if plan.runs > HOT:
                plan.lines = lines_of(plan, self.xp)
        return plan.lines

    def _cluster(self, step: "Step", cluster: "Cluster", env: list[Any]) -> None:
        """Run a cluster in blocks; one member after another where somebody looks on, arrays are small, or one of them fails."""
        values = [env[register] for register in step.operands]
        for register in step.dead:
            env[register] = None
        results = None
        if self.on_value is None and pays(cluster, values):
            with suppress(*FAILURES):  # the member that fails says so below
                results = run_blocks(self, cluster, values)
        if results is None:
            results = self._members(cluster, values)
        for register, result in zip(step.results, results, strict=True):
            env[register] = result

    def _members(self, cluster: "Cluster", values: list[Any]) -> list[Any]:
        """Run the members of a cluster one after another; return the results that leave it."""
        for member, sources, dead in zip(cluster.members, cluster.sources, cluster.dead, strict=True):
            operands = [values[i] if i >= 0 else None for i in sources]
            for i in dead:
                values[i] = None
            start = time.perf_counter() if self.on_node is not None else 0.0
            try:
                (result,) = self.step(member, operands)
            except FAILURES as error:
                raise self._placed(error, member, operands) from error
            if self.on_node is not None:
                self.on_node(member.node, time.perf_counter() - start)
            if self.on_value is not None:
                self.on_value(member.node.outputs[0], result)
            values.append(result)
            operands = result = None  # type: ignore[assignment]  # nothing outlives its last use
        return [values[cluster.outside + i] for i in cluster.leaving]

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
        call = Call(step, dtypes, self.xp, self)
        if kernel.moves:
            results = kernel.function(call, *operands)
            if results.__class__ is not tuple:
                results = (results,)
            return detached(results) if step.dead else results
        for i, operand in enumerate(operands):
            operands[i] = widened(operand)
        operand = None
        if kernel.inplace and self.reuses:
            call.out = spare(operands)
        results = kernel.function(call, *operands)
        if results.__class__ is not tuple:
            results = (results,)
        if step.stays_wide and dtypes[0] is not None:
            alone = [results[0]]
            operands.clear()
            del results, call  # which hold operands that the result may have been written over
            return [on_grid(alone, dtypes[0], step.is_exact, self.reuses)]
        return [as_declared(result, dtype) for result, dtype in zip(results, dtypes, strict=False)]

    def _placed(self, error: Exception, step: "Step", operands: Sequence[Any]) -> KernelError:
        """Return the error with nodes in its message: this one and, where bodies and functions are nested, the innermost."""
        dtypes = ", ".join("-" if dtype is None else dtype.name for dtype in step.operand_dtypes)
        if isinstance(error, AmpgraphError):
            why = str(self.failed or error)
        elif isinstance(error, AttributeError | TypeError) and _takes_handles(step):
            why = f"it takes other operands than these. Received: {', '.join(map(kind_of, operands))}"
        else:
            why = f"{type(error).__name__}: {error}"
        placed = KernelError(f"Node {step.node} on ({dtypes}) failed: {why}")
        self.failed = self.failed or placed
        return placed


def _takes_handles(step: "Step") -> bool:
    """Whether a node takes resources, variants or references to variables, which arrays and one another may be mistaken for."""
    formals = () if step.node.schema is None else step.node.schema.inputs
    return any(formal.is_ref for formal in formals) or any(d is not None and d.kind == "handle" for d in step.operand_dtypes)


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
