"""Training: functions that run as graphs, optimizers, learning-rate schedules, loss scales, and the optimizer that scales the loss."""

from .checkpoint import load_checkpoint, save_checkpoint
from .enable import disable_mixed_precision_graph_rewrite, enable_mixed_precision_graph_rewrite
from .function import Function, Specialization
from .loss_scale import DynamicLossScale, FixedLossScale
from .loss_scale_optimizer import LossScaleOptimizer
from .optimizers import LAMB, SGD, Adagrad, Adam, AdamW, Optimizer, RMSprop, StepResult, Variable
from .schedules import ConstantRate, CosineDecay, ExponentialDecay, PiecewiseConstantDecay, PolynomialDecay, Schedule, Warmup

__all__ = [
    "LAMB",
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "ConstantRate",
    "CosineDecay",
    "DynamicLossScale",
    "ExponentialDecay",
    "FixedLossScale",
    "Function",
    "LossScaleOptimizer",
    "Optimizer",
    "PiecewiseConstantDecay",
    "PolynomialDecay",
    "RMSprop",
    "Schedule",
    "Specialization",
    "StepResult",
    "Variable",
    "Warmup",
    "disable_mixed_precision_graph_rewrite",
    "enable_mixed_precision_graph_rewrite",
    "load_checkpoint",
    "save_checkpoint",
]
