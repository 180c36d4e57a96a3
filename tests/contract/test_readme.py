"""What the README shows is true: its commands run and print what it says, its Python runs."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ampgraph import find_dtype, load, save
from ampgraph.cli.demo_model import demo_model
from ampgraph.kernels.feeds import random_feeds
from ampgraph.rewrite import RewriteResult

from .modules import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


# What a run says when an option or pattern that the README shows fits nothing in the example.
IN_VAIN = re.compile(r"matches no|changes nothing|names an op nobody|left alone|nothing was rewritten")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def _commands() -> Iterator[tuple[str, list[str]]]:
    """Yield each command after ``$`` with the lines that stand below it."""
    for block in _blocks("console"):
        for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            first, *lines = command.splitlines()
            yield first, lines


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the example models, and data for the one that is made."""
    np.savez(tmp_path / "data.npz", **random_feeds(demo_model()))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_commands_print_what_the_readme_says(folder: Path) -> None:
    commands = list(_commands())
    assert len(commands) > 5
    for command, lines in commands:
        program, *arguments = shlex.split(command)
        assert program == "ampgraph"
        run = subprocess.run([sys.executable, "-m", "ampgraph", *arguments], capture_output=True, text=True, check=False)
        expected = 1 if arguments[0] == "diff" else 0  # as diff(1): 1 = they differ
        assert run.returncode == expected, f"{command}\n{run.stderr}"
        assert not IN_VAIN.search(run.stdout + run.stderr), f"{command}\n{run.stdout}{run.stderr}"
        printed = run.stdout.splitlines()
        for i, line in enumerate(lines):
            if line == "…":
                break
            assert re.fullmatch(re.escape(line).replace("…", ".*"), printed[i]), f"{command}\n{printed[i]}"
        else:
            assert not lines or len(lines) == len(printed), f"{command} prints more than the README shows: end it with …"


def test_python_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, object] = {}
    blocks = _blocks("python")
    assert len(blocks) == 5
    save(demo_model(), "model.onnx")
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)
    printed = capsys.readouterr().out
    assert re.match(r"epoch 1/1: loss 0\.\d+, loss scale 32768, 0 of 32 steps skipped", printed)
    assert "\npolicy    preset=onnxruntime" in printed
    assert "\nTrue policy" in printed
    assert [str(value.dtype) for value in load("model.fp16.onnx").outputs] == ["float32"]
    assert not IN_VAIN.search(printed), printed
    result = namespace["result"]
    assert isinstance(result, RewriteResult)
    assert result.graph.node("resnet50_1/predictions_1/MatMul").types == {"T": find_dtype("float32")}
    assert "(MaxPool) T: float32" in printed
    assert "tf.MatMul<T=f16>" in printed
    assert "tf.Exp<T=f32>" in printed
    assert "['x: f32[32,64]'] float16" in printed


def test_links_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#]+)", README)
    assert links
    for link in links:
        assert (ROOT / link).exists(), link


def test_anchors_are_headings() -> None:
    anchors = re.findall(r"\]\(([^)#]+)#([^)]+)\)", README)
    assert anchors
    for page, anchor in anchors:
        headings = re.findall(r"^#+ (.*)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
        assert anchor in {heading.lower().replace(" ", "-") for heading in headings}, anchor


def test_lines_are_not_long() -> None:
    prose = re.sub(r"^```.*?^```$|^\|.*$", "", README, flags=re.MULTILINE | re.DOTALL)
    assert [line for line in prose.splitlines() if len(line) > 130] == []


def test_make_targets_exist() -> None:
    targets = re.findall(r"^make (\w+)", README, re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert {"demo", "test"} <= set(targets)
    for target in targets:
        assert re.search(rf"^{target}:.*##", makefile, re.MULTILINE)
