"""``python -m bench.onnx.honest QUESTION``: run an ONNX model with every operation rounded, and count its FLOPs by dtype.

The question is JSON: ``path`` of the model, ``feeds`` and ``outputs``, NPZ files; ``round``, if there, is the dtype that only
operands and results of heavy ops are rounded to. The answer has ``flops`` by dtype, and ``seconds`` of the run.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import ampgraph as ag
from ampgraph.graph.dtypes import cast_array
from bench.onnx.arrays import flat, read_arrays, write_arrays
from bench.onnx.floor import round_heavy
from bench.onnx.flops import FlopCounter


def main(text: str) -> dict[str, Any]:
    """Answer a question."""
    question = json.loads(text)
    graph = ag.load(question["path"])
    if question.get("round"):
        round_heavy(graph, ag.find_dtype(question["round"]))
    given = read_arrays(Path(question["feeds"]))
    feeds = {value.name: _fitting(given[value.name], value) for value in graph.inputs if value.name in given}
    counter = FlopCounter(graph, feeds)
    program = ag.compile(graph)
    start = time.perf_counter()
    outputs = program(feeds, on_value=counter.see)
    seconds = time.perf_counter() - start
    write_arrays(Path(question["outputs"]), flat(list(outputs.values())))
    return {"flops": dict(counter.by_dtype), "seconds": seconds}


def _fitting(array: Any, value: ag.Value) -> Any:
    if value.dtype is None or array.dtype.kind != "f":
        return array.astype(object) if array.dtype.kind == "U" else array
    return cast_array(array, value.dtype)


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
