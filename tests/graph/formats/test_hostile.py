"""Files and graphs that nobody should make: refused in a sentence, without gigabytes of memory."""

import copy
import gzip
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ampgraph.graph.diff import structurally_equal
from ampgraph.graph.dtypes import float32
from ampgraph.graph.errors import FormatError, GraphError, ParseError
from ampgraph.graph.formats import files
from ampgraph.graph.formats.files import load, save
from ampgraph.graph.graph import Graph
from ampgraph.graph.text import parse_graph
from ampgraph.graph.types import Tensor
from ampgraph.graph.verify import violations

SPLAT = """
node {
  name: "c"
  op: "Const"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: %d } } %s } } }
}
"""


def _constant(name: str = "c", op: str = "NoOp") -> Graph:
    graph = Graph()
    graph.add(op, name=name, outputs=0)
    return graph


def _function(name: str = "x") -> Graph:
    graph = Graph()
    body = graph.functions["f"] = Graph("f", graph.functions)
    body.outputs = [body.add_input(name, None)]
    body.output_names = ["y"]
    return graph


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        pytest.param(_constant("a:1"), r"node 'a:1' \(NoOp\) of graph 'graph': its name has ':'", id="colon"),
        pytest.param(_constant("^a"), r"node '\^a' \(NoOp\) of graph 'graph': its name has ':' or starts", id="caret"),
        pytest.param(_constant("a", ""), r"Node 'a' of graph 'graph' has no op", id="op"),
        pytest.param(_function(), r"result 'x' of function 'f' has no known dtype", id="dtype"),
        pytest.param(_function("x:1"), r"node 'x:1' \(Input\) of function 'f': its name has ':'", id="argument"),
    ],
)
@pytest.mark.parametrize("suffix", ["pb", "pbtxt"])
def test_nothing_is_written_that_cannot_be_read(tmp_path: Path, graph: Graph, message: str, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    with pytest.raises(FormatError, match=message):
        save(graph, path)
    assert not path.exists()


@pytest.mark.parametrize("name", ["a.pb", "a.pbtxt", "a.json", "a.txt", "a.pb.gz", "a.pb.GZ"])
def test_a_graph_of_nothing_is_saved_and_loaded(tmp_path: Path, name: str) -> None:
    save(Graph(), tmp_path / name)
    assert (tmp_path / name).stat().st_size
    assert structurally_equal(load(tmp_path / name), Graph())


def test_half_characters_are_refused_when_read_and_when_written(tmp_path: Path) -> None:
    graph = _constant("a\ud800")
    for kind in ("pb", "pbtxt", "json", "text"):
        with pytest.raises(FormatError, match=r"no Unicode.*\\\\?u\{?d800"):
            save(graph, tmp_path / "a", format=kind)
    save(_constant("a\U0001f600"), tmp_path / "a.json")
    text = (tmp_path / "a.json").read_text()
    assert next(iter(load(tmp_path / "a.json").nodes)).name == "a\U0001f600"
    (tmp_path / "a.json").write_text(text.replace("\\ude00", ""))
    with pytest.raises(FormatError, match="no Unicode"):
        load(tmp_path / "a.json")
    for wrong in (r'graph g() { tf.NoOp() name="\u{d800}" }', 'graph g() { tf.NoOp() name="\ud800" }'):
        with pytest.raises(ParseError, match="d800"):
            parse_graph(wrong)


@pytest.mark.parametrize("name", ["a.pbtxt.gz", "a.txt.gz", "a.json.gz", "a.pb.gz"])
def test_bombs_are_refused_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(files, "MAX_UNPACKED", 2**20)
    (tmp_path / name).write_bytes(gzip.compress(b" " * 2**23))
    with pytest.raises(FormatError, match=r"more than 1048576 bytes, unpacked from \d+\. If you trust it, unpack it first"):
        load(tmp_path / name)


def test_what_packs_well_but_is_small_is_read(tmp_path: Path) -> None:
    save(_constant(), tmp_path / "a.pbtxt")
    data = (tmp_path / "a.pbtxt").read_bytes()
    (tmp_path / "a.pbtxt.gz").write_bytes(gzip.compress(data + b"\n" * 10_000_000))
    assert len(load(tmp_path / "a.pbtxt.gz")) == 1
    (tmp_path / "a.pbtxt.gz").write_bytes(gzip.compress(b"\n" * 10_000_000 + data))
    with pytest.raises(FormatError, match="blanks in a row"):
        load(tmp_path / "a.pbtxt.gz")


@pytest.mark.parametrize("values", ["float_val: 2.5", ""])
def test_one_stored_value_stays_one(tmp_path: Path, values: str) -> None:
    (tmp_path / "a.pbtxt").write_text(SPLAT % (4_000_000_000, values))
    graph = load(tmp_path / "a.pbtxt")
    save(graph, tmp_path / "a.json")
    assert (tmp_path / "a.json").stat().st_size < 1000
    again = load(tmp_path / "a.json")
    assert structurally_equal(graph, again)
    array = again.node("c").attr("value").array()
    assert (array.shape, array.strides, array[7]) == ((4_000_000_000,), (0,), 2.5 if values else 0)
    with pytest.raises(FormatError, match="cannot hold a constant of 16000000000 bytes"):
        save(again, tmp_path / "b.pb")


def test_two_stored_values_do_not_become_billions(tmp_path: Path) -> None:
    (tmp_path / "a.pbtxt").write_text(SPLAT % (4_000_000_000, "float_val: 1 float_val: 2"))
    with pytest.raises(GraphError, match="stores 2 values only"):
        load(tmp_path / "a.pbtxt").node("c").attr("value").array()


def test_one_stored_string_stays_one(tmp_path: Path) -> None:
    data = np.broadcast_to(np.array(b"ab", object), (1_000_000_000,))
    graph = Graph()
    graph.outputs = graph.add("Const", attributes={"value": Tensor.of(data, "string")}, name="c").outputs[:]
    graph.output_names = ["c"]
    for name in ("a.json", "a.pb"):
        save(graph, tmp_path / name)
        assert (tmp_path / name).stat().st_size < 1000
        assert structurally_equal(graph, load(tmp_path / name))


def test_splats_differ_from_others() -> None:
    def splat(value: Any, size: int = 1000) -> Tensor:
        return Tensor.of(np.broadcast_to(np.float32(value), (size,)))

    assert splat(1) == splat(1)
    assert splat(1) != splat(2)
    assert splat(1) != splat(1, 999)
    assert splat(0.0) != splat(-0.0)
    assert splat(1) == Tensor.of(np.ones(1000, np.float32))


def test_damaged_constants_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.pbtxt").write_text(SPLAT % (3, r'tensor_content: "\000\000"'))
    graph = load(tmp_path / "a.pbtxt")
    with pytest.raises(GraphError, match=r"Node 'c' \(Const\): .*needs 12 bytes but stores 2"):
        str(graph)
    assert list(violations(graph)) == ["[constant-matches] The tensor of 'c' (Const) needs 12 bytes for shape [3], but stores 2."]


def test_deep_graphs_are_copied_and_pickled() -> None:
    graph = Graph()
    value = graph.add("Placeholder", types={"dtype": float32}, name="x").outputs[0]
    for _ in range(3000):
        value = graph.add("Relu", [value]).outputs[0]
    graph.outputs, graph.output_names = [value], ["y"]
    for twin in (copy.copy(graph), copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        assert twin is not graph
        assert twin.outputs[0] is not value
        assert structurally_equal(twin, graph, order=True)


def test_a_pickled_function_is_one() -> None:
    body = parse_graph("graph g() {}\nfunction f(%x: f32) { return y=%x }").functions["f"]
    again = pickle.loads(pickle.dumps(body))
    assert (again.is_function, again.output_names) == (True, ["y"])


def test_what_is_no_operand_or_dtype() -> None:
    graph = Graph()
    node = graph.add("Placeholder", types={"dtype": "float32"}, name="x")  # type: ignore[dict-item]
    assert node.outputs[0].dtype is float32
    for wrong in (node, node.outputs[0], "x", [node], ["x"]):
        with pytest.raises(GraphError, match=r"Relu are a list of values, such as \[node\.outputs\[0\]\]"):
            graph.add("Relu", wrong)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="Did you mean 'float32'"):
        graph.add("Placeholder", types={"dtype": "floaat32"})  # type: ignore[dict-item]
    relu = graph.add("Relu", node.outputs)
    for slot in (1, -1):
        with pytest.raises(GraphError, match=rf"'Relu' \(Relu\) has 1 inputs. Received: slot {slot}"):
            graph.set_input(relu, slot, node.outputs[0])
    assert len(graph) == 2


def test_arguments_of_load_and_save(tmp_path: Path) -> None:
    save(_constant(), tmp_path / "a.pb")
    with pytest.raises(FormatError, match=r"outputs=\['y'\]"):
        load(tmp_path / "a.pb", outputs="y")
    with pytest.raises(FormatError, match=r"tags=\['serve'\]"):
        load(tmp_path, tags="serve")
    for name in ("a\0.pb", ""):
        with pytest.raises(FormatError, match="A file name is not empty"):
            load(name)
        with pytest.raises(FormatError, match="A file name is not empty"):
            save(_constant(), name)
