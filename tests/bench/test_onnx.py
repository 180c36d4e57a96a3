import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ampgraph as ag
from ampgraph.cli.demo_model import demo_model
from bench.__main__ import main
from bench.onnx import judge_program, summary
from bench.onnx.arrays import NO_ERROR, difference, flat, read_arrays, write_arrays
from bench.onnx.feeds import make_feeds
from bench.onnx.floor import round_heavy
from bench.onnx.flops import FlopCounter
from bench.onnx.judge import Source
from bench.onnx.known import add_peers
from bench.onnx.programs import ask

# Stands in for the Python of a peer: its peer does what the name of the script says.
_STAND_IN = """
import json, os, shutil, signal, sys
question = json.loads(sys.argv[-1])
print(json.dumps({"versions": {"it": "1.0"}}), flush=True)
if not question.get("versions"):
    if WHAT == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    shutil.copy(question["path"], question["out"])
    print(json.dumps({"seconds": [0.5, 0.25, 1.0]}))
"""


def _stand_in(folder: Path, what: str) -> str:
    program, script = folder / f"{what}.py", folder / what
    program.write_text(f"WHAT = {what!r}\n{_STAND_IN}")
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}" "$@"\n')
    script.chmod(0o755)
    return str(script)


def _model(nodes: list[Any], inputs: list[Any], outputs: list[Any], weights: dict[str, Any]) -> Any:
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _value(name: str, shape: list[Any], kind: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def _load(model: Any, folder: Path) -> ag.Graph:
    path = folder / "model.onnx"
    onnx.save(model, path)
    return ag.load(path)


def test_a_folder_beside_peers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = tmp_path / "models"
    models.mkdir()
    ag.save(demo_model(), models / "demo.onnx")
    peers = {"onnxslim": "copy", "onnxruntime": "crash"}
    arguments = ["onnx", str(models), "--repeat", "1"]
    arguments += ["--json", str(tmp_path / "out.json"), "--markdown", str(tmp_path / "out.md")]
    for name, what in peers.items():
        arguments += ["--peer", f"{name}={_stand_in(tmp_path, what)}"]
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert "autocast: left out, there is no --peer autocast=PYTHON" in text

    content = json.loads((tmp_path / "out.json").read_text())
    assert content["peers"]["onnxslim"] == {"it": "1.0"}
    (result,) = content["models"]
    assert (result["name"], result["feeds"]) == ("demo", "made up")
    assert result["nodes"] == len(onnx.load(models / "demo.onnx").graph.node)
    files = {(file["converter"], file["dtype"]): file for file in result["files"]}
    ours = files["ampgraph", "float16"]
    assert ours["wrong"] == []
    assert 1e-5 < ours["honest"]["error"] < 1e-2
    assert 1e-5 < result["floors"]["float16"] < 1e-2
    assert ours["low"] > 0.99
    assert 0.5 <= ours["bytes"][1] / ours["bytes"][0] < 0.55
    assert ours["added_casts"] > 0 == ours["weight_casts"]
    assert ours["seconds"] == pytest.approx([sum(times[0] for times in ours["steps"].values())])
    assert ours["command"] > 0
    copied = files["onnxslim", "float16"]
    assert (copied["honest"]["error"], copied["low"], copied["added_casts"], copied["wrong"]) == (0, 0, 0, [])
    assert files["onnxruntime", "float16"]["wrong"] == ["conversion: died of SIGSEGV"]

    page = (tmp_path / "out.md").read_text()
    assert re.search(r"^\| onnxslim \| float16 \| 1 \| 1 \| 1 \| 1 \|.* 1\.000 \| 0\.0% \| 0\.500 \|$", page, re.MULTILINE)
    assert re.search(r"^\| demo \| \d\.\de-0\d \| conversion \| 0\.0e\+00 \|$", page, re.MULTILINE)
    assert {limit["what"]: limit["ok"] for limit in content["limits"]}["float16: models whose file is not right"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["FOLDER"], r"holds no model that ends in \.onnx"),
        (["FOLDER", "--only", "a", "b"], r"holds no model a\.onnx, b\.onnx"),
        (["FOLDER", "--dtype", "f64"], r"--dtype is float16 or bfloat16\. Received: float64"),
        (["FOLDER", "--peer", "olive=python"], r"--peer is NAME=PYTHON with a name of .*Received: 'olive=python'"),
        (["FOLDER", "--peer", "onnxslim"], r"Received: 'onnxslim'"),
        (["FOLDER", "--repeat", "0"], r"--repeat is at least 1\. Received: 0"),
    ],
)
def test_bad_arguments_end_with_one_line(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["onnx", *(str(tmp_path) if item == "FOLDER" else item for item in arguments)]) == 1
    assert re.search(message, capsys.readouterr().err)


def test_a_judge_without_onnx(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ag.save(demo_model(), tmp_path / "demo.onnx")
    assert main(["onnx", str(tmp_path), "--judge", str(tmp_path / "missing")]) == 1
    assert re.search(r"needs onnx: .*missing cannot be started", capsys.readouterr().err)


def test_differences_of_outputs() -> None:
    right = {"0": np.array([1.0, -4.0, np.inf]), "1": np.array([1, 2, 3, 4])}
    found = difference(right, {"0": np.array([1.5, -4.0, 7.0]), "1": np.array([1, 2, 0, 4])})
    assert found == {"error": 0.125, "finite": True, "integers": 0.25, "shapes": True}
    found = difference(right, {"0": np.array([1.0, np.nan, 0]), "1": right["1"]})
    assert (found["error"], found["finite"], found["shapes"]) == (NO_ERROR, False, True)
    assert not difference(right, {"0": np.zeros(2), "1": right["1"]})["shapes"]
    assert not difference(right, {"0": right["0"]})["shapes"]


def test_arrays_survive_files_whatever_their_names(tmp_path: Path) -> None:
    arrays = flat([np.array([1, 2], np.float32), [np.int64(3), "text"], None, {"key": 0.5}]) | {
        "file": np.zeros(0),
        "a/b:0": np.ones(1),
    }
    write_arrays(tmp_path / "x.npz", arrays)
    found = read_arrays(tmp_path / "x.npz")
    assert {name: array.tolist() for name, array in found.items()} == {
        "0": [1, 2],
        "1.0": 3,
        "1.1": "text",
        "3.keys": ["key"],
        "3.values": [0.5],
        "file": [],
        "a/b:0": [1],
    }


def test_feeds_fit_the_model(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Unsqueeze", ["ids", "one"], ["indices"]),
        helper.make_node("Gather", ["table", "indices"], ["rows"]),
        helper.make_node("Identity", ["image"], ["same"]),
        helper.make_node("Identity", ["attention_mask"], ["ones"]),
    ]
    inputs = [_value("ids", ["batch", "length"], TensorProto.INT64), _value("image", ["batch", 3, "height", None])]
    inputs.append(_value("attention_mask", ["batch", "length"], TensorProto.INT32))
    weights = {"table": np.ones((4, 2), np.float32), "one": np.array([1])}
    graph = _load(_model(nodes, inputs, [_value("rows", [None] * 4), _value("same", [None] * 4)], weights), tmp_path)
    feeds = make_feeds(graph)
    assert {name: (array.shape, str(array.dtype)) for name, array in feeds.items()} == {
        "ids": ((1, 16), "int64"),
        "image": ((1, 3, 320, 320), "float32"),
        "attention_mask": ((1, 16), "int32"),
    }
    assert feeds["ids"].max() == 3
    assert feeds["attention_mask"].all()
    assert 0 <= feeds["image"].min() < 0.1
    assert 0.9 < feeds["image"].max() <= 1
    assert np.abs(np.diff(feeds["image"])).mean() < 0.1  # neighbours of noise from 0 to 1 differ by a third
    assert all((feeds[name] == array).all() for name, array in make_feeds(graph).items())


def test_feeds_cannot_be_made_for_a_sequence(tmp_path: Path) -> None:
    value = helper.make_tensor_sequence_value_info("items", TensorProto.FLOAT, None)
    model = _model([helper.make_node("SequenceLength", ["items"], ["n"])], [value], [_value("n", [], TensorProto.INT64)], {})
    with pytest.raises(ValueError, match=r"Input 'items' is no array .*NAME\.npz"):
        make_feeds(_load(model, tmp_path))


def test_flops_are_counted_by_dtype_and_as_often_as_nodes_run(tmp_path: Path) -> None:
    body = helper.make_graph(
        [helper.make_node("MatMul", ["state", "square"], ["next"]), helper.make_node("Identity", ["go"], ["still"])],
        "body",
        [_value("i", [], TensorProto.INT64), _value("go", [], TensorProto.BOOL), _value("state", [3, 5])],
        [_value("still", [], TensorProto.BOOL), _value("next", [3, 5])],
    )
    nodes = [
        helper.make_node("Conv", ["x", "kernel"], ["y"], pads=[1, 1, 1, 1], group=2, kernel_shape=[3, 3]),
        helper.make_node("ConvTranspose", ["y", "up"], ["z"], strides=[2, 2]),
        helper.make_node("Cast", ["a"], ["half"], to=TensorProto.FLOAT16),
        helper.make_node("Gemm", ["half", "b"], ["c"], transA=1),
        helper.make_node("Loop", ["four", "", "s"], ["t"], body=body),
    ]
    weights = {
        "kernel": np.ones((6, 2, 3, 3), np.float32),
        "up": np.ones((6, 7, 2, 2), np.float32),
        "b": np.ones((8, 2), np.float16),
    }
    weights |= {"square": np.ones((5, 5), np.float32), "four": np.array(4)}
    outputs = [_value("z", [1, 7, 20, 20]), _value("c", [3, 2], TensorProto.FLOAT16), _value("t", [3, 5])]
    graph = _load(
        _model(nodes, [_value("x", [1, 4, 10, 10]), _value("a", [8, 3]), _value("s", [3, 5])], outputs, weights), tmp_path
    )
    feeds = make_feeds(graph)
    counter = FlopCounter(graph, feeds)
    ag.compile(graph)(feeds, on_value=counter.see)
    convolution = 6 * 10 * 10 * 2 * 3 * 3
    transposed = 6 * 10 * 10 * 7 * 2 * 2
    assert counter.by_dtype == {"float32": 2 * (convolution + transposed + 4 * 3 * 5 * 5), "float16": 2 * (3 * 2 * 8)}


@pytest.mark.parametrize(("dtype", "digits"), [("float16", 11), ("bfloat16", 8)])
def test_the_floor_rounds_heavy_ops_only(dtype: str, digits: int, tmp_path: Path) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Add", ["y", "tiny"], ["z"])]
    weights = {"w": np.eye(2, dtype=np.float32), "tiny": np.float32(2**-20)}
    graph = _load(_model(nodes, [_value("x", [1, 2])], [_value("z", [1, 2]), _value("y", [1, 2])], weights), tmp_path)
    round_heavy(graph, ag.find_dtype(dtype))
    fine, coarse = 1 + 2.0 ** (1 - digits), 1 + 2.0 ** (-1 - digits)
    z, y = ag.compile(graph)({"x": np.array([[fine, coarse]], np.float32)}).values()
    assert y.tolist() == [[fine, 1]]
    assert z.tolist() == [[fine + 2**-20, 1 + 2**-20]]


def test_static_facts_of_a_file(tmp_path: Path) -> None:
    x, y = _value("x", [2]), _value("y", [2])
    weights = {"w": np.ones(2, np.float32)}
    source = _model([helper.make_node("Add", ["x", "w"], ["y"])], [x], [y], weights)
    nodes = [
        helper.make_node("Cast", ["w"], ["v"], to=TensorProto.FLOAT16),
        helper.make_node("Constant", [], ["k"], value_floats=[1.0, 2.0]),
        helper.make_node("Cast", ["k"], ["l"], to=TensorProto.FLOAT16),
        helper.make_node("Cast", ["x"], ["u"], to=TensorProto.FLOAT16),
        helper.make_node("Add", ["u", "v"], ["y"]),
    ]
    half = _model(nodes, [x], [_value("y", [2], TensorProto.FLOAT16)], weights)
    onnx.save(source, tmp_path / "source.onnx")
    onnx.save(half, tmp_path / "half.onnx", save_as_external_data=True, location="data", size_threshold=0)
    question = {"source": str(tmp_path / "source.onnx"), "path": str(tmp_path / "half.onnx")}
    found = judge_program.static(question)
    assert (found["checker"], found["strict"], found["io_kept"], found["is_special"]) == ("ok", "ok", False, False)
    assert (found["added_casts"], found["weight_casts"]) == (3, 2)
    assert found["bytes"] == [(tmp_path / "source.onnx").stat().st_size, (tmp_path / "half.onnx").stat().st_size + 8]

    half.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    onnx.save(half, tmp_path / "half.onnx")
    found = judge_program.static(question)
    assert found["io_kept"]
    assert "type" in found["strict"].lower()

    half.graph.node[0].op_type = "Cats"
    onnx.save(half, tmp_path / "half.onnx")
    assert "Cats" in judge_program.static(question)["checker"]


def test_what_is_wrong_with_a_file() -> None:
    source = Source.__new__(Source)
    source.floors = {"float16": 2e-2, "bfloat16": None}
    good = {"error": 0.035, "finite": True, "integers": 0.0, "shapes": True}
    static = {"checker": "ok", "strict": "ok", "io_kept": True}
    assert source.find_wrong(static | {"runtime": good, "honest": good}, "float16") == []
    assert source.find_wrong(static | {"honest": good | {"error": 0.041}}, "float16") == ["honest: error 0.041"]
    assert source.find_wrong(static | {"honest": good}, "bfloat16") == []
    bad = static | {"checker": "no", "io_kept": False, "runtime": "RuntimeError: no", "honest": good | {"integers": 0.5}}
    assert source.find_wrong(bad, "float16") == [
        "checker: no",
        "inputs or outputs changed",
        "runtime: RuntimeError: no",
        "honest: 0.5 of the integers differ",
    ]
    infinite = good | {"finite": False, "error": NO_ERROR}
    assert source.find_wrong(static | {"honest": infinite}, "bfloat16") == ["honest: not finite (nor is the floor)"]
    assert source.find_wrong(static | {"honest": infinite | {"shapes": False}}, "float16") == ["honest: outputs of other shapes"]


def test_programs_that_hang_fail_or_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.onnx.programs.HERE", tmp_path)
    program = tmp_path / "it.py"

    def answer(code: str, limit: float = 60) -> dict[str, Any]:
        program.write_text("import json, sys, time\nquestion = json.loads(sys.argv[1])\n" + code)
        return ask(sys.executable, "it.py", {"n": 3}, limit)

    assert answer("print(json.dumps({'n': question['n']})); print('noise'); print(json.dumps({'m': 1}))") == {"n": 3, "m": 1}
    assert answer("print('{\"a\": 1}', flush=True); time.sleep(60)", 0.5) == {"a": 1, "failed": "not done after 0.5 s"}
    assert answer("sys.exit('one\\ntwo')") == {"failed": "two"}
    assert answer("sys.exit(3)") == {"failed": "exit status 3"}


def test_peers_of_an_earlier_run(tmp_path: Path) -> None:
    def model(name: str, size: int, *files: tuple[str, str]) -> dict[str, Any]:
        return {"name": name, "bytes": size, "files": [{"converter": who, "dtype": dtype, "size": size} for who, dtype in files]}

    path = tmp_path / "old.json"
    both = [("ampgraph", "float16"), ("slim", "float16"), ("slim", "bfloat16"), ("cast", "float16")]
    old = {
        "benchmark": "onnx",
        "machine": {"date": "2026-01-02T03:04", "revision": "abc", "load": 0.5},
        "peers": {"slim": {"slim": "1"}, "cast": {"cast": "2"}},
    }
    path.write_text(json.dumps(old | {"models": [model("a", 1, *both), model("b", 2, *both), model("c", 3, *both)]}))
    results = [model("a", 1, ("ampgraph", "float16"), ("cast", "float16")), model("b", 9, ("ampgraph", "float16"))]
    results.append(model("c", 3, ("ampgraph", "float16"), ("cast", "float16")))
    versions = {"judge": {}, "cast": {"cast": "3"}}
    add_peers(path, results, versions)
    assert [[file["converter"] for file in result["files"]] for result in results] == [
        ["ampgraph", "cast", "slim"],
        ["ampgraph"],
        ["ampgraph", "cast", "slim"],
    ]
    assert {file["dtype"] for result in results for file in result["files"]} == {"float16"}
    assert versions == {
        "judge": {},
        "cast": {"cast": "3"},
        "slim": {"slim": "1", "date": "2026-01-02", "revision": "abc", "load": "0.5"},
    }
    page = summary.markdown(dict.fromkeys(("date", "revision", "processor", "cores", "load", "python"), "x"), versions, [], [])
    assert "Converters with a date ran earlier" in page
    path.write_text('{"benchmark": "startup"}')
    with pytest.raises(ValueError, match=r"old\.json holds no results of this benchmark"):
        add_peers(path, results, versions)


def test_limits_of_made_results() -> None:
    def result(name: str, size: int, casts: int, **more: Any) -> dict[str, Any]:
        file = {
            "converter": "ampgraph",
            "dtype": "float16",
            "wrong": [],
            "bytes": [100, size],
            "is_special": False,
            "added_casts": casts,
        }
        file |= {"weight_casts": 0, "low": 1.0, "hazards": {}, "seconds": [0.1, 0.3, 0.25], "command": 0.5, **more}
        return {"name": name, "bytes": 1000, "nodes": 10, "floors": {}, "files": [file]}

    results = [
        result("a", 52, 1),
        result("b", 60, 20, wrong=["honest: error 0.5"]),
        result("c", 90, 30, is_special=True, low=0.5, weight_casts=2),
        result("d", 50, 0, low=0.5, hazards={"long_sum": 1}, command=1.5),
    ]
    failed = {"converter": "ampgraph", "dtype": "float16", "wrong": ["conversion: no"], "failed": "no"}
    results.append({"name": "e", "bytes": 1000, "nodes": 10, "floors": {}, "executor_error": 3e-4, "files": [failed]})
    results[0] |= {"name": "basic_pitch", "executor_error": 4e-4}
    found = {limit.what.removeprefix("float16: "): (limit.value, limit.ok) for limit in summary.limits(results)}
    assert found == {
        "float32: largest difference from onnxruntime's run / what is allowed: e": (pytest.approx(3), False),
        "models whose file is not right": (2, False),
        "largest size / source's, not quantized or recurrent: b": (0.6, False),
        "median of added Casts": (10.5, False),
        "Casts on weights": (2, False),
        "models below 95 % low without a hazard": (1, False),
        "slowest conversion under 5 MB and 1,000 nodes: basic_pitch": (0.25, False),
        "slowest command on a model under 5 MB: d": (1.5, False),
    }
