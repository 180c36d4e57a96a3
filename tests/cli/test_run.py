"""The commands that run graphs: run, compare."""

import json
from pathlib import Path

import numpy as np
import pytest

from .conftest import Run

TEXT = """
graph g(%x: {t}[n,3], %w: {t}[3,2]) {{
  %p: {t}[n,2] = MatMul<T={t}>(%x, %w) name="product"
  %e: {t}[n,2] = Exp<T={t}>(%p) name="power"
  return %e
}}
"""


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "g.txt"
    path.write_text(TEXT.format(t="f32"))
    return path


@pytest.fixture
def low(tmp_path: Path) -> Path:
    path = tmp_path / "low.txt"
    path.write_text(TEXT.format(t="f16"))
    return path


@pytest.fixture
def arrays(tmp_path: Path) -> tuple[Path, Path]:
    np.save(tmp_path / "x.npy", np.ones((4, 3), np.float32))
    np.save(tmp_path / "weights.npy", np.full((3, 2), 0.5, np.float32))
    return tmp_path / "x.npy", tmp_path / "weights.npy"


def test_run_prints_a_line_for_every_output(run: Run, graph: Path, arrays: tuple[Path, Path]) -> None:
    lines = run("run", graph, "--input", arrays[0], "--input", f"w={arrays[1]}").stdout.splitlines()
    assert lines[0].split() == ["output", "dtype", "shape", "least", "largest", "non-finite"]
    assert lines[1].split() == ["e", "float32", "[4,2]", "4.48169", "4.48169", "0"]
    assert len(lines) == 2


def test_run_writes_the_outputs(run: Run, graph: Path, arrays: tuple[Path, Path], tmp_path: Path) -> None:
    feeds, out = tmp_path / "feeds.npz", tmp_path / "out.npz"
    np.savez(feeds, x=np.load(arrays[0]), w=np.load(arrays[1]))
    run("run", graph, "--input", feeds, "-o", out)
    with np.load(out) as data:
        assert data["e"].shape == (4, 2)
        np.testing.assert_allclose(data["e"], np.exp(1.5), rtol=1e-6)
    assert run("run", graph, "--input", feeds, "-o", "-").stdout_bytes[:2] == b"PK"


def test_run_makes_up_what_is_not_given(run: Run, graph: Path, arrays: tuple[Path, Path]) -> None:
    first, second, third = (
        json.loads(run("run", graph, "--input", arrays[0], "--random", "--seed", seed, "--json").stdout) for seed in (1, 1, 2)
    )
    assert first == second != third
    assert first["outputs"][0]["shape"] == "[4,2]"
    assert json.loads(run("run", graph, "--random", "--size", "n=7", "--json").stdout)["outputs"][0]["shape"] == "[7,2]"


def test_run_profiles(run: Run, graph: Path) -> None:
    data = json.loads(run("run", graph, "--random", "--profile", "--json").stdout)
    assert {row["op"]: row["nodes"] for row in data["profile"]} == {"MatMul": 1, "Exp": 1}
    assert sum(row["share"] for row in data["profile"]) == pytest.approx(1)
    assert data["memory"]["values"] == data["memory"]["least"] == 16  # two results of [1,2], one after the other
    table = run("run", graph, "--random", "--profile").stdout.splitlines()
    assert table[3].split() == ["op", "nodes", "ms", "share"]
    assert table[-3].split()[:2] == ["all", "2"]
    assert table[-1].startswith("memory: 1.6e-05 MB of values, at least 1.6e-05 MB in this order; and ")


def test_run_says_what_does_not_fit(run: Run, graph: Path, arrays: tuple[Path, Path], tmp_path: Path) -> None:
    assert "No file is given for input x, w" in run("run", graph, code=2).stderr
    assert "could be any of the inputs x, w" in run("run", graph, "--input", arrays[1], code=2).stderr
    text = "weights.npy is given for 'v', which is no input: x, w."
    assert text in run("run", graph, "--input", f"v={arrays[1]}", "--random", code=2).stderr
    assert "takes shape [3,2]. Received: [4, 3]" in run("run", graph, "--input", f"w={arrays[0]}", "--random", code=1).stderr
    assert "nothing.npy cannot be read" in run("run", graph, "--input", "nothing.npy", code=1).stderr
    (tmp_path / "text.npy").write_text("no array")
    assert "is no .npy or .npz file" in run("run", graph, "--input", tmp_path / "text.npy", code=1).stderr
    np.save(tmp_path / "x.npy", np.array([{}], object), allow_pickle=True)
    assert "is no .npy or .npz file" in run("run", graph, "--input", tmp_path / "x.npy", code=1).stderr
    assert "--size is NAME=N" in run("run", graph, "--random", "--size", "n", code=2).stderr
    assert (
        "No dimension of the inputs of graph 'g' is called 'm': n."
        in run("run", graph, "--random", "--size", "m=3", code=1).stderr
    )
    assert "cannot be made up: An array of shape" in run("run", graph, "--random", "--size", f"n={10**12}", code=1).stderr
    assert "A device is" in run("run", graph, "--random", "--device", "tpu", code=1).stderr
    assert "-1 is not in the range x>=0" in run("run", graph, "--random", "--seed", "-1", code=2).stderr


def test_run_names_what_an_npz_file_has_too_much(run: Run, graph: Path, arrays: tuple[Path, Path], tmp_path: Path) -> None:
    feeds = tmp_path / "feeds.npz"
    x, w = map(np.load, arrays)
    np.savez(feeds, x=x, W=w)
    for command in (("run", graph), ("compare", graph, graph)):
        message = run(*command, "--input", feeds, code=2).stderr
        assert "feeds.npz is given for 'W', which is no input: x, w." in message
    np.savez(feeds, x=x, w=w)
    assert "Input 'x' is given twice" in run("run", graph, "--input", feeds, "--input", arrays[0], code=2).stderr
    broken = bytearray(feeds.read_bytes())
    broken[200:300] = bytes(100)
    feeds.write_bytes(broken)
    assert "is no .npy or .npz file" in run("run", graph, "--input", feeds, code=1).stderr


def test_outputs_and_tables_do_not_share_stdout(run: Run, graph: Path) -> None:
    for option in ("--json", "--profile"):
        result = run("run", graph, "--random", "-o", "-", option, code=2)
        assert "--json and --profile need another file" in result.stderr
        assert not result.stdout_bytes


def test_run_names_what_has_no_kernel(run: Run, tmp_path: Path) -> None:
    text = "graph g(%x: f32[2,2]) {\n  %y: f32[2,2] = tf.MatrixExponential<T=f32>(%x)\n  return %y\n}\n"
    (tmp_path / "g.txt").write_text(text)
    assert "'tf:MatrixExponential' has no kernel" in run("run", tmp_path / "g.txt", "--random", code=1).stderr


def test_tensorflow_graphs_run(run: Run, model: Path, tmp_path: Path) -> None:
    feeds = tmp_path / "feeds.npz"
    np.savez(feeds, x=np.eye(4, dtype=np.float32), w=np.eye(4, dtype=np.float32))
    assert "float32" in run("run", model, "--input", feeds).stdout
    assert "No file is given for input x, w" in run("run", model, code=2).stderr


def test_compare_says_which_value_is_bad_first(run: Run, graph: Path, low: Path, tmp_path: Path) -> None:
    feeds = tmp_path / "feeds.npz"
    np.savez(feeds, x=np.full((1, 3), 2, np.float32), w=np.full((3, 2), 2, np.float32))
    result = run("compare", graph, low, "--input", feeds, code=1)
    lines = result.stdout.splitlines()
    assert lines[1].split() == ["p", "MatMul", "float32->float16", "0", "0", "0"]
    assert lines[2].split()[-3:] == ["100.0%", "100.0%", "bad"]
    assert lines[-1] == "first bad: 'e', of node 'power' (Exp)"
    data = json.loads(run("compare", graph, low, "--input", feeds, "--json", code=1).stdout)
    assert data["first_bad"] == "e"
    assert [row["overflow"] for row in data["values"]] == [0, 1]


def test_compare_of_what_agrees(run: Run, graph: Path, low: Path) -> None:
    assert "first bad" not in run("compare", graph, low, "--size", "n=3").stdout
    assert "2 values compared; 0 only in A, 0 only in B" in run("compare", graph, graph, "--all").stdout
    assert "first bad: 'p'" in run("compare", graph, low, "--tolerance", "1e-6", code=1).stdout


def test_compare_has_trouble(run: Run, graph: Path, model: Path) -> None:
    run("compare", graph, model, code=2)
    for tolerance in ("nan", "-1"):
        assert "is a number from 0 on" in run("compare", graph, graph, f"--tolerance={tolerance}", code=2).stderr
    assert "Only one of the two" in run("compare", "-", "-", code=2).stderr
    assert "cannot be read" in run("compare", graph, graph, "--input", "x=nothing.npy", code=1).stderr
