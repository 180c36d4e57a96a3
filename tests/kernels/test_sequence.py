"""Sequences and optionals."""

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from ampgraph.graph.text import parse_graph
from ampgraph.kernels.program import compile
from tests.kernels.one_node import run_op

ITEMS = [np.array([float(i)], np.float16) for i in range(3)]


def numbers(sequence: list[np.ndarray]) -> list[float]:
    return [float(x[0]) for x in sequence]


def test_inserting_and_erasing_make_new_sequences() -> None:
    items = list(ITEMS)
    new = np.array([9.0], np.float16)
    assert numbers(run_op("SequenceInsert", items, new)) == [0, 1, 2, 9]
    assert numbers(run_op("SequenceInsert", items, new, np.array(-1))) == [0, 1, 9, 2]
    assert numbers(run_op("SequenceInsert", items, new, np.array(3))) == [0, 1, 2, 9]
    assert numbers(run_op("SequenceErase", items)) == [0, 1]
    assert numbers(run_op("SequenceErase", items, np.array(-3))) == [1, 2]
    assert numbers(items) == [0, 1, 2]


@pytest.mark.parametrize(("op", "place"), [("SequenceAt", 3), ("SequenceAt", -4), ("SequenceErase", 3)])
def test_a_position_outside_is_an_error(op: str, place: int) -> None:
    with pytest.raises(KernelError, match=f"3 tensors has no such position. Received: {place}"):
        run_op(op, ITEMS, np.array(place))


def test_parts_of_a_tensor() -> None:
    x = np.arange(10).reshape(2, 5)
    assert [part.shape for part in run_op("SplitToSequence", x, np.array(2), axis=1)] == [(2, 2), (2, 2), (2, 1)]
    assert [part.shape for part in run_op("SplitToSequence", x, np.array([4, 0, 1]), axis=-1)] == [(2, 4), (2, 0), (2, 1)]
    assert [part.tolist() for part in run_op("SplitToSequence", x, keepdims=0)] == x.tolist()
    assert [part.shape for part in run_op("SplitToSequence", x)] == [(1, 5), (1, 5)]
    with pytest.raises(KernelError, match=r"add up to 5\. Received: \[4, 2\]"):
        run_op("SplitToSequence", x, np.array([4, 2]), axis=1)
    with pytest.raises(KernelError, match="at least one element"):
        run_op("SplitToSequence", x, np.array(0))


def test_joining() -> None:
    assert run_op("ConcatFromSequence", ITEMS, axis=0).tolist() == [0, 1, 2]
    assert run_op("ConcatFromSequence", ITEMS, axis=-1, new_axis=1).shape == (1, 3)


def test_an_optional_is_its_element_or_nothing() -> None:
    assert run_op("OptionalHasElement", None, version=18).tolist() is False
    assert run_op("OptionalHasElement", ITEMS[0], version=18).tolist() is True
    assert run_op("OptionalGetElement", ITEMS[2], version=18).tolist() == [2]


@pytest.mark.parametrize(
    ("nothing", "op", "message"),
    [
        ("Optional<V=f16>() {type=type<f16[1]>}", "OptionalGetElement<O=f16>(%x)", "the optional is empty"),
        ("SequenceEmpty<S=f16>()", "ConcatFromSequence<S=f16>(%x) {axis=0}", "without elements cannot be joined"),
    ],
)
def test_of_nothing_there_is_no_element(nothing: str, op: str, message: str) -> None:
    container = "optional" if nothing.startswith("Optional") else "seq"
    text = f"""graph g() opset [""=21] {{
      %x: f16 in {container} = {nothing}
      %y: f16 = {op}
      return %y
    }}"""
    with pytest.raises(KernelError, match=message):
        compile(parse_graph(text))({})
