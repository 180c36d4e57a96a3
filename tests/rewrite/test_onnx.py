"""ONNX models, situation by situation: a model in the standard's text form, and the lines of what it becomes."""

from collections.abc import Callable
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, ModelProto, TensorProto, helper, numpy_helper

from ampgraph.graph.errors import PolicyError
from ampgraph.graph.formats.onnx import read_model, write_model
from ampgraph.rewrite import auto_mixed_precision

from .onnx_text import casts, dtypes, lines, model, rewrite, run

F = "float[8,64]"
W = {"w": (64, 64)}
CONV = "g (float[1,8,16,16] x) => (float[1,8,16,16] y) { h = Conv<pads = [1, 1, 1, 1]>(x, w)  y = Relu(h) }"
TWO = f"g ({F} x) => ({F} y) {{ a = MatMul(x, w)  b = Sigmoid(a)  y = MatMul(b, w) }}"


def expect(proto: ModelProto, after: str, **policy: Any) -> None:
    """Fail unless a model becomes what ``after`` shows."""
    assert lines(rewrite(proto, **policy)[1]) == dedent(after).strip()


def array_of(proto: ModelProto, name: str) -> Any:
    return next(numpy_helper.to_array(tensor) for tensor in proto.graph.initializer if tensor.name == name)


# ---- constants ------------------------------------------------------------------------------------------------------


def test_weights_are_stored_low_and_never_cast() -> None:
    proto = model(TWO, weights=W)
    expect(
        proto,
        """
        w:f16
        x_float16:f16 = Cast(x)
        a:f16 = MatMul(x_float16, w)
        b:f16 = Sigmoid(a)
        y_float16:f16 = MatMul(b, w)
        y:f32 = Cast(y_float16)
        """,
    )
    stored = array_of(rewrite(proto)[1], "w")
    np.testing.assert_array_equal(stored, array_of(proto, "w").astype(np.float16))


def test_a_constant_with_readers_of_both_kinds_is_stored_twice() -> None:
    text = f"""g ({F} x) => ({F} y) {{
      h = MatMul(x, w)  e = Exp(h)  low = Mul(h, k)  m = MatMul(low, w)  high = Mul(e, k)  y = Add(high, m)
    }}"""
    expect(
        model(text, weights={**W, "k": (64,)}),
        """
        w:f16
        k:f32
        k_float16:f16
        x_float16:f16 = Cast(x)
        h:f16 = MatMul(x_float16, w)
        h_float32:f32 = Cast(h)
        e:f32 = Exp(h_float32)
        low:f16 = Mul(h, k_float16)
        m:f16 = MatMul(low, w)
        m_float32:f32 = Cast(m)
        high:f32 = Mul(e, k)
        y:f32 = Add(high, m_float32)
        """,
    )


@pytest.mark.parametrize(
    ("constant", "values"),
    [
        ("Constant<value = float[1] {0.1}>()", [0.1]),
        ("Constant<value_float = 0.1>()", 0.1),
        ("Constant<value_floats = [0.1]>()", [0.1]),
        ("ConstantOfShape<value = float[1] {0.1}>(sizes)", [0.1]),
        ("ConstantOfShape(sizes)", [0.0]),
    ],
)
def test_constant_nodes_change_their_value(constant: str, values: Any) -> None:
    text = f"g ({F} x) => ({F} y) {{ h = MatMul(x, w)  c = {constant}  s = Add(h, c)  y = MatMul(s, w) }}"
    proto = model(text, weights={**W, "sizes": np.array([64])})
    after = rewrite(proto)[1]
    assert dtypes(after)["c"] == "f16"
    assert casts(after) == 2
    (attribute,) = next(node for node in after.graph.node if node.output[0] == "c").attribute
    assert attribute.name == "value"
    assert attribute.t.data_type == TensorProto.FLOAT16
    np.testing.assert_array_equal(numpy_helper.to_array(attribute.t), np.array(values, np.float16))


def test_sparse_constants_become_dense_low_ones() -> None:
    proto = model(f"g ({F} x) => ({F} y) {{ s = Constant()  y = MatMul(x, s) }}")
    diagonal = helper.make_tensor("", TensorProto.INT64, [64], [65 * i for i in range(64)])
    values = helper.make_tensor("", TensorProto.FLOAT, [64], [0.1] * 64)
    sparse = helper.make_sparse_tensor(values, diagonal, [64, 64])
    proto.graph.node[0].attribute.append(helper.make_attribute("sparse_value", sparse))
    after = rewrite(proto)[1]
    assert lines(after).splitlines()[1:3] == ["s:f16 = Constant()", "y_float16:f16 = MatMul(x_float16, s)"]
    (attribute,) = after.graph.node[1].attribute
    np.testing.assert_array_equal(numpy_helper.to_array(attribute.t), np.eye(64, dtype=np.float16) * np.float16(0.1))


def test_an_initializer_that_is_also_an_input_changes_with_its_entry() -> None:
    proto = model(f"g ({F} x, float[64,64] w) => ({F} y) {{ y = MatMul(x, w) }}", weights=W)
    after = rewrite(proto)[1]
    entries = {value.name: value.type.tensor_type.elem_type for value in after.graph.input}
    assert entries == {"x": TensorProto.FLOAT, "w": TensorProto.FLOAT16}
    assert dtypes(after)["w"] == "f16"


def test_embedding_tables_are_stored_once_and_low() -> None:
    text = "g (int64[8] i) => (float[8,64] y, float[8,64] z) { e = Gather(t, i)  s = Exp(e)  z = Mul(s, e)  y = MatMul(e, w) }"
    expect(
        model(text, weights={**W, "t": (1000, 64)}),
        """
        w:f16
        t:f16
        e:f16 = Gather(t, i)
        e_float32:f32 = Cast(e)
        s:f32 = Exp(e_float32)
        z:f32 = Mul(s, e_float32)
        y_float16:f16 = MatMul(e, w)
        y:f32 = Cast(y_float16)
        """,
    )


@pytest.mark.parametrize(("also", "table"), [("", "f16"), ("q = ReduceMax(t)", "f32")])
def test_an_embedding_table_that_a_body_alone_reads_is_low(also: str, table: str) -> None:
    text = f"""g (int64[8] i, int64 n) => (float[8,64] y, float[1,1] q) {{
      c = Constant <value = bool {{1}}> ()
      o = Loop(n, c) <body = b (int64 k, bool go) => (bool on, float[8,64] out) {{
        on = Identity(go)  e = Gather(t, i)  x = Exp(e)  out = Mul(x, e)
      }}>
      h = ReduceSum <keepdims = 0> (o, axes)
      y = MatMul(h, w)
      {also or "q = ReduceMax(y)"}
    }}"""
    after = dtypes(rewrite(model(text, weights={**W, "t": (1000, 64), "axes": np.array([0])}))[1])
    assert (after["t"], after["w"]) == (table, "f16")


# ---- inputs and outputs ---------------------------------------------------------------------------------------------


def test_outputs_keep_name_and_dtype_also_where_they_are_read_inside() -> None:
    expect(
        model(f"g ({F} x) => ({F} h, {F} y) {{ h = MatMul(x, w)  r = Relu(h)  y = MatMul(r, w) }}", weights=W),
        """
        w:f16
        x_float16:f16 = Cast(x)
        h_float16:f16 = MatMul(x_float16, w)
        h:f32 = Cast(h_float16)
        r:f16 = Relu(h_float16)
        y_float16:f16 = MatMul(r, w)
        y:f32 = Cast(y_float16)
        """,
    )


def test_an_output_that_is_returned_twice() -> None:
    proto = model(f"g ({F} x) => ({F} y) {{ y = MatMul(x, w) }}", weights=W)
    proto.graph.output.append(proto.graph.output[0])
    after = rewrite(proto)[1]
    assert [value.name for value in after.graph.output] == ["y", "y"]
    assert casts(after) == 2


def test_inputs_and_initializers_that_are_outputs_stay_as_they_are() -> None:
    proto = model(f"g ({F} x) => ({F} h, {F} x, float[64,64] w) {{ h = MatMul(x, w) }}", weights=W)
    expect(
        proto,
        """
        w:f32
        w_float16:f16
        x_float16:f16 = Cast(x)
        h_float16:f16 = MatMul(x_float16, w_float16)
        h:f32 = Cast(h_float16)
        """,
    )
    x = np.random.default_rng(1).standard_normal((8, 64), np.float32)
    _, same, weight = run(rewrite(proto)[1], {"x": x})
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(weight, array_of(proto, "w"))


@pytest.mark.parametrize(
    ("keep_io", "x", "h", "y"),
    [
        (True, "f32", "f32", "f32"),
        (False, "f16", "f16", "f16"),
        (("x",), "f32", "f16", "f16"),
        (["h"], "f16", "f32", "f16"),
        (("x", "y"), "f32", "f16", "f32"),
    ],
)
def test_keep_io_as_a_whole_and_by_name(keep_io: Any, x: str, h: str, y: str) -> None:
    proto = model(f"g ({F} x) => ({F} h, {F} y) {{ h = MatMul(x, w)  r = Relu(h)  y = MatMul(r, w) }}", weights=W)
    after = rewrite(proto, keep_io=keep_io)[1]
    types = dtypes(after)
    assert (types["x"], types["h"], types["y"]) == (x, h, y)
    assert casts(after) == [x, h, y].count("f32")


def test_a_strange_name_in_keep_io_is_refused() -> None:
    with pytest.raises(PolicyError, match=r"'yy' in keep_io is no input or output of this graph\. Did you mean 'y'\?"):
        auto_mixed_precision(read_model(model(TWO, weights=W)), keep_io=["yy"])


# ---- casts that are there already -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("signature", "before", "after"),
    [
        pytest.param(
            f"int64[8,64] i => {F} y",
            "c = Cast<to = 1>(i)  y = MatMul(c, w)",
            "c:f16 = Cast(i); y_float16:f16 = MatMul(c, w); y:f32 = Cast(y_float16)",
            id="retargeted",
        ),
        pytest.param(
            f"float16[8,64] i => {F} y",
            "c = Cast<to = 1>(i)  y = MatMul(c, w)",
            "y_float16:f16 = MatMul(i, w); y:f32 = Cast(y_float16)",
            id="from-low-dropped",
        ),
        pytest.param(
            f"{F} i => float16[8,64] y",
            "h = MatMul(i, w)  y = Cast<to = 10>(h)",
            "i_float16:f16 = Cast(i); h:f16 = MatMul(i_float16, w); y:f16 = Cast(h)",
            id="returned-stays",
        ),
        pytest.param(
            f"{F} i => {F} y",
            "h = MatMul(i, w)  c = Cast<to = 10>(h)  d = Cast<to = 1>(c)  y = MatMul(d, w)",
            "i_float16:f16 = Cast(i); h:f16 = MatMul(i_float16, w); y_float16:f16 = MatMul(h, w); y:f32 = Cast(y_float16)",
            id="no-ping-pong",
        ),
        pytest.param(
            f"{F} i => {F} y",
            "h = MatMul(i, w)  c = Cast<to = 1>(h)  y = MatMul(c, w)",
            "i_float16:f16 = Cast(i); h:f16 = MatMul(i_float16, w); y_float16:f16 = MatMul(h, w); y:f32 = Cast(y_float16)",
            id="to-itself-dropped",
        ),
        pytest.param(
            f"{F} i => {F} y",
            "h = MatMul(i, w)  c = Cast<to = 11>(h)  d = Cast<to = 1>(c)  y = MatMul(d, w)",
            "i_float16:f16 = Cast(i); h:f16 = MatMul(i_float16, w); c:f64 = Cast(h); d:f16 = Cast(c); "
            "y_float16:f16 = MatMul(d, w); y:f32 = Cast(y_float16)",
            id="double-stays",
        ),
        pytest.param(
            f"{F} i => bfloat16[8,64] y",
            "h = MatMul(i, w)  y = Cast<to = 16>(h)",
            "i_float16:f16 = Cast(i); h:f16 = MatMul(i_float16, w); y:bf16 = Cast(h)",
            id="other-low-dtype",
        ),
    ],
)
def test_existing_casts(signature: str, before: str, after: str) -> None:
    inputs, outputs = signature.split("=>")
    proto = model(f"g ({inputs}) => ({outputs}) {{ {before} }}", weights=W)
    expect(proto, "w:f16\n" + after.replace("; ", "\n"))


# ---- bodies ---------------------------------------------------------------------------------------------------------


def test_branches_take_captures_as_they_are_and_give_one_dtype() -> None:
    text = f"""g ({F} x, bool c) => ({F} y) {{
      h = MatMul(x, w)
      y = If(c) <then_branch = t () => ({F} a) {{ a = MatMul(h, w) }}, else_branch = e () => ({F} b) {{ b = Exp(h) }}>
    }}"""
    expect(
        model(text, weights=W),
        """
        w:f16
        x_float16:f16 = Cast(x)
        h:f16 = MatMul(x_float16, w)
        y_float16:f16 = If(c)
          then_branch() -> a:f16
            a:f16 = MatMul(h, w)
          else_branch() -> b:f16
            h_float32:f32 = Cast(h)
            b_float32:f32 = Exp(h_float32)
            b:f16 = Cast(b_float32)
        y:f32 = Cast(y_float16)
        """,
    )


LOOP = """g (float[8,64] x, int64 n, bool c) => (float[8,64] y) {
  h = MatMul(x, w)
  s, o = Loop(n, c, h) <body = b (int64 i, bool go, float[8,64] st) => (bool on, float[8,64] st2, float[8,64] out) {
    on = Identity(go)  p = MatMul(st, w)  STATE  out = Relu(p)
  }>
  m = ReduceMax<keepdims = 0>(o, zero)  r = Add(s, m)  y = MatMul(r, w)
}"""


def test_loops_carry_low_states() -> None:
    proto = model(LOOP.replace("STATE", "st2 = Relu(p)"), weights={**W, "zero": np.array([0])})
    expect(
        proto,
        """
        w:f16
        x_float16:f16 = Cast(x)
        h:f16 = MatMul(x_float16, w)
        s:f16, o:f16 = Loop(n, c, h)
          body(i:i64, go:bool, st:f16) -> on:bool, st2:f16, out:f16
            on:bool = Identity(go)
            p:f16 = MatMul(st, w)
            st2:f16 = Relu(p)
            out:f16 = Relu(p)
        m:f16 = ReduceMax(o, zero)
        r:f16 = Add(s, m)
        y_float16:f16 = MatMul(r, w)
        y:f32 = Cast(y_float16)
        """,
    )
    feeds = {"x": np.random.default_rng(0).standard_normal((8, 64), np.float32), "n": np.array(3), "c": np.array(True)}
    np.testing.assert_allclose(run(rewrite(proto)[1], feeds)[0], run(proto, feeds)[0], atol=5e-3)


def test_loops_carry_float_states_where_the_body_needs_them() -> None:
    proto = model(LOOP.replace("STATE", "t = Exp(st)  st2 = Add(t, p)"), weights={**W, "zero": np.array([0])})
    after = lines(rewrite(proto)[1])
    assert "s:f32, o:f16 = Loop(n, c, h_float32)" in after
    assert "body(i:i64, go:bool, st:f32) -> on:bool, st2:f32, out:f16" in after
    assert "p:f16 = MatMul(st_float16, w)" in after
    assert "t:f32 = Exp(st)" in after


def test_scans_have_states_and_slices_of_their_own_dtype() -> None:
    text = """g (float[8,64] x, float[64] z) => (float[64] y, float[8,64] ys) {
      h = MatMul(x, w)
      y, ys = Scan<num_scan_inputs = 1, body = b (float[64] st, float[64] e) => (float[64] st2, float[64] out) {
        p = MatMul(e, w)  st2 = Add(st, p)  out = Relu(p)
      }>(z, h)
    }"""
    expect(
        model(text, weights=W),
        """
        w:f16
        x_float16:f16 = Cast(x)
        h:f16 = MatMul(x_float16, w)
        y:f32, ys_float16:f16 = Scan(z, h)
          body(st:f32, e:f16) -> st2:f32, out:f16
            p:f16 = MatMul(e, w)
            p_float32:f32 = Cast(p)
            st2:f32 = Add(st, p_float32)
            out:f16 = Relu(p)
        ys:f32 = Cast(ys_float16)
        """,
    )


def test_bodies_in_bodies() -> None:
    text = f"""g ({F} x, bool c, int64 n) => ({F} y) {{
      h = MatMul(x, w)
      q = If(c) <
        then_branch = t () => ({F} a) {{
          a = Loop(n, c, h) <body = b (int64 i, bool go, {F} st) => (bool on, {F} st2) {{ on = Identity(go)  st2 = MatMul(st, w) }}>
        }},
        else_branch = e () => ({F} b) {{ b = Relu(h) }}
      >
      y = MatMul(q, w)
    }}"""
    after = rewrite(model(text, weights=W))[1]
    assert casts(after) == 2
    assert "body(i:i64, go:bool, st:f16) -> on:bool, st2:f16" in lines(after)


# ---- functions ------------------------------------------------------------------------------------------------------

ONCE = """
<opset_import: ["": 21], domain: "l"> once (a, v) => (b) { p = MatMul(a, v)  b = Relu(p) }
"""
TWICE = """
<opset_import: ["": 21, "l": 1], domain: "l"> twice (a, v) => (b) { t = l.once(a, v)  b = l.once(t, v) }
"""


def test_functions_are_decided_with_their_calls() -> None:
    text = f"g ({F} x) => ({F} y) {{ h = l.twice(x, w)  y = l.once(h, w) }}" + TWICE + ONCE
    expect(
        model(text, imports=', "l": 1', weights=W),
        """
        w:f16
        x_float16:f16 = Cast(x)
        h:f16 = twice(x_float16, w)
        y_float16:f16 = once(h, w)
        y:f32 = Cast(y_float16)
        twice(a, v) -> b
          t = once(a, v)
          b = once(t, v)
        once(a, v) -> b
          p = MatMul(a, v)
          b = Relu(p)
        """,
    )


def test_a_function_has_one_dtype_for_all_its_calls() -> None:
    text = f"g ({F} x) => ({F} y) {{ h = l.once(x, w)  e = Exp(h)  i = l.once(e, w)  y = Exp(i) }}" + ONCE
    after = rewrite(model(text, imports=', "l": 1', weights=W))[1]
    assert dtypes(after) == {
        **dict.fromkeys(("w", "x_float16", "h", "e_float16", "i"), "f16"),
        **dict.fromkeys(("x", "h_float32", "e", "i_float32", "y"), "f32"),
    }
    assert [node.op_type for node in after.functions[0].node] == ["MatMul", "Relu"]


def test_optional_operands_and_attributes_of_functions() -> None:
    text = f"""g ({F} x) => ({F} y) {{
      h = MatMul(x, w)  a = l.clip<alpha = 0.5>(h, , k)  b = l.clip<alpha = 0.25>(a, k)  y = MatMul(b, w)
    }}
    <opset_import: ["": 21], domain: "l"> clip <alpha> (a, lo, hi) => (b) {{
      c = Clip(a, lo, hi)  f = Constant<value_float: float = @alpha>()  d = Mul(c, f)  b = LeakyRelu<alpha: float = @alpha>(d)
    }}"""
    proto = model(text, imports=', "l": 1', weights={**W, "k": np.float32(0.1)})
    after = rewrite(proto)[1]
    assert dtypes(after)["k"] == "f16"
    assert lines(after).splitlines()[4:6] == ["a:f16 = clip(h, , k)", "b:f16 = clip(a, k)"]
    inside = after.functions[0].node
    assert [node.op_type for node in inside] == ["Clip", "Constant", "Cast", "Mul", "LeakyRelu"]
    assert inside[1].attribute[0].ref_attr_name == inside[4].attribute[0].ref_attr_name == "alpha"
    assert inside[4].attribute[0].type == AttributeProto.FLOAT


# ---- sequences and optionals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "take", "output", "low"),
    [
        ("s = SequenceConstruct(h, h)", "SequenceAt(s, i)", "", True),
        ("e = SequenceEmpty()  s = SequenceInsert(e, h)", "SequenceAt(s, i)", "", True),
        ("s = Optional(h)", "OptionalGetElement(s)", "", True),
        ("s = SequenceConstruct(h, h)", "SequenceAt(s, i)", "seq(float[8,64]) s, ", False),
        ("s = Optional(h)", "OptionalGetElement(s)", "optional(float[8,64]) s, ", False),
    ],
)
def test_sequences_and_optionals_have_one_dtype(make: str, take: str, output: str, low: bool) -> None:
    """Those that the model returns keep theirs: no Cast takes one."""
    text = f"g ({F} x) => ({output}{F} y) {{ h = MatMul(x, w)  {make}  i = Constant<value_int = 0>()  a = {take}  y = MatMul(a, w) }}"
    after = rewrite(model(text, weights=W))[1]
    assert dtypes(after)["a"] == ("f16" if low else "f32")
    assert casts(after) == (2 if low else 4)


def test_maps_over_sequences_keep_a_sequence_that_comes_in() -> None:
    text = f"""g (seq({F}) x) => (seq({F}) y) {{
      y = SequenceMap<body = b ({F} e) => ({F} o) {{ p = MatMul(e, w)  o = MatMul(p, w) }}>(x)
    }}"""
    after = lines(rewrite(model(text, weights=W))[1])
    assert "body(e:f32) -> o:f32" in after
    assert "p:f16 = MatMul(e_float16, w)" in after


# ---- vocabularies ---------------------------------------------------------------------------------------------------


def test_ops_of_an_unknown_domain_keep_their_dtypes() -> None:
    text = f"g ({F} x) => ({F} y) {{ h = MatMul(x, w)  u = acme.Foo<k = 1>(h)  y = MatMul(u, w) }}"
    result, after = rewrite(model(text, imports=', "acme": 1', weights=W))
    assert [(node.op_type, *node.input) for node in after.graph.node if node.op_type == "Foo"] == [("Foo", "h_float32")]
    assert "u_float16:f16 = Cast(u)" in lines(after)
    assert [item.reason for item in result.report.explain("u")] == ["undefined"]


def test_ops_of_com_microsoft_are_known() -> None:
    text = f"g ({F} x) => ({F} y) {{ h = MatMul(x, w)  u = com.microsoft.Gelu(h)  y = com.microsoft.FusedMatMul(u, w) }}"
    after = rewrite(model(text, imports=', "com.microsoft": 1', weights=W))[1]
    assert [node.op_type for node in after.graph.node] == ["Cast", "MatMul", "Gelu", "FusedMatMul", "Cast"]


@pytest.mark.parametrize(("opset", "operands"), [(10, "h, s"), (13, "h, , s"), (21, "h, , s")])
def test_the_scales_of_resize_stay_float32(opset: int, operands: str) -> None:
    text = f"""g (float[1,8,8,8] x) => (float[1,8,16,16] y) {{
      h = Conv<pads = [1, 1, 1, 1]>(x, w)  y = Resize<mode = "nearest">({operands})
    }}"""
    after = rewrite(model(text, opset=opset, weights={"w": (8, 8, 3, 3), "s": np.array([1, 1, 2, 2], np.float32)}))[1]
    types = dtypes(after)
    assert (types["w"], types["s"], types["y_float16"]) == ("f16", "f32", "f16")


@pytest.mark.parametrize("opset", [13, 19, 21])
def test_the_operands_of_quantization_stay_float32(opset: int) -> None:
    text = f"g ({F} x) => ({F} y) {{ h = MatMul(x, w)  q = QuantizeLinear(h, s, z)  d = DequantizeLinear(q, s, z)  y = Relu(d) }}"
    after = rewrite(model(text, opset=opset, weights={**W, "s": np.float32(0.1), "z": np.int8(0)}))[1]
    types = dtypes(after)
    assert (types["h"], types["h_float32"], types["s"], types["d"], types["y"]) == ("f16", "f32", "f32", "f32", "f32")


def test_bfloat16_raises_the_opset_as_far_as_it_must() -> None:
    weights = {"w": (8, 8, 3, 3)}
    result, after = rewrite(model(CONV, opset=11, weights=weights), dtype="bf16")
    assert after.opset_import[0].version == 22
    assert "the opset was raised from 11 to 22, because Conv takes bfloat16 only from there on" in result.report.notes
    assert dtypes(after)["w"] == "bf16"
    for opset, wanted in ((12, 13), (13, 13), (21, 21)):
        result, after = rewrite(model(TWO, opset=opset, weights=W), dtype="bf16")
        assert after.opset_import[0].version == wanted
        assert bool(result.report.notes) == (opset != wanted)
        assert dtypes(after)["w"] == "bf16"
    assert rewrite(model(CONV, opset=11, weights=weights))[1].opset_import[0].version == 11
    result, after = rewrite(model(CONV, opset=11, weights=weights), dtype="bf16", nodes=(".*=none",))
    assert after.opset_import[0].version == 11  # nothing else changes, so nothing is raised
    assert not any("raised" in note for note in result.report.notes)


# ---- names ----------------------------------------------------------------------------------------------------------


def test_names_that_look_like_ours_are_not_taken_twice() -> None:
    text = f"""g ({F} x) => ({F} y) {{
      h = MatMul(x, w)  x_float16 = Relu(h)  w_float16 = MatMul(x_float16, w)  e = Exp(w_float16)  y_float16 = Neg(e)
      y = MatMul(y_float16, w)
    }}"""
    after = rewrite(model(text, weights=W))[1]
    names = [name for node in after.graph.node for name in node.output]
    assert len(set(names)) == len(names)
    assert {"h", "x_float16", "w_float16", "e", "y_float16"} <= set(names)
    assert after.graph.output[0].name == names[-1] == "y"


def test_names_in_bodies_do_not_clash_with_outer_ones() -> None:
    text = f"""g ({F} x, bool c) => ({F} y, {F} e) {{
      h = MatMul(x, w)
      y = If(c) <
        then_branch = t () => ({F} a) {{ h_float32 = Relu(h)  k = Exp(h)  a = Add(k, h_float32) }},
        else_branch = f () => ({F} b) {{ b = Exp(h) }}
      >
      e = Exp(h)
    }}"""
    rewrite(model(text, weights=W))  # the checker refuses a name of an outer graph


@pytest.mark.parametrize("name", ["", "same"])
def test_unnamed_nodes_and_nodes_of_one_name(name: str) -> None:
    proto = model(TWO, weights=W)
    for node in proto.graph.node:
        node.name = name
    result, after = rewrite(proto)
    assert [node.name for node in after.graph.node if node.op_type != "Cast"] == [name] * 3
    assert result.report.low == 3


# ---- nothing to do --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        (f"g ({F} x) => ({F} y) {{ a = Exp(x)  y = Relu(a) }}", {}),
        (f"g ({F} x) => ({F} x) {{ }}", {}),
        (TWO, {"ops": ("MatMul=deny",)}),
        (TWO, {"nodes": (".*=none",)}),
        (TWO, {"preserve": ("a", "y")}),
        (TWO, {"target": "gpu:6.1"}),
    ],
)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_nothing_to_gain_is_the_same_object(text: str, policy: Any, dtype: str) -> None:
    graph = read_model(model(text, weights=W))
    result = auto_mixed_precision(graph, dtype=dtype, **policy)
    assert result.graph is graph
    assert not result.modified
    assert result.report.low == result.report.casts == 0


def test_islands_that_do_not_pay_are_left_alone() -> None:
    """One product per element between two casts of 4,096; with 64 products per element it pays."""
    text = "g (float[4096,1] x) => (float[4096,1] y) { a = Exp(x)  b = MatMul(a, k)  y = Exp(b) }"
    result, after = rewrite(model(text, weights={"k": (1, 1)}))
    assert casts(after) == 0
    (explanation,) = result.report.explain("b")
    assert explanation.reason == "island"
    assert "would cost more than the region saves" in explanation.why
    assert casts(rewrite(model(text.replace("4096,1", "4096,64"), weights={"k": (64, 64)}))[1]) == 2


# ---- the policy -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "low"),
    [
        ({}, "a b y_float16"),
        ({"ops": ("Sigmoid=deny",)}, "a y_float16"),
        ({"ops": ("Exp=allow",)}, "a b y_float16"),
        ({"nodes": ("p/one=deny",)}, "y_float16"),
        ({"nodes": ("b=deny",)}, "a y_float16"),
        ({"nodes": ("p/.*=deny", "p/two=allow")}, "y_float16"),
        ({"preserve": ("p/two",)}, "a b"),
        ({"nodes": ("q=deny",)}, "a b y_float16"),
    ],
)
def test_overrides_by_op_and_by_node(policy: Any, low: str) -> None:
    proto = model(TWO, weights=W)
    proto.graph.node[0].name, proto.graph.node[2].name = "p/one", "p/two"
    result, after = rewrite(proto, **policy)
    made = {name for node in after.graph.node if node.op_type != "Cast" for name in node.output}
    types = dtypes(after)
    assert {name for name in made if types[name] == "f16"} == set(low.split())
    unused = [note for note in result.report.notes if "matches no" in note]
    assert bool(unused) == (policy in ({"ops": ("Exp=allow",)}, {"nodes": ("q=deny",)}))


PRESETS = f"g ({F} x) => ({F} y) {{ a = MatMul(x, w)  b = Softmax(a)  c = Add(b, b)  d = ReduceMean(c)  e = Sub(c, d)  y = MatMul(e, w) }}"


@pytest.mark.parametrize(
    ("preset", "dtype", "low"),
    [
        ("safe", "float16", "a b c d e"),
        ("safe", "bfloat16", "a b c d e"),
        ("tensorrt", "float16", "a b c d e"),
        ("onnxruntime", "float16", "a b c d e"),
        ("grappler", "float16", "a b c"),
        ("torch-autocast", "float16", "a"),
        ("torch-autocast", "bfloat16", "a"),
    ],
)
def test_presets(preset: str, dtype: str, low: str) -> None:
    types = dtypes(rewrite(model(PRESETS, weights=W), preset=preset, dtype=dtype)[1])
    assert {name for name in "abcde" if types[name] != "f32"} == set(low.split())


@pytest.mark.parametrize(("preset", "low"), [("safe", False), ("onnxruntime", False), ("tensorrt", True)])
def test_recurrent_cells_are_low_where_the_runtime_has_them(preset: str, low: bool) -> None:
    text = "g (float[5,2,16] x) => (float[5,1,2,32] y) { y, yh, yc = LSTM<hidden_size = 32>(x, w, r) }"
    result, after = rewrite(model(text, weights={"w": (1, 128, 16), "r": (1, 128, 32)}), preset=preset)
    assert result.modified == low
    assert dtypes(after)["w"] == ("f16" if low else "f32")


def test_contradictions_are_refused() -> None:
    with pytest.raises(PolicyError, match="Grappler has no mode for gpu with bfloat16"):
        rewrite(model(TWO, weights=W), preset="grappler", dtype="bfloat16")


@pytest.mark.parametrize("build", [lambda: model(TWO, weights=W), lambda: model(CONV, weights={"w": (8, 8, 3, 3)})])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_given_graph_is_not_changed(build: Callable[[], ModelProto], dtype: str) -> None:
    graph = read_model(build())
    text = str(graph)
    assert auto_mixed_precision(graph, dtype=dtype).modified
    assert str(graph) == text


def test_list_edits_name_ops_with_their_domain() -> None:
    text = f"g ({F} x) => ({F} y) {{ a = MatMul(x, w)  b = com.microsoft.Gelu(a)  y = MatMul(b, w) }}"
    proto = model(text, imports=', "com.microsoft": 1', weights=W)
    ops = ("com.microsoft:Gelu=deny", "com.microsoft:BiasGelu=deny", "com.microsoft:Gelo=deny", "Matmul=deny")
    assert [note for note in rewrite(proto, ops=ops)[0].report.notes if note.startswith("list edit")] == [
        "list edit 'com.microsoft:BiasGelu=deny' matches no op of this graph",
        "list edit 'com.microsoft:Gelo=deny' names an op that nobody defines. Did you mean 'com.microsoft:Gelu'?",
        "list edit 'Matmul=deny' names an op that nobody defines. Did you mean 'MatMul'?",
    ]


def test_casts_in_a_function_of_vendor_ops_have_the_version_of_the_model() -> None:
    proto = model(
        f"""g ({F} x) => ({F} y) {{ a = MatMul(x, w)  b = local.f(a)  y = MatMul(b, w) }}
        <domain: "local", opset_import: ["com.microsoft": 1]>
        f (u) => (v) {{ t = com.microsoft.Gelu(u)  v = com.microsoft.Inverse(t) }}""",
        imports=', "local": 1, "com.microsoft": 1',
        weights=W,
    )
    result = auto_mixed_precision(read_model(proto), ops=("com.microsoft:Inverse=deny", "com.microsoft:Gelu=allow"))
    (function,) = write_model(result.graph).functions
    assert [node.op_type for node in function.node] == ["Gelu", "Cast", "Inverse", "Cast"]
    assert {(entry.domain, entry.version) for entry in function.opset_import} == {("com.microsoft", 1), ("", 21)}


def test_a_body_returns_no_value_from_outside() -> None:
    """A Cast that does nothing is all that makes the condition a value of the body."""
    proto = model(
        f"""g ({F} x, bool go) => (float[n,m] y) {{
          h = MatMul(x, w)
          y = Loop(k, go, h) <body = b (int64 i, bool c, float[n,m] s) => (bool d, float[n,m] t) {{
            d = Cast<to = 9>(go)
            t = MatMul(s, w)
          }}>
        }}""",
        weights={**W, "k": np.array(2)},
    )
    after = rewrite(proto)[1]
    (loop,) = [node for node in after.graph.node if node.op_type == "Loop"]
    (body,) = [attribute.g for attribute in loop.attribute if attribute.name == "body"]
    assert {value.name for value in body.output} <= {name for node in body.node for name in node.output}


NORMALIZED = (
    "g (float[1,64,9] x) => (float[1,64,7] y) { n = ReduceL2<axes = [1, 2]>(v)  d = Div(v, n)  k = Mul(d, s)  y = Conv(x, k) }"
)


@pytest.mark.parametrize("text", [NORMALIZED, NORMALIZED.replace("Div(v, n)  k = Mul(d, s)", "Div(s, n)  k = Mul(v, d)")])
def test_weights_that_are_normalized_are_stored_once_and_low(text: str) -> None:
    weights = {"v": (64, 64, 3), "s": np.full((64, 1, 1), 1.5, np.float32)}
    proto = model(text, opset=13, ir=7, weights=weights)
    after = rewrite(proto)[1]
    types = dtypes(after)
    assert {types[name] for name in ("v", "s", "n", "d", "k")} == {"f16"}
    assert casts(after) == 2  # of the input and the result, none of the weights
    x = np.random.default_rng(0).standard_normal((1, 64, 9), np.float32)
    ((wanted,), (found,)) = run(proto, {"x": x}), run(after, {"x": x})
    np.testing.assert_allclose(found, wanted, atol=3e-3 * np.abs(wanted).max())


@pytest.mark.parametrize(
    "weights",
    [
        {"v": np.full((64, 64, 3), 1e4, np.float32), "s": np.ones((64, 1, 1), np.float32)},  # their norm overflows
        {"v": np.full((64, 64, 3), 1e-6, np.float32), "s": np.ones((64, 1, 1), np.float32)},  # and here vanishes
        {"v": (64, 64, 3), "s": np.full((64, 1, 1), 6e4, np.float32)},
    ],
)
def test_weights_that_are_normalized_in_float_where_they_do_not_fit(weights: dict[str, Any]) -> None:
    types = dtypes(rewrite(model(NORMALIZED, opset=13, ir=7, weights=weights))[1])
    assert (types["v"], types["n"], types["d"]) == ("f32", "f32", "f32")
