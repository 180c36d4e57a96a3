"""``ampgraph rewrite FOLDER``: one model after the other, each on its own."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

import ampgraph as ag
from ampgraph.cli.demo_model import demo_model

from .conftest import Run, shell


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Two models, a damaged one between them, and what is no model."""
    folder = tmp_path / "models"
    (folder / "inside").mkdir(parents=True)
    for name in ("a.onnx", "c.onnx", "inside/d.onnx"):
        ag.save(demo_model(seed=ord(name[0])), folder / name)
    (folder / "b.onnx").write_bytes(b"\x08\x09\xff")
    (folder / "notes.txt").write_text("about the models")
    (folder / ".hidden.onnx").write_text("left over")
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_one_failure_does_not_stop_the_others(run: Run, models: Path, tmp_path: Path) -> None:
    out, report = tmp_path / "new" / "out", tmp_path / "report.json"
    result = run("rewrite", models, "-o", out, "--report", report, code=1)
    assert names(out) == ["a.onnx", "c.onnx"]
    for name in names(out):
        onnx.checker.check_model(onnx.load(out / name), full_check=True)
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["a.onnx", "b.onnx", "c.onnx"]
    assert re.fullmatch(r"a\.onnx +\d+ f16 +\d+ f32 +\d+ Casts +5\d% +\d+\.\d\d s", lines[0])
    assert re.fullmatch(r"b\.onnx +failed: This is not an ONNX model, or it is damaged or cut off: .*", lines[1])
    clamped, failed = result.stderr.splitlines()
    assert clamped.startswith("note: 'mask/lowest' only masks scores")  # as in all models
    assert failed == "error: 1 of 3 models could not be rewritten."
    first, second, third = json.loads(report.read_text())
    assert (first["file"], second["file"], third["file"]) == ("a.onnx", "b.onnx", "c.onnx")
    assert second["error"].startswith("This is not an ONNX model")
    assert first["size"]["after"] == (out / "a.onnx").stat().st_size
    assert f" {first['low']} f16 " in lines[0]
    assert first["seconds"] > 0
    assert first["bodies"][0]["decisions"]


def test_all_well_exits_with_0(run: Run, models: Path, tmp_path: Path) -> None:
    (models / "b.onnx").unlink()
    result = run("rewrite", models, "-o", tmp_path / "out", "--external-data", "--dtype", "bf16", "--json")
    assert names(tmp_path / "out") == ["a.onnx", "a.onnx.data", "c.onnx", "c.onnx.data"]
    rows = json.loads(result.stdout)
    assert [(row["file"], row["dtype"]) for row in rows] == [("a.onnx", "bfloat16"), ("c.onnx", "bfloat16")]
    assert [line.split()[2] for line in result.stderr.splitlines()] == ["bf16", "bf16"]
    assert rows[0]["size"]["after"] == sum((tmp_path / "out" / name).stat().st_size for name in ("a.onnx", "a.onnx.data"))
    again = run("rewrite", tmp_path / "out", "--dry-run", "--dtype", "bf16")
    assert [line.split()[1] for line in again.stdout.splitlines()] == ["0", "0"]  # nothing is left to do


def test_a_dry_run_writes_nothing(run: Run, models: Path, tmp_path: Path) -> None:
    result = run("rewrite", models, "--dry-run", code=1)
    assert len(result.stdout.splitlines()) == 3
    assert names(tmp_path) == ["models"]


def test_what_makes_no_sense_is_refused_before_anything_is_written(run: Run, models: Path, tmp_path: Path) -> None:
    before = {name: (models / name).stat().st_mtime_ns for name in names(models)}
    assert "so the results need another folder" in run("rewrite", models, "-o", models / ".", code=2).stderr
    for options in (["-o", "-"], ["-o", "out", "--to", "json"], ["-o", "out", "--output", "y"], ["-o", "out", "--tags", "x"]):
        assert "is a folder of ONNX models" in run("rewrite", models, *options, code=2).stderr
    file = tmp_path / "file"
    file.write_text("")
    assert "cannot be made a folder" in run("rewrite", models, "-o", file, code=1).stderr
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "holds no file that ends in .onnx" in run("rewrite", empty, "-o", tmp_path / "out", "--from", "onnx", code=1).stderr
    assert "SavedModel" in run("rewrite", empty, "-o", tmp_path / "out", code=1).stderr
    assert names(tmp_path) == ["empty", "file", "models"]
    assert {name: (models / name).stat().st_mtime_ns for name in names(models)} == before


def test_a_bug_in_one_model_is_called_one(run: Run, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise KeyError("oops")

    (models / "b.onnx").unlink()
    monkeypatch.setattr("ampgraph.rewrite.auto_mixed_precision", broken)
    result = run("rewrite", models, "-o", tmp_path / "out", code=1)
    assert result.stdout.splitlines()[1] == "c.onnx  failed: This is a bug in ampgraph: KeyError: 'oops' (--debug shows where)"
    assert result.stderr == "error: 2 of 2 models could not be rewritten.\n"
    assert isinstance(run("rewrite", models, "-o", tmp_path / "out", "--debug", code=1).exception, KeyError)
    assert names(tmp_path / "out") == []


@pytest.mark.parametrize("external", [False, True])
def test_an_interrupt_leaves_finished_models_and_nothing_half(
    run: Run, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, external: bool
) -> None:
    """The interrupt comes while the last file of the second model is written."""
    from ampgraph.graph.formats import onnx_save

    (models / "b.onnx").unlink()
    sync, count = onnx_save._sync, 0

    def interrupted(file: object) -> None:
        nonlocal count
        count += 1
        if count == (6 if external else 2):  # data, a note about it, model
            raise KeyboardInterrupt
        sync(file)  # type: ignore[arg-type]

    monkeypatch.setattr(onnx_save, "_sync", interrupted)
    result = run("rewrite", models, "-o", tmp_path / "out", *(["--external-data"] * external), code=130)
    assert result.stderr == "interrupted\n"
    assert names(tmp_path / "out") == (["a.onnx", "a.onnx.data"] if external else ["a.onnx"])
    onnx.checker.check_model(str(tmp_path / "out" / "a.onnx"), full_check=True)


def test_a_terminal_gets_a_progress_bar(models: Path, tmp_path: Path) -> None:
    (models / "b.onnx").unlink()
    leader, follower = pty.openpty()
    argv = [sys.executable, "-m", "ampgraph", "rewrite", str(models), "-o", str(tmp_path / "out")]
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=follower, env=env)
    os.close(follower)
    shown = b""
    while True:
        try:
            part = os.read(leader, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(leader)
    assert process.stdout is not None
    lines = process.stdout.read().decode().splitlines()
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    assert [line.split()[0] for line in lines] == ["a.onnx", "c.onnx"]
    assert b"2/2" in shown
    assert b"c.onnx" in shown


def test_a_process_without_a_terminal_prints_lines_only(models: Path, tmp_path: Path) -> None:
    done = shell("rewrite", models, "-o", tmp_path / "out", code=1)
    assert len(done.stdout.splitlines()) == 3
    assert done.stderr.endswith(b"error: 1 of 3 models could not be rewritten.\n")
