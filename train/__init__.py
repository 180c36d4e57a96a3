"""Training: functions that are traced, rewritten and run."""

from .function import Function, Specialization, function

__all__ = ["Function", "Specialization", "function"]
