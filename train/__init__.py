"""Training: functions that run as graphs, optimizers, learning-rate schedules, loss scales, the optimizer that scales the loss, and models."""

from . import layers
from .callbacks import Callback, EarlyStopping, ModelCheckpoint
from .checkpoint import load_checkpoint, save_checkpoint
from .enable import disable_mixed_precision_graph_rewrite, enable_mixed_precision_graph_rewrite
from .function import Function, Specialization
from .history import History
from .loss_scale import DynamicLossScale, FixedLossScale
from .loss_scale_optimizer import LossScaleOptimizer
from .losses import BinaryCrossentropy, CategoricalCrossentropy, SparseCategoricalCrossentropy
from .model import Model
from .model_file import load_model
from .optimizer import Optimizer, StepResult
from .optimizers import LAMB, SGD, Adagrad, Adam, AdamW, RMSprop
from .pairs import Variable
from .schedules import ConstantRate, CosineDecay, ExponentialDecay, PiecewiseConstantDecay, PolynomialDecay, Schedule, Warmup
from .sequential import Sequential

__all__ = [
    "LAMB",
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "BinaryCrossentropy",
    "Callback",
    "CategoricalCrossentropy",
    "ConstantRate",
    "CosineDecay",
    "DynamicLossScale",
    "EarlyStopping",
    "ExponentialDecay",
    "FixedLossScale",
    "Function",
    "History",
    "LossScaleOptimizer",
    "Model",
    "ModelCheckpoint",
    "Optimizer",
    "PiecewiseConstantDecay",
    "PolynomialDecay",
    "RMSprop",
    "Schedule",
    "Sequential",
    "SparseCategoricalCrossentropy",
    "Specialization",
    "StepResult",
    "Variable",
    "Warmup",
    "disable_mixed_precision_graph_rewrite",
    "enable_mixed_precision_graph_rewrite",
    "layers",
    "load_checkpoint",
    "load_model",
    "save_checkpoint",
]
