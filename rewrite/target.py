"""What a graph is rewritten for: a kind of device, and the devices that are there.

Which device a node is on, and whether that device is fast in low precision, follow Grappler's virtual placer.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..graph.errors import PolicyError, did_you_mean

Version = tuple[int, ...]

#: From this compute capability on, GPUs have tensor cores.
TENSOR_CORES = (7, 0)

_DEFAULT_NAME = "/job:localhost/replica:0/task:0/device:{}:{}"
_GPU_DEFAULTS = {"cuda": "12.5", "cudnn": "9.3"}
_VERSION = re.compile(r"\d{1,6}(\.\d{1,6}){0,3}")
_PART = re.compile(
    r"/?(?:(?P<key>job|replica|task):(?P<value>[^/:]+)"
    r"|device:(?P<type>[a-z_]+)(?::(?P<id>\d{1,9}|\*))?"
    r"|(?P<legacy>cpu|gpu)(?::(?P<legacy_id>\d{1,9}|\*))?)",
    re.IGNORECASE,
)


@dataclasses.dataclass(frozen=True, slots=True)
class Device:
    """A device of the machine or cluster.

    Attributes:
        name: TensorFlow's name, whole or in part: ``"/job:localhost/replica:0/task:0/device:GPU:0"``, ``"/GPU:1"``.
        type: ``"GPU"`` or ``"CPU"``.
        architecture: Compute capability; ``(0, 0)`` where there is none or it is not known.
        cuda, cudnn: Versions; empty where absent.
    """

    name: str
    type: str
    architecture: tuple[int, int] = (0, 0)
    cuda: Version = ()
    cudnn: Version = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """The kind of device whose nodes are rewritten, and all devices there are.

    The text form is ``gpu``, ``cpu``, ``gpu:8.0`` or ``gpu:8.0,cuda=12.5,cudnn=9.3`` (``none`` for a version that is
    absent); ``;`` separates several devices and ``name=`` names one. ``gpu/cpu`` means nodes on GPUs, on a machine that
    has only a CPU.

    Attributes:
        type: ``"gpu"`` or ``"cpu"``: nodes on such devices may change.
        devices: The devices; their names differ.

    Example:
        >>> str(Target.parse("gpu:8.6"))
        'gpu:8.6,cuda=12.5,cudnn=9.3'
        >>> Target.parse("gpu").is_on("/device:CPU:0", "GPU")
        False
    """

    type: str
    devices: tuple[Device, ...]

    def __post_init__(self) -> None:
        if self.type not in ("gpu", "cpu"):
            raise PolicyError(f"A target is 'gpu' or 'cpu'.{did_you_mean(self.type, ('gpu', 'cpu'))} Received: {self.type!r}")
        if not self.devices:
            raise PolicyError("A target needs at least one device.")
        for device in self.devices:
            if device.type not in ("GPU", "CPU"):
                raise PolicyError(f"A device of a target has type 'GPU' or 'CPU'. Received: {device.type!r} for {device.name!r}")
            if re.search(r"[,;\s]", device.name) or not device.name:
                raise PolicyError(
                    f"The name of a device is not empty and has no comma, semicolon or space. Received: {device.name!r}"
                )
        if len({device.name for device in self.devices}) < len(self.devices):
            raise PolicyError(f"Two devices of a target have the same name. Received: {[d.name for d in self.devices]}")

    @classmethod
    def parse(cls, text: "str | Target") -> "Target":
        """Read a target from its text form.

        Raises:
            PolicyError: If the text cannot be read.
        """
        if isinstance(text, Target):
            return text
        found = re.fullmatch(r"\s*(?:(gpu|cpu)/)?(.*?)\s*", text, re.DOTALL)
        prefix, rest = found.groups() if found else (None, text)
        counts = {"GPU": 0, "CPU": 0}
        devices = [_parse_device(part.strip(), counts, text) for part in rest.split(";")]
        return cls.of(devices, prefix)

    @classmethod
    def of(cls, devices: Iterable[Device], type: str | None = None) -> "Target":
        """Return the target with these devices; its type is gpu if one of them is, unless given."""
        devices = tuple(devices)
        return cls(type or ("gpu" if any(device.type == "GPU" for device in devices) else "cpu"), devices)

    @classmethod
    def from_devices(cls, devices: Iterable[Mapping[str, Any]], type: str | None = None) -> "Target":
        """Return the target for devices described as TensorFlow describes them.

        Args:
            devices: For each ``{"name": …, "type": "GPU", "env": {"architecture": "7.0", "cuda": "12050", "cudnn": "90300"}}``.
            type: ``"gpu"`` or ``"cpu"``; None = gpu if there is one.
        """

        def convert(row: Mapping[str, Any]) -> Device:
            env = row.get("env", {})
            return Device(
                row["name"],
                row["type"],
                parse_architecture(env.get("architecture", "")),
                cuda_version(env.get("cuda", "")),
                cudnn_version(env.get("cudnn", "")),
            )

        return cls.of(map(convert, devices), type)

    def __str__(self) -> str:
        counts = {"GPU": 0, "CPU": 0}
        parts = []
        for device in self.devices:
            text = device.type.lower()
            if device.type == "GPU":
                text += f":{_show(device.architecture)},cuda={_show(device.cuda)},cudnn={_show(device.cudnn)}"
            elif device.architecture != (0, 0) or device.cuda or device.cudnn:
                text += f":{_show(device.architecture)}"
                text += f",cuda={_show(device.cuda)}" if device.cuda else ""
                text += f",cudnn={_show(device.cudnn)}" if device.cudnn else ""
            if device.name != _DEFAULT_NAME.format(device.type, counts[device.type]):
                text += f",name={device.name}"
            counts[device.type] += 1
            parts.append(text)
        usual = Target.of(self.devices).type
        return ("" if usual == self.type else f"{self.type}/") + ";".join(parts)

    @property
    def default_device(self) -> Device:
        """Where a node without a device runs: the only device, else the first GPU, else the first CPU."""
        if len(self.devices) == 1:
            return self.devices[0]
        return min(self.devices, key=lambda device: (device.type != "GPU", _number(device)))

    @property
    def cuda(self) -> Version:
        """The CUDA version of the first GPU that has one; empty if none has."""
        return next((device.cuda for device in self.devices if device.type == "GPU" and device.cuda), ())

    @property
    def cudnn(self) -> Version:
        """The cuDNN version of the first GPU that has one; empty if none has."""
        return next((device.cudnn for device in self.devices if device.type == "GPU" and device.cudnn), ())

    @property
    def has_gpu(self) -> bool:
        """Whether one of the devices is a GPU."""
        return any(device.type == "GPU" for device in self.devices)

    @property
    def has_tensor_cores(self) -> bool:
        """Whether one of the devices is a GPU of compute capability 7.0 or above."""
        return any(device.type == "GPU" and device.architecture >= TENSOR_CORES for device in self.devices)

    def with_simulated_gpu(self) -> "Target":
        """Return a target that has a GPU: this one, or a copy with a GPU 8.0 (CUDA 11.5, cuDNN 8.3.2) where it has none."""
        if self.has_gpu:
            return self
        gpu = Device(_DEFAULT_NAME.format("GPU", 0), "GPU", (8, 0), (11, 5), (8, 3, 2))
        return Target(self.type, (*self.devices, gpu))

    def is_on(self, device: str, type: str) -> bool:
        """Whether a node with this device string runs on a device of a type (``"GPU"``, ``"CPU"``).

        A node without a device runs on :attr:`default_device`. A string that gives no device type or no number, or does
        not start with a slash, is on no type of device, as in Grappler.
        """
        if not device:
            return self.default_device.type == type.upper()
        located = _locate(device) if device.startswith("/") else None
        return located is not None and located[4] is not None and type.lower() in located[3]

    def find(self, device: str) -> Device:
        """Return the device a device string names, wholly or in part; :attr:`default_device` if it names none.

        Parts left out are job ``localhost``, replica, task and number 0.
        """
        located = _canonical(device)
        return next((d for d in self.devices if located is not None and _canonical(d.name) == located), self.default_device)

    def capable(self, device: str) -> bool:
        """Whether the device a device string names (:meth:`find`) has compute capability 7.0 or above."""
        return self.find(device).architecture >= TENSOR_CORES


def parse_architecture(text: str) -> tuple[int, int]:
    """Return the compute capability ``"7"`` or ``"7.5"`` as two numbers; anything else is ``(0, 0)``."""
    found = re.fullmatch(r"(\d{1,6})(?:\.(\d{1,6}))?", text)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def cuda_version(text: str) -> Version:
    """Return TensorFlow's CUDA number ``"9010"`` as ``(9, 1)``; anything but a number is the empty version."""
    return (int(text) // 1000, int(text) % 1000 // 10) if re.fullmatch(r"\d{1,9}", text) else ()


def cudnn_version(text: str) -> Version:
    """Return cuDNN's number ``"7602"`` as ``(7, 6, 2)`` and ``"90300"`` as ``(9, 3, 0)``; else the empty version."""
    if not re.fullmatch(r"\d{1,9}", text):
        return ()
    number = int(text)
    major = number // (10000 if number >= 10000 else 1000)
    rest = number % (10000 if number >= 10000 else 1000)
    return (major, rest // 100, rest % 100)


def _show(version: Version) -> str:
    return ".".join(map(str, version)) or "none"


def _parse_version(text: str, what: str, received: str) -> Version:
    if text == "none":
        return ()
    if not _VERSION.fullmatch(text):
        raise PolicyError(f"The {what} of a target is a number like 8.0, or 'none'. Received: {text!r} in {received!r}")
    numbers = tuple(map(int, text.split(".")))
    return numbers if len(numbers) > 1 else (*numbers, 0)


def _parse_device(text: str, counts: dict[str, int], received: str) -> Device:
    head, *pairs = text.split(",")
    type_name, colon, architecture = head.partition(":")
    if type_name not in ("gpu", "cpu"):
        hint = did_you_mean(type_name, ("gpu", "cpu"))
        raise PolicyError(f"A target is 'gpu', 'cpu' or like 'gpu:8.0,cuda=12.5,cudnn=9.3'.{hint} Received: {received!r}")
    type_name = type_name.upper()
    fields = {"name": _DEFAULT_NAME.format(type_name, counts[type_name])}
    fields |= _GPU_DEFAULTS if type_name == "GPU" else {"cuda": "none", "cudnn": "none"}
    counts[type_name] += 1
    for pair in pairs:
        key, equals, value = pair.strip().partition("=")
        if key not in fields or not equals or not value:
            hint = did_you_mean(key, fields)
            raise PolicyError(f"A target knows cuda=, cudnn= and name=.{hint} Received: {pair.strip()!r} in {received!r}")
        fields[key] = value
    default = "8.0" if type_name == "GPU" else "0.0"
    found = _parse_version(architecture if colon else default, "compute capability", received)
    if len(found) != 2:
        raise PolicyError(f"A compute capability has two numbers, like 8.0. Received: {architecture!r} in {received!r}")
    cuda, cudnn = (_parse_version(fields[key], f"{key} version", received) for key in ("cuda", "cudnn"))
    return Device(fields["name"], type_name, (found[0], found[1]), cuda, cudnn)


def _locate(device: str) -> tuple[str, int, int, str, int | None] | None:
    """Return job, replica, task, type (lower case; empty if none) and number (None if none) of a device string."""
    where = {"job": "localhost", "replica": "0", "task": "0"}
    kind, number, end = "", None, 0
    while end < len(device):
        found = _PART.match(device, end)
        if found is None or (not found[0].startswith("/") and end > 0):
            return None
        if found["key"]:
            where[found["key"].lower()] = found["value"].lower()
        else:
            kind = (found["type"] or found["legacy"]).lower()
            digits = found["id"] or found["legacy_id"]
            number = int(digits) if digits and digits != "*" else None
        end = found.end()
    replica, task = ("0" if where[key] == "*" else where[key] for key in ("replica", "task"))
    if not (replica.isdecimal() and task.isdecimal() and len(replica) < 10 and len(task) < 10):
        return None
    return where["job"], int(replica), int(task), kind, number


def _number(device: Device) -> int:
    located = _locate(device.name)
    return located[4] or 0 if located else 0


def _canonical(device: str) -> tuple[str, int, int, str, int] | None:
    located = _locate(device)
    return None if located is None else (*located[:4], located[4] or 0)
