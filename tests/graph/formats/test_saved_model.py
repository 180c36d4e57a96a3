"""SavedModel folders: the graph is replaced, everything else carried over; complete or not at all."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from ampgraph.graph import FormatError, Graph, find_dtype
from ampgraph.graph.formats.files import load, save
from ampgraph.graph.formats.saved_model import read_saved_models
from ampgraph.graph.formats.tensorflow import parse, serialize

MODEL = Path(__file__).parents[2] / "data" / "formats" / "saved_model"


def message_of(folder: Path) -> Any:
    return parse("SavedModel", (folder / "saved_model.pb").read_bytes(), text=False)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_graph() -> None:
    graph = load(MODEL)
    call = graph.node("StatefulPartitionedCall")
    assert graph.output_names == ["n", "y"]
    assert graph.outputs == call.outputs
    assert call.schema is not None
    assert graph.attributes["preserved"] == [
        "NoOp", "StatefulPartitionedCall", "StatefulPartitionedCall_1", "StatefulPartitionedCall_2", "asset_path_initializer",
        "saver_filename", "serving_default_x",
    ]  # fmt: skip
    loop = next(node for body in graph.functions.values() for node in body.nodes if node.op_type == "While")
    assert loop.attributes["body"].name in graph.functions


def test_all_but_the_fingerprint_is_carried_over(tmp_path: Path) -> None:
    target = tmp_path / "out"
    save(load(MODEL).copy(), target)
    before, after = contents(MODEL), contents(target)
    before.pop("fingerprint.pb")
    assert parse("SavedModel", before.pop("saved_model.pb"), text=False) == parse(
        "SavedModel", after.pop("saved_model.pb"), text=False
    )
    assert after == before
    assert set(after) == {"assets/vocab.txt", "variables/variables.index", "variables/variables.data-00000-of-00001"}
    assert os.listdir(tmp_path) == ["out"]


def test_a_changed_graph_replaces_the_old_one(tmp_path: Path) -> None:
    graph = load(MODEL)
    body = next(body for body in graph.functions.values() if body.has_node("MatMul"))
    body.node("MatMul").types = {"T": find_dtype("float16")}
    save(graph, tmp_path / "out")
    functions = message_of(tmp_path / "out").meta_graphs[0].graph_def.library.function
    changed = next(function for function in functions if function.signature.name == body.name)
    assert [node.attr["T"].type for node in changed.node_def if node.op == "MatMul"] == [19]


def test_named_outputs() -> None:
    graph = load(MODEL, outputs=["w/Read/ReadVariableOp"])
    assert graph.outputs == [graph.node("w/Read/ReadVariableOp").outputs[0]]
    assert "serving_default_x" in graph.attributes["preserved"]


def change(tmp_path: Path) -> tuple[Path, Any]:
    """Return a copy of the model whose message can be changed, and the message."""
    folder = tmp_path / "in"
    shutil.copytree(MODEL, folder)
    return folder, message_of(folder)


def store(folder: Path, proto: Any) -> None:
    (folder / "saved_model.pb").write_bytes(serialize(proto))


def test_tags_choose_the_meta_graph(tmp_path: Path) -> None:
    folder, proto = change(tmp_path)
    proto.meta_graphs.add().CopyFrom(proto.meta_graphs[0])
    second = proto.meta_graphs[1]
    second.meta_info_def.tags.append("gpu")
    del second.graph_def.node[:]
    second.ClearField("signature_def")
    store(folder, proto)
    with pytest.raises(FormatError, match=r"which has: serve; gpu,serve. Received: no tags"):
        load(folder)
    with pytest.raises(FormatError, match=r"Received: tags \['tpu'\]"):
        load(folder, tags=["tpu"])
    assert len(load(folder, tags=["serve"])) > 0
    graph = load(folder, tags=["serve", "gpu"])
    assert len(graph) == 0
    graph.add("NoOp", name="new")
    save(graph, tmp_path / "out")
    first, second = message_of(tmp_path / "out").meta_graphs
    assert [node.name for node in second.graph_def.node] == ["new"]
    assert first == proto.meta_graphs[0]


def test_several_signatures_and_kinds_of_outputs(tmp_path: Path) -> None:
    folder, proto = change(tmp_path)
    other = proto.meta_graphs[0].signature_def["other"].outputs["sparse"].coo_sparse
    other.values_tensor_name = other.indices_tensor_name = "StatefulPartitionedCall:1"
    other.dense_shape_tensor_name = "StatefulPartitionedCall:0"
    composite = proto.meta_graphs[0].signature_def["other"].outputs["ragged"].composite_tensor
    composite.components.add().name = "saver_filename:0"
    store(folder, proto)
    assert load(folder).output_names == [
        "other/ragged", "other/sparse/0", "other/sparse/1", "other/sparse/2", "serving_default/n", "serving_default/y"
    ]  # fmt: skip


def test_collections_are_preserved(tmp_path: Path) -> None:
    folder, proto = change(tmp_path)
    meta = proto.meta_graphs[0]
    meta.collection_def["train_op"].node_list.value.append("w/Read/ReadVariableOp:0")
    # VariableDef with variable_name (1) and snapshot_name (3), in wire format; then something that is none.
    meta.collection_def["variables"].bytes_list.value.extend([b"\x0a\x08Variable\x1a\x0fVariable/Read:0", b"\xff"])
    store(folder, proto)
    assert {"w/Read/ReadVariableOp", "Variable"} <= set(load(folder).attributes["preserved"])


def test_text_form(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "saved_model.pbtxt").write_text('meta_graphs { graph_def { node { name: "a" op: "NoOp" } } }')
    save(load(folder), tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["saved_model.pbtxt"]
    assert (tmp_path / "out" / "saved_model.pbtxt").read_text() == (
        'meta_graphs {\n  graph_def {\n    node {\n      name: "a"\n      op: "NoOp"\n    }\n  }\n}\n'
    )


@pytest.mark.parametrize("tags", [[], ["serve"]])
def test_meta_graphs_whose_tags_do_not_tell_them_apart(tmp_path: Path, tags: list[str]) -> None:
    source = two_meta_graphs(tmp_path / "two")
    proto = message_of(source)
    for meta in proto.meta_graphs:
        meta.meta_info_def.tags[:] = tags
    store(source, proto)
    graphs = read_saved_models(source, outputs=["saver_filename"])
    assert [graph.output_names for graph in graphs] == [["saver_filename"]] * 2
    graphs[1].add("NoOp", name="marker")
    save(graphs, tmp_path / "out")
    assert [graph.has_node("marker") for graph in read_saved_models(tmp_path / "out")] == [False, True]
    proto.ClearField("meta_graphs")
    store(source, proto)
    with pytest.raises(FormatError, match="The SavedModel holds no meta graph"):
        read_saved_models(source)


@pytest.mark.parametrize("name", ["out", "out.fp16", "out.v1/", "out.pb/"])
def test_folders_may_have_dots_in_their_names(tmp_path: Path, name: str) -> None:
    save(load(MODEL), f"{tmp_path}/{name}")
    assert len(load(tmp_path / name)) == len(load(MODEL))


def test_the_file_in_the_folder_is_not_the_model(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=f"saved_model.pb: This file is one part of a SavedModel.*: {MODEL}$"):
        load(MODEL / "saved_model.pb")
    save(Graph("g"), tmp_path / "saved_model.pb", format="text")
    assert len(load(tmp_path / "saved_model.pb", format="text")) == 0


def test_no_saved_model(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=f"{tmp_path}: The folder holds no saved_model.pb"):
        load(tmp_path)
    (tmp_path / "saved_model.pb").write_bytes((MODEL / "saved_model.pb").read_bytes()[:5000])
    with pytest.raises(FormatError, match=r"This is not a SavedModel .* cut off"):
        load(tmp_path)
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(FormatError, match="which has: none"):
        load(tmp_path)


def test_signatures_must_fit(tmp_path: Path) -> None:
    folder, proto = change(tmp_path)
    proto.meta_graphs[0].signature_def["serving_default"].outputs["y"].name = "gone:0"
    store(folder, proto)
    with pytest.raises(FormatError, match="no node 'gone', which was named as an output"):
        load(folder)


def test_only_saved_models_become_saved_models(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="Only a graph that was loaded from a SavedModel"):
        save(Graph("g"), tmp_path / "out")
    assert os.listdir(tmp_path) == []


def test_targets_in_use(tmp_path: Path) -> None:
    folder, _ = change(tmp_path)
    graph = load(folder)
    for overlapping in (folder, folder / "sub", tmp_path):
        with pytest.raises(FormatError, match="overlaps the SavedModel"):
            save(graph, overlapping, format="saved_model", overwrite=True)
    target = tmp_path / "out"
    target.mkdir()
    save(graph, target)  # an empty folder is free
    with pytest.raises(FormatError, match="already holds a SavedModel"):
        save(graph, target)
    (target / "stale").write_text("x")
    save(graph, target, overwrite=True)
    assert not (target / "stale").exists()
    (target / "saved_model.pb").unlink()
    with pytest.raises(FormatError, match="neither empty nor a SavedModel"):
        save(graph, target, overwrite=True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(FormatError, match="The target is a file"):
        save(graph, tmp_path / "file", overwrite=True)
    assert sorted(os.listdir(tmp_path)) == ["file", "in", "out"]


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    folder, _ = change(tmp_path)
    (tmp_path / "secret").write_text("x")
    (folder / "assets" / "inside").symlink_to(folder / "assets" / "vocab.txt")
    save(load(folder), tmp_path / "fine")
    assert not (tmp_path / "fine" / "assets" / "inside").is_symlink()
    assert (tmp_path / "fine" / "assets" / "inside").read_bytes() == (folder / "assets" / "vocab.txt").read_bytes()
    for link, target in (("a", tmp_path / "secret"), ("b", tmp_path), ("c", Path("nowhere"))):
        (folder / "assets" / link).symlink_to(target)
        with pytest.raises(FormatError, match=f"assets/{link} is no regular file inside the SavedModel"):
            save(load(folder), tmp_path / "out")
        (folder / "assets" / link).unlink()
    assert sorted(os.listdir(tmp_path)) == ["fine", "in", "secret"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("where", ["copyfile", "rename"])
def test_an_old_model_survives_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, error: BaseException) -> None:
    target = tmp_path / "out"
    save(load(MODEL), target)
    before = contents(target)
    rename = Path.rename
    failed: list[Any] = []

    def fail(source: Any, destination: Any) -> None:
        if where == "rename" and (destination != target or failed):  # the old model moves away, and back
            rename(source, destination)
        else:
            failed.append(source)
            raise error

    monkeypatch.setattr(*((Path, "rename", fail) if where == "rename" else (shutil, "copyfile", fail)))
    with pytest.raises((FormatError, KeyboardInterrupt), match=r"cannot be written|^$"):
        save(load(MODEL), target, overwrite=True)
    assert failed
    assert contents(target) == before
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.tensorflow
def test_tensorflow_runs_what_was_saved(tmp_path: Path) -> None:
    import tensorflow as tf  # type: ignore[import-untyped]

    save(load(MODEL), tmp_path / "out")
    x = tf.ones([1, 4])
    before, after = (tf.saved_model.load(str(folder)).signatures["serving_default"](x=x) for folder in (MODEL, tmp_path / "out"))
    assert before["y"].numpy().tolist() == after["y"].numpy().tolist()


def two_meta_graphs(folder: Path) -> Path:
    """Make a SavedModel whose graph stands there twice, for serving and for training."""
    shutil.copytree(MODEL, folder)
    proto = message_of(folder)
    other = proto.meta_graphs.add()
    other.CopyFrom(proto.meta_graphs[0])
    other.meta_info_def.tags.append("train")
    (folder / "saved_model.pb").write_bytes(serialize(proto))
    return folder


def test_all_meta_graphs_can_be_replaced_at_once(tmp_path: Path) -> None:
    source = two_meta_graphs(tmp_path / "two")
    graphs = read_saved_models(source)
    both = (["serve"], ["serve", "train"])
    for graph in graphs:
        graph.add("NoOp", name="marker")
    save(graphs, tmp_path / "both")
    assert [load(tmp_path / "both", tags=tags).has_node("marker") for tags in both] == [True, True]
    save(graphs[1], tmp_path / "second")
    assert [load(tmp_path / "second", tags=tags).has_node("marker") for tags in both] == [False, True]
    with pytest.raises(FormatError, match="must have been loaded from the same SavedModel"):
        save([graphs[0], load(MODEL)], tmp_path / "mixed")
    with pytest.raises(FormatError, match=r"holds one graph\. Received: 2 graphs"):
        save(graphs, tmp_path / "both.pb")
