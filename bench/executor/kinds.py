"""What kind of model a graph is."""

from collections import Counter
from typing import Any

from ampgraph.graph import Graph, Value
from ampgraph.graph.schemas.ampgraph import is_op

#: The kinds, in the order of tables.
KINDS = ("CNN", "depthwise", "transformer", "other")
_RECURRENT = {"LSTM", "GRU", "RNN", "Loop", "Scan", "If"}


def find_kind(graph: Graph) -> str:
    """Return ``"CNN"``, ``"depthwise"`` (a CNN with half of its windows of several elements depthwise), ``"transformer"`` or ``"other"``.

    Others are recurrent, have branches, are quantized, or have few convolutions and no attention.
    """
    counts: Counter[str] = Counter()
    for part in graph.all_graphs():
        for node in part.nodes:
            if not is_op(node):
                continue
            op = node.op_type
            if op in _RECURRENT or "Quant" in op or op.endswith("Integer"):
                return "other"
            counts[op] += 1
            if op == "Conv":
                weights = constant_of(node.inputs[1])
                if weights is not None and max(weights.shape[2:], default=1) > 1:
                    counts["window"] += 1
                    counts["depthwise"] += weights.shape[1] == 1 and node.attributes.get("group", 1) > 1
            elif op in ("MatMul", "Einsum") and all(constant_of(value) is None for value in node.inputs):
                counts["product"] += 1
    convolutions = counts["Conv"]
    if counts["product"] >= 2 and counts["Softmax"] and counts["product"] + counts["MatMul"] > convolutions:
        return "transformer"
    if convolutions < 4:
        return "other"
    return "depthwise" if 2 * counts["depthwise"] >= max(counts["window"], 1) else "CNN"


def constant_of(value: Value | None) -> Any:
    """Return the array that an ONNX model stores for a value, None if there is none."""
    if value is None:
        return None
    node = value.producer
    stored: Any = node.attributes.get("default" if node.op_type == "Input" else "value")
    if node.op_type not in ("Input", "Initializer", "Constant") or not hasattr(stored, "array"):
        return None
    return stored.array()
