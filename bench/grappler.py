"""Times TensorFlow's own pass: a program for a Python that has TensorFlow, and needs nothing else.

Started as ``PYTHON -I grappler.py LOG`` with its standard error going to the file LOG. It reads one JSON object a line,
``{"path": GraphDef file, "fetch": [names of nodes]}``, and answers each with a line; the first line it writes, unasked,
says which TensorFlow it is and in which mode the pass runs. :class:`bench.peer.Grappler` is the other side.

The time is what TensorFlow's meta optimizer logs for the pass alone, summed over the main graph and the functions. It
includes copying the graph, and leaves out the conversion of messages around it, which ``whole_ms`` includes. Where
TensorFlow is built with CUDA the pass runs for a GPU that need not exist (mode ``cuda_fp16``), otherwise it runs in its
emulation mode for CPUs (``cpu_fp16``), the only one that needs neither CUDA kernels nor processors with bfloat16.
"""

import json
import os
import re
import sys
import time
from importlib import import_module

# A summary at the end repeats the times, without the name of the source file.
_LOGGED = re.compile(r"meta_optimizer\.cc:\d+\] auto_mixed_precision\w*: .*, time = ([\d.]+)ms")
_OPTIMIZERS = {"cuda_fp16": "auto_mixed_precision", "cpu_fp16": "auto_mixed_precision_cpu"}
_DEVICE = "/job:localhost/replica:0/task:0/device:"


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    tensorflow = import_module("tensorflow")
    mode = "cuda_fp16" if tensorflow.test.is_built_with_cuda() else "cpu_fp16"
    timer = _Timer(mode, sys.argv[1])
    _answer(answers, {"tensorflow": tensorflow.__version__, "mode": mode})
    for line in sys.stdin:
        try:
            answer = timer.time(**json.loads(line))
        except Exception as error:  # noqa: BLE001 - whatever TensorFlow raises, the other side says it
            answer = {"error": f"{type(error).__name__}: {error}"}
        _answer(answers, answer)


def _answer(file, content):
    file.write(json.dumps(content) + "\n")
    file.flush()


class _Timer:
    def __init__(self, mode, log):
        self.log = log
        self.optimizer = import_module("tensorflow.python.grappler.tf_optimizer")
        self.cluster = import_module("tensorflow.python.grappler.cluster").Cluster(devices=_devices(mode))
        self.config = import_module("tensorflow.core.protobuf.config_pb2").ConfigProto()
        self.meta_graph_class = import_module("tensorflow.core.protobuf.meta_graph_pb2").MetaGraphDef
        rewrites = self.config.graph_options.rewrite_options
        rewrites.optimizers.append(_OPTIMIZERS[mode])
        rewrites.min_graph_nodes = -1
        rewrites.meta_optimizer_iterations = 1
        rewrites.meta_optimizer_timeout_ms = -1
        rewrites.disable_tfg_optimizer = True
        self.last = None, None

    def time(self, path, fetch):
        if self.last[0] != path:
            self.last = path, self._read(path, fetch)
        seen = os.path.getsize(self.log)
        start, start_cpu = time.perf_counter(), time.process_time()
        graph = self.optimizer.OptimizeGraph(self.config, self.last[1], cluster=self.cluster)
        whole, whole_cpu = time.perf_counter() - start, time.process_time() - start_cpu
        with open(self.log, encoding="utf-8", errors="replace") as file:
            file.seek(seen)
            times = [float(found) for found in _LOGGED.findall(file.read())]
        if not times:
            raise RuntimeError("this TensorFlow did not log how long its pass took")
        nodes = [node for body in (graph, *graph.library.function) for node in _nodes(body)]
        return {
            "pass_ms": sum(times),
            "whole_ms": 1000 * whole,
            "whole_cpu_ms": 1000 * whole_cpu,
            "nodes": len(nodes),
            "casts": sum(node.op == "Cast" for node in nodes),
        }

    def _read(self, path, fetch):
        meta_graph = self.meta_graph_class()
        with open(path, "rb") as file:
            meta_graph.graph_def.ParseFromString(file.read())
        meta_graph.collection_def["train_op"].node_list.value.extend(fetch)
        return meta_graph


def _nodes(body):
    return body.node_def if hasattr(body, "node_def") else body.node


def _devices(mode):
    """Return the devices to rewrite for; the GPU is what ampgraph's target "gpu" means."""
    device_class = import_module("tensorflow.core.protobuf.device_properties_pb2").NamedDevice
    cpu = device_class(name=_DEVICE + "CPU:0", properties={"type": "CPU", "num_cores": 4, "frequency": 2000})
    if mode == "cpu_fp16":
        return [cpu]
    environment = {"architecture": "8.0", "cuda": "12050", "cudnn": "90300"}
    gpu = {"type": "GPU", "num_cores": 100, "frequency": 1000, "memory_size": 1 << 34, "environment": environment}
    return [cpu, device_class(name=_DEVICE + "GPU:0", properties=gpu)]


if __name__ == "__main__":
    main()
