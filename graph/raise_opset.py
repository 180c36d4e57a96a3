"""Raising the version of the standard ONNX ops: newer versions allow more dtypes, such as bfloat16 convolutions from 22 on."""

from .dtypes import DType
from .errors import GraphError, PassError
from .graph import Graph, Node, complete_types
from .opset_edit import Edit
from .opset_steps import NEWEST, STEPS
from .schemas.onnx import find, latest
from .schemas.onnx_schema import OnnxSchema
from .verify import verify

#: The oldest version that can be raised.
_OLDEST = 7
#: Version of the ops -> the IR version that came with it.
_IR_VERSIONS = {7: 3, 9: 4, 10: 5, 11: 6, 12: 7, 15: 8, 19: 9, 21: 10, 23: 11, 24: 12, 25: 13, 28: 14}


def raise_opset(graph: Graph, version: int) -> None:
    """Raise a model to ``version`` of the standard ONNX ops, in place; it computes exactly what it did before.

    Bodies and model-local functions are raised with it, and the IR version as far as the ops need. Parts that are of this
    version already, or of a newer one, stay as they are. Ops of other domains are not touched. Where an attribute became an
    operand, the new constants are ``ampgraph.Initializer`` nodes. Node and value objects stay the same, save for results that
    no longer exist.

    Args:
        graph: The main graph of a model, not one of its bodies.
        version: The version wanted.

    Raises:
        VerifyError: If the graph breaks an invariant.
        PassError: If the graph is no ONNX model, the version is unknown, or a node cannot be raised; nothing is changed then.
    """
    newest = min(latest(""), NEWEST)
    parts = list({id(part): part for part in (graph, *graph.functions.values())}.values())
    if not any(part.opsets for part in parts):
        raise PassError(f"Graph {graph.name!r} is no ONNX model, so it has no version of the ONNX ops to raise.")
    if not version <= newest:
        raise PassError(f"The newest version of the ONNX ops that a model can be raised to is {newest}. Received: {version}")
    old = [part for part in parts if 0 < part.opsets.get("", 0) < version]
    for part in old:
        if part.opsets[""] < _OLDEST:
            raise PassError(
                f"Graph {part.name!r} is of version {part.opsets['']} of the ONNX ops; only {_OLDEST} and newer can be raised. "
                "Convert the model with onnx.version_converter first."
            )
    if old:
        verify(graph)
        _raise(graph.copy(), version)  # so that an error leaves the graph as it is
        _raise(graph, version)


def _raise(graph: Graph, version: int) -> None:
    wanted = [(part, part.opsets.get("", 0)) for part in graph.all_graphs()]
    wanted = [(part, old) for part, old in wanted if 0 < old < version]
    for part, _ in wanted:
        part.opsets[""] = version  # bodies share it
    for part, old in wanted:
        _raise_part(part, old, version)
    least = max(ir for since, ir in _IR_VERSIONS.items() if since <= version)
    given = graph.attributes.get("ir_version")
    graph.attributes["ir_version"] = max(given if isinstance(given, int) else 10, least)


def _raise_part(graph: Graph, old: int, version: int) -> None:
    edit = Edit(graph, old, version)
    for node in list(graph.nodes):
        if node.domain != "" or f":{node.op_type}" in graph.functions:
            continue
        edit.move_to(node)
        before = node.schema
        if before is not None:
            for since, step in STEPS.get(node.op_type, ()):
                if old < since <= version:
                    step(edit)
            if before.op_type != node.op_type:  # what replaced it has changed since, too
                for since, step in STEPS.get(node.op_type, ()):
                    if old < since <= version:
                        step(edit)
        after = find("", node.op_type, version)
        if after is not before:
            _renew(edit, node, after)
    if edit.followers:
        graph.place_after(edit.followers)


def _renew(edit: Edit, node: Node, schema: OnnxSchema | None) -> None:
    """Let a node follow the new definition of its op; the dtypes of its operands and results stay."""
    if node.schema is None:
        edit.fail(f"version {edit.old} does not define it.", "Give it the domain it belongs to.")
    if schema is None:
        edit.fail(f"version {edit.version} no longer defines it.", "Replace it.")
    results = [value.dtype for value in node.outputs]
    types: dict[str, DType] = {}
    try:
        signature = schema.signature(node.attributes, types, node.inputs, len(node.outputs))
        dtypes = [*[None if value is None else value.dtype for value in node.inputs], *results]
        for port, dtype in zip((*signature.inputs, *signature.outputs), dtypes, strict=True):
            if dtype is None or port is None:
                continue
            variable = schema.type_vars.get(port.partition("[")[0]) if isinstance(port, str) else None
            wanted = types.setdefault(port, dtype) if isinstance(port, str) else port
            if wanted is not dtype or (variable is not None and not variable.allows(dtype)):
                edit.fail(f"it no longer allows {dtype} there.", "Compute it in another dtype.")
        if len(types) < len(signature.keys):
            types = dict(complete_types(schema, types, node.attributes, node.inputs, len(node.outputs)))
    except GraphError as error:
        edit.fail(f"{error}", "Correct the node.")
    node.signature = signature
    node.types = types
