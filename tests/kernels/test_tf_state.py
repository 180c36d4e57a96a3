"""Variables, lists and arrays of TensorFlow's graphs."""

from typing import Any

import numpy as np
import pytest

import ampgraph as ag

# They make arrays of lists, too.
F32: Any = np.float32

ZEROS = "dense<f32[2], [0.0, 0.0]>"


def run(body: str, *results: str, **feeds: Any) -> list[Any]:
    """Return the results of a graph of these lines."""
    program = ag.compile(ag.parse_graph(f"graph g() {{\n{body}\n  return {', '.join(results)}\n}}"))
    return list(program(feeds).values())


def const(name: str, value: Any, dtype: str = "i32") -> str:
    array = np.asarray(value)
    kind = f"{dtype}[{','.join(map(str, array.shape))}]"
    return f"  %{name}: {dtype} = tf.Const<dtype={dtype}>() {{value=dense<{kind}, {array.ravel().tolist()}>}}\n"


X = "  %x: f32 = tf.Placeholder<dtype=f32>() {shape=shape[*]}\n"


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
    text = (
        const("one", [1.0], "f16") + const("small", [2.0**-10], "f16") + const("yes", True, "bool").replace("True", "true") + text
    )
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


def listed(count: int = 3) -> str:
    return (
        const("shape", [2]) + const("n", count) + const("i", 1) + X
        + "  %empty: variant = tf.TensorListReserve<element_dtype=f32, shape_type=i32>(%shape, %n)\n"
        + "  %list: variant = tf.TensorListSetItem<element_dtype=f32>(%empty, %i, %x)\n"
    )  # fmt: skip


def test_items_that_were_not_set_are_zeros() -> None:
    text = listed() + "  %y: f32 = tf.TensorListStack<element_dtype=f32>(%list, %shape)\n"
    text += "  %z: f32 = tf.TensorListStack<element_dtype=f32>(%empty, %shape)"
    stacked, before = run(text, "%y", "%z", x=F32([5, 6]))
    assert stacked.tolist() == [[0, 0], [5, 6], [0, 0]]
    assert not before.any(), "a list that is changed is another list"


def test_lists_are_added_item_by_item() -> None:
    text = listed() + "  %sum: variant = tf.AddN<T=variant>(%list, %list, %empty) {N=3}\n"
    text += "  %zeros: variant = tf.ZerosLike<T=variant>(%list)\n"
    text += "  %y: f32 = tf.TensorListGetItem<element_dtype=f32>(%sum, %i, %shape)\n"
    text += "  %z: f32 = tf.TensorListGetItem<element_dtype=f32>(%zeros, %i, %shape)"
    both, none = run(text, "%y", "%z", x=F32([5, 6]))
    assert both.tolist() == [10, 12]
    assert none.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("x", "message"),
    [(F32([1, 2, 3]), r"shapes \[2\] and \[3\] contradict each other"), (F32([1, 2]), "the list has 1 items")],
)
def test_what_a_list_cannot_hold(x: Any, message: str) -> None:
    text = listed(1) + "  %y: f32 = tf.TensorListStack<element_dtype=f32>(%list, %shape)"
    with pytest.raises(ag.KernelError, match=message):
        run(text, "%y", x=x)


def test_gradients_of_an_array_are_added_up() -> None:
    text = """
      %a: resource, %flow: f32 = tf.TensorArrayV3<dtype=f32>(%n)
      %w: f32 = tf.TensorArrayWriteV3<T=f32>(%a, %i, %x, %flow)
      %g: resource, %gf: f32 = tf.TensorArrayGradV3(%a, %w) {source="gradients"}
      %g1: f32 = tf.TensorArrayWriteV3<T=f32>(%g, %i, %x, %gf)
      %g2: f32 = tf.TensorArrayWriteV3<T=f32>(%g, %i, %x, %g1)
      %read: f32 = tf.TensorArrayReadV3<dtype=f32>(%g, %i, %g2)
      %y: f32 = tf.TensorArrayReadV3<dtype=f32>(%a, %i, %w) control=["read"]
    """
    text = const("n", 2) + const("i", 1) + X + text
    gradient, item = run(text, "%read", "%y", x=F32([1, 2]))
    assert (gradient.tolist(), item.tolist()) == ([2, 4], [1, 2])
    with pytest.raises(ag.KernelError, match="item 1 was read before"):
        run(text + '  %again: f32 = tf.TensorArrayReadV3<dtype=f32>(%a, %i, %w) control=["y"]\n', "%again", x=F32([1, 2]))
    twice = "  %u: f32 = tf.TensorArrayWriteV3<T=f32>(%a, %i, %x, %w)\n"
    with pytest.raises(ag.KernelError, match="item 1 was written before"):
        run(text + twice, "%u", x=F32([1, 2]))


def test_what_no_result_depends_on_needs_no_feed() -> None:
    text = X + "  %other: f32 = tf.Placeholder<dtype=f32>() {shape=shape[2]}\n  %y: f32 = tf.Neg<T=f32>(%x)"
    assert run(text, "%y", x=F32([1]))[0].tolist() == [-1]


def test_an_assertion_says_what_does_not_hold() -> None:
    text = const("no", False, "bool").replace("False", "false") + X
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


def test_a_variable_holds_a_list() -> None:
    text = (
        listed()
        + """
      %v: resource = tf.VarHandleOp<dtype=variant>() {shape=shape[]}
      tf.AssignVariableOp<dtype=variant>(%v, %list) name="set"
      %held: variant = tf.ReadVariableOp<dtype=variant>(%v) control=["set"]
      %y: f32 = tf.TensorListGetItem<element_dtype=f32>(%held, %i, %shape)
    """
    )
    assert run(text, "%y", x=F32([5, 6]))[0].tolist() == [5, 6]
