"""The peers of ampgraph's executor: a program for a Python that has onnx and onnxruntime, and needs nothing else.

Started as ``PYTHON -I peer_program.py``; it serves, as ``serve.py`` says. A model is opened with its ``path``, the ``feeds``, an
NPZ file, and the number of ``threads``; the sides are ``onnxruntime`` and ``reference``, the standard's own evaluator.
"""

import os
import sys
from importlib import import_module, metadata

import numpy as np


def main():
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    versions = {}
    for name in ("onnx", "onnxruntime"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    import_module("serve").serve(open_side, versions)


def open_side(question):
    with np.load(question["feeds"], allow_pickle=False) as file:
        feeds = {name: array.astype(object) if array.dtype.kind == "U" else array for name, array in file.items()}
    if question["open"] == "reference":
        evaluator = import_module("onnx.reference").ReferenceEvaluator(question["path"])
        known = set(evaluator.input_names)
    else:
        runtime = import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = question["threads"]
        options.inter_op_num_threads = 1
        evaluator = runtime.InferenceSession(question["path"], options, providers=["CPUExecutionProvider"])
        known = {value.name for value in evaluator.get_inputs()}
    feeds = {name: array for name, array in feeds.items() if name in known}

    def run():
        with np.errstate(all="ignore"):
            evaluator.run(None, feeds)

    return run


if __name__ == "__main__":
    main()
