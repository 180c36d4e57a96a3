"""Suffixes, compression, and files that appear complete or not at all."""

import gzip
import io
import os
from pathlib import Path
from typing import Any, Self

import pytest

from ampgraph.graph import FormatError, Graph, GraphError, find_dtype
from ampgraph.graph.formats import files
from ampgraph.graph.formats.files import encode, load, read_bytes, save
from ampgraph.rewrite import auto_mixed_precision

DATA = Path(__file__).parents[2] / "data" / "formats"
MODEL = DATA / "v2_nested_functions_raw.pb.gz"


def graph() -> Graph:
    result = Graph("g")
    x = result.add("Placeholder", name="x", types={"dtype": find_dtype("float32")})
    result.outputs = result.add("Relu", x.outputs, name="y").outputs
    result.output_names = ["y"]
    return result


@pytest.mark.parametrize("suffix", [".pb", ".pbtxt", ".json", ".txt", ".pb.gz", ".pbtxt.gz", ".json.gz", ".txt.gz", ".PB"])
def test_every_suffix(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"model.v1{suffix}"
    save(graph(), path)
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == suffix.endswith(".gz")
    again = load(path)
    assert [(node.name, node.op_type) for node in again.nodes] == [("x", "Placeholder"), ("y", "Relu")]
    assert again.output_names == ["y"]
    first = path.read_bytes()
    save(again, path)
    assert path.read_bytes() == first
    assert os.listdir(tmp_path) == [path.name]


def test_format_beats_suffix(tmp_path: Path) -> None:
    path = tmp_path / "model.xyz"
    save(graph(), str(path), format="json")
    assert path.read_bytes().startswith(b'{\n "format": "ampgraph"')
    assert len(load(path, format="json")) == 2


def test_real_model_through_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.pb"
    save(load(MODEL), path)
    assert load(path).functions.keys() == load(MODEL).functions.keys() != set()


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("a.pb", None, r"a\.pb cannot be read: No such file"),
        ("a.onn", b"", r"a\.onn: The suffix '\.onn' is of no known format. Known are \.onnx, \.pb, "),
        ("a", b"", "The suffix '' is of no known format.* --from on the command line"),
        ("a.onn", None, r"a\.onn cannot be read: No such file or directory"),
        ("a.pb", b"", r"a\.pb: The file is empty"),
        ("a.pb.gz", gzip.compress(b""), r"a\.pb\.gz: The file is empty"),
        ("a.pb", b"\xff\xff", r"a\.pb: This is not a GraphDef in protobuf's binary form"),
        ("a.pbtxt", b"node {", r"a\.pbtxt: This is not a GraphDef in protobuf's text form"),
        ("a.pbtxt", b"\xff", "This is not a GraphDef in protobuf's text form"),
        ("a.json", b"{", r"a\.json: This is not JSON"),
        ("a.json", b"\xff", "not a text file in UTF-8"),
        ("a.txt", b"grph", r"a\.txt: "),
        ("a.pb.gz", gzip.compress(b"abc" * 100)[:-9], "gzip file is damaged or cut off"),
        ("a.pb.gz", b"\x1f\x8b123", "gzip file is damaged or cut off"),
    ],
)
def test_unreadable_files(tmp_path: Path, name: str, content: bytes | None, error: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises((FormatError, GraphError), match=error) as caught:
        load(tmp_path / name)
    assert str(tmp_path) in str(caught.value)


def test_senseless_graphs_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "loop.pbtxt"
    path.write_text('node { name: "a" op: "Foo" input: "a" }')
    with pytest.raises(GraphError, match=r"loop\.pbtxt: .*cycle"):
        load(path)


def test_unknown_format_and_outputs(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"Unknown format 'jsn'; .* Did you mean 'json'"):
        load(MODEL, format="jsn")
    save(graph(), tmp_path / "a.json")
    with pytest.raises(FormatError, match="for TensorFlow files only"):
        load(tmp_path / "a.json", outputs=["x"])


def test_bombs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 10_000)
    assert read_bytes(io.BytesIO(gzip.compress(bytes(10_000)))) == bytes(10_000)
    for data in (bytes(10_001), gzip.compress(bytes(10_001))):
        with pytest.raises(FormatError, match="more than 10000 bytes"):
            read_bytes(io.BytesIO(data))


@pytest.mark.parametrize("when", ["write", "fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_old_file_survives_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, error: BaseException) -> None:
    path = tmp_path / "a.pb"
    path.write_bytes(b"old")

    def fail(*args: Any, **kwargs: Any) -> None:
        raise error

    if when == "write":
        monkeypatch.setattr(files, "open", lambda path, mode: _Full(Path(path), fail), raising=False)
    elif when == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    else:
        monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises((FormatError, KeyboardInterrupt)) as caught:
        save(graph(), path)
    if isinstance(error, OSError):
        assert str(caught.value) == f"{path} cannot be written: No space left on device."
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.pb"]


class _Full:
    """A file on a full disk."""

    def __init__(self, path: Path, fail: Any) -> None:
        path.touch()
        self.write = fail

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *args: object) -> None:
        pass


def test_what_cannot_be_encoded_touches_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.pb"
    path.write_bytes(b"old")
    bad = graph()
    bad.add("Thing", domain="com.vendor", name="z")
    with pytest.raises(FormatError, match=r"a\.pb: Node 'z' .* is of domain 'com.vendor'"):
        save(bad, path)
    assert path.read_bytes() == b"old"


def test_unwritable_targets(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"nowhere/a\.pb cannot be written: No such file or directory"):
        save(graph(), tmp_path / "nowhere" / "a.pb")
    (tmp_path / "dir.pb").mkdir()
    with pytest.raises(FormatError, match=r"dir\.pb: The target is a folder"):
        save(graph(), tmp_path / "dir.pb")
    (tmp_path / "a.pb").write_bytes(b"old")
    with pytest.raises(FormatError, match=r"a\.pb: The file already exists"):
        save(graph(), tmp_path / "a.pb", overwrite=False)
    with pytest.raises(FormatError, match=r"The suffix '\.onn' is of no known format.* --to on the command line"):
        save(graph(), tmp_path / "a.onn")


def test_links_and_modes_are_kept(tmp_path: Path) -> None:
    real, link = tmp_path / "real.pb", tmp_path / "link.pb"
    real.write_bytes(b"old")
    real.chmod(0o640)
    link.symlink_to(real)
    save(graph(), link)
    assert link.is_symlink()
    assert real.read_bytes() == encode(graph(), "pb")
    assert real.stat().st_mode & 0o777 == 0o640


def test_pipes_are_written_to() -> None:
    reading, writing = os.pipe()
    save(graph(), f"/dev/fd/{writing}", format="pb")
    os.close(writing)
    with open(reading, "rb") as file:
        assert file.read() == encode(graph(), "pb")


def test_saving_what_is_no_graph_says_where_the_graph_is(tmp_path: Path) -> None:
    result = auto_mixed_precision(Graph())
    with pytest.raises(GraphError, match=r"save takes a Graph\. Received: RewriteResult\. Its graph is the attribute \.graph\."):
        save(result, tmp_path / "x.onnx")  # type: ignore[arg-type]
    with pytest.raises(FormatError, match=r"named by a path\. Received: int"):
        load(3)  # type: ignore[arg-type]
