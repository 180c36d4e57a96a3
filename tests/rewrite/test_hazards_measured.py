"""Hazards that were measured: what follows from ranges and from values to keep, in both vocabularies and both dtypes."""

from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph.rewrite import RewriteResult
from ampgraph.rewrite.model_report import hazards
from ampgraph.rewrite.only import first_result

from .onnx_text import graph_of, model, rewrite

F = "float[8,64]"
V = (np.random.default_rng(0).standard_normal((64, 64)) / 8).astype(np.float32)
#: Of a value between two products: a chain of three, which would all be low.
CHAIN = "h = MatMul(x, w)  a = Add(h, h)  b = Mul(a, h)  c = Relu(b)  y = MatMul(c, w)"


def onnx_model(body: str, **weights: Any) -> Any:
    return model(f"g ({F} x) => ({F} y) {{ {body} }}", weights={"w": V, **weights})


def tf_graph() -> ag.Graph:
    return ag.parse_graph("""
        graph g() {
          %x: f32[8,8] = tf.Placeholder<dtype=f32>() {shape=shape[8,8]}
          %h: f32[8,8] = tf.MatMul<T=f32>(%x, %x)
          %a: f32[8,8] = tf.AddV2<T=f32>(%h, %h)
          %b: f32[8,8] = tf.Mul<T=f32>(%a, %h)
          %c: f32[8,8] = tf.Relu<T=f32>(%b)
          %y: f32[8,8] = tf.MatMul<T=f32>(%c, %x)
          %z: f32[8,8] = tf.Identity<T=f32>(%y)
          return %z
        }
    """)


def held(result: RewriteResult, code: str = "measured-range") -> dict[str, str]:
    return {body.label(node): hazard.why for body, node, hazard in hazards(result.report) if hazard.code == code}


def low(result: RewriteResult) -> set[str]:
    return {
        first_result(node).removesuffix("_float16").removesuffix("_bfloat16")
        for body in result.report.bodies
        for node in body.low
    }


@pytest.mark.parametrize(
    ("dtype", "largest", "found"),
    [
        ("float16", 70_000.0, "reached 70000, over the largest number of float16"),
        ("float16", 20_000.0, "reached 20000, near the largest number of float16"),
        ("float16", 16_000.0, ""),
        ("bfloat16", 70_000.0, ""),
        ("bfloat16", 3.4e38, "reached 3.4e+38, over the largest number of bfloat16"),
        ("bfloat16", 1e38, "reached 1e+38, near the largest number of bfloat16"),
    ],
)
def test_a_large_value_and_what_reads_it_stay_float32(dtype: str, largest: float, found: str) -> None:
    policy = ag.Policy(dtype=dtype, ranges=(("a", 1.0, largest),))
    for graph in (graph_of(onnx_model(CHAIN)), tf_graph()):
        result = ag.auto_mixed_precision(graph, policy)
        assert held(result) == ({"a": f"its result {found}", "b": f"its operand 'a' {found}"} if found else {})
        assert {"h", "c"} <= low(result)
        assert ("a" in low(result)) == (not found)


def test_the_model_stays_valid() -> None:
    result, _ = rewrite(onnx_model(CHAIN), ranges=(("a", 1.0, 1e6),), kept=(("c", "it says so"),))
    assert set(held(result)) == {"a", "b"}
    assert held(result, "measured-error") == {"c": "it says so"}


def test_a_product_with_a_large_result_stays_float32_and_one_with_a_small_result_does_not() -> None:
    graph = graph_of(onnx_model(CHAIN))
    assert "h" not in low(ag.auto_mixed_precision(graph, ranges=(("h", 1.0, 1e6),)))
    result = ag.auto_mixed_precision(graph, ranges=(("h", 1e-9, 1e-6),))
    assert "h" in low(result)
    assert held(result)["a"] == "its operand 'h' was at most 1e-06, which loses its digits in float16"


@pytest.mark.parametrize(
    ("ops", "held_nodes"),
    [
        ("b = Div(h, a)", {"a", "b"}),
        ("b = Div(a, h)", set()),
        ("b = Add(h, a)", set()),
        ("b = Sqrt(a)", set()),
        ("r = Sqrt(a)  b = Div(h, r)", {"a", "r"}),
        ("b = Pow(a, three)", set()),
        ("b = Pow(a, half)", {"a", "b"}),
    ],
)
def test_small_elements_matter_where_they_are_magnified(ops: str, held_nodes: set[str]) -> None:
    powers = {"three": np.float32(3), "half": np.float32(0.5)}
    graph = graph_of(onnx_model(f"h = MatMul(x, w)  a = Abs(h)  {ops}  y = MatMul(b, w)", **powers))
    assert set(held(ag.auto_mixed_precision(graph, ranges=(("a", 1e-6, 1.0),)))) == held_nodes
    assert not held(ag.auto_mixed_precision(graph, dtype="bfloat16", ranges=(("a", 1e-6, 1.0),)))


def test_masks_are_clamped_still() -> None:
    lowest = np.float32(np.finfo(np.float32).min)
    graph = graph_of(onnx_model("h = MatMul(x, w)  a = Add(h, k)  s = Softmax(a)  y = MatMul(s, w)", k=lowest))
    result = ag.auto_mixed_precision(graph, ranges=(("a", 0.1, 3.4e38),))
    assert not held(result)
    assert {"a", "s"} <= low(result)


def test_a_kept_node_reads_a_table_in_float32() -> None:
    table = np.random.default_rng(0).standard_normal((512, 64)).astype(np.float32)
    text = f"g (int64[8] i) => ({F} y) {{ e = Gather(t, i)  y = MatMul(e, w) }}"
    graph = graph_of(model(text, weights={"w": V, "t": table}))
    assert "e" in low(ag.auto_mixed_precision(graph))
    assert "e" not in low(ag.auto_mixed_precision(graph, kept=(("e", ""),)))


def test_values_in_bodies_are_held() -> None:
    text = f"""g ({F} x, bool c) => ({F} y) {{
      h = MatMul(x, w)
      r = If (c) <then_branch = t () => (float[8,64] u) {{ n = Mul(h, h)  u = Sqrt(n) }},
                  else_branch = e () => (float[8,64] v) {{ v = Relu(h) }}>
      y = MatMul(r, w)
    }}"""
    result, _ = rewrite(model(text, weights={"w": V}), ranges=(("n", 1.0, 1e6),))
    assert set(held(result)) == {"n", "u"}
    assert {"h", "v", "y"} <= low(result)


def test_who_names_a_node_knows_better() -> None:
    graph = graph_of(onnx_model(CHAIN))
    result = ag.auto_mixed_precision(graph, ranges=(("a", 1.0, 1e6),), nodes=("a=allow",))
    assert set(held(result)) == {"b"}
    assert "a" in low(result)


@pytest.mark.parametrize("settings", [{"preset": "grappler"}, {"preset": "torch-autocast"}, {"level": "UNSAFE_FORCE_ALL"}])
def test_measurements_hold_where_no_hazards_are_looked_for(settings: Any) -> None:
    result = ag.auto_mixed_precision(tf_graph(), **settings, kept=(("h", "it says so"),))
    assert held(result, "measured-error") == {"h": "it says so"}
    assert "h" not in low(result)
    assert "h" in low(ag.auto_mixed_precision(tf_graph(), **settings))


def test_measurements_hold_in_models_all_of_which_is_forced_low() -> None:
    graph = graph_of(onnx_model(CHAIN))
    settings: Any = {"preset": "grappler", "level": "UNSAFE_FORCE_ALL"}
    assert {"h", "a"} <= low(ag.auto_mixed_precision(graph, **settings))
    assert "a" not in low(ag.auto_mixed_precision(graph, **settings, kept=(("a", ""),)))


def test_names_that_are_not_in_the_graph_are_noted() -> None:
    result = ag.auto_mixed_precision(tf_graph(), ranges=(("gone", 1.0, 1e6),), kept=(("h", ""), ("lost", "")))
    assert result.report.notes == ["2 of 3 measured values are not in this graph, such as 'gone'"]


def test_the_summary_counts_measurements_and_does_not_print_them() -> None:
    result = ag.auto_mixed_precision(tf_graph(), ranges=(("a", 1.0, 1e6),))
    first = result.report.text().splitlines()[0]
    assert first.endswith('cudnn=9.3", and 1 measured value')
