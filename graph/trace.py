"""Tracing: a Python function on NumPy arrays becomes a graph.

The function is run once, on symbolic arrays; what it does with them becomes nodes. Python itself is not seen: loops are unrolled,
branches are taken once, and NumPy arrays that are made on the way are constants.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .dtypes import dtype_of_array
from .errors import TraceError
from .graph import Graph, Value
from .tracing.array import SymbolicArray
from .tracing.context import Trace, Watched, active, tracing
from .tracing.operations import value_of
from .tracing.structure import as_name, leaves, rebuild
from .tracing.variable import Variable
from .types import Shape


class TensorSpec:
    """What an argument will be: its shape, where None is a size that is not known yet, its dtype, and its name in the graph.

    Raises:
        TraceError: If the shape is none.

    Example:
        >>> TensorSpec([None, 64])
        TensorSpec([?,64], float32)
    """

    __slots__ = ("dtype", "name", "shape")

    def __init__(self, shape: Any, dtype: Any = np.float32, name: str = "") -> None:
        sizes = tuple(shape) if isinstance(shape, Iterable) and not isinstance(shape, str) else (-1,)
        if any(
            not isinstance(size, str | int | np.integer | None) or (not isinstance(size, str | None) and size < 0)
            for size in sizes
        ):
            raise TraceError(f"The shape of a TensorSpec is a list of sizes, such as [None, 64]. Received: {shape!r}")
        self.shape = Shape(int(size) if isinstance(size, np.integer) else size for size in sizes)
        self.dtype = dtype_of_array(np.dtype(getattr(dtype, "numpy", dtype)))
        self.name = name

    def __repr__(self) -> str:
        return f"TensorSpec({self.shape}, {self.dtype})"


class Traced(NamedTuple):
    """A function as a graph.

    Attributes:
        graph: The graph: arrays among the arguments are its Placeholders.
        inputs: The names of the Placeholders, in the order of the arguments' arrays.
        variables: The variables that the function uses, by the names that their handles have in the graph.
        results: What the function returned, with an :class:`Output` for every array.
        float_scopes: Name scopes whose nodes stay float32 when the graph is rewritten.
        optimizers: The optimizers that take part.
        watched: The training steps in the graph, and which optimizer looks at each.
    """

    graph: Graph
    inputs: list[str]
    variables: dict[str, Variable]
    results: Any
    float_scopes: list[str]
    optimizers: list[Any]
    watched: list[Watched]


class Output:
    """Stands for an array among a function's results.

    Attributes:
        name: The name of the graph's output.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Output({self.name!r})"


def is_array(x: Any) -> bool:
    """Whether an argument is an array, which becomes an input; all others are used as they are while the function is traced."""
    return isinstance(x, np.ndarray | np.generic | TensorSpec)


def trace(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Graph:
    """Make a graph of a function.

    Args:
        function: A function on NumPy arrays, and containers of them. It is run once, on symbolic arrays.
        *args, **kwargs: What it is called with: a :class:`TensorSpec`, or an array as an example, for each array; everything
            else is used as it is.

    Returns:
        A graph of TensorFlow's ops. Its inputs are Placeholders with the arguments' names (``x``, ``params/w``), its outputs are
        called ``output``, or after what the function returns, with a number behind where the name is taken.

    Raises:
        TraceError: If the function does what a graph cannot.
        GraphError: If shapes do not fit.

    Example:
        >>> import numpy as np
        >>> def f(x):
        ...     return np.tanh(x)
        >>> print(trace(f, TensorSpec([None, 3])))
        graph f() {
          %x: f32[?,3] = tf.Placeholder<dtype=f32>() {shape=shape[?,3]}
          %Tanh: f32[?,3] = tf.Tanh<T=f32>(%x)
          %output: f32[?,3] = tf.Identity<T=f32>(%Tanh)
          return %output
        }
    """
    return trace_function(function, args, kwargs).graph


def trace_function(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Traced:
    """Make a graph of a function, as :func:`trace`, and say what it has to do with arguments, variables and results."""
    if active() is not None:
        raise TraceError("A function cannot be traced while another one is; call it as it is.")
    outermost = Trace(Graph(as_name(getattr(function, "__name__", "function"))))
    bound = inspect.signature(function).bind(*args, **kwargs)
    before: Any = np.random.get_state(legacy=False)
    with tracing(outermost):
        inputs = _add_inputs(outermost, bound)
        results = function(*bound.args, **bound.kwargs)
        if _differs(before, np.random.get_state(legacy=False)):
            raise TraceError(
                f"{getattr(function, '__name__', 'The function')} draws NumPy's random numbers while it is traced, which would be the "
                "same in every run. Use ampgraph.random, or ampgraph.nn.dropout."
            )
        results = _add_outputs(outermost, results)
    variables = {handle.name: variable for variable, handle in outermost.variables.items()}
    return Traced(
        outermost.graph, inputs, variables, results, outermost.float_scopes, list(outermost.optimizers), outermost.watched
    )


def _add_inputs(outermost: Trace, bound: inspect.BoundArguments) -> list[str]:
    """Put a symbolic array in place of each array among the arguments; return the names of their Placeholders."""
    names: list[str] = []

    def place(path: str, leaf: Any) -> Any:
        if isinstance(leaf, SymbolicArray):
            raise TraceError(f"An argument is an array or a TensorSpec. Received: {leaf!r}")
        if not is_array(leaf):
            return leaf
        spec = leaf if isinstance(leaf, TensorSpec) else TensorSpec(leaf.shape, leaf.dtype)
        node = outermost.emit("Placeholder", (), {"shape": spec.shape}, {"dtype": spec.dtype}, name=as_name(spec.name or path))
        names.append(node.name)
        return SymbolicArray(node.outputs[0], outermost)

    for name, value in bound.arguments.items():
        bound.arguments[name] = rebuild(value, place, name)
    return names


def _add_outputs(outermost: Trace, results: Any) -> Any:
    """Make every array among the results an output of the graph, computed after all variables have changed."""
    graph, effects = outermost.graph, outermost.effects()

    def output(path: str, value: Value) -> Output:
        name = graph.fresh_name(as_name(path if not path or not path[0].isdecimal() else f"output_{path}") if path else "output")
        node = graph.add("Identity", [value], name=name, controls=effects)
        node.outputs[0].shape = value.shape
        graph.outputs.append(node.outputs[0])
        graph.output_names.append(name)
        return Output(name)

    def place(path: str, leaf: Any) -> Any:
        if isinstance(leaf, SymbolicArray | Variable | np.ndarray | np.generic):
            return output(path, value_of(leaf))
        return leaf

    found = rebuild(results, place)
    if effects and not graph.outputs:
        output("done", value_of(np.array(True)))
    return found


def _differs(before: Any, after: Any) -> bool:
    """Whether random numbers were drawn between two states of a generator."""
    one, two = ({path: np.asarray(leaf).tobytes() for path, leaf in leaves(state)} for state in (before, after))
    return one != two
