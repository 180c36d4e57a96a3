"""Branches and loops whose course depends on elements: TensorFlow's If and While, with their bodies as functions."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..dtypes import DType
from ..errors import TraceError
from ..graph import Graph, Value
from ..infer.dims import Dims, Element, join
from ..types import FunctionRef
from .array import SymbolicArray
from .context import Trace, active, tracing
from .operations import common_dtype, is_symbolic, rank, value_of
from .structure import leaves, rebuild

#: How often a loop is traced until the dtypes and shapes of its variables no longer change.
_MAX_TURNS = 6


def cond(predicate: Any, if_true: Callable[..., Any], if_false: Callable[..., Any], *operands: Any) -> Any:
    """Call one of two functions, as a condition says when the graph runs.

    Args:
        predicate: A truth value, of shape ``()``; one that is known is taken at once.
        if_true, if_false: Functions that return the same containers of arrays, of the same shapes as far as later code relies on
            them. Dtypes are promoted to a common one. They may use arrays and variables from outside.
        *operands: What they are called with.

    Returns:
        What the function that is called returns.

    Raises:
        TraceError: If the condition is no single truth value, or the functions return different containers.

    Example:
        >>> import numpy as np
        >>> cond(np.bool_(True), np.negative, np.abs, np.float32(2))
        np.float32(-2.0)
    """
    _check_functions("cond", if_true, if_false)
    trace = active()
    if np.shape(predicate) if not is_symbolic(predicate) else rank(predicate):
        raise TraceError(
            f"The condition of ampgraph.cond is one truth value, as numpy.all and numpy.any return. Received: {predicate!r}"
        )
    if trace is None or not is_symbolic(predicate):
        return if_true(*operands) if predicate else if_false(*operands)
    bodies = [Trace(_function(trace, name), trace) for name in ("cond_true", "cond_false")]
    results = []
    for body, function in zip(bodies, (if_true, if_false), strict=True):
        with tracing(body):
            results.append(function(*operands))
    ends = [list(leaves(result)) for result in results]
    if [path for path, _ in ends[0]] != [path for path, _ in ends[1]]:
        raise TraceError(
            "Both functions of ampgraph.cond return arrays in the same containers. "
            f"Received: {[path for path, _ in ends[0]]} and {[path for path, _ in ends[1]]}"
        )
    pairs = [(one, two) for (_, one), (_, two) in zip(*ends, strict=True)]
    arrays = [i for i, pair in enumerate(pairs) if any(item is not None for item in pair)]
    for i in arrays:
        if None in (kinds := [None if item is None else "an array" for item in pairs[i]]):
            raise TraceError(
                f"Both functions of ampgraph.cond return an array, or both None. Received: {kinds[0]} and {kinds[1]}"
            )
    dtypes = [common_dtype(*pairs[i]) for i in arrays]
    for k, body in enumerate(bodies):
        with tracing(body):
            _finish(body, [value_of(pairs[i][k], dtype) for i, dtype in zip(arrays, dtypes, strict=True)])
    outer = _share(bodies)
    then, other = (FunctionRef(body.graph.name) for body in bodies)
    node_types = {f"Tout[{i}]": value.dtype for i, value in enumerate(bodies[0].graph.outputs) if value.dtype is not None}
    found = _emit(
        trace, "If", bodies, [value_of(predicate, bool), *outer], {"then_branch": then, "else_branch": other}, node_types
    )
    values = dict(zip(arrays, found, strict=True))
    counter = iter(range(len(pairs)))
    return rebuild(results[0], lambda path, leaf: values.get(next(counter)))


class _State(NamedTuple):
    """What is known about a loop variable."""

    dtype: DType
    dims: Dims
    content: Element | None
    weak: bool


def while_loop(condition: Callable[..., Any], body: Callable[..., Any], loop_vars: Sequence[Any]) -> Any:
    """Call a function on what it returned, as long as a condition holds when the graph runs.

    Args:
        condition: Called with the loop variables; returns whether the loop goes on.
        body: Called with the loop variables; returns their next values, as a tuple or list, or the one.
        loop_vars: Arrays, or containers of them. Their dtypes stay, but for Python's numbers, which take that of the first result.
            A size that changes is not known after the loop.

    Returns:
        The loop variables after the loop, in the container they came in.

    Raises:
        TraceError: If a variable changes its dtype or container, or there is none.

    Example:
        >>> while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, 1.5))
        (3, 12.0)
    """
    _check_functions("while_loop", condition, body)
    if not isinstance(loop_vars, tuple | list):
        raise TraceError(f"ampgraph.while_loop takes a tuple of loop variables. Received: {loop_vars!r}")
    trace = active()
    if trace is None:
        while condition(*loop_vars):
            loop_vars = _next_of(body(*loop_vars), loop_vars)
        return loop_vars
    start = [leaf for _, leaf in leaves(loop_vars)]
    if not start:
        raise TraceError("ampgraph.while_loop needs a loop variable.")
    states = [_state(trace, leaf) for leaf in start]
    before = set(trace.graph.functions)
    for _ in range(_MAX_TURNS):
        trace.drop_functions(trace.graph.functions.keys() - before)
        inner = Trace(_function(trace, "while_body"), trace)
        results = _next_of(_run(inner, body, loop_vars, states), loop_vars)
        after, values = _after(inner, results, loop_vars, states)
        if after == states:
            break
        states = after
    else:
        raise TraceError("The variables of ampgraph.while_loop change their shapes in every turn in another way.")
    with tracing(inner):
        _finish(inner, values)
    test = Trace(_function(trace, "while_cond"), trace)
    answer = _run(test, condition, loop_vars, states)
    with tracing(test):
        if value_of(answer).shape.dims != ():
            raise TraceError(f"The condition of ampgraph.while_loop returns a truth value of shape (). Received: {answer!r}")
        _finish(test, [value_of(answer, bool)])
    outer = _share([inner, test], len(states))
    inner.graph.outputs += inner.graph.inputs[len(states) :]
    inner.graph.output_names += [f"captured_{i}" for i in range(len(outer))]
    first = [
        value_of(leaf, None if state.dtype.kind == "handle" else state.dtype.numpy)
        for leaf, state in zip(start, states, strict=True)
    ]
    attributes = {"cond": FunctionRef(test.graph.name), "body": FunctionRef(inner.graph.name)}
    found = iter(_emit(trace, "While", [inner, test], [*first, *outer], attributes, {}))
    return rebuild(loop_vars, lambda path, leaf: next(found))


def _check_functions(name: str, *functions: Any) -> None:
    for function in functions:
        if not callable(function):
            raise TraceError(f"ampgraph.{name} takes functions: lambda: x, say, for one that returns x. Received: {function!r}")


def _next_of(result: Any, loop_vars: Sequence[Any]) -> Any:
    """Return what a body returned as the next loop variables."""
    found = (result,) if len(loop_vars) == 1 and not (isinstance(result, tuple | list) and len(result) == 1) else result
    if not isinstance(found, tuple | list) or len(found) != len(loop_vars):
        raise TraceError(f"The body of ampgraph.while_loop returns {len(loop_vars)} loop variables. Received: {result!r}")
    return found


def _state(trace: Trace, leaf: Any) -> _State:
    value = value_of(leaf)
    assert value.dtype is not None
    _, content = trace.fact(value)
    weak = type(leaf) in (int, float) or (isinstance(leaf, SymbolicArray) and leaf.weak)
    return _State(value.dtype, value.shape.dims, content if isinstance(content, Element) else None, weak)


def _run(inner: Trace, function: Callable[..., Any], loop_vars: Sequence[Any], states: Sequence[_State]) -> Any:
    """Trace a function of the loop variables."""
    waiting = iter(states)

    def place(path: str, leaf: Any) -> SymbolicArray:
        state = next(waiting)
        value = inner.input(f"loop_var_{path.replace('/', '_')}", state.dtype, state.dims, state.content)
        return SymbolicArray(value, inner, state.weak)

    with tracing(inner):
        return function(*rebuild(loop_vars, place))


def _after(inner: Trace, results: Any, loop_vars: Any, states: Sequence[_State]) -> tuple[list[_State], list[Value]]:
    """Return what holds for the loop variables before and after a turn, and their next values."""
    before, ends = list(leaves(loop_vars)), list(leaves(results))
    if [path for path, _ in before] != [path for path, _ in ends]:
        raise TraceError(
            "The body of ampgraph.while_loop returns the loop variables in the containers they come in. "
            f"Received: {[path for path, _ in ends]}"
        )
    found, values = [], []
    for (path, leaf), state in zip(ends, states, strict=True):
        with tracing(inner):
            new = _state(inner, leaf)
            if new.dtype is not state.dtype and not state.weak and new.weak:
                new = new._replace(dtype=state.dtype)
            if new.dtype is not state.dtype and not state.weak:
                raise TraceError(
                    f"Loop variable {path} of ampgraph.while_loop is {state.dtype}, and the body makes it {new.dtype}; "
                    "convert it with .astype()."
                )
            values.append(value_of(leaf, None if new.dtype.kind == "handle" else new.dtype.numpy))
        dims = state.dims if state.dims == new.dims else join(state.dims, new.dims)
        found.append(_State(new.dtype, dims, state.content, state.weak and new.weak))
    return found, values


def _function(trace: Trace, name: str) -> Graph:
    """Return an empty body."""
    library = trace.graph.functions
    stem, k = name, 0
    while name in library:
        k += 1
        name = f"{stem}_{k}"
    library[name] = Graph(name, library)
    return library[name]


def _finish(body: Trace, values: Sequence[Value]) -> None:
    """Make values the results of a body, computed after all variables have changed."""
    effects = body.effects()
    for i, value in enumerate(values):
        node = body.emit("Identity", [value], controls=effects)
        body.graph.outputs.append(node.outputs[0])
        body.graph.output_names.append(f"output_{i}")


def _share(bodies: Sequence[Trace], own: int = 0) -> list[Value]:
    """Give bodies the same inputs for values of the graph around, after ``own`` inputs; return these values."""
    outer = list(dict.fromkeys(value for body in bodies for value in body.captures))
    for body in bodies:
        body.graph.inputs = [*body.graph.inputs[:own], *(body.capture(value) for value in outer)]
    return outer


def _emit(
    trace: Trace,
    op_type: str,
    bodies: Sequence[Trace],
    inputs: Sequence[Value],
    attributes: dict[str, Any],
    types: dict[str, DType],
) -> list[SymbolicArray]:
    if any(body.is_stateful for body in bodies):
        node = trace.effect(op_type, inputs, attributes, types)
    else:
        node = trace.emit(f"Stateless{op_type}", inputs, attributes, types)
    return [SymbolicArray(value, trace) for value in node.outputs]
