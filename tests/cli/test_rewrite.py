"""``ampgraph rewrite``: options, formats, streams, reports."""

import json
from pathlib import Path

import pytest

import ampgraph as ag

from .conftest import Run, dtypes

LOW = {"x": "float32", "w": "float32", "h": "float16", "relu": "float16", "logits": "float16", "exp": "float32", "y": "float32"}


def test_rewrites_a_file_and_says_what_it_did(run: Run, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.pb"
    result = run("rewrite", model, "-o", out)
    assert dtypes(out) == LOW
    assert "7 before, 3 of them now compute in float16, 3 casts added" in result.stdout
    assert "\nmemory " in result.stdout  # shapes were inferred, so that sizes are known
    assert result.stdout.endswith(f"written   {out}\n")
    assert result.stderr == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.pb", "out.pb"]


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        pytest.param(["--dtype", "bfloat16"], dict.fromkeys(("h", "relu", "logits"), "bfloat16"), id="dtype"),
        pytest.param(["--deny-op", "MatMul"], dict.fromkeys(("h", "relu", "logits"), "float32"), id="deny-op"),
        pytest.param(["--edit", "Relu=deny"], {"relu": "float32"}, id="edit"),
        pytest.param(["--allow-op", "Exp"], {"exp": "float16"}, id="allow-op"),
        pytest.param(["--allow-node", "ex."], {"exp": "float16"}, id="allow-node"),
        pytest.param(["--deny-node", "h|logits"], dict.fromkeys(("h", "relu", "logits"), "float32"), id="deny-node"),
        pytest.param(["--float-node", "h|logits"], dict.fromkeys(("h", "relu", "logits"), "float32"), id="float-node"),
        pytest.param(["--preserve", "logits"], {"logits": "float32"}, id="preserve"),
        pytest.param(["--output", "logits"], {"logits": "float32"}, id="output"),
        pytest.param(["--output", "logits", "--no-keep-io"], {}, id="no-keep-io"),
        pytest.param(["--target", "gpu:6.1"], dict.fromkeys(("h", "relu", "logits"), "float32"), id="old-gpu"),
        pytest.param(["--target", "gpu:6.1", "--ignore-performance"], {}, id="ignore-performance"),
        pytest.param(["--preset", "torch-autocast", "--deny-op", "Relu"], {"relu": "float32"}, id="preset"),
        pytest.param(["--level", "unsafe_force_all"], {"exp": "float16"}, id="level"),
    ],
)
def test_options_reach_the_policy(run: Run, model: Path, tmp_path: Path, options: list[str], changed: dict[str, str]) -> None:
    out = tmp_path / "out.pb"
    run("rewrite", model, "-o", out, *options)
    assert dtypes(out) == {**LOW, **changed}


def test_a_policy_file_holds_where_no_option_says_otherwise(run: Run, model: Path, tmp_path: Path) -> None:
    policy, out = tmp_path / "policy.toml", tmp_path / "out.pb"
    policy.write_text('dtype = "bfloat16"\nops = ["Relu=deny"]\n')
    run("rewrite", model, "-o", out, "--policy", policy)
    assert dtypes(out) == {**LOW, "h": "bfloat16", "relu": "float32", "logits": "bfloat16"}
    run("rewrite", model, "-o", out, "--policy", policy, "--dtype", "float16", "--allow-op", "Exp")
    assert dtypes(out) == {**LOW, "relu": "float32", "exp": "float16"}


def test_a_policy_file_wins_over_the_environment_even_with_a_default(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_IGNORE_PERFORMANCE", "1")
    policy = tmp_path / "policy.toml"
    policy.write_text("ignore_performance = false\n")
    assert "ignore_performance = true" in run("policy", "--env").stdout
    assert "ignore_performance = false" in run("policy", "--env", "--policy", policy).stdout
    assert "ignore_performance = true" in run("policy", "--env", "--policy", policy, "--ignore-performance").stdout


def test_a_dry_run_writes_nothing(run: Run, model: Path, tmp_path: Path) -> None:
    summary = run("rewrite", model, "-o", tmp_path / "out.pb").stdout
    (tmp_path / "out.pb").unlink()
    for arguments in ([], ["-o", tmp_path / "out.pb"], ["-o", "-"]):
        assert summary.startswith(run("rewrite", model, "--dry-run", *arguments).stdout.rstrip("\n"))
    assert json.loads(run("rewrite", model, "--dry-run", "--json").stdout)["modified"]
    assert [path.name for path in tmp_path.iterdir()] == ["model.pb"]


def test_the_environment_is_followed_only_when_asked(
    run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_ALLOWLIST_REMOVE", "MatMul")
    out = tmp_path / "out.pb"
    run("rewrite", model, "-o", out)
    assert dtypes(out) == LOW
    run("rewrite", model, "-o", out, "--env")
    assert dtypes(out) == {**LOW, "h": "float32", "relu": "float32", "logits": "float32"}


def test_preset_grappler_on_a_cpu_in_float16_only_emulates(run: Run, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.pb"
    run("rewrite", model, "-o", out, "--preset", "grappler", "--target", "cpu")
    assert set(dtypes(out).values()) == {"float32"}
    assert len(ag.load(out)) > 7


@pytest.mark.parametrize("name", ["out.pb.gz", "out.pbtxt", "out.json", "out.txt"])
def test_every_format_holds_the_same_graph(run: Run, model: Path, tmp_path: Path, name: str) -> None:
    run("rewrite", model, "-o", tmp_path / "out.pb")
    run("rewrite", model, "-o", tmp_path / name)
    run("diff", tmp_path / "out.pb", tmp_path / name)
    assert dtypes(tmp_path / name) == LOW


def test_to_says_the_format_where_the_suffix_does_not(run: Run, model: Path, tmp_path: Path) -> None:
    for command in ("rewrite", "dump"):
        for option in ("--to", "--format"):
            run(command, model, "-o", tmp_path / "out.model", option, "text")
            assert (tmp_path / "out.model").read_text().startswith("graph graph() {")
            (tmp_path / "out.model").unlink()


def test_the_graph_goes_to_stdout_and_the_summary_to_stderr(run: Run, model: Path, tmp_path: Path) -> None:
    run("rewrite", model, "-o", tmp_path / "out.pb")
    result = run("rewrite", "-", "-o", "-", input=model.read_bytes())
    assert result.stdout_bytes == (tmp_path / "out.pb").read_bytes()
    assert "3 of them now compute in float16" in result.stderr


def test_report_gives_the_reason_of_every_node(run: Run, model: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    run("rewrite", model, "-o", tmp_path / "out.pb", "--report", report)
    data = json.loads(report.read_text())
    why = {decision["node"]: decision["why"] for decision in data["bodies"][0]["decisions"]}
    assert set(why) == set(LOW)
    assert "DenyList" in why["exp"]
    printed = run("rewrite", model, "-o", tmp_path / "out.pb", "--json")
    assert json.loads(printed.stdout) == data
    printed = run("rewrite", model, "-o", tmp_path / "out.pb", "--report", "-")
    assert json.loads(printed.stdout) == data


def test_stdout_takes_one_thing_only(run: Run, model: Path) -> None:
    assert "--report FILE" in run("rewrite", model, "-o", "-", "--json", code=2).stderr


def test_overrides_that_match_nothing_are_named(run: Run, model: Path, tmp_path: Path) -> None:
    result = run("rewrite", model, "-o", tmp_path / "out.pb", "--deny-node", "hed/.*")
    assert "note: override 'hed/.*=deny' matches no node of this graph" in result.stdout


def test_shapes_that_contradict_each_other_are_a_note(run: Run, tmp_path: Path) -> None:
    """The graph is type-correct; only running it would fail."""
    path = tmp_path / "model.txt"
    path.write_text(
        "graph g() {\n"
        "  %x: f32[8,4] = tf.Placeholder<dtype=f32>() {shape=shape[8,4]}\n"
        "  %y: f32 = tf.MatMul<T=f32>(%x, %x)\n"
        "  %z: f32 = tf.Neg<T=f32>(%y)\n"
        "  return %z\n}\n"
    )
    result = run("rewrite", path, "-o", tmp_path / "out.txt")
    assert "note: shapes are not known" in result.stderr
    assert dtypes(tmp_path / "out.txt")["y"] == "float16"


def test_a_saved_model_becomes_a_saved_model(run: Run, tmp_path: Path) -> None:
    source, out = tmp_path / "source", tmp_path / "out"
    _write_saved_model(source)
    result = run("rewrite", source, "-o", out)
    assert "3 of them now compute in float16" in result.stdout
    assert dtypes(out) == LOW
    assert (out / "variables" / "data").read_bytes() == b"weights"
    assert "already holds a SavedModel" in run("rewrite", source, "-o", out, code=1).stderr
    run("rewrite", source, "-o", out, "--overwrite", "--dtype", "bfloat16")
    assert dtypes(out)["h"] == "bfloat16"
    assert "cannot go to stdout" in run("rewrite", source, "-o", "-", code=2).stderr
    assert run("rewrite", source, "-o", "-", "--to", "text").stdout.startswith("graph")
    run("rewrite", source, "-o", tmp_path / "model.fp16")
    assert dtypes(tmp_path / "model.fp16") == LOW
    assert "Tags must choose" in run("rewrite", source, "-o", tmp_path / "other", "--tags", "train", code=1).stderr


def _write_saved_model(folder: Path) -> None:
    from ampgraph.graph.formats.proto import message
    from ampgraph.graph.formats.tensorflow import write_graph_def

    from .conftest import MODEL

    proto = message("SavedModel")()
    meta = proto.meta_graphs.add()
    meta.meta_info_def.tags.append("serve")
    meta.graph_def.CopyFrom(write_graph_def(ag.parse_graph(MODEL)))
    (folder / "variables").mkdir(parents=True)
    (folder / "variables" / "data").write_bytes(b"weights")
    (folder / "saved_model.pb").write_bytes(proto.SerializeToString())


def test_every_meta_graph_of_a_saved_model_is_rewritten(run: Run, tmp_path: Path) -> None:
    from tests.graph.formats.test_saved_model import two_meta_graphs

    source = two_meta_graphs(tmp_path / "two")
    assert run("rewrite", source, "-o", tmp_path / "half").stdout.count("now compute in float16") == 2
    for tags in (["serve"], ["serve", "train"]):
        graph = ag.load(tmp_path / "half", tags=tags)
        bodies = (graph, *graph.functions.values())
        assert any(str(node.types.get("T")) == "float16" for body in bodies for node in body.nodes)
    assert len(json.loads(run("rewrite", source, "-o", tmp_path / "again", "--json").stdout)) == 2
