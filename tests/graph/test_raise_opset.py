"""Raising the version of the ONNX ops: models compute what they did."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import checker, numpy_helper, shape_inference, version_converter
from onnx.reference import ReferenceEvaluator

from ampgraph.graph import Graph, PassError, Placeholder, Shape, Tensor, VerifyError, find_dtype
from ampgraph.graph.formats.onnx import read_model, write_model
from ampgraph.graph.opset_steps import STEPS
from ampgraph.graph.raise_opset import raise_opset
from ampgraph.graph.schemas import find_schema
from ampgraph.graph.verify import verify

from .formats.onnx_models import model

NEW = 22
rng = np.random.default_rng(0)
x = rng.standard_normal((2, 3, 4, 5)).astype(np.float32)
rows = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
positive = np.array([0.5, 1, 2], np.float32)


def f32(*values: float) -> Any:
    return np.array(values, np.float32)


def single(
    op_type: str, version: int, arrays: Sequence[Any], *, constants: Sequence[int] = (), results: int = 1, **attributes: Any
) -> Graph:
    """Return a graph of one node, with the operands among ``constants`` as initializers."""
    graph = Graph("g", opsets={"": version})
    operands: list[Any] = []
    for i, array in enumerate(arrays):
        tensor = None if array is None else Tensor.of(array)
        if tensor is None:
            operands.append(None)
        elif i in constants:
            types = {"T": tensor.dtype}
            node = graph.add("Initializer", domain="ampgraph", name=f"x{i}", attributes={"value": tensor}, types=types)
            operands.append(node.outputs[0])
        else:
            operands.append(graph.add_input(f"x{i}", tensor.dtype, Shape(tensor.shape)))
    node = graph.add(op_type, operands, domain="", name="y", attributes=attributes, outputs=results)
    graph.outputs, graph.output_names = [node.outputs[0]], [node.outputs[0].name]
    return graph


def feed(graph: Graph, arrays: Sequence[Any]) -> dict[str, Any]:
    named = {f"x{i}": array for i, array in enumerate(arrays)}
    return {value.name: named[value.name] for value in graph.inputs}


def evaluate(proto: Any, feeds: dict[str, Any]) -> Any:
    return ReferenceEvaluator(proto).run(None, feeds)


def compute(graph: Graph, feeds: dict[str, Any]) -> Any:
    """Run a graph, once it is valid to the standard's own eyes."""
    verify(graph)
    written = write_model(graph)
    checker.check_model(written, full_check=True)
    shape_inference.infer_shapes(written, strict_mode=True, check_type=True, data_prop=True)
    assert str(read_model(written)) == str(read_model(write_model(read_model(written))))
    return evaluate(written, feeds)


def softmax(array: Any, axis: int) -> Any:
    """The definition up to version 12: rows of a matrix."""
    matrix = array.reshape(int(np.prod(array.shape[:axis])), -1)
    powers = np.exp(matrix - matrix.max(1, keepdims=True))
    return (powers / powers.sum(1, keepdims=True)).reshape(array.shape)


def hardmax(array: Any, axis: int) -> Any:
    matrix = array.reshape(int(np.prod(array.shape[:axis])), -1)
    return np.eye(matrix.shape[1], dtype=np.float32)[matrix.argmax(1)].reshape(array.shape)


def resized(array: Any, scales: Sequence[float], up: Any = np.floor, down: Any = np.ceil) -> Any:
    """The nearest neighbours that version 10 takes."""
    for axis, scale in enumerate(scales):
        places = np.arange(int(array.shape[axis] * scale)) / np.float32(scale)
        array = array.take((down if scale < 1 else up)(places).astype(int).clip(0, array.shape[axis] - 1), axis)
    return array


def batch_norm(array: Any, *parameters: Any, epsilon: float = 1e-5) -> Any:
    shape = (1, -1) + (1,) * (array.ndim - 2)
    scale, bias, mean, variance = (item.reshape(shape) for item in parameters)
    return (array - mean) / np.sqrt(variance + np.float32(epsilon)) * scale + bias


def group_norm(array: Any, scale: Any, bias: Any) -> Any:
    grouped = array.reshape(len(array), len(scale), -1)
    normal = (grouped - grouped.mean(2, keepdims=True)) / np.sqrt(grouped.var(2, keepdims=True) + np.float32(1e-5))
    return (normal * scale.reshape(1, -1, 1) + bias.reshape(1, -1, 1)).reshape(array.shape)


def dft(array: Any, axis: int) -> Any:
    found = np.fft.fft(array[..., 0], axis=axis)
    return np.stack([found.real, found.imag], -1).astype(np.float32)


LIMIT = np.float32(3.4028234663852886e38)
HUGE = np.array([np.inf, -np.inf, 2.0], np.float32)
NORMS: list[Any] = [positive, positive - 1, positive / 4, positive]
EIGHT = rng.standard_normal((2, 6, 2, 2)).astype(np.float32)
CORNERS = rng.uniform(-1.2, 1.2, (2, 3, 3, 2)).astype(np.float32)
SIGNAL = rng.standard_normal((2, 8, 3, 1)).astype(np.float32)
GROUPS: list[Any] = [f32(1, 2), f32(0.5, -1)]

# op, version, operands, node, result
CASES: list[tuple[str, int, list[Any], dict[str, Any], Any]] = [
    ("Squeeze", 7, [x[:1, :, :1]], {"axes": [0, 2]}, x[0, :, 0]),
    ("Squeeze", 11, [x[:1, :, :1]], {}, x[0, :, 0]),
    ("Unsqueeze", 7, [x], {"axes": [0, 3]}, x[None, :, :, None]),
    ("Unsqueeze", 11, [x], {"axes": [-1]}, x[..., None]),
    ("ReduceSum", 7, [x], {"axes": [1, 3], "keepdims": 0}, x.sum((1, 3))),
    ("ReduceSum", 11, [x], {"axes": []}, x.sum(keepdims=True)),
    ("ReduceMean", 7, [x], {"axes": [1]}, x.mean(1, keepdims=True)),
    ("ReduceMax", 13, [x], {"axes": [-1]}, x.max(-1, keepdims=True)),
    ("ReduceL2", 11, [x], {"axes": [0]}, np.sqrt((x * x).sum(0, keepdims=True))),
    ("ReduceLogSumExp", 13, [x], {"axes": [2], "keepdims": 0}, np.log(np.exp(x).sum(2))),
    ("Slice", 7, [x], {"starts": [1, 0], "ends": [1000, -1], "axes": [1, 3]}, x[:, 1:, :, :-1]),
    ("Slice", 9, [x], {"starts": [0, 1], "ends": [1, 3]}, x[:1, 1:3]),
    ("TopK", 7, [x], {"k": 2, "axis": 2, "results": 2}, -np.sort(-x, 2)[:, :, :2]),
    ("Split", 7, [x], {"axis": 1, "split": [1, 2], "results": 2}, x[:, :1]),
    ("Split", 11, [x], {"axis": 2, "results": 2}, x[:, :, :2]),
    ("Split", 13, [x, np.array([2, 3])], {"axis": 3, "results": 2, "constants": [1]}, x[..., :2]),
    ("Clip", 7, [x], {"min": -0.5, "max": 0.25}, x.clip(-0.5, 0.25)),
    ("Clip", 7, [x], {"max": 0.25}, np.minimum(x, np.float32(0.25))),
    ("Clip", 10, [x.astype(np.float16)], {"min": 0.5}, x.astype(np.float16).clip(np.float16(0.5))),
    ("Clip", 10, [np.array([1e39, -1e39, 1.0])], {}, np.array([LIMIT, -LIMIT, 1], np.float64)),
    ("Clip", 10, [HUGE.astype(np.float16)], {}, HUGE.astype(np.float16)),
    ("Pad", 7, [rows], {"pads": [0, 0, 1, 0, 0, 0, 0, 2]}, np.pad(rows, ((0, 0), (0, 0), (1, 0), (0, 2)))),
    (
        "Pad",
        10,
        [rows],
        {"pads": [0, 0, 0, 0, 0, 0, 0, 1], "value": 1.5},
        np.pad(rows, ((0, 0),) * 3 + ((0, 1),), constant_values=1.5),
    ),
    ("Pad", 7, [rows], {"pads": [0, 0, 0, 2, 0, 0, 0, 0], "mode": b"reflect", "value": 2.0}, rows[..., [2, 1, 0, 1, 2, 3]]),
    ("Dropout", 7, [x], {"ratio": 0.25, "results": 2}, x),
    ("Dropout", 10, [x], {"results": 2}, x),
    ("Softmax", 7, [x], {}, softmax(x, 1)),
    ("Softmax", 11, [x], {"axis": 2}, softmax(x, 2)),
    ("Softmax", 11, [x], {"axis": -2}, softmax(x, 2)),
    ("Softmax", 7, [x], {"axis": 3}, softmax(x, 3)),
    ("Softmax", 7, [x[:, :, :1, :1]], {}, softmax(x[:, :, :1, :1], 1)),
    ("Softmax", 11, [x], {"axis": 0}, softmax(x, 0)),
    ("LogSoftmax", 11, [x], {}, np.log(softmax(x, 1))),
    ("Hardmax", 7, [x], {"axis": 2}, hardmax(x, 2)),
    ("Upsample", 7, [rows], {"scales": [1.0, 1.0, 2.0, 3.0]}, resized(rows, [1, 1, 2, 3])),
    ("Upsample", 9, [rows, f32(1, 1, 2.5, 2)], {}, resized(rows, [1, 1, 2.5, 2])),
    ("Resize", 10, [rows, f32(1, 1, 2, 1.5)], {"constants": [1]}, resized(rows, [1, 1, 2, 1.5])),
    ("Resize", 10, [rows, f32(1, 1, 0.4, 0.75)], {"constants": [1]}, resized(rows, [1, 1, 0.4, 0.75])),
    ("Resize", 10, [rows, f32(1, 1, 0.4, 1.5)], {"constants": [1]}, resized(rows, [1, 1, 0.4, 1.5])),
    ("Resize", 10, [rows, f32(1, 1, 2, 0.75)], {}, resized(rows, [1, 1, 2, 0.75])),
    (
        "Resize",
        10,
        [rows, f32(1, 1, 1, 2)],
        {"mode": b"linear"},
        rows[..., [0, 0, 1, 1, 2, 2, 3, 3]] + f32(0, 0.5, 0, 0.5, 0, 0.5, 0, 0),
    ),
    (
        "Resize",
        11,
        [rows, f32(), f32(), np.array([1, 1, 6, 4])],
        {"constants": [1, 2, 3], "nearest_mode": b"floor", "coordinate_transformation_mode": b"asymmetric"},
        resized(rows, [1, 1, 2, 1]),
    ),
    (
        "Resize",
        11,
        [rows, f32(), f32(1, 1, 2, 2)],
        {"constants": [1, 2], "nearest_mode": b"floor", "coordinate_transformation_mode": b"tf_half_pixel_for_nn"},
        resized(rows, [1, 1, 2, 2]),
    ),
    ("BatchNormalization", 7, [x, *NORMS], {"spatial": 1}, batch_norm(x, *NORMS)),
    (
        "BatchNormalization",
        7,
        [x[:, :, 0, 0], *NORMS],
        {"spatial": 0, "epsilon": 0.5},
        batch_norm(x[:, :, 0, 0], *NORMS, epsilon=0.5),
    ),
    ("BatchNormalization", 9, [x, *NORMS], {"results": 5}, batch_norm(x, *NORMS[:2], x.mean((0, 2, 3)), x.var((0, 2, 3)))),
    ("Scatter", 9, [x, np.zeros((1, 3, 4, 5), np.int64), x[1:]], {}, np.stack([x[1], x[1]])),
    ("GroupNormalization", 18, [EIGHT, *GROUPS], {"num_groups": 2}, group_norm(EIGHT, *GROUPS)),
    ("DFT", 17, [SIGNAL], {}, dft(SIGNAL, 1)),
    ("DFT", 17, [SIGNAL], {"axis": 2}, dft(SIGNAL, 2)),
    ("QuantizeLinear", 13, [np.array([-5, 10, 900], np.int32), np.float32(3), np.uint8(3)], {}, np.array([1, 6, 255], np.uint8)),
]


@pytest.mark.parametrize(("op_type", "version", "arrays", "node", "wanted"), CASES)
def test_computes_the_same(op_type: str, version: int, arrays: list[Any], node: dict[str, Any], wanted: Any) -> None:
    graph = single(op_type, version, arrays, **node)
    graph.outputs[0].shape = Shape(wanted.shape)
    name = graph.outputs[0].name
    raise_opset(graph, NEW)
    assert graph.opsets == {"": NEW}
    assert graph.outputs[0].name == name
    (result,) = compute(graph, feed(graph, arrays))
    assert result.dtype == wanted.dtype
    np.testing.assert_allclose(result, wanted, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("mode", [None, b"bilinear", b"bicubic", b"nearest"])
def test_the_modes_of_a_grid_sample_have_new_names(mode: bytes | None) -> None:
    attributes: dict[str, Any] = {} if mode is None else {"mode": mode}
    graph = single("GridSample", 16, [x, CORNERS], **attributes)
    graph.outputs[0].shape = Shape([2, 3, 3, 3])
    wanted = evaluate(
        write_model(single("GridSample", 20, [x, CORNERS], mode=(mode or b"linear").removeprefix(b"bi"))),
        feed(graph, [x, CORNERS]),
    )
    raise_opset(graph, NEW)
    (result,) = compute(graph, feed(graph, [x, CORNERS]))
    np.testing.assert_array_equal(result, wanted[0])


def test_regions_stay_where_they_were() -> None:
    boxes, index = f32(0, 0, 2, 2).reshape(1, 4), np.array([0])
    graph = single("RoiAlign", 10, [rows, boxes, index], sampling_ratio=1, output_height=1, output_width=1)
    graph.outputs[0].shape = Shape([1, 1, 1, 1])
    raise_opset(graph, NEW)
    (result,) = compute(graph, feed(graph, [rows, boxes, index]))
    assert result.item() == 5  # the pixel at (1, 1), not at (0.5, 0.5)


def test_channels_that_are_not_known_are_counted() -> None:
    graph = single("GroupNormalization", 18, [EIGHT, *GROUPS], num_groups=2)
    graph.inputs[0].shape = Shape(None)
    raise_opset(graph, NEW)
    assert {"Gather", "Div"} <= {node.op_type for node in graph.nodes}
    (result,) = evaluate(write_model(graph), feed(graph, [EIGHT, *GROUPS]))
    np.testing.assert_allclose(result, group_norm(EIGHT, *GROUPS), rtol=2e-6, atol=2e-6)


def test_half_precision_statistics_stay_half_precision() -> None:
    half = [array.astype(np.float16) for array in (EIGHT, *GROUPS)]
    graph = single("GroupNormalization", 18, half, num_groups=2)
    raise_opset(graph, NEW)
    assert graph.outputs[0].producer.attributes["stash_type"] == find_dtype("f16").onnx


@pytest.mark.parametrize(("version", "wanted"), [(13, {}), (22, {"allowzero": 1})])
def test_a_size_of_zero_stays_zero(version: int, wanted: dict[str, int]) -> None:
    graph = single("Softmax", 11, [x[:, :, :0]])
    raise_opset(graph, version)
    assert graph.outputs[0].producer.op_type == "Reshape"
    assert graph.outputs[0].producer.attributes == wanted


def test_an_axis_stays_where_it_means_the_same() -> None:
    graph = single("Softmax", 11, [x[:, :, 0, 0]])
    raise_opset(graph, NEW)
    assert [node.op_type for node in graph.nodes] == ["Softmax"]
    assert graph.node("y").attributes == {"axis": 1}
    graph = single("Softmax", 11, [x], axis=-1)
    graph.inputs[0].shape = Shape(None)
    raise_opset(graph, NEW)
    assert [node.op_type for node in graph.nodes] == ["Softmax"]


SCAN = """<ir_version: 8, opset_import: ["": 8]>
g (float[3,2] s, float[3,4,2] xs, float[2] w, int64[3] n) => (float[3,2] last, float[3,4,2] ys)
{
  last, ys = Scan <num_scan_inputs = 1, directions = [DIRECTION], body = step (float[2] t, float[2] v) => (float[2] u, float[2] p) {
    u = Add(t, v)
    p = Mul(u, FACTOR)
  }> (none, s, xs)
}"""


def scan(direction: int, factor: str, lengths: str = "") -> Graph:
    proto = model(SCAN.replace("DIRECTION", str(direction)).replace("FACTOR", factor))
    proto.graph.node[0].input[0] = lengths
    return read_model(proto)


@pytest.mark.skipif(onnx.defs.onnx_opset_version() < 23, reason="the evaluator of that release returns the last element only")
def test_a_scan_of_a_batch_becomes_a_scan_around_scans() -> None:
    graph = scan(0, "v")
    raise_opset(graph, NEW)
    state, data = (rng.standard_normal(shape).astype(np.float32) for shape in ((3, 2), (3, 4, 2)))
    last, ys = compute(graph, {"s": state, "xs": data, "w": f32(1, 1), "n": np.zeros(3, np.int64)})
    sums = state[:, None] + np.cumsum(data, 1)
    np.testing.assert_allclose(last, sums[:, -1], rtol=1e-5)
    np.testing.assert_allclose(ys, sums * data, rtol=1e-5)


def test_the_scan_inside_keeps_its_direction_and_what_it_uses_from_outside() -> None:
    graph = scan(1, "w")
    raise_opset(graph, NEW)
    verify(graph)
    checker.check_model(write_model(graph), full_check=True)
    ((node, _, outer),) = graph.bodies()
    ((inside, _, inner),) = outer.bodies()
    assert inside.attributes["scan_input_directions"] == [1]
    assert node.attributes["num_scan_inputs"] == 2
    assert outer.captures == inner.captures == ("w",)
    assert node.inputs[2] is graph.inputs[2]
    assert inside.inputs[2] is outer.inputs[2]


# ---- around the nodes -------------------------------------------------------------------------------------------------------

NESTED = """<ir_version: 8, opset_import: ["": 10, "local": 1]>
g (float[2,3] x, bool c) => (float[2,3] y)
{
  y = If(c) <
    then_branch = t () => (float[2,3] a) { u = Unsqueeze<axes = [0]>(x)  a = local.flat(u) },
    else_branch = e () => (float[2,3] b) { b = Clip<min = 0.0>(x) }
  >
}
<opset_import: ["": 12], domain: "local"> flat (v) => (r) { r = Squeeze<axes = [0]>(v) }
"""


def test_bodies_and_functions_are_raised() -> None:
    graph = read_model(model(NESTED))
    raise_opset(graph, NEW)
    assert {part.opsets[""] for part in graph.all_graphs()} == {NEW}
    assert graph.opsets["local"] == 1
    array = x[:, :, 0, 0]
    for chosen, wanted in ((True, array), (False, array.clip(0))):
        np.testing.assert_array_equal(compute(graph, {"x": array, "c": np.array(chosen)})[0], wanted)


def test_a_function_is_raised_from_its_own_version() -> None:
    graph = read_model(model(NESTED))
    raise_opset(graph, 12)
    (function,) = graph.functions.values()
    assert [node.op_type for node in function.nodes] == ["Squeeze"]
    raise_opset(graph, 13)
    assert [node.op_type for node in function.nodes] == ["Initializer", "Squeeze"]


def test_definitions_types_and_ir_version_follow() -> None:
    header = '<ir_version: 4, opset_import: ["": 9]> g (float[1,1,3,3] x, float[1,1,3,3] w) => (float[1,1,1,1] y)'
    graph = read_model(model(header + "{ y = Conv(x, w) }"))
    (node,) = graph.nodes
    raise_opset(graph, NEW)
    assert list(graph.nodes) == [node]
    assert node.schema is find_schema("", "Conv", NEW)
    assert node.schema is not None
    assert node.schema.type_vars["T"].allows(find_dtype("bf16"))
    assert graph.attributes["ir_version"] == 10
    graph.attributes["ir_version"] = 12
    raise_opset(graph, NEW)
    assert graph.attributes["ir_version"] == 12


def test_types_follow_renamed_variables() -> None:
    header = '<ir_version: 8, opset_import: ["": 13]> g (float[3] x, float s, uint8 z) => (uint8[3] y)'
    graph = read_model(model(header + "{ y = QuantizeLinear(x, s, z) }"))
    raise_opset(graph, NEW)
    assert graph.outputs[0].producer.types == {"T1": find_dtype("f32"), "T2": find_dtype("u8")}


def test_new_names_are_new() -> None:
    header = '<ir_version: 8, opset_import: ["": 11]> g (float[1,2] y_axes) => (float[2] y_axes_2)'
    graph = read_model(model(header + "{ y = Squeeze<axes = [0]>(y_axes)  y_axes_1 = Neg(y)  y_axes_2 = Neg(y_axes_1) }"))
    raise_opset(graph, NEW)
    np.testing.assert_array_equal(compute(graph, {"y_axes": f32(1, 2).reshape(1, 2)})[0], f32(1, 2))


def test_nothing_happens_at_that_version_or_beyond() -> None:
    graph = single("Softmax", 17, [x])
    before = str(graph), graph.attributes.copy()
    raise_opset(graph, 17)
    raise_opset(graph, 7)
    assert (str(graph), graph.attributes) == before


def test_ops_of_others_stay() -> None:
    header = '<ir_version: 8, opset_import: ["": 11, "com.microsoft": 1, "mine": 3]> g (float[2,3] x) => (float[2,3] y)'
    graph = read_model(model(header + "{ h = com.microsoft.Gelu(x)  y = mine.Squeeze<axes = [0]>(h) }"))
    gelu, other = graph.nodes
    signature = gelu.signature
    raise_opset(graph, NEW)
    assert gelu.signature is signature
    assert other.attributes == {"axes": [0]}
    assert graph.opsets == {"": NEW, "com.microsoft": 1, "mine": 3}


# ---- what cannot be raised ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (single("BatchNormalization", 7, [x, x[0], x[0], x[0], x[0]], spatial=0), "'y' .* from version 7 .* to 22: spatial=0"),
        (
            single(
                "Resize",
                11,
                [rows, f32(), f32(1, 1, 2, 2)],
                coordinate_transformation_mode=b"tf_half_pixel_for_nn",
                mode=b"linear",
            ),
            "no longer exists",
        ),
        (single("Softmax", 11, [x], axis=Placeholder("a")), "'axis' is parameter 'a' of the function. Inline"),
        (single("Gelu", 11, [x]), "version 11 does not define it"),
        (single("GroupNormalization", 18, [EIGHT, *GROUPS], num_groups=0), "it has 0 groups"),
        (single("TopK", 7, [x], k=2**70, results=2), "out of range"),
        (single("Squeeze", 11, [None], axes=[0]), "first operand is omitted"),
        (single("Squeeze", 6, [x[:1]], axes=[0]), "only 7 and newer can be raised. Convert"),
        (Graph("g"), "is no ONNX model"),
    ],
)
def test_refuses_and_changes_nothing(graph: Graph, message: str) -> None:
    if graph.opsets:
        first = graph.add("Squeeze", [graph.add_input("first", find_dtype("f32"))], domain="", attributes={"axes": [0]})
        graph.outputs.append(first.outputs[0])
        graph.output_names.append("first_result")
    before, opsets, ir = str(graph), dict(graph.opsets), graph.attributes.get("ir_version")
    with pytest.raises(PassError, match=message):
        raise_opset(graph, NEW)
    assert (str(graph), graph.opsets, graph.attributes.get("ir_version")) == (before, opsets, ir)


@pytest.mark.parametrize(
    ("op_type", "old", "new", "results", "read"),
    [("Dropout", 7, 10, 2, 1), ("Dropout", 10, 12, 2, 1), ("BatchNormalization", 9, 14, 5, 3)],
)
def test_refuses_results_that_no_longer_exist(op_type: str, old: int, new: int, results: int, read: int) -> None:
    graph = single(op_type, old, [x, *NORMS] if results == 5 else [x], results=results)
    graph.outputs.append(graph.node("y").outputs[read])
    graph.output_names.append("z")
    with pytest.raises(PassError, match="Remove what reads"):
        raise_opset(graph, new)
    assert len(graph.node("y").outputs) == results


def test_refuses_sequences_of_their_own_lengths() -> None:
    with pytest.raises(PassError, match="sequence_lens"):
        raise_opset(scan(0, "v", "n"), NEW)


def test_refuses_dtypes_that_an_op_no_longer_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STEPS, "QuantizeLinear", [])
    graph = single("QuantizeLinear", 13, [np.array([1], np.int32), np.float32(3), np.uint8(3)])
    with pytest.raises(PassError, match="no longer allows float32 there"):
        raise_opset(graph, 19)


def test_refuses_a_version_that_nobody_knows() -> None:
    with pytest.raises(PassError, match=r"newest version of the ONNX ops .* Received: 99"):
        raise_opset(single("Softmax", 11, [x]), 99)


def test_refuses_a_broken_graph() -> None:
    with pytest.raises(VerifyError, match="starts"):
        raise_opset(single("Slice", 7, [x], ends=[1]), NEW)


# ---- recorded models ------------------------------------------------------------------------------------------------------------

RECORDED = Path(os.path.dirname(onnx.__file__), "backend", "test", "data")
FOLDERS = sorted(path.parent for kind in ("simple", "pytorch-operator") for path in RECORDED.glob(f"{kind}/*/model.onnx"))


def _tensors(folder: Path, kind: str) -> Iterator[Any]:
    for i in range(len(list(folder.glob(f"{kind}_*.pb")))):
        tensor = onnx.TensorProto()
        tensor.ParseFromString((folder / f"{kind}_{i}.pb").read_bytes())
        yield numpy_helper.to_array(tensor)


def test_recorded_models_give_what_was_recorded() -> None:
    compared = 0
    for folder in FOLDERS:
        proto = onnx.load(folder / "model.onnx")
        version = next(entry.version for entry in proto.opset_import if not entry.domain)
        if any(entry.domain.startswith("ai.onnx.preview") for entry in proto.opset_import):
            continue  # the evaluator has no gradients
        if any(value.type.WhichOneof("value") != "tensor_type" for value in (*proto.graph.input, *proto.graph.output)):
            continue
        graph = read_model(version_converter.convert_version(proto, 7) if version < 7 else proto)
        raise_opset(graph, NEW)
        written = write_model(graph)
        checker.check_model(written, full_check=True)
        given = {value.name for value in proto.graph.initializer}
        names = [value.name for value in proto.graph.input if value.name not in given]
        for data in sorted(folder.glob("test_data_set_*")):
            results = evaluate(written, dict(zip(names, _tensors(data, "input"), strict=True)))
            for result, wanted in zip(results, _tensors(data, "output"), strict=True):
                if wanted.dtype == object:
                    np.testing.assert_array_equal(result, wanted)
                else:
                    np.testing.assert_allclose(result, wanted, rtol=1e-3, atol=1e-5, err_msg=str(folder))
                compared += 1
    assert compared >= 40
