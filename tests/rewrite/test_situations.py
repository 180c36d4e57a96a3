"""One row per situation: the nodes between two MatMuls before the rewrite, and after it (None: as before).

Casts are written ``half``/``float`` with short names to keep the rows readable; the test spells the real names out.
"""

import re
import textwrap
from typing import Any

import pytest

from ampgraph.graph import GraphError, PolicyError
from ampgraph.graph.text import parse_graph
from ampgraph.rewrite import Policy, auto_mixed_precision


def spell_out(text: str) -> str:
    """Replace ``half(%v)`` and ``float(%v)`` definitions by casts with the names the pass gives them."""
    names: dict[str, str] = {}
    lines = []
    for line in textwrap.dedent(text).strip().splitlines():
        found = re.fullmatch(r"(\s*)%(\w+) = (half|float)\(%(\w+)\)", line)
        if found:
            indent, name, to, value = found.groups()
            kind, types = (
                ("Fp16", "f16 = tf.Cast<DstT=f16, SrcT=f32>") if to == "half" else ("Fp32", "f32 = tf.Cast<DstT=f32, SrcT=f16>")
            )
            names[name] = f'"{value}-0-CastTo{kind}-0-AutoMixedPrecision"'
            line = f"{indent}%{names[name]}: {types}(%{value})"
        else:
            line = re.sub(r"%(\w+)", lambda match: "%" + names.get(match[1], match[1]), line)
        lines.append(line)
    return "\n".join(lines)


CASES = [
    pytest.param(
        {},
        """
        graph g() {
          %x: f32 = tf.Placeholder<dtype=f32>()
          %a: f32 = tf.MatMul<T=f32>(%x, %x)
          %r: f32 = tf.Relu<T=f32>(%a)
          %t: f32 = tf.Tanh<T=f32>(%r)
          %b: f32 = tf.MatMul<T=f32>(%t, %r)
          %out: f32 = tf.Identity<T=f32>(%b)
          return %out
        }
        """,
        """
        graph g() {
          %x: f32 = tf.Placeholder<dtype=f32>()
          %xh = half(%x)
          %a: f16 = tf.MatMul<T=f16>(%xh, %xh)
          %r: f16 = tf.Relu<T=f16>(%a)
          %t: f16 = tf.Tanh<T=f16>(%r)
          %b: f16 = tf.MatMul<T=f16>(%t, %r)
          %bf = float(%b)
          %out: f32 = tf.Identity<T=f32>(%bf)
          return %out
        }
        """,
        id="gray-and-clear-between-allow",
    ),
    pytest.param(
        {},
        """
        graph g() {
          %x: f32 = tf.Placeholder<dtype=f32>()
          %a: f32 = tf.MatMul<T=f32>(%x, %x)
          %e: f32 = tf.Exp<T=f32>(%a)
          %n: f32 = tf.Neg<T=f32>(%e)
          %m: f32 = tf.Mul<T=f32>(%n, %a)
          %b: f32 = tf.MatMul<T=f32>(%m, %x)
          %out: f32 = tf.Identity<T=f32>(%b)
          return %out
        }
        """,
        """
        graph g() {
          %x: f32 = tf.Placeholder<dtype=f32>()
          %xh = half(%x)
          %a: f16 = tf.MatMul<T=f16>(%xh, %xh)
          %af = float(%a)
          %e: f32 = tf.Exp<T=f32>(%af)
          %n: f32 = tf.Neg<T=f32>(%e)
          %m: f32 = tf.Mul<T=f32>(%n, %af)
          %mh = half(%m)
          %b: f16 = tf.MatMul<T=f16>(%mh, %xh)
          %bf = float(%b)
          %out: f32 = tf.Identity<T=f32>(%bf)
          return %out
        }
        """,
        id="deny-reaches-gray-through-clear",
    ),
    pytest.param(
        {},
        """
        graph g() {
          %x: f32 = tf.Placeholder<dtype=f32>()
          %e: f32 = tf.Exp<T=f32>(%x)
          %r: f32 = tf.Relu<T=f32>(%e)
          %out: f32 = tf.AddV2<T=f32>(%r, %x)
          return %out
        }
        """,
        None,
        id="nothing-to-gain",
    ),
    pytest.param(
        {},
        """
        graph g() {
          %x: f32 = tf.Placeholder<dtype=f32>()
          %a: f32 = tf.MatMul<T=f32>(%x, %x)
          return %a
        }
        """,
        None,
        id="an-output-keeps-its-dtype",
    ),
    pytest.param(
        {"keep_io": False},
        """
        graph g() {
          %x: f32 = tf.Placeholder<dtype=f32>()
          %a: f32 = tf.MatMul<T=f32>(%x, %x)
          return %a
        }
        """,
        """
        graph g() {
          %x: f32 = tf.Placeholder<dtype=f32>()
          %xh = half(%x)
          %a: f16 = tf.MatMul<T=f16>(%xh, %xh)
          return %a
        }
        """,
        id="unless-told-otherwise",
    ),
    pytest.param(
        {},
        """
        graph g() {
          %x: f32 = tf.Placeholder<dtype=f32>()
          %a: f32 = tf.MatMul<T=f32>(%x, %x) device="/device:CPU:0"
          %out: f32 = tf.Identity<T=f32>(%a)
          return %out
        }
        """,
        None,
        id="on-a-cpu",
    ),
    pytest.param(
        {},
        """
        graph g() {
          %x: f64 = tf.Placeholder<dtype=f64>()
          %c: f32 = tf.Cast<DstT=f32, SrcT=f64>(%x)
          %a: f32 = tf.MatMul<T=f32>(%c, %c)
          %out: f32 = tf.Identity<T=f32>(%a)
          return %out
        }
        """,
        """
        graph g() {
          %x: f64 = tf.Placeholder<dtype=f64>()
          %c: f16 = tf.Cast<DstT=f16, SrcT=f64>(%x)
          %a: f16 = tf.MatMul<T=f16>(%c, %c)
          %af = float(%a)
          %out: f32 = tf.Identity<T=f32>(%af)
          return %out
        }
        """,
        id="an-existing-cast-is-retargeted",
    ),
    pytest.param(
        {},
        """
        graph g() {
          %x: f64 = tf.Placeholder<dtype=f64>()
          %c: f32 = tf.Cast<DstT=f32, SrcT=f64>(%x)
          %a: f32 = tf.MatMul<T=f32>(%c, %c)
          %out: f32 = tf.Identity<T=f32>(%a)
          return %out, %c
        }
        """,
        """
        graph g() {
          %x: f64 = tf.Placeholder<dtype=f64>()
          %c: f32 = tf.Cast<DstT=f32, SrcT=f64>(%x)
          %ch = half(%c)
          %a: f16 = tf.MatMul<T=f16>(%ch, %ch)
          %af = float(%a)
          %out: f32 = tf.Identity<T=f32>(%af)
          return %out, %c
        }
        """,
        id="but-not-one-the-graph-returns",
    ),
    pytest.param(
        {},
        """
        graph g() {
          %x: f32 = tf.Placeholder<dtype=f32>()
          %a: f32 = tf.MatMul<T=f32>(%x, %x)
          %h: f16 = tf.Cast<DstT=f16, SrcT=f32>(%a)
          %d: f64 = tf.Cast<DstT=f64, SrcT=f32>(%a)
          %n: f16 = tf.Neg<T=f16>(%h)
          return %n, %d
        }
        """,
        """
        graph g() {
          %x: f32 = tf.Placeholder<dtype=f32>()
          %xh = half(%x)
          %a: f16 = tf.MatMul<T=f16>(%xh, %xh)
          %d: f64 = tf.Cast<DstT=f64, SrcT=f16>(%a)
          %n: f16 = tf.Neg<T=f16>(%a)
          return %n, %d
        }
        """,
        id="existing-casts-read-the-low-value",
    ),
    pytest.param(
        {},
        """
        graph g() {
          %x: f16 = tf.Placeholder<dtype=f16>()
          %c: f32 = tf.Cast<DstT=f32, SrcT=f16>(%x)
          %s: f32 = tf.Sin<T=f32>(%c)
          %a: f32 = tf.MatMul<T=f32>(%c, %c)
          %out: f32 = tf.Identity<T=f32>(%a)
          return %out, %s
        }
        """,
        """
        graph g() {
          %x: f16 = tf.Placeholder<dtype=f16>()
          %c: f32 = tf.Cast<DstT=f32, SrcT=f16>(%x)
          %s: f32 = tf.Sin<T=f32>(%c)
          %a: f16 = tf.MatMul<T=f16>(%x, %x)
          %af = float(%a)
          %out: f32 = tf.Identity<T=f32>(%af)
          return %out, %s
        }
        """,
        id="no-way-there-and-back",
    ),
    pytest.param(
        {"nodes": ("a=none",)},
        """
        graph g() {
          %x: f32 = tf.Placeholder<dtype=f32>()
          %a: f32 = tf.MatMul<T=f32>(%x, %x)
          %b: f32 = tf.MatMul<T=f32>(%a, %x)
          %out: f32 = tf.Identity<T=f32>(%b)
          return %out
        }
        """,
        """
        graph g() {
          %x: f32 = tf.Placeholder<dtype=f32>()
          %xh = half(%x)
          %a: f32 = tf.MatMul<T=f32>(%x, %x)
          %ah = half(%a)
          %b: f16 = tf.MatMul<T=f16>(%ah, %xh)
          %bf = float(%b)
          %out: f32 = tf.Identity<T=f32>(%bf)
          return %out
        }
        """,
        id="one-node-kept-by-name",
    ),
    pytest.param(
        {"ops": ("MatMul=deny",)},
        """
        graph g() {
          %x: f32 = tf.Placeholder<dtype=f32>()
          %a: f32 = tf.MatMul<T=f32>(%x, %x)
          %out: f32 = tf.Identity<T=f32>(%a)
          return %out
        }
        """,
        None,
        id="one-op-denied",
    ),
    pytest.param(
        {"target": "gpu:6.1"},
        """
        graph g() {
          %x: f32 = tf.Placeholder<dtype=f32>()
          %a: f32 = tf.MatMul<T=f32>(%x, %x)
          %out: f32 = tf.Identity<T=f32>(%a)
          return %out
        }
        """,
        None,
        id="no-tensor-cores",
    ),
    pytest.param(
        {},
        """
        graph g() {
          %x: f32 = tf.Placeholder<dtype=f32>()
          %u: ? = tf.NobodyKnows(%x)
          %a: f32 = tf.MatMul<T=f32>(%x, %x)
          %v: f32 = tf.NobodyKnows(%a)
          return %v
        }
        """,
        """
        graph g() {
          %x: f32 = tf.Placeholder<dtype=f32>()
          %xh = half(%x)
          %u: ? = tf.NobodyKnows(%x)
          %a: f16 = tf.MatMul<T=f16>(%xh, %xh)
          %af = float(%a)
          %v: f32 = tf.NobodyKnows(%af)
          return %v
        }
        """,
        id="an-op-nobody-defined-sees-float32",
    ),
    pytest.param(
        {},
        """
        graph g() {
          %x: f32 = tf.Placeholder<dtype=f32>()
          %a: f32 = tf.MatMul<T=f32>(%x, %x)
          %y: f32, %m: f32, %v: f32, %r: f32, %q: f32 = tf.FusedBatchNorm<T=f32>(%a, %x, %x, %x, %x) name="bn"
          %b: f32 = tf.MatMul<T=f32>(%y, %x)
          %out: f32 = tf.Identity<T=f32>(%b)
          return %out
        }
        """,
        """
        graph g() {
          %x: f32 = tf.Placeholder<dtype=f32>()
          %xh = half(%x)
          %a: f16 = tf.MatMul<T=f16>(%xh, %xh)
          %y: f16, %m: f32, %v: f32, %r: f32, %q: f32 = tf.FusedBatchNormV2<T=f16, U=f32>(%a, %x, %x, %x, %x) name="bn"
          %b: f16 = tf.MatMul<T=f16>(%y, %xh)
          %bf = float(%b)
          %out: f32 = tf.Identity<T=f32>(%bf)
          return %out
        }
        """,
        id="batch-norm-keeps-its-statistics",
    ),
]


@pytest.mark.parametrize(("settings", "before", "after"), CASES)
def test_rewrites(settings: dict[str, Any], before: str, after: str | None) -> None:
    text = textwrap.dedent(before).strip()
    graph = parse_graph(text)
    result = auto_mixed_precision(graph, **settings)
    assert str(result.graph).strip() == (text if after is None else spell_out(after))
    assert result.modified == (after is not None)
    assert (result.graph is graph) == (after is None)


def test_settings_replace_fields_of_the_policy() -> None:
    graph = parse_graph(textwrap.dedent(CASES[0].values[1]).strip())  # type: ignore[arg-type]
    result = auto_mixed_precision(graph, Policy(dtype="bfloat16"), target="cpu")
    assert str(result.report.policy).startswith("preset=safe,dtype=bfloat16,target=cpu")
    assert result.graph.node("a").types["T"].name == "bfloat16"


def test_a_target_that_gains_nothing_says_why() -> None:
    graph = parse_graph(textwrap.dedent(CASES[0].values[1]).strip())  # type: ignore[arg-type]
    report = auto_mixed_precision(graph, target="gpu:6.1").report
    assert "nothing was rewritten" in report.text()
    assert "compute capability 7.0" in report.notes[0]
    assert auto_mixed_precision(graph, target="gpu:6.1", ignore_performance=True).modified


def test_a_graph_in_float64_says_so() -> None:
    text = """graph g() {{
      %x: {0}[8,8] = tf.Placeholder<dtype={0}>() {{shape=shape[8,8]}}
      %h: {0}[8,8] = tf.MatMul<T={0}>(%x, %x)
      %y: {0}[8,8] = tf.Exp<T={0}>(%h)
      return %y
    }}"""
    notes = auto_mixed_precision(parse_graph(text.format("f64"))).report.notes
    assert notes == ["'h' (MatMul) computes in float64, and only float32 is rewritten: give it float32 arrays"]
    assert auto_mixed_precision(parse_graph(text.format("f32"))).report.notes == []
    assert auto_mixed_precision(parse_graph(text.format("f32")), ops=("MatMul=deny",)).report.notes == []


def test_edits_and_overrides_without_effect_are_reported() -> None:
    graph = parse_graph(textwrap.dedent(CASES[0].values[1]).strip())  # type: ignore[arg-type]
    notes = auto_mixed_precision(graph, ops=("gray:-Softplus",), nodes=("nobody/.*=deny",)).report.notes
    graph = parse_graph(textwrap.dedent(CASES[0].values[1]).strip())  # type: ignore[arg-type]
    more = auto_mixed_precision(graph, ops=("Matmul=deny", "deny:+Exp"), preserve=("nobody",)).report.notes
    assert more == [
        "list edit 'Matmul=deny' names an op that nobody defines. Did you mean 'MatMul'?",
        "list edit 'deny:+Exp' matches no op of this graph",
        "preserved name 'nobody' matches no node of this graph",
    ]
    assert len(notes) == 2
    assert any("'nobody/.*=deny'" in note and "matches no node" in note for note in notes)
    assert any("'gray:-Softplus'" in note and "matches no op" in note for note in notes)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(GraphError, match=r"takes a Graph; load a file with ampgraph\.load"):
        auto_mixed_precision("model.pb")  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match=r"no field 'dtyp'.*Did you mean 'dtype'\?"):
        auto_mixed_precision(parse_graph("graph g() {\n}"), dtyp="float16")
