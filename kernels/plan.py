"""The plan of a graph: which kernels run in which order, on which of its registers, and when values are dropped."""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..graph.errors import AmpgraphError, KernelError, did_you_mean
from ..graph.graph import Graph, Node, Value
from ..graph.schemas.ampgraph import is_op
from ..graph.types import FunctionRef, Tensor
from .call import constant_array
from .frames import Frame, Item, Loop, check_loops, find_frames, items_of
from .fuse import fuse, keep_wide
from .pruning import inputs_of, needed
from .registers import Registers
from .registry import all_kernels, find_kernel
from .run import Run
from .steps import LoopPlan, Plan, Step
from .values import read_only

#: A result that is made of constants stays a constant up to so many bytes, or if it is not much larger than they are.
_ALWAYS_FOLDED = 1 << 20
_MOST_GROWTH = 4
_NO_FRAMES: Mapping[Node, Frame] = MappingProxyType({})
_SWITCHES = ("Switch", "RefSwitch", "_SwitchN", "Merge", "RefMerge")


class Planner:
    """Makes the plans of one program.

    Args:
        xp: The array module, for constants.
        fuse: Whether nodes may be computed ahead of time, and float16 results stay float32 between nodes.

    Attributes:
        frozen: Whether inputs that have a default are constants in the plans to come.
        missing: The nodes seen so far whose ops have no kernel.
    """

    def __init__(self, xp: Any, fuse: bool) -> None:
        self.xp = xp
        self.fuse = fuse
        self.frozen = True
        self.missing: list[Node] = []
        self._arrays: dict[int, Any] = {}
        self._functions: dict[Any, tuple[Plan, Mapping[str, Any]]] = {}

    def plan(self, graph: Graph, given: Mapping[str, Any] | None = None) -> Plan:
        """Plan a graph.

        Args:
            graph: The graph.
            given: Attributes that the caller of a function supplies.
        """
        plan = Plan(graph)
        self._complete(plan, given or {})
        return plan

    def _complete(self, plan: Plan, given: Mapping[str, Any]) -> None:
        graph = plan.graph
        if graph.opsets:
            self._fill(plan, graph.topological(), graph.inputs, graph.outputs, given)
        else:
            order = needed(graph)
            check_loops(order)
            frames = find_frames(order, graph.outputs)
            self._fill(plan, items_of(order, frames, ()), inputs_of(graph), graph.outputs, given, frames)

    def _fill(
        self,
        plan: Plan,
        items: Sequence[Item],
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        given: Mapping[str, Any],
        frames: Mapping[Node, Frame] = _NO_FRAMES,
    ) -> None:
        """Make the steps of a plan.

        Args:
            plan: The plan, empty.
            items: Nodes and loops, in the order in which they run.
            inputs, outputs: What goes in and comes out.
            given: As for :meth:`plan`.
            frames: The frame of each node of a TensorFlow graph.
        """
        inner = [node for item in items for node in (item.enters if isinstance(item, Loop) else (item,))]
        used = {value for node in inner for value in node.inputs if value is not None} | set(outputs)
        waited = {source for node in inner for source in node.controls}
        plan.branches = any(isinstance(item, Loop) or _may_be_dead(item) for item in items)
        registers = Registers(plan.template)
        marks: dict[Node, int] = {}
        self._add_inputs(plan, inputs, registers, used)
        for item in items:
            if isinstance(item, Loop):
                step = self._loop(item, frames, registers, given)
                step.results = [registers.add(node.outputs[0]) for node in item.exits]
                plan.steps.append(step)
                continue
            node = item
            if node.outputs and node.outputs[0] in registers:  # it is fed
                continue
            if not is_op(node):
                if node.op_type == "Initializer" and node.outputs[0] in used:
                    registers.keep(node.outputs[0], self.array(node.attributes["value"]))
                continue
            if node.op_type == "Const" and node.domain == "tf" and not (plan.branches and node.controls):
                registers.keep(node.outputs[0], self.array(node.attributes["value"]))
                continue
            step = self._step(node, given)
            step.operands = registers.of(node.inputs)
            step.reads = _reads(node)
            if plan.branches:
                step.gates = [marks[source] for source in node.controls if source in marks]
                if node in waited:
                    step.mark = marks[node] = registers.new()
            folded = self._fold(step, registers) if self.fuse and not step.gates else None
            if folded is not None:
                for value, array in zip(node.outputs, folded, strict=False):
                    registers.keep(value, self._constant(array))
                continue
            if step.kernel is not None and not step.kernel.moves:
                step.operands = [registers.widen(number, self._constant) for number in step.operands]
            step.constants = {
                i: registers.constant(number)
                for i, number in enumerate(step.operands)
                if number < 0 or number in registers.constants
            }
            step.results = [registers.add(value) if value in used else -1 for value in node.outputs]
            plan.steps.append(step)
        plan.outputs = registers.of(outputs)
        self._finish(plan, registers.constants)

    def _add_inputs(self, plan: Plan, inputs: Sequence[Value], registers: Registers, used: Collection[Value]) -> None:
        """Give inputs their registers; those with a default are constants where they are frozen."""
        for value in inputs:
            default = value.producer.attributes.get("default") if self.frozen else None
            waits = not self.frozen or value.producer.op_type != "PlaceholderWithDefault"
            plan.inputs.append(registers.add(value) if waits and default is None and value in used else -1)
            if waits and default is not None:
                registers.keep(value, self.array(default))

    def _loop(self, loop: Loop, frames: Mapping[Node, Frame], registers: Registers, given: Mapping[str, Any]) -> Step:
        """Plan a loop of a TensorFlow graph."""
        step = Step(loop.enters[0], given)
        entering = [value for enter in loop.enters for value in enter.inputs[:1] if value is not None]
        step.operands = registers.of(entering)
        step.reads = [i for i, enter in enumerate(loop.enters) if _reads(enter)]
        step.operand_dtypes = [value.dtype for value in entering]
        number = {enter.outputs[0]: i for i, enter in enumerate(loop.enters)}
        starts = [next(number[v] for v in merge.inputs if v in number) for merge in loop.merges]
        body = Plan(step.node.graph)
        values = [*number, *(merge.outputs[0] for merge in loop.merges)]
        leaving = [value for node in (*(end.producer for end in loop.ends), *loop.exits) for value in node.inputs[:1]]
        items = items_of(loop.inner, frames, loop.frame)
        self._fill(body, items, values, [value for value in leaving if value is not None], given, frames)
        step.loop = LoopPlan(body, [*number.values(), *starts], len(starts))
        return step

    def default(self, value: Value) -> Any:
        """Return what an input is when it is not fed, or None."""
        node = value.producer
        source = node.inputs[0].producer if node.op_type == "PlaceholderWithDefault" and node.inputs[0] is not None else node
        tensor = source.attributes.get("default" if source is node else "value")
        return self.array(tensor) if isinstance(tensor, Tensor) else None

    def array(self, tensor: Tensor) -> Any:
        """Return a constant's elements; all plans share them."""
        if id(tensor) not in self._arrays:
            self._arrays[id(tensor)] = self._constant(constant_array(tensor))
        return self._arrays[id(tensor)]

    def _constant(self, array: Any) -> Any:
        """Return a constant as the device holds it; kernels and users cannot write to it."""
        if not hasattr(array, "flags"):
            return array
        if hasattr(array.flags, "aligned") and not array.flags.aligned:
            array = array.copy()  # as files have it; NumPy would copy it in every product
        return read_only(self.xp.asarray(array) if array.dtype.kind in "biufc" else array[...])  # of a scalar, an array too

    def _fold(self, step: Step, registers: Registers) -> Sequence[Any] | None:
        """Return the results of a node whose operands are constants; None if they are not, or it must run each time."""
        if not registers.constants.issuperset(number for number in step.operands if number >= 0):
            return None
        operands = [registers.constant(number) for number in step.operands]
        schema = step.node.schema
        if step.kernel is None or step.function or step.bodies or schema is None or schema.stateful or not step.is_typed:
            return None
        import numpy as np

        try:
            with np.errstate(all="ignore"):
                results = Run(self.xp).step(step, list(operands))
        except (AmpgraphError, ArithmeticError, LookupError, TypeError, ValueError, MemoryError, AttributeError):
            return None  # it may never run
        if len(results) < len(step.node.outputs) or not all(hasattr(result, "nbytes") for result in results):
            return None
        made = sum(result.nbytes for result in results)
        given = sum(operand.nbytes for operand in operands if operand is not None)
        return None if made > max(_ALWAYS_FOLDED, _MOST_GROWTH * given) else results

    def _function(self, function: Graph, given: Mapping[str, Any]) -> Plan:
        """Plan a function; calls with equal attributes share a plan, so that functions of functions take no longer to plan."""
        key = (function, *sorted((name, _key(value)) for name, value in given.items()))
        if key not in self._functions:
            plan = Plan(function)
            self._functions[key] = plan, given  # a function that calls itself finds it
            self._complete(plan, given)
        return self._functions[key][0]

    def _finish(self, plan: Plan, constants: set[int]) -> None:
        """Put steps into clusters, find the last use of every register, and forget constants that nobody uses."""
        if self.fuse:
            keep_wide(plan)
            if not plan.branches:
                fuse(plan)
        last: dict[int, Step] = {}
        for step in plan.steps:
            last.update(dict.fromkeys(step.operands, step))
        live = {*last, *plan.outputs}
        for number in constants:
            if number not in live:
                plan.template[number] = None
        for number in {*last} - constants - {-1, *plan.outputs}:
            last[number].dead.append(number)

    def _step(self, node: Node, given: Mapping[str, Any]) -> Step:
        step = Step(node, given)
        functions = node.graph.functions
        function = functions.get(node.op_type if node.domain == "tf" else f"{node.domain}:{node.op_type}")
        if function is not None:
            step.function = self._function(function, step.attributes)
            return step
        step.kernel = find_kernel(node.domain, node.op_type)
        if step.kernel is None:
            self.missing.append(node)
        for name, value in step.attributes.items():
            bodies = value if isinstance(value, list) else [value]
            for i, body in enumerate(bodies):
                if isinstance(body, Graph):
                    step.bodies[body] = self.plan(body, given)
                elif isinstance(body, FunctionRef):
                    if body.name not in functions:
                        raise KernelError(f"Node {node} calls function {body.name!r}, which the graph does not have.")
                    bodies[i] = called = functions[body.name]
                    step.bodies[called] = self._function(called, dict(body.attributes))
            if bodies is not value:
                step.attributes[name] = bodies[0]
        return step


def _reads(node: Node) -> list[int]:
    """Return the operands of a node that are references, where it wants values."""
    if node.domain != "tf":
        return []
    found = [i for i, value in enumerate(node.inputs) if value is not None and is_reference(value)]
    if not found or node.schema is None:
        return found
    taken = node.schema.split_inputs(node.signature)
    kept = {i for formal in node.schema.inputs if formal.is_ref for i in taken[formal.name]}
    return [i for i in found if i not in kept]


def is_reference(value: Value) -> bool:
    """Whether a value is a reference to a variable of a TensorFlow graph."""
    schema = value.producer.schema
    if schema is None or schema.domain != "tf" or not any(formal.is_ref for formal in schema.outputs):
        return False
    places = schema.split_outputs(value.producer.signature)
    return any(formal.is_ref and value.index in places[formal.name] for formal in schema.outputs)


def _may_be_dead(node: Node) -> bool:
    """Whether a result of a node may be one of a branch that is not taken: of TensorFlow's switches, and of what calls functions."""
    if node.domain != "tf":
        return False
    values = node.attributes.values()
    calls = any(isinstance(item, FunctionRef) for value in values for item in (value if isinstance(value, list) else (value,)))
    return node.op_type in _SWITCHES or calls or node.op_type in node.graph.functions


def _key(value: Any) -> Any:
    """Return what tells attributes apart; objects that are no plain data count as themselves."""
    if isinstance(value, list):
        return tuple(map(_key, value))
    return (value.__class__, repr(value)) if isinstance(value, int | float | str) else id(value)


def missing_kernels(nodes: Sequence[Node]) -> KernelError:
    """Return the error for nodes whose ops have no kernel."""
    node = nodes[0]
    names = list(dict.fromkeys(f"{node.domain}:{node.op_type}" if node.domain else node.op_type for node in nodes))
    dtypes = ", ".join("-" if value is None or value.dtype is None else value.dtype.name for value in node.inputs)
    known = all_kernels()
    text = f"Node {node} on ({dtypes}) cannot run: op {names[0]!r} has no kernel, {len(known)} others have one."
    others = f" Neither have: {', '.join(sorted(names[1:]))}." if len(names) > 1 else ""
    return KernelError(f"{text}{did_you_mean(names[0], known)}{others}")
