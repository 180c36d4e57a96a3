"""Op schemas of ONNX: read from the standard's definitions, at the version asked for."""

import pytest
from onnx import defs

from ampgraph.graph import Graph, GraphError, find_dtype
from ampgraph.graph.dtypes import BY_ONNX
from ampgraph.graph.schemas import find_schema
from ampgraph.graph.schemas import onnx as vocabulary
from ampgraph.graph.schemas.onnx_schema import TYPE_ATTRIBUTES, OnnxSchema

f16, f32, f64, i64 = map(find_dtype, ("f16", "f32", "f64", "i64"))


def schema(op_type: str, version: int, domain: str = "") -> OnnxSchema:
    found = find_schema(domain, op_type, version)
    assert isinstance(found, OnnxSchema)
    return found


def graph(version: int = 17) -> Graph:
    return Graph("g", opsets={"": version})


def test_every_definition_of_the_standard_is_read() -> None:
    for definition in defs.get_all_schemas_with_history():
        found = schema(definition.name, definition.since_version, definition.domain)
        assert [formal.name for formal in found.inputs] == [formal.name for formal in definition.inputs]
        assert {*found.attributes, *found.type_attributes} == set(definition.attributes)
        for formal, said in zip((*found.inputs, *found.outputs), (*definition.inputs, *definition.outputs), strict=True):
            assert (formal.var is None) == (said.type_str.startswith("tensor("))


def test_the_version_decides() -> None:
    assert find_schema("", "Gelu", 19) is None
    assert schema("Gelu", 20).type_vars["T"].allows(f16)
    assert schema("QuantizeLinear", 13).inputs[1].dtype is f32
    assert schema("QuantizeLinear", 19).inputs[1].var == "T1"
    assert [formal.dtype for formal in schema("Resize", 13).inputs] == [None, None, f32, i64]
    assert schema("Relu", 13) is schema("Relu", 13)
    assert find_schema("", "Relu") is None  # no version, no vocabulary
    assert find_schema("nobody", "Relu", 1) is None


def test_type_attributes_exist() -> None:
    for (op_type, name), (variables, default) in TYPE_ATTRIBUTES.items():
        if not defs.has(op_type):
            continue  # newer than the installed package
        found = schema(op_type, vocabulary.latest(""))
        if name == "output_dtype" and name not in found.type_attributes:
            continue  # so is the attribute
        assert name in found.type_attributes
        assert found.type_attributes[name][0] in variables
        assert not default or default in found.type_vars or find_dtype(default)
        assert name not in found.attributes


@pytest.mark.parametrize("op_type", sorted(vocabulary._microsoft_rows()))
def test_ops_of_onnxruntime(op_type: str) -> None:
    found = schema(op_type, 1, "com.microsoft")
    assert found.inputs
    assert found.outputs
    used = {formal.var for formal in (*found.inputs, *found.outputs)}
    assert set(found.type_vars) - used == set()
    assert all(dtype in BY_ONNX.values() for var in found.type_vars.values() for dtype in var.allowed or ())


def test_nodes_can_be_added() -> None:
    g = graph()
    x, m = g.add_input("x", f32), g.add_input("m", f32)
    y = g.add("Clip", [x, None, m], domain="", name="")
    assert (y.types, y.signature.inputs, len(y.outputs)) == ({"T": f32}, ("T", None, "T"), 1)
    cast = g.add("Cast", [x], domain="", types={"T2": f16})
    assert cast.outputs[0].dtype is f16
    assert g.add("Concat", [x, m, x], domain="").signature.inputs == ("T", "T", "T")
    assert len(g.add("TopK", [x, g.add_input("k", i64)], domain="").outputs) == 2
    norm = g.add("LayerNormalization", [x, m], domain="", outputs=3, attributes={"stash_type": 11})
    assert [value.dtype for value in norm.outputs] == [f32, f64, f64]
    assert g.add("Op", [x], domain="vendor", outputs=2).signature.schema is None


@pytest.mark.parametrize(
    ("op_type", "count", "outputs", "message"),
    [
        ("MatMul", 3, 1, "Op MatMul has 2 inputs. Received: 3"),
        ("Clip", 0, 1, "Op Clip has 1 to 3 inputs. Received: 0"),
        ("Concat", 0, 1, "Op Concat has at least 1 inputs. Received: 0"),
        ("Relu", 1, 2, "Op Relu has 1 outputs. Received: 2"),
        ("If", 0, 1, "Op If has 1 inputs. Received: 0"),
    ],
)
def test_counts(op_type: str, count: int, outputs: int, message: str) -> None:
    g = graph()
    x = g.add_input("x", f32)
    with pytest.raises(GraphError, match=message):
        g.add(op_type, [x] * count, domain="", outputs=outputs)
