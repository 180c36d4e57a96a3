"""Converts one model with a peer: a program for a Python that has the peer, and needs nothing else.

Started as ``PYTHON -I peer_program.py QUESTION``. The question is JSON: ``peer``; ``versions``: true to be told them only; or
``path``, ``out``, ``dtype``, ``feeds`` (NPZ file, for peers that calibrate) and ``repeat``. The answers are JSON lines:
``versions``, then ``seconds``, a list of the times of loading, converting and saving, without imports. It stops repeating when
that has taken long.
"""

import json
import os
import sys
import time
import traceback
from importlib import import_module, metadata

_PATIENCE_SECONDS = 10
_PACKAGES = ("nvidia-modelopt", "onnx", "onnxconverter-common", "onnxruntime", "onnxruntime-gpu", "onnxslim")


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    question = json.loads(sys.argv[1])
    convert = _convert(question["peer"])
    _answer(answers, {"versions": _versions()})
    if question.get("versions"):
        return
    onnx = import_module("onnx")
    seconds = []
    while len(seconds) < question["repeat"] and sum(seconds) < _PATIENCE_SECONDS:
        start = time.perf_counter()
        try:
            onnx.save(convert(question), question["out"])
        except BaseException as error:  # noqa: BLE001 - whatever the peer raises (or exits with), the other side says it
            traceback.print_exc()
            sys.exit(f"{type(error).__name__}: {' '.join(str(error).split())}")
        seconds.append(time.perf_counter() - start)
    _answer(answers, {"seconds": seconds})


def _answer(file, content):
    file.write(json.dumps(content) + "\n")
    file.flush()


def _versions():
    """Return the versions of those packages that are here."""
    found = {distribution.name: distribution.version for distribution in metadata.distributions()}
    return {name: found[name] for name in _PACKAGES if name in found}


def _convert(peer):
    """Return the function that converts; what it needs is imported before."""
    load = import_module("onnx").load
    if peer == "onnxconverter-common":
        convert = import_module("onnxconverter_common.float16").convert_float_to_float16
        return lambda question: convert(load(question["path"]), keep_io_types=True)
    if peer == "onnxruntime":
        convert = import_module("onnxruntime.transformers.float16").convert_float_to_float16
        return lambda question: convert(load(question["path"]), keep_io_types=True)
    if peer == "onnxslim":
        slim = import_module("onnxslim").slim
        import_module("onnxconverter_common.float16")
        return lambda question: slim(question["path"], dtype="fp16")
    autocast = import_module("modelopt.onnx.autocast")
    if peer == "convert_to_f16":
        return lambda question: autocast.convert_to_f16(
            load(question["path"]), keep_io_types=True, low_precision_type=_short(question["dtype"])
        )
    feeds = "feeds" if peer == "autocast-calibrated" else None
    return lambda question: autocast.convert_to_mixed_precision(
        question["path"], low_precision_type=_short(question["dtype"]), keep_io_types=True, calibration_data=question.get(feeds)
    )


def _short(dtype):
    return {"float16": "fp16", "bfloat16": "bf16"}[dtype]


if __name__ == "__main__":
    main()
