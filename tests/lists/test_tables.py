"""The op lists against the sets that Grappler printed while it ran (grappler_lists.json)."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ampgraph.graph.errors import OpListError
from ampgraph.graph.schemas import tf
from ampgraph.lists import MODES, Color, Edit, OpLists

FACTS: dict[str, Any] = json.loads((Path(__file__).parent / "grappler_lists.json").read_text())
GRAPPLER = ("cuda_fp16", "onednn_bf16", "cpu_fp16")
NUMBERS = {9010: (9, 1), 7602: (7, 6, 2), 8000: (8, 0)}
# TensorFlow's own lists name these, but it defines no such ops.
UNDEFINED = "FastUnsortedSegmentMax FusedConv2DBiasActivation FusedSparseConvGpuV2 Mha MhaV2 Pmlp Tmlp TmlpV2 TmlpV3 VoxelMax"


@pytest.mark.parametrize("cudnn", [(9, 3, 0), (8, 0), (7, 9, 99), (7, 6, 2), (7, 6, 1), (7,), ()])
@pytest.mark.parametrize("cuda", [(12, 5), (10,), (9, 1), (9, 0), ()])
@pytest.mark.parametrize("mode", GRAPPLER)
def test_lists_are_those_of_grappler(mode: str, cuda: tuple[int, ...], cudnn: tuple[int, ...]) -> None:
    expected = {name: set(FACTS[mode][name].split()) for name in ("allow", "deny", "infer", "clear")}
    for condition in FACTS[mode]["conditional"]:
        found, least = (cuda, condition["cuda"]) if "cuda" in condition else (cudnn, condition["cudnn"])
        if found and found >= NUMBERS[least]:
            expected[condition["list"]] |= set(condition["ops"].split())
    lists = OpLists.load(mode, cuda=cuda, cudnn=cudnn)
    assert (lists.allow, lists.deny, lists.gray, lists.clear) == tuple(map(frozenset, expected.values()))


@pytest.mark.parametrize("mode", MODES)
def test_list_of_agrees_with_the_sets_and_every_entry_has_a_reason(mode: str) -> None:
    lists = OpLists.load(mode)
    for color, ops in zip(Color, (lists.allow, lists.deny, lists.gray, lists.clear), strict=True):
        assert ops
        for op in ops:
            assert lists.list_of(op) is color
            assert re.fullmatch(r"\S.{14,170}[^.\s]", lists.why(op)), op
    assert [(c, op) for c, op, _ in lists] == [(c, op) for c in Color for op in sorted(getattr(lists, c.value))]
    assert lists.list_of("NoSuchOp") is None
    assert lists.why("NoSuchOp") == "on no list"


@pytest.mark.parametrize("mode", [mode for mode in MODES if not mode.startswith("onnx")])
def test_every_op_is_one_that_tensorflow_defines(mode: str) -> None:
    named = {op for _, op, _ in OpLists.load(mode)}
    assert named - set(tf.op_types()) <= set(UNDEFINED.split())


def test_torch_autocast_differs_between_devices_as_torch_does() -> None:
    cuda, cpu = OpLists.load("torch_autocast_cuda"), OpLists.load("torch_autocast_cpu")
    # Ops that torch 2.13 runs in float32 under CUDA autocast and in their input's type under CPU autocast.
    for op in ("Exp", "Pow", "Sum", "Cumsum", "EuclideanNorm", "Softmax", "LogSoftmax"):
        assert (cuda.list_of(op), cpu.list_of(op)) == (Color.DENY, Color.GRAY), op
    for op in ("AvgPool3D", "Cholesky", "RFFT"):
        assert cpu.list_of(op) is Color.DENY
        assert cuda.list_of(op) is not Color.DENY
    for op in ("MatMul", "BatchMatMulV2", "Conv2D", "Conv3D", "Einsum"):
        assert (cuda.list_of(op), cpu.list_of(op)) == (Color.ALLOW, Color.ALLOW)
    assert cuda.list_of("Mean") is Color.GRAY
    assert cpu.list_of("ConcatV2") is Color.GRAY
    assert "softmax" in cuda.why("Softmax")
    assert OpLists.load("torch_autocast_cuda", cuda=(), cudnn=()).allow == cuda.allow


def test_an_unmet_condition_is_the_reason() -> None:
    lists = OpLists.load("cuda_fp16", cuda=(9, 0), cudnn=(7, 0))
    assert lists.list_of("BatchMatMulV2") is None
    assert lists.why("BatchMatMulV2").startswith("on the AllowList only with CUDA >= 9.1: ")
    assert lists.why("Conv3D").startswith("on the AllowList only with cuDNN >= 7.6.2: ")


def test_treat_infer_as_deny_joins_the_lists_after_the_edits() -> None:
    plain = OpLists.load("cuda_fp16")
    lists = OpLists.load("cuda_fp16", level="treat_infer_as_deny", overlays=["deny:+Softmax", "gray:+Sin"])
    assert lists.gray == frozenset()
    assert lists.deny == plain.deny | plain.gray | {"Sin"}
    assert (lists.allow, lists.clear) == (plain.allow, plain.clear)
    assert lists.why("Tanh") == f"level TREAT_INFER_AS_DENY moved it here from the GrayList: {plain.why('Tanh')}"


@pytest.mark.parametrize("mode", GRAPPLER)
def test_tensor_cores_only_leaves_the_allow_list(mode: str) -> None:
    plain = OpLists.load(mode)
    lists = OpLists.load(mode, level="TENSOR_CORES_ONLY", overlays=["gray:+Sin", "clear:-Relu", "allow:+Cos"])
    assert lists.allow == plain.allow | {"Cos"}
    if mode == "onednn_bf16":
        assert (lists.deny, lists.gray, lists.clear) == (plain.deny, plain.gray | {"Sin"}, plain.clear - {"Relu"})
    else:
        assert lists.deny | lists.gray | lists.clear == frozenset()
        assert lists.ineffective == (Edit("Sin", Color.GRAY, "+"), Edit("Relu", Color.CLEAR, "-"))
        assert lists.why("Tanh") == "taken off the GrayList by level TENSOR_CORES_ONLY"


def test_force_all_is_a_flag_and_an_error_with_onednn() -> None:
    lists = OpLists.load("cuda_fp16", level="Unsafe_Force_All")
    assert lists.force_all
    assert (lists.allow, lists.deny) == (OpLists.load("cuda_fp16").allow, OpLists.load("cuda_fp16").deny)
    assert not OpLists.load("cuda_fp16", level="bogus").force_all
    assert OpLists.load("cuda_fp16", level="bogus").level == ""
    with pytest.raises(OpListError, match="UNSAFE_FORCE_ALL cannot be used with the oneDNN lists"):
        OpLists.load("onednn_bf16", level="UNSAFE_FORCE_ALL")


def test_edits() -> None:
    lists = OpLists.load("cuda_fp16", overlays=["gray:+Sin", "gray:-Softmax", "Exp=gray", "MatMul=none", "clear:-Exp"])
    assert lists.list_of("Sin") is Color.GRAY
    assert lists.list_of("Softmax") is None
    assert lists.list_of("Exp") is Color.GRAY
    assert lists.list_of("MatMul") is None
    assert lists.why("Exp") == "by your change 'Exp=gray'"
    assert list(map(str, lists.ineffective)) == ["clear:-Exp"]
    # None of this leaks into the next load.
    assert OpLists.load("cuda_fp16").list_of("Softmax") is Color.GRAY


def test_unused_and_unknown_edits() -> None:
    lists = OpLists.load("cuda_fp16", overlays=["Softmax=deny", "Expp=gray", "allow:+Sin", "deny:-Relu"])
    assert list(map(str, lists.unused(["Softmax", "Relu"]))) == ["Expp=gray", "allow:+Sin", "deny:-Relu"]
    assert list(map(str, lists.unknown(["Sin"]))) == ["Expp=gray"]
    assert OpLists.load("cuda_fp16").unused([]) == ()


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        (["deny:+Softmax"], "'Softmax' is on the DenyList and on the GrayList. An op has one list: also take it off the"),
        (["deny:+Softmax"], "the other ('gray:-Softmax'), or move it with 'Softmax=deny'. Received: deny:+Softmax"),
        (["clear:+Exp"], "('deny:-Exp'), or move it with 'Exp=clear'"),
        (["gray:Softmax"], "A change of the op lists is written 'gray:+Op' (add)"),
        (["grey:+Softmax"], "There is no list 'grey': they are allow, deny, gray, clear. Did you mean 'gray'?"),
        (["none:+Softmax"], "There is no list 'none'"),
        (["Softmax=dney"], "There is no list 'dney': they are allow, deny, gray, clear. Did you mean 'deny'?"),
        (["deny:+"], "Received: 'deny:+'"),
    ],
)  # fmt: skip
def test_bad_edits(edits: list[str], message: str) -> None:
    with pytest.raises(OpListError, match=re.escape(message)):
        OpLists.load("cuda_fp16", overlays=edits)


def test_unknown_mode() -> None:
    with pytest.raises(OpListError, match=r"no op lists for 'cuda_fp61'.*Did you mean 'cuda_fp16'\?"):
        OpLists.load("cuda_fp61")


@given(st.text(st.characters(exclude_characters=":="), min_size=1), st.sampled_from([*Color]), st.sampled_from("+-="))
def test_edits_round_trip_as_text(op: str, color: Color, sign: str) -> None:
    edit = Edit(op, color, sign)
    assert Edit.parse(str(edit)) == edit


@given(
    st.lists(
        st.builds(Edit, st.sampled_from(["Exp", "Softmax", "Relu", "Sin"]), st.sampled_from([*Color]), st.sampled_from("+-="))
    )
)
def test_after_any_edits_an_op_is_on_one_list_or_it_is_an_error(edits: list[Edit]) -> None:
    try:
        lists = OpLists.load("cuda_fp16", overlays=edits)
    except OpListError as error:
        assert "conflicting entries" in str(error)  # noqa: PT017
        return
    sets = (lists.allow, lists.deny, lists.gray, lists.clear)
    assert sum(map(len, sets)) == len(frozenset().union(*sets))
