"""Clusters of elementwise nodes, and float16 and bfloat16 values kept as float32: no bit differs from running node by node."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ampgraph as ag
from ampgraph.graph import Graph
from ampgraph.graph.dtypes import cast_array, find_dtype
from ampgraph.graph.types import Tensor
from ampgraph.kernels import blocks
from ampgraph.kernels.memory import measure_memory

F32 = find_dtype("float32")
UNARY = ("Relu", "Sigmoid", "Neg", "Abs", "Exp", "Floor", "Tanh", "Identity", "Erf")
BINARY = ("Add", "Mul", "Sub", "Div", "Max", "Min")
SHAPES = ("4,6,5", "1,6,5", "5", "", "4,1,1")
#: Numbers at which rounding to float16 and bfloat16 has something to decide.
NUMBERS = (0.0, -0.0, 1.0, -2.5, 1 / 3, 65504.0, 65519.9, 65520.0, -7e4, 6e-8, 2.9e-8, 3e-5, 1e-30, 3e38, np.inf, np.nan)


@st.composite
def chains(draw: st.DrawFn) -> str:
    """Return the text of a graph of some elementwise nodes, moves and casts between three dtypes."""
    dtypes = [draw(st.sampled_from(["f32", "f16", "bf16"])) for _ in range(3)]
    values = [(f"%x{i}", dtype, SHAPES[draw(st.integers(0, len(SHAPES) - 1))]) for i, dtype in enumerate(dtypes)]
    formals = ", ".join(f"{name}: {dtype}[{shape}]" for name, dtype, shape in values)
    lines: list[str] = []

    def add(text: str, dtype: str) -> str:
        lines.append(f"  %v{len(lines)}: {dtype} = {text}")
        values.append((f"%v{len(lines) - 1}", dtype, "?"))
        return values[-1][0]

    for _ in range(draw(st.integers(2, 9))):
        kind = draw(st.sampled_from(["unary", "binary", "binary", "cast", "move"]))
        name, dtype, _ = values[-1 - draw(st.sampled_from([0, 0, 0, 1, 2]))]
        if kind == "unary":
            add(f"{draw(st.sampled_from(UNARY))}<T={dtype}>({name})", dtype)
        elif kind == "move":
            add(f"Transpose<T={dtype}>({name})", dtype)
        elif kind == "cast":
            wanted = draw(st.sampled_from(["f32", "f16", "bf16"]))
            add(f"Cast<T1={dtype},T2={wanted}>({name})", wanted)
        else:
            other, theirs, _ = values[draw(st.integers(0, len(values) - 1))]
            if theirs != dtype:
                other = add(f"Cast<T1={theirs},T2={dtype}>({other})", dtype)
            add(f"{draw(st.sampled_from(BINARY))}<T={dtype}>({name}, {other})", dtype)
    returned = ", ".join(name for name, _, _ in values[3:][-2:])
    return f'graph g({formals}) opset [""=21] {{\n' + "\n".join(lines) + f"\n  return {returned}\n}}"


def run_both(graph: Graph, feeds: dict[str, Any]) -> None:
    try:
        plain = ag.compile(graph, fuse=False)(feeds)
    except ag.KernelError:  # shapes that are not broadcast; where there are several, either may be the first
        with pytest.raises(ag.KernelError, match=r"Node 'v\d+' .* failed: ValueError: operands could not"):
            ag.compile(graph)(feeds)
        return
    fused = ag.compile(graph)(feeds)
    for name, array in plain.items():
        assert fused[name].dtype == array.dtype
        assert fused[name].shape == array.shape
        wide, expected = (np.asarray(a).astype(np.float64) for a in (fused[name], array))
        np.testing.assert_array_equal(wide, expected)
        np.testing.assert_array_equal(np.signbit(wide) | np.isnan(wide), np.signbit(expected) | np.isnan(expected))


@settings(max_examples=300)
@given(chains(), st.integers(0, 2**32 - 1), st.booleans())
def test_fused_results_have_the_same_bits(text: str, seed: int, in_blocks: bool) -> None:
    graph = ag.parse_graph(text)
    rng = np.random.default_rng(seed)
    feeds = {}
    for value in graph.inputs:
        assert value.dtype is not None
        assert value.shape is not None
        shape = [int(size) for size in value.shape.dims or () if isinstance(size, int)]
        array = np.where(rng.random(shape) < 0.5, rng.choice(np.array(NUMBERS), shape), rng.standard_normal(shape))
        feeds[value.name] = cast_array(array.astype(np.float32), value.dtype)
    with pytest.MonkeyPatch.context() as patch:
        if in_blocks:
            patch.setattr(blocks, "_LEAST", 2)
            patch.setattr(blocks, "_BLOCK", 7)
        run_both(graph, feeds)


def test_channels_stand_at_their_axis_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = ag.parse_graph("""
    graph g(%x: f16[2,6,5,3], %s: f16[6], %b: f16[6], %m: f16[6], %v: f16[6]) opset [""=21] {
      %n: f16[2,6,5,3] = BatchNormalization<T=f16,T1=f16,T2=f16>(%x, %s, %b, %m, %v)
      %r: f16[2,6,5,3] = Relu<T=f16>(%n)
      %y: f16[2,6,5,3] = Mul<T=f16>(%r, %n)
      return %y, %n
    }
    """)
    rng = np.random.default_rng(0)
    feeds = {name: rng.uniform(0.1, 2, 180 if name == "x" else 6).astype(np.float16) for name in "xsbmv"}
    feeds["x"] = feeds["x"].reshape(2, 6, 5, 3)
    monkeypatch.setattr(blocks, "_LEAST", 2)
    for size in (1, 4, 20, 1000):
        monkeypatch.setattr(blocks, "_BLOCK", size)
        run_both(graph, feeds)


def test_values_are_rounded_where_they_stay_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between computing nodes nothing is converted, moves on the way or not; what leaves the graph is."""
    graph = ag.parse_graph("""
    graph g(%x: f32[3], %shape: i64[2]) opset [""=21] {
      %a: f16[3] = Cast<T1=f32,T2=f16>(%x)
      %b: f16[3] = Mul<T=f16>(%a, %a)
      %c: f16[?,?] = Reshape<T=f16>(%b, %shape)
      %d: f16[?,?] = Concat<T=f16>(%c, %c) {axis=0}
      %e: f16[?,?] = Sqrt<T=f16>(%d)
      return %e
    }
    """)
    program = ag.compile(graph)
    made: list[str] = []
    program(
        {"x": np.array([1, 300, 1e-4], np.float32), "shape": np.array([3, 1])},
        on_value=lambda value, array: made.append(str(array.dtype)),
    )
    assert made == ["float32"] * 4 + ["float16"]
    made.clear()
    result = ag.compile(graph, fuse=False)(
        {"x": np.array([1, 300, 1e-4], np.float32), "shape": np.array([3, 1])},
        on_value=lambda value, array: made.append(str(array.dtype)),
    )
    assert made == ["float16"] * 5
    assert result["e"].ravel()[:2].tolist() == [1, np.inf]
    assert result["e"].ravel()[2] == np.float16(np.sqrt(np.float32(np.float16(np.float32(np.float16(1e-4)) ** 2))))


def test_a_member_that_fails_is_named() -> None:
    graph = ag.parse_graph("""
    graph g(%x: f32[?], %y: f32[?]) opset [""=21] {
      %a: f32[?] = Relu<T=f32>(%x)
      %b: f32[?] = Add<T=f32>(%a, %y) name="sum"
      %c: f32[?] = Neg<T=f32>(%b)
      return %c
    }
    """)
    with pytest.raises(ag.KernelError, match="Node 'sum'"):
        ag.compile(graph)({"x": np.ones(2, np.float32), "y": np.ones(3, np.float32)})


def test_times_are_told_by_node_in_blocks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = ag.parse_graph("""
    graph g(%x: f32[64]) opset [""=21] {
      %a: f32[64] = Relu<T=f32>(%x)
      %b: f32[64] = Exp<T=f32>(%a)
      return %b
    }
    """)
    monkeypatch.setattr(blocks, "_LEAST", 2)
    monkeypatch.setattr(blocks, "_BLOCK", 16)
    seen: list[str] = []
    ag.compile(graph)({"x": np.ones(64, np.float32)}, on_node=lambda node, seconds: seen.append(f"{node.op_type} {seconds > 0}"))
    assert seen == ["Relu True", "Exp True"]


def test_constants_are_aligned_once() -> None:
    """Files have weights at any byte; NumPy would copy such an array in every product."""
    weights = np.frombuffer(b"\0" + np.arange(12, dtype=np.float32).tobytes(), np.uint8)[1:].view(np.float32)
    assert not weights.flags.aligned
    graph = Graph("g", opsets={"": 21})
    (w,) = graph.add(
        "Initializer", [], domain="ampgraph", attributes={"value": Tensor(F32, (12,), lambda: weights)}, types={"T": F32}
    ).outputs
    graph.outputs = [w]
    (array,) = ag.compile(graph)({}).values()
    assert array.flags.aligned
    assert array.tolist() == list(range(12))


def test_operands_may_be_omitted() -> None:
    graph = ag.parse_graph("""
    graph g(%x: f16[3], %most: f16) opset [""=21] {
      %a: f16[3] = Neg<T=f16>(%x)
      %b: f16[3] = Clip<T=f16>(%a, _, %most)
      %c: f16[3] = Add<T=f16>(%b, %x)
      return %c
    }
    """)
    run_both(graph, {"x": np.array([-3, 1, 2], np.float16), "most": np.array(1, np.float16)})


def test_clusters_hold_nothing_longer_than_their_members_read_it() -> None:
    graph = ag.parse_graph("""
    graph g(%x: f32[256,256]) opset [""=21] {
      %p: f32[256,256] = MatMul<T=f32>(%x, %x)
      %a: f32[256,256] = Add<T=f32>(%p, %x)
      %b: f32[256,256] = Erf<T=f32>(%a)
      %c: f32[256,256] = Mul<T=f32>(%b, %a)
      %q: f32[256,256] = MatMul<T=f32>(%c, %x)
      return %q
    }
    """)
    memory = measure_memory(ag.compile(graph), {"x": np.ones((256, 256), np.float32)})
    assert memory.least == 2 * 256 * 256 * 4  # an operand and a result at a time
    assert memory.values == memory.least
