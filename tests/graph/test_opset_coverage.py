"""Every change of the ONNX ops has a step or was looked at and needs none."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from onnx import defs, helper

from ampgraph.graph.opset_steps import NEWEST, STEPS
from ampgraph.graph.raise_opset import _IR_VERSIONS, _OLDEST
from ampgraph.graph.schemas.onnx import latest

_ADDED = "the new attribute's default is what the op did before"
_MORE = "what became optional, or is new and optional, was given or unheard of before"
_SPLIT = "dtypes that had to be equal may differ now"
_FEWER = "dtypes that are no longer allowed are refused, whatever the op"

#: Op -> {version: why a node of the version before computes the same}.
REVIEWED: dict[str, dict[int, str]] = {
    "ArgMax": {12: _ADDED},
    "ArgMin": {12: _ADDED},
    "Attention": {24: _MORE, 25: _ADDED},
    "AveragePool": {10: _ADDED, 19: _ADDED},
    "Cast": {19: _ADDED, 24: _ADDED},
    "CastLike": {19: _ADDED, 24: _ADDED},
    "Constant": {11: _MORE, 12: _MORE},
    "DepthToSpace": {11: _ADDED},
    "DequantizeLinear": {13: _ADDED, 21: _ADDED, 23: _ADDED},
    "Erf": {13: _FEWER},
    "GRU": {14: _ADDED},
    "GatherND": {12: _ADDED},
    "Gemm": {11: _MORE},
    "GlobalLpPool": {22: _FEWER},
    "LSTM": {14: _ADDED},
    "Loop": {11: _MORE},
    "LpPool": {18: _ADDED},
    "MaxPool": {8: _MORE, 10: _ADDED},
    "OptionalHasElement": {18: _MORE},
    "Pad": {18: _MORE},
    "QuantizeLinear": {13: _ADDED, 21: _ADDED, 23: _ADDED},
    "RNN": {14: _ADDED},
    "Range": {27: _ADDED},
    "ReduceLogSum": {28: _FEWER},
    "ReduceLogSumExp": {28: _FEWER},
    "Reshape": {14: _ADDED},
    "Resize": {18: _ADDED},
    "ScatterElements": {16: _ADDED},
    "ScatterND": {16: _ADDED},
    "Shape": {15: _ADDED},
    "SpaceToDepth": {28: _ADDED},
    "TopK": {11: _ADDED},
}


def _formals(schema: Any) -> list[Any]:
    return [*schema.inputs, *schema.outputs]


def _allowed(schema: Any, formal: Any) -> set[str]:
    found = [c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == formal.type_str]
    return set(found[0]) if found else {formal.type_str}


def _shape_of(schema: Any) -> Any:
    """What a definition is, apart from dtypes and prose."""
    counts = [[(row.name, row.option.name, row.min_arity) for row in rows] for rows in (schema.inputs, schema.outputs)]
    defaults = {
        name: "required" if spec.required else spec.default_value.SerializeToString() for name, spec in schema.attributes.items()
    }
    return schema.deprecated, counts, defaults


def _is_narrower(old: Any, new: Any) -> bool:
    pairs = list(zip(_formals(old), _formals(new), strict=True))
    return any(not _allowed(old, one) <= _allowed(new, two) for one, two in pairs) or any(
        two.type_str == other.type_str and one.type_str != before.type_str for one, two in pairs for before, other in pairs
    )


def _changes() -> Iterator[tuple[str, int]]:
    history: dict[str, list[Any]] = {}
    for schema in defs.get_all_schemas_with_history():
        if not schema.domain:
            history.setdefault(schema.name, []).append(schema)
    for name, schemas in history.items():
        schemas.sort(key=lambda schema: int(schema.since_version))
        for old, new in pairwise(schemas):
            if new.since_version > _OLDEST and (_shape_of(old) != _shape_of(new) or _is_narrower(old, new)):
                yield name, new.since_version


def test_every_change_has_a_step_or_was_reviewed() -> None:
    assert latest("") <= NEWEST
    steps = {(op, since) for op, rows in STEPS.items() for since, _ in rows}
    reviewed = {(op, since) for op, reasons in REVIEWED.items() for since in reasons}
    changes = set(_changes())
    assert len(changes) > 50
    assert changes - steps - reviewed == set()
    known = {(op, since) for op, since in steps | reviewed if since <= latest("")}
    assert {(op, since) for op, since in known - changes if REVIEWED[op][since] is not _FEWER} == set()  # some releases only
    assert not steps & reviewed


def test_steps_are_in_order() -> None:
    for rows in STEPS.values():
        assert [since for since, _ in rows] == sorted({since for since, _ in rows})


def test_ir_versions_are_those_of_the_standard() -> None:
    for (domain, version), ir_version in helper.OP_SET_ID_VERSION_MAP.items():
        if domain == "ai.onnx" and version >= _OLDEST:
            assert max(ir for since, ir in _IR_VERSIONS.items() if since <= version) == ir_version
