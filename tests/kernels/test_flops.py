"""FLOPs of TensorFlow's products and convolutions (those of ONNX models are counted in tests/bench/test_onnx.py)."""

from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph.kernels.flops import FlopCounter

X, W = (2, 8, 8, 3), (3, 3, 3, 5)
AROUND = 'strides=[1,1,1,1], padding="SAME"'


@pytest.mark.parametrize(
    ("a", "b", "call", "products"),
    [
        ((4, 6), (6, 5), "tf.MatMul<T=f32>(%a, %b)", 4 * 6 * 5),
        ((6, 4), (6, 5), "tf.MatMul<T=f32>(%a, %b) {transpose_a=true}", 4 * 6 * 5),
        ((3, 6, 4), (3, 6, 5), "tf.BatchMatMulV2<T=f32>(%a, %b) {adj_x=true}", 3 * 4 * 6 * 5),
        (X, W, f"tf.Conv2D<T=f32>(%a, %b) {{{AROUND}}}", 2 * 8 * 8 * 5 * 27),
        (X, (3, 3, 3, 2), f"tf.DepthwiseConv2dNative<T=f32>(%a, %b) {{{AROUND}}}", 2 * 8 * 8 * 6 * 9),
    ],
)
def test_products(a: Any, b: Any, call: str, products: int) -> None:
    lines = [f"  %{name}: f32[] = tf.Placeholder<dtype=f32>() {{shape=shape[]}}" for name in "ab"]
    lines = [line.replace("[]", str(list(shape)).replace(" ", "")) for line, shape in zip(lines, (a, b), strict=True)]
    graph = ag.parse_graph("\n".join(["graph g() {", *lines, f"  %y = {call}", "  return %y", "}"]))
    feeds = {"a": np.ones(a, np.float32), "b": np.ones(b, np.float32)}
    counter = FlopCounter(graph, feeds)
    ag.compile(graph)(feeds, on_value=counter.see)
    assert dict(counter.by_node) == {graph.node("y"): 2 * products}


def test_gradients_of_a_convolution_have_as_many_as_itself() -> None:
    graph = ag.parse_graph(f"""
graph g() {{
  %x: f32[2,8,8,3] = tf.Placeholder<dtype=f32>() {{shape=shape[2,8,8,3]}}
  %w: f32[3,3,3,5] = tf.Placeholder<dtype=f32>() {{shape=shape[3,3,3,5]}}
  %xs: i32[4] = tf.Shape<T=f32, out_type=i32>(%x)
  %ws: i32[4] = tf.Shape<T=f32, out_type=i32>(%w)
  %y: f32[2,8,8,5] = tf.Conv2D<T=f32>(%x, %w) {{{AROUND}}}
  %dx: f32[2,8,8,3] = tf.Conv2DBackpropInput<T=f32>(%xs, %w, %y) {{{AROUND}}}
  %dw: f32[3,3,3,5] = tf.Conv2DBackpropFilter<T=f32>(%x, %ws, %y) {{{AROUND}}}
  return %dx, %dw
}}
""")
    feeds = {"x": np.ones(X, np.float32), "w": np.ones(W, np.float32)}
    counter = FlopCounter(graph, feeds)
    ag.compile(graph)(feeds, on_value=counter.see)
    assert {node.name: count for node, count in counter.by_node.items()} == dict.fromkeys(
        ("y", "dx", "dw"), 2 * 2 * 8 * 8 * 5 * 27
    )
