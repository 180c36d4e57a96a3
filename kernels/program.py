"""Programs: graphs made ready to run."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..graph.dtypes import DType
from ..graph.errors import KernelError, did_you_mean
from ..graph.graph import Graph, Node, Value
from .backend import get_backend
from .feeds import check_feed, plain_feed
from .handle import Handle, held
from .plan import Planner, is_reference, missing_kernels
from .pruning import inputs_of
from .run import Run
from .steps import Plan
from .values import DEAD, apart


def compile(graph: Graph, device: str = "cpu", *, fuse: bool = True) -> "Program":
    """Make a graph ready to run.

    Args:
        graph: The graph; later changes to it have no effect on the program.
        device: ``"cpu"``, ``"gpu"``, ``"gpu:N"``, or ``"auto"`` for a GPU where there is one.
        fuse: Whether nodes may be computed ahead of time from constants, and float16 values, rounded, kept as float32 from one
            node to the next. The results are the same; hooks do not see such nodes and dtypes as they are in the graph.

    Raises:
        KernelError: If an op has no kernel, or the device cannot be used.
        GraphError: If the graph has a cycle or a constant that cannot be read.
    """
    return Program(graph, device, fuse=fuse)


class Program:
    """A graph that can be run, from several threads at once; see :func:`compile`.

    Attributes:
        graph: The graph it was made of.
        device: Where it runs: ``"cpu"`` or ``"gpu:N"``.
        state: What the variables of a TensorFlow graph hold from one run to the next, by their handles. May be read and written
            between runs.
    """

    def __init__(self, graph: Graph, device: str = "cpu", *, fuse: bool = True) -> None:
        if not isinstance(graph, Graph):
            raise KernelError(f"A program is made of a Graph, as ampgraph.load returns it. Received: {type(graph).__name__}")
        self.graph = graph
        self._backend = get_backend(device)
        self.device = self._backend.name
        planner = Planner(self._backend.xp, fuse)
        try:
            self._plan = planner.plan(graph)
        except RecursionError:
            raise _too_deep(graph) from None
        if planner.missing:
            raise missing_kernels(planner.missing)
        self._inputs = {value.name: value for value in inputs_of(graph)}
        self._defaults = {name: array for name, value in self._inputs.items() if (array := planner.default(value)) is not None}
        # Inputs that are computed unless they are fed: TensorFlow's, whose default may be any value.
        self._computed = {
            name
            for name, value in self._inputs.items()
            if value.producer.op_type == "PlaceholderWithDefault" and name not in self._defaults
        }
        self._optional = self._computed | self._defaults.keys()
        self.state: dict[Handle, Any] = {}
        # Inputs with a default are mostly weights: constants, until somebody feeds one.
        planner.frozen = False
        self._open_plan = planner.plan(graph) if self._optional else self._plan
        # What to feed, if all of it must be: just such arrays need no closer look.
        self._plain = None if self._optional else [plain_feed(value) for value in self._inputs.values()]
        # Whether an output may be something else than what it shows: a reference, or in a branch that is not taken.
        self._has_others = self._plan.branches or any(is_reference(value) for value in graph.outputs)
        self.output_names = tuple(graph.output_names or [value.name for value in graph.outputs])

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs, in order."""
        return tuple(self._inputs)

    def dtype(self, name: str) -> DType | None:
        """Return the dtype that a value has here: ``"dense/MatMul"``, or ``"split:1"`` for a later result of a node.

        Raises:
            GraphError: If the graph has no such value.
        """
        return self.graph.value(name).dtype

    def __call__(
        self,
        feeds: Mapping[str, Any],
        *,
        on_value: Callable[[Value, Any], None] | None = None,
        on_node: Callable[[Node, float], None] | None = None,
    ) -> dict[str, Any]:
        """Run the graph.

        Args:
            feeds: An array for each input by name; those with a default may be left out. A list for a sequence, None for an
                optional that holds nothing.
            on_value: Called with every value that a node computes, and its array, those of bodies too.
            on_node: Called with every node after it ran, and the seconds it took.

        Returns:
            The outputs by name.

        Raises:
            KernelError: If a feed is missing, unknown, or of another dtype or shape, or a node cannot compute its results.
        """
        inputs = self.check(feeds)
        plan = self._plan
        if self._optional and not self._optional.isdisjoint(name.removesuffix(":0") for name in feeds):
            plan = self._open_plan
        return dict(zip(self.output_names, self._run(plan, inputs, on_value, on_node), strict=True))

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """Run the graph on an array for each input, in order; return the outputs in order.

        Raises:
            KernelError: As when the program is called.
        """
        if not self._fits(arrays):
            arrays = self.check(dict(zip(self._inputs, arrays, strict=True)))
        return self._run(self._open_plan, arrays)

    def _fits(self, arrays: Sequence[Any]) -> bool:
        """Whether arrays for the inputs, in order, need no closer look."""
        if self._plain is None or len(arrays) != len(self._plain):
            return False
        for array, (dtype, shape) in zip(arrays, self._plain):  # noqa: B905 - as many
            if array.__class__ is not np.ndarray or array.dtype is not dtype or array.shape != shape:
                return False
        return True

    def _run(
        self,
        plan: Plan,
        inputs: Sequence[Any],
        on_value: Callable[[Value, Any], None] | None = None,
        on_node: Callable[[Node, float], None] | None = None,
    ) -> list[Any]:
        """Run a plan on inputs that fit."""
        if self.device != "cpu":
            inputs = [self._backend.xp.asarray(x) if isinstance(x, np.ndarray) and x.dtype.kind in "biufc" else x for x in inputs]
        try:
            results = _quiet(Run(self._backend.xp, on_value, on_node, self.state), plan, inputs)
        except RecursionError:
            raise _too_deep(self.graph) from None
        for i, result in enumerate(results):
            if result.__class__ is np.ndarray and (result.base is not None or any([result is x for x in inputs])):  # noqa: C419
                results[i] = apart(result, inputs)
        for i, result in enumerate(results if self._has_others else ()):
            if result.__class__ is Handle and is_reference(self.graph.outputs[i]):
                results[i] = held(self.state, result)
            if result is DEAD:
                raise KernelError(
                    f"Output {self.output_names[i]!r} of graph {self.graph.name!r} is in a branch that this run does not take."
                )
        return results

    def check(self, feeds: Mapping[str, Any]) -> list[Any]:
        """Return what the inputs get, in their order.

        Raises:
            KernelError: If a feed is missing, unknown, or of another dtype or shape.
        """
        if feeds.__class__ is dict and len(feeds) == len(self._inputs):
            arrays = [feeds.get(name) for name in self._inputs]
            if self._fits(arrays):
                return arrays
        if not isinstance(feeds, Mapping):
            raise KernelError(f"Feeds are arrays by the names of the inputs, a mapping. Received: {type(feeds).__name__}")
        if not self.graph.opsets:  # TensorFlow also writes "x:0"
            feeds = {name.removesuffix(":0") if isinstance(name, str) else name: value for name, value in feeds.items()}
        for name in feeds:
            if name not in self._inputs:
                raise KernelError(
                    f"Feed {name!r} is no input of graph {self.graph.name!r}: {', '.join(self._inputs) or 'it has none'}."
                    f"{did_you_mean(str(name), self._inputs)}"
                )
        found = []
        for (name, value), register in zip(self._inputs.items(), self._open_plan.inputs, strict=True):
            if name in feeds:
                found.append(check_feed(feeds[name], value))
            elif name in self._defaults:
                found.append(self._defaults[name])
            elif (name in self._computed and self._optional.isdisjoint(feeds)) or (register < 0 and not self.graph.opsets):
                found.append(None)  # it is computed, or a Placeholder that no result depends on
            else:
                raise KernelError(f"Input {name!r} ({value.dtype}{value.shape}) of graph {self.graph.name!r} has no feed.")
        return found


@np.errstate(all="ignore")  # as a decorator it takes half the time
def _quiet(run: Run, plan: Plan, inputs: Sequence[Any]) -> list[Any]:
    return run.graph(plan, inputs)


def _too_deep(graph: Graph) -> KernelError:
    return KernelError(
        f"Functions and bodies of graph {graph.name!r} are nested deeper than Python's stack: inline some of them or, "
        "where a function calls itself, let that end."
    )
