"""Conditions, calls, feeds and messages of TensorFlow's graphs."""

from typing import Any

import numpy as np
import pytest

import ampgraph as ag

from .tf_text import X, const, run

# They make arrays of lists, too.
F32: Any = np.float32


@pytest.mark.parametrize("call", ["tf.f(%a)", "tf.PartitionedCall<Tin=[f32], Tout=[f32]>(%a) {f=@f}"])
def test_a_function_that_calls_itself_without_end_is_an_error(call: str) -> None:
    graph = ag.parse_graph(f"""graph g(%x: f32) {{
  %y: f32 = tf.f(%x)
  return %y
}}
function f(%a: f32) {{
  %b: f32 = {call}
  return b=%b
}}""")
    with pytest.raises(ag.KernelError, match="where a function calls itself, let that end"):
        ag.compile(graph)({"x": F32([1, 2])})


def test_what_no_result_depends_on_needs_no_feed() -> None:
    text = X + "  %other: f32 = tf.Placeholder<dtype=f32>() {shape=shape[2]}\n  %y: f32 = tf.Neg<T=f32>(%x)"
    assert run(text, "%y", x=F32([1]))[0].tolist() == [-1]


def test_an_assertion_says_what_does_not_hold() -> None:
    text = const("no", False, "bool") + X
    text += '  tf.Assert<T=[f32]>(%no, %x) {summarize=2} name="check"\n  %y: f32 = tf.Neg<T=f32>(%x) control=["check"]'
    with pytest.raises(ag.KernelError, match=r"the condition does not hold. Received: \[1.0 2.0 ...\]"):
        run(text, "%y", x=F32([1, 2, 3]))


def test_a_condition_is_a_number_or_an_array_that_is_not_empty() -> None:
    text = X + "  %y: bool = tf.ToBool<T=f32>(%x)\n  %fake: f32 = tf.FakeParam<dtype=f32>() {shape=shape[2,?]}"
    for x, expected in ((0.0, False), (2.0, True), ([0.0], True), ([], False)):
        found, fake = run(text, "%y", "%fake", x=F32(x))
        assert (bool(found), fake.shape) == (expected, (2, 0))


def test_a_function_is_called_for_each_number() -> None:
    text = f"""graph g() {{
{const("a", 5)}{const("b", 0)}{const("c", -2)}{X}
  %y: f32 = tf.For<T=[f32]>(%a, %b, %c, %x) {{body=@add}}
  return %y
}}
function add(%i: i32, %x: f32) {{
  %wide: f32 = tf.Cast<DstT=f32, SrcT=i32>(%i)
  %y: f32 = tf.AddV2<T=f32>(%x, %wide)
  return %y
}}"""
    assert ag.compile(ag.parse_graph(text))({"x": F32([0, 1])})["y"].tolist() == [9, 10]


def test_messages_go_to_the_streams_that_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        X
        + """
      %y: f32 = tf.Print<T=f32, U=[f32]>(%x, %x) {message="x is ", summarize=2}
      %t: str = tf.AsString<T=f32>(%y)
      %one: str = tf.Const<dtype=str>() {value=dense<str[], ["said"]>}
      tf.PrintV2(%one) {output_stream="stdout", end="!"} name="out"
      tf.PrintV2(%one) name="err"
      %z: f32 = tf.Neg<T=f32>(%y) control=["out", "err"]
    """
    )
    run(text, "%z", x=F32([1, 2, 3]))
    out, err = capsys.readouterr()
    assert out == "said!"
    assert sorted(err.splitlines()) == ["said", "x is [1.0 2.0 ...]"]


def test_nothing_feeds_a_placeholder_inside_of_a_function() -> None:
    graph = ag.parse_graph("""graph g(%x: f32) {
  %y: f32 = tf.f(%x)
  return %y
}
function f(%a: f32) {
  %p: f32 = tf.Placeholder<dtype=f32>() {shape=shape[]}
  %b: f32 = tf.AddV2<T=f32>(%a, %p)
  return b=%b
}""")
    with pytest.raises(ag.KernelError, match="a Placeholder inside of a function cannot be fed"):
        ag.compile(graph)({"x": F32(1)})
