"""Hazards in TensorFlow graphs: for each kind what is held in float32, and near misses in which nothing is."""

import dataclasses

import pytest

from ampgraph.graph import Graph
from ampgraph.graph.dtypes import float16
from ampgraph.graph.text import parse_graph
from ampgraph.rewrite import RewriteResult, auto_mixed_precision

HEAD = """
  %x: f32[8,64] = tf.Placeholder<dtype=f32>() {shape=shape[8,64]}
  %w: f32[64,64] = tf.Const<dtype=f32>() {value=dense<f32[64,64], splat 0.0078125>}
  %axis: i32 = tf.Const<dtype=i32>() {value=dense<i32[], [1]>}
  %h: f32 = tf.MatMul<T=f32>(%x, %w)
"""


def graph_of(body: str) -> Graph:
    """Return a graph of a MatMul ``h`` of 64 columns, some nodes, and a MatMul that reads the node ``z``."""
    lines = []
    for line in body.split(";"):
        name, _, rest = line.strip().partition(" = ")
        lines.append(f"  %{name} = {rest}")
    tail = "\n  %end: f32 = tf.MatMul<T=f32>(%z, %w)\n  %out: f32 = tf.Identity<T=f32>(%end)\n  return %out\n"
    return parse_graph("graph g() {" + HEAD + "\n".join(lines) + tail + "}")


def k(value: float) -> str:
    return f"k: f32 = tf.Const<dtype=f32>() {{value=dense<f32[], [{value}]>}}; "


def low_of(result: RewriteResult) -> set[str]:
    """Return the names of the nodes that compute in float16."""
    return {node.name for node in result.graph.nodes if node.op_type != "Cast" and float16 in node.types.values()}


@dataclasses.dataclass(frozen=True)
class Case:
    """A graph with a hazard: its kind, the nodes that turn low only where nobody looks, the nodes, part of the reason."""

    code: str
    held: str
    body: str
    why: str


CASES = {
    "product": Case("constant-overflow", "z end", k(1e6) + "z: f32 = tf.Mul<T=f32>(%h, %k)", "'k' holds 1e+06, too large"),
    "mask": Case(
        "constant-overflow",
        "m s z",
        k(-1e9)
        + "a: f32 = tf.Neg<T=f32>(%h); m: f32 = tf.Mul<T=f32>(%a, %k); s: f32 = tf.AddV2<T=f32>(%h, %m); "
        + "z: f32 = tf.Softmax<T=f32>(%s)",
        "'k' holds 1e+09, too large",
    ),
    "lowest": Case(
        "constant-overflow",
        "s z",
        "k: f32[64] = tf.Const<dtype=f32>() {value=dense<f32[64], splat -3.4028235e+38>}; s: f32 = tf.AddV2<T=f32>(%h, %k); "
        + "z: f32 = tf.Softmax<T=f32>(%s)",
        "'k' holds 3.40282e+38, too large",
    ),
    "selected": Case(
        "constant-overflow",
        "s z",
        k(-1e9) + "b: bool = tf.Greater<T=f32>(%h, %x); s: f32 = tf.SelectV2<T=f32>(%b, %h, %k); z: f32 = tf.Softmax<T=f32>(%s)",
        "'k' holds 1e+09, too large",
    ),
    "filled": Case(
        "constant-overflow",
        "z end",
        k(1e6)
        + "dims: i32 = tf.Const<dtype=i32>() {value=dense<i32[2], [8, 64]>}; "
        + "f: f32 = tf.Fill<T=f32, index_type=i32>(%dims, %k); z: f32 = tf.Mul<T=f32>(%h, %f)",
        "'k' holds 1e+06, too large",
    ),
    "vanishes": Case("constant-vanishes", "z", k(1e-7) + "z: f32 = tf.Mul<T=f32>(%h, %k)", "'k' holds 1e-07"),
    "epsilon": Case(
        "epsilon",
        "e z",
        k(1e-7) + "e: f32 = tf.AddV2<T=f32>(%h, %k); z: f32 = tf.Sqrt<T=f32>(%e)",
        "its constant 'k' is 1e-07, which float16 cannot hold",
    ),
    "scale": Case("scale", "z", k(4096) + "z: f32 = tf.RealDiv<T=f32>(%h, %k)", "it divides by 'k', 4096"),
    "moments": Case(
        "normalization",
        "",
        "m: f32 = tf.Mean<T=f32, Tidx=i32>(%h, %axis) {keep_dims=true}; d: f32 = tf.SquaredDifference<T=f32>(%h, %m); "
        "v: f32 = tf.Mean<T=f32, Tidx=i32>(%d, %axis) {keep_dims=true}; r: f32 = tf.Rsqrt<T=f32>(%v); "
        "z: f32 = tf.Mul<T=f32>(%h, %r)",
        "the squares summed in 'v'",
    ),
    "l2": Case(
        "normalization",
        "d",
        "d: f32 = tf.Mul<T=f32>(%h, %h); v: f32 = tf.Sum<T=f32, Tidx=i32>(%d, %axis) {keep_dims=true}; "
        "r: f32 = tf.Rsqrt<T=f32>(%v); z: f32 = tf.Mul<T=f32>(%h, %r)",
        "the squares summed in 'v'",
    ),
    "rms": Case(
        "normalization",
        "d z",
        k(1e-3)
        + "d: f32 = tf.Mul<T=f32>(%h, %h); v: f32 = tf.Mean<T=f32, Tidx=i32>(%d, %axis) {keep_dims=true}; "
        + "e: f32 = tf.AddV2<T=f32>(%v, %k); r: f32 = tf.Rsqrt<T=f32>(%e); z: f32 = tf.Mul<T=f32>(%h, %r)",
        "the squares summed in 'v'",
    ),
    "long-mean": Case(
        "long-reduction",
        "m",
        "n: i32 = tf.Const<dtype=i32>() {value=dense<i32[4], [8, 8, 8, 1]>}; q: f32 = tf.Reshape<T=f32, Tshape=i32>(%h, %n); "
        'm: f32 = tf.AvgPool<T=f32>(%q) {ksize=[1, 65, 65, 1], padding="SAME", strides=[1, 1, 1, 1]}; '
        "o: i32 = tf.Const<dtype=i32>() {value=dense<i32[2], [8, 64]>}; z: f32 = tf.Reshape<T=f32, Tshape=i32>(%m, %o)",
        "it is the mean of 4225 elements",
    ),
    "softmax": Case(
        "softmax-by-hand",
        "",
        "e: f32 = tf.Exp<T=f32>(%h); v: f32 = tf.Sum<T=f32, Tidx=i32>(%e, %axis) {keep_dims=true}; "
        "z: f32 = tf.RealDiv<T=f32>(%e, %v)",
        "it divides exponentials by their sum 'v'",
    ),
    "logarithm": Case(
        "logarithm",
        "c l",
        k(1.0) + "c: f32 = tf.AddV2<T=f32>(%h, %k); l: f32 = tf.Log<T=f32>(%c); z: f32 = tf.Relu<T=f32>(%l)",
        "it leads to the logarithm 'l'",
    ),
    "softmax-log": Case(
        "logarithm",
        "p l",
        "p: f32 = tf.Softmax<T=f32>(%h); l: f32 = tf.Log<T=f32>(%p); z: f32 = tf.Relu<T=f32>(%l)",
        "it leads to the logarithm 'l'",
    ),
    "log-softmax": Case("logarithm", "z", "z: f32 = tf.LogSoftmax<T=f32>(%h)", "it is the logarithm of probabilities"),
    "spectrogram": Case(
        "logarithm",
        "h f l",
        k(1e-3) + "s: f32 = tf.Square<T=f32>(%h); f: f32 = tf.MatMul<T=f32>(%s, %w); e: f32 = tf.Maximum<T=f32>(%f, %k); "
        "l: f32 = tf.Log<T=f32>(%e); z: f32 = tf.Relu<T=f32>(%l)",
        "it leads to the logarithm 'l'",
    ),
    "angle": Case(
        "phase",
        "a",
        "t: f32[8,1] = tf.Placeholder<dtype=f32>() {shape=shape[8,1]}; "
        "f: f32[1,64] = tf.Const<dtype=f32>() {value=dense<f32[1,64], splat 0.5>}; a: f32[8,64] = tf.MatMul<T=f32>(%t, %f); "
        "c: f32 = tf.Cos<T=f32>(%a); z: f32 = tf.Mul<T=f32>(%h, %c)",
        "it leads to Cos 'c'",
    ),
    "phase": Case(
        "phase",
        "c",
        k(2.0) + "c: f32 = tf.Mul<T=f32>(%h, %k); p: f32 = tf.Sin<T=f32>(%c); z: f32 = tf.Mul<T=f32>(%h, %c)",
        "it leads to Sin 'p'",
    ),
    "integer": Case(
        "integer",
        "c",
        k(2.0) + "c: f32 = tf.Mul<T=f32>(%h, %k); i: i32 = tf.Cast<DstT=i32, SrcT=f32>(%c); z: f32 = tf.Mul<T=f32>(%h, %c)",
        "it ends as an integer in 'i'",
    ),
    "choice": Case(
        "integer",
        "c",
        k(2.0)
        + "c: f32 = tf.Mul<T=f32>(%h, %k); i: i64 = tf.ArgMax<T=f32, Tidx=i32, output_type=i64>(%c, %axis); "
        + "z: f32 = tf.Mul<T=f32>(%h, %c)",
        "ArgMax 'i' chooses by it",
    ),
    "equality": Case(
        "equality",
        "c",
        k(2.0) + "c: f32 = tf.Mul<T=f32>(%h, %k); q: bool = tf.NotEqual<T=f32>(%c, %x); z: f32 = tf.Mul<T=f32>(%h, %c)",
        "it is compared for equality in 'q'",
    ),
    "count": Case(
        "count",
        "z",
        "n: i32 = tf.Size<T=f32, out_type=i32>(%x); f: f32 = tf.Cast<DstT=f32, SrcT=i32>(%n); z: f32 = tf.RealDiv<T=f32>(%h, %f)",
        "it divides by the count 'n'",
    ),
    "input-mask": Case(
        "mask",
        "s z",
        "s: f32 = tf.AddV2<T=f32>(%h, %x); z: f32 = tf.Softmax<T=f32>(%s)",
        "it adds a mask that is an input of the model",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_a_hazard_holds_stays_float32(case: Case) -> None:
    graph = graph_of(case.body)
    result = auto_mixed_precision(graph)
    held = set(case.held.split())
    assert not held & low_of(result)
    assert low_of(result) & {"h", "end"}
    assert held <= low_of(auto_mixed_precision(graph, preset="grappler"))  # whose lists alone would make them low
    (painting,) = (body.painting for body in result.report.bodies)
    assert painting is not None
    found = {hazard.code: hazard.why for hazard in painting.facts.hazards.values()}
    assert case.why in found[case.code]
    assert any(case.why in item.why for item in result.report.explain())
    if held & {painting.typegraph.nodes[painting.typegraph.owner[vertex]].name for vertex in painting.facts.hazards}:
        assert f"          {case.code}: " in result.report.text()
        assert any(item["code"] == case.code and case.why in item["why"] for item in result.report.json()["hazards"])


NEAR_MISSES = {
    "factor": k(3.0) + "z: f32 = tf.Mul<T=f32>(%h, %k)",
    "epsilon": k(1e-3) + "e: f32 = tf.AddV2<T=f32>(%h, %k); z: f32 = tf.Sqrt<T=f32>(%e)",
    "zero": k(0.0) + "z: f32 = tf.AddV2<T=f32>(%h, %k)",
    "bound": k(1e30) + "z: f32 = tf.Minimum<T=f32>(%h, %k)",
    "bias": "k: f32[64] = tf.Const<dtype=f32>() {value=dense<f32[64], splat 1e-06>}; z: f32 = tf.BiasAdd<T=f32>(%h, %k)",
    "division": k(2.0) + "z: f32 = tf.RealDiv<T=f32>(%h, %k)",
    "square": "z: f32 = tf.Mul<T=f32>(%h, %h)",
    "deep-phase": "p: f32 = tf.Sin<T=f32>(%h); z: f32 = tf.Mul<T=f32>(%h, %h)",
    "to-bool": "b: bool = tf.Cast<DstT=bool, SrcT=f32>(%h); z: f32 = tf.Relu<T=f32>(%h)",
    "bias-before-softmax": "k: f32[64] = tf.Const<dtype=f32>() {value=dense<f32[64], splat 0.5>}; "
    "s: f32 = tf.BiasAdd<T=f32>(%h, %k); z: f32 = tf.Softmax<T=f32>(%s)",
}


@pytest.mark.parametrize("body", NEAR_MISSES.values(), ids=NEAR_MISSES)
def test_near_misses_become_low(body: str) -> None:
    result = auto_mixed_precision(graph_of(body))
    assert {"h", "z", "end"} <= low_of(result)
    assert not result.report.bodies[0].painting.facts.hazards  # type: ignore[union-attr]


def test_inputs_that_are_results_stay_exact() -> None:
    text = """graph g() {
      %x: f32[8,64] = tf.Placeholder<dtype=f32>() {shape=shape[8,64]}
      %n: i32 = tf.Const<dtype=i32>() {value=dense<i32[2], [64, 8]>}
      %r: f32 = tf.Reshape<T=f32, Tshape=i32>(%x, %n)
      %m: f32 = tf.MatMul<T=f32>(%r, %x)
      %out: f32 = tf.Identity<T=f32>(%r)
      return %m, %out
    }"""
    result = auto_mixed_precision(parse_graph(text.replace("return %m", "%e: f32 = tf.Identity<T=f32>(%m)\n      return %e")))
    assert low_of(result) == {"m"}
    assert next(result.report.explain("r")).why == "it hands an input or a constant on to a result, which stays exact"


def test_equal_weights_grow() -> None:
    layers = "\n".join(
        f"%h{i + 1}: f32 = tf.MatMul<T=f32>(%h{i}, %w) {{transpose_b={'true' if i % 2 else 'false'}}}" for i in range(4)
    )
    text = """graph g() {
      %h0: f32[8,64] = tf.Placeholder<dtype=f32>() {shape=shape[8,64]}
      %w: f32[64,64] = tf.Const<dtype=f32>() {value=dense<f32[64,64], splat 1.0>}
      LAYERS
      %out: f32 = tf.Identity<T=f32>(%h4)
      return %out
    }""".replace("LAYERS", layers)
    assert low_of(auto_mixed_precision(parse_graph(text))) == {"h1", "h2"}  # 64, 4096; then 262144
    small = text.replace("splat 1.0", "splat 0.0625")
    assert low_of(auto_mixed_precision(parse_graph(small))) == {"h1", "h2", "h3", "h4"}


@pytest.mark.parametrize("settings", [{"ops": ("Mul=gray",)}, {"ops": ("Mul=clear",)}, {"nodes": ("z=gray",)}], ids=str)
def test_who_names_an_op_or_a_node_wins(settings: dict[str, tuple[str, ...]]) -> None:
    graph = graph_of(CASES["vanishes"].body + "; o: f32 = tf.Mul<T=f32>(%h, %k); p: f32 = tf.MatMul<T=f32>(%o, %w)")
    assert not {"z", "o"} & low_of(auto_mixed_precision(graph))
    result = auto_mixed_precision(graph, **settings)  # type: ignore[arg-type]
    assert {"z", "o"} & low_of(result) == ({"z"} if "nodes" in settings else {"z", "o"})
    assert {item.node for item in result.report.explain() if "'k' holds" in item.why} == {"z", "o"} - low_of(result)


@pytest.mark.parametrize("preset", ["grappler", "torch-autocast"])
def test_presets_that_do_not_look_find_nothing(preset: str) -> None:
    for case in CASES.values():
        (body,) = auto_mixed_precision(graph_of(case.body), preset=preset).report.bodies
        assert body.painting is not None
        assert not body.painting.facts.hazards


def test_explanations_name_the_hazard_and_the_list() -> None:
    report = auto_mixed_precision(graph_of(CASES["epsilon"].body)).report
    (held,), (after,) = report.explain("e"), report.explain("z")
    assert held.why == "AddV2 is on the GrayList, but its constant 'k' is 1e-07, which float16 cannot hold"
    assert after.why == "Sqrt is on the GrayList and downstream of AddV2 'e' (hazard epsilon)"


def test_forcing_all_means_all() -> None:
    result = auto_mixed_precision(graph_of(CASES["product"].body), level="UNSAFE_FORCE_ALL")
    assert "z" in low_of(result)


def test_overflow_depends_on_the_low_dtype() -> None:
    result = auto_mixed_precision(graph_of(CASES["product"].body), dtype="bfloat16")
    assert not result.report.bodies[0].painting.facts.hazards  # type: ignore[union-attr]
