"""Small ONNX models for tests, written in the standard's own text form."""

from pathlib import Path
from typing import Any

from onnx import ModelProto, parser

DATA = Path(__file__).parents[2] / "data" / "onnx"

PLAIN = """<ir_version: 8, opset_import: ["": 17]>
g (float[n,4] x) => (float[n,2] y)
<float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}, float[2] b = {0.5, -0.5}>
{
  h = MatMul(x, w)
  y = Add(h, b)
}"""

BRANCHES = """<ir_version: 8, opset_import: ["": 17]>
g (float[4] x, bool c) => (float[4] y, float[4] z)
{
  k = Abs(x)
  y = If(c) <
    then_branch = t () => (float[4] a) { a = Add(k, x) },
    else_branch = e () => (float[4] b) {
      b = If(c) <then_branch = tt () => (float[4] p) { p = Mul(k, k) }, else_branch = ee () => (float[4] q) { q = Neg(x) }>
    }
  >
  z = Neg(k)
}"""

FUNCTIONS = """<ir_version: 8, opset_import: ["": 17, "local": 1]>
g (float[4] x, double[4] d) => (float[4] y, double[4] e)
{
  y = local.twice(x)
  e = local.once(d)
}
<opset_import: ["": 17, "local": 1], domain: "local"> twice (a) => (b) { t = local.once(a)  b = local.once(t) }
<opset_import: ["": 17], domain: "local"> once (v) => (r) { two = Constant<value_int = 2>()  s = CastLike(two, v)  r = Mul(v, s) }
"""


def model(text: str) -> Any:
    """Return a model as a ``ModelProto``."""
    parsed = parser.parse_model(text)
    assert isinstance(parsed, ModelProto)
    return parsed
