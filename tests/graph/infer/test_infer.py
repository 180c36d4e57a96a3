"""Inference over whole graphs: computed shapes, loops, functions, stated shapes, errors, size."""

import contextlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ampgraph.graph import FunctionRef, Graph, GraphError, Node, Shape, Tensor, Value, find_dtype
from ampgraph.graph.dtypes import DTYPES, bool_, float32, int32, variant
from ampgraph.graph.infer import infer, infer_dtypes, infer_shapes
from ampgraph.graph.infer.engine import RULES
from ampgraph.graph.schemas import tf

F32 = {"dtype": float32}


def const(graph: Graph, value: Any, dtype: str = "int32") -> Value:
    return graph.add("Const", attributes={"value": Tensor.of(value, dtype)}).outputs[0]


def only(node: Node) -> Value:
    (value,) = node.outputs
    return value


def list_types(name: str, *dtypes: Any) -> dict[str, Any]:
    return {f"{name}[{i}]": dtype for i, dtype in enumerate(dtypes)}


# ---- dtypes ----------------------------------------------------------------------------------------------------------


def test_missing_types_follow_from_operands() -> None:
    graph = Graph()
    x = graph.add_input("x", None)
    relu = graph.add("Relu", [x])
    cast = graph.add("Cast", [relu.outputs[0]], types={"DstT": find_dtype("f16")})
    assert relu.types == {}
    x.producer.types = {"T": find_dtype("f64")}
    assert infer_dtypes(graph) == [relu, cast]
    assert relu.types == {"T": find_dtype("f64")}
    assert cast.types == {"SrcT": find_dtype("f64"), "DstT": find_dtype("f16")}
    assert infer_dtypes(graph) == []


def test_stated_types_stay() -> None:
    graph = Graph()
    x = graph.add_input("x", find_dtype("f64"))
    relu = graph.add("Relu", [x], types={"T": float32})
    assert infer_dtypes(graph) == []
    assert relu.types == {"T": float32}


# ---- shapes that are computed ----------------------------------------------------------------------------------------


def test_reshape_to_a_shape_that_is_computed() -> None:
    """x -> Reshape(x, [Shape(x)[0], 4 * 16])."""
    graph = Graph()
    x = graph.add_input("x", float32, Shape(("batch", 4, 16)))
    shape = only(graph.add("Shape", [x]))
    attributes = {"shrink_axis_mask": 1}
    rows = only(
        graph.add("StridedSlice", [shape, const(graph, [0]), const(graph, [1]), const(graph, [1])], attributes=attributes)
    )
    columns = only(
        graph.add("Prod", [only(graph.add("GatherV2", [shape, const(graph, [1, 2]), const(graph, 0)])), const(graph, [0])])
    )
    wanted = only(graph.add("Pack", [rows, columns], attributes={"N": 2}))
    flat = only(graph.add("Reshape", [x, wanted]))
    back = only(graph.add("Reshape", [flat, shape]))
    infer(graph)
    assert str(flat.shape) == "[batch,64]"
    assert str(back.shape) == "[batch,4,16]"


def test_gradient_of_a_broadcast_is_reduced_to_the_operand() -> None:
    graph = Graph()
    x, b = graph.add_input("x", float32, Shape((5, 3))), graph.add_input("b", float32, Shape((3,)))
    shapes = [only(graph.add("Shape", [value])) for value in (x, b)]
    axes = graph.add("BroadcastGradientArgs", shapes)
    reduced = only(graph.add("Sum", [x, axes.outputs[1]]))
    infer(graph)
    assert str(reduced.shape) == "[3]"


def test_integers_that_overflow_are_not_followed() -> None:
    graph = Graph()
    value = const(graph, 1 << 30)
    for _ in range(200):
        value = only(graph.add("Mul", [value, value]))
    filled = only(graph.add("Fill", [only(graph.add("Pack", [value], attributes={"N": 1})), const(graph, 0.0, "float32")]))
    infer(graph)
    assert str(filled.shape) == "[?]"


def test_large_and_float_constants_are_not_read() -> None:
    def refuse() -> Any:
        raise AssertionError("the constant was read")

    graph = Graph()
    large = only(graph.add("Const", attributes={"value": Tensor(int32, (65,), refuse)}))
    floats = only(graph.add("Const", attributes={"value": Tensor(float32, (2,), refuse)}))
    filled = only(graph.add("Fill", [large, const(graph, 0.0, "float32")]))
    infer(graph)
    assert (str(floats.shape), filled.shape.rank) == ("[2]", 65)


# ---- stated shapes ---------------------------------------------------------------------------------------------------


def test_stated_shapes_are_refined() -> None:
    graph = Graph()
    x = graph.add_input("x", float32, Shape((None, 3)))
    y = only(graph.add("Relu", [x]))
    y.shape = Shape((2, None))
    z = only(graph.add("Relu", [y]))
    assert infer_shapes(graph) == [y, z]
    assert (str(x.shape), str(y.shape), str(z.shape)) == ("[?,3]", "[2,3]", "[2,3]")
    assert infer_shapes(graph) == []


def test_a_stated_shape_that_contradicts() -> None:
    graph = Graph()
    x = graph.add_input("x", float32, Shape((2, 3)))
    y = only(graph.add("Relu", [x], name="y"))
    z = only(graph.add("Relu", [y], name="z"))
    z.shape = Shape((2, 4))
    with pytest.raises(
        GraphError, match=r"Value %z of node 'z' \(Relu\) in graph 'graph' is stated.*\[2,4\] and \[2,3\].*4 and 3"
    ):
        infer_shapes(graph)
    assert y.shape.dims is None, "an error leaves the graph as it was"


# ---- loops -----------------------------------------------------------------------------------------------------------


def loop(graph: Graph, start: Value, body: Callable[[Value], Value]) -> tuple[Node, Value]:
    """A loop in dataflow form around ``body``; returns the Merge and what leaves the loop."""
    attributes = {"frame_name": b"loop"}
    enter = only(graph.add("Enter", [start], attributes=attributes))
    merge = graph.add("Merge", [enter, enter], attributes={"N": 2})
    running = only(graph.add("LoopCond", [only(graph.add("Enter", [const(graph, True, "bool")], attributes=attributes))]))
    switch = graph.add("Switch", [merge.outputs[0], running])
    back = only(graph.add("NextIteration", [body(switch.outputs[1])]))
    graph.set_input(merge, 1, back)
    return merge, only(graph.add("Exit", [switch.outputs[0]]))


def test_loop_that_keeps_its_shape() -> None:
    graph = Graph()
    x = graph.add_input("x", float32, Shape(("n", 3)))
    merge, result = loop(graph, x, lambda value: only(graph.add("Tanh", [value])))
    infer(graph)
    assert (str(merge.outputs[0].shape), str(merge.outputs[1].shape), str(result.shape)) == ("[n,3]", "[]", "[n,3]")


def test_loop_that_grows_in_one_dimension() -> None:
    graph = Graph()
    x = graph.add_input("x", float32, Shape((0, 3)))
    row = graph.add_input("row", float32, Shape((1, 3)))
    axis = const(graph, 0)
    _, result = loop(graph, x, lambda value: only(graph.add("ConcatV2", [value, row, axis], attributes={"N": 2})))
    infer(graph)
    assert str(result.shape) == "[?,3]"


def test_loop_that_grows_in_rank() -> None:
    graph = Graph()
    x = graph.add_input("x", float32, Shape((3,)))
    axis = const(graph, 0)
    _, result = loop(graph, x, lambda value: only(graph.add("ExpandDims", [value, axis])))
    infer(graph)
    assert result.shape.dims is None


def test_counter_of_a_loop_is_no_constant() -> None:
    """A slice at the first value of the counter would be wrong for a dimension of 0."""
    graph = Graph()
    x = graph.add_input("x", float32, Shape((0, 3)))
    one, attributes = const(graph, 1), {"shrink_axis_mask": 1}

    def body(counter: Value) -> Value:
        index = only(graph.add("Pack", [counter], attributes={"N": 1}))
        row = only(graph.add("StridedSlice", [x, index, index, const(graph, [1])], attributes=attributes, name="row"))
        assert row.producer.name == "row"
        return only(graph.add("AddV2", [counter, one]))

    _, result = loop(graph, const(graph, 0), body)
    infer(graph)
    assert (str(graph.value("row").shape), str(result.shape)) == ("[3]", "[]")


def test_many_loops_in_a_row_are_linear() -> None:
    graph = Graph()
    value = graph.add_input("x", float32, Shape((0, 3)))
    row, axis = graph.add_input("row", float32, Shape((1, 3))), const(graph, 0)
    for _ in range(300):
        _, value = loop(graph, value, lambda item: only(graph.add("ConcatV2", [item, row, axis], attributes={"N": 2})))
    start = time.process_time()
    infer(graph)
    assert str(value.shape) == "[?,3]"
    assert time.process_time() - start < 5


# ---- functions -------------------------------------------------------------------------------------------------------


def function(graph: Graph, name: str, inputs: int, build: Callable[..., Value], dtype: Any = float32) -> Graph:
    body = Graph(name, graph.functions)
    operands = [body.add_input(f"arg{i}", dtype) for i in range(inputs)]
    body.outputs, body.output_names = [build(body, *operands)], ["y"]
    graph.functions[name] = body
    return body


def test_function_is_inferred_for_its_operands() -> None:
    graph = Graph()
    body = function(graph, "matmul", 2, lambda g, a, b: only(g.add("MatMul", [a, b], name="product")))
    x, w = graph.add_input("x", float32, Shape(("n", 3))), graph.add_input("w", float32, Shape((3, 4)))
    types = {**list_types("Tin", float32, float32), **list_types("Tout", float32)}
    call = graph.add("PartitionedCall", [x, w], attributes={"f": FunctionRef("matmul")}, types=types)
    direct = graph.add("matmul", [graph.add_input("z", float32, Shape((7, 3))), w])
    infer(graph)
    assert (str(call.outputs[0].shape), str(direct.outputs[0].shape)) == ("[n,4]", "[7,4]")
    assert str(body.value("product").shape) == "[?,4]", "the body's shapes hold for every call"


def test_function_called_with_too_few_operands() -> None:
    graph = Graph()
    function(graph, "f", 2, lambda g, a, b: only(g.add("MatMul", [a, b])))
    x = graph.add_input("x", float32)
    types = {**list_types("Tin", float32), **list_types("Tout", float32)}
    graph.add("PartitionedCall", [x], attributes={"f": FunctionRef("f")}, types=types, name="call")
    with pytest.raises(GraphError, match=r"'call' \(PartitionedCall\).*function 'f' takes 2 operands, not 1"):
        infer(graph)


def test_branches_are_joined() -> None:
    graph = Graph()
    function(graph, "same", 1, lambda g, a: only(g.add("Relu", [a])))
    function(graph, "twice", 1, lambda g, a: only(g.add("Tile", [a, const(g, [2, 1])])))
    x, condition = graph.add_input("x", float32, Shape((2, 3))), graph.add_input("c", bool_, Shape(()))
    types = {**list_types("Tin", float32), **list_types("Tout", float32)}
    attributes = {"then_branch": FunctionRef("same"), "else_branch": FunctionRef("twice")}
    result = only(graph.add("If", [condition, x], attributes=attributes, types=types))
    infer(graph)
    assert str(result.shape) == "[?,3]"


@pytest.mark.parametrize(("grow", "expected"), [(False, "[2,3]"), (True, "[?,3]")])
def test_while(grow: bool, expected: str) -> None:
    graph = Graph()
    step = (lambda g, a: only(g.add("Tile", [a, const(g, [2, 1])]))) if grow else (lambda g, a: only(g.add("Relu", [a])))
    function(graph, "body", 1, step)
    function(graph, "cond", 1, lambda g, a: const(g, True, "bool"))
    x = graph.add_input("x", float32, Shape((2, 3)))
    attributes = {"body": FunctionRef("body"), "cond": FunctionRef("cond")}
    result = only(graph.add("While", [x], attributes=attributes, types=list_types("T", float32)))
    infer(graph)
    assert str(result.shape) == expected


def test_tensor_list_through_a_loop_keeps_the_shape_of_its_elements() -> None:
    graph = Graph()
    item = graph.add_input("item", float32, Shape((4, 5)))
    reserve = graph.add(
        "TensorListReserve", [const(graph, [4, 5]), const(graph, 7)], types={"element_dtype": float32, "shape_type": int32}
    )

    def body(handle: Value) -> Value:
        return only(graph.add("TensorListSetItem", [handle, const(graph, 0), item], types={"element_dtype": float32}))

    _, handle = loop(graph, only(reserve), body)
    stacked = only(graph.add("TensorListStack", [handle, const(graph, -1)], types={"element_dtype": float32}))
    infer(graph)
    assert handle.dtype is variant
    assert (str(handle.shape), str(stacked.shape)) == ("[]", "[7,4,5]")


def test_recursion_ends() -> None:
    graph = Graph()
    body = Graph("f", graph.functions)
    graph.functions["f"] = body
    argument = body.add_input("a", float32)
    types = {**list_types("Tin", float32), **list_types("Tout", float32)}
    again = body.add("PartitionedCall", [argument], attributes={"f": FunctionRef("f")}, types=types)
    body.outputs, body.output_names = [only(again)], ["y"]
    x = graph.add_input("x", float32, Shape((2, 3)))
    result = only(graph.add("PartitionedCall", [x], attributes={"f": FunctionRef("f")}, types=types))
    infer(graph)
    assert result.shape.dims is None
    assert argument.shape.dims is None, "the inner call may have other operands"


def test_functions_that_call_each_other_many_levels_deep_are_linear() -> None:
    graph = Graph()
    types = {**list_types("Tin", float32), **list_types("Tout", float32)}
    function(graph, "f0", 1, lambda g, a: only(g.add("Relu", [a])))
    for level in range(1, 300):

        def twice(g: Graph, a: Value, callee: str = f"f{level - 1}") -> Value:
            for _ in range(2):
                a = only(g.add("PartitionedCall", [a], attributes={"f": FunctionRef(callee)}, types=types))
            return a

        function(graph, f"f{level}", 1, twice)
    x = graph.add_input("x", float32, Shape((2, 3)))
    near = only(graph.add("PartitionedCall", [x], attributes={"f": FunctionRef("f20")}, types=types))
    graph.add("PartitionedCall", [x], attributes={"f": FunctionRef("f299")}, types=types)
    start = time.process_time()
    infer(graph)
    assert str(near.shape) == "[2,3]"
    assert time.process_time() - start < 5


# ---- size and robustness ---------------------------------------------------------------------------------------------


def test_deep_chain() -> None:
    graph = Graph()
    value = graph.add_input("x", float32, Shape(("n", 3)))
    for i in range(20_000):
        value = only(graph.add("Relu", [value], name=f"r{i}"))
    start = time.process_time()
    infer(graph)
    assert str(value.shape) == "[n,3]"
    assert time.process_time() - start < 5


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_broadcasting_equals_numpy(data: st.DataObject) -> None:
    graph = Graph()
    values = []
    for i in range(3):
        dims = data.draw(st.lists(st.sampled_from([1, 2, 3]), max_size=4))
        values.append((graph.add_input(f"x{i}", float32, Shape(dims)), np.broadcast_to(np.float32(0), dims)))
    fails = False
    for _ in range(data.draw(st.integers(1, 6))):
        (x, a), (y, b) = (data.draw(st.sampled_from(values)) for _ in range(2))
        node = graph.add(data.draw(st.sampled_from(["Add", "Mul", "Maximum", "SquaredDifference"])), [x, y])
        try:
            values.append((only(node), np.broadcast_to(np.float32(0), np.broadcast_shapes(a.shape, b.shape))))
        except ValueError:
            fails = True
            break
    if fails:
        with pytest.raises(GraphError, match="do not broadcast"):
            infer(graph)
    else:
        infer(graph)
        for value, array in values:
            assert value.shape.dims == array.shape


DIMS = st.one_of(st.none(), st.lists(st.one_of(st.integers(0, 4), st.just(2**62), st.none(), st.just("n")), max_size=5))
NUMBERS = st.one_of(st.integers(-3, 5), st.just(2**63 - 1))
OPS = sorted(op for op in RULES if tf.find(op) is not None)


def attribute(kind: str) -> st.SearchStrategy[Any]:
    """Any value of a kind of attribute, likely or not."""
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "int": NUMBERS,
        "bool": st.booleans(),
        "float": st.just(1.0),
        "string": st.sampled_from([b"", b"SAME", b"VALID", b"EXPLICIT", b"NHWC", b"NCHW", b"NDHWC", b"ab,bc->ac", b"\xff"]),
        "shape": DIMS.map(Shape),
        "list(int)": st.lists(NUMBERS, max_size=8),
        "list(shape)": st.lists(DIMS.map(Shape), max_size=3),
    }
    return kinds.get(kind, st.none())


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_nonsense_is_an_error_and_never_a_crash(data: st.DataObject) -> None:
    op = data.draw(st.sampled_from(OPS))
    schema = tf.find(op)
    assert schema is not None
    numbers = {formal.number for formal in (*schema.inputs, *schema.outputs) if formal.number}
    attributes = {name: data.draw(st.integers(0, 3)) for name in numbers}
    for name, spec in schema.attributes.items():
        if name not in numbers and data.draw(st.booleans()):
            value = data.draw(attribute(data.draw(st.sampled_from([spec.kind] * 5 + ["string", "int"]))))
            if value is not None:
                attributes[name] = value
    graph = Graph()
    types: dict[str, Any] = {}
    for name, variable in schema.type_vars.items():
        keys = [f"{name}[{i}]" for i in range(data.draw(st.integers(0, 3)))] if variable.is_list else [name]
        types.update({key: data.draw(st.sampled_from([float32, int32, DTYPES["int64"]])) for key in keys})
    inputs = []
    for i in range(len(schema.signature(attributes, types).inputs)):
        if data.draw(st.booleans()):
            inputs.append(graph.add_input(f"x{i}", float32, Shape(data.draw(DIMS))))
        else:
            inputs.append(const(graph, data.draw(st.one_of(NUMBERS, st.lists(NUMBERS, max_size=5))), "int64"))
    graph.add(op, inputs, attributes=attributes, types=types)
    with contextlib.suppress(GraphError):
        infer_shapes(graph)
        for node in graph.nodes:
            for value in node.outputs:
                sizes = [dim for dim in value.shape.dims or () if isinstance(dim, int)]
                assert all(0 <= size < 2**63 for size in sizes)
