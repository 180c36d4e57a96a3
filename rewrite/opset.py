"""The version of the standard that a low dtype needs: bfloat16 convolutions, for example, exist from opset 22 on."""

import contextlib

from ..graph.dtypes import DType, float32
from ..graph.errors import GraphError, PassError
from ..graph.formats.onnx_shapes import correct_outputs
from ..graph.graph import Graph
from ..graph.opset_steps import NEWEST
from ..graph.raise_opset import raise_opset
from ..graph.schemas.onnx import find, latest
from ..lists import Color, OpLists


def raise_as_needed(model: Graph, low: DType, lists: OpLists) -> str:
    """Raise the opset of a model, in place, as far as its AllowList ops need it for the low dtype, and no further.

    Returns:
        What was done, or why it could not be, a sentence; empty if there was no need.
    """
    given = model.opsets.get("", 0)
    newest = min(latest(""), NEWEST)
    wanted, reason = given, ""
    for op in {
        node.op_type
        for part in model.all_graphs()
        for node in part.nodes
        if not node.domain and lists.list_of(node.op_type) is Color.ALLOW and float32 in node.types.values()
    }:
        version = next((v for v in range(given, newest + 1) if _allows(op, v, low)), given)
        wanted, reason = max((wanted, reason), (version, op))
    if wanted == given:
        return ""
    try:
        raise_opset(model, wanted)
        with contextlib.suppress(GraphError):
            correct_outputs(model)
    except PassError as error:
        return f"{reason} takes {low} only from opset {wanted} on, and the model cannot be raised to it: {error}"
    return f"the opset was raised from {given} to {wanted}, because {reason} takes {low} only from there on"


def _allows(op: str, version: int, low: DType) -> bool:
    schema = find("", op, version)
    if schema is None or not schema.inputs:
        return False
    var = schema.inputs[0].var
    return var is not None and schema.type_vars[var].allows(low)
