"""Gradients of what a traced function has computed so far."""

from typing import Any

from ..gradients import gradients as gradients_of_values
from ..graph import Value
from .array import SymbolicArray
from .context import Trace, current
from .operations import apply, value_of
from .structure import leaves, rebuild
from .variable import Variable


def gradients(ys: Any, xs: Any, grad_ys: Any = None, stop_gradients: Any = ()) -> Any:
    """Compute the gradient of the sum of ``ys`` with respect to each of ``xs``.

    Inside of a function that is traced, nodes for it are added to its graph. Values of a graph that is not being traced are taken
    too: see :func:`ampgraph.graph.gradients.gradients`, where also stands what has no gradient.

    Args:
        ys: A symbolic array of floats, or several.
        xs: A symbolic array or a variable, or containers of them. The gradient of a variable adds up those of all its reads.
        grad_ys: For each of ``ys`` the gradient of what is finally differentiated, of its shape and dtype; ones where it is None.
        stop_gradients: Arrays that count as constants.

    Returns:
        The containers of ``xs`` with an array of the same shape and dtype for each, or None where no ``y`` depends on it; a list
        of one for one array.

    Raises:
        GraphError: If an op in between has no gradient.
        TraceError: If no function is being traced.

    Example:
        >>> import numpy as np
        >>> from ampgraph.graph.trace import TensorSpec, trace
        >>> def slope(x):
        ...     return gradients(np.tanh(x), x)
        >>> trace(slope, TensorSpec([3])).outputs[0].shape
        Shape((3,))
    """
    everything = [leaf for _, leaf in leaves([ys, xs, grad_ys, stop_gradients]) if leaf is not None]
    if all(isinstance(leaf, Value) for leaf in everything):
        return gradients_of_values(ys, xs, grad_ys, stop_gradients)
    trace = current()
    wanted = [_value(trace, leaf) for _, leaf in leaves(xs)]
    given = [None if leaf is None else value_of(leaf) for _, leaf in leaves(grad_ys)] if grad_ys is not None else None
    stops = [_value(trace, leaf) for _, leaf in leaves(stop_gradients)]
    found = iter(gradients_of_values([value_of(leaf) for _, leaf in leaves(ys)], wanted, given, stops))

    def place(path: str, leaf: Any) -> Any:
        value = next(found)
        return None if value is None else trace.wrap(value)

    return rebuild([xs] if isinstance(xs, SymbolicArray | Variable) else xs, place)


def _value(trace: Trace, x: Any) -> Value:
    """Return the value of an array, or the handle of a variable."""
    return trace.handle(x) if isinstance(x, Variable) else value_of(x)


def stop_gradient(x: Any) -> Any:
    """Return an array that counts as a constant for :func:`gradients`."""
    return apply("StopGradient", x)
