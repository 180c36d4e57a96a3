"""Variables of TensorFlow's graphs."""

from typing import Any

import numpy as np
import pytest

import ampgraph as ag

from .tf_text import X, const, run

# They make arrays of lists, too.
F32: Any = np.float32


def test_variables_outlive_a_run() -> None:
    text = """
      %v: resource = tf.VarHandleOp<dtype=f32>() {shape=shape[2], shared_name="v"}
      %there: bool = tf.VarIsInitializedOp(%v)
      tf.AssignVariableOp<dtype=f32>(%v, %x) name="set" control=["there"]
      %read: f32 = tf.ReadVariableOp<dtype=f32>(%v) control=["set"]
    """
    graph = ag.parse_graph(f"graph g() {{\n{X}{text}\n  return %there, %read\n}}")
    program = ag.compile(graph)
    for expected in (False, True):
        there, value = program({"x": F32([1, 2])}).values()
        assert (bool(there), value.tolist()) == (expected, [1, 2])
    assert not ag.compile(graph)({"x": F32([1, 2])})["there"], "another program has variables of its own"


def test_what_a_variable_holds_is_its_own() -> None:
    text = """
      %v: resource = tf.VarHandleOp<dtype=f32>() {shape=shape[2]}
      tf.AssignVariableOp<dtype=f32>(%v, %x) name="set"
      %y: f32 = tf.ReadVariableOp<dtype=f32>(%v) control=["set"]
    """
    graph = ag.parse_graph(f"graph g() {{\n{X}{text}\n  return %y\n}}")
    x = F32([1, 2])
    y = ag.compile(graph)({"x": x})["y"]
    x[:] = 7
    assert y.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        y[:] = 7


def test_a_variable_is_assigned_before_it_is_read() -> None:
    text = '%v: resource = tf.VarHandleOp<dtype=f32>() {shape=shape[2], shared_name="mine"}'
    with pytest.raises(ag.KernelError, match="Variable 'mine' holds nothing: it must be assigned before it is read"):
        run(text + "\n %y: f32 = tf.ReadVariableOp<dtype=f32>(%v)", "%y")


@pytest.mark.parametrize("fuse", [True, False])
def test_a_reference_is_read_when_the_reader_runs(fuse: bool) -> None:
    text = """
      %v: f16 = tf.VariableV2<dtype=f16>() {shape=shape[1]}
      %set: f16 = tf.Assign<T=f16>(%v, %one)
      %before: f16 = tf.Identity<T=f16>(%set)
      %add: f16 = tf.AssignAdd<T=f16>(%set, %small) control=["before"]
      %after: f16 = tf.Neg<T=f16>(%add)
      %whole: f16 = tf.Mul<T=f16>(%v, %v) control=["add"]
      %dead: f16, %alive: f16 = tf.RefSwitch<T=f16>(%v, %yes) control=["whole"]
      %merged: f16, %which: i32 = tf.RefMerge<T=f16>(%dead, %alive) {N=2}
      %sub: f16 = tf.AssignSub<T=f16>(%merged, %one)
    """
    text = const("one", [1.0], "f16") + const("small", [2.0**-10], "f16") + const("yes", True, "bool") + text
    body = f"graph g() {{\n{text}\n  return %before, %after, %whole, %which, %sub\n}}"
    results = list(ag.compile(ag.parse_graph(body), fuse=fuse)({}).values())
    step = 2.0**-10
    assert [float(result.reshape(())) for result in results] == [1, -(1 + step), 1 + 2 * step, 1, step]
    assert results[0].dtype == np.float16


STACK = "  %s: resource = tf.StackV2<elem_type=f32>(%i)\n"
VARIABLE = "  %v: resource = tf.VarHandleOp<dtype=f32>() {shape=shape[2]}\n"
OPTIONAL = "  %o: variant = tf.OptionalNone()\n"


@pytest.mark.parametrize(
    ("text", "received"),
    [
        (STACK + "  %y: f32 = tf.ReadVariableOp<dtype=f32>(%s)", "a stack"),
        (VARIABLE + "  %y: f32 = tf.TensorArrayWriteV3<T=f32>(%v, %i, %x, %x)", "a variable, an array, an array, an array"),
        (OPTIONAL + "  %y: i32 = tf.TensorListLength(%o)", "an optional"),
        (
            VARIABLE + "  %two: resource = tf.Pack<T=resource>(%v, %v) {N=2}\n  %y: f32 = tf.ReadVariableOp<dtype=f32>(%two)",
            "an array",
        ),
        ("  %y: f32 = tf.Assign<T=f32>(%x, %x)", "an array, an array"),
    ],
)
def test_what_is_mistaken_for_something_else_is_named(text: str, received: str) -> None:
    with pytest.raises(ag.KernelError, match=rf"Node 'y' .* failed: it takes other operands than these\. Received: {received}$"):
        run(const("i", 0) + X + text, "%y", x=F32([1, 2]))


def test_updates_of_a_variable() -> None:
    text = """
      %v: resource = tf.VarHandleOp<dtype=i32>() {shape=shape[3]}
      tf.AssignVariableOp<dtype=i32>(%v, %start) name="set"
      tf.ResourceScatterDiv<dtype=i32, Tindices=i32>(%v, %rows, %by) name="div" control=["set"]
      %y: i32 = tf.ReadVariableOp<dtype=i32>(%v) control=["div"]
    """
    start, by = [-7, 7, 100], [2, -2, 3]
    text = const("start", start) + const("rows", [0, 1, 2]) + const("by", by) + text
    assert run(text, "%y")[0].tolist() == [-3, -3, 33], "integers are divided towards zero"


def test_several_variables_at_once() -> None:
    text = (
        X
        + """
      %a: resource, %b: resource = tf._VarHandlesOp<dtypes=[f32, f32]>() {
        N=2, containers=["", ""], shapes=[shape[*], shape[*]], shared_names=["one", ""]}
      tf.AssignVariableOp<dtype=f32>(%a, %x) name="set"
      %c: f32 = tf.Neg<T=f32>(%x)
      tf.AssignVariableOp<dtype=f32>(%b, %c) name="set2"
      %y: f32, %z: f32 = tf._ReadVariablesOp<dtypes=[f32, f32]>(%a, %b) {N=2} control=["set", "set2"]
      %n: i32 = tf.VariableShape<out_type=i32>(%b) control=["y"]
      tf.DestroyResourceOp(%b) {ignore_lookup_error=false} name="gone" control=["y", "n"]
      %there: bool = tf.VarIsInitializedOp(%b) control=["gone"]
      tf.DestroyResourceOp(%b) {ignore_lookup_error=false} name="again" control=["there"]
      %end: f32 = tf.Neg<T=f32>(%x) control=["again"]
    """
    )
    y, z, n, there = run(text, "%y", "%z", "%n", "%there", x=F32([1, 2]))
    assert (y.tolist(), z.tolist(), n.tolist(), bool(there)) == ([1, 2], [-1, -2], [2], False)
    with pytest.raises(ag.KernelError, match="Variable 'a:1' does not exist"):
        run(text, "%end", x=F32([1, 2]))


def test_a_counter_stops_and_a_shape_stays() -> None:
    text = (
        const("start", 1)
        + """
      %v: resource = tf.VarHandleOp<dtype=i32>() {shape=shape[], shared_name="v"}
      tf.AssignVariableOp<dtype=i32>(%v, %start) name="set"
      %y: i32 = tf.ResourceCountUpTo<T=i32>(%v) {limit=2} control=["set"]
      %z: i32 = tf.ResourceCountUpTo<T=i32>(%v) {limit=2} control=["y"]
    """
    )
    assert run(text, "%y")[0] == 1
    with pytest.raises(ag.KernelError, match=r"Variable 'v' reached its limit\. Received: 2"):
        run(text, "%z")
    text = (
        X
        + const("two", [1.0, 2.0], "f32")
        + """
      %v: resource = tf.VarHandleOp<dtype=f32>() {shape=shape[*], shared_name="v"}
      tf.AssignVariableOp<dtype=f32>(%v, %two) name="set"
      tf.AssignAddVariableOp<dtype=f32>(%v, %x) name="add" control=["set"]
      tf.AssignVariableOp<dtype=f32>(%v, %x) {validate_shape=true} name="again" control=["set"]
      %y: f32 = tf.ReadVariableOp<dtype=f32>(%v) control=["add"]
      %z: f32 = tf.ReadVariableOp<dtype=f32>(%v) control=["again"]
    """
    )
    assert run(text, "%y", x=F32([1, 1]))[0].tolist() == [2, 3]
    with pytest.raises(ag.KernelError, match=r"holds an array of shape \[2\]\. Received: a value of shape \[1\]"):
        run(text, "%y", x=F32([1]))
    with pytest.raises(ag.KernelError, match=r"keeps its shape, \[2\]\. Received: a value of shape \[1\]"):
        run(text, "%z", x=F32([1]))
