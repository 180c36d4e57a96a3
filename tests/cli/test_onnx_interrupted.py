"""Rewriting ONNX models with data files: killed or out of disk at any moment, and models of gigabytes."""

import re
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, checker, helper, numpy_helper

from .conftest import shell

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")

#: Runs the program once for every number that comes in, killed before that step of those that change names in a folder.
KILLED = """
    import os, signal, sys, warnings
    from ampgraph.cli import program
    import ampgraph.graph.formats.onnx, ampgraph.rewrite, onnx, numpy, ml_dtypes  # once for all runs

    def step(function):
        def wrapper(*args, **kwargs):
            global left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)
        return wrapper

    warnings.simplefilter("ignore")
    for line in sys.stdin:
        left = int(line)
        child = os.fork()
        if not child:
            for name in ("rename", "replace", "unlink", "remove", "link"):
                setattr(os, name, step(getattr(os, name)))
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            program(["rewrite", *sys.argv[1:]])
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def write(path: Path, scale: float) -> None:
    """Write ``y = x w1 w2`` with its weights in a data file."""
    weights = [(np.eye(64, dtype=np.float32) * scale * i, f"w{i}") for i in (1, 2)]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w1"], ["h"]), helper.make_node("MatMul", ["h", "w2"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [8, 64])],
        [numpy_helper.from_array(*weight) for weight in weights],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(proto, path, save_as_external_data=True, location=f"{path.name}.data")


def scale_of(path: Path) -> tuple[float, type]:
    """Return the scale with which a model was written, and the dtype of its weights, having checked all of it."""
    checker.check_model(str(path))
    one, two = (numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer)
    np.testing.assert_array_equal(one * 2, two)
    np.testing.assert_array_equal(one, np.eye(64) * one[0, 0])
    return float(one[0, 0]), one.dtype.type


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("same", [False, True], ids=["other-target", "in-place"])
def test_a_killed_rewrite_leaves_a_whole_model(tmp_path: Path, same: bool) -> None:
    """Killed before each renaming and removal: what stands there is the old model or the new one, never half of each."""
    source = tmp_path / "in.onnx"
    target = source if same else tmp_path / "out.onnx"
    seen = set()
    old = (0.5 if same else 0.25, np.float32)
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(source), "-o", str(target), "--external-data"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def run(steps: int) -> int:
            process.stdin.write(f"{steps}\n")  # type: ignore[union-attr]
            return int(process.stdout.readline())  # type: ignore[union-attr]

        for at in range(20):
            write(source, 0.5)
            if not same:
                write(target, 0.25)
            code = run(at)
            if code == 0:
                break
            assert code == -signal.SIGKILL
            found = scale_of(target)
            assert found in (old, (0.5, np.float16))
            seen.add(found)
            known = {"in.onnx", "in.onnx.data", "in.onnx.data.1", "out.onnx", "out.onnx.data", "out.onnx.data.1"}
            strange = set(files(tmp_path)) - known
            assert all(name.startswith(f".{target.name}.ampgraph-") for name in strange), strange
            assert run(1000) == 0
            assert scale_of(target) == (0.5, np.float16)
            assert not [name for name in files(tmp_path) if name.startswith(".")]
            for file in tmp_path.iterdir():
                file.unlink()
        else:
            pytest.fail("there are more steps than expected")
        process.stdin.close()
    assert at > 2
    assert seen == {old, (0.5, np.float16)}


def test_no_room_on_the_disk(tmp_path: Path) -> None:
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    write(source, 0.5)
    write(target, 0.25)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))

    for options in ([], ["--external-data"]):
        command = [sys.executable, "-m", "ampgraph", "rewrite", str(source), "-o", str(target), *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, preexec_fn=limit)
        assert done.returncode == 1
        assert re.fullmatch(r"error: .*out\.onnx.* cannot be written: .*File too large.*\n", done.stderr), done.stderr
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def anonymous(pid: int) -> int:
    """Return the bytes of a process' memory that no file stands behind."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) * 1024 if found else 0


@pytest.fixture
def gigabytes(tmp_path: Path) -> Iterator[Path]:
    """Return a folder that is emptied at once, not when pytest does."""
    yield tmp_path
    shutil.rmtree(tmp_path)


@pytest.mark.nightly
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
@pytest.mark.parametrize("options", [(), ("--external-data",)])
def test_three_gigabytes(gigabytes: Path, options: tuple[str, ...]) -> None:
    tmp_path = gigabytes
    count, size = 12, 8192
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    block = np.random.default_rng(0).standard_normal((size, size), np.float32) / 64
    with (tmp_path / "in.data").open("wb") as file:
        for _ in range(count):
            block.tofile(file)
    del block
    nodes, tensors = [], []
    for i in range(count):
        tensor = add_tensor(tensors, f"w{i}", size, i)
        nodes.append(helper.make_node("MatMul", [f"h{i}", tensor.name], [f"h{i + 1}"]))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size]) for name in ("h0", f"h{count}")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), source)
    command = [sys.executable, "-m", "ampgraph", "rewrite", str(source), "-o", str(target), *options]
    peak = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            peak = max(peak, anonymous(process.pid))
            time.sleep(0.02)
    assert process.returncode == 0
    assert 0 < peak < 1.5e9
    print(f"peak RssAnon {peak / 1e9:.2f} GB")
    checker.check_model(str(target))
    after = onnx.load(target, load_external_data=False).graph.initializer
    assert {tensor.data_type for tensor in after} == {TensorProto.FLOAT16}
    assert sum(path.stat().st_size for path in tmp_path.glob("out.onnx*")) < 0.51 * (tmp_path / "in.data").stat().st_size

    before = {path.name: (path.stat().st_mtime_ns, path.stat().st_size) for path in tmp_path.glob("out.onnx*")}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and not any(part.stat().st_size > 5e8 for part in tmp_path.glob(".out.onnx.ampgraph-*")):
            time.sleep(0.005)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert {path.name: (path.stat().st_mtime_ns, path.stat().st_size) for path in tmp_path.glob("out.onnx*")} == before
    assert list(tmp_path.glob(".out.onnx.ampgraph-*"))
    shell("rewrite", source, "-o", target, *options)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def add_tensor(tensors: list[Any], name: str, size: int, place: int) -> Any:
    """Add a square matrix that lies in a data file."""
    tensor = TensorProto(name=name, dims=[size, size], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    entries = {"location": "in.data", "offset": place * size * size * 4, "length": size * size * 4}
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    tensors.append(tensor)
    return tensor
