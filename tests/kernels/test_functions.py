"""Model-local functions: attributes and dtypes that their callers supply, and functions of functions."""

import inspect
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, FunctionProto, NodeProto, TensorProto, helper

import ampgraph as ag
from ampgraph.graph import FormatError, Graph
from ampgraph.graph.formats.onnx import read_model

X = np.array([1.5, -2], np.float32)
OPSETS = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]


def function(name: str, nodes: Sequence[NodeProto], attributes: Sequence[str] = ()) -> FunctionProto:
    return helper.make_function("own", name, ["a"], ["b"], nodes, OPSETS, attributes)


def model(node: NodeProto, functions: Sequence[FunctionProto], dtype: int = TensorProto.FLOAT) -> Graph:
    """Return a model of one node that calls a function."""
    infos = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]), helper.make_tensor_value_info("y", dtype, [2])]
    graph = helper.make_graph([node], "g", infos[:1], infos[1:])
    return read_model(helper.make_model(graph, functions=functions, opset_imports=OPSETS).SerializeToString())


def call(name: str, **attributes: Any) -> NodeProto:
    return helper.make_node(name, ["x"], ["y"], domain="own", **attributes)


def from_caller(node: NodeProto, name: str, source: str, kind: Any = AttributeProto.INT) -> NodeProto:
    node.attribute.append(AttributeProto(name=name, ref_attr_name=source, type=kind))
    return node


CAST = function("cast", [from_caller(helper.make_node("Cast", ["a"], ["b"]), "to", "kind")], ["kind"])
LIKE = function("like", [from_caller(helper.make_node("RandomNormalLike", ["a"], ["b"]), "dtype", "kind")], ["kind"])


@pytest.mark.parametrize(
    ("number", "dtype"), [(TensorProto.FLOAT16, "float16"), (TensorProto.BFLOAT16, "bfloat16"), (TensorProto.INT64, "int64")]
)
@pytest.mark.parametrize("fuse", [True, False])
def test_the_caller_says_the_dtype_of_a_result(number: int, dtype: str, fuse: bool) -> None:
    found = ag.compile(model(call("cast", kind=number), [CAST], number), fuse=fuse)({"x": X})["y"]
    assert found.dtype.name == dtype
    assert found.tolist() == [1 if dtype == "int64" else 1.5, -2]
    # Through one more function, which hands the attribute on.
    outer = function("outer", [from_caller(helper.make_node("cast", ["a"], ["b"], domain="own"), "kind", "way")], ["way"])
    found = ag.compile(model(call("outer", way=number), [CAST, outer], number), fuse=fuse)({"x": X})["y"]
    assert found.dtype.name == dtype


def test_a_dtype_that_the_caller_leaves_out_is_the_default() -> None:
    assert ag.compile(model(call("like"), [LIKE]))({"x": X})["y"].dtype == np.float32
    number = TensorProto.FLOAT16
    assert ag.compile(model(call("like", kind=number), [LIKE], number))({"x": X})["y"].dtype == np.float16


def test_a_cast_to_nothing_is_named() -> None:
    program = ag.compile(model(call("cast"), [CAST]))
    with pytest.raises(ag.KernelError, match=r"Node 'y' \(cast\) .* Node 'b' \(Cast\) .* nothing says the dtype of the result"):
        program({"x": X})
    with pytest.raises(ag.KernelError, match=r"Node 'b' \(Cast\) takes a dtype from the caller.* Received: to=99"):
        ag.compile(model(call("cast", kind=99), [CAST]))


def test_calls_with_other_attributes_are_other_plans() -> None:
    leak = function(
        "leak", [from_caller(helper.make_node("LeakyRelu", ["a"], ["b"]), "alpha", "slope", AttributeProto.FLOAT)], ["slope"]
    )
    nodes = [
        helper.make_node("leak", [operand], [result], domain="own", slope=slope)
        for operand, result, slope in (("a", "s", 0.5), ("s", "t", 0.25), ("t", "b", 0.5))
    ]
    assert ag.compile(model(call("all"), [leak, function("all", nodes)]))({"x": X})["y"].tolist() == [1.5, -0.125]


def tower(height: int) -> list[FunctionProto]:
    """Return functions of which each calls the one below twice."""
    functions = [function("f0", [helper.make_node("Neg", ["a"], ["b"])])]
    for i in range(1, height):
        twice = [helper.make_node(f"f{i - 1}", [a], [b], domain="own") for a, b in (("a", "t"), ("t", "b"))]
        functions.append(function(f"f{i}", twice))
    return functions


def one_call(i: int) -> FunctionProto:
    return function(f"f{i}", [helper.make_node(f"f{i - 1}", ["a"], ["b"], domain="own")])


def test_functions_of_functions_are_planned_once() -> None:
    program = ag.compile(model(call("f99"), tower(100)))  # 2**99 calls

    def stop(node: Any, seconds: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        program({"x": X}, on_node=stop)
    assert ag.compile(model(call("f4"), tower(5)))({"x": X})["y"].tolist() == X.tolist()


def test_an_error_names_the_outermost_and_the_innermost_node_only() -> None:
    functions = [function("f0", [helper.make_node("Reshape", ["a", "s"], ["b"], name="bottom")])]
    functions[0].node.insert(0, helper.make_node("Constant", [], ["s"], value_ints=[7]))
    functions += [one_call(i) for i in range(1, 50)]
    with pytest.raises(ag.KernelError, match=r"Node 'y' \(f49\) on \(float32\) failed: Node 'bottom' \(Reshape\)") as error:
        ag.compile(model(call("f49"), functions))({"x": X})
    assert str(error.value).count("failed") == 2
    with pytest.raises(FormatError, match=r"nested more than 100 deep") as deep:
        model(call("f299"), tower(300))
    assert len(str(deep.value)) < 200


def test_what_is_nested_deeper_than_the_stack_is_an_error() -> None:
    program = ag.compile(model(call("f99"), [tower(1)[0], *(one_call(i) for i in range(1, 100))]))

    def run(frames: int) -> Any:
        return run(frames - 1) if frames else program({"x": X})

    assert run(0)["y"].tolist() == (-X).tolist()
    with pytest.raises(ag.KernelError, match="nested deeper than Python's stack"):
        run(sys.getrecursionlimit() - len(inspect.stack()) - 100)
