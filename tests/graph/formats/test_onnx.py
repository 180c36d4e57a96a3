"""ONNX models: reading into the IR and writing back."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, checker, helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

from ampgraph.graph import AmpgraphError, FormatError, Graph, Placeholder, find_dtype
from ampgraph.graph.diff import diff
from ampgraph.graph.dtypes import DTYPES, DType
from ampgraph.graph.formats.json import parse_json, print_json
from ampgraph.graph.formats.onnx import read_model, write_model
from ampgraph.graph.text import constants_of, parse_graph, print_graph
from ampgraph.graph.types import Shape, Tensor, ValueType
from ampgraph.graph.verify import verify

from .onnx_models import BRANCHES, DATA, FUNCTIONS, PLAIN, model

f16, f32, f64, i64 = map(find_dtype, ("f16", "f32", "f64", "i64"))


def body(graph: Graph, node: str, name: str) -> Graph:
    found = next(n for n in graph.nodes if n.op_type == node).attributes[name]
    assert isinstance(found, Graph)
    return found


@pytest.mark.parametrize("path", sorted(DATA.glob("*.onnx")), ids=lambda path: path.stem)
def test_files_survive(path: Path) -> None:
    proto = onnx.load(path, load_external_data=False)
    graph = read_model(proto, folder=DATA)
    verify(graph)
    written = write_model(graph)
    if path.stem == "external_data":
        proto = onnx.load(path)  # constants lie inside now
        for tensor, other in zip(proto.graph.initializer, written.graph.initializer, strict=True):
            assert numpy_helper.to_array(tensor).tobytes() == numpy_helper.to_array(other).tobytes()
    elif path.stem == "topological_order":
        assert sorted(map(str, written.graph.node)) == sorted(map(str, proto.graph.node))
        checker.check_model(written)
    else:
        assert written == proto
    assert write_model(graph.copy()) == written


def test_models_of_the_backend_suite_survive() -> None:
    """A share of the standard's own test models, in the file's form; some as text and as JSON."""
    paths = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data").rglob("*.onnx"))
    paths = paths[:: 1 + len(paths) // 200]
    assert len(paths) > 100
    for i, path in enumerate(paths):
        proto = onnx.load(path)
        graph = read_model(proto)
        verify(graph)
        assert all(value.dtype is not None for part in graph.all_graphs() for node in part.nodes for value in node.outputs)
        assert write_model(graph) == proto
        if i % 4 or proto.ByteSize() > 50_000:
            continue
        for other in (parse_graph(print_graph(graph), constants_of(graph)), parse_json(print_json(graph))):
            assert diff(graph, other) == []
            checker.check_model(write_model(other))


def test_a_plain_model_becomes_nodes_and_initializers() -> None:
    graph = read_model(model(PLAIN))
    assert [(node.domain, node.op_type) for node in graph.nodes] == [
        ("ampgraph", "Initializer"),
        ("ampgraph", "Initializer"),
        ("", "MatMul"),
        ("", "Add"),
    ]
    assert graph.opsets == {"": 17}
    assert graph.attributes == {"ir_version": 8}
    h = graph.value("h")
    assert (h.dtype, h.producer.types) == (f32, {"T": f32})
    assert graph.value("x").shape == Shape(["n", 4])
    weight = graph.value("w").producer.attributes["value"]
    assert weight.array().tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]
    assert [value.name for value in graph.outputs] == graph.output_names == ["y"]


def test_the_text_form() -> None:
    graph = read_model(model(PLAIN))
    assert str(graph) == (
        'graph g(%x: f32[n,4]) <ir_version=8> opset [""=17] {\n'
        "  %w: f32[4,2] = ampgraph.Initializer<T=f32>()"
        " {value=dense<f32[4,2], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]>}\n"
        "  %b: f32[2] = ampgraph.Initializer<T=f32>() {value=dense<f32[2], [0.5, -0.5]>}\n"
        "  %h: f32 = MatMul<T=f32>(%x, %w)\n"
        "  %y: f32[n,2] = Add<T=f32>(%h, %b)\n"
        "  return %y\n}"
    )


# ---- bodies ---------------------------------------------------------------------------------------------------------


def test_outer_values_are_operands_of_the_owner() -> None:
    graph = read_model(model(BRANCHES))
    node = graph.value("y").producer
    assert [value and value.name for value in node.inputs] == ["c", "k", "x", "c"]
    assert node.types == {"B": DTYPES["bool"], "V[0]": f32, "capture:k": f32, "capture:x": f32, "capture:c": DTYPES["bool"]}
    assert (body(graph, "If", "then_branch").captures, body(graph, "If", "else_branch").captures) == (("k", "x"), ("c", "k", "x"))
    inner = body(body(graph, "If", "else_branch"), "If", "then_branch")
    assert inner.captures == ("k",)
    assert inner.inputs[0].dtype is f32
    assert inner.opsets is graph.opsets
    verify(graph)


def test_a_changed_capture_is_written_by_its_new_name() -> None:
    graph = read_model(model(BRANCHES)).copy()
    node = graph.value("y").producer
    relu = graph.add("Relu", [node.inputs[1]], domain="", name="")
    relu.outputs[0].name = "a"  # the name of a value in the body
    graph.set_input(node, 1, relu.outputs[0])
    verify(graph)
    written = write_model(graph)
    checker.check_model(written, full_check=True)
    x = np.array([-3, -1, 2, 4], np.float32)
    for c in (True, False):
        expected = ReferenceEvaluator(model(BRANCHES)).run(None, {"x": x, "c": np.array(c)})
        for one, other in zip(ReferenceEvaluator(written).run(None, {"x": x, "c": np.array(c)}), expected, strict=True):
            assert np.array_equal(one, other)


def test_copies_do_not_share_bodies() -> None:
    graph = read_model(model(BRANCHES))
    twin = graph.copy()
    then = body(twin, "If", "then_branch")
    assert then is not body(graph, "If", "then_branch")
    assert then.opsets is twin.opsets is not graph.opsets
    then.nodes.__iter__().__next__().types = {"T": f16}
    assert body(graph, "If", "then_branch").value("a").dtype is f32
    with pytest.raises(AmpgraphError, match=r"body 't': 'a' \(Add\) reads '%k' at input 0 as float16"):
        verify(twin)


def test_loops_tie_their_state() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[2] x, int64 n, bool go) => (float[2] last, float[m,2] all)
    {
      last, all = Loop(n, go, x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t, float[2] u) {
        d = Identity(c)
        t = Add(s, x)
        u = Neg(t)
      }>
    }"""
    graph = read_model(model(text))
    node = graph.value("last").producer
    assert node.signature.inputs == ("I", "B", "V[0]", "capture:x")
    assert node.signature.outputs == ("V[0]", "V_out[0]")
    assert write_model(graph) == model(text)


# ---- functions --------------------------------------------------------------------------------------------------------


def test_functions_are_typed_as_their_callers_agree() -> None:
    graph = read_model(model(FUNCTIONS))
    assert list(graph.functions) == ["local:twice", "local:once"]
    assert [value.dtype for value in graph.outputs] == [f32, f64]
    assert graph.value("y").producer.types == {"a": f32, "b": f32}
    assert graph.functions["local:twice"].outputs[0].dtype is f32
    assert graph.functions["local:once"].outputs[0].dtype is None  # called with two dtypes
    verify(graph)
    assert write_model(graph) == model(FUNCTIONS)


def test_functions_must_not_call_themselves() -> None:
    proto = model(FUNCTIONS)
    proto.functions[1].node[2].op_type = "twice"
    proto.functions[1].node[2].domain = "local"
    with pytest.raises(FormatError, match="call each other in a circle: local:twice, local:once"):
        read_model(proto)


def test_deep_calls_are_refused() -> None:
    head = '<ir_version: 8, opset_import: ["": 17, "l": 1]> g (float[1] x) => (float[1] y) { y = l.f0(x) }'
    step = '<opset_import: ["": 17, "l": 1], domain: "l"> f%d (a) => (b) { b = l.f%d(a) }'
    last = '<opset_import: ["": 17], domain: "l"> f%d (a) => (b) { b = Neg(a) }'
    with pytest.raises(FormatError, match="nested more than 100 deep"):
        read_model(model("\n".join([head, *(step % (i, i + 1) for i in range(150)), last % 150])))
    twice = '<opset_import: ["": 17, "l": 1], domain: "l"> f%d (a) => (b) { t = l.f%d(a) b = l.f%d(t) }'
    many = [head, *(twice % (i, i + 1, i + 1) for i in range(60)), last % 60]  # 2**60 calls
    assert read_model(model("\n".join(many))).outputs[0].dtype is f32


def test_what_is_nested_deeper_than_the_stack_is_refused() -> None:
    head = '<ir_version: 8, opset_import: ["": 17, "l": 1]> g (float[1] x, bool c) => (float[1] y) { y = l.f0(x, c) }'
    last = '<opset_import: ["": 17], domain: "l"> f90 (a, c) => (b) { b = Neg(a) }'
    functions = []
    for i in range(90):
        body = f"r = l.f{i + 1}(a, c)"
        for _ in range(4):
            branches = f"then_branch = t () => (float r) {{ {body} }}, else_branch = e () => (float q) {{ q = Neg(a) }}"
            body = f"r = If (c) <{branches}>"
        functions.append(f'<opset_import: ["": 17, "l": 1], domain: "l"> f{i} (a, c) => (r) {{ {body} }}')
    with pytest.raises(FormatError, match="of graph 'g' are nested deeper than Python's stack: inline some of them"):
        read_model(model("\n".join([head, *functions, last])))


def test_attributes_of_functions_are_placeholders() -> None:
    text = """<ir_version: 8, opset_import: ["": 17, "l": 1]> g (float[2] x) => (float[2] y) { y = l.f<a = 0.5>(x) }
    <opset_import: ["": 17], domain: "l"> f <a> (x) => (y) { y = LeakyRelu<alpha: float = @a>(x) }"""
    graph = read_model(model(text))
    assert graph.functions["l:f"].value("y").producer.attributes == {"alpha": Placeholder("a")}
    assert write_model(graph) == model(text)


# ---- types ------------------------------------------------------------------------------------------------------------


def test_attributes_that_are_types() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float16[2] y, float[2,2] z)
    { y = Cast<to = 10>(x) m = EyeLike<dtype = 7>(z0) z0 = Unsqueeze(x, a) z = RandomNormal<shape = [2,2]>() }"""
    proto = model(text.replace("{ y", "<int64[1] a = {0}> { y"))
    graph = read_model(proto)
    cast = graph.value("y").producer
    assert (cast.attributes, cast.types) == ({}, {"T1": f32, "T2": f16})
    assert graph.value("m").dtype is i64
    assert graph.value("z").producer.types == {"T": f32}
    cast.types = {"T1": f32, "T2": find_dtype("bf16")}
    graph.value("z").producer.types = {"T": f16}
    written = {node.op_type: node for node in write_model(graph).graph.node}
    assert helper.get_node_attr_value(written["Cast"], "to") == TensorProto.BFLOAT16
    assert helper.get_node_attr_value(written["RandomNormal"], "dtype") == TensorProto.FLOAT16
    assert [output.type.tensor_type.elem_type for output in write_model(graph).graph.output] == [16, 10]


def test_fixed_operands_have_no_variable() -> None:
    graph = read_model((DATA / "resize_scales.onnx").read_bytes())
    resize = next(node for node in graph.nodes if node.op_type == "Resize")
    assert resize.signature.inputs[2] is f32
    assert "T1" in resize.types


def test_omitted_operands_have_no_type() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[2,2] x, float m) => (float[2,2] y) { y = Clip(x, , m) }"""
    graph = read_model(model(text))
    node = graph.value("y").producer
    assert node.inputs[1] is None
    assert node.signature.inputs == ("T", None, "T")
    assert write_model(graph) == model(text)


def test_unnamed_results_in_the_middle() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[2,1,3] x, float[1,20,3] w, float[1,20,5] r) => (float[1,1,5] c) { a, b, c = LSTM<hidden_size = 5>(x, w, r) }"""
    proto = model(text)
    proto.graph.node[0].output[:2] = ["", ""]
    graph = read_model(proto)
    verify(graph)
    assert write_model(graph) == proto
    first = graph.value("c").producer.outputs[0]
    first.name = "all"
    graph.outputs.append(first)
    graph.output_names.append("all")
    assert write_model(graph).graph.node[0].output[:] == ["all", "", "c"]


def test_sequences_and_optionals_say_their_container() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) {
      s = SequenceConstruct(x, x)
      o = Optional(s)
      t = OptionalGetElement(o)
      i = Constant<value_int = 0>()
      y = SequenceAt(t, i)
    }"""
    graph = read_model(model(text))
    assert [(graph.value(name).container, graph.value(name).dtype) for name in "soty"] == [
        ("seq", f32),
        ("optional(seq)", f32),
        ("seq", f32),
        ("", f32),
    ]
    assert graph.value("s").producer.types == {"T": f32}  # what it holds is of the operands' type: one variable
    assert parse_graph(str(graph)).value("o").container == "optional(seq)"
    assert parse_json(print_json(graph)).value("o").container == "optional(seq)"


def test_maps() -> None:
    proto = model(
        """<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 3]> g (float[1,2] x) => (float[1,2] y) { y = Neg(x) }"""
    )
    proto.graph.node[0].CopyFrom(helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_strings=["a", "b"]))
    element = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    proto.graph.output[0].type.CopyFrom(helper.make_sequence_type_proto(element))
    graph = read_model(proto)
    assert (graph.outputs[0].dtype, graph.outputs[0].container) == (f32, "seq(map(str))")
    assert write_model(graph) == proto
    other = parse_graph(str(graph))
    assert write_model(other).graph.output == proto.graph.output


def test_ops_nobody_defined_keep_declared_types() -> None:
    proto = model(PLAIN)
    proto.graph.node[0].CopyFrom(helper.make_node("Op", ["x", "w"], ["h", "more"], domain="vendor", k=[1, 2], name="n"))
    proto.graph.node[1].CopyFrom(helper.make_node("Neg", ["h"], ["y"]))
    proto.opset_import.add(domain="vendor", version=3)
    graph = read_model(proto)
    assert graph.value("h").dtype is None
    assert graph.value("y").dtype is f32  # as declared
    proto.graph.value_info.add().CopyFrom(helper.make_tensor_value_info("h", TensorProto.FLOAT, [None, 2]))
    graph = read_model(proto)
    assert (graph.value("h").dtype, graph.value("h").shape) == (f32, Shape([None, 2]))
    verify(graph)
    assert write_model(graph) == proto


def test_a_contradiction_names_node_and_value() -> None:
    proto = model(PLAIN)
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    with pytest.raises(FormatError, match=r"Node 'h' \(MatMul\) reads 'w' at input 1 as float64, but it is float32"):
        read_model(proto)
    proto = model(PLAIN)
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    with pytest.raises(FormatError, match=r"Value 'y' is declared float64, but node 'y' \(Add\) gives float32"):
        read_model(proto)


# ---- the rest of the file -----------------------------------------------------------------------------------------------


def rich_model() -> Any:
    proto = model(PLAIN)
    proto.doc_string, proto.producer_name, proto.domain, proto.model_version = "doc", "me", "org.x", 3
    proto.metadata_props.add(key="k", value="v")
    proto.graph.doc_string = "graph doc"
    proto.graph.node[0].doc_string = "node doc"
    proto.graph.node[0].metadata_props.add(key="a", value="b")
    proto.graph.node[1].name = proto.graph.node[0].name = "same"
    proto.graph.initializer[0].doc_string = "weight doc"
    proto.graph.input[0].doc_string = "input doc"
    proto.graph.input[0].type.denotation = "TENSOR"
    proto.graph.input[0].type.tensor_type.shape.dim[0].denotation = "BATCH"
    proto.graph.input.add().CopyFrom(helper.make_tensor_value_info("b", TensorProto.FLOAT, [2]))
    proto.graph.value_info.add().CopyFrom(helper.make_tensor_value_info("h", TensorProto.FLOAT, ["n", 2]))
    proto.graph.value_info.add().CopyFrom(helper.make_tensor_value_info("gone", TensorProto.FLOAT, None))
    annotation = proto.graph.quantization_annotation.add(tensor_name="h")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="b")
    proto.training_info.add().initialization.name = "init"
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("sp", TensorProto.FLOAT, [2], [1, 2]), helper.make_tensor("", TensorProto.INT64, [2], [1, 3]), [2, 2]
    )
    proto.graph.sparse_initializer.add().CopyFrom(sparse)
    data = proto.SerializeToString() + b"\xf2\x3f\x03abc"  # field 1022, which no version of the standard has
    return onnx.ModelProto.FromString(data)


def test_everything_else_survives() -> None:
    proto = rich_model()
    graph = read_model(proto)
    assert graph.value("b").producer.attributes["default"].array().tolist() == [0.5, -0.5]
    assert graph.value("sp").producer.attributes["value"].array().tolist() == [[0, 1], [0, 2]]
    verify(graph)
    assert write_model(graph).SerializeToString(deterministic=True) == proto.SerializeToString(deterministic=True)
    assert write_model(graph.copy()) == proto


def test_a_changed_dtype_changes_what_the_file_declares() -> None:
    graph = read_model(rich_model())
    weight = graph.value("w").producer
    half = Tensor.of(weight.attributes["value"].array().astype(np.float16))
    weight.attributes, weight.types = {"value": half}, {"T": f16}
    for node in graph.nodes:
        if node.domain == "":
            node.types = {"T": f16}
    for name in ("x", "b"):
        graph.value(name).producer.types = {"T": f16}
    graph.value("b").producer.attributes = {"default": Tensor.of(np.zeros(2, np.float16))}
    verify(graph)
    written = write_model(graph).graph
    assert [info.type.tensor_type.elem_type for info in (*written.input, *written.output, written.value_info[0])] == [10] * 4
    assert [tensor.data_type for tensor in written.initializer] == [10, 10]
    assert written.input[0].type.denotation == "TENSOR"
    assert written.input[0].type.tensor_type.shape.dim[0].denotation == "BATCH"


def test_outputs_keep_their_names() -> None:
    graph = read_model(model(PLAIN))
    y = graph.outputs[0]
    cast = graph.add("Cast", [y], domain="", types={"T2": f64}, name="")
    cast.outputs[0].name = "cast"
    graph.outputs = [cast.outputs[0], graph.inputs[0]]
    graph.output_names = ["y", "second"]
    written = write_model(graph)
    checker.check_model(written, full_check=True)
    assert [output.name for output in written.graph.output] == ["y", "second"]
    assert [node.op_type for node in written.graph.node] == ["MatMul", "Add", "Cast", "Identity"]
    assert written.graph.node[1].output[0] != "y"


def test_only_onnx_graphs_can_be_written() -> None:
    graph = parse_graph("graph g(%x: f32) { %y = tf.Relu(%x) return %y }")
    with pytest.raises(FormatError, match="Only a graph of ONNX ops"):
        write_model(graph)
    graph.opsets[""] = 17
    with pytest.raises(FormatError, match=r"Node 'y' \(Relu\) is a TensorFlow op"):
        write_model(graph)


def known_dtypes() -> list[DType]:
    """Return the dtypes that the installed ``onnx`` reads as what they are."""
    numbers = set(TensorProto.DataType.values())
    found = [dtype for dtype in DTYPES.values() if dtype.onnx in numbers and dtype.onnx and dtype.kind != "string"]
    return [dtype for dtype in found if helper.tensor_dtype_to_np_dtype(dtype.onnx).name == dtype.name]


@given(st.sampled_from(known_dtypes()), st.data())
def test_constants_of_every_dtype(dtype: Any, data: st.DataObject) -> None:
    """Raw data that ``onnx`` wrote is read as it reads it, and written as it was."""
    size = data.draw(st.integers(0, 9))
    raw = np.frombuffer(data.draw(st.binary(min_size=size * 16, max_size=size * 16)), np.uint8)
    count = (size * dtype.bits + 7) // 8
    raw = raw[:count] & 1 if dtype.kind == "bool" else raw[:count]
    if count and size * dtype.bits % 8:
        raw = np.array([*raw[:-1], raw[-1] & ((1 << size * dtype.bits % 8) - 1)], np.uint8)
    proto = TensorProto(data_type=dtype.onnx, dims=[size], raw_data=raw.tobytes())
    graph = read_model(model(PLAIN))
    from ampgraph.graph.formats.onnx_tensor import Folder, read_tensor, tensor_bytes

    tensor = read_tensor(proto, Folder(None), "It")
    expected = numpy_helper.to_array(proto)
    assert tensor.array().astype(expected.dtype).tobytes() == expected.tobytes()
    assert tensor_bytes(Tensor(dtype, tensor.shape, tensor.array)) == raw.tobytes()
    assert graph.name == "g"


@pytest.mark.parametrize("number", [dtype.onnx for dtype in known_dtypes() if dtype.kind != "complex"])
def test_constants_in_typed_fields(number: int) -> None:
    proto = helper.make_tensor("t", number, [3], [1, 0, 1])
    from ampgraph.graph.formats.onnx_tensor import Folder, read_tensor

    expected = numpy_helper.to_array(proto)
    assert read_tensor(proto, Folder(None), "It").array().astype(expected.dtype).tobytes() == expected.tobytes()


def test_attributes_of_all_kinds() -> None:
    tensor = helper.make_tensor("t", TensorProto.INT32, [1], [7])
    attributes: dict[str, Any] = {"i": 1, "f": 0.5, "s": "a", "t": tensor, "ii": [1, 2], "ff": [0.5], "ss": ["a", "b"]}
    attributes |= {"tt": [tensor, tensor], "tp": helper.make_tensor_type_proto(TensorProto.FLOAT, [2, "n"])}
    inner = [
        parser.parse_graph(f"{name} (float[2] {name}_x) => (float[2] {name}_y) {{ {name}_y = Neg({name}_x) }}") for name in "abc"
    ]
    attributes |= {"g": inner[0], "gg": inner[1:]}
    proto = model(PLAIN)
    proto.graph.node.add().CopyFrom(helper.make_node("Op", [], ["o"], domain="v", **attributes))
    proto.opset_import.add(domain="v", version=1)
    graph = read_model(proto)
    found = graph.value("o").producer.attributes
    assert (found["i"], found["f"], found["s"], found["ii"], found["ss"]) == (1, 0.5, b"a", [1, 2], [b"a", b"b"])
    assert found["tp"] == ValueType(f32, Shape([2, "n"]))
    assert isinstance(found["gg"][1], Graph)
    assert write_model(graph.copy()) == proto
    for other in (parse_graph(str(graph)), parse_json(print_json(graph))):
        node = write_model(other).graph.node[-1]
        assert sorted(item.name for item in node.attribute) == sorted(attributes)
        assert diff(graph, other) == []
    changed = graph.copy()
    changed.value("o").producer.attributes["gg"][1].name = "other"
    assert len(diff(graph, changed)) == 1
