"""Hazards: for every kind a model in which it is found and whose result stays right, and near misses in which it is not."""

import dataclasses
import re
from typing import Any

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, TensorProto, numpy_helper

import ampgraph as ag
from ampgraph.rewrite import RewriteResult
from ampgraph.rewrite.hazards import KINDS
from ampgraph.rewrite.model_report import hazards

from .onnx_text import dtypes, model, rewrite, run

F = "float[8,64]"
RNG = np.random.default_rng(0)
X = RNG.standard_normal((8, 64), np.float32)
V = (RNG.standard_normal((64, 64), np.float32) / 8).astype(np.float32)
LOWEST = float(np.finfo(np.float32).min)
LAST = np.array([-1])


@dataclasses.dataclass(frozen=True)
class Case:
    """A model with a hazard.

    Attributes:
        code: The kind.
        held: Labels of the nodes it holds.
        body: The nodes; ``w`` is a matrix of 64 x 64.
        why: What the report says, for one of them.
        io: Inputs and outputs.
        weights: Further constants.
        feeds: Values of the inputs; the same random numbers every time for those not given.
        naive: Whether computing all of it in float16 goes wrong in the reference evaluator, which shows the hazard is one.
        dtype, preset, opset: For the rewrite, of the model.
    """

    code: str
    held: str
    body: str
    why: str
    io: str = f"{F} x => {F} y"
    weights: Any = dataclasses.field(default_factory=dict)
    feeds: Any = dataclasses.field(default_factory=dict)
    naive: bool = True
    dtype: str = "float16"
    preset: str = "safe"
    opset: int = 21

    def model(self) -> ModelProto:
        inputs, outputs = self.io.split("=>")
        return model(f"g ({inputs}) => ({outputs}) {{ {self.body} }}", opset=self.opset, weights={"w": V, **self.weights})


def k(value: float) -> dict[str, Any]:
    return {"k": np.float32(value)}


CASES = {
    "product": Case(
        "constant-overflow", "z", "h = MatMul(x, w)  z = Mul(h, k)  y = Relu(z)", "'k' holds 1e.06, too large", weights=k(1e6)
    ),
    "fill": Case(
        "constant-overflow",
        "z",
        "h = MatMul(x, w)  b = Greater(x, h)  z = Where(b, h, k)  y = Mul(z, h)",
        "'k' holds 1e.30, too large for float16",
        weights=k(-1e30),
    ),
    "bfloat16-fill": Case(
        "constant-overflow",
        "z",
        "h = MatMul(x, w)  b = Greater(x, h)  z = Where(b, h, k)  y = Mul(z, h)",
        "too large for bfloat16",
        weights=k(LOWEST),
        dtype="bfloat16",
    ),
    "weights": Case(
        "constant-vanishes",
        "y",
        "h = MatMul(x, w)  y = MatMul(h, v)",
        "'v' holds at most .*e-0., which loses its digits",
        weights={"v": V * np.float32(1e-7)},
    ),
    "divisor": Case(
        "constant-vanishes",
        "y",
        "h = MatMul(x, w)  y = Div(h, v)",
        "'v' holds at most 1e-08",
        weights={"v": np.array([1e-8, *[1] * 63], np.float32)},
    ),
    "reciprocal": Case(
        "epsilon",
        "b",
        "h = MatMul(x, w)  a = Abs(h)  b = Add(a, k)  y = Reciprocal(b)",
        "'k' is 1e-08, which float16 cannot hold",
        weights=k(1e-8),
        feeds={"x": X * (np.arange(8) > 3).astype(np.float32).reshape(8, 1)},
    ),
    "floor": Case(
        "epsilon",
        "b",
        "h = MatMul(x, w)  b = Max(h, k)  y = Reciprocal(b)",
        "'k' is 1e-08, which float16 cannot hold",
        weights=k(1e-8),
    ),
    "factor": Case(
        "scale", "y", "h = MatMul(x, w)  y = Mul(h, k)", "multiplies by 'k', 20000", weights=k(20000), feeds={"x": X * 10}
    ),
    "quotient": Case("scale", "y", "h = MatMul(x, w)  y = Div(h, k)", "divides by 'k', 20000", weights=k(20000), naive=False),
    "ones": Case(
        "gain",
        "z y",
        "a = MatMul(x, ones)  b = MatMul(a, ones)  z = MatMul(b, ones)  y = Relu(z)",
        "equal weights add up to about 262144 here",
        weights={"ones": np.ones((64, 64), np.float32)},
        feeds={"x": abs(X)},
    ),
    "filled": Case(
        "gain",
        "z y",
        "s = Constant <value = int64[2] {64, 64}> ()  f = ConstantOfShape <value = float[1] {1.0}> (s)  a = MatMul(x, f)  "
        "g = ConstantOfShape <value = float[1] {1.0}> (s)  b = MatMul(a, g)  "
        "h = ConstantOfShape <value = float[1] {1.0}> (s)  z = MatMul(b, h)  y = Relu(z)",
        "equal weights add up to about 262144 here",
        feeds={"x": abs(X)},
        naive=False,
    ),
    "arctangent": Case(
        "kernel",
        "y",
        "h = MatMul(x, w)  y = Atan(h)",
        "no CUDA kernel for inverse trigonometric functions",
        naive=False,
        preset="onnxruntime",
    ),
    "rms": Case(
        "normalization",
        "q m e s y",
        "h = MatMul(x, w)  q = Mul(h, h)  m = ReduceMean(q, axes)  e = Add(m, k)  s = Sqrt(e)  y = Div(h, s)",
        "part of a normalization by the squares summed in 'm'",
        weights={**k(1e-5), "axes": LAST},
        feeds={"x": X * 400},
    ),
    "layer-norm": Case(
        "normalization",
        "d c q m e s r y",
        """h = MatMul(x, w)  d = ReduceMean(h, axes)  c = Sub(h, d)  q = Pow(c, two)  m = ReduceMean(q, axes)  e = Add(m, k)
        s = Sqrt(e)  r = Reciprocal(s)  y = Mul(c, r)""",
        "part of a normalization",
        weights={**k(1e-12), "two": np.float32(2), "axes": LAST},
        feeds={"x": X * np.float32(5e-4)},
    ),
    "l2": Case(
        "normalization",
        "s y",
        "h = MatMul(x, w)  s = ReduceL2(h, axes)  y = Div(h, s)",
        "the squares summed in 's'",
        weights={"axes": LAST},
        feeds={"x": X * 400},
    ),
    "bfloat16-rms": Case(
        "normalization",
        "q m e s y",
        "h = MatMul(x, w)  q = Mul(h, h)  m = ReduceMean(q, axes)  e = Add(m, k)  s = Sqrt(e)  y = Div(h, s)",
        "part of a normalization",
        weights={**k(1e-5), "axes": LAST},
        dtype="bfloat16",
    ),
    "exponentials": Case(
        "softmax-by-hand",
        "e s y",
        "h = MatMul(x, w)  e = Exp(h)  s = ReduceSum(e, axes)  y = Div(e, s)",
        "divides exponentials by their sum 's'",
        weights={"axes": LAST},
        feeds={"x": X * 6},
    ),
    "mean": Case(
        "long-reduction",
        "y",
        "h = MatMul(x, w)  y = ReduceMean(h, axes)",
        "the mean of 5000 elements",
        io="float[5000,64] x => float[1,64] y",
        weights={"axes": np.array([0])},
        feeds={"x": RNG.standard_normal((5000, 64), np.float32) + 1},
        naive=False,
    ),
    "global-pool": Case(
        "long-reduction",
        "m",
        "h = Conv(x, c)  m = GlobalAveragePool(h)  f = Flatten(m)  y = MatMul(f, d)",
        "the mean of 4900 elements",
        io="float[1,8,70,70] x => float[1,8] y",
        weights={"c": V[:8, :8].reshape(8, 8, 1, 1), "d": V[:8, :8]},
        feeds={"x": RNG.standard_normal((1, 8, 70, 70), np.float32) + 1},
        naive=False,
    ),
    "log-softmax": Case(
        "logarithm",
        "s y",
        "h = MatMul(x, w)  s = Softmax(h)  y = Log(s)",
        "leads to the logarithm 'y'",
        feeds={"x": X * 8},
    ),
    "log-softmax-op": Case(
        "logarithm", "y", "h = MatMul(x, w)  y = LogSoftmax(h)", "the logarithm of probabilities", feeds={"x": X * 8}, naive=False
    ),
    "spectrum": Case(
        "logarithm",
        "a q b y",
        "a = MatMul(x, w)  q = Mul(a, a)  b = MatMul(q, bank)  y = Log(b)",
        "leads to the logarithm 'y'",
        weights={"bank": abs(V)},
        feeds={"x": X * np.float32(1e-4)},
    ),
    "positions": Case(
        "phase",
        "p",
        "p = MatMul(x, f)  s = Sin(p)  y = MatMul(s, w)",
        "leads to Sin 's'",
        io="float[8,1] x => float[8,64] y",
        weights={"f": (10.0 ** -np.linspace(0, 4, 64, dtype=np.float32))[None]},
        feeds={"x": np.arange(4000, 4008, dtype=np.float32)[:, None]},
    ),
    "sampling": Case(
        "position",
        "d b p q r a",
        "h = MatMul(x, w)  d = Mul(h, k)  b = Reshape(d, shape)  p = Add(grid, b)  a = GridSample(picture, p)  "
        "q = Sub(p, grid)  r = Reshape(q, back)  z = MatMul(r, w)",
        "it leads to where GridSample 'a' samples",
        io=f"{F} x, float[1,1,64,2048] picture => float[1,1,8,32] a, {F} z",
        weights={
            **k(1e-3),
            "grid": np.stack(np.meshgrid(np.linspace(-0.9, 0.9, 32), np.linspace(-0.9, 0.9, 8)), -1)[None].astype(np.float32),
            "shape": np.array([1, 8, 32, 2]),
            "back": np.array([8, 64]),
        },
        feeds={"picture": np.tile(np.array([0, 1], np.float32), (1, 1, 64, 1024))},
    ),
    "cast": Case(
        "integer",
        "p",
        "p = Mul(t, k)  i = Cast<to = 7>(p)  y = MatMul(x, w)  z = MatMul(p, w)",
        "ends as an integer in 'i'",
        io=f"{F} x, {F} t => {F} y, {F} z, int64[8,64] i",
        weights=k(0.5),
        feeds={"t": np.arange(4096, 4096 + 512, dtype=np.float32).reshape(8, 64)},
    ),
    "top-k": Case(
        "integer",
        "p",
        "p = Mul(t, k)  v, i = TopK(p, four)  y = MatMul(p, w)",
        "TopK 'v' chooses by it",
        io=f"{F} t => {F} y, int64[8,4] i",
        weights={**k(0.5), "four": np.array([4])},
        feeds={"t": np.random.default_rng(1).permutation(512).reshape(8, 64).astype(np.float32) + 8192},
    ),
    "equal": Case(
        "equality",
        "p q e",
        "p = Mul(t, k)  q = Mul(u, k)  e = Equal(p, q)  i = Cast<to = 7>(e)  y = MatMul(p, w)",
        "compared for equality in 'e'",
        io=f"{F} t, {F} u => {F} y, int64[8,64] i",
        weights=k(0.5),
        feeds={"t": np.full((8, 64), 4097, np.float32), "u": np.full((8, 64), 4096, np.float32)},
    ),
    "number": Case(
        "count",
        "y",
        "h = MatMul(x, w)  s = ReduceSum(h)  f = Cast<to = 1>(n)  y = Div(s, f)",
        "divides by the count 'n'",
        io=f"{F} x, int64 n => float[1,1] y",
        feeds={"n": np.array(1_000_000)},
    ),
    "moved": Case(
        "pass-through",
        "t",
        "t = Transpose(x)  y = MatMul(t, w)",
        "hands an input or a constant on to a result",
        io=f"float[64,8] x => {F} y, {F} t",
        feeds={"x": X.T.copy()},
        naive=False,
    ),
    "dequantized": Case(
        "quantized",
        "t h",
        "d = DequantizeLinear(q, s, zero)  t = Transpose(d)  h = MatMul(t, w)  y = MatMul(h, w)",
        "reads dequantized values",
        io=f"int8[64,8] q => {F} y",
        weights={"s": np.float32(0.1), "zero": np.int8(0)},
        feeds={"q": np.arange(512, dtype=np.int16).astype(np.int8).reshape(64, 8)},
        naive=False,
    ),
    "mask": Case(
        "mask",
        "a s",
        "h = MatMul(x, w)  a = Add(h, m)  s = Softmax(a)  y = MatMul(s, w)",
        "adds a mask that is an input of the model",
        io=f"{F} x, {F} m => {F} y",
        feeds={
            "m": np.where(np.arange(512).reshape(8, 64) % 3 == 0, 0, LOWEST).astype(np.float32) * np.ones((8, 64), np.float32)
        },
        naive=False,
    ),
    "masked-rows": Case(
        "mask",
        "a s",
        "h = MatMul(x, w)  a = Add(h, m)  s = Softmax(a)  y = MatMul(s, w)",
        "adds a mask that is an input of the model",
        io=f"{F} x, {F} m => {F} y",
        feeds={"m": np.full((8, 64), LOWEST, np.float32)},
    ),
}

#: Models with no hazard, in which everything but inputs and outputs becomes float16.
NEAR_MISSES = {
    "constant-overflow": [
        ("h = MatMul(x, w)  z = Clip(h, , k)  y = MatMul(z, w)", k(1e30)),
        ("h = MatMul(x, w)  z = Min(h, k)  y = MatMul(z, w)", k(1e30)),
        ("h = MatMul(x, w)  z = Mul(h, k)  y = MatMul(z, w)", k(1000)),
        ("h = MatMul(x, w)  z = Add(h, k)  y = Softmax(z)", k(LOWEST)),
    ],
    "constant-vanishes": [
        ("h = MatMul(x, w)  y = Add(h, bias)", {"bias": V[0] * np.float32(1e-7)}),
        ("y = Gemm(x, w, bias)", {"bias": V[0] * np.float32(1e-7)}),
        ("y = MatMul(x, v)", {"v": V * (V > 0.1) + np.float32(1e-7)}),
        ("h = MatMul(x, w)  y = Mul(h, zero)", {"zero": np.zeros(64, np.float32)}),
    ],
    "epsilon": [("h = MatMul(x, w)  a = Abs(h)  b = Add(a, k)  y = Reciprocal(b)", k(0.1))],
    "scale": [
        ("h = MatMul(x, w)  y = Mul(h, k)", k(0.125)),
        ("h = MatMul(x, w)  y = Div(h, k)", k(100)),
        ("y = MatMul(x, v)", {"v": V * np.float32(3000)}),
    ],
    "gain": [("a = MatMul(x, k)  b = MatMul(a, k)  y = MatMul(b, k)", {"k": np.full((64, 64), 1 / 64, np.float32)})],
    "kernel": [("h = MatMul(x, w)  a = Atan(h)  y = MatMul(a, w)", {})],
    "normalization": [("h = MatMul(x, w)  q = Mul(h, g)  m = ReduceMean(q, axes)  y = Sub(h, m)", {"g": V[0], "axes": LAST})],
    "softmax-by-hand": [("h = MatMul(x, w)  s = Softmax(h)  y = MatMul(s, w)", {})],
    "long-reduction": [("h = MatMul(x, w)  m = ReduceMean(h, axes)  y = Sub(h, m)", {"axes": LAST})],
    "logarithm": [("h = MatMul(x, w)  s = Softmax(h)  y = MatMul(s, w)", {})],
    "phase": [("h = MatMul(x, w)  p = Mul(h, k)  y = Tanh(p)", k(100))],
    "position": [("h = MatMul(x, w)  p = Add(h, g)  q = Sub(p, g)  y = Tanh(q)", {"g": V[0]})],
    "integer": [("h = MatMul(x, w)  s = Shape(h)  r = Reshape(h, s)  y = MatMul(r, w)", {})],
    "equality": [("h = MatMul(x, w)  b = Less(h, k)  z = Where(b, h, k)  y = MatMul(z, w)", k(0.1))],
    "count": [("h = MatMul(x, w)  y = Div(h, k)", k(64))],
    "pass-through": [("t = Transpose(x)  u = Transpose(t)  h = MatMul(u, w)  y = Relu(h)", {})],
    "quantized": [("h = MatMul(x, w)  r = Relu(h)  y = MatMul(r, w)", {})],
    "mask": [("h = MatMul(x, w)  a = Add(h, x)  r = Relu(a)  y = MatMul(r, w)", {})],
}


def codes(result: RewriteResult) -> dict[str, set[str]]:
    """Return the labels of the nodes that each kind of hazard holds."""
    found: dict[str, set[str]] = {}
    for _, node, hazard in hazards(result.report):
        found.setdefault(hazard.code, set()).add(node.label)
    return found


def error(results: list[Any], expected: list[Any]) -> float:
    """Return the largest error relative to the largest number of a result; infinite where finiteness or integers differ."""
    worst = 0.0
    for got, wanted in zip(results, expected, strict=True):
        if wanted.dtype.kind != "f":
            worst = max(worst, 0.0 if np.array_equal(got, wanted) else np.inf)
            continue
        assert np.isfinite(wanted).all()
        with np.errstate(all="ignore"):
            difference = np.abs(got.astype(np.float64) - wanted).max() / np.abs(wanted).max()
        worst = max(worst, float(difference) if np.isfinite(got).all() else np.inf)
    return worst


def all_low(proto: ModelProto) -> ModelProto:
    """Return a model with every float32 made float16: what a converter would make that knows of no hazard."""
    low = ModelProto()
    low.CopyFrom(proto)
    _lower(low.graph)
    return low


def _lower(graph: GraphProto) -> None:
    for value in (*graph.input, *graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.FLOAT16
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            with np.errstate(over="ignore"):
                tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.FLOAT16


def feeds_of(case: Case, proto: ModelProto, dtype: Any = np.float32) -> dict[str, Any]:
    feeds = {value.name: case.feeds.get(value.name, X) for value in proto.graph.input}
    with np.errstate(over="ignore"):
        return {name: array.astype(dtype) if array.dtype == np.float32 else array for name, array in feeds.items()}


def test_every_kind_has_its_tests() -> None:
    assert (
        {case.code for case in CASES.values()} == set(NEAR_MISSES) == {code for code in KINDS if not code.startswith("measured-")}
    )


@pytest.mark.parametrize("name", CASES)
def test_a_hazard_is_found_and_named(name: str) -> None:
    case = CASES[name]
    result, after = rewrite(case.model(), dtype=case.dtype, preset=case.preset)
    found = codes(result)
    assert found == {case.code: set(case.held.split())}
    types = dtypes(after)
    assert all(types[label] != {"float16": "f16", "bfloat16": "bf16"}[case.dtype] for label in case.held.split())
    whys = [item.why for label in case.held.split() for item in result.report.explain(label)]
    assert all(KINDS[case.code] not in why for why in whys)  # a reason speaks of its node
    assert any(re.search(case.why, why) for why in whys), whys
    assert f"{case.code} {len(found[case.code])}" in str(result.report)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.dtype == "float16"])
def test_what_the_model_computes_stays_right(name: str) -> None:
    case = CASES[name]
    proto = case.model()
    expected = run(proto, feeds_of(case, proto))
    assert error(run(rewrite(proto)[1], feeds_of(case, proto)), expected) < 5e-3
    if case.naive:
        low = all_low(proto)
        assert error(run(low, feeds_of(case, low, np.float16)), expected) > 2e-2


def test_what_is_only_moved_is_equal_bit_by_bit() -> None:
    proto = CASES["moved"].model()
    x = X.T.copy() * np.float32(1e-9)
    np.testing.assert_array_equal(run(rewrite(proto)[1], {"x": x})[1], x.T)


@pytest.mark.parametrize("code", NEAR_MISSES)
def test_a_near_miss_is_none(code: str) -> None:
    for body, weights in NEAR_MISSES[code]:
        inner = f"{body.replace('y =', 'last =')}  y = MatMul(last, w)"
        proto = model(f"g ({F} x) => ({F} y) {{ {inner} }}", weights={"w": V, **weights})
        result, after = rewrite(proto)
        assert codes(result) == {}, body
        types = dtypes(after)
        kept = [node.output[0] for node in after.graph.node if node.op_type != "Cast" and types[node.output[0]] == "f32"]
        assert kept == [], body


def test_bfloat16_has_the_range_of_float32() -> None:
    """What overflows or vanishes in float16 only is no hazard there."""
    for name in ("product", "weights", "reciprocal", "factor", "quotient"):
        assert codes(rewrite(CASES[name].model(), dtype="bfloat16")[0]) == {}, name


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_masks_that_are_constants_are_clamped(dtype: str) -> None:
    proto = model(
        f"g ({F} x, bool[8,64] b) => ({F} y) {{ h = MatMul(x, w)  a = Where(b, h, k)  s = Softmax(a)  y = MatMul(s, w) }}",
        weights={"w": V, **k(LOWEST)},
    )
    result, after = rewrite(proto, dtype=dtype)
    assert codes(result) == {}
    assert dtypes(after)["s"] == {"float16": "f16", "bfloat16": "bf16"}[dtype]
    if dtype == "float16":
        bound = next(numpy_helper.to_array(tensor) for tensor in after.graph.initializer if tensor.name == "k")
        assert bound == -49152
        assert "'k' only masks scores before a softmax, so it is clamped to 49152, which float16 can hold" in result.report.notes
        feeds = {"x": X, "b": np.arange(512).reshape(8, 64) > 70}
        assert error(run(after, feeds), run(proto, feeds)) < 5e-3


def test_sums_of_masks_do_not_overflow() -> None:
    text = f"""g ({F} x, bool[8,64] b, bool[8,64] c) => ({F} y) {{
      m = Where(b, zero, k)  n = Where(c, zero, k)  mask = Add(m, n)  h = MatMul(x, w)  a = Add(h, mask)  y = Softmax(a)
    }}"""
    proto = model(text, weights={"w": V, **k(LOWEST), "zero": np.float32(0)})
    after = rewrite(proto)[1]
    feeds = {"x": X, "b": np.arange(512).reshape(8, 64) > 70, "c": np.arange(512).reshape(8, 64) % 2 > 0}
    expected = run(model(text, weights={"w": V, **k(-1e9), "zero": np.float32(0)}), feeds)  # the sum is finite in float32
    got = run(after, feeds)
    assert np.isfinite(got[0]).all()
    assert error([got[0][2:]], [expected[0][2:]]) < 5e-3


@pytest.mark.parametrize("preset", ["grappler", "torch-autocast"])
def test_presets_that_follow_others_do_not_look(preset: str) -> None:
    for case in CASES.values():
        assert codes(rewrite(case.model(), preset=preset)[0]) == {}


@pytest.mark.parametrize(("dtype", "number"), [("DOUBLE", -1e30), ("INT64", -(10**9))])
def test_huge_constants_behind_a_cast_are_masks_too(dtype: str, number: float) -> None:
    proto = model(
        f"g ({F} x, bool[8,64] b) => ({F} y) {{ a = MatMul(x, w) f = Cast<to = 1>(c) s = Where(b, a, f) p = Softmax(s) y = MatMul(p, w) }}",
        weights={"w": (64, 64)},
    )
    proto.graph.initializer.append(numpy_helper.from_array(np.array(number, dtype.lower()), "c"))
    after = rewrite(proto)[1]
    (constant,) = [node for node in after.graph.node if node.output[0] == "f"]
    assert (constant.op_type, dtypes(after)["f"], dtypes(after)["s"]) == ("Constant", "f16", "f16")
    assert numpy_helper.to_array(constant.attribute[0].t) == -49152
    assert "c" not in {tensor.name for tensor in after.graph.initializer}
    (y,) = run(after, {"x": X, "b": np.zeros((8, 64), bool)})
    assert np.isfinite(y).all()


def test_a_large_constant_behind_a_cast_that_is_read_twice_stays() -> None:
    proto = model(
        f"g ({F} x) => ({F} y, double[1] z) {{ a = MatMul(x, w) f = Cast<to = 1>(c) s = Min(a, f) y = MatMul(s, w) z = Neg(c) }}",
        weights={"w": (64, 64), "c": np.array([1e30])},
    )
    after = rewrite(proto)[1]
    assert "c" in {tensor.name for tensor in after.graph.initializer}
    assert "Cast" not in [node.op_type for node in after.graph.node if node.output[0] == "f"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_rows_that_are_masked_whole_have_a_softmax(dtype: str) -> None:
    proto = model(
        f"g ({F} x, bool[8,64] b) => ({F} y) {{ a = MatMul(x, w) s = Where(b, a, lowest) p = Softmax(s) y = MatMul(p, w) }}",
        weights={"w": (64, 64), "lowest": np.float32(LOWEST)},
    )
    after = ag.compile(rewrite(proto, dtype=dtype)[0].graph)
    assert np.isfinite(after({"x": X, "b": np.zeros((8, 64), bool)})["y"]).all()
