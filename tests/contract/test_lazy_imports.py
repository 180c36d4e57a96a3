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
    "statement",
    ["import ampgraph", "import ampgraph.graph, ampgraph.lists, ampgraph.rewrite, ampgraph.kernels.compare, ampgraph.train"],
)
def test_import_loads_nothing_heavy(statement: str) -> None:
    loaded = _loaded(statement)
    assert "ampgraph" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_the_facade_alone_does_not_even_load_numpy() -> None:
    assert "numpy" not in _loaded("import ampgraph")


def test_a_name_loads_what_it_needs() -> None:
    assert "google.protobuf" in _loaded('from ampgraph.graph.formats.proto import message; message("GraphDef")')


def test_rewriting_a_model_loads_neither_networkx_nor_rich() -> None:
    """Not even where the version of its ops is raised."""
    code = """if True:
    from onnx import parser
    import ampgraph
    from ampgraph.graph.formats.onnx import read_model
    text = 'g (float[2,4] x, float[4,4] w) => (float[2,4] y) { a = MatMul(x, w)  b, m = Dropout(a)  y = Softmax(b) }'
    model = parser.parse_model('<ir_version: 4, opset_import: ["": 9]>' + text)
    result = ampgraph.auto_mixed_precision(read_model(model), dtype="bfloat16")
    assert result.modified and result.graph.opsets[""] > 9
    str(result.report)
    """
    assert _loaded(code).isdisjoint({"networkx", "rich", "click", "onnx.reference"})
