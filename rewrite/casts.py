"""Applying a painting: types are set, and a Cast stands wherever an edge changes color."""

import dataclasses
import itertools
from collections.abc import Mapping

import numpy as np

from ..graph.dtypes import DType, float32
from ..graph.errors import PassError
from ..graph.graph import Node, Value
from .casters import OnnxCaster, TensorFlowCaster, bound_of
from .constants import clamped, replace_tensor, store_low, tensor_of
from .painting import Painting


@dataclasses.dataclass
class Applied:
    """What applying a painting did to one graph.

    Attributes:
        changed: Nodes of the graph with at least one type changed.
        casts: The casts that were added.
        stored: Constants (ONNX) that are now stored in the low dtype, those added for it included.
        clamped: Constants (ONNX) whose elements were clamped to what the low dtype can hold.
    """

    changed: list[Node] = dataclasses.field(default_factory=list)
    casts: list[Node] = dataclasses.field(default_factory=list)
    stored: list[Node] = dataclasses.field(default_factory=list)
    clamped: list[Node] = dataclasses.field(default_factory=list)


def _is_left_out(value: Value | None) -> bool:
    """Whether a value is an input of a function that no call gives."""
    return value is not None and value.dtype is None and value.producer.op_type == "Input"


def apply(painting: Painting, target: DType) -> Applied:
    """Make the painted vertices ``target`` and put casts between them and the others. Edits the painted graph.

    Args:
        painting: The decisions; its graph must not have changed since.
        target: The low dtype.

    Raises:
        PassError: If a painted type is fixed by the op's definition.
    """
    typegraph = painting.typegraph
    changed = _set_types(painting, target)
    low = painting.allowed()
    sources, targets = typegraph.sources, typegraph.targets
    may_be_float = (typegraph.is_float | typegraph.unknown).astype(bool)
    edges = np.flatnonzero((sources >= 0) & (low[sources] != low[targets]) & may_be_float[sources])
    clamps = painting.facts.clamps
    opset = typegraph.parts[0].opsets.get("")
    casters = {part: OnnxCaster(part, opset, clamps) if part.opsets else TensorFlowCaster(part) for part in typegraph.parts}
    nodes = typegraph.nodes
    for owner, slot, to_low in zip(*typegraph.operands(edges), low[targets[edges]].tolist(), strict=True):
        before, after = (float32, target) if to_low else (target, float32)
        if owner == len(nodes):
            part, position = typegraph.results[slot]
            value = part.outputs[position]
            caster = casters[part]
            part.outputs[position] = result = caster.cast(value, before, after)
            if isinstance(caster, OnnxCaster) and value.name == part.output_names[position] and result.name != value.name:
                caster.give_name(value, result)
        else:
            user = nodes[owner]
            caster = casters[user.graph]
            if user.graph.is_function and _is_left_out(user.inputs[slot]):
                continue
            caster.graph.set_input(user, slot, caster.cast(user.inputs[slot], before, after))  # type: ignore[arg-type]  # the edge exists
    for caster in casters.values():
        if caster.followers:
            caster.graph.place_after(caster.followers)
    stored = [node for node in changed if tensor_of(node) is not None]
    for node in stored:
        store_low(node, target, bound_of(clamps, node))
    masks = []
    for node, clamp in clamps.items():
        is_low = low[typegraph.vertex(node.outputs[0])]
        if is_low or any(not low[v] and any(low[u] for u in typegraph.successors(v)) for v in clamp.way):
            masks.append(node)
            if not is_low:  # the mask is made in float32 and then cast
                replace_tensor(node, clamped(node, clamp.bound))
    return Applied(
        [node for node in changed if node.domain != "ampgraph"],
        [node for caster in casters.values() for node in caster.added],
        stored + [node for caster in casters.values() for node in caster.stored],
        masks,
    )


def _set_types(painting: Painting, target: DType) -> list[Node]:
    """Set the painted entries of ``Node.types``; nodes whose types were one mapping share one afterwards."""
    typegraph = painting.typegraph
    rows = np.flatnonzero(painting.allowed() & typegraph.is_float.astype(bool)).tolist()
    replaced: dict[tuple[object, ...], tuple[Mapping[str, DType], Mapping[str, DType]]] = {}
    changed: list[Node] = []
    for owner, vertices in itertools.groupby(rows, typegraph.owner.__getitem__):
        if owner >= len(typegraph.nodes):
            break
        node = typegraph.nodes[owner]
        types = node.types
        keys = tuple(map(typegraph.key, vertices))
        pair = replaced.get((id(types), *keys))
        if pair is None:  # the old mapping is kept too, so that its id stays taken
            new = dict(types)
            for key in keys:
                if not isinstance(key, str):
                    raise PassError(
                        f"Failed to set a type attribute: {node} has an operand that its definition fixes to float32. "
                        "UNSAFE_FORCE_ALL does not work on such a graph; deny the op or drop the level."
                    )
                new[key] = target
            pair = replaced[id(types), *keys] = types, new
        node.types = pair[1]
        changed.append(node)
    return changed
