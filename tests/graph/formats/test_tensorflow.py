"""GraphDef round trips give equal messages; damaged and senseless ones give one clear error."""

import gzip
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ampgraph.graph import (
    AmpgraphError,
    DType,
    FormatError,
    FunctionRef,
    Graph,
    GraphError,
    Placeholder,
    Shape,
    Tensor,
    find_dtype,
)
from ampgraph.graph.formats.proto import message
from ampgraph.graph.formats.tensorflow import parse, read_graph_def, serialize, write_graph_def

DATA = Path(__file__).parents[2] / "data" / "formats"
MODELS = sorted(DATA.glob("*.pb.gz"))


def graph_def(text: str) -> Any:
    return parse("GraphDef", text.encode(), text=True)


def read(text: str, **options: Any) -> Graph:
    return read_graph_def(text.encode(), text=True, **options)


def round_trip(proto: Any) -> Any:
    return write_graph_def(read_graph_def(proto).copy())


def canonical(proto: Any) -> bytes:
    """Compare bytes: equality of messages calls NaN unequal to itself."""
    return bytes(proto.SerializeToString(deterministic=True))


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.name)
@pytest.mark.parametrize("text", [False, True], ids=["pb", "pbtxt"])
def test_real_models_come_back_equal(path: Path, text: bool) -> None:
    before = parse("GraphDef", gzip.decompress(path.read_bytes()), text=False)
    assert len(before.node) > 1
    written = serialize(round_trip(before), text=text)
    assert canonical(parse("GraphDef", written, text)) == canonical(before)


def test_what_a_model_says_is_what_the_graph_says() -> None:
    path = DATA / "k3_LSTM_infer_functional.pb.gz"
    proto = parse("GraphDef", gzip.decompress(path.read_bytes()), text=False)
    graph = read_graph_def(proto)
    assert [node.name for node in graph.nodes] == [node.name for node in proto.node]
    assert graph.functions.keys() == {function.signature.name for function in proto.library.function}
    assert graph.attributes["producer"] == proto.versions.producer
    for function in proto.library.function:
        body = graph.functions[function.signature.name]
        assert [value.dtype.tf for value in body.outputs if value.dtype] == [arg.type for arg in function.signature.output_arg]
    for node, source in zip(graph.nodes, proto.node, strict=True):
        for name in source.attr:
            if source.attr[name].WhichOneof("value") == "type" and name in node.types:
                assert node.types[name].tf == source.attr[name].type


TINY = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "s" op: "Split" input: "c" input: "x:0" attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "num_split" value { i: 2 } } }
node { name: "c" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 } } } }
node { name: "y" op: "MatMul" input: "s:1" input: "s" input: "^c" device: "/gpu:0"
  attr { key: "T" value { type: DT_FLOAT } } attr { key: "transpose_a" value { b: false } }
  attr { key: "_mine" value { s: "\\377" } } }
"""


def test_tiny() -> None:
    graph = read(TINY)
    s, y = graph.node("s"), graph.node("y")
    assert [value.name for value in s.outputs] == ["s", "s:1"]
    assert y.inputs == [s.outputs[1], s.outputs[0]]
    assert list(y.controls) == [graph.node("c")]
    assert y.device == "/gpu:0"
    assert dict(y.attributes) == {"transpose_a": False, "_mine": b"\xff"}
    assert dict(y.types) == {"T": find_dtype("float32")}
    assert graph.outputs == [y.outputs[0]]
    assert graph.output_names == ["y"]
    assert canonical(round_trip(graph_def(TINY))) == canonical(graph_def(TINY))


def test_equal_types_and_attributes_are_one_object() -> None:
    node = 'node {{ name: "{}" op: "{}" input: "x" attr {{ key: "T" value {{ type: DT_FLOAT }} }} attr {{ key: "_a" value {{ i: {} }} }} }}'
    graph = read(
        'node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }'
        + "".join(node.format(name, op, value) for name, op, value in [("a", "Relu", 1), ("b", "Tanh", 1), ("c", "Relu", 2)])
        + node.format("d", "Relu", 1).replace("i: 1", "b: true")
    )
    a, b, c, d = (graph.node(name) for name in "abcd")
    assert a.types is b.types is c.types
    assert a.attributes is b.attributes
    assert a.attributes is not c.attributes
    assert d.attributes["_a"] is True


def test_types_left_out_stay_out_until_they_differ() -> None:
    text = (
        'node { name: "x" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} } } } }'
        + (
            'node { name: "a" op: "ArgMax" input: "x" input: "i" attr { key: "T" value { type: DT_FLOAT } } }'
            'node { name: "i" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} } } } }'
        )
    )
    graph = read(text)
    node = graph.node("a")
    assert node.types == {"T": find_dtype("float32"), "Tidx": find_dtype("int32"), "output_type": find_dtype("int64")}
    assert set(write_graph_def(graph).node[1].attr) == {"T"}
    node.types = {**node.types, "output_type": find_dtype("int32")}
    written = write_graph_def(graph).node[1].attr
    assert set(written) == {"T", "output_type"}
    assert written["output_type"].type == 3


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("i: -5", -5),
        ("f: 0.5", 0.5),
        ("f: -0.0", -0.0),
        ("b: true", True),
        ('s: "a"', b"a"),
        ("type: DT_HALF", find_dtype("float16")),
        ("type: DT_FLOAT_REF", find_dtype("float32")),
        ("type: DT_INVALID", None),
        ("shape { dim { size: 2 } dim { size: -1 } }", Shape((2, None))),
        ('shape { dim { size: 2 name: "batch" } }', Shape((2,))),
        ("shape { unknown_rank: true }", Shape(None)),
        ("shape {}", Shape(())),
        ("tensor { dtype: DT_FLOAT tensor_shape {} float_val: 2 }", Tensor.of(2.0, "float32")),
        ('func { name: "f" attr { key: "k" value { i: 1 } } }', FunctionRef("f", {"k": 1})),
        ('placeholder: "T"', Placeholder("T")),
        ("", None),
        ("list {}", []),
        ("list { i: 1 i: 2 }", [1, 2]),
        ("list { f: 1 }", [1.0]),
        ("list { b: true b: false }", [True, False]),
        ('list { s: "a" }', [b"a"]),
        ("list { type: DT_INT32 }", [find_dtype("int32")]),
        ("list { shape { dim { size: 3 } } }", [Shape((3,))]),
        ('list { func { name: "g" } }', [FunctionRef("g")]),
        ("list { tensor { dtype: DT_BOOL tensor_shape { dim { size: 1 } } bool_val: true } }", [Tensor.of([True])]),
    ],
)
def test_attributes_of_unknown_ops(value: str, expected: Any) -> None:
    proto = graph_def(f'node {{ name: "n" op: "NobodyKnows" attr {{ key: "a" value {{ {value} }} }} }}')
    node = read_graph_def(proto).node("n")
    assert node.attributes["a"] == expected
    assert type(node.attributes["a"]) is type(expected)
    assert node.schema is None
    assert canonical(round_trip(proto)) == canonical(proto)
    assert canonical(parse("GraphDef", serialize(round_trip(proto), text=True), text=True)) == canonical(proto)


def test_unknown_ops_have_the_outputs_that_are_read() -> None:
    text = 'node { name: "b" op: "MyB" input: "a:2" input: "a" } node { name: "a" op: "MyA" }'
    graph = read(text)
    assert [value.dtype for value in graph.node("a").outputs] == [None, None, None]
    assert graph.node("b").inputs == [graph.node("a").outputs[2], graph.node("a").outputs[0]]
    assert canonical(round_trip(graph_def(text))) == canonical(graph_def(text))


FUNCTIONS = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "c" op: "outer" input: "x" }
node { name: "r" op: "Relu" input: "c:1" attr { key: "T" value { type: DT_FLOAT } } }
library {
  function {
    signature { name: "outer" input_arg { name: "a" type: DT_FLOAT }
      output_arg { name: "p" type: DT_FLOAT } output_arg { name: "q" type: DT_FLOAT } is_stateful: true control_output: "ran" }
    node_def { name: "sum" op: "AddN" input: "in:q:0" input: "a" input: "split:output:1" input: "^never"
      attr { key: "N" value { i: 3 } } attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "never" op: "NoOp" input: "^a" }
    node_def { name: "in" op: "outer" input: "a:0" }
    node_def { name: "axis" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} } } } }
    node_def { name: "split" op: "Split" input: "axis:output" input: "odd:what:3" attr { key: "T" value { type: DT_FLOAT } }
      attr { key: "num_split" value { i: 2 } } }
    node_def { name: "odd" op: "NobodyKnows" input: "g:y:0" }
    node_def { name: "g" op: "generic" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "p" value: "sum:sum:0" } ret { key: "q" value: "a:0" }
    control_ret { key: "ran" value: "never" }
    attr { key: "_noinline" value { b: true } }
    arg_attr { key: 0 value { attr { key: "_output_shapes" value { list { shape { dim { size: 7 } } } } } } }
    resource_arg_unique_id { key: 0 value: 4 }
  }
  function {
    signature { name: "generic" input_arg { name: "x" type_attr: "T" } output_arg { name: "y" type_attr: "T" }
      attr { name: "T" type: "type" } }
    node_def { name: "id" op: "Identity" input: "x" attr { key: "T" value { placeholder: "T" } } }
    node_def { name: "l" op: "IdentityN" input: "id:output:0" attr { key: "T" value { placeholder: "L" } } }
    ret { key: "y" value: "id:output:0" }
  }
  gradient { function_name: "outer" gradient_func: "generic" }
}
versions { producer: 9 min_consumer: 3 bad_consumers: 5 }
"""


def test_functions() -> None:
    proto = graph_def(FUNCTIONS)
    graph = read_graph_def(proto)
    outer, generic = graph.functions["outer"], graph.functions["generic"]
    assert outer.functions is graph.functions
    assert outer.inputs[0].shape == Shape((7,))
    assert outer.output_names == ["p", "q"]
    assert outer.outputs == [outer.node("sum").outputs[0], outer.inputs[0]]
    assert outer.node("sum").inputs == [outer.node("in").outputs[1], outer.inputs[0], outer.node("split").outputs[1]]
    assert list(outer.node("never").controls) == [outer.inputs[0].producer]
    assert outer.attributes["preserved"] == ["never"]
    assert outer.node("g").outputs[0].dtype is find_dtype("float32")
    assert generic.inputs[0].dtype is None
    assert generic.node("id").attributes == {"T": Placeholder("T")}
    assert dict(generic.node("id").types) == {}
    assert graph.attributes == {"producer": 9, "min_consumer": 3, "bad_consumers": [5]}
    assert canonical(round_trip(proto)) == canonical(proto)


def test_names_of_outputs() -> None:
    text = TINY + 'node { name: "init" op: "NoOp" }'
    graph = read(text, outputs=["s:1", "y:0", "init"])
    assert graph.outputs == [graph.node("s").outputs[1], graph.node("y").outputs[0]]
    assert graph.output_names == ["s:1", "y"]
    assert graph.attributes["preserved"] == ["init"]
    with pytest.raises(FormatError, match="no node 'yy', which was named as an output"):
        read(TINY, outputs=["yy"])
    with pytest.raises(FormatError, match=r"'s:2' does not exist: node 's' .Split. has 2 outputs"):
        read(TINY, outputs=["s:2"])


def node(name: str, op: str, *inputs: str, **attrs: str) -> str:
    fields = "".join(f'input: "{text}" ' for text in inputs)
    fields += "".join(f'attr {{ key: "{key}" value {{ {value} }} }} ' for key, value in attrs.items())
    return f'node {{ name: "{name}" op: "{op}" {fields} }}\n'


F32 = "type: DT_FLOAT"
X = node("x", "Placeholder", dtype=F32)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (X + X, "Two nodes of graph 'graph' are called 'x'"),
        (node("", "NoOp"), "must have a name"),
        (node("a:1", "NoOp"), "must have a name without ':'.*'a:1'"),
        (node("a", ""), "Node 'a' of graph 'graph' has no op"),
        (X + node("y", "Relu", "xx", T=F32), r"Input 0 of node 'y' \(Relu\) in graph 'graph' is 'xx', but there is no node 'xx'. Did you mean 'x'"),
        (X + node("y", "Relu", "x:1", T=F32), r"is 'x:1', but node 'x' \(Placeholder\) has 1 outputs"),
        (X + node("y", "Relu", "x", "^z", T=F32), "must wait for '.z', a node that does not exist"),
        (X + node("y", "Add", "^x", "x", "x", T=F32), "data inputs come first"),
        (X + node("y", "Relu", "x", "x", T=F32), r"'y' \(Relu\) of graph 'graph' has 2 data inputs; op Relu with these attributes takes 1"),
        (X + node("y", "Relu", T=F32), "has 0 data inputs; op Relu with these attributes takes 1"),
        (X + node("y", "AddN", "x", T=F32, N="i: 3"), "'N' says 3 inputs, but there are 1"),
        (X + node("y", "AddN", "x", T=F32, N="i: -3"), "counts operands. Received: -3"),
        (X + node("y", "AddN", "x", T=F32), "needs an integer attribute 'N'"),
        (X + node("y", "Relu", "x"), "Node 'y' .Relu. of graph 'graph': Type attribute 'T' is missing"),
        (X + node("y", "Relu", "x", T="i: 1"), "Attribute 'T' must be a type. Received: i"),
        (X + node("y", "Relu", "x", T="type: 77"), "no dtype with number 77"),
        (X + node("y", "Relu", "x", T="type: DT_INVALID"), "'T' is not set"),
        (node("y", "Foo", a="shape { dim { size: -2 } }"), "at least -1. Received: -2"),
        (node("y", "Foo", a="tensor { dtype: DT_FLOAT tensor_shape { dim { size: -2 } } }"), "fully known shape"),
        (node("y", "Foo", a="tensor { dtype: 55 }"), "dtype number 55"),
        (node("y", "Relu", "z", T=F32) + node("z", "Relu", "y", T=F32), "has a cycle: "),
        (node("y", "Relu", "y", T=F32), "has a cycle: "),
        (node("y", "Foo", "y:70000"), "'y:70000', but node 'y' .Foo. has 0 outputs"),
        ("".join(node(f"y{i}", "Unpack", "x", T=F32, num="i: 900000") for i in range(3)) + X, "million outputs"),
        ('library { function { signature { name: "f" } } function { signature { name: "f" } } }', "Function names must be unique.*'f' twice"),
        ('library { function { signature { name: "f" output_arg { name: "o" type: DT_FLOAT } } } }', "does not say which value its result 'o' is"),
        ('library { function { signature { name: "f" input_arg { name: "i" type: 99 } } } }', "argument 'i' has dtype number 99"),
        ('library { function { signature { name: "f" } control_ret { key: "a" value: "gone" } } }', "control of a node 'gone'"),
        ('library { function { signature { name: "f" } node_def { name: "c" op: "NoOp" } node_def { name: "a" op: "Foo" input: "c:x:0" } } }', "no such output. It has: none"),
        ('library { function { signature { name: "f" } node_def { name: "a" op: "Foo" input: "a:0:0:0" } } }', "spelled 'argument' or 'node:output:index'"),
    ],
)  # fmt: skip
def test_senseless_graphs(text: str, error: str) -> None:
    with pytest.raises((FormatError, GraphError), match=error):
        read(text)


def test_loops_are_no_cycles() -> None:
    text = (
        node("x", "Const", dtype=F32, value="tensor { dtype: DT_FLOAT tensor_shape {} }")
        + node("m", "Merge", "x", "n", T=F32, N="i: 2")
        + node("n", "NextIteration", "m", T=F32)
    )
    graph = read(text)
    assert graph.node("m").inputs[1] is graph.node("n").outputs[0]


def test_deep_chains_need_no_recursion() -> None:
    proto = message("GraphDef")()
    proto.node.add(name="n0", op="Chain")
    for i in range(1, 10_000):
        proto.node.add(name=f"n{i}", op="Chain", input=[f"n{i - 1}"])
    proto.node.sort(key=lambda node: -int(node.name[1:]))  # every input is defined later
    graph = read_graph_def(proto)
    assert graph.topological()[0].name == "n0"


# Protobuf wire format: field 1000, varint 7; as any later version of TensorFlow might add it.
NEW_FIELD = b"\xc0\x3e\x07"


def with_new_fields() -> Any:
    """Return a GraphDef with an unknown field at every level."""
    proto = graph_def(TINY + FUNCTIONS[FUNCTIONS.index("library") :])
    y = next(node for node in proto.node if node.name == "y")
    for part in (
        y.attr["T"],
        y,
        proto.node[0],
        proto.library.function[0].node_def[0],
        proto.library.function[0].signature.input_arg[0],
        proto.library.function[0],
        proto.library,
        proto.versions,
        proto,
    ):
        part.MergeFromString(NEW_FIELD)
    return proto


def test_unknown_fields_survive() -> None:
    proto = with_new_fields()
    known = message("GraphDef")()
    known.CopyFrom(proto)
    known.DiscardUnknownFields()
    assert proto.ByteSize() - known.ByteSize() >= 9 * len(NEW_FIELD)
    assert canonical(round_trip(proto)) == canonical(proto)


def test_unknown_fields_survive_beside_changes() -> None:
    graph = read_graph_def(with_new_fields())
    y = graph.node("y")
    y.types = {"T": find_dtype("float16")}
    y.attributes = {"transpose_a": True}
    y.device = "/cpu:0"
    graph.set_input(y, 0, graph.node("s").outputs[0])
    written = next(node for node in write_graph_def(graph).node if node.name == "y")
    assert NEW_FIELD in written.SerializeToString()
    assert NEW_FIELD not in written.attr["T"].SerializeToString()
    assert written.attr["T"].type == 19
    assert set(written.attr) == {"T", "transpose_a"}
    assert (written.device, list(written.input)) == ("/cpu:0", ["s", "s", "^c"])


def test_text_has_no_room_for_unknown_fields() -> None:
    with pytest.raises(FormatError, match="only the binary form can keep"):
        serialize(with_new_fields(), text=True)


def test_debug_information_survives() -> None:
    proto = graph_def(
        'node { name: "x" op: "NoOp" experimental_debug_info { original_node_names: "z" } '
        "experimental_type { type_id: TFT_PRODUCT args { type_id: TFT_TENSOR } } }"
        'debug_info { files: "a.py" traces { key: "x" value { file_line_cols { line: 3 } } } }'
    )
    assert canonical(round_trip(proto)) == canonical(proto)


def test_graphs_made_here_are_written() -> None:
    graph = Graph("g")
    x = graph.add_input("x", find_dtype("float32"), Shape((2, "n")))
    y = graph.add("Relu", [x], name="y")
    graph.add("ConcatV2", [y.outputs[0], x, graph.add("Const", name="c", attributes={"value": Tensor.of(1, "int32")}).outputs[0]],
              name="z", attributes={"N": 2})  # fmt: skip
    expected = graph_def(
        'node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } '
        'attr { key: "shape" value { shape { dim { size: 2 } dim { size: -1 } } } } }'
        + node("y", "Relu", "x", T=F32)
        + node(
            "c",
            "Const",
            dtype="type: DT_INT32",
            value='tensor { dtype: DT_INT32 tensor_shape {} tensor_content: "\\001\\000\\000\\000" }',
        )
        + node("z", "ConcatV2", "y", "x", "c", T=F32, N="i: 2", Tidx="type: DT_INT32")
    )
    assert canonical(write_graph_def(graph)) == canonical(expected)


def made(op: str = "NoOp", name: str = "n", **options: Any) -> Graph:
    graph = Graph("g")
    graph.add(op, name=name, **options)
    return graph


@pytest.mark.parametrize(
    ("graph", "error"),
    [
        (made("Relu", domain=""), "is of domain ''; a GraphDef holds TensorFlow ops only"),
        (made(name=""), "unique and not empty. Received: ''"),
        (made("Foo", inputs=[None]), "omits an operand"),
        (made("Foo", attributes={"a": object()}), "cannot hold attribute 'a' of type object"),
        (made("Foo", attributes={"a": 2**70}), "cannot hold attribute 'a'.*1180591620717411303424"),
        (made("Foo", attributes={"a": find_dtype("float8_e8m0fnu")}), "TensorFlow has no dtype float8_e8m0fnu"),
        (made("Foo", attributes={"a": [None]}), "a list with a NoneType"),
    ],
)
def test_what_a_graph_def_cannot_hold(graph: Graph, error: str) -> None:
    with pytest.raises(FormatError, match=error):
        write_graph_def(graph)


def test_repeated_names_cannot_be_written() -> None:
    graph = made()
    graph.add("NoOp", name="n")
    with pytest.raises(FormatError, match=r"unique and not empty. Received: 'n'"):
        write_graph_def(graph)


SEEDS = [
    gzip.decompress((DATA / name).read_bytes()) for name in ("v2_nested_functions_raw.pb.gz", "v2.while_grad.functional.pb.gz")
]


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(SEEDS), st.data())
def test_damaged_files_give_clear_errors(seed: bytes, data: st.DataObject) -> None:
    damaged = bytearray(seed[: data.draw(st.integers(0, len(seed)))] if data.draw(st.booleans()) else seed)
    for position, byte in data.draw(st.lists(st.tuples(st.integers(0, len(seed)), st.integers(0, 255)), max_size=4)):
        if position < len(damaged):
            damaged[position] = byte
    with suppress(AmpgraphError):
        written = write_graph_def(read_graph_def(bytes(damaged)))
        assert canonical(written) == canonical(parse("GraphDef", bytes(damaged), text=False))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damaged_text_gives_clear_errors(data: st.DataObject) -> None:
    text = list(FUNCTIONS)
    for position, character in data.draw(
        st.lists(st.tuples(st.integers(0, len(text) - 1), st.characters()), min_size=1, max_size=3)
    ):
        text[position] = character
    with suppress(AmpgraphError):
        write_graph_def(read_graph_def("".join(text).encode("utf-8", errors="surrogatepass"), text=True))


def test_deeply_nested_text() -> None:
    text = 'node { name: "x" op: "Foo" attr { key: "a" value ' + '{ func { attr { key: "a" value ' * 3000
    with pytest.raises(FormatError, match="protobuf's text form"):
        read(text)


@pytest.mark.tensorflow
def test_tensorflow_in_the_same_process() -> None:
    from tensorflow.core.framework import graph_pb2  # type: ignore[import-untyped]

    data = gzip.decompress((DATA / "k3_MLP_doc_train.pb.gz").read_bytes())
    theirs = graph_pb2.GraphDef.FromString(data)
    assert graph_pb2.GraphDef.FromString(serialize(write_graph_def(read_graph_def(theirs)))) == theirs


def test_dtypes_have_the_numbers_of_the_proto() -> None:
    values = message("GraphDef").DESCRIPTOR.file.enum_types_by_name["DataType"].values_by_number
    for name in ("float16", "bfloat16", "resource", "float8_e4m3fn"):
        dtype: DType = find_dtype(name)
        assert values[dtype.tf].name == {"float16": "DT_HALF"}.get(name, f"DT_{name.upper()}")
