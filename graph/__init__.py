"""The graph IR: nodes, values, types, schemas; it knows nothing of precision policy."""

from .dtypes import DType, find_dtype
from .errors import (
    AmpgraphError,
    FormatError,
    GraphError,
    KernelError,
    OpListError,
    ParseError,
    PassError,
    PolicyError,
    VerifyError,
)
from .graph import Graph, Node, Value
from .schema import OpSchema
from .types import FunctionRef, Placeholder, Shape, Tensor

__all__ = [
    "AmpgraphError",
    "DType",
    "FormatError",
    "FunctionRef",
    "Graph",
    "GraphError",
    "KernelError",
    "Node",
    "OpListError",
    "OpSchema",
    "ParseError",
    "PassError",
    "Placeholder",
    "PolicyError",
    "Shape",
    "Tensor",
    "Value",
    "VerifyError",
    "find_dtype",
]
