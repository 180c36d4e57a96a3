"""Targets: text form, TensorFlow's numbers, and which device a node is on."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ampgraph.graph.errors import PolicyError
from ampgraph.rewrite.target import Device, Target, cuda_version, cudnn_version, parse_architecture

LOCAL = "/job:localhost/replica:0/task:0/device:"


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("gpu", "gpu:8.0,cuda=12.5,cudnn=9.3"),
        ("gpu:7", "gpu:7.0,cuda=12.5,cudnn=9.3"),
        (" gpu:9.0, cuda=none ,cudnn=8 ", "gpu:9.0,cuda=none,cudnn=8.0"),
        ("cpu", "cpu"),
        ("cpu;gpu:6.1,name=/GPU:1;gpu:8.0", "cpu;gpu:6.1,cuda=12.5,cudnn=9.3,name=/GPU:1;gpu:8.0,cuda=12.5,cudnn=9.3"),
        ("gpu/cpu", "gpu/cpu"),
        ("cpu/cpu;gpu", "cpu/cpu;gpu:8.0,cuda=12.5,cudnn=9.3"),
        ("gpu/gpu", "gpu:8.0,cuda=12.5,cudnn=9.3"),
    ],
)
def test_text_form(text: str, full: str) -> None:
    assert str(Target.parse(text)) == full
    assert Target.parse(full) == Target.parse(text)


def test_defaults() -> None:
    assert Target.parse("gpu") == Target("gpu", (Device(LOCAL + "GPU:0", "GPU", (8, 0), (12, 5), (9, 3)),))
    assert Target.parse("cpu") == Target("cpu", (Device(LOCAL + "CPU:0", "CPU"),))
    two = Target.parse("cpu;gpu:6.1;gpu:8.0")
    assert [device.name for device in two.devices] == [LOCAL + "CPU:0", LOCAL + "GPU:0", LOCAL + "GPU:1"]
    assert (two.type, Target.parse("gpu/cpu").type, Target.parse("cpu/cpu;gpu").type) == ("gpu", "gpu", "cpu")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpux", "A target is 'gpu', 'cpu' or like 'gpu:8.0,cuda=12.5,cudnn=9.3'. Did you mean 'gpu'? Received: 'gpux'"),
        ("", "A target is 'gpu', 'cpu' or"),
        ("gpu;", "A target is 'gpu', 'cpu' or"),
        ("gpu:8.0,cudn=9", "A target knows cuda=, cudnn= and name=. Did you mean 'cudnn'? Received: 'cudn=9' in"),
        ("gpu:", "The compute capability of a target is a number like 8.0"),
        ("gpu:none", "A compute capability has two numbers"),
        ("gpu:8.0.1", "A compute capability has two numbers, like 8.0. Received: '8.0.1'"),
        ("gpu:sm_80", "Received: 'sm_80' in 'gpu:sm_80'"),
        ("gpu,cuda=12.x", "The cuda version of a target is a number"),
        ("gpu,name=a b", "The name of a device is not empty and has no comma, semicolon or space"),
        ("gpu,name=x;gpu,name=x", "Two devices of a target have the same name"),
    ],
)
def test_bad_text(text: str, message: str) -> None:
    with pytest.raises(PolicyError, match=re.escape(message)):
        Target.parse(text)


def test_bad_devices() -> None:
    with pytest.raises(PolicyError, match="at least one device"):
        Target.of([])
    with pytest.raises(PolicyError, match=r"type 'GPU' or 'CPU'\. Received: 'TPU' for '/TPU:0'"):
        Target.of([Device("/TPU:0", "TPU")])
    with pytest.raises(PolicyError, match="A target is 'gpu' or 'cpu'"):
        Target("tpu", (Device("/CPU:0", "CPU"),))


def test_numbers_of_tensorflow() -> None:
    # CUDA_VERSION is 1000 * major + 10 * minor; CUDNN_VERSION changed its factor with cuDNN 9.
    assert [cuda_version(text) for text in ("9010", "9000", "12050", "11020", "", "x")] == [
        (9, 1),
        (9, 0),
        (12, 5),
        (11, 2),
        (),
        (),
    ]
    assert cudnn_version("7602") == (7, 6, 2)
    assert cudnn_version("7999") == (7, 9, 99)
    assert cudnn_version("8302") == (8, 3, 2)
    assert cudnn_version("90300") == (9, 3, 0)
    assert cudnn_version("") == ()
    assert [parse_architecture(text) for text in ("7", "7.5", "10.0", "7.x", "", "7.", "-7")] == [
        (7, 0), (7, 5), (10, 0), (0, 0), (0, 0), (0, 0), (0, 0),
    ]  # fmt: skip


def test_devices_as_tensorflow_describes_them() -> None:
    target = Target.from_devices(
        [
            {"name": LOCAL + "CPU:0", "type": "CPU", "env": {}},
            {"name": LOCAL + "GPU:0", "type": "GPU", "env": {"architecture": "7.0"}},
            {"name": LOCAL + "GPU:1", "type": "GPU", "env": {"architecture": "8.0", "cuda": "12050", "cudnn": "90300"}},
        ]
    )
    assert str(target) == "cpu;gpu:7.0,cuda=none,cudnn=none;gpu:8.0,cuda=12.5,cudnn=9.3.0"
    assert (target.cuda, target.cudnn) == ((12, 5), (9, 3, 0))
    assert Target.from_devices([{"name": "/CPU:0", "type": "CPU"}], "gpu").has_gpu is False


def test_default_device() -> None:
    assert Target.parse("cpu").default_device.name == LOCAL + "CPU:0"
    assert Target.parse("cpu;gpu,name=/GPU:3;gpu,name=/GPU:1").default_device.name == "/GPU:1"
    assert Target.parse("cpu,name=/CPU:10;cpu,name=/CPU:9").default_device.name == "/CPU:9"


MIXED = Target.parse("cpu;gpu:8.0;gpu:6.1")


@pytest.mark.parametrize(
    ("device", "on_gpu", "on_cpu", "capable"),
    [
        ("", True, False, True),
        ("/gpu:1", True, False, False),
        ("/GPU:1", True, False, False),
        ("/device:GPU:1", True, False, False),
        ("/device:gpu:0", True, False, True),
        (LOCAL + "GPU:1", True, False, False),
        ("/task:0/device:GPU:1", True, False, False),
        ("/device:XLA_GPU:1", True, False, True),  # on a GPU by name, but no device of the target: the default's capability
        ("/GPU:9", True, False, True),
        ("/job:worker/replica:0/task:0/device:GPU:1", True, False, True),
        ("/cpu:0", False, True, False),
        (LOCAL + "CPU:0", False, True, False),
        ("/device:GPU:*", False, False, True),
        ("/job:localhost", False, False, True),
        ("nonsense/////", False, False, True),
        ("GPU:1", False, False, False),
    ],
)
def test_where_a_node_is(device: str, on_gpu: bool, on_cpu: bool, capable: bool) -> None:
    assert (MIXED.is_on(device, "GPU"), MIXED.is_on(device, "cpu")) == (on_gpu, on_cpu)
    assert MIXED.capable(device) is capable


def test_simulated_gpu() -> None:
    assert str(Target.parse("gpu/cpu").with_simulated_gpu()) == "cpu;gpu:8.0,cuda=11.5,cudnn=8.3.2"
    old = Target.parse("gpu:6.0")
    assert old.with_simulated_gpu() is old
    assert (old.has_tensor_cores, Target.parse("gpu:7.0").has_tensor_cores) == (False, True)


numbers = st.integers(0, 99999)
versions = st.one_of(st.just(()), st.lists(numbers, min_size=2, max_size=4).map(tuple))
names = st.text(st.characters(exclude_categories=("Z", "C"), exclude_characters=",;"), min_size=1)
devices = st.builds(Device, names, st.sampled_from(["GPU", "CPU"]), st.tuples(numbers, numbers), versions, versions)
targets = st.builds(
    Target, st.sampled_from(["gpu", "cpu"]), st.lists(devices, min_size=1, max_size=4, unique_by=lambda d: d.name).map(tuple)
)


@given(targets)
def test_any_target_round_trips(target: Target) -> None:
    assert Target.parse(str(target)) == target


@given(st.text(st.sampled_from("/:*0gpudevicjobGPU19 xé"), max_size=40), st.sampled_from(["GPU", "CPU"]))
def test_any_device_string_has_an_answer(device: str, type: str) -> None:
    assert MIXED.is_on(device, type) in (True, False)
    assert MIXED.find(device) in MIXED.devices
