"""Lists, TensorArrays, stacks and optionals of TensorFlow's graphs."""

from typing import Any

import numpy as np
import pytest

import ampgraph as ag

from .tf_text import X, const, run

# They make arrays of lists, too.
F32: Any = np.float32


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


def test_parts_of_an_array_are_joined_again() -> None:
    text = (
        const("n", 3)
        + const("sizes", [2, 0, 1], "i64")
        + X
        + """
      %a: resource, %flow: f32 = tf.TensorArrayV3<dtype=f32>(%n) {clear_after_read=false}
      %w: f32 = tf.TensorArraySplitV3<T=f32>(%a, %x, %sizes, %flow)
      %y: f32, %lengths: i64 = tf.TensorArrayConcatV3<dtype=f32>(%a, %w)
      %many: i32 = tf.TensorArraySizeV3(%a, %w)
      tf.TensorArrayCloseV3(%a) name="close" control=["y", "many"]
      %none: i32 = tf.TensorArraySizeV3(%a, %w) control=["close"]
    """
    )
    x = F32([[1, 2], [3, 4], [5, 6]])
    y, lengths, many, none = run(text, "%y", "%lengths", "%many", "%none", x=x)
    assert (y.tolist(), lengths.tolist(), int(many), int(none)) == (x.tolist(), [2, 0, 1], 3, 0)
    with pytest.raises(ag.KernelError, match=r"4 rows cannot be so divided\. Received: \[2, 0, 1\]"):
        run(text, "%y", x=F32([[1], [2], [3], [4]]))


def test_arrays_and_lists_without_items() -> None:
    text = (
        const("n", 0)
        + const("none", [], "i32")
        + """
      %a: resource, %flow: f32 = tf.TensorArrayV3<dtype=f32>(%n)
      %y: f32, %lengths: i64 = tf.TensorArrayConcatV3<dtype=f32>(%a, %flow) {element_shape_except0=shape[2]}
      %g: f32 = tf.TensorArrayGatherV3<dtype=f32>(%a, %none, %flow) {element_shape=shape[3,2]}
      %u: f32 = tf.TensorArrayGatherV3<dtype=f32>(%a, %none, %flow) {element_shape=shape[?,2]}
    """
    )
    joined, lengths, gathered = run(text, "%y", "%lengths", "%g")
    assert (joined.shape, lengths.shape, gathered.shape) == ((0, 2), (0,), (0, 3, 2))
    with pytest.raises(ag.KernelError, match="of no items, whose shape is not known, no tensor can be made"):
        run(text, "%u")


@pytest.mark.parametrize("version", ["", "V2"])
def test_stacks(version: str) -> None:
    made, handle = ("tf.StackV2<elem_type=f32>(%two)", "resource") if version else ("tf.Stack<elem_type=f32>()", "str")
    text = (
        const("two", 2)
        + X
        + f"""
      %s: {handle} = {made}
      %a: f32 = tf.StackPush{version}<T=f32>(%s, %x)
      %twice: f32 = tf.AddV2<T=f32>(%a, %a)
      %b: f32 = tf.StackPush{version}<T=f32>(%s, %twice)
      %y: f32 = tf.StackPop{version}<elem_type=f32>(%s) control=["b"]
      %z: f32 = tf.StackPop{version}<elem_type=f32>(%s) control=["y"]
      %w: f32 = tf.StackPop{version}<elem_type=f32>(%s) control=["z"]
      %c: f32 = tf.StackPush{version}<T=f32>(%s, %x) control=["b"]
      tf.StackClose{version}(%s) name="close" control=["b"]
      %gone: f32 = tf.StackPop{version}<elem_type=f32>(%s) control=["close"]
    """
    )
    assert [y.tolist() for y in run(text, "%y", "%z", x=F32([1]))] == [[2], [1]]
    for name in ("%w", "%gone"):
        with pytest.raises(ag.KernelError, match="the stack is empty"):
            run(text, name, x=F32([1]))
    if version:
        with pytest.raises(ag.KernelError, match="the stack may hold 2 tensors, and does"):
            run(text, "%c", x=F32([1]))


def test_optionals_are_added() -> None:
    text = (
        X
        + """
      %o: variant = tf.OptionalFromValue<Toutput_types=[f32]>(%x)
      %sum: variant = tf.AddN<T=variant>(%o, %o) {N=2}
      %zero: variant = tf.ZerosLike<T=variant>(%o)
      %both: variant = tf.AddN<T=variant>(%sum, %zero) {N=2}
      %y: f32 = tf.OptionalGetValue<output_types=[f32]>(%both) {output_shapes=[shape[*]]}
      %there: bool = tf.OptionalHasValue(%both)
      %none: variant = tf.OptionalNone()
      %no: variant = tf.AddN<T=variant>(%o, %none) {N=2}
      %nothing: f32 = tf.OptionalGetValue<output_types=[f32]>(%none) {output_shapes=[shape[*]]}
      %absent: variant = tf.ZerosLike<T=variant>(%none)
      %away: bool = tf.OptionalHasValue(%absent)
    """
    )
    y, there, away = run(text, "%y", "%there", "%away", x=F32([1, 2]))
    assert (y.tolist(), bool(there), bool(away)) == ([2, 4], True, False)
    for name, message in (("%no", "Optionals that hold nothing are not added"), ("%nothing", "the optional holds nothing")):
        with pytest.raises(ag.KernelError, match=message):
            run(text, name, x=F32([1, 2]))


def test_texts_that_were_not_set_are_empty() -> None:
    text = (
        const("shape", [1])
        + const("n", 2)
        + const("i", 1)
        + const("said", ["hello"], "str")
        + """
      %empty: variant = tf.TensorListReserve<element_dtype=str, shape_type=i32>(%shape, %n)
      %list: variant = tf.TensorListSetItem<element_dtype=str>(%empty, %i, %said)
      %y: str, %lengths: i64 = tf.TensorListConcat<element_dtype=str>(%list)
      %z: str = tf.TensorListStack<element_dtype=str>(%list, %shape)
    """
    )
    y, lengths, z = run(text, "%y", "%lengths", "%z")
    assert (y.tolist(), lengths.tolist(), z.tolist()) == (["", "hello"], [1, 1], [[""], ["hello"]])
