"""Run graphs of TensorFlow that are written as text."""

import json
from typing import Any

import numpy as np

import ampgraph as ag

#: A feed.
X = "  %x: f32 = tf.Placeholder<dtype=f32>() {shape=shape[*]}\n"


def run(body: str, *results: str, **feeds: Any) -> list[Any]:
    """Return the results of a graph of these lines."""
    program = ag.compile(ag.parse_graph(f"graph g() {{\n{body}\n  return {', '.join(results)}\n}}"))
    return list(program(feeds).values())


def const(name: str, value: Any, dtype: str = "i32") -> str:
    """Return the line of a constant."""
    array = np.asarray(value)
    kind = f"{dtype}[{','.join(map(str, array.shape))}]"
    elements = json.dumps(array.ravel().tolist())
    return f"  %{name}: {dtype} = tf.Const<dtype={dtype}>() {{value=dense<{kind}, {elements}>}}\n"
