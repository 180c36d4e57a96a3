import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from bench.__main__ import main
from bench.ops.cases import CASES, Case, build
from bench.ops.casts import limits, make_values


def test_reductions_and_casts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["ops", "--only", "reduction", "casts", "--sizes", "300", "--repeat", "1"]
    assert main([*arguments, "--json", str(tmp_path / "out.json"), "--markdown", str(tmp_path / "out.md")]) == 0
    content = json.loads((tmp_path / "out.json").read_text())
    assert [node["name"] for node in content["nodes"]] == [case.name for case in CASES if case.group == "reduction"]
    for node in content["nodes"]:
        assert min(len(node["sides"][dtype]["cpu"]) for dtype in ("float32", "float16")) == 1
    assert {row["count"] for row in content["casts"]} == {300}
    assert min(row[key] for row in content["casts"] for key in ("ours", "theirs", "normal")) > 0
    assert content["limits"] == []
    page = (tmp_path / "out.md").read_text()
    assert re.search(r"^\| float32 → float16 \| half subnormal( \| [\d,]+\.\d+){4} \|$", page, re.MULTILINE)
    assert "Casts of 300 elements" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--repeat", "0"], "--repeat is at least 1. Received: 0"),
        (["--sizes", "5", "0"], "--sizes is at least 1. Received: [5, 0]"),
    ],
)
def test_bad_arguments_end_with_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", *arguments]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.op}-{case.name}")
def test_nodes_run_in_both_dtypes(case: Case) -> None:
    results = {}
    for dtype in ("float32", "float16"):
        graph, feeds = build(case, dtype)
        given = {value.name: feeds[value.name].astype(dtype) for value in graph.inputs}
        results[dtype] = ag.compile(graph)(given)["y"]
    wide, low = results["float32"], results["float16"].astype(np.float64)
    assert wide.shape == low.shape
    if case.op != "ArgMax":
        assert np.abs(low - wide).max() < 2e-2 * np.abs(wide).max()
    if case.group == "convolution" and "strides" not in case.attributes:
        assert wide.shape[2:] == case.shapes[0][2:]


def test_values_to_cast_are_what_they_are_called() -> None:
    def shares(mix: str, dtype: str = "float32") -> tuple[float, ...]:
        half = np.abs(make_values(1000, mix, dtype).astype(np.float16).astype(np.float64))
        return tuple(float(np.mean(x)) for x in (half == 0, (half > 0) & (half < 2**-14), np.isinf(half), np.isnan(half)))

    with np.errstate(all="ignore"):
        assert shares("normal") == shares("normal", "float64") == (0, 0, 0, 0)
        assert shares("1% subnormal")[1] == 0.01
        assert shares("half subnormal")[1] == 0.5
        assert shares("subnormal")[1] == 1
        assert shares("half to 0") == (0.5, 0, 0, 0)
        assert shares("half infinite") == shares("half infinite", "float64") == (0, 0, 0.5, 0)
        assert shares("NaN") == (0, 0, 0, 1)


def test_the_limit_is_that_of_the_slowest_values() -> None:
    def row(values: str, ours: float, count: int = 100_000, cast: str = "float32 → float16") -> dict[str, Any]:
        return {"cast": cast, "values": values, "count": count, "ours": ours, "normal": 2.0}

    rows = [row("normal", 1), row("NaN", 3), row("few", 9, 10), row("other", 9, cast="grid")]
    (limit,) = limits(rows)
    assert (limit.value, limit.ok) == (1.5, False)
    assert "NaN" in limit.what
