"""Judges a converted model: a program for a Python that has onnx, and onnxruntime to run models; it needs nothing else.

Started as ``PYTHON -I judge_program.py QUESTION``. The question is JSON: ``steps``, of those below, and what they need:
``path`` of the model, ``source`` of the float32 one, ``feeds`` and ``outputs``, NPZ files. The answers are JSON lines, one for
each step, so that those before a crash count.

* ``versions``: of onnx and onnxruntime (null if missing).
* ``static``: ``checker`` and ``strict`` (shape inference), ``"ok"`` or what is wrong; ``io_kept``; bytes of both models;
  ``added_casts``, and ``weight_casts``, those of them whose operand is a float constant; ``is_special``: whether the source is
  quantized or recurrent.
* ``run``: onnxruntime loads and runs the model, default optimizations, on the CPU; ``run`` is ``"ok"``.
* ``reference``: onnx.reference runs it; ``reference`` is ``"ok"``.
"""

import json
import os
import sys
from importlib import import_module, metadata

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    question = json.loads(sys.argv[1])
    steps = {"versions": versions, "static": static, "run": run, "reference": reference}
    for step in question["steps"]:
        answers.write(json.dumps(steps[step](question)) + "\n")
        answers.flush()


def versions(question):
    return {"onnx": onnx.__version__, "onnxruntime": _version("onnxruntime")}


def _version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def static(question):
    path, source = question["path"], question["source"]
    before, after = onnx.load(source), onnx.load(path)
    casts, weight_casts = _casts(before)
    casts_after, weight_casts_after = _casts(after)
    return {
        "checker": _verdict(lambda: onnx.checker.check_model(path)),
        "strict": _verdict(lambda: onnx.shape_inference.infer_shapes(after, check_type=True, strict_mode=True)),
        "io_kept": _io(before.graph) == _io(after.graph),
        "bytes": [_bytes(source), _bytes(path)],
        "added_casts": casts_after - casts,
        "weight_casts": max(0, weight_casts_after - weight_casts),
        "is_special": any(
            node.op_type in ("LSTM", "GRU", "RNN") or "Quant" in node.op_type or node.op_type.endswith("Integer")
            for graph in _graphs(before)
            for node in graph.node
        ),
    }


def _verdict(action):
    try:
        action()
    except Exception as error:  # noqa: BLE001 - whatever it raises is the verdict
        return " ".join(str(error).split())[:300] or type(error).__name__
    return "ok"


def _io(graph):
    """Return names and types of inputs and outputs; weights that are listed as inputs are weights."""
    weights = {tensor.name for tensor in graph.initializer}
    return [
        [(value.name, value.type.tensor_type.elem_type) for value in values if value.name not in weights]
        for values in (graph.input, graph.output)
    ]


def _bytes(path):
    model = onnx.load(path, load_external_data=False)
    files = {
        entry.value
        for graph in _graphs(model)
        for tensor in graph.initializer
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return sum(os.path.getsize(name) for name in [path, *(os.path.join(os.path.dirname(path), file) for file in files)])


def _graphs(model):
    """Return the main graph, the functions, and all graphs inside of them."""
    found = [model.graph, *model.functions]
    for graph in found:
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == AttributeProto.GRAPH:
                    found.append(attribute.g)  # which the loop reaches too
                found.extend(attribute.graphs)
    return found


def _casts(model):
    """Return how many Casts there are, and how many of a float constant."""
    graphs = _graphs(model)
    constants = set()
    for graph in graphs:
        constants |= {tensor.name for tensor in getattr(graph, "initializer", ()) if tensor.data_type in _FLOATS}
        for node in graph.node:
            if node.op_type == "Constant" and any(
                a.name in ("value_float", "value_floats") or (a.name == "value" and a.t.data_type in _FLOATS)
                for a in node.attribute
            ):
                constants |= {*node.output}
    casts = [node for graph in graphs for node in graph.node if node.op_type == "Cast" and node.domain in ("", "ai.onnx")]
    return len(casts), sum(node.input[0] in constants for node in casts)


def run(question):
    runtime = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    session = runtime.InferenceSession(question["path"], options, providers=["CPUExecutionProvider"])
    types = {value.name: value.type for value in session.get_inputs()}
    feeds = {name: _fitting(array, types[name]) for name, array in _feeds(question).items() if name in types}
    _write(question, session.run(None, feeds))
    return {"run": "ok"}


def reference(question):
    evaluator = import_module("onnx.reference").ReferenceEvaluator(question["path"])
    types = dict(zip(evaluator.input_names, evaluator.input_types, strict=True))
    half = {name for name, kind in types.items() if kind.tensor_type.elem_type == TensorProto.FLOAT16}
    feeds = _feeds(question)
    feeds = {name: _fitting(feeds[name], "tensor(float16)" if name in half else "") for name in types if name in feeds}
    with np.errstate(all="ignore"):
        _write(question, evaluator.run(None, feeds))
    return {"reference": "ok"}


def _feeds(question):
    with np.load(question["feeds"], allow_pickle=False) as file:
        return {name: array.astype(object) if array.dtype.kind == "U" else array for name, array in file.items()}


def _fitting(array, kind):
    return array.astype(np.float16) if kind == "tensor(float16)" and array.dtype == np.float32 else array


def _write(question, outputs):
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    arrays = import_module("arrays")
    arrays.write_arrays(question["outputs"], arrays.flat(outputs))


if __name__ == "__main__":
    main()
