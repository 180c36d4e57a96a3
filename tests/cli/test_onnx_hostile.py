"""ONNX files that nobody should make, through the command line: one clear error, nothing written, no crash, no hang."""

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

import ampgraph as ag

from .conftest import Run

TEXT = """<ir_version: 10, opset_import: ["": 21, "l": 1]>
g (float[8,64] x, bool c) => (float[8,64] y)
<float[2] unused = {1, 2}>
{
  h = l.once(x, w)
  y = If(c) <then_branch = t () => (float[8,64] a) { a = MatMul(h, w) }, else_branch = e () => (float[8,64] b) { b = Relu(h) }>
}
<opset_import: ["": 21, "l": 1], domain: "l"> once (a, v) => (b) { b = MatMul(a, v) }
<opset_import: ["": 21, "l": 1], domain: "l"> other (a, v) => (b) { b = l.once(a, v) }
"""


def base() -> Any:
    proto = parser.parse_model(TEXT)
    assert isinstance(proto, ModelProto)
    proto.graph.initializer.append(numpy_helper.from_array(np.eye(64, dtype=np.float32), "w"))
    return proto


def weight(**fields: Any) -> Callable[[Any], None]:
    def change(proto: Any) -> None:
        for name, value in fields.items():
            setattr(proto.graph.initializer[1], name, value)

    return change


def sizes(*dims: int) -> Callable[[Any], None]:
    def change(proto: Any) -> None:
        del proto.graph.initializer[1].dims[:]
        proto.graph.initializer[1].dims.extend(dims)
        proto.graph.initializer[1].ClearField("raw_data")

    return change


def external(location: str, **entries: str) -> Callable[[Any], None]:
    def change(proto: Any) -> None:
        tensor = proto.graph.initializer[1]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in {"location": location, **entries}.items():
            tensor.external_data.add(key=key, value=value)

    return change


def calls_itself(proto: Any) -> None:
    proto.functions[0].node[0].op_type, proto.functions[0].node[0].domain = "once", "l"


def call_each_other(proto: Any) -> None:
    proto.functions[0].node[0].op_type, proto.functions[0].node[0].domain = "other", "l"


def no_cast_target(proto: Any) -> None:
    proto.graph.node.append(helper.make_node("Cast", ["x"], ["z"]))


def float_condition(proto: Any) -> None:
    proto.graph.node[1].input[0] = "x"


def operand(name: str) -> Callable[[Any], None]:
    def change(proto: Any) -> None:
        proto.graph.node[0].input[0] = name

    return change


def int_weight(proto: Any) -> None:
    proto.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.eye(64, dtype=np.int64), "w"))


HOSTILE = {
    "wrong-dtype-of-weight": (int_weight, "float32 and int64|int64"),
    "wrong-condition": (float_condition, "bool"),
    "wrong-data": (weight(raw_data=b"abc"), "16384 bytes"),
    "dtype-99": (weight(data_type=99), "dtype number 99"),
    "no-cast-target": (no_cast_target, "Cast"),
    "missing-weight": (lambda proto: proto.graph.initializer.pop(), "reads 'w'"),
    "missing-value": (operand("xx"), "reads 'xx'"),
    "missing-data": (sizes(64, 64), "needs 4096|16384"),
    "missing-file": (external("none.data"), "'none.data' is missing"),
    "escape-up": (external("../secret.data"), "must lie in the model's folder"),
    "escape-root": (external("/etc/passwd"), "must lie in the model's folder"),
    "escape-link": (external("link.data"), "symbolic link"),
    "short-file": (external("short.data"), "short.data|data file"),
    "far-offset": (external("short.data", offset=str(2**62), length="16384"), "offset"),
    "huge-tensor": (sizes(10**9), "1000000000"),
    "huge-tensors": (sizes(10**9, 10**9), "1000000000"),
    "negative-size": (sizes(-64, -64), "negative"),
    "cycle": (operand("y"), "cycle"),
    "function-of-itself": (calls_itself, "once"),
    "functions-of-each-other": (call_each_other, "once|other"),
    "future-opset": (lambda proto: setattr(proto.opset_import[0], "version", 999), "version 999"),
    "no-graph": (lambda proto: proto.ClearField("graph"), "no graph"),
}


def refused(run: Run, path: Path, message: str) -> None:
    """Rewrite a file that must be refused with one error and under 5 seconds, leaving the folder as it is."""
    before = {file.name: file.lstat().st_mtime_ns for file in path.parent.iterdir()}
    start = time.process_time()
    result = run("rewrite", path, "-o", path.with_name("out.onnx"), code=1)
    assert time.process_time() - start < 5
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("error") == 1
    assert len(result.stderr.splitlines()) < 6  # a model that does not type-check has several faults
    assert any(part in result.stderr for part in message.split("|")), result.stderr
    assert {file.name: file.lstat().st_mtime_ns for file in path.parent.iterdir()} == before


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_models_are_refused(run: Run, tmp_path: Path, name: str) -> None:
    change, message = HOSTILE[name]
    (tmp_path / "secret.data").write_bytes(bytes(16384))
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "link.data").symlink_to(tmp_path / "secret.data")
    (folder / "short.data").write_bytes(bytes(100))
    proto = base()
    change(proto)
    (folder / "model.onnx").write_bytes(proto.SerializeToString())
    refused(run, folder / "model.onnx", message)


@pytest.mark.parametrize("content", [b"", b"not a model at all\n" * 100, bytes(1000), b"\x1f\x8b\x08broken"])
def test_files_that_are_no_models(run: Run, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.onnx").write_bytes(content)
    refused(run, tmp_path / "model.onnx", "model.onnx")


def test_truncated_models(run: Run, tmp_path: Path) -> None:
    data = base().SerializeToString()
    source = random.Random(1)
    for _ in range(40):
        (tmp_path / "model.onnx").write_bytes(data[: source.randrange(1, len(data) - 1)])
        refused(run, tmp_path / "model.onnx", "model.onnx")


def test_the_model_is_fine_without_those_changes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(base().SerializeToString())
    run("rewrite", tmp_path / "model.onnx", "-o", tmp_path / "out.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "out.onnx"), full_check=True)


def test_large_shapes_without_data_cost_nothing(run: Run, tmp_path: Path) -> None:
    """Inputs of 10**9 rows, and constants that one number stands for, are sizes only."""
    text = """<ir_version: 10, opset_import: ["": 21]>
    g (float[1000000000,64] x, float[64,64] w) => (float[1000000000,64] y) {
      s = Constant<value_ints = [1000000000, 64]>()
      k = ConstantOfShape<value = float[1] {0.5}>(s)
      h = MatMul(x, w)
      a = Add(h, k)
      y = MatMul(a, w)
    }"""
    onnx.save(parser.parse_model(text), tmp_path / "model.onnx")
    start = time.process_time()
    run("rewrite", tmp_path / "model.onnx", "-o", tmp_path / "out.onnx")
    assert time.process_time() - start < 5
    after = ag.load(tmp_path / "out.onnx")
    assert str(after.value("k").dtype) == "float16"


def test_sparse_constants_of_gigabytes_are_refused(run: Run, tmp_path: Path) -> None:
    text = "g (float[8,64] x) => (float[8,100000000] y) { s = Constant()  y = MatMul(x, s) }"
    proto = parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}')
    assert isinstance(proto, ModelProto)
    values, places = helper.make_tensor("", 1, [1], [0.5]), helper.make_tensor("", 7, [1], [10**9])
    sparse = helper.make_sparse_tensor(values, places, [64, 10**8])
    proto.graph.node[0].attribute.append(helper.make_attribute("sparse_value", sparse))
    (tmp_path / "model.onnx").write_bytes(proto.SerializeToString())
    refused(run, tmp_path / "model.onnx", "sparse constant of shape [64, 100000000]")
