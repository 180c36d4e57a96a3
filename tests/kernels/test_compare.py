"""Comparing graphs and measuring ranges: planted faults are found, and named first."""

import json
from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph.graph import Graph
from ampgraph.graph.dtypes import find_dtype
from ampgraph.graph.types import Shape, Tensor
from ampgraph.kernels.compare import Row
from ampgraph.kernels.feeds import random_feeds

#: A stack of layers; ``{low}`` is the dtype of what may be low, ``{exp}`` that of the exponential.
STACK = """
graph stack(%x: f32[8,8], %w: f32[8,8]) {{
  %xl: {low}[8,8] = Cast<T1=f32, T2={low}>(%x) name="cast_x"
  %wl: {low}[8,8] = Cast<T1=f32, T2={low}>(%w) name="cast_w"
  %h: {low}[8,8] = MatMul<T={low}>(%xl, %wl) name="dense"
  %s: {low}[8,8] = Mul<T={low}>(%h, %h) name="square"
  %c: {exp}[8,8] = Cast<T1={low}, T2={exp}>(%s) name="cast_s"
  %e: {exp}[8,8] = Exp<T={exp}>(%c) name="power"
  %m: {exp}[8,1] = ReduceSum<T={exp}>(%e) {{keepdims=1, axes=[1]}} name="total"
  %y: {exp}[8,8] = Div<T={exp}>(%e, %m) name="share"
  %o: f32[8,8] = Cast<T1={exp}, T2=f32>(%y) name="out"
  return %o
}}
"""
X = np.random.default_rng(3).standard_normal((8, 8)).astype(np.float32)
EYE = np.eye(8, dtype=np.float32)


def stack(low: str, exp: str) -> Graph:
    graph = ag.parse_graph(STACK.format(low=low, exp=exp))
    graph.opsets[""] = 12
    return graph


def test_graphs_that_agree_have_no_bad_value() -> None:
    found = ag.compare(stack("f32", "f32"), stack("f16", "f32"), {"x": X, "w": EYE})
    assert found.first_bad is None
    assert [row.value for row in found.rows] == ["xl", "wl", "h", "s", "c", "e", "m", "y", "o"]
    assert found.outputs == ("o",)
    assert (found.only_a, found.only_b) == (0, 0)
    product = next(row for row in found.rows if row.node == "dense")
    assert product.dtypes == ("float32", "float16")
    low = X.astype(np.float16).astype(np.float64)
    assert product.max_error == np.abs(low - X).max()
    assert product.mean_error == pytest.approx(np.abs(low - X).mean())
    assert product.norm_error == pytest.approx(np.linalg.norm(low - X) / np.linalg.norm(X))


def test_an_overflowing_layer_is_named_first() -> None:
    found = ag.compare(stack("f32", "f32"), stack("f16", "f32"), {"x": 300 * X, "w": EYE})
    assert found.first_bad is not None
    assert found.first_bad.node == "square"
    over = (np.abs(300 * X.astype(np.float64)) ** 2 >= 65520).mean()
    assert found.first_bad.overflow == pytest.approx(over, abs=0.02)
    assert found.first_bad.non_finite == found.first_bad.overflow


def test_a_wrong_list_entry_is_named_first() -> None:
    """The exponential, which belongs on the DenyList, was lowered."""
    found = ag.compare(stack("f32", "f32"), stack("f16", "f16"), {"x": 2 * X, "w": EYE})
    assert found.first_bad is not None
    assert (found.first_bad.node, found.first_bad.op) == ("power", "Exp")


def normalization(dtype: str) -> Graph:
    """Return ``x / sqrt(x * x + 1e-12)`` with the epsilon as an initializer."""
    wanted = find_dtype(dtype)
    graph = Graph("norm", opsets={"": 21})
    x = graph.add_input("x", wanted, Shape((4,)))
    epsilon = graph.add(
        "Initializer",
        domain="ampgraph",
        name="epsilon",
        attributes={"value": Tensor.of(np.array(1e-12), wanted)},
        types={"T": wanted},
    ).outputs[0]
    square = graph.add("Mul", [x, x], domain="", name="square").outputs[0]
    total = graph.add("Add", [square, epsilon], domain="", name="total").outputs[0]
    root = graph.add("Sqrt", [total], domain="", name="root").outputs[0]
    graph.outputs, graph.output_names = [graph.add("Div", [x, root], domain="", name="result").outputs[0]], ["y"]
    return graph


def test_a_vanishing_epsilon_is_named_first() -> None:
    found = ag.compare(normalization("f32"), normalization("f16"), {"x": np.array([0, 0.5, 1, 2], np.float32)})
    assert found.first_bad is not None
    assert (found.first_bad.value, found.first_bad.op) == ("epsilon", "Initializer")
    assert found.first_bad.underflow == 1.0
    bad = [row.node for row in found.rows if row.is_bad]
    assert bad == ["epsilon", "result"], "0 / 0"


def test_other_shapes_are_bad() -> None:
    a = ag.parse_graph("graph g(%x: f32[2,3]) {\n  %y: f32[3,2] = Transpose<T=f32>(%x) {perm=[1,0]}\n  return %y\n}")
    b = ag.parse_graph("graph g(%x: f32[2,3]) {\n  %y: f32[2,3] = Transpose<T=f32>(%x) {perm=[0,1]}\n  return %y\n}")
    found = ag.compare(a, b)
    assert found.first_bad is not None
    assert found.first_bad.norm_error == float("inf")
    text = json.dumps(found.json(), allow_nan=False)
    assert json.loads(text)["values"][0]["norm_error"] == "inf"


def one(a: Any, b: Any) -> Row:
    """Compare two constants that stand for the results of a node."""
    graphs = []
    for array in (a, b):
        graph = Graph("g", opsets={"": 21})
        node = graph.add("Constant", domain="", name="node", attributes={"value": Tensor.of(np.array(array, np.float64))})
        graph.outputs, graph.output_names = [node.outputs[0]], ["y"]
        graphs.append(graph)
    (row,) = ag.compare(*graphs).rows
    return row


@pytest.mark.parametrize(
    ("a", "b", "is_bad", "unlike"),
    [
        ([np.inf, 1], [-np.inf, 1], True, 0.5),
        ([np.inf, 1], [np.inf, 1], False, 0),
        ([np.nan, 1], [0, 1], True, 0.5),
        ([np.inf, 1], [np.nan, 1], True, 0.5),
        ([-np.inf, 1], [-65504, 1], True, 0.5),
        ([np.nan, np.nan], [np.nan, np.nan], False, 0),
    ],
)
def test_what_is_not_finite_must_be_the_same(a: list[float], b: list[float], is_bad: bool, unlike: float) -> None:
    row = one(a, b)
    assert (row.is_bad, row.unlike, row.overflow) == (is_bad, unlike, 0)


def test_norms_of_numbers_whose_squares_over_or_underflow() -> None:
    for size in (1e300, 1e-300):
        row = one([3 * size, 4 * size], [3 * size, 4.5 * size])
        assert row.norm_error == pytest.approx(0.1)
        assert row.max_error == pytest.approx(0.5 * size)
        assert row.is_bad
    row = one([1.5e308, 1.5e308], [-1.5e308, 1.5e308])
    assert row.is_bad
    assert not one([1.5e308] * 9, [1.5e308] * 9).is_bad


@pytest.mark.parametrize("tolerance", [-1, float("nan"), "0.1", None])
def test_a_tolerance_that_makes_no_sense(tolerance: Any) -> None:
    graph = normalization("f32")
    with pytest.raises(ag.KernelError, match=r"tolerance of a comparison is a number from 0 on. Received:"):
        ag.compare(graph, graph, tolerance=tolerance)


@pytest.mark.parametrize("feeds", [3, [3], [[1, 2, 3, 4]], {"z": 1}])
def test_feeds_that_make_no_sense(feeds: Any) -> None:
    graph = normalization("f32")
    for use in (ag.measure, lambda graph, feeds: ag.compare(graph, graph, feeds)):
        with pytest.raises(ag.KernelError, match=r"Received|is no input"):
            use(graph, feeds)


def test_feeds_take_the_dtype_of_the_second_graph() -> None:
    a, b = (ag.parse_graph(f"graph g(%x: {t}[2]) {{\n  %y: {t}[2] = Neg<T={t}>(%x)\n  return %y\n}}") for t in ("f32", "bf16"))
    found = ag.compare(a, b, {"x": np.array([1, 1.001], np.float32)})
    assert found.rows[0].max_error == pytest.approx(0.001, rel=1e-3)


def test_values_of_loops_are_compared_round_by_round() -> None:
    from onnx import TensorProto, helper

    from ampgraph.graph.formats.onnx import read_model

    def loop(factor: float) -> Graph:
        info = helper.make_tensor_value_info
        body = helper.make_graph(
            [
                helper.make_node("Identity", ["go"], ["on"]),
                helper.make_node("Constant", [], ["k"], value_float=factor),
                helper.make_node("Mul", ["v", "k"], ["v2"], name="grow"),
            ],
            "body",
            [info("i", TensorProto.INT64, []), info("go", TensorProto.BOOL, []), info("v", TensorProto.FLOAT, [1])],
            [info("on", TensorProto.BOOL, []), info("v2", TensorProto.FLOAT, [1])],
        )
        graph = helper.make_graph(
            [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)],
            "g",
            [info("n", TensorProto.INT64, []), info("x", TensorProto.FLOAT, [1])],
            [info("y", TensorProto.FLOAT, [1])],
        )
        return read_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]).SerializeToString())

    found = ag.compare(loop(2.0), loop(2.02), {"n": np.array(3), "x": np.ones(1, np.float32)}, tolerance=0.025)
    errors = [row.norm_error for row in found.rows if row.node == "grow"]
    assert errors == pytest.approx([0.01, 0.0201, 0.030301], rel=1e-3)
    assert [row.is_bad for row in found.rows if row.node == "grow"] == [False, False, True]


def test_ranges() -> None:
    graph = normalization("f32")
    runs = [{"x": np.array(x, np.float32)} for x in ([0, 1, 2, 3], [-8, np.inf, np.nan, 0.25])]
    found = ag.measure(graph, runs)
    assert found["x"] == ("float32", 8, -8.0, 3.0, 0.25, 2)
    assert found["epsilon"].largest == np.float32(1e-12)
    assert found["square"][:5] == ("float32", 8, 0.0, 64.0, 0.0625)
    assert list(found) == ["epsilon", "x", "square", "total", "root", "result"]
    alone: Any = ag.measure(graph, runs[1])
    assert alone["x"] == ("float32", 4, -8.0, 0.25, 0.25, 2)
    nothing = ag.measure(graph, [{"x": np.full(4, np.inf, np.float32)}, runs[0]])
    assert nothing["x"] == ("float32", 8, 0.0, 3.0, 1.0, 4)


def test_made_up_feeds_are_the_same_each_time_and_have_the_sizes_asked_for() -> None:
    graph = ag.parse_graph(
        "graph g(%x: bf16[n,?], %k: i64[n], %b: bool[2], %s: str[3]) {\n  %y: bf16[n,?] = Neg<T=bf16>(%x)\n  return %y\n}"
    )
    feeds = random_feeds(graph, 7, {"n": 50})
    assert {name: feed.shape for name, feed in feeds.items()} == {"x": (50, 1), "k": (50,), "b": (2,), "s": (3,)}
    assert set(feeds["k"].tolist()) == {0, 1}
    assert (feeds["x"] == random_feeds(graph, 7, {"n": 50})["x"]).all()
    assert ag.compile(graph)(feeds)["y"].shape == (50, 1)
    unknown = ag.parse_graph("graph g(%x: f32) {\n  %y: f32 = Neg<T=f32>(%x)\n  return %y\n}")
    with pytest.raises(ag.KernelError, match=r"'x' .* cannot be made up; give a feed for it"):
        random_feeds(unknown)


def test_masks_that_a_rewrite_clamps_are_not_bad() -> None:
    text = """graph g(%x: f32[4]) opset [""=21] {{
  %c: f32[4] = ampgraph.Initializer<T=f32>() {{value=dense<f32[4], [{0}, {0}, 0.0, 1.0]>}}
  %m: f32[4] = Add<T=f32>(%x, %c) name="m"
  return %m
}}"""
    right, clamped, vanished, turned = (ag.parse_graph(text.format(mask)) for mask in (-1e9, -49152.0, -100.0, 49152.0))
    feeds = {"x": np.zeros(4, np.float32)}
    assert ag.compare(right, clamped, feeds).first_bad is None
    for wrong in (vanished, turned):
        bad = ag.compare(right, wrong, feeds).first_bad
        assert bad is not None
        assert bad.value == "m"
