import json
from pathlib import Path

import pytest

from bench import parity
from bench.__main__ import main
from examples import mlp
from examples.side_by_side import PRECISIONS, UNSCALED, Outcome


def test_every_precision_has_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(parity, "EXAMPLES", {"mlp": mlp.EXAMPLE._replace(batch_size=1024)})
    out = [str(tmp_path / name) for name in ("out.json", "out.md")]
    assert main(["parity", "--examples", "mlp", "--seeds", "2", "--epochs", "1", "--json", out[0], "--markdown", out[1]]) == 0
    assert "as float32" in capsys.readouterr().out
    rows = json.loads(Path(out[0]).read_text())["rows"]
    assert {(row["number"], row["precision"]) for row in rows} == {
        (number, precision) for number in ("train loss", "test loss") for precision in (*PRECISIONS, UNSCALED)
    }
    assert {len(row["values"]) for row in rows} == {2}
    assert {row["forward"] > 0 for row in rows if row["precision"] != "float32"} == {True}
    assert "| mlp | train loss | float16 |" in Path(out[1]).read_text()


def test_worse_is_what_no_seed_of_float32_comes_to() -> None:
    def outcomes(precision: str, loss: float, accuracy: float, forward: int) -> list[Outcome]:
        return [
            Outcome(precision, [loss + seed], [1.0], 0, {"accuracy": accuracy - seed / 10}, forward, forward, 0.0)
            for seed in (0, 1)
        ]

    found = {
        "float32": outcomes("float32", 1.0, 0.9, 0),
        "float16": outcomes("float16", 1.5, 0.85, 3),
        "bfloat16": outcomes("bfloat16", 1.6, 0.8, 3),
        UNSCALED: outcomes(UNSCALED, 9.0, 0.1, 3),
    }
    rows = {(row.number, row.precision): row.ok for row in parity.compare("mlp", found)}
    assert [rows["train loss", precision] for precision in found] == [None, True, False, None]
    assert [rows["test accuracy", precision] for precision in found] == [None, True, False, None]
    found["float16"] = outcomes("float16", 1.0, 0.9, 0)  # nothing in it is low
    assert not any(row.ok for row in parity.compare("mlp", found) if row.precision == "float16")


def test_seeds_are_at_least_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parity", "--seeds", "0"]) == 1
    assert "--seeds is at least 1. Received: 0" in capsys.readouterr().err
