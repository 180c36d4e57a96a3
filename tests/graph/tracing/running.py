"""Functions as graphs, beside the same functions on NumPy arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np

import ampgraph as ag
from ampgraph.graph.trace import trace_function
from ampgraph.graph.tracing.structure import leaves


def run_graph(function: Callable[..., Any], arrays: tuple[Any, ...], specs: tuple[Any, ...] | None = None) -> list[Any]:
    """Trace, verify and run a function; return the arrays of its results, in order."""
    traced = trace_function(function, arrays if specs is None else specs, {})
    ag.verify(traced.graph)
    outputs = ag.compile(traced.graph)(dict(zip(traced.inputs, arrays, strict=True)))
    for name in traced.graph.output_names:
        declared = traced.graph.value(name)
        assert declared.dtype is not None
        assert declared.dtype.numpy == outputs[name].dtype
        assert declared.shape.dims is not None
        assert all(dim in (None, size) for dim, size in zip(declared.shape.dims, outputs[name].shape, strict=True))
    return [outputs[leaf.name] for _, leaf in leaves(traced.results)]


def check(function: Callable[..., Any], *arrays: Any, rtol: float = 1e-5, atol: float = 1e-6, open_sizes: bool = True) -> None:
    """Compare a function as a graph with the same function in NumPy: dtypes, shapes and numbers.

    Args:
        function: The function.
        *arrays: What it is called with.
        rtol, atol: How far numbers may differ: NumPy and the executor add in different orders.
        open_sizes: Whether to trace it a second time without knowing the first size of each array.
    """
    with np.errstate(all="ignore"):
        expected = [np.asarray(leaf) for _, leaf in leaves(function(*arrays))]
    runs = [run_graph(function, arrays)]
    if open_sizes:
        specs = tuple(ag.TensorSpec((None, *np.shape(x)[1:]) if np.ndim(x) else (), np.asarray(x).dtype) for x in arrays)
        runs.append(run_graph(function, arrays, specs))
    for results in runs:
        assert len(results) == len(expected)
        for result, wanted in zip(results, expected, strict=True):
            assert result.dtype == wanted.dtype
            assert result.shape == wanted.shape
            np.testing.assert_allclose(result, wanted, rtol=rtol, atol=atol, equal_nan=True)
