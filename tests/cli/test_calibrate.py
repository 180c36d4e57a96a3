"""``ampgraph rewrite --calibrate``: data, the bound, the policy for reuse, exit codes."""

import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from tests.rewrite.onnx_text import model as onnx_model
from tests.rewrite.onnx_text import onnx

from .conftest import Run

D = 32
X = np.random.default_rng(0).standard_normal((8, D)).astype(np.float32)
BODY = "h = MatMul(x, w)  r = Relu(h)  u = MatMul(r, w)  a = Add(u, k)  s = Sub(a, k)  m = MatMul(s, w)  y = MatMul(m, w)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A model in which float16 loses what is left of a difference."""
    proto = onnx_model(f"g (float[8,{D}] x) => (float[8,{D}] y) {{ {BODY} }}", weights={"w": (D, D), "k": np.float32(1500)})
    onnx.save(proto, tmp_path / "model.onnx")
    np.savez(tmp_path / "data.npz", x=X)
    return tmp_path / "model.onnx"


def test_the_result_is_within_the_bound_and_the_policy_leads_to_it_without_data(run: Run, path: Path) -> None:
    out, again, policy, report = (path.with_name(name) for name in ("out.onnx", "again.onnx", "policy.toml", "report.json"))
    done = run("rewrite", path, "-o", out, "--calibrate", path.with_name("data.npz"), "--save-policy", policy, "--report", report)
    assert "\nchecked   1 output on the data: within the bound 0.01; the largest error is 0.000" in done.stdout
    assert (
        "\nkept      1 node in float32 because of the data: measured-error 1\n          a (Add): output 'y' would be"
        in done.stdout
    )
    assert done.stderr == ""
    run("rewrite", path, "-o", again, "--policy", policy)
    assert out.read_bytes() == again.read_bytes()
    wide, low = (ag.compile(ag.load(file))({"x": X})["y"] for file in (path, out))
    assert np.abs(low - wide).max() <= 1e-2 * np.abs(wide).max()
    found = json.loads(report.read_text())
    assert found["calibration"]["is_met"]
    assert found["calibration"]["errors_before"]["y"] > 0.1
    assert [item["node"] for item in found["calibration"]["kept"]] == ["a"]
    assert [item["node"] for item in found["hazards"] if item["code"] == "measured-error"] == ["a"]
    explained = run("explain", path, "a", "--policy", policy).stdout
    assert "a (Add) T: float32: output 'y' would be off by" in explained


def test_a_bound_that_is_missed(run: Run, path: Path) -> None:
    out, policy = path.with_name("out.onnx"), path.with_name("policy.toml")
    arguments = ["rewrite", path, "--calibrate", path.with_name("data.npz"), "--rtol", "1e-5", "--save-policy", policy]
    done = run(*arguments, "-o", out, code=1)
    assert "NOT within the bound 1e-05" in done.stdout
    assert done.stderr.startswith("error: The bound 1e-05 is missed: output 'y' is off by 0.000")
    assert done.stderr.endswith("The best that was found was written.\n")
    assert out.exists()
    assert policy.exists()
    assert run(*arguments, "--dry-run", code=1).stderr.endswith("Nothing was written.\n")
    run(*arguments, "-o", out, "--low-share", "0", "--time-limit", "30")


def test_json(run: Run, path: Path) -> None:
    found = json.loads(run("rewrite", path, "--dry-run", "--json", "--calibrate", path.with_name("data.npz")).stdout)
    assert found["calibration"]["missed"] == []
    assert found["calibration"]["low_share"] == 1.0
    assert "ranges" not in found["policy"]


@pytest.mark.parametrize("kind", ["npy", "folder", "repeated"])
def test_other_data(run: Run, path: Path, kind: str, tmp_path: Path) -> None:
    if kind == "npy":
        np.save(tmp_path / "some.npy", X)
        data: list[Any] = ["--calibrate", tmp_path / "some.npy"]
    elif kind == "folder":
        (tmp_path / "data").mkdir()
        np.savez(tmp_path / "data" / "1.npz", x=X)
        np.save(tmp_path / "data" / "2.npy", X * 2)
        data = ["--calibrate", tmp_path / "data"]
    else:
        data = ["--calibrate", tmp_path / "data.npz", "--calibrate", tmp_path / "data.npz"]
    assert "kept      1 node" in run("rewrite", path, "--dry-run", *data).stdout


def test_tensorflow_graphs(run: Run, model: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "tf.npz", x=np.ones((8, 4), np.float32), w=np.full((4, 4), 2, np.float32))
    out, again, policy = (tmp_path / name for name in ("out.pb", "again.pb", "policy.toml"))
    run("rewrite", model, "-o", out, "--calibrate", tmp_path / "tf.npz", "--save-policy", policy)
    run("rewrite", model, "-o", again, "--policy", policy)
    assert out.read_bytes() == again.read_bytes()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": X}, r"has an array 'y', which is no input: x"),
        ({}, r"has no array for input x\. Received: no arrays"),
        ({"x": X[:4]}, r"bad\.npz does not fit: Input 'x' takes shape \[8,32\]\. Received: \[4, 32\]"),
        ({"x": X.astype(np.float64)}, r"Input 'x' takes float32\. Received: float64"),
    ],
)
def test_data_that_does_not_fit(run: Run, path: Path, arrays: dict[str, Any], message: str) -> None:
    data, out = path.with_name("bad.npz"), path.with_name("out.onnx")
    np.savez(data, **arrays)
    done = run("rewrite", path, "-o", out, "--calibrate", data, code=1 if "Input" in message else 2)
    assert re.search(message, done.stderr)
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--save-policy", "p.toml"], 2, "--save-policy is for a calibration, which needs data: --calibrate FILE."),
        (["--rtol", "0.1"], 2, "--rtol is for a calibration"),
        (["--calibrate", "missing.npz"], 1, "missing.npz cannot be read: No such file"),
        (["--calibrate", "data.npz", "--rtol", "0"], 2, "--rtol"),
        (
            ["--calibrate", "data.npz", "--save-policy", "model.onnx"],
            2,
            "so the policy needs another file. Received: --save-policy",
        ),
        (["--calibrate", "data.npz", "--save-policy", "-", "--json"], 2, "Stdout takes one thing only"),
        (["--calibrate", "data.npz", "--save-policy", "data.npz"], 2, "Data is read from 'data.npz'. Received: --save-policy"),
        (["--calibrate", ".", "--report", "./data.npz"], 2, "Data is read from './data.npz'. Received: --report"),
        (["--calibrate", "data.npz", "--save-policy", "a.json", "--report", "./a.json"], 2, "need a file each"),
        (["--calibrate", "data.npz", "--rtol", "1e-6"], 1, "A lower --low-share lets more stay float32. Nothing was written."),
        (["--calibrate", "data.npz", "--rtol", "1e-6", "--time-limit", "0"], 1, "A longer --time-limit lets it search on."),
    ],
)
def test_arguments_that_make_no_sense(
    run: Run, path: Path, arguments: list[str], code: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    assert message in run("rewrite", "model.onnx", "--dry-run", *arguments, code=code).stderr


HEADER = b"\x93NUMPY\x01\x00"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hello", "is no .npy or .npz file."),
        (b"", "is no .npy or .npz file."),
        (pickle.dumps(print), "is no .npy or .npz file."),
        (HEADER + b"\x20\x00" + b"(" * 32, "is no .npy or .npz file of plain numbers:"),
        (HEADER + b"\x20\x00{'descr': print}".ljust(32), "is no .npy or .npz file of plain numbers:"),
        (b"PK\x03\x04 and no more", "is no .npy or .npz file of plain numbers: File is not a zip file"),
    ],
)
def test_files_that_are_no_arrays(run: Run, path: Path, content: bytes, message: str) -> None:
    data = path.with_name("bad.npz")
    data.write_bytes(content)
    assert f"error: {data} {message}" in run("rewrite", path, "--dry-run", "--calibrate", data, code=1).stderr


def test_arrays_of_objects_and_odd_compression(run: Run, path: Path) -> None:
    data = path.with_name("bad.npz")
    np.savez(data, x=np.array([print], dtype=object))
    done = run("rewrite", path, "--dry-run", "--calibrate", data, code=1)
    assert "is no .npy or .npz file of plain numbers: Object arrays cannot be loaded" in done.stderr
    content = path.with_name("data.npz").read_bytes()
    at = content.index(b"PK\x01\x02") + 10
    data.write_bytes(content[:at] + b"\x63\x00" + content[at + 2 :])
    done = run("rewrite", path, "--dry-run", "--calibrate", data, code=1)
    assert "is no .npy or .npz file of plain numbers: That compression method is not supported" in done.stderr


def test_one_array_for_several_inputs_and_a_folder_of_models(run: Run, model: Path, path: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    done = run("rewrite", model, "--dry-run", "--calibrate", tmp_path / "x.npy", code=2)
    assert "is one array, but the graph has inputs x, w: give a .npz file." in done.stderr
    (tmp_path / "empty").mkdir()
    done = run("rewrite", path, "--dry-run", "--calibrate", tmp_path / "empty", code=1)
    assert "holds no file that ends in .npz or .npy." in done.stderr
    done = run("rewrite", tmp_path, "--from", "onnx", "--dry-run", "--calibrate", tmp_path / "data.npz", code=2)
    assert "is a folder of models, and --calibrate is for one." in done.stderr


def test_the_policy_goes_to_stdout(run: Run, path: Path) -> None:
    done = run("rewrite", path, "--dry-run", "--calibrate", path.with_name("data.npz"), "--save-policy", "-")
    assert ag.Policy.from_toml(done.stdout).kept[0][0] == "a"
    assert "checked   1 output" in done.stderr
