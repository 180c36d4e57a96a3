"""Closed streams, names of files to write, and reports that would replace something."""

import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Run


@pytest.mark.parametrize(
    ("command", "message"),
    [
        pytest.param("explain model.pb --json >&-", "Stdout is closed", id="explain"),
        pytest.param("rewrite model.pb -o - >&-", "Stdout is closed", id="rewrite"),
        pytest.param("verify - <&-", "Stdin is closed", id="stdin"),
    ],
)
def test_closed_streams_are_no_bug(model: Path, command: str, message: str) -> None:
    argv = ["sh", "-c", f'"$0" -m ampgraph {command}', sys.executable]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, cwd=model.parent)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {message}")
    assert done.stderr.count("\n") == 1


def test_a_closed_stderr_does_not_stop_the_work(model: Path) -> None:
    argv = ["sh", "-c", '"$0" -m ampgraph verify model.pb 2>&-', sys.executable]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, cwd=model.parent)
    assert (done.returncode, done.stdout) == (0, "model.pb is valid: 7 nodes\n")


def test_a_report_replaces_neither_graph(run: Run, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(model.parent)
    before = model.read_bytes()
    same = run("rewrite", model, "-o", "r.pb", "--report", "./r.pb", code=2)
    assert "is written to 'r.pb', so the report needs another file" in same.stderr
    assert "is read from" in run("rewrite", model, "-o", "r.pb", "--report", "model.pb", code=2).stderr
    assert "there is no folder" in run("rewrite", model, "-o", "r.pb", "--report", "no/r.json", code=1).stderr
    assert "it is a folder" in run("rewrite", model, "-o", "r.pb", "--report", ".", code=1).stderr
    assert model.read_bytes() == before
    assert not Path("r.pb").exists()
    run("rewrite", model, "-o", "/dev/null", "--to", "pb", "--report", "/dev/null")


def test_names_that_are_none(run: Run, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(model.parent)
    assert "not empty" in run("rewrite", model, "-o", "", code=2).stderr
    assert "not empty" in run("dump", model, "-o", "", code=2).stderr
    assert "not empty" in run("rewrite", model, "-o", "r.pb", "--report", "", code=2).stderr
    assert "Add .pb, for example" in run("rewrite", model, "-o", "fp16", code=1).stderr
    assert [path.name for path in model.parent.iterdir()] == ["model.pb"]


def test_the_gz_suffix_in_capitals(run: Run, model: Path) -> None:
    for command in ("rewrite", "dump"):
        target = model.with_name(f"{command}.pb.GZ")
        run(command, model, "-o", target)
        assert target.read_bytes()[:2] == b"\x1f\x8b"
        run("verify", target)


def test_an_edit_with_two_lists_is_refused(run: Run, model: Path) -> None:
    assert "'Op=deny' (move)" in run("rewrite", model, "-o", "-", "--edit", "MatMul=deny=allow", code=2).stderr
