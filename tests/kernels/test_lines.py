"""Runs that somebody looks on compute node by node; all others run lines. No bit differs, nor any error."""

import threading
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ampgraph as ag
from ampgraph.graph.dtypes import cast_array
from ampgraph.kernels import lines, run
from ampgraph.kernels.handle import Handle
from ampgraph.kernels.program import Program
from tests.kernels.test_fuse import NUMBERS, chains
from tests.kernels.test_tf_replay import CASES, FILES
from tests.kernels.tf_text import const
from tests.tools.replay_exec import failure

call = Program.__call__


def bits(values: Any) -> Any:
    """Return what can be compared exactly of results or of what variables hold."""
    if isinstance(values, dict):
        return {name: bits(value) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return [bits(value) for value in values]
    if not isinstance(values, np.ndarray):
        return repr(type(values))
    array = values.tolist() if values.dtype == object else values.tobytes()
    return str(values.dtype), values.shape, array


def run_both_ways(program: Program, feeds: Any) -> tuple[dict[str, Any], int]:
    """Return the results of a run that nobody looks on, like those of one that somebody does, and how many lines it has."""
    state = dict(program.state)
    watched, error = attempt(program, feeds, on_value=lambda value, array: None)
    after = bits(program.state)
    program.state.clear()
    program.state.update(state)
    found, same = attempt(program, feeds)
    assert str(same) == str(error)
    assert bits(found) == bits(watched)
    assert bits(program.state) == after
    if same is not None:
        raise same
    return found, sum(line is not None for line in program._plan.lines or ())


def attempt(program: Program, feeds: Any, **hooks: Any) -> tuple[dict[str, Any], ag.KernelError | None]:
    """Return the results of a run, or why there are none."""
    try:
        return call(program, feeds, **hooks), None
    except ag.KernelError as error:
        return {}, error


@settings(max_examples=200)
@given(chains(), st.integers(0, 2**32 - 1))
def test_chains_have_the_same_bits(text: str, seed: int) -> None:
    graph = ag.parse_graph(text)
    rng = np.random.default_rng(seed)
    feeds = {}
    for value in graph.inputs:
        assert value.dtype is not None
        shape = [int(size) for size in value.shape.dims or () if isinstance(size, int)]
        array = np.where(rng.random(shape) < 0.5, rng.choice(np.array(NUMBERS), shape), rng.standard_normal(shape))
        feeds[value.name] = cast_array(array.astype(np.float32), value.dtype)
    with suppress(ag.KernelError):  # shapes that are not broadcast
        run_both_ways(ag.compile(graph), feeds)


@pytest.mark.parametrize("dtype", [None, "float16"])
def test_recorded_graphs_have_the_same_bits(dtype: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    counts = []

    def both_ways(program: Program, feeds: Any) -> dict[str, Any]:
        found, count = run_both_ways(program, feeds)
        counts.append(count)
        return found

    monkeypatch.setattr(Program, "__call__", both_ways)
    for case in CASES:
        if case["kind"] not in ("op/random", "op/stateful"):
            failure(tmp_path, case, dtype)
    assert len(counts) > 100
    assert sum(count > 0 for count in counts) > len(counts) / 2


CHAIN = """
graph g(%x: f32[?,?], %w: f32[?,?]) opset [""=21] {
  %a: f32 = Exp<T=f32>(%x)
  %b: f32 = MatMul<T=f32>(%a, %w)
  %c: f32 = Neg<T=f32>(%b)
  %y: f32 = Add<T=f32>(%c, %x)
  return %y
}
"""


def test_an_error_names_its_node_and_harms_nothing() -> None:
    program = ag.compile(ag.parse_graph(CHAIN))
    good = {"x": np.ones((2, 3), np.float32), "w": np.ones((3, 3), np.float32)}
    expected = call(program, good)["y"].tolist()
    with pytest.raises(ag.KernelError, match=r"Node 'b' \(MatMul\) on \(float32, float32\) failed: ValueError: matmul"):
        run_both_ways(program, {**good, "w": np.ones((2, 2), np.float32)})
    with pytest.raises(ag.KernelError, match=r"Node 'y' .* failed: ValueError: operands could not be broadcast"):
        run_both_ways(program, {**good, "w": np.ones((3, 5), np.float32)})
    assert call(program, good)["y"].tolist() == expected


def test_what_ran_before_an_error_does_not_run_again() -> None:
    body = const("one", 1) + (
        '  %v: resource = tf.VarHandleOp<dtype=i32>() {shape=shape[], shared_name="v"}\n'
        '  tf.AssignAddVariableOp<dtype=i32>(%v, %one) name="add"\n'
        "  %i: i32 = tf.Placeholder<dtype=i32>() {shape=shape[]}\n"
        '  %d: i32 = tf.FloorDiv<T=i32>(%one, %i) control=["add"]\n'
    )
    program = ag.compile(ag.parse_graph(f"graph g() {{\n{body}  return %d\n}}"))
    program.state[Handle("v")] = np.array(0, np.int32)
    program({"i": np.int32(1)})
    with pytest.raises(ag.KernelError, match="integers are not divided by 0"):
        program({"i": np.int32(0)})
    program({"i": np.int32(1)})
    assert [int(value) for value in program.state.values()] == [3]


def test_large_operands_that_die_are_written_over_and_no_others() -> None:
    program = ag.compile(
        ag.parse_graph("""
    graph g(%x: f32[?,?]) opset [""=21] {
      %a: f32 = Exp<T=f32>(%x)
      %b: f32 = Neg<T=f32>(%a)
      %c: f32 = Tanh<T=f32>(%b)
      %d: f32 = Add<T=f32>(%c, %x)
      %e: f32 = Mul<T=f32>(%d, %c)
      return %e
    }
    """)
    )
    x = np.random.default_rng(0).standard_normal((300, 300)).astype(np.float32)
    before = x.copy()
    run_both_ways(program, {"x": x})
    assert np.array_equal(x, before)
    tracemalloc.start()
    try:
        program({"x": x})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 2 * x.nbytes <= peak < 2.5 * x.nbytes  # one for a, b, c, and one for d, e


def test_threads_share_lines() -> None:
    program = ag.compile(ag.parse_graph(CHAIN))
    feeds = [{"x": np.full((2, 2), i / 8, np.float32), "w": np.eye(2, dtype=np.float32) * i} for i in range(4)]
    expected = [bits(call(program, feed)) for feed in feeds]
    wrong = [0] * 4

    def work(i: int) -> None:
        for _ in range(200):
            wrong[i] += bits(call(program, feeds[i])) != expected[i]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [0] * 4


def test_lines_are_for_plans_that_ran_some_times_and_are_not_huge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "HOT", 2)
    program = ag.compile(ag.parse_graph(CHAIN))
    feeds = {"x": np.ones((2, 2), np.float32), "w": np.ones((2, 2), np.float32)}
    for _ in range(3):
        program(feeds, on_node=lambda node, seconds: None)
    for count in range(4):
        assert (program._plan.lines is None) == (count < 3)
        program(feeds)
    assert [line is not None for line in program._plan.lines or ()] == [True, False, False, False]
    monkeypatch.setattr(lines, "_MOST_STEPS", 3)
    assert lines.lines_of(program._plan, np) == [None] * 4
