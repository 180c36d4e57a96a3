"""Functions that say themselves what their gradient is."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..dtypes import dtype_of_array
from ..errors import TraceError
from ..gradients.editing import finish, new_function
from ..gradients.functions import CUSTOM
from ..graph import Value
from ..types import FunctionRef, Shape
from ..wording import plural
from .array import SymbolicArray
from .context import Trace, active, tracing
from .operations import is_symbolic, symbolic, value_of
from .structure import as_name, leaves, rebuild
from .variable import Variable

#: What counts as an array among results.
_ARRAYS = (SymbolicArray, np.ndarray, np.generic, float)


def custom_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function say what its gradient is: a decorator.

    What the function does is not differentiated: :func:`~ampgraph.gradients` takes what ``grad`` computes. Differentiated once more,
    it is that which is differentiated. Outside of a traced function it is called as it is.

    Args:
        function: Returns ``y, grad``. ``y`` is an array, or a tuple, list or dict of them. ``grad`` takes the gradient of ``y``, or
            one for each entry of a tuple or list; None for what is no array of floats. It returns the gradient by the argument, or
            for several arguments a tuple of them: of its shape and dtype, or None where there is none. It may use arrays of the
            function, but neither variables nor random numbers.

    Returns:
        A function that returns ``y``. Arguments given by name, and arrays that the function uses from outside, count as constants.

    Raises:
        TraceError: When it is called: if what the function or ``grad`` returns is something else, or the function reads a
            variable of floats that is not among its arguments.

    Example:
        >>> import numpy as np
        >>> from ampgraph.graph.trace import TensorSpec, trace
        >>> from ampgraph.graph.tracing.gradient import gradients
        >>> @custom_gradient
        ... def round_straight_through(x):
        ...     return np.round(x), lambda dy: dy
        >>> def f(x):
        ...     return gradients(round_straight_through(x), x)
        >>> trace(f, TensorSpec([3])).outputs[0].shape
        Shape((3,))
        >>> round_straight_through(np.float32(1.6))
        np.float32(2.0)
    """
    name = getattr(function, "__name__", "function")

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        trace = active()
        if trace is None:
            return _pair(name, function(*args, **kwargs))[0]
        return _call(trace, name, function, args, kwargs)

    return call


def _pair(name: str, returned: Any) -> tuple[Any, Callable[..., Any]]:
    if not isinstance(returned, tuple) or len(returned) != 2 or not callable(returned[1]):
        raise TraceError(f"{name} has a gradient of its own, so it returns a pair: y, grad. Received: {returned!r}")
    return returned


def _call(trace: Trace, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Call the function, and put an IdentityN that knows the gradient after its results."""
    given = {leaf for _, leaf in leaves(args) if isinstance(leaf, Variable)}
    args = rebuild(args, lambda path, leaf: symbolic(leaf) if isinstance(leaf, Variable) else leaf)
    with trace.fresh_reads() as reads:
        y, grad = _pair(name, function(*args, **kwargs))
    for variable in reads - given:
        if dtype_of_array(variable.dtype).kind == "float":
            raise TraceError(
                f"{name} has a gradient of its own and reads variable {variable.name!r}, which would get none. Give it to {name} as "
                "an argument, or read it outside, with ampgraph.stop_gradient."
            )
    results = {path: value_of(leaf) for path, leaf in leaves(y) if isinstance(leaf, _ARRAYS)}
    results = {path: value for path, value in results.items() if _is_float(value)}
    body = Trace(new_function(trace.graph, f"{as_name(name)}_grad"), trace)
    seeds = {path: _input(body, "grad", value) for path, value in results.items()}
    dys = rebuild(y, lambda path, leaf: SymbolicArray(seeds[path], body) if path in seeds else None)
    with tracing(body):
        returned = grad(*dys) if isinstance(dys, tuple | list) else grad(dys)
        found = _gradients(name, args, returned)
    if body.is_stateful:
        raise TraceError(
            f"The gradient of {name} reads or changes variables, or draws random numbers. Do that in {name}, and let the gradient use "
            "what comes of it."
        )
    operands = [*results.values(), *(value_of(argument) for argument, _ in found)]
    formals = [
        _input(body, "operand", value) if value in operands[:i] else body.capture(value) for i, value in enumerate(operands)
    ]
    others = [value for value in body.captures if value not in operands]
    body.graph.inputs = [*formals, *(body.captures[value] for value in others), *seeds.values()]
    finish(body.graph, [gradient for _, gradient in found])
    node = trace.emit("IdentityN", [*operands, *others], {CUSTOM: FunctionRef(body.graph.name)})
    outputs = dict(zip(results, node.outputs, strict=False))
    return rebuild(y, lambda path, leaf: SymbolicArray(outputs[path], trace) if path in outputs else leaf)


def _is_float(value: Value) -> bool:
    return value.dtype is not None and value.dtype.kind == "float"


def _input(body: Trace, name: str, like: Value) -> Value:
    """Add an input that is as a value of the graph around."""
    assert like.dtype is not None
    return body.input(name, like.dtype, like.shape.dims)


def _gradients(name: str, args: tuple[Any, ...], returned: Any) -> list[tuple[SymbolicArray, Value]]:
    """Return the arrays among the arguments that have a gradient, and their gradients.

    Raises:
        TraceError: If these do not fit.
    """
    several = len(args) != 1 or (isinstance(returned, tuple | list) and not isinstance(args[0], tuple | list))
    gradients = returned if several else (returned,)
    if not isinstance(gradients, tuple | list) or len(gradients) != len(args):
        raise TraceError(
            f"The gradient of {name} returns {plural(len(args), 'array')}, one for each argument. Received: {returned!r}"
        )
    found = []
    for i, (argument, gradient) in enumerate(zip(args, gradients, strict=True)):
        ends = list(leaves(argument))
        given = [(path, None) for path, _ in ends] if gradient is None else list(leaves(gradient))
        if [path for path, _ in ends] != [path for path, _ in given]:
            raise TraceError(
                f"The gradient of {name} by argument {i} has the containers of that argument. Received: {gradient!r}"
            )
        for (_, leaf), (path, slope) in zip(ends, given, strict=True):
            if slope is not None and isinstance(leaf, SymbolicArray) and _is_float(leaf.value):
                found.append((leaf, _fitting(f"{name} by argument {i}" + (f" at {path}" if path else ""), leaf, slope)))
    return found


def _fitting(what: str, argument: SymbolicArray, slope: Any) -> Value:
    """Return the value of a gradient, which has the shape and dtype of what it is by."""
    value = value_of(slope, None if is_symbolic(slope) else argument.dtype)
    dims, wanted = value.shape.dims, argument.value.shape.dims
    if value.dtype is not argument.value.dtype:
        raise TraceError(f"The gradient of {what} is {argument.value.dtype}, as the argument is. Received: {value.dtype}")
    if dims is not None and wanted is not None and not _may_be_equal(dims, wanted):
        raise TraceError(f"The gradient of {what} has the shape of the argument, {Shape(wanted)}. Received: {Shape(dims)}")
    return value


def _may_be_equal(dims: Sequence[Any], wanted: Sequence[Any]) -> bool:
    return len(dims) == len(wanted) and all(
        a == b or not (isinstance(a, int) and isinstance(b, int)) for a, b in zip(dims, wanted, strict=True)
    )
