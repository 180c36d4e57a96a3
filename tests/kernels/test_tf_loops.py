"""TensorFlow's loops of ops and branches not taken: right, and refused by name where they are malformed."""

import re

import pytest

import ampgraph as ag

LOOP = """graph g() {
  %z: f32 = tf.Const<dtype=f32>() {value=dense<f32[], [0.0]>}
  %e: f32 = tf.Enter<T=f32>(%z) {frame_name="f"}
  %m: f32, %"m:1": i32 = tf.Merge<T=f32>(%e, %nx) {N=2}
  %lim: f32 = tf.Const<dtype=f32>() {value=dense<f32[], [3.0]>}
  %el: f32 = tf.Enter<T=f32>(%lim) {frame_name="f", is_constant=true}
  %less: bool = tf.Less<T=f32>(%m, %el)
  %lc: bool = tf.LoopCond(%less)
  %sw: f32, %"sw:1": f32 = tf.Switch<T=f32>(%m, %lc)
  %ex: f32 = tf.Exit<T=f32>(%sw)
  %one: f32 = tf.Const<dtype=f32>() {value=dense<f32[], [1.0]>} control=["sw"]
  %id: f32 = tf.Identity<T=f32>(%"sw:1")
  %add: f32 = tf.AddV2<T=f32>(%id, %one)
  %nx: f32 = tf.NextIteration<T=f32>(%add)
  return %ex
}"""


def test_a_loop_of_ops() -> None:
    assert ag.compile(ag.parse_graph(LOOP))({})["ex"] == 3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("return %ex", "return %add", "Result 'add' is in loop 'f'; only an Exit leads out of it."),
        ("tf.Merge<T=f32>(%e, %nx) {N=2}", "tf.Merge<T=f32>(%nx, %nx) {N=2}", "of NextIteration, NextIteration"),
        ('%m: f32, %"m:1": i32 = tf.Merge<T=f32>(%e, %nx) {N=2}', "%m: f32 = tf.AddV2<T=f32>(%e, %nx)", "Received: 'm' (AddV2)"),
        (' control=["sw"]', "", "Node 'add' (AddV2) waits for 'id' (Identity) in loop 'f', and 'one' (Const) outside of loops"),
        ('tf.Enter<T=f32>(%z) {frame_name="f"}', "tf.Identity<T=f32>(%z)", "leads to a Merge, and so does an Enter."),
    ],
)
def test_malformed_loops_are_refused_by_name(old: str, new: str, message: str) -> None:
    assert old in LOOP
    with pytest.raises(ag.AmpgraphError, match=re.escape(message)):
        ag.compile(ag.parse_graph(LOOP.replace(old, new)))({})


BRANCH = """graph g(%x: f32, %b: bool) {{
  %c: f32, %"c:1": f32 = tf.split(%x, %b)
  {node}
  %o: f32 = tf.Neg<T=f32>(%m)
  return %o
}}
function split(%x: f32, %b: bool) {{
  %s: f32, %"s:1": f32 = tf.Switch<T=f32>(%x, %b)
  return y=%s, w=%"s:1"
}}"""


def test_a_loop_is_not_entered_with_what_leaves_it() -> None:
    text = """graph g(%x: f32) {
  %e: f32 = tf.Enter<T=f32>(%x) {frame_name="f"}
  %ex: f32 = tf.Exit<T=f32>(%e)
  %again: f32 = tf.Enter<T=f32>(%ex) {frame_name="f"}
  %y: f32 = tf.Exit<T=f32>(%again)
  return %y
}"""
    with pytest.raises(ag.KernelError, match=r"Node 'again' \(Enter\) enters loop 'f' with what leaves it at 'ex' \(Exit\)\."):
        ag.compile(ag.parse_graph(text))


def test_a_loop_does_not_wait_for_its_own_results() -> None:
    text = """graph g(%x: f32) {
  %e: f32 = tf.Enter<T=f32>(%x) {frame_name="f"}
  %y: f32 = tf.Exit<T=f32>(%e)
  %sum: f32 = tf.AddV2<T=f32>(%y, %x)
  %again: f32 = tf.Enter<T=f32>(%sum) {frame_name="f"}
  %z: f32 = tf.Exit<T=f32>(%again)
  return %z
}"""
    with pytest.raises(ag.KernelError, match=r"Loop 'f' waits for what needs its results: Node 'sum' \(AddV2\)\."):
        ag.compile(ag.parse_graph(text))
    assert ag.compile(ag.parse_graph(text.replace('%sum) {frame_name="f"', '%sum) {frame_name="h"')))({"x": 2.0})["z"] == 4


def test_functions_return_values_of_branches_that_are_not_taken() -> None:
    program = ag.compile(ag.parse_graph(BRANCH.format(node='%m: f32, %"m:1": i32 = tf.Merge<T=f32>(%c, %"c:1") {N=2}')))
    assert [program({"x": 2.0, "b": taken})["o"] for taken in (True, False)] == [-2, -2]
    program = ag.compile(ag.parse_graph(BRANCH.format(node='%m: f32, %"m:1": i32 = tf.Merge<T=f32>(%c, %c) {N=2}')))
    assert program({"x": 2.0, "b": False})["o"] == -2
    with pytest.raises(ag.KernelError, match="Output 'o' of graph 'g' is in a branch that this run does not take"):
        program({"x": 2.0, "b": True})


def test_what_is_called_exists_and_takes_what_it_is_given() -> None:
    text = """graph g(%x: f32) {{
  %y: f32 = tf.PartitionedCall<Tin=[{types}], Tout=[f32]>({operands}) {{f=@{name}}}
  return %y
}}
function twice(%a: f32) {{
  %b: f32 = tf.AddV2<T=f32>(%a, %a)
  return b=%b
}}"""
    good = ag.parse_graph(text.format(types="f32", operands="%x", name="twice"))
    assert ag.compile(good)({"x": 3.0})["y"] == 6
    with pytest.raises(
        ag.KernelError, match=r"Node 'y' \(PartitionedCall\) calls function 'none', which the graph does not have"
    ):
        ag.compile(ag.parse_graph(text.format(types="f32", operands="%x", name="none")))
    with pytest.raises(ag.KernelError, match=r"function 'twice' takes 1 operands and gives 1 results\. Received: 2, for 1"):
        ag.compile(ag.parse_graph(text.format(types="f32,f32", operands="%x, %x", name="twice")))({"x": 3.0})
