"""The JSON form says everything the IR knows, and reading trusts nothing."""

import copy
import gzip
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ampgraph.graph import (
    AmpgraphError,
    FormatError,
    FunctionRef,
    Graph,
    GraphError,
    Placeholder,
    Shape,
    Tensor,
    find_dtype,
)
from ampgraph.graph.formats.json import parse_json, print_json
from ampgraph.graph.formats.tensorflow import read_graph_def

DATA = Path(__file__).parents[2] / "data" / "formats"
F32, I32 = find_dtype("float32"), find_dtype("int32")


def facts(graph: Graph) -> Any:
    """Return all that the IR says of one graph, as plain comparable data."""
    positions = {node: i for i, node in enumerate(graph.all_nodes())}

    def value(v: Any) -> Any:
        return v and (positions[v.producer], v.index, v.name, v.dtype, v.shape)

    return (
        graph.name,
        graph.attributes,
        [value(v) for v in graph.inputs],
        [value(v) for v in graph.outputs],
        graph.output_names,
        [
            (
                node.op_type, node.domain, node.name, node.device, dict(node.types), dict(node.attributes), node.schema is None,
                [value(v) for v in node.inputs], [value(v) for v in node.outputs], [positions[c] for c in node.controls],
            )
            for node in graph.nodes
        ],
    )  # fmt: skip


def library(graph: Graph) -> Any:
    return {name: facts(function) for name, function in graph.functions.items()}


@pytest.mark.parametrize("path", sorted(DATA.glob("*.pb.gz")), ids=lambda path: path.name)
def test_real_models(path: Path) -> None:
    graph = read_graph_def(gzip.decompress(path.read_bytes()))
    text = print_json(graph)
    again = parse_json(text)
    assert facts(again) == facts(graph)
    assert library(again) == library(graph)
    assert list(again.functions) == list(graph.functions)
    assert all(function.functions is again.functions for function in again.functions.values())
    assert print_json(again) == text


def sample() -> Graph:
    graph = Graph("main")
    x = graph.add_input("x", F32, Shape((2, "n", None)))
    unknown = graph.add_input("u", None)
    unknown.name = "other"
    vendor = graph.add("Thing", [x, None], domain="com.vendor", name="", outputs=2)
    twin = graph.add("Thing", [vendor.outputs[1]], domain="com.vendor", name="", controls=[vendor], outputs=1)
    vendor.outputs[0].name, vendor.outputs[1].name, twin.outputs[0].name = "a", "b", "c"
    vendor.outputs[1]._dtype = find_dtype("float16")
    vendor.outputs[1].shape = Shape(())
    relu = graph.add("Relu", [x], name="relu", device="/gpu:0", controls=[x.producer, twin])
    call = graph.add("N", name="odd")
    call.attributes = {
        "i": -(2**63), "big": 2**80, "f": 0.1, "one": 1.0, "nan": float("inf"), "b": True, "none": None, "s": b"text", "raw": b"\xff\0",
        "t": "str", "d": I32, "shape": Shape((1, None, "k")), "star": Shape(None), "list": [1, 2.5, b"x", [F32]],
        "fn": FunctionRef("f", {"T": F32, "n": FunctionRef("g")}), "p": Placeholder("T"),
        "dense": Tensor.of([[1, 2], [3, 4]], "int8"), "splat": Tensor.of(np.full((100, 100), 0.25), "bfloat16"),
        "scalar": Tensor.of(7, "uint64"), "empty": Tensor.of(np.zeros((0, 2)), "float32"), "bool": Tensor.of([True, False]),
        "strings": Tensor.of(np.array([b"a", b"\xff"], object), "string"), "i4": Tensor.of([-8, 7], "int4"),
    }  # fmt: skip
    graph.outputs, graph.output_names = [relu.outputs[0], unknown], ["y", "z"]
    graph.attributes = {"producer": 3, "preserved": ["x"]}
    return graph


def test_everything_the_ir_can_say() -> None:
    graph = sample()
    text = print_json(graph)
    again = parse_json(text)
    assert facts(again) == facts(graph)
    assert print_json(again) == text
    assert type(again.node("odd").attributes["one"]) is float
    assert len(text) < 5000  # the splat is not expanded


def test_form() -> None:
    graph = Graph("g")
    x = graph.add_input("x", F32, Shape((1,)))
    graph.outputs = graph.add("Relu", [x], name="r").outputs
    graph.output_names = ["y"]
    assert json.loads(print_json(graph)) == {
        "format": "ampgraph",
        "version": 1,
        "name": "g",
        "attributes": {},
        "inputs": [{"name": "x", "dtype": "float32", "shape": [1]}],
        "nodes": [{"op": "Relu", "name": "r", "inputs": ["x"], "outputs": ["r"], "types": {"T": "float32"}}],
        "outputs": [{"name": "y", "value": "r", "dtype": "float32"}],
        "functions": {},
    }


def small() -> Any:
    graph = Graph("g")
    x = graph.add_input("x", F32)
    graph.outputs = graph.add("AddN", [x, x], name="r", attributes={"N": 2, "a": Tensor.of([1, 2], "int32")}).outputs
    graph.output_names = ["y"]
    return json.loads(print_json(graph))


CHANGES: list[tuple[list[Any], Any, str]] = [
    (["format"], "x", "not a graph of ampgraph"),
    (["version"], 2, "reads graphs of version 1. Received: 2"),
    (["name"], 1, "'name', a string. Received: 1"),
    (["nodes"], {}, "'nodes', a list"),
    (["nodes", 0], 3, "must be a JSON object. Received: 3"),
    (["nodes", 0, "inputs", 1], "z", "names a value that does not exist. Received: 'z'"),
    (["nodes", 0, "inputs", 1], 0, "names a value that does not exist. Received: 0"),
    (["nodes", 0, "inputs"], ["x"], "must have 2 inputs and 1 outputs. Received: 1 and 1"),
    (["nodes", 0, "outputs"], ["x"], "each used once. Received: 'x'"),
    (["nodes", 0, "inputs", 0], "r", "has a cycle"),
    (["nodes", 0, "types", "T"], "float33", "Unknown dtype 'float33'"),
    (["nodes", 0, "after"], [2], "waits for a node that does not exist. Received: 2"),
    (["nodes", 0, "after"], [-1], "waits for a node that does not exist. Received: -1"),
    (["nodes", 0, "attributes", "N"], 10**6, "counts 1000000 operands, but there are 3"),
    (["nodes", 0, "attributes", "N"], True, "counts operands. Received: True"),
    (["nodes", 0, "attributes", "b"], {"what": 1}, "an unknown kind. Received: {'what': 1}"),
    (["nodes", 0, "attributes", "b"], {}, "an unknown kind"),
    (["nodes", 0, "attributes", "b"], {"bytes": "?"}, "must be a base64 string"),
    (["nodes", 0, "attributes", "b"], {"float": "1"}, "nan, inf or -inf"),
    (["nodes", 0, "attributes", "b"], {"shape": [-1]}, "list of sizes, symbols and nulls"),
    (["nodes", 0, "attributes", "a", "tensor", "base64"], "AAAA", "does not store 3 bytes"),
    (["nodes", 0, "attributes", "a", "tensor", "shape"], [None], "must have a known shape"),
    (["nodes", 0, "attributes", "a", "tensor", "shape"], [2**62, 2**62], "does not store 8 bytes"),
    (["nodes", 0, "attributes", "a", "tensor", "dtype"], "resource", "has no array form"),
    (["nodes", 0, "attributes", "a"], {"tensor": {"dtype": "int8", "shape": [2**50], "splat": "AA=="}}, "does not store 1 bytes"),
    (
        ["nodes", 0, "attributes", "a"],
        {"tensor": {"dtype": "string", "shape": [2], "strings": ["a"]}},
        "needs 2 strings. Received: 1",
    ),
    (["outputs", 0, "value"], "q", "Output 'y' of graph 'g' names a value that does not exist. Received: 'q'"),
    (["outputs", 0, "dtype"], "int8", "Output 'y' of graph 'g' is float32. Received: 'int8'"),
    (["functions"], [], "'functions', an object"),
    (["functions"], {"f": {"inputs": [], "outputs": 1}}, "'outputs', a list"),
]


@pytest.mark.parametrize(("path", "value", "error"), CHANGES)
def test_senseless_json(path: list[Any], value: Any, error: str) -> None:
    data = small()
    target = data
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    with pytest.raises((FormatError, GraphError), match=error):
        parse_json(json.dumps(data))


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "1" * 10_000, "NaN", '{"format": "ampgraph"'])
def test_not_json(text: str) -> None:
    with pytest.raises(FormatError, match="JSON"):
        parse_json(text)


def test_nested_too_deeply() -> None:
    data = json.dumps(small()).replace(
        '"N": 2', '"N": 2, "deep": ' + '{"function": "f", "attributes": {"a": ' * 400 + "1" + "}}" * 400
    )
    with pytest.raises(FormatError, match="nested too deeply"):
        parse_json(data)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["x", "r", "tf", "float32", "", "AA=="]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["shape", "dtype", "name", "tensor", "function"]), inner, max_size=3),
    max_leaves=4,
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_junk_gives_clear_errors(data: st.DataObject) -> None:
    tree = copy.deepcopy(SMALL)
    target = tree
    while True:
        key = data.draw(st.sampled_from(list(target) if isinstance(target, dict) else list(range(len(target)))))
        if not isinstance(target[key], dict | list) or not target[key] or data.draw(st.booleans()):
            break
        target = target[key]
    target[key] = data.draw(JUNK)
    with suppress(AmpgraphError):
        print_json(parse_json(json.dumps(tree)))


SMALL = small()


def test_names_must_be_unique() -> None:
    graph = Graph("g")
    graph.add("Relu", [graph.add_input("x", F32)], name="x")
    with pytest.raises(FormatError, match="Two values of graph 'g' are called 'x'"):
        print_json(graph)


@pytest.mark.parametrize(
    ("value", "error"),
    [(Tensor(find_dtype("variant"), (), lambda: np.zeros(())), "a tensor of dtype variant"), (object(), "no form for a object")],
)
def test_what_has_no_json(value: Any, error: str) -> None:
    graph = Graph("g")
    graph.add("Foo", name="x", attributes={"a": value})
    with pytest.raises(FormatError, match=f"Attribute 'a' cannot be written: .*{error}"):
        print_json(graph)
