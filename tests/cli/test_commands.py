"""The commands that look: show, dump, explain, diff, lists, verify, doctor, demo."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import ampgraph as ag
from ampgraph.cli import program

from .conftest import Run


@pytest.fixture
def calling(tmp_path: Path) -> Path:
    """A graph that calls a function with a matrix product."""
    path = tmp_path / "calling.txt"
    path.write_text(
        "graph calling() {\n"
        "  %x: f32[4,4] = tf.Placeholder<dtype=f32>() {shape=shape[4,4]}\n"
        "  %y: f32[4,4] = tf.PartitionedCall<Tin=[f32], Tout=[f32]>(%x) {f=@square}\n"
        "  return %y\n"
        "}\n"
        "function square(%a: f32) {\n"
        "  %b: f32 = tf.MatMul<T=f32>(%a, %a)\n"
        "  return b=%b\n"
        "}\n"
    )
    return path


def test_show_prints_the_text_form(run: Run, model: Path) -> None:
    assert run("show", model).stdout == f"{ag.load(model)}\n"


def test_show_a_node_with_its_neighbours(run: Run, model: Path) -> None:
    assert run("show", model, "--node", "relu").stdout.splitlines() == [
        "// node",
        "  %relu: f32 = tf.Relu<T=f32>(%h)",
        "// reads",
        "  %h: f32 = tf.MatMul<T=f32>(%x, %w)",
        "// read by",
        "  %logits: f32 = tf.MatMul<T=f32>(%relu, %w)",
        "// waited for by",
        '  %y: f32 = tf.Neg<T=f32>(%exp) control=["relu"]',
    ]
    data = json.loads(run("show", model, "--node", "y", "--json").stdout)
    assert data["waits for"] == ["%relu: f32 = tf.Relu<T=f32>(%h)"]
    assert data["read by"] == []
    assert "Did you mean 'relu'?" in run("show", model, "--node", "rlu", code=2).stderr
    assert "exclude each other" in run("show", model, "--node", "y", "--stats", code=2).stderr


def test_show_a_function(run: Run, calling: Path) -> None:
    assert run("show", calling, "--function", "square").stdout.startswith("function square(%a: f32) {")
    assert "input %a: float32" in run("show", calling, "--function", "square", "--node", "b").stdout
    assert "Did you mean 'square'?" in run("show", calling, "--function", "sqare", code=2).stderr


def test_show_counts(run: Run, model: Path, calling: Path) -> None:
    text = run("show", model, "--stats").stdout
    assert text.startswith("7 nodes, 0 functions, 0 inputs, 1 outputs\n")
    assert "MatMul           2\n" in text
    data = json.loads(run("show", calling, "--json").stdout)
    assert data["ops"] == {"Placeholder": 1, "PartitionedCall": 1, "MatMul": 1}
    assert data["dtypes"] == {"float32": 3}


@pytest.mark.parametrize(
    ("format", "start"),
    [("text", b"graph "), ("json", b"{"), ("dot", b"digraph "), ("pbtxt", b"node {"), ("pb", b"\n")],
)
def test_dump_writes_every_format(run: Run, model: Path, tmp_path: Path, format: str, start: bytes) -> None:
    data = run("dump", model, "--format", format).stdout_bytes
    assert data.startswith(start)
    suffix = "txt" if format == "text" else format
    run("dump", model, "-o", tmp_path / f"out.{suffix}")
    assert (tmp_path / f"out.{suffix}").read_bytes() == data
    if format != "dot":
        run("dump", model, "-o", tmp_path / f"out.{suffix}.gz")
        run("diff", model, tmp_path / f"out.{suffix}.gz")


def test_dump_rewritten(run: Run, model: Path) -> None:
    text = run("dump", model, "--rewritten", "--dtype", "bfloat16").stdout
    assert "%h: bf16[8,4] = tf.MatMul<T=bf16>(" in text
    assert "--dtype: this says how to rewrite" in run("dump", model, "--dtype", "bfloat16", code=2).stderr
    assert "--format" in run("dump", model, "-o", "out.png", code=2).stderr


def test_dump_svg_without_graphviz_says_what_to_install(run: Run, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: None)
    assert "Install Graphviz" in run("dump", model, "--format", "svg", code=1).stderr


@pytest.mark.graphviz
def test_dump_svg(run: Run, model: Path) -> None:
    assert "<svg" in run("dump", model, "--format", "svg").stdout


def test_explain_a_node(run: Run, model: Path) -> None:
    text = run("explain", model, "exp").stdout
    assert text.startswith("exp (Exp) T: float32: Exp is on the DenyList (")
    assert run("explain", model, "h", "--only", "float").stdout == ""
    assert "Did you mean 'relu'?" in run("explain", model, "rleu", code=2).stderr


def test_explain_all_by_op(run: Run, model: Path) -> None:
    lines = run("explain", model).stdout.splitlines()
    assert lines[0].split() == ["op", "dtype", "types", "the", "first", "of", "them,", "and", "why"]
    assert [line.split()[:3] for line in lines[1:]] == [
        ["Exp", "float32", "1"],
        ["MatMul", "float16", "2"],
        ["Neg", "float32", "1"],
        ["Placeholder", "float32", "2"],
        ["Relu", "float16", "1"],
    ]
    assert [line.split()[0] for line in run("explain", model, "--only", "low").stdout.splitlines()[1:]] == ["MatMul", "Relu"]
    data = json.loads(run("explain", model, "--json", "--deny-op", "MatMul").stdout)
    assert {item["node"]: item["dtype"] for item in data} == dict.fromkeys(
        ["x", "w", "h", "relu", "logits", "exp", "y"], "float32"
    )


def test_explain_in_functions(run: Run, calling: Path) -> None:
    data = json.loads(run("explain", calling, "--function", "square", "--json").stdout)
    assert [(item["function"], item["node"], item["dtype"]) for item in data] == [
        ("square", "a", "float32"),
        ("square", "b", "float16"),
    ]
    assert run("explain", calling, "b").stdout.startswith("in function 'square': b (MatMul) T: float16:")
    assert "no node 'x' in function 'square'" in run("explain", calling, "x", "--function", "square", code=2).stderr
    assert "Did you mean 'square'?" in run("explain", calling, "--function", "sqare", code=2).stderr


def test_explain_says_why_nothing_is_rewritten(run: Run, model: Path) -> None:
    for arguments in ([], ["h"]):
        result = run("explain", model, *arguments, "--target", "gpu:6.1")
        assert "compute capability 7.0" in result.stderr


def test_explain_a_node_without_float32(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "model.txt"
    path.write_text("graph g() {\n  %x: i32 = tf.Placeholder<dtype=i32>()\n  return %x\n}\n")
    result = run("explain", path, "x")
    assert (result.stdout, result.stderr) == ("", "note: node 'x' has no type to decide about: none is float32\n")


def test_diff_exits_as_diff_does(run: Run, model: Path, tmp_path: Path) -> None:
    run("rewrite", model, "-o", tmp_path / "out.pb")
    assert run("diff", model, model).stdout == ""
    lines = run("diff", model, tmp_path / "out.pb", code=1).stdout.splitlines()
    assert "~ h: T f32 -> f16" in lines
    assert json.loads(run("diff", model, tmp_path / "out.pb", "--json", code=1).stdout) == lines
    assert run("diff", "-", tmp_path / "out.pb", code=1, input=model.read_bytes()).stdout.splitlines() == lines
    assert "cannot be read" in run("diff", model, tmp_path / "missing.pb", code=2).stderr
    assert "Only one" in run("diff", "-", "-", code=2).stderr


def test_lists_say_where_an_op_stands(run: Run) -> None:
    result = run("lists", "Conv2D", "Exp", "Sofmax", "--edit", "Exp=gray", "--edit", "gray:-Conv2D")
    rows = [line.split(maxsplit=2) for line in result.stdout.splitlines()]
    assert [row[:2] for row in rows] == [["op", "list"], ["Conv2D", "AllowList"], ["Exp", "GrayList"], ["Sofmax", "-"]]
    assert rows[2][2] == "by your change 'Exp=gray'"
    assert "mode cuda_fp16 for gpu:8.0,cuda=12.5,cudnn=9.3" in result.stderr
    assert "edit 'gray:-Conv2D' changes nothing" in result.stderr
    assert "Exp=gray" not in result.stderr
    assert "'Sofmax' is on no list. Did you mean 'Softmax'?" in result.stderr


def test_lists_as_json_follow_the_options(run: Run) -> None:
    data = json.loads(run("lists", "--json", "--preset", "grappler", "--target", "cpu", "--dtype", "bfloat16").stdout)
    assert data["mode"] == "onednn_bf16"
    ops = {row["op"]: row["list"] for row in data["ops"]}
    assert ops["MatMul"] == "AllowList"
    assert len(ops) > 100
    data = json.loads(run("lists", "--json", "Exp", "--deny-op", "Exp").stdout)
    assert data["ineffective"] == ["Exp=deny"]
    assert "edit 'Exp=deny' changes nothing" in run("lists", "--deny-op", "Exp").stderr


def test_verify(run: Run, model: Path, tmp_path: Path) -> None:
    assert run("verify", model).stdout == f"{model} is valid: 7 nodes, 0 functions\n"
    bad = tmp_path / "bad.txt"
    bad.write_text("graph g(%x: i32) {\n" + "".join(f"  %y{i}: f32 = tf.Relu<T=f32>(%x)\n" for i in range(30)) + "}\n")
    lines = run("verify", bad, code=1).stdout.splitlines()
    assert len(lines) == 30
    assert json.loads(run("verify", bad, "--json", code=1).stdout) == {
        "valid": False,
        "nodes": 30,
        "functions": 0,
        "violations": lines,
    }


def test_doctor(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    data = json.loads(run("doctor", "--json").stdout)
    assert data["numpy"]["found"] == metadata.version("numpy")
    assert (data["dot"]["found"] == "absent") == (shutil.which("dot") is None)

    def version(name: str) -> str:
        if name in ("click", "tensorflow", "tensorflow-cpu", "tensorflow-intel"):
            raise metadata.PackageNotFoundError(name)
        return "9.9"

    def broken(*args: object, **kwargs: object) -> None:
        raise subprocess.TimeoutExpired("dot", 1)

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setattr(shutil, "which", lambda program: program)
    monkeypatch.setattr(subprocess, "run", broken)
    result = run("doctor", code=1)
    assert "pip install click" in result.stderr
    found = {line.split()[0]: line.split()[1] for line in result.stdout.splitlines()}
    assert found["click"] == "missing"
    assert (found["numpy"], found["tensorflow"], found["dot"]) == ("9.9", "absent", "absent")


def test_demo(run: Run) -> None:
    before, after, why = run("demo").stdout.split("// ")[1:]
    assert "f16" not in before
    assert "%relu: f16[32,64] = tf.Relu<T=f16>(%h)" in after
    assert "exp (Exp) T: float32: Exp is on the DenyList" in why


def test_every_command_has_help(run: Run) -> None:
    for name in program.commands:
        assert f"Usage: ampgraph {name}" in run(name, "--help").stdout.replace("Usage: program", "Usage: ampgraph")
    presets = run("rewrite", "--help").stdout
    from ampgraph.rewrite.policy import PRESETS

    assert all(preset in presets for preset in PRESETS)


def test_formats_are_those_of_files() -> None:
    from ampgraph.cli.streams import FORMATS as taken
    from ampgraph.graph.formats.files import FORMATS

    assert taken == FORMATS


def test_version(run: Run) -> None:
    assert run("--version").stdout == f"ampgraph, version {ag.__version__}\n"
