"""Inferred shapes against what TensorFlow infers, and against what came out when it ran the graphs."""

import gzip
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from ampgraph.graph import Graph, Shape
from ampgraph.graph.formats import files
from ampgraph.graph.formats.tensorflow import read_graph_def
from ampgraph.graph.infer import infer

DATA = Path(__file__).parents[2] / "data" / "infer"

#: Sizes that depend on the data: rows that pass a test, segments, distinct elements, parts of a partition, a range of floats,
#: lists that grow in a loop or hold elements of several shapes.
DEPENDS_ON_DATA = {
    "DynamicPartition",
    "Range.f",
    "SegmentMean",
    "SegmentProd",
    "SegmentSum",
    "TensorList.push_batch_split",
    "Unique",
    "Where",
    "v1.while_shape_growing",
    "v2.tensorlist_ops",
}


def fits(shape: Shape, dims: list[int]) -> bool:
    """Whether what is known of ``shape`` agrees with these sizes."""
    known = shape.dims
    return known is None or (len(known) == len(dims) and all(a is None or a == b for a, b in zip(known, dims, strict=True)))


def infer_for(graph: Graph, feeds: dict[str, list[int]]) -> None:
    """Infer the shapes of ``graph`` when it is fed tensors of these shapes."""
    for name, dims in feeds.items():
        graph.value(name).shape = Shape(dims)
    infer(graph)


def check_run(case: dict[str, Any], graph: Graph) -> None:
    """What came out of a run has the inferred shapes, and these are known except where they depend on data."""
    infer_for(graph, case["feeds"])
    for name, dims in case["fetches"].items():
        shape = graph.value(name).shape
        assert fits(shape, dims), f"{case['id']}: {name} is inferred as {shape} and was {dims}"
        if case["id"] not in DEPENDS_ON_DATA:
            assert shape.dims == tuple(dims), f"{case['id']}: {name} is known only as {shape} and was {dims}"


def test_shapes_of_runs() -> None:
    with tarfile.open(DATA / "run.tar.gz") as archive:
        content = {member.name: file.read() for member in archive if (file := archive.extractfile(member))}
    cases = json.loads(content["cases.json"])
    assert len(cases) == 533
    for case in cases:
        check_run(case, read_graph_def(content[f"{case['id']}.pb"]))


@pytest.mark.goldens
def test_shapes_of_all_runs() -> None:
    folder = Path(os.environ["AMPGRAPH_GOLDENS"]) / "exec"
    for line in (folder / "manifest.jsonl").read_text().splitlines():
        case = json.loads(line)
        for key in ("feeds", "fetches"):
            case[key] = {tensor["name"]: tensor["shape"] for tensor in case[key]}
        check_run(case, files.load(folder / case["pb"]))


STATIC = json.loads(gzip.decompress((DATA / "static_shapes.json.gz").read_bytes()))


@pytest.mark.parametrize("model", sorted(STATIC))
def test_at_least_what_tensorflow_infers(model: str) -> None:
    graph = files.load(DATA / f"{model}.pb.gz")
    infer(graph)
    for name, dims in STATIC[model].items():
        if dims is None:
            continue
        value = graph.value(name)
        known = value.shape.dims
        assert known is not None, f"{value} of {value.producer} has no rank, TensorFlow says {dims}"
        assert len(known) == len(dims), f"{value} of {value.producer} is {value.shape}, TensorFlow says {dims}"
        for ours, theirs in zip(known, dims, strict=True):
            assert theirs in (-1, ours), f"{value} of {value.producer} is {value.shape}, TensorFlow says {dims}"
