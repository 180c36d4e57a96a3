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
from ampgraph.kernels.values import detached

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
    graph g(%x: f16[64]) opset [""=21] {
      %a: f16[64] = Relu<T=f16>(%x)
      %b: f16[64] = Exp<T=f16>(%a)
      return %b
    }
    """)
    monkeypatch.setattr(blocks, "_LEAST", 2)
    monkeypatch.setattr(blocks, "_BLOCK", 16)
    seen: list[str] = []
    ag.compile(graph)({"x": np.ones(64, np.float16)}, on_node=lambda node, seconds: seen.append(f"{node.op_type} {seconds > 0}"))
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


def random_feeds(graph: Graph, numbers: Any = None) -> dict[str, Any]:
    """Return arrays of random numbers, or of some given ones, for the inputs of a graph whose shapes are known."""
    rng, feeds = np.random.default_rng(0), {}
    for value in graph.inputs:
        assert value.dtype is not None
        assert value.shape is not None
        shape = [int(size) for size in value.shape.dims or () if isinstance(size, int)]
        array = rng.uniform(0.1, 2, shape) if numbers is None else rng.choice(np.array(numbers), shape)
        feeds[value.name] = cast_array(array.astype(np.float32), value.dtype)
    return feeds


def test_channels_of_two_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same statistics stand at one axis of the full array in the first node, at another in the second."""
    graph = ag.parse_graph("""
    graph g(%x: f16[6,6,5], %w: f16[2,1,1,5], %s: f16[6]) opset [""=21] {
      %a: f16[6,6,5] = BatchNormalization<T=f16,T1=f16,T2=f16>(%x, %s, %s, %s, %s)
      %b: f16[2,6,6,5] = Add<T=f16>(%a, %w)
      %y: f16[2,6,6,5] = BatchNormalization<T=f16,T1=f16,T2=f16>(%b, %s, %s, %s, %s)
      return %y
    }
    """)
    monkeypatch.setattr(blocks, "_LEAST", 2)
    for size in (1, 7, 40, 1000):
        monkeypatch.setattr(blocks, "_BLOCK", size)
        run_both(graph, random_feeds(graph))


def test_an_array_that_is_normalized_by_itself() -> None:
    graph = ag.parse_graph("""
    graph g(%x: f32[1]) opset [""=21] {
      %a: f32[1] = Relu<T=f32>(%x)
      %y: f32[1] = BatchNormalization<T=f32,T1=f32,T2=f32>(%a, %a, %a, %a, %a)
      return %y
    }
    """)
    run_both(graph, random_feeds(graph))


def test_values_of_unknown_dtype_are_rounded() -> None:
    """Before version 9 there was no Asinh: nothing says that its result is float16, so it is float32."""
    graph = ag.parse_graph("""
    graph g(%x: f16[9]) opset [""=7] {
      %a: ? = Asinh(%x)
      %b: f16[9] = Max<T=f16>(%a, %x)
      %y: f16[9] = Exp<T=f16>(%b)
      return %y
    }
    """)
    feeds = {"x": np.linspace(100, 2000, 9).astype(np.float16)}
    run_both(graph, feeds)


@pytest.mark.parametrize("wanted", ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_numbers_that_fit_no_integer(dtype: str, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They become any integer, but the same one."""
    graph = ag.parse_graph(f"""
    graph g(%x: {dtype}[40,10]) {{
      %a: {dtype}[40,10] = tf.Neg<T={dtype}>(%x)
      %b: {wanted}[40,10] = tf.Cast<SrcT={dtype},DstT={wanted}>(%a)
      %y: {wanted}[40,10] = tf.Mul<T={wanted}>(%b, %b)
      return %y
    }}
    """)
    monkeypatch.setattr(blocks, "_LEAST", 2)
    for size in (1, 30):
        monkeypatch.setattr(blocks, "_BLOCK", size)
        run_both(graph, random_feeds(graph, [1, -3, 300, -40000, 3e9, -3e9, 1e20, np.inf, -np.inf, np.nan]))


@pytest.mark.parametrize("shape", ["41,7", "41,1", "7", "1", ""])
def test_powers_do_not_depend_on_where_exponents_lie(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = ag.parse_graph(f"""
    graph g(%x: f32[41,7], %e: f32[{shape}]) opset [""=21] {{
      %a: f32[41,7] = Pow<T=f32,T1=f32>(%x, %e)
      %y: f32[41,7] = Neg<T=f32>(%a)
      return %y
    }}
    """)
    monkeypatch.setattr(blocks, "_LEAST", 2)
    for exponent in (2, 0.5, -1, 3):
        x = np.random.default_rng(0).standard_normal((41, 7)).astype(np.float32)
        x[0] = (0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 1)
        feeds = {"x": x, "e": np.full([int(size) for size in shape.split(",") if size], exponent, np.float32)}
        for size in (1, 2, 5, 1000):
            monkeypatch.setattr(blocks, "_BLOCK", size)
            run_both(graph, feeds)
        y, turned = (ag.compile(graph)({**feeds, "x": array})["y"] for array in (x, np.asfortranarray(x)))
        np.testing.assert_array_equal(turned, y)
        with np.errstate(all="ignore"):
            expected = np.power(x.astype(np.float64), np.full(x.shape, exponent)).astype(np.float32)
        np.testing.assert_allclose(-y, expected, rtol=3e-7)


def test_a_member_that_fails_on_numbers_is_named_in_blocks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = ag.parse_graph("""
    graph g(%x: i32[9]) {
      %a: i32[9] = tf.Neg<T=i32>(%x)
      %y: i32[9] = tf.TruncateDiv<T=i32>(%a, %a) name="quotient"
      return %y
    }
    """)
    monkeypatch.setattr(blocks, "_LEAST", 2)
    with pytest.raises(ag.KernelError, match="Node 'quotient'"):
        ag.compile(graph)({"x": np.arange(9, dtype=np.int32)})


def test_values_that_are_broadcast_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In every block, they would take as long as everything else."""
    graph = ag.parse_graph("""
    graph g(%m: f16[8], %x: f16[50,8]) opset [""=21] {
      %a: f16[8] = Exp<T=f16>(%m)
      %b: f16[8] = Neg<T=f16>(%a)
      %c: f16[50,8] = Add<T=f16>(%b, %x)
      %y: f16[50,8] = Mul<T=f16>(%c, %a)
      return %y, %b
    }
    """)
    monkeypatch.setattr(blocks, "_LEAST", 2)
    monkeypatch.setattr(blocks, "_BLOCK", 8)
    run_both(graph, random_feeds(graph))
    sizes: list[int] = []
    exp = np.exp

    def watched(x: Any, out: Any = None) -> Any:
        sizes.append(x.size)
        return exp(x, out=out)

    monkeypatch.setattr(np, "exp", watched)
    ag.compile(graph)(random_feeds(graph))
    assert sizes == [8]


def test_clusters_take_no_more_memory() -> None:
    """One that waited for all its operands would keep them in memory, and results that are read late take their place early."""
    lines = [f"%b{i}: f32[5000] = Softmax<T=f32>(%x)\n %a{i + 1}: f32[5000] = Add<T=f32>(%a{i}, %b{i})" for i in range(8)]
    late = "%c: bool[5000] = Less<T=f32>(%a0, %x)\n %d: f32[5000] = Where<T=f32>(%c, %a8, %x)\n %e: f32[5000] = Relu<T=f32>(%d)"
    head = 'graph g(%x: f32[5000]) opset [""=21] {\n %a0: f32[5000] = LogSoftmax<T=f32>(%x)\n'
    graph = ag.parse_graph("\n".join([head, *lines, late, "return %e }"]))
    feeds = random_feeds(graph)
    plain, fused = (measure_memory(ag.compile(graph, fuse=fuse), feeds) for fuse in (False, True))
    assert fused.values <= plain.values
    assert fused.least <= plain.least
    assert fused.values + fused.scratch < plain.values + plain.scratch + 5000


@pytest.mark.parametrize("op", ["Cast<T1=f32,T2=f8e4m3fn>(%c)", "Cast<T1=f32,T2=bf16>(%c)", "Gather<T=f32,Tind=i64>(%v, %i)"])
def test_single_numbers_are_constants(op: str) -> None:
    dtype = "f32" if "Gather" in op else op.partition("T2=")[2].partition(">")[0]
    graph = ag.parse_graph(f"""
    graph g() opset [""=21] {{
      %c: f32[] = ampgraph.Initializer<T=f32>() {{value=dense<f32[], [1.0]>}}
      %v: f32[2] = ampgraph.Initializer<T=f32>() {{value=dense<f32[2], [1.0, 2.0]>}}
      %i: i64[] = ampgraph.Initializer<T=i64>() {{value=dense<i64[], [0]>}}
      %y: {dtype}[] = {op}
      return %y
    }}
    """)
    for fuse in (False, True):
        array = ag.compile(graph, fuse=fuse)({})["y"]
        assert isinstance(array, np.ndarray)
        assert array == 1


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_sums_add_up_in_the_same_order(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values lie in memory as they do node by node, be they kept as float32 or not, copied, or computed in blocks."""
    graph = ag.parse_graph(f"""
    graph g(%x: {dtype}[1,64,24,10], %w: {dtype}[1,10,1,1]) opset [""=13] {{
      %n: {dtype}[1,64,24,10] = Sqrt<T={dtype}>(%x)
      %t: {dtype}[1,24,10,64] = Transpose<T={dtype}>(%n) {{perm=[0, 2, 3, 1]}}
      %a: {dtype}[1,24,10,64] = Mul<T={dtype}>(%t, %t)
      %b: {dtype}[1,24,10,64] = Sigmoid<T={dtype}>(%a)
      %g: f32[1,24,10,64] = Cast<T1={dtype},T2=f32>(%b)
      %h: f32[1,24,10,64] = Mul<T=f32>(%g, %g)
      %y: f32[1,24,10,1] = ReduceMean<T=f32>(%h) {{axes=[3]}}
      %c: {dtype}[1,10,24,64] = Transpose<T={dtype}>(%b) {{perm=[0, 2, 1, 3]}}
      %d: {dtype}[1,10,24,64] = Add<T={dtype}>(%c, %w)
      %e: {dtype}[1,10,24,64] = Exp<T={dtype}>(%d)
      %f: f32[1,10,24,64] = Cast<T1={dtype},T2=f32>(%e)
      %q: f32[1,10,24,64] = Mul<T=f32>(%f, %f)
      %z: f32[1,10,24,1] = ReduceSum<T=f32>(%q, %axes)
      %axes: i64[1] = ampgraph.Initializer<T=i64>() {{value=dense<i64[1], [3]>}}
      return %y, %z
    }}
    """)
    run_both(graph, random_feeds(graph))
    monkeypatch.setattr(blocks, "_LEAST", 2)
    for size in (64, 1000):
        monkeypatch.setattr(blocks, "_BLOCK", size)
        run_both(graph, random_feeds(graph))


def test_results_of_blocks_lie_in_memory_as_whole_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = ag.parse_graph("""
    graph g(%x: f16[6,5,4], %y: f16[4,5,6], %w: f16[5,1]) opset [""=21] {
      %t: f16[4,5,6] = Transpose<T=f16>(%x)
      %a: f16[4,5,6] = Exp<T=f16>(%t)
      %b: f16[4,5,6] = Mul<T=f16>(%a, %w)
      %c: f16[4,5,6] = Add<T=f16>(%b, %y)
      return %b, %c
    }
    """)
    feeds = random_feeds(graph)
    whole = ag.compile(graph, fuse=False)(feeds)
    monkeypatch.setattr(blocks, "_LEAST", 2)
    monkeypatch.setattr(blocks, "_BLOCK", 7)
    parts = ag.compile(graph)(feeds)
    assert [array.strides for array in parts.values()] == [array.strides for array in whole.values()]


def test_copies_of_parts_keep_the_order_of_axes() -> None:
    part = np.arange(120, dtype=np.float32).reshape(4, 5, 6)[:1].transpose(2, 1, 0)
    (copy,) = detached((part,))
    assert copy.base is None
    assert copy.strides[:2] == part.strides[:2]
