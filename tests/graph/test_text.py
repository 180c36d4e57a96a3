"""The text form: what is printed, that parsing gives it back, and what the parser says about mistakes."""

import contextlib
import math
import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ampgraph.graph import FunctionRef, Graph, GraphError, ParseError, Placeholder, Shape, Tensor
from ampgraph.graph.dtypes import DTYPES, DType, float16, float32, int32
from ampgraph.graph.text import constants_of, parse_graph, print_graph
from tests.graph.strategies import graphs

MLP = """\
graph mlp(%x: f32[1024,64], %w: f32[?,n]) <producer=2474> {
  tf.NoOp() name="init"
  %h: f32[1024,64] = tf.MatMul<T=f32>(%x, %w) {transpose_b=true} name="dense/MatMul" device="/gpu:0" control=["init"]
  %"grad/Neg:0": f32[1024,64], %b: i32[] = vendor.SomeOp<T=f32>(%h, _, %w) {axis=1, mode="a\\x00b"}
  %c: f16 = tf.Cast<DstT=f16, SrcT=f32>(%h)
  %s: f32 = tf.Split<T=f32>(%b, %h) {num_split=1}
  return %c, loss=%b
}
function body(%y: ?) {
  %n: f32, %"n:1": f32 = tf.IdentityN<T=[f32, f32]>(%m, %m)
  %m: f32 = tf.Neg<T=f32>(%y)
  return %n
}"""


def test_canonical_text_is_printed_as_it_was_parsed() -> None:
    assert str(parse_graph(MLP)) == MLP


def test_parsing_gives_nodes_values_and_functions() -> None:
    graph = parse_graph(MLP)
    matmul = graph.node("dense/MatMul")
    assert (matmul.op_type, matmul.domain, matmul.device) == ("MatMul", "tf", "/gpu:0")
    assert dict(matmul.types) == {"T": float32}
    assert dict(matmul.attributes) == {"transpose_b": True}
    assert matmul.controls == (graph.node("init"),)
    assert matmul.outputs[0].name == "h"
    assert graph.inputs[1].shape == Shape((None, "n"))
    vendor = graph.value("b").producer
    assert vendor.name == ""
    assert vendor.inputs[1] is None
    assert graph.value("b").dtype is int32
    assert vendor.attributes["mode"] == b"a\0b"
    assert graph.output_names == ["c", "loss"]
    assert graph.attributes == {"producer": 2474}
    body = graph.functions["body"]
    assert body.value("n:1") is body.node("n").outputs[1]
    assert [node.name for node in body.nodes] == ["n", "m"]  # file order, although n reads m
    assert body.inputs[0].dtype is None


def test_types_follow_from_results_operands_and_defaults() -> None:
    graph = parse_graph(
        """
        graph g(%x: f32, %axes: i64, %later: f16) {   // comments are left out
          %sum = tf.Sum(%x, %axes)
          %max = tf.Max(%x, %fixed) %fixed = tf.Const() {value=dense<i32[1], [0]>}
          %half: f16 = tf.Cast(%sum)
          %two: f16, %"two:1": f32 = tf.PartitionedCall(%x, %half) {f=@f}
          %call = tf.f(%x)
          return %call
        }
        function f(%a: f32) { %b: bf16 = tf.Cast(%a) return %b }
        """
    )
    assert dict(graph.node("sum").types) == {"T": float32, "Tidx": DTYPES["int64"]}
    assert dict(graph.node("max").types) == {"T": float32, "Tidx": int32}
    assert dict(graph.node("half").types) == {"SrcT": float32, "DstT": float16}
    assert dict(graph.node("two").types) == {"Tin[0]": float32, "Tin[1]": float16, "Tout[0]": float16, "Tout[1]": float32}
    assert graph.value("call").dtype is DTYPES["bfloat16"]


def test_a_default_type_is_left_out_unless_an_operand_says_otherwise() -> None:
    graph = parse_graph("graph g(%x: f32, %i: i64) {\n%a: f32 = tf.Sum<T=f32, Tidx=i32>(%x, %i)\nreturn %a\n}")
    assert graph.node("a").types["Tidx"] is int32
    assert "Tidx=i32" in str(graph)
    graph = parse_graph("graph g(%x: f32, %i: i32) {\n%a: f32 = tf.Sum<T=f32, Tidx=i32>(%x, %i)\nreturn %a\n}")
    assert "Tidx" not in str(graph)


def test_an_explicit_default_attribute_is_left_out() -> None:
    graph = parse_graph("graph g(%x: f32) { %y = tf.MatMul(%x, %x) {transpose_a=false, transpose_b=true, _own=false} }")
    assert "{transpose_b=true, _own=false}" in str(graph)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(graphs(max_nodes=10))
def test_random_graphs_survive_print_and_parse(graph: Graph) -> None:
    text = print_graph(graph)
    parsed = parse_graph(text, constants_of(graph))
    assert print_graph(parsed) == text
    pairs = [(graph, parsed), *((body, parsed.functions[name]) for name, body in graph.functions.items())]
    for a, b in pairs:
        assert [(n.name, n.op_type, n.device, dict(n.types)) for n in a.nodes] == [
            (n.name, n.op_type, n.device, dict(n.types)) for n in b.nodes
        ]
        assert [[v and v.name for v in n.inputs] for n in a.nodes] == [[v and v.name for v in n.inputs] for n in b.nodes]
        assert [[c.name for c in n.controls] for n in a.nodes] == [[c.name for c in n.controls] for n in b.nodes]
        assert all(x.attr(name) == y.attr(name) for x, y in zip(a.nodes, b.nodes, strict=True) for name in x.attributes)


_floats32 = st.floats(width=32, allow_nan=False)
_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.binary(max_size=8),
    st.text(max_size=8),
    st.sampled_from(list(DTYPES.values())),
    st.builds(Placeholder, st.text(max_size=5)),
    st.builds(Shape, st.none() | st.lists(st.none() | st.integers(0, 2**40) | st.text(max_size=4), max_size=4)),
    st.builds(lambda items: Tensor.of(items, "float32"), st.lists(_floats32, max_size=4)),
)
_values = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.builds(FunctionRef, st.text(max_size=5), st.dictionaries(st.text(max_size=4), inner, max_size=3))
    ),
    max_leaves=8,
)
_names = st.text(max_size=6)


@settings(max_examples=60, deadline=None)
@given(_names, _names, _names, st.dictionaries(_names, _values, max_size=4), st.lists(_names, min_size=1, max_size=3))
def test_any_names_and_attributes_survive(
    domain: str, op: str, name: str, attributes: dict[str, object], results: list[str]
) -> None:
    """Hostile names, repeated names and nested attributes of ops nobody defined."""
    if domain in ("tf", "ampgraph"):
        domain = "other"
    graph = Graph(name)
    source = graph.add_input(results[0], float16)
    node = graph.add(op, [source, None], domain=domain, name=name, attributes=attributes, outputs=len(results), device=name)
    for value, result in zip(node.outputs, results, strict=True):
        value.name = result
    last = graph.add(op, [node.outputs[-1]], domain=domain, name=name, controls=[node, source.producer], outputs=0)
    graph.outputs, graph.output_names = [node.outputs[0]], [name]
    graph.attributes = attributes  # type: ignore[assignment]
    text = print_graph(graph)
    parsed = parse_graph(text, constants_of(graph))
    assert print_graph(parsed) == text
    twin, follower = parsed.nodes
    assert (parsed.name, twin.name, twin.op_type, twin.domain, twin.device) == (name, name, op, domain, name)
    assert dict(twin.attributes) == attributes
    assert parsed.attributes == attributes
    assert [value.name for value in twin.outputs] == results
    assert follower.inputs == [twin.outputs[-1]]
    assert follower.controls == (twin, parsed.inputs[0].producer)
    assert last.controls == (node, source.producer)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (float(np.float32(0.1)), "0.1"),
        (0.1, "0.1d"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (float(np.float32(1e-45)), "1e-45"),
        (float(np.finfo(np.float32).max), "3.4028235e+38"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
        (1e300, "1e+300d"),
    ],
)
def test_floats_print_as_the_shortest_float32(value: float, text: str) -> None:
    graph = Graph("g")
    graph.attributes["a"] = value
    assert f"<a={text}>" in str(graph)
    again = parse_graph(str(graph)).attributes["a"]
    assert np.array(again).tobytes() == np.array(value).tobytes()


def _special(dtype: DType) -> np.ndarray:
    if dtype.kind == "float":
        size = dtype.numpy.itemsize
        if size == 1:
            return np.arange(256 if dtype.bits == 8 else 16, dtype=np.uint8).view(dtype.numpy)
        bits = np.array([0, 1, 2**15, 2**15 + 1, 0x3C01, 0x7BFF, 0x7C00, 0x7C01, 0xFC00, 0x7F80, 0x7FC1, 0xFF81], np.uint64)
        return (bits << np.uint64(8 * (size - 2))).astype(f"u{size}").view(dtype.numpy)
    if dtype.kind == "complex":
        return np.array([complex(-0.0, math.inf), complex(0.1, -1e-30)], dtype.numpy)
    if dtype.kind == "bool":
        return np.array([True, False])
    if dtype.kind == "string":
        return np.array([b"", b'\xff\0"\\', "\u00e9".encode()], object)
    if dtype.name in ("int2", "int4", "uint2", "uint4"):
        info = ml_dtypes.iinfo(dtype.numpy)
        return np.array([info.min, info.max], dtype.numpy)
    return np.array([np.iinfo(dtype.numpy).min, np.iinfo(dtype.numpy).max, 1], dtype.numpy)


@pytest.mark.parametrize("dtype", [d for d in DTYPES.values() if d.kind != "handle"], ids=str)
def test_constants_keep_every_bit(dtype: DType) -> None:
    elements = _special(dtype)
    for start in range(0, len(elements), 16):
        part = elements[start : start + 16]
        graph = Graph("g")
        graph.attributes["c"] = Tensor(dtype, part.shape, lambda part=part: part)  # type: ignore[misc]
        found = parse_graph(str(graph)).attributes["c"]
        assert found.dtype is dtype
        assert found.shape == part.shape
        if dtype.kind == "string":
            assert found.array().tolist() == part.tolist()
        else:
            assert found.array().tobytes() == part.tobytes()


def test_large_constants_print_as_a_hash_and_come_back_by_it() -> None:
    graph = Graph("g")
    tensor = Tensor.of(np.arange(20, dtype=np.float32).reshape(4, 5))
    graph.add("Const", attributes={"value": tensor}, name="c")
    text = str(graph)
    key = next(iter(constants_of(graph)))
    assert f"dense<f32[4,5], #{key}>" in text
    assert parse_graph(text, constants_of(graph)).node("c").attributes["value"] is tensor
    with pytest.raises(ParseError, match=f"names the constant #{key} by its hash only; pass it in 'constants'"):
        parse_graph(text)
    other = Tensor.of(np.arange(20, dtype=np.float32))
    with pytest.raises(ParseError, match=re.escape("is f32[4, 5] here. Received: dense<f32[20]")):
        parse_graph(text, {key: other})


def test_a_constant_of_equal_elements_needs_neither_its_elements_nor_memory() -> None:
    text = "graph g() {\n  %c: f32 = tf.Const<dtype=f32>() {value=dense<f32[1048576,1048576], splat 0.5>}\n}"
    graph = parse_graph(text)
    assert str(graph) == text
    dense = Graph("g")
    dense.add("Const", attributes={"value": Tensor.of(np.full((5, 5), -0.0, np.float32))}, name="c")
    assert "dense<f32[5,5], splat -0.0>" in str(dense)
    mixed = np.zeros(20, np.float32)
    mixed[3] = -0.0
    dense.add("Const", attributes={"value": Tensor.of(mixed)}, name="d")
    assert "dense<f32[20], #" in str(dense)


def test_a_function_prints_alone_and_parses_alone() -> None:
    body = parse_graph(MLP).functions["body"]
    text = str(body)
    assert text == MLP[MLP.index("function") :]
    assert str(parse_graph(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "graph g(%hidden: f32) {\n  %y = tf.Add(%hidden, %hiden)\n  return %y\n}",
            "Node '%y' (Add) reads '%hiden' at input 1, but no node or graph input defines it. Did you mean '%hidden'?\n"
            "  at line 2, column 24:\n    %y = tf.Add(%hidden, %hiden)\n" + " " * 25 + "^",
        ),
        ("graph g(%x: f32) { return %z }", "Graph 'g' returns '%z', but no node or graph input defines it."),
        ("graph g(%x: f32, %x: f32) { }", "Value '%x' is defined twice.\n  at line 1, column 18:"),
        ('graph g() { tf.NoOp() name="a" control=["b"] }', "A control edge comes from 'b', but no node has that name."),
        ("graph g() { tf.NoOp() control=[#4] }", "Graph 'g' has 1 inputs and nodes. Received: #4"),
        ("graph g(%x: f23) { }", "Unknown dtype 'f23'. Did you mean 'f"),
        ("graph g() { %a, %b = tf.Const() {value=dense<f32[], [1.0]>} }", "Node '%a' (Const) has 1 results. Received: 2"),
        ("graph g(%x: f32) { %y: f16 = tf.Neg<T=f32>(%x) }", "Result '%y' is declared f16, but Neg gives f32."),
        ("graph g(%x: f32) { %y = tf.AddN(%x) }", "Node '%y': Op AddN needs an integer attribute 'N'"),
        ("graph g(%x: f32) { %y = tf.Neg<T=f32, T=f16>(%x) }", "Type variable 'T' is given twice."),
        ("graph g() { tf.NoOp() {a=1, a=2} }", "Attribute 'a' is given twice."),
        ("graph g() { tf.NoOp() {a=dense<f32[3], [1.0]>} }", "A constant of shape [3] has 3 elements. Received: 1"),
        ("graph g() { tf.NoOp() {a=dense<f32[9999999999,9999999999], splat 1.0>} }", "is too large"),
        ("graph g() { tf.NoOp() {a=dense<i8[1], [128]>} }", "128 does not fit int8."),
        ("graph g() { tf.NoOp() {a=dense<f16[1], [0x10000]>} }", "0x10000 has more bits than float16."),
        ("graph g() { tf.NoOp() {a=" + "[" * 100_000, "An attribute is nested more than 64 deep."),
        ("graph g() { tf.NoOp() {a=5x} }", "Expected '}'. Received: 'x'"),
        ('graph g() { tf.NoOp() {a="\\q"} }', "Unknown escape '\\q' in a string"),
        ('graph g() { tf.NoOp() {a="open} }', "Expected a string in double quotes"),
        ("graph g() {", "Expected '}'. Received: the end of the text"),
        ("graph g() { } rest", "Expected 'function NAME(...) {'. Received: 'rest'"),
        ("graph g() { } function f() { } function f() { }", "Function 'f' is defined twice."),
        ("  ", "Expected 'graph NAME(...) {'. Received: the end of the text"),
    ],
)
def test_mistakes_are_shown_where_they_stand(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=re.escape(message)) as caught:
        parse_graph(text)
    assert re.search(r"at line \d+, column \d+:\n  .*\n +\^$", str(caught.value))


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_damaged_text_parses_or_gives_a_parse_error(data: st.DataObject) -> None:
    """Nothing but a GraphError may come out of the parser."""
    start = data.draw(st.integers(0, len(MLP)))
    end = data.draw(st.integers(start, min(len(MLP), start + 20)))
    piece = data.draw(
        st.sampled_from(['"', "%", "{", "[", "]", "<", "-", "1e", "0x", "#1", "nan", "dense<", "//", "\\", "é", ""])
    )
    with contextlib.suppress(GraphError):
        parse_graph(MLP[:start] + piece + MLP[end:])


def test_long_chains_need_no_recursion() -> None:
    lines = [f"%v{i + 1} = tf.Neg(%v{i})" for i in range(5_000)]
    graph = parse_graph("graph g(%v0: f32) {\n" + "\n".join(reversed(lines)) + "\nreturn %v5000\n}")
    assert graph.value("v5000").dtype is float32
    assert len(str(graph).splitlines()) == 5_003


def test_unknown_attribute_types_are_an_error() -> None:
    graph = Graph("g")
    graph.add("NoOp", attributes={"a": {1, 2}}, name="n")
    with pytest.raises(GraphError, match="An attribute cannot be a set"):
        str(graph)
