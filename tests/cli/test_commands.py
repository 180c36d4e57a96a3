"""The commands that look: show, dump, explain, diff, lists, verify, doctor, demo."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import ampgraph as ag
from ampgraph.cli import program

from .conftest import MODEL, Run


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


def test_show_looks_for_a_node_in_functions(run: Run, calling: Path) -> None:
    assert run("show", calling, "--node", "b").stdout.startswith("// node in function 'square'\n  %b: f32 = tf.MatMul")
    assert json.loads(run("show", calling, "--node", "b", "--json").stdout)["function"] == "square"
    calling.write_text(calling.read_text().replace("%b", "%y"))
    result = run("show", calling, "--node", "y")
    assert "PartitionedCall" in result.stdout.splitlines()[1]
    assert result.stderr == "note: there is a node 'y' in function 'square' too: choose with --function\n"


def test_show_counts(run: Run, model: Path, calling: Path) -> None:
    text = run("show", model, "--stats").stdout
    assert text.startswith("7 nodes, 2 inputs, 1 output\n")
    assert "MatMul           2\n" in text
    assert run("show", calling, "--stats").stdout.startswith("2 nodes and 1 in 1 function, 1 input, 1 output\n")
    assert run("show", calling, "--stats", "--function", "square").stdout.startswith("1 node, 1 input, 1 output\n")
    data = json.loads(run("show", calling, "--json").stdout)
    assert (data["nodes"], data["functions"], data["nodes_in_functions"], data["inputs"]) == (2, 1, 1, ["x"])
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


def test_dump_a_part(run: Run, model: Path, calling: Path) -> None:
    near = run("dump", model, "--around", "logits", "--depth", "1").stdout
    graph = ag.parse_graph(near)
    ag.verify(graph)
    assert [node.name for node in graph.nodes] == ["w", "relu", "logits", "exp"]
    assert [value.name for value in graph.inputs] == ["h"]
    assert graph.output_names == ["w", "exp"]
    assert "tf.Neg" not in run("dump", model, "--around", "h", "--depth", "2").stdout  # waits for relu, one edge from h
    assert run("dump", model, "--around", "exp", "--depth", "99").stdout.count("\n") == MODEL.count("\n") - 1
    assert [node.name for node in ag.parse_graph(run("dump", model, "--around", "y", "--depth", "0").stdout).nodes] == ["y"]
    assert run("dump", calling, "--function", "square").stdout.startswith("function square(%a: f32) {")
    picture = run("dump", calling, "--around", "b", "--format", "dot", "--rewritten").stdout
    assert "MatMul" in picture
    assert "PartitionedCall" not in picture
    assert "Did you mean 'logits'?" in run("dump", model, "--around", "logit", code=2).stderr
    assert "need one of the formats text, dot, svg" in run("dump", model, "--around", "y", "--format", "pb", code=2).stderr


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


def test_explain_several_nodes(run: Run, model: Path) -> None:
    lines = run("explain", model, "exp", "h").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["h", "exp"]
    lines = run("explain", model, "y", "--match", ".*o.*|e.p").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["logits", "exp", "y"]
    assert "A part of a name needs .*" in run("explain", model, "--match", "logit", code=2).stderr
    assert "regular expression" in run("explain", model, "--match", "(", code=2).stderr
    assert "Did you mean 'relu'?" in run("explain", model, "h", "rleu", code=2).stderr


def test_explain_says_the_same_reason_once(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "model.txt"
    path.write_text(
        "graph g(%x: f32, %i: i32) {\n  %a: f32, %b: i32, %c: f32, %d: f32 = "
        "tf.IdentityN<T=[f32, i32, f32, f32]>(%x, %i, %x, %x)\n  return %a\n}\n"
    )
    node = ag.load(path).outputs[0].producer.name
    (line,) = run("explain", path, node).stdout.splitlines()
    assert line.startswith(f"{node} (IdentityN) T[0], T[2..3]: float32: ")
    assert len(json.loads(run("explain", path, node, "--json").stdout)) == 3


def test_explain_names_the_function_in_the_table(run: Run, calling: Path) -> None:
    rows = run("explain", calling).stdout.splitlines()
    assert any(row.startswith("MatMul") and "in function 'square': b: " in row for row in rows)
    assert any(row.startswith("Placeholder") and "  x: " in row for row in rows)


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
    from tests.graph.formats.test_saved_model import two_meta_graphs

    two = two_meta_graphs(tmp_path / "two")
    assert "Tags must choose" in run("diff", two, two, code=2).stderr
    run("diff", two, two, "--tags", "train,serve")
    assert "Only one" in run("diff", "-", "-", code=2).stderr


def test_lists_say_where_an_op_stands(run: Run) -> None:
    result = run("lists", "Conv2D", "Exp", "Sofmax", "--edit", "Exp=gray", "--edit", "gray:-Conv2D")
    rows = [line.split(maxsplit=2) for line in result.stdout.splitlines()]
    assert [row[:2] for row in rows] == [["op", "list"], ["Conv2D", "AllowList"], ["Exp", "GrayList"], ["Sofmax", "-"]]
    assert rows[2][2] == "by your change 'Exp=gray'"
    assert "mode cuda_fp16 for gpu:8.0,cuda=12.5,cudnn=9.3" in result.stderr
    assert "edit 'gray:-Conv2D' changes nothing" in result.stderr
    assert "Exp=gray" not in result.stderr
    assert "'Sofmax' is not a TensorFlow op. Did you mean 'Softmax'?" in result.stderr


def test_lists_know_ops_that_are_on_no_list(run: Run) -> None:
    result = run("lists", "Rsqrt", "ImageSummary", "--dtype", "bfloat16")
    assert [line.split()[:2] for line in result.stdout.splitlines()[1:]][1] == ["ImageSummary", "-"]
    assert "on no list" in result.stdout
    assert "not a TensorFlow op" not in result.stderr
    help = run("lists", "--help").stdout
    assert "--deny-op" in help
    assert "--deny-node" not in help
    assert "--keep-io" not in help


def test_policy_prints_what_policy_reads(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    options = ("--dtype", "bfloat16", "--deny-op", "Softmax", "--float-node", "head/.*", "--no-keep-io")
    text = run("policy", *options).stdout
    assert 'dtype = "bfloat16"\n' in text
    assert 'ops = ["Softmax=deny"]\n' in text
    assert "keep_io = false\n" in text
    path.write_text(text)
    assert run("policy", "--policy", path).stdout == text


def test_lists_as_json_follow_the_options(run: Run) -> None:
    data = json.loads(run("lists", "--json", "--preset", "grappler", "--target", "cpu", "--dtype", "bfloat16").stdout)
    assert data["mode"] == "onednn_bf16"
    ops = {row["op"]: row["list"] for row in data["ops"]}
    assert ops["MatMul"] == "AllowList"
    assert len(ops) > 100
    data = json.loads(run("lists", "--json", "Exp", "--deny-op", "Exp").stdout)
    assert data["ineffective"] == ["Exp=deny"]
    assert "edit 'Exp=deny' changes nothing" in run("lists", "--deny-op", "Exp").stderr


def test_verify(run: Run, model: Path, calling: Path, tmp_path: Path) -> None:
    assert run("verify", model).stdout == f"{model} is valid: 7 nodes\n"
    assert run("verify", calling).stdout == f"{calling} is valid: 2 nodes and 1 in 1 function\n"
    bad = tmp_path / "bad.txt"
    bad.write_text("graph g(%x: i32) {\n" + "".join(f"  %y{i}: f32 = tf.Relu<T=f32>(%x)\n" for i in range(30)) + "}\n")
    lines = run("verify", bad, code=1).stdout.splitlines()
    assert len(lines) == 30
    assert json.loads(run("verify", bad, "--json", code=1).stdout) == {
        "valid": False,
        "nodes": 30,
        "functions": 0,
        "nodes_in_functions": 0,
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


def test_demo(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "demo.onnx"
    before, after, summary, why = run("demo", "-o", path).stdout.split("// ")[1:]
    assert "f16" not in before
    assert re.search(r'%"attention/mixed": f16\S* = MatMul<T=f16>\(', after)
    assert "stored in float16" in summary
    assert re.search(r"^norm1/square \(Pow\) T1?: float32: ", why, re.MULTILINE)
    assert "stem (Conv) T: float16: Conv is on the AllowList" in why
    import onnx
    from onnx.reference import ReferenceEvaluator

    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    feeds = {
        "image": np.random.default_rng(0).standard_normal((1, 3, 32, 32), np.float32),
        "words": np.arange(16)[None],
        "mask": np.array([[1] * 10 + [0] * 6]),
    }
    scores = np.asarray(next(iter(ReferenceEvaluator(model).run(None, feeds))))
    assert scores.sum() == pytest.approx(1, abs=1e-5)
    assert scores.std() > 0.01  # the weights are such that something comes out


def test_every_command_has_help(run: Run) -> None:
    for name in program.commands:
        assert f"Usage: ampgraph {name}" in run(name, "--help").stdout.replace("Usage: program", "Usage: ampgraph")
    presets = run("rewrite", "--help").stdout
    from ampgraph.rewrite.policy import PRESETS

    assert all(preset in "".join(presets.split()) for preset in PRESETS)  # lines may break at hyphens


def test_formats_are_those_of_files() -> None:
    from ampgraph.cli.streams import FORMATS as taken
    from ampgraph.graph.formats.files import FORMATS

    assert taken == FORMATS


def test_version(run: Run) -> None:
    assert run("--version").stdout == f"ampgraph, version {ag.__version__}\n"
