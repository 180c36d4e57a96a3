from collections import Counter
from pathlib import Path

import pytest

from ampgraph.graph import Graph
from ampgraph.graph.formats.files import load
from ampgraph.graph.verify import verify
from bench.synthetic import KINDS, write_synthetic


def _make(kind: str, nodes: int, folder: Path) -> Graph:
    path = folder / f"{kind}_{nodes}.pb"
    result = write_synthetic(kind, nodes, path)
    graph = load(path, outputs=[result])
    verify(graph)
    return graph


@pytest.mark.parametrize("kind", KINDS)
def test_graphs_verify_and_have_about_the_size_asked_for(kind: str, tmp_path: Path) -> None:
    graph = _make(kind, 1000, tmp_path)
    assert abs(len(list(graph.nodes)) - 1000) <= 5
    assert len(graph.outputs) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_same_arguments_give_the_same_file(kind: str, tmp_path: Path) -> None:
    write_synthetic(kind, 300, tmp_path / "a.pb")
    write_synthetic(kind, 300, tmp_path / "b.pb")
    write_synthetic(kind, 310, tmp_path / "c.pb")
    assert (tmp_path / "a.pb").read_bytes() == (tmp_path / "b.pb").read_bytes()
    assert (tmp_path / "a.pb").read_bytes() != (tmp_path / "c.pb").read_bytes()


def test_character_of_each_kind(tmp_path: Path) -> None:
    ops = {kind: Counter(node.op_type for node in _make(kind, 1000, tmp_path).nodes) for kind in KINDS}
    assert ops["chain"]["MatMul"] == ops["chain"]["Relu"] == ops["chain"]["AddV2"] > 200
    assert ops["chain"]["Softmax"] == ops["chain"]["MatMul"] // 8
    assert ops["wide"]["AddN"] == 1
    assert ops["tensorlist"]["TensorListPushBack"] == ops["tensorlist"]["MatMul"] > 400
    assert {"MatMul", "Exp", "ConcatV2", "Rsqrt", "Sin", "Mean"} <= ops["mixed"].keys()


@pytest.mark.parametrize(("kind", "nodes", "match"), [("deep", 1000, "no kind 'deep'.*chain"), ("chain", 5, "at least 100.*5")])
def test_arguments_that_make_no_sense(kind: str, nodes: int, match: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=match):
        write_synthetic(kind, nodes, tmp_path / "x.pb")
