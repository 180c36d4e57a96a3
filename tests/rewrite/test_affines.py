"""Layer normalizations written out: values in front of them, scale and offset have one dtype where they are fused into one op."""

import numpy as np
import pytest
from onnx import ModelProto

from .onnx_text import casts, dtypes, model, rewrite

F = "float[8,64]"
NORM = "m = ReduceMean<axes = [-1]>(h)  d = Sub(h, m)  q = Mul(d, d)  v = ReduceMean<axes = [-1]>(q)  e = Add(v, eps) s = Sqrt(e)  n = Div(d, s)"
WEIGHTS = {"w": (64, 64), "eps": np.float32(1e-5), "g": np.full(64, 1.5, np.float32), "b": np.full(64, 0.5, np.float32)}


def norm(before: str, after: str, *, opset: int = 17, scale: float = 1.5) -> ModelProto:
    """Return a model with ``before`` in front of a normalization of ``h``, scaled by ``g`` to ``k``, and ``after`` behind it."""
    text = f"g ({F} x) => ({F} y) {{ {before}  {NORM}  k = Mul(n, g)  {after} }}"
    return model(text, opset=opset, ir=8, weights={**WEIGHTS, "g": np.full(64, scale, np.float32)})


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_scale_and_offset_are_low_behind_low_values(dtype: str) -> None:
    result, after = rewrite(norm("h = MatMul(x, w)", "l = Add(k, b)  y = MatMul(l, w)"), dtype=dtype)
    types = dtypes(after)
    assert {types[name] for name in ("h", "g", "b", "k", "l")} == {"f16" if dtype == "float16" else "bf16"}
    assert {types[name] for name in ("m", "d", "q", "v", "e", "s", "n")} == {"f32"}
    assert casts(after) == 4  # of x, h, n and the result
    assert "what is normalized in front of it is" in next(result.report.explain("k")).why


def test_older_models_keep_them_float() -> None:
    types = dtypes(rewrite(norm("h = MatMul(x, w)", "l = Add(k, b)  y = MatMul(l, w)", opset=16))[1])
    assert (types["h"], types["n"], types["k"], types["l"]) == ("f16", "f32", "f32", "f32")


def test_a_sum_that_is_only_normalized_is_float_with_them() -> None:
    result, after = rewrite(norm("a = MatMul(x, w)  h = Add(a, x)", "l = Add(k, b)  y = MatMul(l, w)"))
    types = dtypes(after)
    assert (types["a"], types["h"], types["k"], types["l"]) == ("f16", "f32", "f32", "f32")
    assert casts(after) == 4
    assert "it is only normalized" in next(result.report.explain("h")).why


def test_a_sum_that_is_also_read_elsewhere_is_low() -> None:
    before = "a = MatMul(x, w)  h = Add(a, x)"
    types = dtypes(rewrite(norm(before, "l = Add(k, b)  c = MatMul(l, w)  z = MatMul(h, w)  y = Add(c, z)"))[1])
    assert {types[name] for name in ("a", "h", "k", "l")} == {"f16"}


def test_a_scale_that_is_too_large_stays_float() -> None:
    types = dtypes(rewrite(norm("h = MatMul(x, w)", "l = Add(k, b)  y = MatMul(l, w)", scale=60000.0))[1])
    assert (types["h"], types["g"], types["k"]) == ("f16", "f32", "f32")


def test_a_value_that_is_also_a_result_has_float_scales() -> None:
    text = f"g ({F} x) => ({F} y, {F} h) {{ h = MatMul(x, w)  {NORM}  k = Mul(n, g)  l = Add(k, b)  y = MatMul(l, w) }}"
    types = dtypes(rewrite(model(text, opset=17, ir=8, weights=WEIGHTS))[1])
    assert (types["h"], types["k"], types["l"], types["g"]) == ("f32", "f32", "f32", "f32")
    assert types["y_float16"] == "f16"


def test_a_value_that_is_also_read_in_float_has_float_scales() -> None:
    text = (
        f"g ({F} x) => ({F} y, {F} z) {{ h = MatMul(x, w)  {NORM}  k = Mul(n, g)  l = Add(k, b)  y = MatMul(l, w)  z = Exp(h) }}"
    )
    types = dtypes(rewrite(model(text, opset=17, ir=8, weights=WEIGHTS))[1])
    assert (types["h"], types["k"], types["l"], types["g"]) == ("f16", "f32", "f32", "f32")
