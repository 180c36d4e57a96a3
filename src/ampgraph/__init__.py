"""Automatic mixed precision for dataflow graphs.

::

    import ampgraph as ag

    graph = ag.load("model.pb")
    result = ag.auto_mixed_precision(graph, dtype="float16")
    print(result.report)
    ag.save(result.graph, "model.fp16.pb")

The names below are looked up at first use, so that ``import ampgraph`` costs next to nothing. The subpackages are
:mod:`ampgraph.graph` (graphs, their text form and files), :mod:`ampgraph.lists` (which ops may become float16),
:mod:`ampgraph.rewrite` (the rewrite itself), :mod:`ampgraph.kernels` (running graphs) and :mod:`ampgraph.train` (functions that run as
graphs, optimizers and loss scales, layers and models); :mod:`ampgraph.backend` runs ONNX's own tests.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ampgraph import train as train
    from ampgraph.calibration.loop import calibrate as calibrate
    from ampgraph.calibration.result import CalibrationResult as CalibrationResult
    from ampgraph.explaining import explain as explain
    from ampgraph.graph import nn as nn
    from ampgraph.graph import random as random
    from ampgraph.graph.diff import diff as diff
    from ampgraph.graph.dtypes import DType as DType
    from ampgraph.graph.dtypes import find_dtype as find_dtype
    from ampgraph.graph.errors import AmpgraphError as AmpgraphError
    from ampgraph.graph.errors import FormatError as FormatError
    from ampgraph.graph.errors import GraphError as GraphError
    from ampgraph.graph.errors import KernelError as KernelError
    from ampgraph.graph.errors import OpListError as OpListError
    from ampgraph.graph.errors import ParseError as ParseError
    from ampgraph.graph.errors import PassError as PassError
    from ampgraph.graph.errors import PolicyError as PolicyError
    from ampgraph.graph.errors import TraceError as TraceError
    from ampgraph.graph.errors import TrainingError as TrainingError
    from ampgraph.graph.errors import VerifyError as VerifyError
    from ampgraph.graph.formats.files import load as load
    from ampgraph.graph.graph import Graph as Graph
    from ampgraph.graph.graph import Node as Node
    from ampgraph.graph.graph import Value as Value
    from ampgraph.graph.text import parse_graph as parse_graph
    from ampgraph.graph.trace import TensorSpec as TensorSpec
    from ampgraph.graph.trace import trace as trace
    from ampgraph.graph.tracing.context import name_scope as name_scope
    from ampgraph.graph.tracing.control import cond as cond
    from ampgraph.graph.tracing.control import while_loop as while_loop
    from ampgraph.graph.tracing.gradient import gradients as gradients
    from ampgraph.graph.tracing.gradient import stop_gradient as stop_gradient
    from ampgraph.graph.tracing.own_gradient import custom_gradient as custom_gradient
    from ampgraph.graph.tracing.variable import Variable as Variable
    from ampgraph.graph.types import Shape as Shape
    from ampgraph.graph.types import Tensor as Tensor
    from ampgraph.graph.verify import verify as verify
    from ampgraph.kernels.compare import compare as compare
    from ampgraph.kernels.measure import measure as measure
    from ampgraph.kernels.program import Program as Program
    from ampgraph.kernels.program import compile as compile
    from ampgraph.lists import OpLists as OpLists
    from ampgraph.rewrite import Advice as Advice
    from ampgraph.rewrite import Policy as Policy
    from ampgraph.rewrite import RewriteReport as RewriteReport
    from ampgraph.rewrite import RewriteResult as RewriteResult
    from ampgraph.rewrite import Target as Target
    from ampgraph.rewrite import advise as advise
    from ampgraph.rewrite import auto_mixed_precision as auto_mixed_precision
    from ampgraph.saving import save as save
    from ampgraph.train import DynamicLossScale as DynamicLossScale
    from ampgraph.train import FixedLossScale as FixedLossScale
    from ampgraph.train import LossScaleOptimizer as LossScaleOptimizer
    from ampgraph.train import disable_mixed_precision_graph_rewrite as disable_mixed_precision_graph_rewrite
    from ampgraph.train import enable_mixed_precision_graph_rewrite as enable_mixed_precision_graph_rewrite
    from ampgraph.train import layers as layers
    from ampgraph.train.function import Function as Function
    from ampgraph.train.function import function as function
    from ampgraph.train.model import Model as Model
    from ampgraph.train.model_file import load_model as load_model
    from ampgraph.train.sequential import Sequential as Sequential

__version__ = "0.1.0"

# Where each public name is defined; the imports above say the same to type checkers.
_NAMES = {
    "Advice": "ampgraph.rewrite",
    "AmpgraphError": "ampgraph.graph.errors",
    "CalibrationResult": "ampgraph.calibration.result",
    "DType": "ampgraph.graph.dtypes",
    "DynamicLossScale": "ampgraph.train",
    "FixedLossScale": "ampgraph.train",
    "FormatError": "ampgraph.graph.errors",
    "Function": "ampgraph.train.function",
    "Graph": "ampgraph.graph.graph",
    "GraphError": "ampgraph.graph.errors",
    "KernelError": "ampgraph.graph.errors",
    "LossScaleOptimizer": "ampgraph.train",
    "Model": "ampgraph.train.model",
    "Node": "ampgraph.graph.graph",
    "OpListError": "ampgraph.graph.errors",
    "OpLists": "ampgraph.lists",
    "ParseError": "ampgraph.graph.errors",
    "PassError": "ampgraph.graph.errors",
    "Policy": "ampgraph.rewrite",
    "PolicyError": "ampgraph.graph.errors",
    "Program": "ampgraph.kernels.program",
    "RewriteReport": "ampgraph.rewrite",
    "RewriteResult": "ampgraph.rewrite",
    "Sequential": "ampgraph.train.sequential",
    "Shape": "ampgraph.graph.types",
    "Target": "ampgraph.rewrite",
    "Tensor": "ampgraph.graph.types",
    "TensorSpec": "ampgraph.graph.trace",
    "TraceError": "ampgraph.graph.errors",
    "TrainingError": "ampgraph.graph.errors",
    "Value": "ampgraph.graph.graph",
    "Variable": "ampgraph.graph.tracing.variable",
    "VerifyError": "ampgraph.graph.errors",
    "advise": "ampgraph.rewrite",
    "auto_mixed_precision": "ampgraph.rewrite",
    "calibrate": "ampgraph.calibration.loop",
    "compare": "ampgraph.kernels.compare",
    "compile": "ampgraph.kernels.program",
    "cond": "ampgraph.graph.tracing.control",
    "custom_gradient": "ampgraph.graph.tracing.own_gradient",
    "diff": "ampgraph.graph.diff",
    "disable_mixed_precision_graph_rewrite": "ampgraph.train",
    "enable_mixed_precision_graph_rewrite": "ampgraph.train",
    "explain": "ampgraph.explaining",
    "find_dtype": "ampgraph.graph.dtypes",
    "function": "ampgraph.train.function",
    "gradients": "ampgraph.graph.tracing.gradient",
    "layers": "ampgraph.train",
    "load": "ampgraph.graph.formats.files",
    "load_model": "ampgraph.train.model_file",
    "measure": "ampgraph.kernels.measure",
    "name_scope": "ampgraph.graph.tracing.context",
    "nn": "ampgraph.graph",
    "parse_graph": "ampgraph.graph.text",
    "random": "ampgraph.graph",
    "save": "ampgraph.saving",
    "stop_gradient": "ampgraph.graph.tracing.gradient",
    "trace": "ampgraph.graph.trace",
    "train": "ampgraph",
    "verify": "ampgraph.graph.verify",
    "while_loop": "ampgraph.graph.tracing.control",
}

# Those of them that are modules.
_MODULES = ("layers", "nn", "random", "train")

__all__ = ["__version__", *_NAMES]  # noqa: PLE0604  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    try:
        module = _NAMES[name]
    except KeyError:
        raise AttributeError(f"module 'ampgraph' has no attribute {name!r}") from None
    value = import_module(f"{module}.{name}") if name in _MODULES else getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
