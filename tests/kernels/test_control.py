"""Control flow, on graphs in the text form."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from ampgraph.graph.text import parse_graph
from ampgraph.kernels.program import compile


def run(text: str, **feeds: Any) -> list[Any]:
    return list(compile(parse_graph(text))(feeds).values())


def f32(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


# Both branches use outer values, one of them the same: the owner has each once.
IF = """
graph g(%c: bool, %a: f32[2], %b: f32[2]) opset [""=21] {
  %y: f32[2] = If<V=[f32]>(%c, %a, %b) {then_branch=graph t(%a: f32[2]) capture ["a"] {
      %t: f32[2] = Mul<T=f32>(%a, %a)
      return %t
    }, else_branch=graph e(%b: f32[2], %a: f32[2]) capture ["b", "a"] {
      %e: f32[2] = Sub<T=f32>(%b, %a)
      return %e
    }}
  return %y
}
"""


def test_if_hands_each_branch_the_outer_values_it_uses() -> None:
    assert run(IF, c=np.array(True), a=f32(2, 3), b=f32(9, 9))[0].tolist() == [4, 9]
    assert run(IF, c=np.array([False]), a=f32(2, 3), b=f32(9, 9))[0].tolist() == [7, 6]


# Carries a power of b times a, and a sequence of all of them; stops when the first element reaches 100.
LOOP = """
graph g(%m: i64, %go: bool, %a: f32[2], %b: f32[1], %stop: f32) opset [""=21] {
  %s: f32 in seq = SequenceEmpty<S=f32>()
  %y: f32[2], %q: f32[2] in seq, %z: f32["n",2], %n: i64["n"] = Loop<V=[f32, f32], V_out=[f32, i64]>(OPERANDS, %a, %s, %b, %stop)
    {body=graph body(%i: i64, %c: bool, %x: f32[2], %qi: f32[2] in seq, %b: f32[1], %stop: f32) capture ["b", "stop"] {
      %x1: f32[2] = Mul<T=f32>(%x, %b)
      %top: f32 = ReduceMax<T=f32>(%x1) {keepdims=0}
      %c1: bool = Less<T=f32>(%top, %stop)
      %q1: f32[2] in seq = SequenceInsert<S=f32>(%qi, %x1)
      %z1: f32[2] = Neg<T=f32>(%x1)
      %i1: i64 = Mul<T=i64>(%i, %i)
      return %c1, %x1, %q1, %z1, %i1
    }}
  return %y, %q, %z, %n
}
"""


def loop(operands: str, **feeds: Any) -> list[Any]:
    more = {"m": np.array(3), "go": np.array(True), "a": f32(1, 2), "b": f32(2), "stop": np.array(100, np.float32)}
    return run(LOOP.replace("OPERANDS", operands), **{**more, **feeds})


def test_loop_carries_states_and_stacks_the_rest() -> None:
    y, q, z, n = loop("%m, %go")
    assert y.tolist() == [8, 16]
    assert [x.tolist() for x in q] == [[2, 4], [4, 8], [8, 16]]
    assert z.tolist() == [[-2, -4], [-4, -8], [-8, -16]]
    assert n.tolist() == [0, 1, 4]
    assert n.dtype == np.int64


def test_loop_ends_with_its_condition() -> None:
    """The step whose condition comes out false still counts."""
    assert loop("_, _")[0].tolist() == [64, 128]
    assert loop("_, %go", stop=np.array(0, np.float32))[0].tolist() == [2, 4]


@pytest.mark.parametrize("never", [{"m": np.array(0)}, {"m": np.array([-5])}, {"go": np.array(False)}])
def test_a_loop_that_never_runs_returns_its_first_state_and_nothing_stacked(never: dict[str, Any]) -> None:
    y, q, z, n = loop("%m, %go", **never)
    assert (y.tolist(), q, z.shape, n.shape) == ([1, 2], [], (0, 2), (0,))
    assert (z.dtype, n.dtype) == (np.float32, np.int64)


def test_results_that_change_their_shape_cannot_be_stacked() -> None:
    text = """
    graph g(%m: i64, %x: f32["n"]) opset [""=21] {
      %y: f32["n"], %z: f32["k","n"] = Loop<V=[f32], V_out=[f32]>(%m, _, %x) {body=graph body(%i: i64, %c: bool, %x: f32["n"]) {
          %y: f32["n"] = Concat<T=f32>(%x, %x) {axis=0}
          %z: f32["n"] = Neg<T=f32>(%y)
          return %c, %y, %z
        }}
      return %y, %z
    }
    """
    assert run(text, m=np.array(1), x=f32(1))[1].tolist() == [[-1, -1]]
    with pytest.raises(KernelError, match=r"'z' of its graph has another shape.*Received: \['\[2\]', '\[4\]'\]"):
        run(text, m=np.array(2), x=f32(1))


def scan(version: int, operands: str, attributes: str) -> str:
    """Running sums of x, from a first value on, and the product of each element with an outer value."""
    first = "_, " if version < 9 else ""
    return f"""
    graph g(%s: f32, %x: f32, %k: f32[1], %lens: i64[2]) opset [""={version}] {{
      %y: f32, %z: f32 = Scan<V=[f32, f32], V_out=[f32]>({operands.format(first)}, %k) {{num_scan_inputs=1, {attributes}
        body=graph body(%s: f32, %e: f32, %k: f32[1]) capture ["k"] {{
          %y: f32 = Add<T=f32>(%s, %e)
          %p: f32 = Mul<T=f32>(%y, %k)
          return %y, %p
        }}}}
      return %y, %z
    }}
    """


LENS = np.array([3, 1])


@pytest.mark.parametrize(
    ("attributes", "sums"),
    [
        ("", [[10, 30, 60], [40, 50, 60]]),
        ("scan_input_directions=[1],", [[30, 50, 60], [40, 50, 60]]),
        ("scan_output_directions=[1],", [[60, 30, 10], [60, 50, 40]]),
    ],
)
def test_scan_walks_both_ways(attributes: str, sums: list[list[float]]) -> None:
    """Axis 1 is walked, and stacked again."""
    text = scan(11, "%s, %x", f"scan_input_axes=[1], scan_output_axes=[-1], {attributes}")
    y, z = run(text, s=f32(0, 3), x=np.array([[1, 2, 3], [1, 1, 1]], np.float32), k=f32(10), lens=LENS)
    assert y.tolist() == [6, 6]
    assert z.tolist() == sums


def test_scan_of_no_steps() -> None:
    y, z = run(scan(9, "%s, %x", ""), s=f32(1, 2), x=np.zeros((0, 2), np.float32), k=f32(1), lens=LENS)
    assert y.tolist() == [1, 2]
    assert z.shape[0] == 0


@pytest.mark.parametrize(
    ("operands", "attributes", "last", "wanted"),
    [
        ("_, %s, %x", "", [6, 16], [[1, 3, 6], [11, 13, 16]]),
        ("%lens, %s, %x", "", [6, 11], [[1, 3, 6], [11, 0, 0]]),
        ("%lens, %s, %x", "directions=[1],", [6, 11], [[3, 5, 6], [11, 0, 0]]),
    ],
)
def test_the_first_scan_has_a_batch_of_sequences_of_several_lengths(
    operands: str, attributes: str, last: list[float], wanted: list[list[float]]
) -> None:
    x = np.array([[[1], [2], [3]], [[1], [2], [3]]], np.float32)
    y, z = run(scan(8, operands, attributes), s=f32(0, 10)[:, None], x=x, k=f32(1), lens=LENS)
    assert y.tolist() == [[number] for number in last]
    assert z[:, :, 0].tolist() == wanted


def test_sequence_map_zips_sequences_and_repeats_tensors() -> None:
    text = """
    graph g(%q: f32[1] in seq, %r: f32[1] in seq, %t: f32[1], %k: f32[1]) opset [""=21] {
      %y: f32[1] in seq, %z: f32[1] in seq = SequenceMap<S=f32, V=[f32, f32]>(%q, %r, %t, %k) {
        body=graph body(%a: f32[1], %b: f32[1], %c: f32[1], %k: f32[1]) capture ["k"] {
          %ab: f32[1] = Mul<T=f32>(%a, %b)
          %y: f32[1] = Add<T=f32>(%ab, %c)
          %z: f32[1] = Sub<T=f32>(%b, %k)
          return %y, %z
        }}
      return %y, %z
    }
    """
    feeds = {"q": [f32(1), f32(2)], "r": [f32(10), f32(20)], "t": f32(5), "k": f32(1)}
    y, z = run(text, **feeds)
    assert [x.tolist() for x in y] == [[15], [45]]
    assert [x.tolist() for x in z] == [[9], [19]]
    with pytest.raises(KernelError, match=r"same length\. Received: lengths \[2, 1\]"):
        run(text, **{**feeds, "r": [f32(10)]})
