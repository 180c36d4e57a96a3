"""Calibration: graphs that go wrong in low precision in ways that only their data shows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph.calibration.result import Progress
from ampgraph.calibration.trials import output_error
from ampgraph.graph.errors import KernelError
from ampgraph.graph.formats.onnx import read_model
from ampgraph.rewrite import convert
from tests.rewrite.onnx_text import model

D = 32
RNG = np.random.default_rng(0)
F = f"float[8,{D}]"
X = RNG.standard_normal((8, D)).astype(np.float32)
#: Products in front of and behind what goes wrong, so that a few FLOPs are few.
BEFORE = "h0 = MatMul(x, w)  r0 = Relu(h0)  h1 = MatMul(r0, w)  h = Relu(h1)"
BEHIND = "m0 = MatMul(t, w)  m1 = Relu(m0)  y = MatMul(m1, w)"


def graph(middle: str, io: str = f"{F} x => {F} y", behind: str = BEHIND, **weights: Any) -> ag.Graph:
    inputs, outputs = io.split("=>")
    constants = {name: np.asarray(value, np.float32) for name, value in weights.items()}
    return read_model(model(f"g ({inputs}) => ({outputs}) {{ {BEFORE} {middle} {behind} }}", weights={"w": (D, D), **constants}))


def massive() -> ag.Graph:
    """A block of a language model, one channel of whose residual is 800, which an RMS norm squares (spelled as a product)."""
    bump = np.zeros(D, np.float32)
    bump[5] = 800
    one = "{i} = Identity({x})  {i}q = Mul({x}, {i})  {i}m = MatMul({i}q, mean)  {i}s = Sqrt({i}m)  {i}n = Div({x}, {i}s)"
    first, second = one.format(i="a", x="b"), one.format(i="c", x="d")
    return graph(
        f"b = Add(h, bump)  {first}  q = MatMul(an, w)  k = MatMul(an, w)  kt = Transpose<perm = [1, 0]>(k)  l = MatMul(q, kt) "
        f"p = Softmax(l)  v = MatMul(an, w)  o = MatMul(p, v)  ow = MatMul(o, w)  d = Add(b, ow)  {second}  t = Relu(cn)",
        bump=bump,
        mean=np.full((D, 1), 1 / D),
    )


PLANTED: dict[str, Callable[[], ag.Graph]] = {
    "scale-and-back": lambda: graph("e = Exp(k)  u = Mul(h, e)  t = Div(u, e)", k=13),
    "computed-scale": lambda: graph(
        "u = Abs(h)  s = ReduceMax(u)  c = Mul(s, k)  d = Mul(c, c)  e = Mul(h, d)  t = Div(e, d)", k=1000
    ),
    "fourth-power": lambda: graph("a = Add(h, k)  b = Mul(a, a)  c = Mul(b, b)  d = Sqrt(c)  e = Sqrt(d)  t = Sub(e, k)", k=30),
    "cancellation": lambda: graph("a = Add(h, k)  t = Sub(a, k)", k=1500),
    "softmax": lambda: graph("l = Mul(h, k)  m = Mul(l, k)  s = Div(m, c)  t = Softmax(s)", k=300, c=3e4),
    "vanishing": lambda: graph("a = Mul(h, k)  b = Mul(a, k)  c = Div(b, k)  t = Div(c, k)", k=1e-3),
    "massive": massive,
}


def check(found: ag.CalibrationResult, wide: ag.Graph, feeds: dict[str, Any]) -> None:
    """The errors are what running both graphs shows, and the policy leads to the same graph."""
    right, got = ag.compile(wide)(feeds), ag.compile(found.result.graph, fuse=False)(feeds)
    assert {name: output_error(right[name], got[name])[0] for name in right} == found.errors
    policy = ag.Policy.from_toml(found.policy.to_toml())
    assert policy == found.policy
    assert str(ag.auto_mixed_precision(wide, policy).graph) == str(found.result.graph)


@pytest.mark.parametrize("name", PLANTED)
def test_what_goes_wrong_is_kept_in_float32(name: str) -> None:
    wide = PLANTED[name]()
    found = ag.calibrate(wide, {"x": X})
    assert max(found.before.values()) > 1e-2 or name == "scale-and-back"
    assert found.is_met
    assert found.worst <= 1e-2
    assert found.low_share >= 0.9
    assert 0 < len(found.kept) <= 8
    assert all(item.code.startswith("measured-") and item.why for item in found.kept)
    check(found, wide, {"x": X})


def test_a_graph_that_is_right_is_only_checked() -> None:
    wide = graph("t = Add(h, h)")
    found = ag.calibrate(wide, {"x": X})
    assert found.is_met
    assert found.trials == 1
    assert found.errors == found.before
    assert (found.kept, found.policy) == ((), ag.Policy())
    assert str(found.result.graph) == str(ag.auto_mixed_precision(wide).graph)


@pytest.mark.parametrize("name", ["cancellation", "massive"])
def test_bfloat16(name: str) -> None:
    wide = PLANTED[name]()
    found = ag.calibrate(wide, {"x": X}, ag.Policy(dtype="bfloat16"), rtol=3e-2)
    assert found.is_met
    assert found.low_share >= 0.9
    check(found, wide, {"x": X})


def test_a_bound_that_cannot_be_met_ends_with_the_best() -> None:
    wide = PLANTED["cancellation"]()
    found = ag.calibrate(wide, {"x": X}, rtol=1e-4)
    assert not found.is_met
    assert found.missed == ("y",)
    assert found.worst < 2e-3
    assert found.before["y"] > 0.1
    assert found.verdict == f"The bound 0.0001 is missed: output 'y' is off by {found.worst:.2g}."
    assert "NOT within the bound 0.0001" in found.text()
    check(found, wide, {"x": X})


def test_more_flops_may_be_given_up() -> None:
    wide = graph("t = Add(h, h)")
    strict, loose = (ag.calibrate(wide, {"x": X}, rtol=3e-4, low_share=share) for share in (0.9, 0.1))
    assert not strict.is_met
    assert loose.is_met
    assert loose.low_share < 0.9 <= strict.low_share


def test_all_runs_have_to_be_right() -> None:
    wide = graph("a = Mul(h, k)  b = Mul(a, a)  c = Sqrt(b)  t = Div(c, k)", k=1)
    small, large = {"x": X}, {"x": X * 400}
    assert ag.calibrate(wide, small).kept == ()
    found = ag.calibrate(wide, [small, large])
    assert found.is_met
    assert "b" in {item.node for item in found.kept}
    assert found.policy == ag.calibrate(wide, [large, small]).policy


def test_the_same_data_gives_the_same_result() -> None:
    results = [ag.calibrate(PLANTED["fourth-power"](), {"x": X}) for _ in range(2)]
    assert results[0].policy == results[1].policy
    assert results[0].kept == results[1].kept


def test_integers_have_to_be_equal() -> None:
    wide = graph("a = Add(h, k)  b = Sub(a, k)  i = ArgMax<axis = 1, keepdims = 0>(b)", f"{F} x => int64[8] i", "", k=3000)
    naive = ag.auto_mixed_precision(wide, nodes=("a=allow", "b=allow"))
    right = ag.compile(wide)({"x": X})["i"]
    assert (ag.compile(naive.graph)({"x": X})["i"] != right).any()
    found = ag.calibrate(wide, {"x": X})
    assert found.is_met
    assert (ag.compile(found.result.graph)({"x": X})["i"] == right).all()


def test_nan_in_float32_is_no_error_and_nan_in_low_alone_is() -> None:
    wide = graph("s = Sqrt(h0)  e = Exp(k)  u = Mul(s, e)  v = Mul(h, e)  a = Sub(v, v)  b = Div(u, e)  t = Add(a, h)", k=13)
    wide.outputs = [*wide.outputs, next(node.outputs[0] for node in wide.nodes if node.outputs[0].name == "b")]
    wide.output_names = [*wide.output_names, "b"]
    right = ag.compile(wide)({"x": X})
    assert np.isnan(right["b"]).any()
    found = ag.calibrate(wide, {"x": X})
    assert found.is_met
    check(found, wide, {"x": X})


def test_bodies() -> None:
    text = f"""g ({F} x, bool c) => ({F} y) {{ {BEFORE}
      t = If (c) <then_branch = t () => ({F} u) {{ n = Mul(h, k)  o = Mul(n, n)  p = Sqrt(o)  u = Div(p, k) }},
                  else_branch = e () => ({F} v) {{ v = Relu(h) }}>
      {BEHIND} }}"""
    wide = read_model(model(text, weights={"w": (D, D), "k": np.float32(500)}))
    feeds = {"x": X, "c": np.array(True)}
    found = ag.calibrate(wide, feeds)
    assert found.before["y"] == float("inf")
    assert found.is_met
    assert found.low_share == 1.0
    check(found, wide, feeds)


def test_tensorflow_graphs() -> None:
    wide = ag.parse_graph("""
        graph g() {
          %x: f32[8,32] = tf.Placeholder<dtype=f32>() {shape=shape[8,32]}
          %w: f32[32,32] = tf.Placeholder<dtype=f32>() {shape=shape[32,32]}
          %h: f32[8,32] = tf.MatMul<T=f32>(%x, %w)
          %n: f32[8,32] = tf.MatMul<T=f32>(%h, %w)
          %a: f32[8,32] = tf.Mul<T=f32>(%n, %n)
          %b: f32[8,32] = tf.Mul<T=f32>(%a, %a)
          %c: f32[8,32] = tf.Sqrt<T=f32>(%b)
          %m: f32[8,32] = tf.MatMul<T=f32>(%c, %w)
          %y: f32[8,32] = tf.Identity<T=f32>(%m)
          return %y
        }
    """)
    feeds = {"x": X * 20, "w": RNG.standard_normal((D, D)).astype(np.float32) / 6}
    found = ag.calibrate(wide, feeds)
    assert found.before["y"] == float("inf")
    assert found.is_met
    assert found.low_share == 1.0
    assert {item.node for item in found.kept} == {"b", "c"}
    check(found, wide, feeds)


def test_an_interrupt_ends_the_search_with_the_best_so_far() -> None:
    wide = PLANTED["cancellation"]()
    seen: list[Progress] = []

    def interrupt(now: Progress) -> None:
        seen.append(now)
        if len(seen) == 6:
            raise KeyboardInterrupt

    found = ag.calibrate(wide, {"x": X}, progress=interrupt)
    assert found.stopped == "interrupted"
    assert len(seen) == 6
    assert found.worst == seen[-1].error
    check(found, wide, {"x": X})


def test_no_trial_begins_when_the_time_is_up() -> None:
    wide = PLANTED["cancellation"]()
    found = ag.calibrate(wide, {"x": X}, time_limit=0)
    assert found.stopped == "time"
    assert found.trials == 1
    assert not found.is_met
    assert "cut short by the time limit" in found.text()
    check(found, wide, {"x": X})


def test_values_near_the_end_of_the_range_give_way_to_the_share_of_flops() -> None:
    wide = graph("u = Mul(h, k)  v = MatMul(u, w)  t = Div(v, k)", k=6000)
    found = ag.calibrate(wide, {"x": X})
    assert found.is_met
    assert found.low_share >= 0.9


def test_what_is_over_the_range_does_not_give_way() -> None:
    wide = graph("e = Exp(k)  u = Mul(h, e)  v = MatMul(u, w)  t = Div(v, e)", k=13)
    found = ag.calibrate(wide, {"x": X})
    assert found.missed == ()
    assert not found.is_met
    assert found.verdict.startswith("Only 80.0% of the FLOPs are low")


def test_errors_of_outputs() -> None:
    nan, inf = float("nan"), float("inf")
    a = np.array([1.0, -4.0, nan, inf], np.float32)
    assert output_error(a, np.array([1.5, -4.0, 7.0, 1.0], np.float32)) == (0.125, False)
    assert output_error(a, np.array([1.0, nan, nan, inf], np.float32)) == (inf, False)
    assert output_error(a, a[:2]) == (inf, False)
    assert output_error(np.zeros(2, np.float32), np.array([0, 0.25], np.float32)) == (0.25, False)
    assert output_error(np.arange(4), np.array([0, 1, 2, 9])) == (0.25, True)
    assert output_error([a, a], [a, np.array([1.0, -3.0, 0, 0])]) == (0.25, False)
    assert output_error([a], []) == (inf, False)
    assert output_error(None, None) == (0.0, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rtol": 0}, "Argument rtol of calibrate makes no sense. Received: 0"),
        ({"rtol": float("nan")}, "Argument rtol"),
        ({"low_share": 2}, "Argument low_share of calibrate makes no sense. Received: 2"),
        ({"time_limit": -1}, "Argument time_limit"),
        ({"feeds": []}, "feeds for one run or more. Received: none"),
        ({"feeds": {}}, "Input 'x' .* has no feed"),
    ],
)
def test_arguments_that_make_no_sense(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        ag.calibrate(graph("t = Add(h, h)"), **{"feeds": {"x": X}, **arguments})


def test_a_random_graph_cannot_be_judged() -> None:
    wide = graph("n = RandomNormalLike(h)  t = Add(n, h)")
    with pytest.raises(KernelError, match=r"Output 'y' differs by .* from one float32 run to the next.*a seed\."):
        ag.calibrate(wide, {"x": X})
    assert ag.calibrate(graph("n = RandomNormalLike<seed = 3.0>(h)  t = Add(n, h)"), {"x": X}).is_met


def test_outputs_with_nothing_to_compare() -> None:
    wide = graph("t = Relu(h)", io=f"{F} x => {F} y, {F} z", behind=f"{BEHIND} n = Neg(r0)  o = Sub(n, one)  z = Log(o)", one=1)
    found = ag.calibrate(wide, {"x": X})
    assert found.unchecked == ("z",)
    assert found.json()["unchecked"] == ["z"]
    assert "checked   1 output on the data" in found.text()
    assert "output 'z' has no finite element in float32 that could be compared" in found.text()
    with pytest.raises(KernelError, match=r"nothing to compare: .* Received: 2 runs, outputs 'y', 'z'"):
        ag.calibrate(wide, [{"x": np.full_like(X, np.nan)}] * 2)


def test_kept_nodes_are_said_to_do_what_they_do_alone() -> None:
    io = f"{F} x => int64[8, {D}] i, {F} y"
    wide = graph("t = MatMul(h, w)  i = Cast<to = 7>(t)", io=io, behind="m = Relu(t)  y = MatMul(m, w)")
    feeds = {"x": X * 100}
    found = ag.calibrate(wide, feeds, low_share=0)
    right = ag.compile(wide)(feeds)["i"]
    assert len(found.kept) > 1
    for item in found.kept:
        alone = convert(wide, ag.Policy(), {item.node}).graph
        error = (ag.compile(alone)(feeds)["i"] != right).mean()
        assert item.why == f"output 'i' would be off by {error:.2g} if only this were float16"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("model.onnx", {}), r"calibrate takes a Graph; load a file with ampgraph\.load\. Received: str"),
        ((ag.Graph(), None), r"arrays by the names of its inputs\. Received: NoneType"),
        ((ag.Graph(), {}, "policy.toml"), r"Argument policy of calibrate is a Policy.* Received: 'policy\.toml'"),
        ((ag.Graph(), {}), r"nothing to compare: .* Received: 1 run, outputs \(none\)"),
    ],
)
def test_what_cannot_be_calibrated(arguments: Any, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        ag.calibrate(*arguments)
