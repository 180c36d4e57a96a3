"""Advice about sizes."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

import ampgraph as ag
from ampgraph.rewrite.advise import NodeAdvice, padded


@pytest.mark.parametrize(
    ("size", "eights", "powers"),
    [
        (1, 1, 1),
        (3, 4, 4),
        (5, 8, 8),
        (8, 8, 8),
        (24, 24, 32),
        (100, 104, 128),
        (129, 136, 256),
        (257, 264, 264),
        (1000, 1000, 1000),
    ],
)
def test_padded(size: int, eights: int, powers: int) -> None:
    assert padded(size) == eights
    assert padded(size, powers_of_two=True) == powers


def product(m: object, k: object, n: object) -> ag.Graph:
    return ag.parse_graph(f"""
graph g() {{
  %x: f32[{m},{k}] = tf.Placeholder<dtype=f32>() {{shape=shape[{m},{k}]}}
  %w: f32[{k},{n}] = tf.Placeholder<dtype=f32>() {{shape=shape[{k},{n}]}}
  %h: f32 = tf.MatMul<T=f32>(%x, %w)
  %y: f32 = tf.Tanh<T=f32>(%h)
  return %y
}}
""")


def only(advice: ag.Advice) -> NodeAdvice:
    (item,) = advice.nodes
    return item


@given(st.tuples(*[st.integers(1, 5000)] * 3), st.booleans())
def test_who_follows_the_advice_gets_no_more(sizes: tuple[int, int, int], powers_of_two: bool) -> None:
    item = only(ag.advise(product(*sizes), powers_of_two=powers_of_two))
    assert list(item.sizes.values()) == [sizes[0], sizes[2], sizes[1]]
    m, n, k = (item.padding.get(name, item.sizes[name]) for name in "MNK")
    again = ag.advise(product(m, k, n), powers_of_two=powers_of_two)
    assert again.to_pad == []
    assert item.growth is not None
    assert only(again).flops == pytest.approx((item.flops or 0) * (1 + item.growth))


def test_what_it_says() -> None:
    advice = ag.advise(product(100, 64, 10))
    assert str(advice) == (
        "h (MatMul) float16: M 100 -> 104, N 10 -> 16, K 64, 66.4 % more arithmetic\n"
        "1 node multiplies matrices in low precision, 1 with sizes to pad"
    )
    assert only(advice).cost == "+66.4 %"
    assert advice.json()[0]["padding"] == {"M": 104, "N": 16}


def test_sizes_that_are_not_known() -> None:
    advice = ag.advise(product("?", 64, 10))
    assert only(advice).words == "M ?, N 10 -> 16, K 64"
    assert only(advice).unknown == ["M"]
    assert only(advice).cost == "+60.0 %"
    assert only(advice).flops is None
    assert str(advice).endswith("; in 1 of them, sizes are not known")
    fine = ag.advise(product("?", 64, 16))
    assert str(only(fine)) == "h (MatMul) float16: M ?, N 16, K 64: the other sizes are fine"
    assert str(fine).startswith("1 node multiplies matrices in low precision, and every size that is known suits")


def test_the_most_expensive_come_first() -> None:
    graph = ag.parse_graph("""
graph g() {
  %x: f32[3,3] = tf.Placeholder<dtype=f32>() {shape=shape[3,3]}
  %w: f32[3,99] = tf.Placeholder<dtype=f32>() {shape=shape[3,99]}
  %a: f32 = tf.MatMul<T=f32>(%x, %x)
  %b: f32 = tf.MatMul<T=f32>(%a, %w)
  %c: f32 = tf.Tanh<T=f32>(%b)
  return %c
}
""")
    assert [item.node for item in ag.advise(graph).nodes] == ["b", "a"]


def test_only_what_is_low_counts() -> None:
    advice = ag.advise(product(100, 64, 10), nodes=("h=none",))
    assert advice.nodes == ()
    assert str(advice).startswith("no node multiplies matrices in low precision")
    old = ag.advise(product(100, 64, 10), target="gpu:6.1")
    assert any("compute capability" in text for text in old.notes)
    low = ag.auto_mixed_precision(product(100, 64, 10)).graph
    assert only(ag.advise(low)).padding == {"M": 104, "N": 16}


def test_functions_are_looked_into() -> None:
    graph = ag.parse_graph("""
graph g() {
  %x: f32[4,12] = tf.Placeholder<dtype=f32>() {shape=shape[4,12]}
  %y: f32 = tf.PartitionedCall<Tin=[f32], Tout=[f32]>(%x) {f=@square}
  return %y
}
function square(%a: f32) {
  %b: f32 = tf.MatMul<T=f32>(%a, %a) {transpose_b=true}
  return b=%b
}
""")
    item = only(ag.advise(graph))
    assert (item.function, item.node, dict(item.padding)) == ("square", "b", {"K": 16})
    assert str(item).startswith("in function 'square': b (MatMul)")


def test_onnx_models_whose_weights_turn_low() -> None:
    from onnx import parser

    from ampgraph.graph.formats.onnx import read_model

    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[batch,3,32,32] x, bool c) => (float[batch,20,1,1] y)
    <float[20,18,1,1] v = {0}> {
        w = Constant<value = float[18,3,3,3] {0}>()
        a = Conv(x, w)
        p = GlobalAveragePool(a)
        y = If(c) <
            then_branch = then () => (float[batch,20,1,1] s) { s = Conv(p, v) },
            else_branch = other () => (float[batch,20,1,1] t) { q = Relu(p)  t = Conv(q, v) }>
    }"""
    model = parser.parse_model(
        text.replace("{0}> {", "{" + ",".join(["1"] * 360) + "}> {").replace("{0}>()", "{" + ",".join(["1"] * 486) + "}>()")
    )
    advice = ag.advise(read_model(model))
    assert {item.node: dict(item.padding) for item in advice.nodes} == {
        "a": {"input channels": 4, "output channels": 24},
        "s": {"input channels": 24, "output channels": 24},
        "t": {"input channels": 24, "output channels": 24},
    }
    assert {item.sizes["batch"] for item in advice.nodes} == {"batch"}


def test_a_graph_whose_shapes_do_not_fit() -> None:
    graph = product(4, 12, 8)
    graph.node("w").attributes = {"shape": ag.Shape([13, 8])}
    graph.node("w").outputs[0].shape = ag.Shape([13, 8])
    advice = ag.advise(graph)
    assert any("shapes are not known" in text for text in advice.notes)


def test_a_depthwise_convolution_uses_no_tensor_cores() -> None:
    graph = ag.parse_graph("""
graph g() {
  %x: f32[2,8,8,3] = tf.Placeholder<dtype=f32>() {shape=shape[2,8,8,3]}
  %w: f32[3,3,3,1] = tf.Placeholder<dtype=f32>() {shape=shape[3,3,3,1]}
  %y: f32 = tf.DepthwiseConv2dNative<T=f32>(%x, %w) {strides=[1,1,1,1], padding="SAME"}
  %z: f32 = tf.Relu<T=f32>(%y)
  return %z
}
""")
    item = only(ag.advise(graph, ops=("DepthwiseConv2dNative=allow",)))
    assert str(item) == "y (DepthwiseConv2dNative) float16: it multiplies no matrices, and uses no tensor cores"


def test_it_takes_a_graph() -> None:
    with pytest.raises(ag.GraphError, match="advise takes a Graph"):
        ag.advise("model.pb")  # type: ignore[arg-type]
