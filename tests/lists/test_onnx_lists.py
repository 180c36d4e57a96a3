"""The ONNX op lists against the standard's own schemas, and against the TensorFlow lists they follow."""

import re
import tomllib
from collections import Counter
from importlib.resources import files
from typing import Any

import pytest
from onnx import defs

from ampgraph.graph.errors import OpListError
from ampgraph.lists import Color, Edit, OpLists

MODES = ("onnx_float16", "onnx_bfloat16")
# What the tables were written for: an older onnx lacks some of these ops, a newer one may have more.
OPSETS = {"": 28, "ai.onnx.ml": 5, "ai.onnx.preview.training": 1, "ai.onnx.preview": 1}
# Defined by ONNX Runtime in the domain ai.onnx.
NOT_STANDARD = {"SimplifiedLayerNormalization"}
#: TensorFlow's name -> ONNX's, where both do the same.
SAME_AS_TENSORFLOW = {
    "MatMul": "MatMul", "Einsum": "Einsum", "Conv2D": "Conv", "Conv2DBackpropInput": "ConvTranspose", "Exp": "Exp", "Pow": "Pow",
    "Sum": "ReduceSum", "SparseSoftmaxCrossEntropyWithLogits": "SoftmaxCrossEntropyLoss", "AddV2": "Add", "Sub": "Sub",
    "AddN": "Sum", "Mul": "Mul", "RealDiv": "Div", "Reciprocal": "Reciprocal", "Sqrt": "Sqrt", "Log": "Log",
    "LogSoftmax": "LogSoftmax", "Softmax": "Softmax", "AvgPool": "AveragePool", "FusedBatchNormV3": "BatchNormalization",
    "Sigmoid": "Sigmoid", "Tanh": "Tanh", "Softsign": "Softsign", "Erf": "Erf", "Elu": "Elu", "Selu": "Selu",
    "LeakyRelu": "LeakyRelu", "Softplus": "Softplus", "Abs": "Abs", "Neg": "Neg", "Sign": "Sign", "Ceil": "Ceil",
    "Floor": "Floor", "Round": "Round", "Relu": "Relu", "ClipByValue": "Clip", "Max": "ReduceMax", "Min": "ReduceMin",
    "Maximum": "Max", "Minimum": "Min", "ArgMax": "ArgMax", "ArgMin": "ArgMin", "TopKV2": "TopK", "Equal": "Equal",
    "Less": "Less", "LessEqual": "LessOrEqual", "Greater": "Greater", "GreaterEqual": "GreaterOrEqual", "IsInf": "IsInf",
    "IsNan": "IsNaN", "MaxPool": "MaxPool", "DepthToSpace": "DepthToSpace", "SpaceToDepth": "SpaceToDepth",
    "Transpose": "Transpose", "ReverseSequence": "ReverseSequence", "Reshape": "Reshape", "ExpandDims": "Unsqueeze",
    "Squeeze": "Squeeze", "ConcatV2": "Concat", "Split": "Split", "StridedSlice": "Slice", "GatherV2": "Gather",
    "GatherNd": "GatherND", "PadV2": "Pad", "BroadcastTo": "Expand", "Tile": "Tile", "OneHot": "OneHot", "SelectV2": "Where",
    "Where": "NonZero", "Shape": "Shape", "Size": "Size", "Identity": "Identity", "TensorListFromTensor": "SplitToSequence",
    "TensorListGetItem": "SequenceAt", "TensorListConcat": "ConcatFromSequence",
}  # fmt: skip


def _rows(mode: str) -> list[tuple[str, dict[str, Any]]]:
    table = tomllib.loads((files("ampgraph.lists") / f"{mode}.toml").read_text(encoding="utf-8"))
    return [(name, row) for name in ("allow", "deny", "gray", "clear", "none") for row in table[name]]


def _listed(mode: str) -> Counter[str]:
    return Counter(op for _, row in _rows(mode) for op in row["ops"])


def _spelling(domain: str, op: str) -> str:
    return f"{domain}:{op}" if domain else op


def _standard() -> dict[str, list[Any]]:
    """Every op that onnx defines, by the name it has in the lists: all versions of its schema, oldest first."""
    schemas: dict[str, list[Any]] = {}
    for schema in sorted(defs.get_all_schemas_with_history(), key=lambda schema: schema.since_version):
        if schema.since_version <= OPSETS.get(schema.domain, 0):
            schemas.setdefault(_spelling(schema.domain, schema.name), []).append(schema)
    return schemas


def test_every_op_of_the_standard_stands_exactly_once() -> None:
    listed = _listed("onnx_float16")
    assert [op for op, count in listed.items() if count > 1] == []
    assert sorted(_standard().keys() - listed.keys()) == []


def test_no_row_names_an_op_that_does_not_exist() -> None:
    vendor = {op for op in _listed("onnx_float16") if op.startswith("com.microsoft:")}
    unknown = _listed("onnx_float16").keys() - _standard().keys() - vendor - NOT_STANDARD
    if defs.onnx_opset_version() >= OPSETS[""]:
        assert sorted(unknown) == []
    assert all(re.fullmatch(r"com\.microsoft:[A-Z]\w+", op) for op in vendor)
    # The vocabulary of onnxruntime's transformer optimizer and model builder.
    expected = "Attention MultiHeadAttention GroupQueryAttention SkipLayerNormalization SkipSimplifiedLayerNormalization Gelu"
    expected += " EmbedLayerNormalization FastGelu QuickGelu BiasGelu FusedMatMul RotaryEmbedding GroupNorm MatMulNBits MoE"
    assert {f"com.microsoft:{op}" for op in expected.split()} <= vendor


def test_bfloat16_replaces_entries_of_float16() -> None:
    changed = _listed("onnx_bfloat16")
    assert [op for op, count in changed.items() if count > 1] == []
    assert sorted(changed.keys() - _listed("onnx_float16").keys()) == []
    base, lists = OpLists.load("onnx_float16"), OpLists.load("onnx_bfloat16")
    assert [op for op in changed if base.why(op) == lists.why(op)] == []
    untouched = _listed("onnx_float16").keys() - changed.keys()
    assert [op for op in untouched if base.list_of(op) is not lists.list_of(op) or base.why(op) != lists.why(op)] == []


@pytest.mark.parametrize("mode", MODES)
def test_every_op_has_a_reason_of_its_own_family(mode: str) -> None:
    for op in _listed("onnx_float16"):
        assert re.fullmatch(r"\S.{14,170}[^.\s]", OpLists.load(mode).why(op)), op
    reasons = Counter(row["why"] for _, row in _rows(mode))
    assert [why for why, count in reasons.items() if count > 1] == []


def test_reasons_speak_of_the_type_they_are_for() -> None:
    float16 = re.compile(r"(?<!b)float16|\bhalf\b|65504|2048|11 bits")
    assert [op for _, op, why in OpLists.load("onnx_bfloat16") if float16.search(why)] == []
    assert [op for _, op, why in OpLists.load("onnx_float16") if "bfloat16" in why] == []


@pytest.mark.skipif(defs.onnx_opset_version() < OPSETS[""], reason="the schemas of this onnx have fewer low precision forms")
@pytest.mark.parametrize("mode", MODES)
def test_a_listed_op_has_a_form_of_the_low_type(mode: str) -> None:
    low = f"tensor({mode.removeprefix('onnx_')})"
    lists, missing = OpLists.load(mode), []
    for op, versions in _standard().items():
        allowed = {text for schema in versions for types in schema.type_constraints for text in types.allowed_type_strs}
        if lists.list_of(op) is not None and not any(low in text for text in allowed):
            missing.append(op)
        has_operand = any(
            low in types.allowed_type_strs
            for types in versions[-1].type_constraints
            if any(formal.type_str == types.type_param_str for formal in versions[-1].inputs)
        )
        # Ops without any operand that could be low are on no list.
        assert has_operand or lists.list_of(op) is None or "equence" in op or "Optional" in op or versions[-1].deprecated, op
    assert missing == []


def test_places_are_those_of_grappler() -> None:
    grappler, lists = OpLists.load("cuda_fp16"), OpLists.load("onnx_float16")
    different = {
        (theirs, ours) for theirs, ours in SAME_AS_TENSORFLOW.items() if grappler.list_of(theirs) is not lists.list_of(ours)
    }
    assert different == set()
    # Where they differ, the reason says so.
    for theirs, ours in [("Mean", "ReduceMean"), ("Prod", "ReduceProd")]:
        assert grappler.list_of(theirs) is not lists.list_of(ours)
        assert "Grappler" in lists.why(ours)


def test_lists_do_not_depend_on_cuda() -> None:
    for mode in MODES:
        lists = OpLists.load(mode)
        assert list(OpLists.load(mode, cuda=(), cudnn=())) == list(lists)
        assert {"MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum", "Attention", "com.microsoft:FusedMatMul"} <= lists.allow


def test_structure_quantized_and_recurrent_ops_are_on_no_list() -> None:
    ops = "If Loop Scan SequenceMap Constant Cast CastLike BitCast LSTM GRU RNN RandomNormalLike NonMaxSuppression"
    ops += " QuantizeLinear DequantizeLinear DynamicQuantizeLinear ConvInteger QLinearConv QLinearMatMul MatMulInteger"
    for mode in MODES:
        lists = OpLists.load(mode)
        assert [op for op in ops.split() if lists.list_of(op) is not None] == []
        assert "on no list" not in {lists.why(op) for op in ops.split()}


def test_an_op_of_a_domain_can_be_moved() -> None:
    lists = OpLists.load("onnx_float16", overlays=["com.microsoft:Gelu=deny", "gray:-com.microsoft:FastGelu", "LSTM=allow"])
    assert lists.list_of("com.microsoft:Gelu") is Color.DENY
    assert lists.list_of("Gelu") is Color.GRAY
    assert lists.list_of("com.microsoft:FastGelu") is None
    assert lists.list_of("LSTM") is Color.ALLOW
    assert lists.ineffective == ()
    assert Edit.parse("com.microsoft:Gelu=none") == Edit("com.microsoft:Gelu", None, "=")
    with pytest.raises(OpListError, match=r"written 'gray:\+Op' \(add\).*Received: 'gray:Gelu=deny'"):
        Edit.parse("gray:Gelu=deny")


# ---- the other presets --------------------------------------------------------------------------------------------------

PRESETS = ("tensorrt", "onnxruntime", "torch_autocast", "grappler")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("preset", PRESETS)
def test_tables_of_presets_name_known_ops_once(preset: str, dtype: str) -> None:
    base = OpLists.load(f"onnx_{dtype}")
    for table in (f"onnx_{preset}_{dtype}", f"onnx_{preset}"):
        path = files("ampgraph.lists") / f"{table}.toml"
        if path.is_file():
            rows = tomllib.loads(path.read_text(encoding="utf-8"))
            listed = Counter(
                op for name in ("allow", "deny", "gray", "clear", "none") for row in rows.get(name, ()) for op in row["ops"]
            )
            assert [op for op, count in listed.items() if count > 1] == []
            assert [op for op in listed if base.why(op) == "on no list"] == []


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_runtimes_change_what_they_say(dtype: str) -> None:
    safe = OpLists.load(f"onnx_{dtype}")
    tensorrt, onnxruntime = OpLists.load(f"onnx_tensorrt_{dtype}"), OpLists.load(f"onnx_onnxruntime_{dtype}")
    assert tensorrt.allow - safe.allow == {"LSTM", "GRU", "RNN"}
    # ONNX Runtime's own lists only take away.
    for name in ("allow", "deny", "gray", "clear"):
        assert getattr(onnxruntime, name) <= getattr(safe, name)
        assert {
            op for op in getattr(safe, name) - getattr(onnxruntime, name) if "ONNX Runtime" not in onnxruntime.why(op)
        } == set()
    # Types of kernels in onnxruntime's documentation: none of these ops has one for bfloat16, all but the last for float16.
    for op in ("ConvTranspose", "Einsum", "Resize", "MaxPool", "ReduceMean", "Clip", "Pad", "LeakyRelu", "DeformConv"):
        assert (onnxruntime.list_of(op) is None) == (dtype == "bfloat16" or op == "DeformConv"), op
    for op in ("MatMul", "Gemm", "Add", "Mul", "Softmax", "LayerNormalization", "Gelu", "Transpose", "Slice", "Where"):
        assert onnxruntime.list_of(op) is safe.list_of(op) is not None, op


def test_grappler_tables_are_the_lists_of_tensorflow() -> None:
    """Also for pairs of ops: a mean over the image is TensorFlow's Mean."""
    more = {"BiasAdd": "Gemm", "Mean": "GlobalAveragePool", "Max": "GlobalMaxPool", "Reshape": "Flatten"}
    pairs = [*SAME_AS_TENSORFLOW.items(), ("Mean", "ReduceMean"), ("Prod", "ReduceProd"), *more.items()]
    for mode, table in (("cuda_fp16", "onnx_grappler_float16"), ("onednn_bf16", "onnx_grappler_bfloat16")):
        theirs, ours = OpLists.load(mode), OpLists.load(table)
        places = {op: theirs.list_of(name) for name, op in pairs} | {"Gemm": Color.ALLOW}
        assert {op: color for color, op, _ in ours} == {op: color for op, color in places.items() if color is not None}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_torch_autocast_follows_the_rules_of_torch(dtype: str) -> None:
    """The three lists of torch's autocast_mode, for the functions that have an op."""
    lists = OpLists.load(f"onnx_torch_autocast_{dtype}")
    assert {"Conv", "ConvTranspose", "MatMul", "Gemm", "Einsum", "PRelu", "LSTM", "GRU", "RNN", "Attention"} <= lists.allow
    float32 = "Acos Asin Cosh Exp Log Pow Reciprocal Sinh Tan Softplus LayerNormalization GroupNormalization ReduceLogSumExp"
    float32 += (
        " Softmax LogSoftmax CumSum CumProd ReduceProd ReduceSum ReduceL1 ReduceL2 NegativeLogLikelihoodLoss Resize Upsample"
    )
    assert set(float32.split()) <= lists.deny
    assert {"GridSample", "ScatterElements", "ScatterND", "ReduceMean", "Sin", "Cos"} <= lists.gray
    # No rule in autocast: where preset safe has them.
    safe = OpLists.load(f"onnx_{dtype}")
    for op in ("Add", "Relu", "BatchNormalization", "Concat", "Sigmoid", "AveragePool"):
        assert lists.list_of(op) is safe.list_of(op)
