"""``python -m bench.executor.ours``: ampgraph's executor, and NumPy programs written by hand, as a process that is measured.

It serves, as ``serve.py`` says. A model is opened with its ``path`` and the ``feeds``, an NPZ file, and rewritten to the ``dtype``, if
there is one; the side ``plain`` is the NumPy program that is called ``model``.
"""

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ampgraph as ag
from ampgraph.graph.dtypes import cast_array
from bench.executor.models import MODELS
from bench.executor.plain import Plain
from bench.executor.serve import serve
from bench.onnx.arrays import read_arrays


def open_side(question: dict[str, Any]) -> Callable[[], Any]:
    """Return what runs a model once."""
    feeds = read_arrays(Path(question["feeds"]))
    if question["open"] == "plain":
        plain = Plain(MODELS[question["model"]])
        return lambda: plain(feeds["x"])
    graph = ag.load(question["path"])
    if "dtype" in question:
        graph = ag.auto_mixed_precision(graph, dtype=question["dtype"]).graph
    program = ag.compile(graph)
    given = {value.name: _fitting(feeds[value.name], value) for value in graph.inputs if value.name in feeds}
    return lambda: program(given)


def _fitting(array: Any, value: ag.Value) -> Any:
    if value.dtype is None or array.dtype.kind != "f":
        return array.astype(object) if array.dtype.kind == "U" else array
    return cast_array(array, value.dtype)


if __name__ == "__main__":
    serve(open_side, {"python": platform.python_version()})
