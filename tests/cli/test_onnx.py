"""The command line on ONNX models: summaries, reports, options, data files."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ampgraph as ag
from ampgraph.cli.demo_model import demo_model

from .conftest import Run

DATA = Path(__file__).parent.parent / "data" / "onnx"
UNNAMED, IF = DATA / "unnamed_nodes.onnx", DATA / "if_outer_scope.onnx"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """``x`` -> Conv -> Relu -> Conv -> ``features``; -> Exp -> Neg -> ``y``. Large enough for a data file."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal((8, 8, 3, 3), np.float32), f"w{i}") for i in (1, 2)]
    shape = [1, 8, 6, 6]
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w1"], ["a"], "conv1", pads=[1] * 4),
            helper.make_node("Relu", ["a"], ["b"], "relu"),
            helper.make_node("Conv", ["b", "w2"], ["features"], pads=[1] * 4),  # it has no name
            helper.make_node("Exp", ["features"], ["e"], "exp"),
            helper.make_node("Neg", ["e"], ["y"], "neg"),
        ],
        "model",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("features", "y")],
        weights,
    )
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=9), path)
    return path


def weight_types(path: Path) -> set[int]:
    return {tensor.data_type for tensor in onnx.load(path, load_external_data=False).graph.initializer}


def io_types(path: Path) -> dict[str, int]:
    graph = onnx.load(path).graph
    return {value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)}


def low_nodes(path: Path, **settings: Any) -> set[str]:
    """Return the labels of the nodes with a result of float16 or bfloat16, casts left out."""
    nodes = ag.load(path).nodes
    low = ("float16", "bfloat16")
    return {node.label for node in nodes if node.op_type not in ("Cast", "Initializer") and str(node.outputs[0].dtype) in low}


def test_the_summary_speaks_of_nodes_constants_files_and_what_stays(run: Run, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    text = run("rewrite", model, "-o", out).stdout
    onnx.checker.check_model(onnx.load(out), full_check=True)
    casts = sum(node.op_type == "Cast" for node in onnx.load(out).graph.node)
    assert f"\nnodes     5: 3 in float16, 2 in float32; {casts} Casts added\n" in text
    assert "\nconstants 2 stored in float16\n" in text
    assert weight_types(out) == {TensorProto.FLOAT16}
    before, after = model.stat().st_size, out.stat().st_size
    assert f"\nsize      {before / 1024:.1f} KiB -> {after / 1024:.1f} KiB ({after / before:.0%})\n" in text
    assert "\nfloat32   the largest region is 2 nodes at 'exp' (Exp), held by 'exp' (Exp): Exp is on the DenyList" in text
    assert "Initializer" not in text
    assert re.search(r"^Conv +2 +0$", text, re.MULTILINE)
    assert text.endswith(f"written   {out}\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", "out.onnx"]


def test_the_report_has_all_of_it(run: Run, model: Path, tmp_path: Path) -> None:
    out, report = tmp_path / "out.onnx", tmp_path / "report.json"
    run("rewrite", model, "-o", out, "--report", report)
    data = json.loads(report.read_text())
    assert (data["nodes"], data["low"], data["float"], data["constants_stored"]) == (5, 3, 2, 2)
    assert data["size"] == {"before": model.stat().st_size, "after": out.stat().st_size}
    assert data["hazards"] == []
    assert data["float_region"]["nodes"] == data["float_region"]["held"] == 2
    assert data["float_region"]["first"] == "exp"
    reasons = {item["node"]: item["why"] for item in data["bodies"][0]["decisions"]}
    assert reasons["features"].startswith("Conv is on the AllowList")
    assert json.loads(run("rewrite", model, "--dry-run", "--json").stdout)["size"] is None
    assert "\nsize " not in run("rewrite", model, "--dry-run").stdout


@pytest.mark.parametrize(
    ("options", "low"),
    [
        pytest.param([], {"conv1", "relu", "features"}, id="default"),
        pytest.param(["--dtype", "bf16"], {"conv1", "relu", "features"}, id="bf16"),
        pytest.param(["--target", "cpu"], {"conv1", "relu", "features"}, id="cpu"),
        pytest.param(["--deny-op", "Conv"], set(), id="deny-op"),
        pytest.param(["--deny-node", "feat.*", "--float-node", "relu"], {"conv1"}, id="deny-node-without-name"),
        pytest.param(["--allow-op", "Exp"], {"conv1", "relu", "features", "exp", "neg"}, id="allow-op"),
        pytest.param(["--target", "gpu:6.1"], set(), id="old-gpu"),
        pytest.param(["--preset", "tensorrt"], {"conv1", "relu", "features"}, id="tensorrt"),
        pytest.param(["--preset", "onnxruntime"], {"conv1", "relu", "features"}, id="onnxruntime"),
        pytest.param(["--preset", "torch-autocast"], {"conv1", "relu", "features"}, id="torch-autocast"),
        pytest.param(["--preset", "grappler"], {"conv1", "relu", "features"}, id="grappler"),
        pytest.param(["--preset", "onnxruntime", "--dtype", "bf16", "--edit", "Relu=none"], {"conv1", "features"}, id="edit"),
    ],
)
def test_options_reach_the_model(run: Run, model: Path, tmp_path: Path, options: list[str], low: set[str]) -> None:
    out = tmp_path / "out.onnx"
    run("rewrite", model, "-o", out, *options)
    renamed = {"features_float16": "features", "features_bfloat16": "features"}  # the output keeps its name, for a cast
    assert {renamed.get(name, name) for name in low_nodes(out)} == low
    assert set(io_types(out).values()) == {TensorProto.FLOAT}
    onnx.checker.check_model(onnx.load(out), full_check=True)


def test_inputs_and_outputs_keep_their_types_by_name(run: Run, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    half, single = TensorProto.FLOAT16, TensorProto.FLOAT
    run("rewrite", model, "-o", out, "--no-keep-io")
    assert io_types(out) == {"x": half, "features": half, "y": single}
    run("rewrite", model, "-o", out, "--keep-io-name", "features", "--keep-io-name", "y")
    assert io_types(out) == {"x": half, "features": single, "y": single}
    text = run("rewrite", model, "-o", out, "--keep-io-name", "feature", code=2).stderr
    assert "error: 'feature' in keep_io is no input or output of this graph. Did you mean 'features'?" in text
    assert "leave out --keep-io" in run("rewrite", model, "-o", out, "--keep-io-name", "y", "--keep-io", code=2).stderr
    assert 'keep_io = ["y", "x"]\n' in run("policy", "--keep-io-name", "y", "--keep-io-name", "x").stdout


def test_weights_in_a_data_file(run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    out, data = folder / "out.onnx", folder / "out.onnx.data"
    text = run("rewrite", model, "-o", out, "--external-data").stdout
    onnx.checker.check_model(str(out), full_check=True)
    assert sorted(path.name for path in folder.iterdir()) == ["out.onnx", "out.onnx.data"]
    assert data.stat().st_size >= 2 * 8 * 8 * 3 * 3 * 2
    total = out.stat().st_size + data.stat().st_size
    assert f"-> {total / 1024:.1f} KiB (" in text
    again = json.loads(run("rewrite", out, "-o", tmp_path / "again.onnx", "--json").stdout)
    assert again["size"]["before"] == total  # what was read counts the data file too
    run("rewrite", model, "-o", out)
    assert [path.name for path in folder.iterdir()] == ["out.onnx"]
    # Without the option only a model that is too large gets one.
    monkeypatch.setattr("ampgraph.graph.formats.onnx_save.MAX_INSIDE", 1000)
    run("rewrite", model, "-o", out)
    assert data.exists()


def test_data_files_are_for_onnx_files(run: Run, model: Path, tmp_path: Path) -> None:
    assert "two files" in run("rewrite", model, "-o", "-", "--external-data", code=2).stderr
    assert "is for ONNX models" in run("rewrite", model, "-o", tmp_path / "out.json", "--external-data", code=2).stderr
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


def test_streams_and_formats(run: Run, model: Path, tmp_path: Path) -> None:
    run("rewrite", model, "-o", tmp_path / "out.onnx")
    rewritten = (tmp_path / "out.onnx").read_bytes()
    assert run("rewrite", "-", "-o", "-", "--to", "onnx", input=model.read_bytes()).stdout_bytes == rewritten
    for arguments in (["--format", "onnx"], ["--format", "onnx", "-o", "-"]):
        assert run("dump", model, "--rewritten", *arguments).stdout_bytes == rewritten
    dumped = onnx.load_from_string(run("dump", model, "--format", "onnx").stdout_bytes)
    onnx.checker.check_model(dumped, full_check=True)
    assert [node.op_type for node in dumped.graph.node] == ["Conv", "Relu", "Conv", "Exp", "Neg"]
    run("dump", model, "-o", tmp_path / "dumped.onnx")
    run("diff", model, tmp_path / "dumped.onnx")
    run("dump", model, "-o", tmp_path / "model.json")
    run("rewrite", tmp_path / "model.json", "-o", tmp_path / "from_json.onnx")
    run("diff", tmp_path / "out.onnx", tmp_path / "from_json.onnx")


def test_nodes_without_a_name_go_by_their_first_result(run: Run) -> None:
    assert run("show", UNNAMED, "--node", "d").stdout.splitlines()[1] == "  %d: f32 = MatMul<T=f32>(%b, %V)"
    assert run("explain", UNNAMED, "a").stdout.startswith("a (MatMul) T: float16: MatMul is on the AllowList")
    explained = run("explain", UNNAMED, "--match", "[ad]").stdout.splitlines()
    assert [line.split()[0] for line in explained] == ["a", "d"]
    assert "Did you mean" in run("explain", UNNAMED, "dd", code=2).stderr
    assert "%d: f32 = MatMul" in run("dump", UNNAMED, "--around", "d", "--depth", "1").stdout
    report = ag.auto_mixed_precision(ag.load(UNNAMED)).report
    assert [item.op_type for item in report.explain("d")] == ["MatMul"]


def test_nodes_in_bodies_are_found(run: Run) -> None:
    assert run("show", IF, "--node", "Exp_e0").stdout.splitlines()[1] == '  %e0: f32 = Exp<T=f32>(%a) name="Exp_e0"'
    # The If before it takes several lines of the text form.
    assert run("show", IF, "--node", "Add_y").stdout.splitlines()[1] == '  %y: f32[2,4] = Add<T=f32>(%z, %a) name="Add_y"'
    assert run("explain", IF, "MatMul_t0").stdout.startswith("MatMul_t0 (MatMul) T: float16")


def test_counts_leave_weights_out(run: Run, model: Path) -> None:
    assert run("verify", model).stdout == f"{model} is valid: 5 nodes\n"
    assert run("verify", IF).stdout == f"{IF} is valid: 3 nodes and 4 in 2 bodies\n"
    text = run("show", model, "--stats").stdout
    assert text.startswith("5 nodes, 1 input, 2 outputs\n")
    assert "Initializer" not in text
    data = json.loads(run("show", IF, "--json").stdout)
    assert (data["nodes"], data["nodes_in_functions"], data["bodies"], data["initializers"]) == (3, 4, 2, 3)
    assert data["inputs"] == ["x", "cond"]


def test_lists_for_onnx(run: Run) -> None:
    rows = run("lists", "--onnx", "Gemm", "LSTM", "com.microsoft:Gelu", "Conv2D")
    assert [line.split()[:2] for line in rows.stdout.splitlines()[1:]] == [
        ["Gemm", "AllowList"],
        ["LSTM", "-"],
        ["com.microsoft:Gelu", "GrayList"],
        ["Conv2D", "-"],
    ]
    assert "'Conv2D' is not named by the lists for ONNX models. Did you mean 'Conv'?" in rows.stderr
    assert "mode onnx_tensorrt_bfloat16" in run("lists", "--onnx", "LSTM", "--preset", "tensorrt", "--dtype", "bf16").stderr


def test_the_demo_model_shrinks_and_keeps_its_results(tmp_path: Path) -> None:
    from onnx.reference import ReferenceEvaluator

    graph = demo_model(seed=1)
    feeds = {
        "image": np.random.default_rng(1).standard_normal((1, 3, 32, 32), np.float32),
        "words": np.arange(16)[None],
        "mask": np.ones((1, 16), np.int64),
    }
    results = []
    for model in (graph, ag.auto_mixed_precision(graph).graph):
        ag.save(model, tmp_path / "model.onnx")
        results += [np.asarray(result) for result in ReferenceEvaluator(str(tmp_path / "model.onnx")).run(None, feeds)]
    assert (tmp_path / "model.onnx").stat().st_size < 320_000
    assert results[0].dtype == results[1].dtype == np.float32
    np.testing.assert_allclose(results[1], results[0], rtol=5e-2)
    assert str(demo_model(seed=1)) == str(graph) != str(demo_model(seed=2))


def test_options_without_effect_are_said(run: Run, tmp_path: Path) -> None:
    tensors = [numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", ends[:1], ends[1:], tensors)
    source = tmp_path / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), source)
    result = run("rewrite", source, "-o", tmp_path / "out.onnx", "--external-data")
    assert "note: --external-data had no effect: the model has no initializer of 1 KiB or more." in result.stderr
    result = run("rewrite", source, "-o", tmp_path / "out.txt")
    assert "out.txt names large constants only by a hash; .json holds them." in result.stderr
    result = run("rewrite", source, "-o", tmp_path / "no.onnx", "--keep-io-name", "z", code=2)
    assert "'z' in keep_io is no input or output of this graph" in result.stderr
    assert not (tmp_path / "no.onnx").exists()
    result = run("rewrite", tmp_path, "-o", tmp_path / "all", "--deny-op", "Cnv")
    assert "note: list edit 'Cnv=deny' names an op that nobody defines. Did you mean 'Conv'?" in result.stderr


def test_sizes_that_were_taken_as_1_are_said(run: Run, tmp_path: Path) -> None:
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, "height", 8])]
    ends.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    graph = helper.make_graph([helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2])], "g", ends[:1], ends[1:])
    source = tmp_path / "pool.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), source)
    result = run("run", source, "--random", code=1)
    assert "Dimensions height of made-up inputs were taken as 1; --size NAME=N or --input say more." in result.stderr
    run("run", source, "--random", "--size", "height=4")
