"""How much nodes multiply: sizes and counts worked out by hand from the definitions of the ops."""

from typing import Any

import pytest

import ampgraph as ag
from ampgraph.graph.formats.onnx import read_model
from ampgraph.graph.work import Work, multiplies, work_of


def of(node: ag.Node) -> Work:
    work = work_of(node, lambda value: None if value is None else value.shape.dims)
    assert work is not None
    assert multiplies(node)
    return work


def tf(call: str, *operands: str) -> Work:
    inputs = ", ".join(f"%x{i}: {text}" for i, text in enumerate(operands))
    results = {"BlockLSTM": 7, "CudnnRNN": 4}.get(call.partition("<")[0], 1)
    names = ", ".join(f"%y{i}" for i in range(results))
    values = ", ".join(f"%x{i}" for i in range(len(operands)))
    graph = ag.parse_graph(f"graph g({inputs}) {{\n  {names} = tf.{call.replace('()', f'({values})')}\n  return %y0\n}}")
    from ampgraph.graph.infer import infer

    infer(graph)
    return of(graph.outputs[0].producer)


def onnx(text: str) -> Work:
    from onnx import parser

    opsets = '"": 23, "com.microsoft": 1'
    graph = read_model(parser.parse_model(f"<ir_version: 10, opset_import: [{opsets}]> g {text}"))
    from ampgraph.graph.infer import infer

    infer(graph)
    return of(graph.outputs[0].producer)


SAME = 'strides=[1,1,1,1], padding="SAME"'

TF = [
    (("MatMul<T=f32>()", "f32[4,6]", "f32[6,5]"), {"M": 4, "N": 5, "K": 6}, 4 * 5 * 6),
    (("MatMul<T=f32>() {transpose_a=true, transpose_b=true}", "f32[6,4]", "f32[5,6]"), {"M": 4, "N": 5, "K": 6}, 4 * 5 * 6),
    (("MatMul<T=f32>()", "f32[batch,6]", "f32[6,5]"), {"M": "batch", "N": 5, "K": 6}, None),
    (("MatMul<T=f32>()", "f32", "f32[6,5]"), {"M": None, "N": 5, "K": 6}, None),
    (("BatchMatMulV2<T=f32>() {adj_y=true}", "f32[2,1,4,6]", "f32[3,5,6]"), {"M": 4, "N": 5, "K": 6}, 6 * 4 * 5 * 6),
    (("BatchMatMulV2<T=f32>()", "f32[2,4,6]", "f32[6,5]"), {"M": 8, "N": 5, "K": 6}, 8 * 5 * 6),
    (('Einsum<T=f32>() {N=2, equation="bth,hnd->btnd"}', "f32[2,3,8]", "f32[8,4,5]"), {"M": 6, "N": 20, "K": 8}, 6 * 20 * 8),
    (
        ('Einsum<T=f32>() {N=2, equation="bqnd,bknd->bnqk"}', "f32[2,3,4,8]", "f32[2,5,4,8]"),
        {"M": 3, "N": 5, "K": 8},
        8 * 3 * 5 * 8,
    ),
    (('Einsum<T=f32>() {N=2, equation="...a,ab->...b"}', "f32[2,3,8]", "f32[8,5]"), {"M": 6, "N": 5, "K": 8}, 6 * 5 * 8),
    (
        (f"Conv2D<T=f32>() {{{SAME}}}", "f32[2,8,8,3]", "f32[3,3,3,5]"),
        {"batch": 2, "input channels": 3, "output channels": 5},
        2 * 64 * 9 * 15,
    ),
    (
        (f'Conv2D<T=f32>() {{{SAME}, data_format="NCHW"}}', "f32[2,6,8,8]", "f32[3,3,3,4]"),
        {"batch": 2, "input channels of a group": 3, "output channels of a group": 2},
        2 * 64 * 9 * 3 * 4,
    ),
    ((f"DepthwiseConv2dNative<T=f32>() {{{SAME}}}", "f32[2,8,8,3]", "f32[3,3,3,2]"), {}, 2 * 64 * 9 * 6),
    (
        ("BlockLSTM<T=f32>()", "i64[]", "f32[7,2,3]", "f32[2,5]", "f32[2,5]", "f32[8,20]", *("f32[5]",) * 3, "f32[20]"),
        {"batch": 2, "input size": 3, "hidden size": 5},
        7 * 2 * 4 * 5 * (3 + 5),
    ),
    (
        ('CudnnRNN<T=f32>() {rnn_mode="gru"}', "f32[7,2,3]", "f32[2,2,5]", "f32[0]", "f32[255]"),
        {"batch": 2, "input size": 3, "hidden size": 5},
        7 * 2 * 3 * 5 * (3 + 5 + 5 + 5),
    ),
]


@pytest.mark.parametrize(
    ("call", "sizes", "products"), TF, ids=lambda item: item[0].split("<")[0] if isinstance(item, tuple) else ""
)
def test_tensorflow(call: tuple[str, ...], sizes: dict[str, Any], products: int | None) -> None:
    work = tf(*call)
    assert (dict(work.sizes), work.products) == (sizes, products)


X3 = "(float[2,3,8] x, float[8,5] w) => (float[2,3,5] y) { y = MatMul(x, w) }"
ONNX = [
    (X3, {"M": 6, "N": 5, "K": 8}, 6 * 5 * 8),
    ("(float[8] x, float[8,5] w) => (float[5] y) { y = MatMul(x, w) }", {"M": 1, "N": 5, "K": 8}, 5 * 8),
    ("(float[N,8] x, float[5,8] w) => (float[N,5] y) { y = Gemm<transB=1>(x, w) }", {"M": "N", "N": 5, "K": 8}, None),
    (
        "(float[1,4,10,10] x, float[6,2,3,3] w) => (float[1,6,8,8] y) { y = Conv<group=2>(x, w) }",
        {"batch": 1, "input channels of a group": 2, "output channels of a group": 3},
        64 * 6 * 2 * 9,
    ),
    ("(float[1,4,10,10] x, float[4,1,3,3] w) => (float[1,4,8,8] y) { y = Conv<group=4>(x, w) }", {}, 64 * 4 * 9),
    (
        "(float[1,6,10,10] x, float[6,7,2,2] w) => (float[1,7,20,20] y) { y = ConvTranspose<strides=[2,2]>(x, w) }",
        {"batch": 1, "input channels": 6, "output channels": 7},
        100 * 6 * 7 * 4,
    ),
    (
        (
            "(float[7,2,3] x, float[2,20,3] w, float[2,20,5] r) => (float[7,2,2,5] y) "
            '{ y = LSTM<hidden_size=5, direction="bidirectional">(x, w, r) }'
        ),
        {"batch": 2, "input size": 3, "hidden size": 5},
        7 * 2 * 2 * 4 * 5 * (3 + 5),
    ),
    (
        (
            "(float[2,3,8] q, float[2,6,4] k, float[2,6,6] v) => (float[2,3,12] y) "
            "{ y = Attention<q_num_heads=4, kv_num_heads=2>(q, k, v) }"
        ),
        {"queries": 3, "keys": 6, "head size": 2, "value size": 3},
        2 * 4 * 3 * 6 * (2 + 3),
    ),
    (
        (
            "(float[2,3,8] q, float[2,6,8] k, float[2,6,8] v) => (float[2,3,8] y) "
            "{ y = com.microsoft.MultiHeadAttention<num_heads=4>(q, k, v) }"
        ),
        {"queries": 3, "keys": 6, "head size": 2},
        2 * 4 * 3 * 6 * (2 + 2),
    ),
    (
        (
            "(float[2,8] x, uint8[5,1,4] w, float[5] s) => (float[2,5] y) "
            "{ y = com.microsoft.MatMulNBits<K=8, N=5, bits=4, block_size=16>(x, w, s) }"
        ),
        {"M": 2, "N": 5, "K": 8},
        2 * 5 * 8,
    ),
]


@pytest.mark.parametrize(("text", "sizes", "products"), ONNX)
def test_onnx(text: str, sizes: dict[str, Any], products: int | None) -> None:
    work = onnx(text)
    assert (dict(work.sizes), work.products) == (sizes, products)


def test_gradients_of_a_convolution_have_the_sizes_of_the_convolution() -> None:
    graph = ag.parse_graph(f"""
graph g(%x: f32[2,8,8,3], %w: f32[3,3,3,5]) {{
  %y: f32[2,8,8,5] = tf.Conv2D<T=f32>(%x, %w) {{{SAME}}}
  %xs: i32[4] = tf.Shape<T=f32, out_type=i32>(%x)
  %ws: i32[4] = tf.Shape<T=f32, out_type=i32>(%w)
  %dx: f32[2,8,8,3] = tf.Conv2DBackpropInput<T=f32>(%xs, %w, %y) {{{SAME}}}
  %dw: f32[3,3,3,5] = tf.Conv2DBackpropFilter<T=f32>(%x, %ws, %y) {{{SAME}}}
  return %dx, %dw
}}
""")
    first, *rest = (of(graph.node(name)) for name in ("y", "dx", "dw"))
    assert first.products == 2 * 64 * 9 * 15
    assert [item.products for item in rest] == [first.products] * 2
    assert [dict(item.sizes) for item in rest] == [dict(first.sizes)] * 2


def test_growth_needs_no_sizes_that_cancel() -> None:
    work = tf("MatMul<T=f32>()", "f32[batch,6]", "f32[6,5]")
    assert work.growth({"N": 8}) == 8 / 5
    work = onnx("(float[T,B,3] x, float[1,20,3] w, float[1,20,5] r) => (float[T,1,B,5] y) { y = LSTM<hidden_size=5>(x, w, r) }")
    assert work.products is None
    assert work.growth({"input size": 4, "hidden size": 8}) == 8 * (4 + 8) / (5 * (3 + 5))
    unknown = onnx(
        "(float[T,B,I] x, float[1,20,I] w, float[1,20,5] r) => (float[T,1,B,5] y) { y = LSTM<hidden_size=5>(x, w, r) }"
    )
    assert unknown.growth({"hidden size": 8}) is None


def test_other_ops_multiply_no_matrices() -> None:
    graph = ag.parse_graph("graph g(%x: f32[4]) {\n  %y = tf.Mul<T=f32>(%x, %x)\n  return %y\n}")
    node = graph.outputs[0].producer
    assert not multiplies(node)
    assert work_of(node, lambda value: (4,)) is None
    three = ag.parse_graph(
        'graph g(%x: f32[4,4]) {\n  %y = tf.Einsum<T=f32>(%x, %x, %x) {N=3, equation="ab,bc,cd->ad"}\n  return %y\n}'
    )
    assert work_of(three.outputs[0].producer, lambda value: (4, 4)) is None
