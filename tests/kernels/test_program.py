"""Programs: what they compute, in which order, with how much memory, and what they say about feeds that do not fit."""

import gc
import re
import threading
import tracemalloc
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph.graph import Graph, Value
from ampgraph.graph.dtypes import find_dtype
from ampgraph.graph.types import Shape, Tensor
from ampgraph.kernels.feeds import random_feeds
from ampgraph.kernels.memory import measure_memory
from ampgraph.kernels.registry import find_kernel

from .one_node import run_op

BF16 = find_dtype("bfloat16").numpy
FEED = np.full((2, 3), 300, np.float16)
SQUARE_ROOT = """
graph g(%x: f16[2,3]) {
  %a: f16[2,3] = Mul<T=f16>(%x, %x)
  %b: f16[2,3] = Sqrt<T=f16>(%a)
  return %b
}
"""

#: Windows, which work in memory that each thread keeps.
WINDOWS = """
graph g(%x: f32[1,4,20,20], %w: f32[4,4,3,3]) {
  %c: f32[1,4,20,20] = Conv<T=f32>(%x, %w) {pads=[1,1,1,1]}
  %p: f32[1,4,20,20] = MaxPool<T=f32>(%c) {kernel_shape=[3,3], pads=[1,1,1,1]}
  %a: f32[1,4,20,20] = AveragePool<T=f32>(%p) {kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1}
  return %a
}
"""


def chain(length: int, side: int, dtype: str = "f32") -> Graph:
    """Return ``x + x``, added to itself ``length`` times."""
    lines = [f"graph g(%x: {dtype}[{side},{side}]) {{"]
    names = ["x", *[f"v{i}" for i in range(length)]]
    lines += [f"  %{b}: {dtype}[{side},{side}] = Add<T={dtype}>(%{a}, %{a})" for a, b in pairwise(names)]
    return ag.parse_graph("\n".join([*lines, f"  return %{names[-1]}", "}"]))


# ---- honesty ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fuse", [True, False])
def test_a_float16_product_that_is_too_large_is_infinite(fuse: bool) -> None:
    result = ag.compile(ag.parse_graph(SQUARE_ROOT), fuse=fuse)({"x": FEED})["b"]
    assert result.dtype == np.float16
    assert np.isposinf(result).all()


@pytest.mark.parametrize("low", ["f16", "bf16"])
def test_every_node_rounds_once(low: str) -> None:
    graph = ag.parse_graph(f"""
graph g(%x: {low}[50,40], %w: {low}[40,30]) {{
  %p: {low}[50,30] = MatMul<T={low}>(%x, %w)
  %e: {low}[50,30] = Exp<T={low}>(%p)
  %s: {low}[50,1] = ReduceSum<T={low}>(%e) {{keepdims=1}}
  %q: {low}[50,30] = Div<T={low}>(%e, %s)
  return %q
}}""")
    dtype = find_dtype(low).numpy
    rng = np.random.default_rng(0)
    x, w = ((0.4 * rng.standard_normal(shape)).astype(dtype) for shape in ((50, 40), (40, 30)))
    seen: dict[str, Any] = {}
    ag.compile(graph, fuse=False)({"x": x, "w": w}, on_value=lambda value, array: seen.setdefault(value.name, array))
    assert {array.dtype for array in seen.values()} == {dtype}

    def rounded(y: Any) -> Any:
        return y.astype(np.float32).astype(dtype).astype(np.float64)

    product = rounded(x.astype(np.float64) @ w.astype(np.float64))
    assert np.mean(product == seen["p"].astype(np.float64)) > 0.99  # float32 sums may fall on the other side of a tie
    exact = seen["p"].astype(np.float64)
    assert np.mean(rounded(np.exp(exact)) == seen["e"].astype(np.float64)) > 0.99
    quotient = seen["e"].astype(np.float64) / seen["s"].astype(np.float64)
    assert (rounded(quotient) == seen["q"].astype(np.float64)).all()


def test_keeping_float16_as_float32_between_nodes_changes_no_bit() -> None:
    graph = ag.parse_graph("""
graph g(%x: f16[64,64]) {
  %a: f16[64,64] = Mul<T=f16>(%x, %x)
  %b: f16[64,64] = Exp<T=f16>(%a)
  %c: f16[64,64] = Sub<T=f16>(%b, %a)
  %t: f16[64,64] = Transpose<T=f16>(%c) {perm=[1,0]}
  %d: f16[64,64] = Add<T=f16>(%t, %b)
  return %d, %a
}""")
    x = (np.random.default_rng(1).standard_normal((64, 64)) * 10.0 ** np.linspace(-4, 1, 64)).astype(np.float16)
    fused, plain = (ag.compile(graph, fuse=fuse)({"x": x}) for fuse in (True, False))
    for name in fused:
        assert fused[name].dtype == np.float16
        assert (fused[name].view(np.uint16) == plain[name].view(np.uint16)).all()


# ---- schedule and memory ------------------------------------------------------------------------------------------------


def test_values_are_dropped_at_their_last_use() -> None:
    side, length = 512, 30
    size = 4 * side * side
    graph = chain(length, side)
    program = ag.compile(graph, fuse=False)
    x = np.ones((side, side), np.float32)
    program({"x": x})
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = program({"x": x})
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert float(result[f"v{length - 1}"][0, 0]) == 2.0**length
    assert peak < 1.3 * 2 * size  # an operand and a result


@pytest.mark.parametrize("fuse", [True, False])
def test_values_take_little_more_than_they_must(fuse: bool) -> None:
    """A block of attention with views, branches and a residual."""
    t, n, d = 96, 8, 32
    graph = ag.parse_graph(f"""
graph g(%x: f32[{n},{t},{3 * d}]) {{
  %a: f32[{n},{t},{3 * d}] = Mul<T=f32>(%x, %x)
  %q: f32[{n},{t},{d}], %k: f32[{n},{t},{d}], %v: f32[{n},{t},{d}] = Split<T=f32>(%a) {{axis=2}}
  %kt: f32[{n},{d},{t}] = Transpose<T=f32>(%k) {{perm=[0,2,1]}}
  %s: f32[{n},{t},{t}] = MatMul<T=f32>(%q, %kt)
  %p: f32[{n},{t},{t}] = Softmax<T=f32>(%s) {{axis=2}}
  %o: f32[{n},{t},{d}] = MatMul<T=f32>(%p, %v)
  %r: f32[{n},{t},{d}] = Add<T=f32>(%o, %q)
  %z: f32[{n},{t},{d}] = Relu<T=f32>(%r)
  return %z
}}""")
    x = np.random.default_rng(0).standard_normal((n, t, 3 * d)).astype(np.float32)
    memory = measure_memory(ag.compile(graph, fuse=fuse), {"x": x})
    scores, split = 4 * n * t * t, 4 * n * t * 3 * d
    assert memory.least == 2 * scores + split * 2 // 3, "scores, their softmax, q and v"
    assert memory.least <= memory.values <= 1.3 * memory.least
    assert memory.scratch < scores


def test_a_small_part_does_not_keep_the_whole() -> None:
    graph = Graph("g", opsets={"": 9})
    value = graph.add("Exp", [graph.add_input("x", find_dtype("float32"), Shape((64, 4096)))], domain="").outputs[0]
    first = graph.add("Slice", [value], domain="", attributes={"starts": [0], "ends": [1]}).outputs[0]
    wide = graph.add("Tile", [first, graph.add_input("n", find_dtype("int64"), Shape((2,)))], domain="").outputs[0]
    graph.outputs, graph.output_names = [graph.add("Add", [wide, first], domain="").outputs[0]], ["y"]
    feeds = {"x": np.zeros((64, 4096), np.float32), "n": np.array([64, 1])}
    memory = measure_memory(ag.compile(graph), feeds)
    assert memory.values < 1.3 * memory.least
    assert (ag.compile(graph)(feeds)["y"] == 2).all()


def test_a_dead_operand_is_written_over_but_never_what_others_hold() -> None:
    graph = ag.parse_graph("""
graph g(%x: f32[100,100]) {
  %a: f32[100,100] = Neg<T=f32>(%x)
  %v: f32[10000] = Flatten<T=f32>(%a) {axis=0}
  %b: f32[100,100] = Exp<T=f32>(%a)
  %c: f32[100,100] = Sqrt<T=f32>(%b)
  %d: f32[100,100] = Relu<T=f32>(%x)
  return %v, %c, %d
}""")
    x = np.random.default_rng(0).standard_normal((100, 100)).astype(np.float32)
    kept = x.copy()
    result = ag.compile(graph)({"x": x})
    assert (x == kept).all()
    assert (result["v"].reshape(100, 100) == -x).all()
    np.testing.assert_allclose(result["c"], np.exp(-x / 2), rtol=1e-6)
    assert (result["d"] == np.maximum(x, 0)).all()


@pytest.mark.parametrize("text", [SQUARE_ROOT, WINDOWS])
def test_a_thousand_runs_do_not_grow(text: str) -> None:
    graph = ag.parse_graph(text)
    program, feeds = ag.compile(graph), random_feeds(graph)
    for _ in range(20):
        program(feeds)
    gc.collect()
    grown = []
    tracemalloc.start()
    try:
        for _ in range(3):  # what another thread takes meanwhile does not come every time
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(1000):
                program(feeds)
            gc.collect()
            grown.append(tracemalloc.get_traced_memory()[0] - before)
            if grown[-1] < 20_000:
                break
    finally:
        tracemalloc.stop()
    assert min(grown) < 20_000


def test_threads_do_not_disturb_each_other() -> None:
    program = ag.compile(chain(40, 96, "f16"))
    feeds = [np.full((96, 96), 2.0**-k, np.float16) for k in range(40, 56)]
    alone = [program({"x": x})["v39"] for x in feeds]
    together: list[Any] = [None] * len(feeds)

    def work(i: int) -> None:
        for _ in range(5):
            together[i] = program({"x": feeds[i]})["v39"]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(feeds))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((a == b).all() for a, b in zip(alone, together, strict=True))


def test_threads_do_not_share_the_memory_that_kernels_keep() -> None:
    program = ag.compile(ag.parse_graph(WINDOWS))
    rng = np.random.default_rng(0)
    feeds = [
        {"x": rng.standard_normal((1, 4, 20, 20)).astype(np.float32), "w": rng.standard_normal((4, 4, 3, 3)).astype(np.float32)}
        for _ in range(8)
    ]
    alone = [program(feed)["a"] for feed in feeds]
    wrong: list[int] = []

    def work(i: int) -> None:
        wrong.extend(i for _ in range(30) if (program(feeds[i])["a"] != alone[i]).any())

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(feeds))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_long_chain_needs_no_recursion() -> None:
    result = ag.compile(chain(5000, 1))({"x": np.zeros((1, 1), np.float32)})
    assert result["v4999"].tolist() == [[0.0]]


def test_what_follows_from_constants_is_computed_once() -> None:
    graph = Graph("g", opsets={"": 21})
    x = graph.add_input("x", find_dtype("float16"), Shape((2, 2)))
    weight = graph.add("Constant", domain="", name="w", attributes={"value": Tensor.of(np.eye(2, dtype=np.float16))})
    turned = graph.add("Transpose", [weight.outputs[0]], domain="", name="t")
    product = graph.add("MatMul", [x, turned.outputs[0]], domain="", name="p")
    graph.outputs, graph.output_names = [product.outputs[0]], ["y"]
    ran: dict[bool, list[str]] = {True: [], False: []}
    for fuse, names in ran.items():
        program = ag.compile(graph, fuse=fuse)
        for _ in range(2):
            result = program({"x": FEED[:, :2]}, on_node=lambda node, seconds, names=names: names.append(node.name))
            assert (result["y"] == FEED[:, :2]).all()
    assert ran == {True: ["p", "p"], False: ["w", "t", "p"] * 2}


def test_a_large_result_of_small_constants_is_not_kept() -> None:
    graph = Graph("g", opsets={"": 21})
    shape = graph.add("Constant", domain="", name="s", attributes={"value": Tensor.of(np.array([1 << 20]))})
    zeros = graph.add("ConstantOfShape", [shape.outputs[0]], domain="", name="z")
    graph.outputs, graph.output_names = [zeros.outputs[0]], ["y"]
    ran: list[str] = []
    ag.compile(graph)({}, on_node=lambda node, seconds: ran.append(node.name))
    assert ran == ["z"]


def test_constants_cannot_be_written_to() -> None:
    graph = Graph("g", opsets={"": 21})
    data = np.ones(3, np.float32)
    constant = graph.add("Constant", domain="", attributes={"value": Tensor.of(data)})
    graph.outputs, graph.output_names = [constant.outputs[0]], ["y"]
    result = ag.compile(graph)({})["y"]
    with pytest.raises(ValueError, match="read-only"):
        result += 1
    assert data.flags.writeable


def test_hooks_see_every_value_and_node() -> None:
    values: list[tuple[Value, Any]] = []
    nodes: list[str] = []
    program = ag.compile(ag.parse_graph(SQUARE_ROOT), fuse=False)
    program(
        {"x": FEED},
        on_value=lambda value, array: values.append((value, array)),
        on_node=lambda node, seconds: nodes.append(f"{node.op_type} {seconds >= 0}"),
    )
    assert [(value.name, array.shape) for value, array in values] == [("a", (2, 3)), ("b", (2, 3))]
    assert nodes == ["Mul True", "Sqrt True"]


# ---- functions and defaults -----------------------------------------------------------------------------------------------


def test_functions_are_run_with_the_attributes_and_dtypes_of_each_call() -> None:
    from onnx import AttributeProto, TensorProto, helper

    from ampgraph.graph.formats.onnx import read_model

    node = helper.make_node("LeakyRelu", ["a"], ["b"])
    node.attribute.append(AttributeProto(name="alpha", ref_attr_name="slope", type=AttributeProto.FLOAT))
    function = helper.make_function("own", "leak", ["a"], ["b"], [node], [helper.make_opsetid("", 21)], ["slope"])
    nodes = [
        helper.make_node("leak", ["x"], ["y"], domain="own", slope=0.5),
        helper.make_node("leak", ["h"], ["z"], domain="own", slope=0.25),
    ]
    infos = [
        helper.make_tensor_value_info(name, dtype, [2])
        for name, dtype in (
            ("x", TensorProto.FLOAT),
            ("h", TensorProto.FLOAT16),
            ("y", TensorProto.FLOAT),
            ("z", TensorProto.FLOAT16),
        )
    ]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    model = helper.make_model(helper.make_graph(nodes, "g", infos[:2], infos[2:]), functions=[function], opset_imports=opsets)
    program = ag.compile(read_model(model.SerializeToString()))
    found = program({"x": np.array([-2, 2], np.float32), "h": np.array([-2, 2], np.float16)})
    assert found["y"].tolist() == [-1, 2]
    assert found["z"].tolist() == [-0.5, 2]
    assert found["z"].dtype == np.float16


def test_inputs_with_a_default_may_be_left_out() -> None:
    graph = Graph("g", opsets={"": 21})
    x = graph.add_input("x", find_dtype("float32"), Shape((2,)))
    x.producer.attributes = {"default": Tensor.of(np.array([1, 2], np.float32))}
    graph.outputs, graph.output_names = [graph.add("Neg", [x], domain="").outputs[0]], ["y"]
    program = ag.compile(graph)
    assert program({})["y"].tolist() == [-1, -2]
    assert program({"x": np.array([5, 6], np.float32)})["y"].tolist() == [-5, -6]


# ---- errors ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({}, "Input 'x' (float16[2,3]) of graph 'g' has no feed."),
        ({"x": FEED, "y": FEED}, "Feed 'y' is no input of graph 'g': x."),
        ({"xx": FEED}, "Did you mean 'x'?"),
        ({"x": FEED.astype(np.float32)}, "Input 'x' takes float16. Received: float32, of shape [2, 3]"),
        ({"x": FEED.astype(np.int64)}, "Input 'x' takes float16. Received: int64"),
        ({"x": FEED.astype(BF16)}, "Input 'x' takes float16. Received: bfloat16"),
        ({"x": FEED[0]}, "Input 'x' takes shape [2,3]. Received: [3]"),
        ({"x": FEED.T}, "Input 'x' takes shape [2,3]. Received: [3, 2]"),
        ({"x": FEED[:0]}, "Input 'x' takes shape [2,3]. Received: [0, 3]"),
        ({"x": None}, "Input 'x' takes an array. Received: NoneType"),
        ({"x": [["a"] * 3] * 2}, "Input 'x' takes an array of float16[2,3]"),
        ({"x": [[1, 2, 3], [4]]}, "Input 'x' takes an array of float16[2,3]"),
        ({"x": np.full((2, 3), "1")}, "Input 'x' takes float16. Received: <U1"),
        ({"x": np.full((2, 3), None)}, "Input 'x' takes float16. Received: object"),
        ({"x": np.ma.masked_equal(FEED, 300)}, "Input 'x' takes an array without a mask; fill it first. Received: MaskedArray"),
        (
            {"x": [[True, 1j, 2]] * 2},
            "Input 'x' takes an array of float16[2,3]: what is given makes one of complex128. Received: list",
        ),
        ({3: FEED}, "Feed 3 is no input of graph 'g': x."),
        (None, "Feeds are arrays by the names of the inputs, a mapping. Received: NoneType"),
        ([FEED], "Feeds are arrays by the names of the inputs, a mapping. Received: list"),
    ],
)
def test_feeds_that_do_not_fit_are_named(feeds: Any, message: str) -> None:
    program = ag.compile(ag.parse_graph(SQUARE_ROOT))
    with pytest.raises(ag.KernelError, match=re.escape(message)):
        program(feeds)


def test_feeds_that_are_unusual_but_fit() -> None:
    program = ag.compile(ag.parse_graph(SQUARE_ROOT))
    assert program({"x": [[1, 2, 3], [4, 5, 6]]})["b"].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert np.isnan(program({"x": np.full((2, 3), np.nan, np.float16)})["b"]).all()
    assert program({"x": np.full((4, 6), 2, np.float16)[::2, ::2]})["b"].tolist() == [[2, 2, 2]] * 2
    assert program({"x": np.full((2, 3), 2, np.float16).view(np.matrix)})["b"].tolist() == [[2, 2, 2]] * 2
    assert type(program({"x": np.full((2, 3), 2, np.float16).view(np.recarray)})["b"]) is np.ndarray
    swapped = np.full((2, 3), 2, np.float16).astype(">f2")
    assert program({"x": swapped})["b"].tolist() == [[2, 2, 2]] * 2


def identity(dtype: str) -> Any:
    """Return a program that hands its input, of any shape, on."""
    return ag.compile(ag.parse_graph(f"graph g(%x: {dtype}) {{\n  %y: {dtype} = Identity<V={dtype}>(%x)\n  return %y\n}}"))


@pytest.mark.parametrize(
    ("dtype", "numbers", "wanted"),
    [
        ("i64", [1, True], [1, 1]),
        ("i64", [2**63 - 1], [2**63 - 1]),
        ("u8", [255], [255]),
        ("i4", [-8, 7], [-8, 7]),
        ("f16", [1, 2.5, True], [1, 2.5, 1]),
        ("bf16", [1 + 2.0**-8 + 2.0**-30], [1 + 2.0**-7]),
        ("bool", [True], [True]),
        ("i64", [], []),
        ("str", ["a", "bc"], ["a", "bc"]),
    ],
)
def test_lists_become_arrays(dtype: str, numbers: list[Any], wanted: list[Any]) -> None:
    result = identity(dtype)({"x": numbers})["y"]
    assert result.dtype == find_dtype(dtype).numpy
    assert result.tolist() == wanted


@pytest.mark.parametrize(
    ("dtype", "numbers"),
    [
        ("i64", [1.0]),
        ("i64", [2**63]),
        ("i64", [2**70]),
        ("u8", [256]),
        ("u8", [-1]),
        ("i4", [8]),
        ("bool", [1]),
        ("f32", [1j]),
        ("f32", ["1"]),
        ("str", [1.5]),
        ("str", ["a", None]),
    ],
)
def test_lists_of_another_kind_are_refused(dtype: str, numbers: list[Any]) -> None:
    with pytest.raises(ag.KernelError, match="Input 'x' takes"):
        identity(dtype)({"x": numbers})


def test_what_is_no_graph_is_refused() -> None:
    wrong: Any = SQUARE_ROOT
    for use in (ag.compile, ag.measure, lambda graph: ag.compare(graph, ag.parse_graph(SQUARE_ROOT))):
        with pytest.raises(ag.KernelError, match=r"A program is made of a Graph.*Received: str"):
            use(wrong)


def test_sizes_with_a_name_and_unknown_ones_are_free() -> None:
    graph = ag.parse_graph("graph g(%x: f32[n,?]) {\n  %y: f32[n,?] = Neg<T=f32>(%x)\n  return %y\n}")
    program = ag.compile(graph)
    assert program({"x": np.zeros((0, 7), np.float32)})["y"].shape == (0, 7)
    with pytest.raises(ag.KernelError, match=r"takes shape \[n,\?\]. Received: \[7\]"):
        program({"x": np.zeros(7, np.float32)})


def test_a_missing_kernel_is_named_with_its_node_and_dtypes() -> None:
    text = "graph g(%x: f32[2]) {\n  %y: f32[2] = tf.Sofmax<T=f32>(%x)\n  %z = own.Thing(%x)\n  return %y, %z\n}"
    with pytest.raises(
        ag.KernelError, match=r"Node 'y' \(Sofmax\) on \(float32\) cannot run: op 'tf:Sofmax' has no kernel"
    ) as error:
        ag.compile(ag.parse_graph(text))
    assert "Neither have: own:Thing." in str(error.value)


def test_what_a_kernel_cannot_compute_names_the_node() -> None:
    graph = ag.parse_graph(
        'graph g(%x: f32[?,?], %w: f32[?,?]) {\n  %y: f32[?,?] = MatMul<T=f32>(%x, %w) name="product"\n  return %y\n}'
    )
    with pytest.raises(ag.KernelError, match=r"Node 'product' \(MatMul\) on \(float32, float32\) failed: ValueError"):
        ag.compile(graph)({"x": np.ones((2, 3), np.float32), "w": np.ones((2, 3), np.float32)})


@pytest.mark.parametrize(
    ("op", "attribute"),
    [("RandomNormal", "shape"), ("Concat", "axis"), ("Einsum", "equation"), ("MaxPool", "kernel_shape"), ("Loop", "body")],
)
def test_an_attribute_that_is_required_is_named(op: str, attribute: str) -> None:
    operands = [] if op in ("RandomNormal", "Loop") else [np.ones((1, 1, 2), np.float32)]
    with pytest.raises(ag.KernelError, match=rf"Node '{op}' \({op}\) has no attribute '{attribute}'"):
        run_op(op, *operands)


@pytest.mark.parametrize(("op", "message"), [("Constant", "one of the attributes that say its value"), ("Cast", "nothing says")])
def test_a_value_or_dtype_that_nothing_says(op: str, message: str) -> None:
    with pytest.raises(ag.KernelError, match=rf"Node '{op}' \({op}\) .* failed: {op}.*{message}"):
        run_op(op, *([np.ones(2, np.float32)] if op == "Cast" else []))


@pytest.mark.parametrize("device", ["tpu", "gpu:x", "cpu:1", "auto:0", "", 3, None])
def test_unknown_devices(device: Any) -> None:
    with pytest.raises(ag.KernelError, match="A device is 'cpu', 'gpu', 'gpu:N' or 'auto'"):
        ag.compile(ag.parse_graph(SQUARE_ROOT), device)


def test_auto_runs_somewhere() -> None:
    assert ag.compile(ag.parse_graph(SQUARE_ROOT), "auto").device.startswith(("cpu", "gpu"))


def test_every_kernel_is_found_by_its_name() -> None:
    relu, none = find_kernel("", "Relu"), find_kernel("", "Nothing")
    assert relu is not None
    assert none is None
