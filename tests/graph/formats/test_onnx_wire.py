"""Elements cut out of the bytes of ONNX files, and put into them."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from ampgraph.graph import FormatError, GraphError
from ampgraph.graph.formats.files import load, save
from ampgraph.graph.formats.onnx_wire import LEAST, cut, fill
from ampgraph.graph.types import Tensor

from .onnx_models import BRANCHES, PLAIN, model

LARGE = np.arange(LEAST // 4 + 3, dtype=np.float32)


def add(graph: Any, name: str, array: Any = LARGE) -> Any:
    tensor = graph.initializer.add()
    tensor.CopyFrom(numpy_helper.from_array(array, name))
    return tensor


def weighty() -> Any:
    proto = model(PLAIN)
    add(proto.graph, "big").doc_string = "kept"
    add(proto.graph, "small", LARGE[:3])
    add(proto.graph, "typed").float_data.extend(LARGE.tolist())
    proto.graph.initializer[-1].ClearField("raw_data")
    add(proto.graph, "last", LARGE[::-1].astype(np.float16))
    add(proto.graph, "large", np.tile(LARGE, 2))
    return proto


def test_large_elements_are_cut_out_and_put_back() -> None:
    proto = weighty()
    data = proto.SerializeToString(deterministic=True)
    rest, elements = cut(data)
    places = [i for i, tensor in enumerate(proto.graph.initializer) if len(tensor.raw_data) >= LEAST]
    assert list(elements) == places
    assert {i: bytes(part) for i, part in elements.items()} == {i: proto.graph.initializer[i].raw_data for i in places}
    remains = onnx.ModelProto.FromString(rest)
    for i in places:
        proto.graph.initializer[i].raw_data = b""
    assert remains == proto
    tensors = {i: Tensor.of(np.frombuffer(part, np.uint8)) for i, part in elements.items()}
    pieces = fill(rest, tensors)
    assert b"".join(piece.array().tobytes() if isinstance(piece, Tensor) else piece for piece in pieces) == data


def test_a_model_in_two_parts_is_one_model() -> None:
    """Protobuf merges a message that comes twice."""
    one, two = weighty(), onnx.ModelProto()
    add(two.graph, "more", LARGE + 1)
    data = one.SerializeToString() + two.SerializeToString()
    rest, elements = cut(data)
    merged = onnx.ModelProto.FromString(rest)
    name = merged.graph.initializer[max(elements)].name
    assert name == "more"
    np.testing.assert_array_equal(np.frombuffer(elements[max(elements)], np.float32), LARGE + 1)


@pytest.mark.parametrize(
    "data", [b"\x3a\xff\xff\xff\xff\x0f", b"\x3a" + b"\xff" * 20, b"\x3a\x02\x2a", b"\x0b\x0c", b"\x3a\x05a", b"\x09"]
)
def test_what_is_no_message_is_left_whole(data: bytes) -> None:
    assert cut(data) == (data, {})


def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    data = weighty().SerializeToString()
    for size in range(1, len(data), 4999):
        (tmp_path / "m.onnx").write_bytes(data[:size])
        with pytest.raises(FormatError):
            load(tmp_path / "m.onnx")


def test_models_are_loaded_and_saved_unchanged(tmp_path: Path) -> None:
    proto = weighty()
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString(deterministic=True))
    graph = load(tmp_path / "m.onnx")
    np.testing.assert_array_equal(graph.value("big").producer.attributes["value"].array(), LARGE)
    save(graph, tmp_path / "n.onnx")
    assert (tmp_path / "n.onnx").read_bytes() == (tmp_path / "m.onnx").read_bytes()
    save(graph, tmp_path / "n.onnx", external_data=True)
    found = onnx.load(tmp_path / "n.onnx")
    assert found.graph.initializer[2].doc_string == "kept"
    for before, after in zip(proto.graph.initializer, found.graph.initializer, strict=True):
        np.testing.assert_array_equal(numpy_helper.to_array(before), numpy_helper.to_array(after))


def test_large_constants_of_bodies(tmp_path: Path) -> None:
    proto = model(BRANCHES)
    add(proto.graph.node[1].attribute[0].g, "inside")
    add(proto.graph, "outside", LARGE * 2)
    onnx.save(proto, tmp_path / "m.onnx")
    graph = load(tmp_path / "m.onnx")
    for part in graph.all_graphs():  # new tensors, which have no message in the file
        for node in part.nodes:
            if node.op_type == "Initializer":
                node.attributes = {"value": Tensor.of(node.attributes["value"].array())}
    save(graph, tmp_path / "n.onnx")
    assert onnx.load(tmp_path / "n.onnx") == proto


def test_elements_that_do_not_fit_their_shape_are_refused(tmp_path: Path) -> None:
    proto = weighty()
    proto.graph.initializer[2].dims[0] += 1
    onnx.save(proto, tmp_path / "m.onnx")
    with pytest.raises(FormatError, match=r"Initializer 'big' of dtype float32 .* stores another number"):
        load(tmp_path / "m.onnx")


def test_an_array_of_another_size_never_gets_into_a_file(tmp_path: Path) -> None:
    proto = weighty()
    onnx.save(proto, tmp_path / "m.onnx")
    graph = load(tmp_path / "m.onnx")
    node = graph.value("big").producer
    tensor = node.attributes["value"]
    node.attributes = {"value": Tensor(tensor.dtype, tensor.shape, lambda: LARGE.astype(np.float64))}
    with pytest.raises(GraphError, match=r"m\.onnx: A constant of \d+ bytes holds an array of \d+ bytes"):
        save(graph, tmp_path / "m.onnx")
    assert onnx.load(tmp_path / "m.onnx") == proto
