"""The mixed-precision rewrite: decide, then apply."""

from .advise import Advice, NodeAdvice, advise
from .amp import RewriteResult, auto_mixed_precision, convert
from .explain import Explanation
from .policy import Policy
from .report import RewriteReport
from .target import Device, Target

__all__ = [
    "Advice",
    "Device",
    "Explanation",
    "NodeAdvice",
    "Policy",
    "RewriteReport",
    "RewriteResult",
    "Target",
    "advise",
    "auto_mixed_precision",
    "convert",
]
