"""Schemas: expansion to signatures, and the TensorFlow table against facts of its op definitions."""

import pytest

from ampgraph.graph import GraphError, OpSchema, Shape
from ampgraph.graph.dtypes import bfloat16, bool_, float16, float32, int32, resource, variant
from ampgraph.graph.schema import REQUIRED, Formal, TypeVar
from ampgraph.graph.schemas import find_schema
from ampgraph.graph.schemas.tf import kernels_accept, op_types


def _schema(op: str) -> OpSchema:
    schema = find_schema("tf", op)
    assert schema is not None
    return schema


def test_unknown_ops_and_vocabularies_have_no_schema() -> None:
    assert find_schema("tf", "NoSuchOp") is None
    assert find_schema("acme", "MatMul") is None
    assert find_schema("ampgraph", "Input") is not None


def test_every_op_of_the_table_expands() -> None:
    names = list(op_types())
    assert len(names) == 1910
    for name in names:
        schema = _schema(name)
        variables = {formal.var for formal in (*schema.inputs, *schema.outputs) if formal.var is not None}
        assert variables <= schema.type_vars.keys()
        assert all(formal.number in schema.attributes for formal in (*schema.inputs, *schema.outputs) if formal.number)
        assert all((formal.var is None) != (formal.dtype is None) for formal in (*schema.inputs, *schema.outputs))


def test_facts_of_known_ops() -> None:
    assert _schema("MatMul").signature({}, {}).inputs == ("T", "T")
    statistics = _schema("FusedBatchNormV3").signature({}, {})
    assert statistics.inputs == ("T", "U", "U", "U", "U")
    assert statistics.outputs == ("T", *"UUUUU")
    assert _schema("FusedBatchNormV3").type_vars["U"].allowed == {float32, bfloat16}
    assert _schema("Switch").signature({}, {}).inputs == ("T", bool_)
    assert _schema("ReadVariableOp").signature({}, {}).inputs == (resource,)
    assert _schema("TensorListReserve").signature({}, {}).outputs == (variant,)
    assert _schema("Assign").inputs[0].is_ref
    assert _schema("Assign").outputs[0].is_ref
    assert _schema("Sum").type_vars["Tidx"].default is int32
    assert _schema("VarHandleOp").stateful
    assert not _schema("Relu").stateful


def test_defaults_are_in_the_form_attributes_have() -> None:
    assert _schema("Conv2D").default("data_format") == b"NHWC"
    assert _schema("Conv2D").default("dilations") == [1, 1, 1, 1]
    assert _schema("Placeholder").default("shape") == Shape(None)
    assert _schema("MatMul").default("transpose_a") is False
    assert _schema("Conv2D").attributes["strides"].default is REQUIRED
    assert _schema("Conv2D").default("strides") is None
    assert _schema("Conv2D").default("nothing") is None


def test_counts_and_list_lengths_decide_the_operands() -> None:
    schema = OpSchema(
        "Op",
        "test",
        [Formal("many", var="T", number="N"), Formal("any", var="L", is_list=True), Formal("one", dtype=int32)],
        [Formal("out", var="L", is_list=True)],
        [TypeVar("T"), TypeVar("L", is_list=True)],
    )
    signature = schema.signature({"N": 2}, {"T": float32, "L[0]": float16, "L[1]": int32})
    assert signature.inputs == ("T", "T", "L[0]", "L[1]", int32)
    assert signature.outputs == ("L[0]", "L[1]")
    assert signature.keys == ("T", "L[0]", "L[1]")
    assert schema.split_inputs(signature) == {"many": range(2), "any": range(2, 4), "one": range(4, 5)}
    assert schema.split_outputs(signature) == {"out": range(2)}
    assert schema.signature({"N": 2}, {"L[0]": float32, "L[1]": float32}) is signature


@pytest.mark.parametrize("count", [None, -1, 1.0, True, 10**7])
def test_a_senseless_count_is_an_error(count: object) -> None:
    with pytest.raises(GraphError, match=r"Op AddN needs an integer attribute 'N' that counts operands\. Received: "):
        _schema("AddN").signature({} if count is None else {"N": count}, {})


def test_kernels_tell_which_types_may_become_low() -> None:
    assert kernels_accept(_schema("MatMul"), "GPU", {"T": float32}, {}, float16) == {"T": True}
    norm = _schema("FusedBatchNormV3")
    assert kernels_accept(norm, "GPU", {"T": float32, "U": float32}, {}, float16) == {"T": True, "U": False}
