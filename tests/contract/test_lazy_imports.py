"""Importing ampgraph loads none of the heavy packages it may use later."""

import json
import subprocess
import sys

import pytest

HEAVY = ("onnx", "google.protobuf", "ml_dtypes", "cupy", "click", "typer", "rich", "networkx", "tensorflow")


def _loaded(statement: str) -> set[str]:
    code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    return set(json.loads(output))


@pytest.mark.parametrize(
    "statement", ["import ampgraph", "import ampgraph.graph, ampgraph.lists, ampgraph.rewrite, ampgraph.kernels.compare"]
)
def test_import_loads_nothing_heavy(statement: str) -> None:
    loaded = _loaded(statement)
    assert "ampgraph" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_the_facade_alone_does_not_even_load_numpy() -> None:
    assert "numpy" not in _loaded("import ampgraph")


def test_a_name_loads_what_it_needs() -> None:
    assert "google.protobuf" in _loaded('from ampgraph.graph.formats.proto import message; message("GraphDef")')
