"""``python -m bench.executor.ours``: ampgraph's executor, and NumPy programs written by hand, as a process that is measured.

It serves, as ``serve.py`` says. A model is opened with its ``path`` and the ``feeds``, an NPZ file; the sides are the dtypes that it
is rewritten to, ``float32`` for none, and ``plain`` for the NumPy program that is called ``model``.
"""

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ampgraph as ag
from bench.executor.models import MODELS
from bench.executor.plain import Plain
from bench.executor.serve import serve
from bench.onnx.arrays import read_arrays


def open_side(question: dict[str, Any]) -> Callable[[], Any]:
    """Return what runs a model once."""
    feeds = read_arrays(Path(question["feeds"]))
    if question["open"] == "plain":
        program = Plain(MODELS[question["model"]])
        return lambda: program(feeds["x"])
    graph = ag.load(question["path"])
    if question["open"] != "float32":
        graph = ag.auto_mixed_precision(graph, dtype=question["open"]).graph
    compiled = ag.compile(graph)
    given = {
        name: array.astype(object) if array.dtype.kind == "U" else array
        for name, array in feeds.items()
        if name in compiled.input_names
    }
    return lambda: compiled(given)


if __name__ == "__main__":
    serve(open_side, {"python": platform.python_version()})
