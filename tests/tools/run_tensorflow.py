"""Runs training graphs in TensorFlow, and its pass on them: a program for a Python that has TensorFlow, and needs nothing else.

Started as ``PYTHON -I run_tensorflow.py FOLDER``. The folder holds ``jobs.json``, a list of jobs:

- ``{"id", "graph", "feeds", "fetches"}`` runs ``init``, then a step for each row of ``feeds``, an ``.npz`` with arrays called
  ``<step>/<placeholder>``; what is fetched comes back in ``<id>.npz`` as ``<step>/<fetch>``;
- the same with ``"mode"`` runs auto_mixed_precision before, and the graph that it makes comes back in ``<id>.pb``.

``answers.json`` says for each job by its id what went wrong when its graph ran, or an empty text. Under ``tensorflow`` stands the version,
under ``cuda`` whether it is built with CUDA.
"""

import json
import os
import re
import sys
from importlib import import_module
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

_OPTIMIZERS = {"cuda_fp16": "auto_mixed_precision", "cpu_fp16": "auto_mixed_precision_cpu"}
_DEVICE = "/job:localhost/replica:0/task:0/device:"


def main():
    folder = Path(sys.argv[1])
    tf = import_module("tensorflow")
    answers = {"tensorflow": tf.__version__, "cuda": tf.test.is_built_with_cuda()}
    for job in json.loads((folder / "jobs.json").read_text()):
        try:
            graph = tf.compat.v1.GraphDef()
            graph.ParseFromString((folder / job["graph"]).read_bytes())
            if "mode" in job:
                graph = _rewrite(graph, job["fetches"], job["mode"])
                (folder / f"{job['id']}.pb").write_bytes(graph.SerializeToString())
            _run(tf, folder, graph, job)
            answers[job["id"]] = ""
        except Exception as error:  # noqa: BLE001 - whatever TensorFlow raises, the other side says it
            answers[job["id"]] = _shortened(error)
    (folder / "answers.json").write_text(json.dumps(answers))


def _shortened(error):
    text = str(error)
    missing = re.search(r"No OpKernel was registered to support Op '(\w+)'|Could not find device for node: .*?= (\w+)\[", text)
    if missing:
        return f"no kernel for {missing[1] or missing[2]}"
    return f"{type(error).__name__}: {text[:400]}"


def _run(tf, folder, graph, job):
    numpy = import_module("numpy")
    steps = {}
    for key, array in numpy.load(folder / job["feeds"]).items():
        step, _, name = key.partition("/")
        steps.setdefault(int(step), {})[f"{name}:0"] = array
    options = import_module("tensorflow.core.protobuf.config_pb2")
    config = options.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1, device_count={"GPU": 0})
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = options.OptimizerOptions.L0
    results = {}
    with tf.Graph().as_default() as whole:
        tf.graph_util.import_graph_def(graph, name="")
        with tf.compat.v1.Session(graph=whole, config=config) as session:
            session.run("init")
            for step in sorted(steps):
                values = session.run([f"{name}:0" for name in job["fetches"]], steps[step])
                results.update((f"{step}/{name}", value) for name, value in zip(job["fetches"], values, strict=True))
    numpy.savez(folder / f"{job['id']}.npz", **results)


def _rewrite(graph, fetches, mode):
    meta_graph = import_module("tensorflow.core.protobuf.meta_graph_pb2").MetaGraphDef()
    meta_graph.graph_def.CopyFrom(graph)
    meta_graph.collection_def["train_op"].node_list.value.extend([*fetches, "init"])
    config = import_module("tensorflow.core.protobuf.config_pb2").ConfigProto()
    rewrites = config.graph_options.rewrite_options
    rewrites.optimizers.append(_OPTIMIZERS[mode])
    rewrites.min_graph_nodes = -1
    rewrites.meta_optimizer_iterations = 1
    rewrites.meta_optimizer_timeout_ms = -1
    rewrites.fail_on_optimizer_errors = True
    rewrites.disable_tfg_optimizer = True
    cluster = import_module("tensorflow.python.grappler.cluster").Cluster(devices=_devices(mode))
    return import_module("tensorflow.python.grappler.tf_optimizer").OptimizeGraph(config, meta_graph, cluster=cluster)


def _devices(mode):
    """Return the devices to rewrite for, as TensorFlow's messages; the GPU need not exist, and is what ampgraph's "gpu" means."""
    device_class = import_module("tensorflow.core.protobuf.device_properties_pb2").NamedDevice
    cpu = device_class(name=_DEVICE + "CPU:0", properties={"type": "CPU", "num_cores": 4, "frequency": 2000})
    if mode == "cpu_fp16":
        return [cpu]
    environment = {"architecture": "8.0", "cuda": "12050", "cudnn": "90300"}
    gpu = {"type": "GPU", "num_cores": 100, "frequency": 1000, "memory_size": 1 << 34, "environment": environment}
    return [cpu, device_class(name=_DEVICE + "GPU:0", properties=gpu)]


if __name__ == "__main__":
    main()
