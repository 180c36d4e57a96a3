"""The plan of a graph: which kernels run in which order, on which of its registers, and when values are dropped."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..graph.dtypes import DType, DTYPES, cast_array, dtype_of_array
from ..graph.errors import AmpgraphError, KernelError
from ..graph.graph import Graph, Node, Value
from .call import Call, constant_array, readable_attributes
from .registry import Kernel, all_kernels, find_kernel

_FLOAT32 = DTYPES["float32"]
_INT8 = DTYPES["int8"]
_UINT8 = DTYPES["uint8"]


def wide_dtype(dtype: DType) -> DType:
    """Return the dtype that kernels compute values of ``dtype`` in."""
    if dtype.kind == "float" and dtype.bits < 32:
        return _FLOAT32
    if dtype.bits < 8:
        return _INT8 if dtype.kind == "int" else _UINT8 if dtype.kind == "uint" else dtype
    return dtype


class Step:
    """One node of a plan.

    Attributes:
        node: The node.
        kernel: Its kernel; None for the call of a function.
        function: The plan of the function it calls.
        bodies: The plans of the graphs that it owns.
        attributes: Attributes as kernels read them.
        opset: Version of the op's domain.
        operands: Register of each operand, -1 where omitted.
        results: Register of each result, -1 where nobody uses it.
        dead: Registers that are read here for the last time.
        dtypes: Dtype of each result as far as declared.
        operand_dtypes: Dtype of each operand as far as declared.
    """

    __slots__ = (
        "attributes",
        "bodies",
        "dead",
        "dtypes",
        "function",
        "is_typed",
        "kernel",
        "node",
        "operand_dtypes",
        "operands",
        "opset",
        "results",
    )

    def __init__(self, node: Node) -> None:
        self.node = node
        self.kernel: Kernel | None = None
        self.function: Plan | None = None
        self.bodies: dict[Graph, Plan] = {}
        self.attributes: dict[str, Any] = {}
        self.opset = node.graph.opsets.get(node.domain, 1)
        self.operands: list[int] = []
        self.results: list[int] = []
        self.dead: list[int] = []
        self.dtypes: list[DType | None] = [value.dtype for value in node.outputs]
        self.operand_dtypes: list[DType | None] = [None if value is None else value.dtype for value in node.inputs]
        self.is_typed = None not in self.dtypes


class Plan:
    """A graph made ready to run. Nothing in it changes while it runs, so that several threads can.

    Attributes:
        graph: The graph.
        steps: Its nodes in the order in which they run.
        template: A value for each register: constants, and None for what is computed.
        inputs: Register of each graph input, -1 where nobody uses it.
        outputs: Register of each graph output.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.steps: list[Step] = []
        self.template: list[Any] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []


class Run:
    """One run of a program: what its kernels share.

    Args:
        xp: The array module.
        on_value: Called with every value that is computed, and its array.
        on_node: Called with every node that ran and the seconds it took.
    """

    def __init__(
        self,
        xp: Any,
        on_value: Callable[[Value, Any], None] | None = None,
        on_node: Callable[[Node, float], None] | None = None,
    ) -> None:
        self.xp = xp
        self.on_value = on_value
        self.on_node = on_node

    def graph(self, plan: Plan, inputs: Sequence[Any]) -> list[Any]:
        """Run a plan on a value for each input; return a value for each output."""
        env = list(plan.template)
        for register, value in zip(plan.inputs, inputs, strict=True):
            if register >= 0:
                env[register] = value
        hooked = self.on_value is not None or self.on_node is not None
        for step in plan.steps:
            operands = [env[register] if register >= 0 else None for register in step.operands]
            start = time.perf_counter() if hooked else 0.0
            try:
                results = self.step(step, operands)
            except AmpgraphError as error:
                raise _with_place(error, step) from error
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, MemoryError, NotImplementedError) as error:
                raise _with_place(KernelError(f"{type(error).__name__}: {error}"), step) from error
            if hooked:
                self._tell(step, results, time.perf_counter() - start)
            for register, result in zip(step.results, results, strict=False):
                if register >= 0:
                    env[register] = result
            for register in step.dead:
                env[register] = None
            del operands, results
        return [env[register] for register in plan.outputs]

    def _tell(self, step: Step, results: Sequence[Any], seconds: float) -> None:
        if self.on_node is not None:
            self.on_node(step.node, seconds)
        if self.on_value is not None:
            for value, result in zip(step.node.outputs, results, strict=False):
                self.on_value(value, result)

    def step(self, step: Step, operands: list[Any]) -> Sequence[Any]:
        """Run one node; return its results."""
        if step.function is not None:
            missing = len(step.function.inputs) - len(operands)
            return self.graph(step.function, operands + [None] * missing)
        kernel = step.kernel
        assert kernel is not None
        dtypes = step.dtypes if step.is_typed else _actual_dtypes(step, operands)
        call = Call(step, self, dtypes)
        if kernel.moves:
            results = kernel.function(call, *operands)
            return results if results.__class__ is tuple else (results,)
        operands = [_widen(operand) for operand in operands]
        results = kernel.function(call, *operands)
        if results.__class__ is not tuple:
            results = (results,)
        return [_as_declared(result, dtype) for result, dtype in zip(results, dtypes, strict=False)]


def _widen(value: Any) -> Any:
    """Return a value in the dtype in which kernels compute it."""
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return [_widen(item) for item in value] if value.__class__ is list else value
    if dtype.char != "e" and dtype.kind != "V":
        return value
    return cast_array(value, wide_dtype(dtype_of_array(dtype)))


def _as_declared(value: Any, dtype: DType | None) -> Any:
    """Return a result as an array of the declared dtype."""
    if value.__class__ is list:
        return [_as_declared(item, dtype) for item in value]
    if dtype is None or value is None or dtype.kind == "string":
        return value
    if not hasattr(value, "astype"):
        import numpy as np

        value = np.asarray(value)
    if value.dtype.__class__ is not dtype.numpy.__class__ or value.dtype != dtype.numpy:
        value = cast_array(value, dtype)
    return value if value.__class__.__name__ == "ndarray" else value.reshape(())[...]


def _actual_dtypes(step: Step, operands: Sequence[Any]) -> list[DType | None]:
    """Return the dtypes of the results of a node whose types are not known before it runs."""
    ports = step.node.signature
    known: dict[Any, DType] = dict(step.node.types)
    for port, operand in zip(ports.inputs, operands, strict=False):
        while operand.__class__ is list and operand:
            operand = operand[0]
        dtype = getattr(operand, "dtype", None)
        if isinstance(port, str) and dtype is not None:
            known.setdefault(port, dtype_of_array(dtype))
    schema = ports.schema
    for variable, default in getattr(schema, "type_attributes", {}).values():
        if variable not in known and default:
            found = DTYPES.get(default) or known.get(default)
            if found is not None:
                known[variable] = found
    return [known.get(port) if isinstance(port, str) else port for port in ports.outputs]


def _with_place(error: AmpgraphError, step: Step) -> KernelError:
    """Return the error with the node in its message; the innermost node is named first."""
    node = step.node
    dtypes = ", ".join("-" if dtype is None else dtype.name for dtype in step.operand_dtypes)
    return KernelError(f"Node {node} on ({dtypes}) failed: {error}")


class Planner:
    """Makes the plans of one program.

    Args:
        xp: The array module, for constants.
    """

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self.missing: list[Node] = []

    def plan(self, graph: Graph, given: Mapping[str, Any] | None = None) -> Plan:
        """Plan a graph.

        Args:
            graph: The graph.
            given: Attributes that the caller of a function supplies.
        """
        given = given or {}
        plan = Plan(graph)
        registers: dict[Value, int] = {}

        def register(value: Value, content: Any = None) -> int:
            registers[value] = len(plan.template)
            plan.template.append(content)
            return registers[value]

        order = graph.topological()
        used = {value for node in order for value in node.inputs if value is not None} | set(graph.outputs)
        for value in graph.inputs:
            default = value.producer.attributes.get("default")
            content = None if default is None else constant_array(default)
            plan.inputs.append(register(value, content) if value in used else -1)
        last: dict[int, Step] = {}
        for node in order:
            if node.domain == "ampgraph" and node.op_type == "Input":
                continue
            if node.domain == "ampgraph" and node.op_type == "Initializer":
                if node.outputs[0] in used:
                    register(node.outputs[0], constant_array(node.attributes["value"]))
                continue
            step = self._step(node, given)
            step.operands = [-1 if value is None else registers[value] for value in node.inputs]
            step.results = [register(value) if value in used else -1 for value in node.outputs]
            plan.steps.append(step)
            last.update(dict.fromkeys(step.operands, step))
        plan.outputs = [registers[value] for value in graph.outputs]
        kept = {-1, *plan.outputs, *(i for i, content in enumerate(plan.template) if content is not None)}
        for number, step in last.items():
            if number not in kept:
                step.dead.append(number)
        return plan

    def _step(self, node: Node, given: Mapping[str, Any]) -> Step:
        step = Step(node)
        function = node.graph.functions.get(f"{node.domain}:{node.op_type}")
        step.attributes = readable_attributes(node, given)
        if function is not None:
            step.function = self.plan(function, step.attributes)
            return step
        step.kernel = find_kernel(node.domain, node.op_type)
        if step.kernel is None:
            self.missing.append(node)
        for value in step.attributes.values():
            for body in value if isinstance(value, list) else (value,):
                if isinstance(body, Graph):
                    step.bodies[body] = self.plan(body, given)
        return step


def missing_kernels(nodes: Sequence[Node]) -> KernelError:
    """Return the error for nodes whose ops have no kernel."""
    from ..graph.errors import did_you_mean

    node = nodes[0]
    names = {f"{node.domain}:{node.op_type}" if node.domain else node.op_type: None for node in nodes}
    dtypes = ", ".join("-" if value is None or value.dtype is None else value.dtype.name for value in node.inputs)
    near = did_you_mean(next(iter(names)), all_kernels())
    text = f"Node {node} on ({dtypes}) cannot run: op {next(iter(names))!r} has no kernel, {len(all_kernels())} others have one."
    others = f" Neither have: {', '.join(sorted(list(names)[1:]))}." if len(names) > 1 else ""
    return KernelError(f"{text}{near}{others}")
