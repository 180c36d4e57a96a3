"""The mixed-precision rewrite: decide, then apply."""

from .amp import RewriteResult, auto_mixed_precision, convert
from .explain import Explanation
from .policy import Policy
from .report import RewriteReport
from .target import Device, Target

__all__ = [
    "Device",
    "Explanation",
    "Policy",
    "RewriteReport",
    "RewriteResult",
    "Target",
    "auto_mixed_precision",
    "convert",
]
