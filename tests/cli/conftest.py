"""A small model in a file, and how to run the command line on it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import ampgraph as ag
from ampgraph.cli import program

MODEL = """
graph model() {
  %x: f32[8,4] = tf.Placeholder<dtype=f32>() {shape=shape[8,4]}
  %w: f32[4,4] = tf.Placeholder<dtype=f32>() {shape=shape[4,4]}
  %h: f32[8,4] = tf.MatMul<T=f32>(%x, %w)
  %relu: f32[8,4] = tf.Relu<T=f32>(%h)
  %logits: f32[8,4] = tf.MatMul<T=f32>(%relu, %w)
  %exp: f32[8,4] = tf.Exp<T=f32>(%logits)
  %y: f32[8,4] = tf.Neg<T=f32>(%exp) control=["relu"]
  return %y
}
"""

Run = Callable[..., Result]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A GraphDef with two matrix products, a Relu between them and an Exp after them."""
    path = tmp_path / "model.pb"
    ag.save(ag.parse_graph(MODEL), path)
    return path


@pytest.fixture
def run() -> Run:
    """Run the command line in this process; its exit code must be the one expected."""

    def run(*arguments: object, code: int = 0, input: bytes | None = None) -> Result:
        result = CliRunner().invoke(program, list(map(str, arguments)), input=input)
        assert result.exit_code == code, f"{result.exit_code}: {result.output}{result.exception}"
        assert "Traceback" not in result.output
        return result

    return run


def shell(*arguments: object, input: bytes = b"", code: int = 0) -> subprocess.CompletedProcess[bytes]:
    """Run the command line as a process of its own."""
    command = [sys.executable, "-m", "ampgraph", *map(str, arguments)]
    done = subprocess.run(command, input=input, capture_output=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr.decode()
    return done


def dtypes(path: Path) -> dict[str, str]:
    """Return the dtype of every node's first result, casts left out."""
    return {node.name: str(node.outputs[0].dtype) for node in ag.load(path).nodes if node.op_type != "Cast"}
