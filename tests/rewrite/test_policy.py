"""The policy: its two written forms, its mode, its gate, and its errors."""

import dataclasses
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ampgraph.graph.dtypes import bfloat16
from ampgraph.graph.errors import OpListError, PolicyError
from ampgraph.lists import LEVELS, Color
from ampgraph.rewrite.policy import PRESETS, NodeOverride, Policy
from ampgraph.rewrite.target import Target

PREFIX = "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_"

OTHER: dict[str, Any] = {
    "preset": "torch-autocast",
    "dtype": "bfloat16",
    "target": Target.parse("cpu;gpu:7.5,cuda=none"),
    "keep_io": False,
    "ops": ("Softmax=deny", "gray:+Sin"),
    "nodes": (r"layer_\d+, \"x\"=deny", "a=b=none"),
    "preserve": ("logits", "a,b", "  ", ""),
    "level": "TREAT_INFER_AS_DENY",
    "ignore_performance": True,
    "simulate_gpu": True,
    "emulate_fp16": False,
    "ranges": (("h/mul:0", 2.0**-40, 1e30), ('a "b", c=d', 0.0, 70000.0)),
    "kept": (("norm\\1", "output 'y' would be off, by 0.5"), ("", "")),
}


@pytest.mark.parametrize("field", dataclasses.fields(Policy), ids=lambda field: field.name)
def test_every_field_round_trips_with_another_value(field: "dataclasses.Field[Any]") -> None:
    policy = Policy(**{field.name: OTHER[field.name]})
    assert getattr(policy, field.name) == OTHER[field.name] != getattr(Policy(), field.name)
    assert Policy.parse(str(policy)) == policy
    assert Policy.from_toml(policy.to_toml()) == policy


texts = st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=3).map(tuple)
listed = st.sampled_from(["deny", "allow", "gray", "clear", "none"])
policies = st.builds(
    Policy,
    preset=st.sampled_from([preset for preset in PRESETS if preset != "grappler"]),
    dtype=st.sampled_from(["float16", "bfloat16"]),
    target=st.sampled_from(["gpu", "cpu", "gpu/cpu", "cpu/gpu:6.0;cpu,name=/CPU:7"]),
    keep_io=st.booleans() | texts.filter(bool).map(lambda names: tuple(dict.fromkeys(names))),
    ops=st.lists(st.tuples(st.text("Aa b,\"\\\n'", min_size=1), listed).map("=".join), max_size=3).map(tuple),
    nodes=st.lists(st.tuples(st.text().map(re.escape), listed).map("=".join), max_size=3).map(tuple),
    preserve=texts,
    level=st.sampled_from(["", *LEVELS]),
    ignore_performance=st.booleans(),
    simulate_gpu=st.booleans(),
    emulate_fp16=st.booleans(),
)


@given(policies)
def test_any_policy_round_trips_as_one_line_and_as_toml(policy: Policy) -> None:
    text = str(policy)
    assert len(text.splitlines()) == 1
    assert Policy.parse(text) == policy
    assert Policy.from_toml(policy.to_toml()) == policy


def test_text_form() -> None:
    assert str(Policy()) == 'preset=safe,dtype=float16,target="gpu:8.0,cuda=12.5,cudnn=9.3"'
    policy = Policy.parse(
        ' dtype = bf16, target=cpu , keep_io=false,nodes=head/.*=deny, nodes="x,y=allow",level=tensor_cores_only'
    )
    assert policy == Policy(
        dtype="bfloat16",
        target=Target.parse("cpu"),
        keep_io=False,
        nodes=("head/.*=deny", "x,y=allow"),
        level="TENSOR_CORES_ONLY",
    )
    assert Policy.parse("") == Policy()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "preset=save",
            "There is no preset 'save': there are safe, tensorrt, onnxruntime, grappler, torch-autocast. Did you mean 'safe'?",
        ),
        ("dtype=float8", "A policy needs dtype float16 or bfloat16. Unknown dtype 'float8'"),
        ("dtype=float32", "A policy needs dtype float16 or bfloat16. Received: 'float32'"),
        ("traget=gpu", "A policy has no field 'traget'. Did you mean 'target'?"),
        ("level=TENSOR_CORE", "There is no level 'TENSOR_CORE': there are TREAT_INFER_AS_DENY,"),
        ("keep_io=yes", "Field 'keep_io' of a policy is true, false, or a list of names of inputs and outputs"),
        ("keep_io=true,keep_io=false", "Field 'keep_io' stands twice in a policy"),
        ('keep_io=true,keep_io="y"', "Field 'keep_io' stands twice in a policy"),
        ("dtype=float16,dtype=float16", "Field 'dtype' stands twice in a policy"),
        ("dtype", "A policy is written key=value"),
        ('preset="safe', "A policy is written key=value"),
        (r'preset="\safe"', "A quoted value has JSON's escapes"),
        ("nodes=x", "A node override is written 'PATTERN=list'"),
        ("nodes=x=denny", "Did you mean 'deny'?"),
        ("nodes=(=deny", "The pattern of a node override is a regular expression: "),
        ("target=tpu", "A target is 'gpu', 'cpu' or like"),
        ("preset=grappler,dtype=bfloat16", "Grappler has no mode for gpu with bfloat16: preset 'grappler' knows"),
        (
            "preset=grappler,dtype=bfloat16",
            "gpu with float16 (cuda_fp16), cpu with bfloat16 (onednn_bf16), cpu with float16 (cpu_fp16)",
        ),
    ],
)
def test_bad_text(text: str, message: str) -> None:
    with pytest.raises(PolicyError, match=re.escape(message)):
        Policy.parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dtype = ", "A policy file is TOML with fields like"),
        ('dtyp = "float16"', "A policy has no field 'dtyp'. Did you mean 'dtype'?"),
        ("dtype = 16", "Field 'dtype' of a policy is a string. Received: 16"),
        ("target = 8.0", "Field 'target' of a policy is a Target or its text form"),
        ('ops = "Softmax=deny"', "Field 'ops' of a policy is a list of strings"),
        ("preserve = [1]", "Field 'preserve' of a policy is a list of strings"),
        (
            'ranges = [["a", 2.0, 1.0]]',
            "Field 'ranges' of a policy is a list of (name, smallest, largest), two finite magnitudes",
        ),
        (
            'ranges = [["a", 0.0, nan]]',
            "Field 'ranges' of a policy is a list of (name, smallest, largest), two finite magnitudes",
        ),
        (f'ranges = [["a", 0, {10**400}]]', "Field 'ranges' of a policy is a list of (name, smallest, largest), two finite"),
        ("preserve = 1", "Field 'preserve' of a policy is a list of strings"),
        ("keep_io = 1", 'keep_io="name",keep_io="other"). Received: 1'),
        ('keep_io = "y"', "Received: 'y'"),
    ],
)
def test_bad_toml(text: str, message: str) -> None:
    with pytest.raises(PolicyError, match=re.escape(message)):
        Policy.from_toml(text)


def test_bad_arguments() -> None:
    with pytest.raises(PolicyError, match=r"Field 'ops' of a policy is a list of strings\. Received: 'Softmax=deny'"):
        Policy(ops="Softmax=deny")  # type: ignore[arg-type]
    with pytest.raises(OpListError, match="A change of the op lists is written"):
        Policy(ops=("Softmax",))


@pytest.mark.parametrize(
    ("text", "mode", "emulates"),
    [
        ("", "cuda_fp16", False),
        ("dtype=bfloat16", "cuda_fp16", False),
        ("target=cpu", "cuda_fp16", False),
        ("preset=grappler", "cuda_fp16", False),
        ("preset=grappler,target=cpu,dtype=bfloat16", "onednn_bf16", False),
        ("preset=grappler,target=cpu", "cpu_fp16", True),
        ("preset=grappler,target=cpu,emulate_fp16=false", "cpu_fp16", False),
        ("preset=torch-autocast,dtype=bfloat16", "torch_autocast_cuda", False),
        ("preset=torch-autocast,target=cpu", "torch_autocast_cpu", False),
        ("preset=tensorrt", "cuda_fp16", False),
        ("preset=onnxruntime,dtype=bfloat16", "cuda_fp16", False),
    ],
)
def test_mode(text: str, mode: str, emulates: bool) -> None:
    policy = Policy.parse(text)
    assert (policy.mode, policy.lists().mode, policy.emulates) == (mode, mode, emulates)
    assert Policy(dtype="bf16").low is bfloat16


@pytest.mark.parametrize(
    ("text", "mode", "hazards"),
    [
        ("", "onnx_float16", True),
        ("target=cpu,dtype=bfloat16", "onnx_bfloat16", True),
        ("preset=tensorrt", "onnx_tensorrt_float16", True),
        ("preset=tensorrt,dtype=bfloat16", "onnx_tensorrt_bfloat16", True),
        ("preset=onnxruntime", "onnx_onnxruntime_float16", True),
        ("preset=onnxruntime,dtype=bfloat16", "onnx_onnxruntime_bfloat16", True),
        ("preset=torch-autocast", "onnx_torch_autocast_float16", False),
        ("preset=torch-autocast,dtype=bfloat16,target=cpu", "onnx_torch_autocast_bfloat16", False),
        ("preset=grappler", "onnx_grappler_float16", False),
        ("preset=grappler,target=cpu", "onnx_grappler_float16", False),
        ("preset=grappler,target=cpu,dtype=bfloat16", "onnx_grappler_bfloat16", False),
    ],
)
def test_onnx_mode(text: str, mode: str, hazards: bool) -> None:
    policy = Policy.parse(text)
    assert (policy.onnx_mode, policy.lists(onnx=True).mode, policy.hazards) == (mode, mode, hazards)


def test_keep_io_takes_names() -> None:
    policy = Policy(keep_io=["logits", "true", "logits"])
    assert policy.keep_io == ("logits", "true")
    assert (policy.keeps("logits"), policy.keeps("boxes")) == (True, False)
    assert str(policy).endswith(',keep_io="logits",keep_io="true"')
    assert Policy.parse('keep_io="true"') == Policy(keep_io=("true",)) != Policy.parse("keep_io=true") == Policy()
    assert Policy(keep_io=()) == Policy(keep_io=False)
    with pytest.raises(PolicyError, match="Received: 'logits'"):
        Policy(keep_io="logits")


def test_lists_follow_versions_level_and_edits() -> None:
    old = Policy.parse('target="gpu:7.0,cuda=9.0,cudnn=7.0",ops=Softmax=deny,level=TREAT_INFER_AS_DENY').lists()
    assert (old.list_of("BatchMatMulV2"), old.list_of("Conv3D"), old.list_of("Softmax")) == (None, None, Color.DENY)
    assert old.gray == frozenset()
    # A CPU has no CUDA version that could be too old.
    assert Policy.parse("target=cpu").lists().list_of("Conv3D") is Color.ALLOW
    # The GPU that simulate_gpu supposes has CUDA 11.5.
    assert Policy.parse("target=gpu/cpu,simulate_gpu=true").lists().list_of("Conv3D") is Color.ALLOW
    assert Policy.parse("target=gpu/cpu").lists().list_of("Conv3D") is None


@pytest.mark.parametrize(
    ("text", "obstacle", "on_default", "on_gpu_1"),
    [
        ("target=cpu;gpu:7.0;gpu:6.0", "", True, False),
        ("target=cpu;gpu:6.0;gpu:7.0", "", False, True),
        ("target=gpu:6.1", "compute capability 7.0 or above", False, False),
        ("target=gpu:6.1,ignore_performance=true", "", True, True),
        ("target=gpu:6.1,simulate_gpu=true", "", False, False),
        ("target=gpu/cpu", "has no GPU", False, False),
        ("target=gpu/cpu,ignore_performance=true", "has no GPU", False, False),
        ("target=gpu/cpu,simulate_gpu=true", "", True, True),
        ("target=cpu", "", True, False),
        ("target=cpu/cpu;gpu", "", False, False),
    ],
)
def test_gate(text: str, obstacle: str, on_default: bool, on_gpu_1: bool) -> None:
    policy = Policy.parse(text)
    assert obstacle in policy.obstacle
    assert bool(obstacle) is bool(policy.obstacle)
    assert (policy.may_change(""), policy.may_change("/GPU:1")) == (on_default, on_gpu_1)
    assert policy.may_change("/CPU:0") is (policy.device_type == "cpu")


def test_node_overrides() -> None:
    overrides = Policy(nodes=("dense/.*=deny", "dense/MatMul=allow", "conv1=none", "never=gray")).overrides()
    assert overrides
    assert not Policy().overrides()
    assert overrides.find("dense/MatMul") == NodeOverride("dense/MatMul", Color.ALLOW)
    assert overrides.find("dense/Add") == NodeOverride("dense/.*", Color.DENY)
    assert overrides.find("conv10") is None
    assert list(map(str, overrides.unused())) == ["conv1=none", "never=gray"]
    assert overrides.find("conv1") == NodeOverride("conv1", None)
    assert list(map(str, overrides.unused())) == ["never=gray"]


def test_from_env(monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {
        PREFIX + "LEVEL": "treat_infer_as_deny",
        PREFIX + "INFERLIST_ADD": "Sin",
        PREFIX + "IGNORE_PERFORMANCE": "1",
        PREFIX + "SIMULATE_GPU": "true",
        PREFIX + "EMULATE_FP16": "0",
    }
    expected = Policy(
        level="TREAT_INFER_AS_DENY", ops=("gray:+Sin",), ignore_performance=True, simulate_gpu=True, emulate_fp16=False
    )
    assert Policy.from_env(environ) == expected
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert Policy() == Policy.parse("")
    assert Policy.from_env() == expected
    mine = Policy.from_env(level="", ops=["gray:-Sin"], simulate_gpu=False, preset="grappler")
    assert (mine.level, mine.ops, mine.simulate_gpu, mine.preset) == ("", ("gray:+Sin", "gray:-Sin"), False, "grappler")
    assert mine.lists().list_of("Sin") is None


def test_toml_nested_too_deeply() -> None:
    with pytest.raises(PolicyError, match="nested too deeply"):
        Policy.from_toml("ops = " + "[" * 100_000)


@pytest.mark.parametrize("field", ["ops", "nodes", "preserve"])
def test_lists_that_are_none(field: str) -> None:
    with pytest.raises(PolicyError, match=rf"Field '{field}' of a policy is a list of strings. Received: None"):
        Policy(**{field: None})  # type: ignore[arg-type]
