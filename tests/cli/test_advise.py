"""``ampgraph advise``."""

import json
import re
from pathlib import Path

import ampgraph as ag

from .conftest import Run

MODEL = """
graph model() {
  %x: f32[64,784] = tf.Placeholder<dtype=f32>() {shape=shape[64,784]}
  %w: f32[784,300] = tf.Placeholder<dtype=f32>() {shape=shape[784,300]}
  %v: f32[300,10] = tf.Placeholder<dtype=f32>() {shape=shape[300,10]}
  %h: f32 = tf.MatMul<T=f32>(%x, %w)
  %r: f32 = tf.Relu<T=f32>(%h)
  %logits: f32 = tf.MatMul<T=f32>(%r, %v)
  %y: f32 = tf.Exp<T=f32>(%logits)
  return %y
}
"""


def made(folder: Path, text: str = MODEL) -> Path:
    path = folder / "wide.pb"
    ag.save(ag.parse_graph(text), path)
    return path


def test_a_table(run: Run, tmp_path: Path) -> None:
    result = run("advise", made(tmp_path))
    assert [re.split(" {2,}", line) for line in result.stdout.splitlines()] == [
        ["node", "op", "FLOPs", "sizes", "more arithmetic"],
        ["h", "MatMul", "30.1 M", "M 64, N 300 -> 304, K 784", "+1.3 %"],
        ["logits", "MatMul", "384.0 K", "M 64, N 10 -> 16, K 300 -> 304", "+62.1 %"],
    ]
    assert result.stderr == "note: 2 nodes multiply matrices in low precision, 2 with sizes to pad\n"


def test_nodes_by_name(run: Run, tmp_path: Path) -> None:
    path = made(tmp_path)
    result = run("advise", path, "logits", "y")
    assert result.stdout == "logits (MatMul) float16: M 64, N 10 -> 16, K 300 -> 304, 62.1 % more arithmetic\n"
    assert result.stderr.startswith("note: node 'y' multiplies no matrices in low precision")
    assert "Did you mean 'logits'?" in run("advise", path, "logit", code=2).stderr


def test_json(run: Run, tmp_path: Path) -> None:
    path = made(tmp_path)
    data = json.loads(run("advise", path, "--json").stdout)
    assert [(item["node"], item["flops"], item["padding"]) for item in data] == [
        ("h", 2 * 64 * 784 * 300, {"N": 304}),
        ("logits", 2 * 64 * 300 * 10, {"N": 16, "K": 304}),
    ]
    assert len(json.loads(run("advise", path, "h", "--json").stdout)) == 1


def test_nothing_to_say(run: Run, tmp_path: Path) -> None:
    fine = made(tmp_path, MODEL.replace("300", "24").replace("10]", "16]"))
    assert run("advise", fine).stdout == (
        "2 nodes multiply matrices in low precision, and every size that is known suits tensor cores: nothing to pad\n"
    )
    assert "N 24 -> 32" in run("advise", fine, "--powers-of-two").stdout
    assert "all sizes are fine" in run("advise", fine, "h").stdout
    none = run("advise", fine, "--deny-op", "MatMul")
    assert none.stdout == "no node multiplies matrices in low precision, so there is nothing to say about sizes\n"
    old = run("advise", fine, "--target", "gpu:6.1")
    assert "compute capability 7.0" in old.stderr


def test_another_policy(run: Run, tmp_path: Path) -> None:
    result = run("advise", made(tmp_path), "--float-node", "h", "--dtype", "bfloat16", "logits", "h")
    assert result.stdout.startswith("logits (MatMul) bfloat16: ")
    assert "node 'h' multiplies no matrices in low precision" in result.stderr
