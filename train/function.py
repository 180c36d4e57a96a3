"""Functions on NumPy arrays that run as graphs: traced once for each signature, rewritten where asked for, compiled."""

import dataclasses
import functools
import inspect
import re
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType
from typing import Any

import numpy as np

from ..graph.dtypes import DType, dtype_of_array
from ..graph.errors import TraceError, TrainingError
from ..graph.graph import Graph, Node
from ..graph.trace import Output, TensorSpec, Traced, is_array, trace_function
from ..graph.tracing.context import Watched, active
from ..graph.tracing.structure import layout, leaves, rebuild, rebuilder
from ..graph.tracing.variable import Variable, arrays_of, set_arrays
from ..kernels.handle import Handle
from ..kernels.program import Program
from ..kernels.values import apart
from ..rewrite import Policy, RewriteReport, auto_mixed_precision
from .diagnosis import Diagnosis

#: Held where variables change, so that threads do not lose each other's changes: by runs that use any, and by traces, which make some.
_changes = threading.RLock()


class Specialization:
    """A function for one signature.

    Attributes:
        signature: The arguments it is for: ``x: f32[5,3], training=True``.
        policy: What its graph is rewritten for, or None.
        graph: The graph as traced.
        report: What the rewrite decided and why; None without a policy.
        program: What runs: of the rewritten graph, if there is a policy.
        variables: The variables that it uses, by their names in the graph.
    """

    def __init__(self, name: str, signature: str, traced: Traced, policy: Policy | None) -> None:
        self.signature = signature
        self.graph: Graph = traced.graph
        self.report: RewriteReport | None = None
        self._optimizers = [(optimizer, optimizer.policy) for optimizer in traced.optimizers]
        self.policy = self._find_policy(policy, traced.float_scopes)
        graph = traced.graph
        if traced.watched:
            graph = graph.copy()
            for watched in traced.watched:
                for value in (watched.step.outputs[0], watched.loss):
                    if value is not None:
                        graph.outputs.append(graph.value(value.name))
                        graph.output_names.append(value.name)
        if self.policy is not None:
            result = auto_mixed_precision(graph, self.policy)
            graph, self.report = result.graph, result.report
            if not self.report.low:
                warnings.warn(f"Nothing in {name}({signature}) is rewritten: {_why(self.report)}", RuntimeWarning, stacklevel=5)
        self.program = Program(graph)
        self.variables: Mapping[str, Variable] = MappingProxyType(traced.variables)
        self._watched = _pair(traced.watched, graph, len(traced.graph.outputs))
        self._places = [traced.inputs.index(name) for name in self.program.input_names]
        self._in_order = self._places == list(range(len(traced.inputs)))
        places = {name: i for i, name in enumerate(traced.graph.output_names)}
        self._rebuild = rebuilder(
            traced.results, lambda leaf: itemgetter(places[leaf.name]) if isinstance(leaf, Output) else lambda outputs: leaf
        )
        self._variables = list(traced.variables.values())
        self._handles = [Handle(name) for name in traced.variables]
        self._lock = _changes if self._handles else threading.RLock()

    def _find_policy(self, policy: Policy | None, float_scopes: list[str]) -> Policy | None:
        """Return what to rewrite for: what the function says, else what the optimizers in it say, with the scopes kept in float32."""
        if policy is None:
            policies = list(dict.fromkeys(given for _, given in self._optimizers if given is not None))
            if len(policies) > 1:
                raise TrainingError(
                    "A graph is rewritten once, and the optimizers in it want it differently; say which with policy= of "
                    f"ampgraph.function. Received: {policies[0]} and {policies[1]}"
                )
            policy = policies[0] if policies else None
        if policy is None or not float_scopes:
            return policy
        kept = (f"(gradients/)*{re.escape(scope)}.*=none" for scope in float_scopes)
        return dataclasses.replace(policy, nodes=(*kept, *policy.nodes))

    @property
    def is_current(self) -> bool:
        """Whether the optimizers in it still say what they said when it was traced."""
        for optimizer, policy in self._optimizers:  # noqa: SIM110 - before every run
            if optimizer.policy is not policy:
                return False
        return True

    def dtype(self, name: str) -> DType | None:
        """Return the dtype that a value of the graph is computed in: see :meth:`Program.dtype`."""
        return self.program.dtype(name)

    def export(self, *, rewritten: bool = True) -> Graph:
        """Return a graph for TensorFlow, as :func:`ampgraph.save` writes it.

        Training steps are written in TensorFlow's ops. The node ``init`` lets variables hold what they hold now; it is run once,
        before anything else.

        Args:
            rewritten: Whether it is the graph that runs here; or else the one as traced.

        Example:
            >>> import numpy as np
            >>> total = Variable(0.0, name="total")
            >>> @function
            ... def add(x):
            ...     total.assign_add(x)
            ...     return total.value
            >>> graph = add.specialize(np.float32(1)).export()
            >>> graph.attributes["preserved"]
            ['init']
        """
        from .export import export_graph

        for optimizer, _ in self._optimizers:
            optimizer.before_run()
        return export_graph(self.program.graph if rewritten else self.graph, self.variables)

    def run(self, arrays: Sequence[Any]) -> Any:
        """Run the graph on the arrays among the arguments, in order; return what the function returns."""
        inputs = arrays if self._in_order else [arrays[i] for i in self._places]
        with self._lock:
            for optimizer, _ in self._optimizers:
                optimizer.before_run()
            state = self.program.state
            state.update(zip(self._handles, arrays_of(self._variables), strict=True))
            before = dict(state) if self._watched else {}
            outputs = self.program.run(inputs)
            # No feed is a part of what variables hold now: the executor lets them hold nothing that others hold.
            set_arrays(self._variables, map(state.__getitem__, self._handles))
            for i, output in enumerate(outputs):  # what variables hold cannot be written to, nor can parts of it
                if output.__class__ is not np.ndarray or not output.flags.writeable:
                    outputs[i] = apart(output, arrays_of(self._variables))
            for owner, step, applied, loss in self._watched:
                diagnosis = Diagnosis(
                    self.program, inputs, before, step, None if loss is None else self.program.graph.outputs[loss]
                )
                owner.after_run(bool(outputs[applied]), None if loss is None else outputs[loss], diagnosis)
        return self._rebuild(outputs)

    def __repr__(self) -> str:
        return f"<Specialization ({self.signature}): {len(self.program.graph)} nodes>"


def _pair(watched: list[Watched], graph: Graph, start: int) -> list[tuple[Any, Node, int, int | None]]:
    """Return who looks at which step of a graph that was rewritten since, whose ``applied`` and loss are which of the outputs.

    Those are the outputs from ``start`` on.
    """
    places = iter(range(start, len(graph.outputs)))
    found = []
    for who in watched:
        applied = next(places)
        found.append((who.owner, graph.outputs[applied].producer, applied, None if who.loss is None else next(places)))
    return found


def _why(report: RewriteReport) -> str:
    """Return a sentence that says why nothing became low."""
    if report.notes:
        return "; ".join(report.notes)
    return (
        f"no op of it is on the AllowList for {report.target} on a {report.device_type}, or each is kept for a reason of its own."
    )


class Function:
    """A function that runs as a graph: see :func:`function`.

    Attributes:
        policy: What its graphs are rewritten for; what the optimizers in it say when None.
    """

    def __init__(
        self, python_function: Callable[..., Any], policy: Policy | None, input_signature: Mapping[str, Any] | None
    ) -> None:
        if not callable(python_function):
            raise TraceError(f"ampgraph.function takes a function. Received: {python_function!r}")
        if policy is not None and not isinstance(policy, Policy):
            raise TraceError(f"A policy is an ampgraph.Policy, or None. Received: {policy!r}")
        self.policy = policy
        self._function = python_function
        if input_signature is not None and not isinstance(input_signature, Mapping):
            raise TraceError(
                f"An input signature has a TensorSpec by the name of an argument, in a dict. Received: {input_signature!r}"
            )
        self._input_signature = dict(input_signature or {})
        self._parameters = inspect.signature((lambda *x: x) if isinstance(python_function, np.ufunc) else python_function)
        self._cache: dict[Any, Specialization] = {}
        self._quick: dict[Any, Specialization] = {}
        functools.update_wrapper(self, python_function)

    @property
    def cache(self) -> Mapping[str, Specialization]:
        """What was traced so far, by signature."""
        return MappingProxyType({found.signature: found for found in self._cache.values()})

    def specialize(self, *args: Any, **kwargs: Any) -> Specialization:
        """Return the graph for arguments, without running it; a :class:`TensorSpec` may stand for an array.

        Raises:
            TraceError: If the function does what a graph cannot.
        """
        return self._find(args, kwargs)[0]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph for the arguments; inside of a function that is being traced, be a part of that one."""
        if active() is not None:
            return self._function(*args, **kwargs)
        # Most calls are with plain arrays, for which it is known what was found the last time.
        key = () if kwargs else tuple([(x.dtype, x.shape) for x in args if x.__class__ is np.ndarray])
        if len(key) == len(args):
            found = self._quick.get(key)
            if found is not None and found.is_current:
                return found.run(args)
        found, arrays = self._find(args, kwargs)
        for array in arrays:
            if isinstance(array, TensorSpec):
                raise TraceError(f"A TensorSpec has no elements to run on; call specialize with it. Received: {array!r}")
        if len(key) == len(args) and not kwargs:
            self._quick[key] = found
        return found.run(arrays)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def _find(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Specialization, list[Any]]:
        """Return the graph for arguments, and the arrays among them."""
        try:
            bound = self._parameters.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{getattr(self, '__name__', 'function')}(): {error}") from None
        bound.apply_defaults()
        arrays: list[Any] = []
        key: list[Any] = [layout(bound.arguments)]
        for path, leaf in leaves(bound.arguments):
            if is_array(leaf):
                arrays.append(leaf)
                key.append((path, leaf.dtype, leaf.shape) if path not in self._input_signature else path)
            else:
                known = repr(leaf) if isinstance(leaf, float | complex) else leaf  # -0.0 equals 0.0, and NaN not NaN
                key.append((path, type(leaf), known))
        try:
            found = self._cache.get(tuple(key))
        except TypeError:
            wrong = next(
                (path, leaf) for path, leaf in leaves(bound.arguments) if type(leaf).__hash__ is None and not is_array(leaf)
            )
            raise TraceError(f"Argument {wrong[0]} is neither an array nor hashable. Received: {wrong[1]!r}") from None
        if found is None or not found.is_current:
            with _changes:
                found = self._cache.get(tuple(key))
                if found is None or not found.is_current:
                    found = self._cache[tuple(key)] = self._trace(bound)
        return found, arrays

    def _trace(self, bound: inspect.BoundArguments) -> Specialization:
        arguments = rebuild(dict(bound.arguments), lambda path, leaf: self._input_signature.get(path, leaf))
        unknown = self._input_signature.keys() - {path for path, _ in leaves(arguments)}
        if unknown:
            raise TraceError(f"The input signature names arguments that are not there. Received: {sorted(unknown)}")
        bound.arguments.update(arguments)
        signature = ", ".join(f"{path}{_shown(leaf)}" for path, leaf in leaves(arguments))
        traced = trace_function(self._function, bound.args, bound.kwargs)
        return Specialization(getattr(self, "__name__", "function"), signature, traced, self.policy)

    def __repr__(self) -> str:
        count = len(self._cache)
        return f"<Function {getattr(self, '__name__', '')}: {count} signature{'' if count == 1 else 's'}>"


def _shown(leaf: Any) -> str:
    if not is_array(leaf):
        return f"={leaf!r}"
    dtype = leaf.dtype if isinstance(leaf, TensorSpec) else dtype_of_array(leaf.dtype)
    dims = str(leaf.shape) if isinstance(leaf, TensorSpec) else "[" + ",".join(map(str, leaf.shape)) + "]"
    return f": {dtype.short}{dims}"


def function(
    python_function: Callable[..., Any] | None = None,
    *,
    policy: Policy | None = None,
    input_signature: Mapping[str, Any] | None = None,
) -> Any:
    """Make a function on NumPy arrays run as a graph: a decorator, with or without arguments.

    It is traced at the first call with each signature: the shapes and dtypes of arrays, in whatever containers, and the values of
    everything else. Python's numbers are such values; give numbers that change as ``numpy.float32(0.1)``. Variables keep what they
    hold from one call to the next.

    Args:
        python_function: The function.
        policy: What its graphs are rewritten for. When None, that of the optimizers that differentiate in them, if
            :func:`~ampgraph.enable_mixed_precision_graph_rewrite` gave them one; else they stay as they are.
        input_signature: A :class:`TensorSpec` for arguments by name (``"x"``, ``"params/w"``), so that one graph serves all sizes
            that are None there.

    Returns:
        A :class:`Function`.

    Raises:
        TraceError: If it is given something else.

    Example:
        >>> import numpy as np
        >>> @function
        ... def double(x):
        ...     return x * 2
        >>> double(np.float32([1, 2]))
        array([2., 4.], dtype=float32)
        >>> list(double.cache)
        ['x: f32[2]']
    """
    if python_function is None:
        return lambda given: Function(given, policy, input_signature)
    return Function(python_function, policy, input_signature)
