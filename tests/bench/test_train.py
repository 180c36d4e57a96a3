import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from bench import train
from bench.__main__ import main
from bench.train import by_hand, cases
from bench.train.planned import planned_peak

SMALL = {
    "MLP": cases.Case(lambda: cases._mlp(8, 6), (4, 5), 6, "mse", by_hand.mlp, 2, 1e9),
    "CNN": cases.Case(lambda: cases._cnn(2), (4, 8, 8, 3), 10, "sparse_categorical_crossentropy", by_hand.cnn, 1, 1e9),
}


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (train, cases):
        monkeypatch.setattr(module, "CASES", SMALL)


@pytest.mark.usefixtures("_small")
def test_small_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["train", "--repeat", "1", "--json", str(tmp_path / "out.json"), "--markdown", str(tmp_path / "out.md")]
    assert main(arguments) == 0
    assert "MLP: float32 / by hand" in capsys.readouterr().out
    content = json.loads((tmp_path / "out.json").read_text())
    for result in content["steps"]:
        assert result["differs"] <= 1e-5
        assert set(result["seconds"]) == {"by hand", "float32", "float16", "bfloat16"}
        assert all(len(times) == 1 and times[0] > 0 for times in result["seconds"].values())
    assert 0 < content["planned"]["float16"] < content["planned"]["float32"]
    assert content["transformer"]["nodes"] > 100
    assert "| CNN | " in (tmp_path / "out.md").read_text()


@pytest.mark.usefixtures("_small")
def test_a_row_that_differs_has_no_times(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def wrong(weights: list[Any], x: Any, y: Any) -> Any:
        loss = by_hand.mlp(weights, x, y)
        weights[0] *= np.float32(1.001)
        return loss

    monkeypatch.setitem(SMALL, "MLP", dataclasses.replace(SMALL["MLP"], hand=wrong))
    assert main(["train", "--repeat", "1", "--only", "MLP"]) == 0
    assert "MLP: differs from the step by hand by 0.00" in capsys.readouterr().out


def test_planned_memory_is_what_is_still_to_be_read() -> None:
    graph = ag.parse_graph("""
    graph g() {
      %x: f32[100] = tf.Placeholder<dtype=f32>() {shape=shape[100]}
      %a: f32[100] = tf.Exp<T=f32>(%x)
      %b: f16[100] = tf.Cast<SrcT=f32, DstT=f16>(%a)
      %c: f16[100] = tf.Identity<T=f16>(%b)
      %d: f16[100] = tf.Neg<T=f16>(%c)
      %e: f32[100] = tf.Cast<SrcT=f16, DstT=f32>(%d)
      return %e, %b
    }
    """)
    assert planned_peak(ag.compile(graph)) == 800  # a and b, then b and d, then b, d and e


def test_turns_are_at_least_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--repeat", "0"]) == 1
    assert "--repeat is at least 1. Received: 0" in capsys.readouterr().err
