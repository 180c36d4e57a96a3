"""The few ops of ampgraph's own."""

from typing import TYPE_CHECKING

from ..dtypes import DTYPES
from ..schema import REQUIRED, AttrSpec, Formal, OpSchema, TypeVar

if TYPE_CHECKING:
    from ..graph import Node

_FLOATS = ("float16", "bfloat16", "float32", "float64")

_SCHEMAS = {
    # A graph input: one node per input, so that every value has a producer.
    "Input": OpSchema("Input", "ampgraph", [], [Formal("output", var="T")], [TypeVar("T")]),
    # A constant of an ONNX model that is no node there.
    "Initializer": OpSchema(
        "Initializer", "ampgraph", [], [Formal("output", var="T")], [TypeVar("T")], {"value": AttrSpec("tensor", REQUIRED)}
    ),
    # The end of a training step. Variables, slots (those of the first variable first), accumulators (one for each variable, or
    # none) and what follows up to ``global_step`` are handles of what the node reads and changes; the attributes are those of
    # ``kernels/apply_gradients.py``.
    "ApplyGradients": OpSchema(
        "ApplyGradients",
        "ampgraph",
        [
            Formal("variables", dtype=DTYPES["resource"], number="N"),
            Formal("slots", dtype=DTYPES["resource"], number="M"),
            Formal("accumulators", dtype=DTYPES["resource"], number="A"),
            *(
                Formal(name, dtype=DTYPES["resource"])
                for name in ("loss_scale", "good_steps", "bad_steps", "calls", "global_step")
            ),
            Formal("learning_rate", dtype=DTYPES["float32"]),
            Formal("gradients", var="T", is_list=True),
        ],
        [
            Formal("applied", dtype=DTYPES["bool"]),
            Formal("next_loss_scale", dtype=DTYPES["float32"]),
            Formal("next_step", dtype=DTYPES["int64"]),
            Formal("grad_norm", dtype=DTYPES["float32"]),
        ],
        [TypeVar("T", frozenset(DTYPES[name] for name in _FLOATS), is_list=True, minimum=1)],
        {
            "N": AttrSpec("int", REQUIRED, minimum=1),
            "M": AttrSpec("int", REQUIRED),
            "A": AttrSpec("int", REQUIRED),
            "rule": AttrSpec("string", REQUIRED),
            "numbers": AttrSpec("tensor", REQUIRED),
            "weight_decay": AttrSpec("tensor", REQUIRED),
            "clip": AttrSpec("string", REQUIRED),
            "bound": AttrSpec("tensor", REQUIRED),
            "skip_nonfinite": AttrSpec("bool", REQUIRED),
            "scale_rules": AttrSpec("tensor", REQUIRED),
            "scaled": AttrSpec("bool", True),
            "accumulation_steps": AttrSpec("int", 1, minimum=1),
        },
        stateful=True,
    ),
}


def find(op_type: str) -> OpSchema | None:
    """Return the schema of one of ampgraph's own ops, or None."""
    return _SCHEMAS.get(op_type)


def is_op(node: "Node") -> bool:
    """Whether a node is an op of the model, and not a weight or an input, which are nodes in the IR only."""
    return node.domain != "ampgraph" or node.op_type not in ("Initializer", "Input")
