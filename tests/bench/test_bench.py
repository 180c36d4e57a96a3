import json
import re
import sys
from pathlib import Path

import pytest

from ampgraph.rewrite import Policy
from bench import rewrite, startup, workloads
from bench.__main__ import main
from bench.memory import peak
from bench.peer import Grappler
from bench.results import Limit, growth, machine
from bench.synthetic import write_synthetic

# What a Python with TensorFlow answers; the real one is not part of the test environment.
_STAND_IN = """
import json, sys
print(json.dumps({"tensorflow": "0.0", "mode": "cpu_fp16"}), flush=True)
for line in sys.stdin:
    path = json.loads(line)["path"]
    answer = {"pass_ms": 2.0, "whole_ms": 3.0, "whole_cpu_ms": 3.0, "nodes": 1, "casts": 0}
    print(json.dumps({"error": "no good"} if "bad" in path else answer), flush=True)
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    program = tmp_path / "stand_in.py"
    program.write_text(_STAND_IN)
    monkeypatch.setattr("bench.peer._PROGRAM", program)
    return sys.executable


def test_without_arguments_lists_the_benchmarks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    text = capsys.readouterr().out
    assert re.search(r"rewrite +Time loading, rewriting", text)
    assert re.search(r"startup +Time ``import ampgraph``", text)


def test_rewrite_without_a_peer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = tmp_path / "small.pb"
    (tmp_path / "small.meta.json").write_text(json.dumps({"fetch": [write_synthetic("chain", 120, graph)]}))
    out = tmp_path / "out.json"
    arguments = ["rewrite", "--graphs", str(graph), "--kinds", "mixed", "--sizes", "150", "--repeat", "2", "--json", str(out)]
    assert main(arguments) == 0
    assert "Grappler of TensorFlow" not in capsys.readouterr().out
    content = json.loads(out.read_text())
    assert [(g["name"], g["kind"], "ratio" in g) for g in content["graphs"]] == [
        ("small", "real", False),
        ("mixed 150", "mixed", False),
    ]
    for measured in content["graphs"]:
        assert measured["casts_after"] > 0
        for step in ("load", "pass", "verify", "save"):
            assert len(measured["steps"][step]["wall_ms"]) == 2
            assert min(measured["steps"][step]["wall_ms"]) > 0
    assert 20e6 < content["peak_bytes"]["mixed 150"] < 1e9
    assert content["machine"]["cores"] >= 1


def test_rewrite_beside_a_peer(stand_in: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = tmp_path / "resnet50_train.pb"
    write_synthetic("chain", 120, graph)
    out = tmp_path / "out.json"
    arguments = ["rewrite", "--graphs", str(graph), "--kinds", "--repeat", "1", "--tensorflow", stand_in, "--json", str(out)]
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert "mode cpu_fp16" in text
    assert re.search(r"resnet50_train: ours has [\d,]+ nodes .*, Grappler's 1 \(0\)", text)
    content = json.loads(out.read_text())
    (measured,) = content["graphs"]
    assert measured["ratio"] == measured["steps"]["pass"]["wall_ms"][0] / 2
    assert content["policy"].startswith("preset=grappler,dtype=float16,target=cpu")
    (limit,) = content["limits"]
    assert limit["what"] == "resnet50_train: pass / Grappler's"
    assert limit["ok"] == (measured["ratio"] <= 2)


def test_errors_of_the_peer(stand_in: str, tmp_path: Path) -> None:
    with Grappler(stand_in, tmp_path / "log") as peer:
        assert peer.time(tmp_path / "good.pb", ["x"])["pass_ms"] == 2
        with pytest.raises(RuntimeError, match=r"Grappler failed on bad\.pb: no good"):
            peer.time(tmp_path / "bad.pb", [])


def test_a_python_without_tensorflow(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)ended early.*No module named 'tensorflow'"):
        Grappler(_python_without_tensorflow(tmp_path), tmp_path / "log")


def _python_without_tensorflow(folder: Path) -> str:
    script = folder / "python"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    script.chmod(0o755)
    return str(script)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rewrite", "--repeat", "0"], "--repeat is at least 1. Received: 0"),
        (["rewrite", "--graphs", "missing.pb"], "missing.pb is neither a folder nor a file"),
        (["startup", "--repeat", "0"], "--repeat is at least 1. Received: 0"),
    ],
)
def test_bad_arguments_end_with_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 1
    assert message in capsys.readouterr().err


def test_limits_that_a_run_says_something_about() -> None:
    results = [{"name": name, "ratio": 0.5} for name in ("resnet50_train", "mixed 100,000", "tensorlist 4,000", "other")]
    found = rewrite._limits(results, {"wide": 1.3}, {"chain 100,000": 999_000_000, "chain 1,000": 2_000_000_000})
    assert [(limit.what, limit.most, limit.ok) for limit in found] == [
        ("resnet50_train: pass / Grappler's", 2, True),
        ("mixed 100,000: pass / Grappler's", 1, True),
        ("tensorlist 4,000: pass / Grappler's", 0.05, False),
        ("wide: growth exponent of the pass", 1.2, False),
        ("chain 100,000: peak memory", 1000, True),
    ]


def test_growth_is_the_exponent_of_a_power_law() -> None:
    assert growth([10, 100, 1000], [3 * 10**1.5, 3 * 100**1.5, 3 * 1000**1.5]) == pytest.approx(1.5)
    with pytest.raises(ValueError, match=r"two sizes.*\[10, 10\]"):
        growth([10, 10], [1, 2])


def test_startup(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "_COMMANDS", {k: v for k, v in startup._COMMANDS.items() if "look up" not in k})
    out = tmp_path / "out.json"
    assert main(["startup", "--repeat", "1", "--json", str(out)]) == 0
    assert "ampgraph --help" in capsys.readouterr().out
    content = json.loads(out.read_text())
    assert content["commands"]["import numpy"]["wall_s"][0] > content["commands"]["nothing"]["cpu_s"][0] > 0
    assert [limit["most"] for limit in content["limits"]] == [0.2, 0.4]


def test_a_command_that_fails() -> None:
    with pytest.raises(RuntimeError, match=r"(?s)'it' failed: .*ZeroDivisionError"):
        startup._time("it", ("-c", "1/0"))


def test_a_limit_includes_its_value() -> None:
    assert Limit("x", 1, 1).ok
    assert not Limit("x", 1.01, 1).ok


def test_facts_of_the_machine() -> None:
    facts = machine()
    assert facts["python"] == ".".join(map(str, sys.version_info[:3]))
    assert facts["processor"]
    assert facts["versions"]["numpy"]


def test_peak_grows_with_what_is_allocated() -> None:
    before = peak()
    block = b"x" * (before + 50_000_000)
    assert peak() >= len(block)


@pytest.mark.tensorflow
def test_grappler_gives_a_result_of_the_same_size(tmp_path: Path) -> None:
    (workload,) = workloads.synthetic(["mixed"], [300], tmp_path)
    with Grappler(sys.executable, tmp_path / "log") as peer:
        policy = Policy.parse(rewrite._POLICIES[peer.mode])
        measured = rewrite._measure(workload, policy, peer, 1)
        with pytest.raises(RuntimeError, match=r"Grappler failed on missing\.pb"):
            peer.time(tmp_path / "missing.pb", [])
    assert measured["casts_after"] > 0
    assert measured["grappler"]["casts_after"] == measured["casts_after"]
    assert measured["grappler"]["nodes_after"] == measured["nodes_after"]
    assert 0 < measured["grappler"]["pass_ms"][0] < measured["grappler"]["whole_ms"][0]
    # The log says each time twice; it must be counted once.
    logged = re.findall(r"auto_mixed_precision\w*: .*time = ([\d.]+)ms", (tmp_path / "log").read_text())
    assert measured["grappler"]["pass_ms"] == [float(logged[0])]
    assert set(logged) == {logged[0]}
