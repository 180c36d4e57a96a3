"""What a plan consists of: nodes made ready to run, on numbered registers."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..graph.dtypes import DType
from ..graph.graph import Graph, Node
from .call import readable_attributes, supplied_types
from .registry import Kernel

#: Runs steps on a list of registers; returns the number of the first that it did not run.
Line = Callable[[list[Any]], int]
#: Register of what variables hold.
STATE = 0


def is_low(dtype: DType | None) -> bool:
    """Whether a dtype is one whose values may be kept as float32, rounded."""
    return dtype is not None and dtype.name in ("float16", "bfloat16")


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
        constants: The operands that are constants, or None where omitted, by their positions.
        kept: What the kernel made of these.
        reads: Positions of operands that are references to variables, where the node wants what these hold.
        results: Register of each result, -1 where nobody uses it.
        dead: Registers that are read here for the last time.
        gates: Registers of nodes that this one waits for and that may be in a branch not taken.
        mark: Register that says whether this node ran, for those that wait for it; -1 where none does.
        loop: The loop of a TensorFlow graph that runs here, in place of a node; ``node`` is its first Enter.
        types: The node's types, and those that the caller of the function around it supplies.
        dtypes: Dtype of each result as far as declared.
        is_typed: Whether all of them are.
        operand_dtypes: Dtype of each operand as far as declared.
        stays_wide: Whether its float16 or bfloat16 result, rounded, stays an array of float32, because all that use it compute in
            float32.
        is_exact: Whether its result needs no rounding, being an element of an operand or an integer.
        is_low: Whether its only result is declared float16 or bfloat16.
        cluster: The steps that run here together, in place of the node, which is that of the last of them.
    """

    __slots__ = (
        "attributes",
        "bodies",
        "cluster",
        "constants",
        "dead",
        "dtypes",
        "function",
        "gates",
        "is_exact",
        "is_low",
        "is_typed",
        "kept",
        "kernel",
        "loop",
        "mark",
        "node",
        "operand_dtypes",
        "operands",
        "opset",
        "reads",
        "results",
        "stays_wide",
        "types",
    )

    def __init__(self, node: Node, given: Mapping[str, Any]) -> None:
        self.node = node
        self.kernel: Kernel | None = None
        self.function: Plan | None = None
        self.bodies: dict[Graph, Plan] = {}
        self.attributes = readable_attributes(node, given)
        self.opset = node.graph.opsets.get(node.domain, 1)
        self.operands: list[int] = []
        self.constants: dict[int, Any] = {}
        self.kept: Any = None
        self.reads: list[int] = []
        self.results: list[int] = []
        self.dead: list[int] = []
        self.gates: list[int] = []
        self.mark = -1
        self.loop: LoopPlan | None = None
        self.types: Mapping[str, DType] = node.types
        self.dtypes: list[DType | None] = [value.dtype for value in node.outputs]
        supplied = supplied_types(node, self.attributes)
        if supplied:
            self.types = {**node.types, **supplied}
            ports = node.signature.outputs
            self.dtypes = [supplied.get(str(port), dtype) for port, dtype in zip(ports, self.dtypes, strict=True)]
        self.is_typed = None not in self.dtypes
        self.operand_dtypes: list[DType | None] = [None if value is None else value.dtype for value in node.inputs]
        self.stays_wide = False
        self.is_exact = False
        self.is_low = len(self.dtypes) == 1 and is_low(self.dtypes[0])
        self.cluster: Cluster | None = None


class Plan:
    """A graph made ready to run. Nothing in it changes while it runs, but what kernels keep of constants, and lines; several threads can run it.

    Attributes:
        graph: The graph.
        steps: Its nodes in the order in which they run.
        template: A value for each register: constants, and None for what is computed. The first is :data:`STATE`.
        inputs: Register of each graph input, -1 where nobody uses it.
        outputs: Register of each graph output.
        branches: Whether there are branches that may not be taken: Switches of TensorFlow graphs.
        runs: How often it ran with nobody looking on, until it has lines.
        lines: For every step, the line that begins there, if any: see :mod:`.lines`.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.steps: list[Step] = []
        self.template: list[Any] = [None]
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.branches = False
        self.runs = 0
        self.lines: list[Line | None] | None = None


class Cluster(NamedTuple):
    """Steps that run together. Their values stand in one list: first what comes from outside, then the result of each member.

    Attributes:
        members: The steps, in order; each has one result.
        sources: For each member, where each operand stands in the list; -1 where it is omitted.
        dead: For each member, what it reads for the last time, unless that is read outside.
        outside: How many values come from outside.
        columns: Which of these have one element for each channel, the second axis of what they stand against.
        leaving: Which members' results are read outside.
    """

    members: list[Step]
    sources: list[list[int]]
    dead: list[list[int]]
    outside: int
    columns: frozenset[int]
    leaving: list[int]


class LoopPlan(NamedTuple):
    """A loop of a TensorFlow graph.

    Attributes:
        body: One iteration: what enters for good and the loop variables go in, the next loop variables and what leaves come out.
        first: Positions of what enters among the loop's operands: for each input of ``body`` before the loop variables, then
            for each loop variable.
        variables: How many loop variables there are.
    """

    body: Plan
    first: list[int]
    variables: int
