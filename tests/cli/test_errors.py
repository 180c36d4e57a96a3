"""How runs end: one message, no traceback, the right exit code, nothing half written."""

import errno
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import Run, shell


def _files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param([], "Say where the rewritten graph goes", id="no-target"),
        pytest.param(["-o", "out.pb", "--preset", "grapler"], "Did you mean 'grappler'?", id="preset"),
        pytest.param(["-o", "out.pb", "--dtype", "float32"], "float16 or bfloat16", id="dtype"),
        pytest.param(["-o", "out.pb", "--target", "tpu"], "'gpu', 'cpu'", id="target"),
        pytest.param(["-o", "out.pb", "--preset", "grappler", "--dtype", "bfloat16"], "Grappler has no mode", id="mode"),
        pytest.param(["-o", "out.pb", "--edit", "Relu"], "gray:+Op", id="edit"),
        pytest.param(["-o", "out.pb", "--edit", "gray:+MatMul"], "conflicting entries", id="conflict"),
        pytest.param(["-o", "out.pb", "--deny-node", "("], "regular expression", id="pattern"),
        pytest.param(["-o", "out.pb", "--allow-op", "Exp", "--deny-op", "Exp"], "both name Exp", id="allow-and-deny"),
        pytest.param(["-o", "out.pb", "--overwrit"], "No such option", id="option"),
    ],
)
def test_bad_arguments_exit_with_2(
    run: Run, model: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(model.parent)
    result = run("rewrite", model, *arguments, code=2)
    assert message in result.stderr
    assert result.stdout == ""
    assert _files(model.parent) == ["model.pb"]


def test_arguments_are_checked_before_the_file_is_read(run: Run, tmp_path: Path) -> None:
    assert "preset" in run("rewrite", tmp_path / "missing.pb", "-o", "out.pb", "--preset", "x", code=2).stderr


@pytest.mark.parametrize(
    "command", [["rewrite", "-o", "out.pb"], ["show"], ["dump"], ["explain"], ["verify"]], ids=lambda c: c[0]
)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "No such file", id="missing"),
        pytest.param(b"\x0a\xff\xff", "damaged or cut off", id="damaged"),
        pytest.param(b"", "The file is empty", id="empty"),
        pytest.param(b"\x1f\x8b\x08\x00broken", "gzip file is damaged", id="gzip"),
    ],
)
def test_unreadable_files_exit_with_1(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], content: bytes | None, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("bad.pb").write_bytes(content)
    result = run(*command[:1], "bad.pb", *command[1:], code=1)
    assert result.stderr.startswith("error: bad.pb")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert not Path("out.pb").exists()


def test_what_is_missing_is_missing_whatever_its_suffix(run: Run) -> None:
    for arguments in (["show", "nofile"], ["rewrite", "nofile", "-o", "-"], ["diff", "nofile", "nofile"]):
        result = run(*arguments, code=2 if arguments[0] == "diff" else 1)
        assert "nofile" in result.stderr
        assert "No such file" in result.stderr


def test_an_invalid_graph_is_not_rewritten(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "model.txt"
    path.write_text("graph g(%x: i32) {\n  %y: f32 = tf.Relu<T=f32>(%x)\n  return %y\n}\n")
    result = run("rewrite", path, "-o", tmp_path / "out.txt", code=1)
    assert "is not valid (1 violation)" in result.stderr
    assert _files(tmp_path) == ["model.txt"]


def test_unwritable_targets_leave_nothing_behind(run: Run, model: Path, tmp_path: Path) -> None:
    assert "cannot be written" in run("rewrite", model, "-o", tmp_path / "no" / "out.pb", code=1).stderr
    assert "cannot be written" in run("dump", model, "-o", tmp_path / "no" / "out.pb", code=1).stderr
    assert "cannot be written" in run("rewrite", model, "-o", "-", "--report", tmp_path / "no" / "r.json", code=1).stderr
    assert "is a folder" in run("rewrite", model, "-o", tmp_path, "--to", "pb", code=1).stderr
    assert ".foo" in run("rewrite", model, "-o", tmp_path / "out.foo", code=1).stderr
    assert _files(tmp_path) == ["model.pb"]


def test_a_policy_file_that_is_missing_or_wrong(run: Run, model: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    assert "cannot be read" in run("rewrite", model, "-o", "-", "--policy", policy, code=1).stderr
    policy.write_bytes(b"\xff")
    assert "cannot be read" in run("rewrite", model, "-o", "-", "--policy", policy, code=1).stderr
    policy.write_text("dtyp = 'float16'")
    assert "Did you mean 'dtype'?" in run("rewrite", model, "-o", "-", "--policy", policy, code=2).stderr


def test_stdin_needs_a_format_only_where_its_content_does_not_tell(run: Run, model: Path) -> None:
    for format in ("pb", "pbtxt", "json", "text"):
        data = run("dump", model, "--format", format).stdout_bytes
        assert run("verify", "-", input=data).stdout == "stdin is valid: 7 nodes\n"
    assert "--from" in run("verify", "-", input=b"hello", code=2).stderr
    assert "stdin: This is not a GraphDef" in run("verify", "-", "--from", "pbtxt", input=b"hello", code=1).stderr
    assert "cannot come from stdin" in run("verify", "-", "--from", "saved_model", code=2).stderr
    assert "is not one of" in run("verify", "-", "--from", "h5", code=2).stderr


def test_a_bug_is_called_one_and_debug_shows_where(run: Run, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(graph: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr("ampgraph.graph.verify.violations", broken)
    assert run("verify", model, code=1).stderr == "error: This is a bug in ampgraph: KeyError: 'oops' (--debug shows where)\n"
    result = run("verify", model, "--debug", code=1)
    assert isinstance(result.exception, KeyError)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        pytest.param(MemoryError(), "error: There is not enough memory for this graph.\n", id="memory"),
        pytest.param(OSError(errno.EIO, os.strerror(errno.EIO), "a.pb"), f"error: a.pb: {os.strerror(errno.EIO)}\n", id="system"),
    ],
)
def test_what_is_no_bug(run: Run, model: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str) -> None:
    def broken(graph: object) -> None:
        raise error

    monkeypatch.setattr("ampgraph.graph.verify.violations", broken)
    assert run("verify", model, code=1).stderr == message


def test_processes_read_and_write_pipes(model: Path) -> None:
    rewritten = shell("rewrite", "-", "-o", "-", input=model.read_bytes())
    assert b"3 of them now compute in float16" in rewritten.stderr
    assert shell("verify", "-", input=rewritten.stdout).stdout == b"stdin is valid: 10 nodes\n"
    failed = shell("verify", model.parent / "missing.pb", code=1)
    assert failed.stderr.startswith(b"error: ")
    assert failed.stderr.count(b"\n") == 1


def test_debug_shows_the_traceback(model: Path) -> None:
    failed = shell("verify", model.parent / "missing.pb", "--debug", code=1)
    assert b"Traceback" in failed.stderr
    assert failed.stderr.rstrip().endswith(b"No such file or directory.")


def test_a_reader_that_goes_away_is_no_error(model: Path) -> None:
    command = [sys.executable, "-m", "ampgraph", "dump", str(model)]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("command", ["show", "verify", "dump"])
def test_a_full_disk_is_one_message(model: Path, command: str) -> None:
    with open("/dev/full", "wb") as full:
        argv = [sys.executable, "-m", "ampgraph", command, str(model)]
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, b"error: No space left on device\n")


def test_interrupting_ends_with_130_and_no_file(tmp_path: Path) -> None:
    fifo = tmp_path / "model.pb"
    os.mkfifo(fifo)
    command = [sys.executable, "-m", "ampgraph", "rewrite", str(fifo), "-o", str(tmp_path / "out.pb")]
    previous = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell's background job ignores it, and so would its child
    try:
        process = subprocess.Popen(command, stderr=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGINT, previous)
    with open(fifo, "wb"):  # waits until the process has opened the other end; then it waits for data
        time.sleep(0.3)  # a signal between the interpreter's last look for one and the system call would be seen too late
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (130, b"interrupted\n")
    assert _files(tmp_path) == ["model.pb"]


def test_a_terminal_gets_colours_and_no_binary(model: Path) -> None:
    def on_terminal(*arguments: str, **environment: str) -> str:
        leader, follower = pty.openpty()
        argv = [sys.executable, "-m", "ampgraph", *arguments]
        env = {**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm", **environment}
        process = subprocess.Popen(argv, stdout=follower, stderr=follower, env=env)
        os.close(follower)
        output = b""
        while True:
            try:
                part = os.read(leader, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            output += part
        os.close(leader)
        process.wait(timeout=60)
        return output.decode()

    assert "\x1b[" in on_terminal("show", str(model))
    assert "\x1b[" not in on_terminal("show", str(model), NO_COLOR="1")
    assert "Binary data does not go to a terminal" in on_terminal("dump", str(model), "--format", "pb")
    assert "AllowList" in on_terminal("lists", "MatMul")


def test_work_over_a_second_shows_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    from ampgraph.cli import output

    monkeypatch.setattr(output, "PATIENCE", 0.01)
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        with output.progress("counting [sheep]"):
            shown = os.read(leader, 4096)
            while b"sheep" not in shown:
                shown += os.read(leader, 4096)
    os.close(leader)
    assert b"counting [sheep]" in shown


def test_help_and_version_load_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from ampgraph.cli import program\n"
        "program(['--help'], standalone_mode=False)\n"
        "heavy = {'numpy', 'networkx', 'google.protobuf', 'ml_dtypes', 'onnx', 'rich', 'ampgraph.graph', 'ampgraph.rewrite'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("Usage: ")
    assert done.stdout.endswith("\n[]\n")
