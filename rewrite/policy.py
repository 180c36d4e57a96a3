"""The policy: everything a user can ask of the rewrite, as one immutable value that is also text and TOML."""

import dataclasses
import json
import os
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from sys import float_info
from typing import Any

from ..graph.dtypes import LOW_PRECISION, DType, find_dtype
from ..graph.errors import GraphError, PolicyError, did_you_mean
from ..lists import LEVELS, Color, Edit, OpLists, read_environment
from .target import Target

PRESETS = ("safe", "tensorrt", "onnxruntime", "grappler", "torch-autocast")

_GRAPPLER_MODES = {("gpu", "float16"): "cuda_fp16", ("cpu", "bfloat16"): "onednn_bf16", ("cpu", "float16"): "cpu_fp16"}
_TUPLES = ("ops", "nodes", "preserve")
#: Fields that calibration fills, and what an item of each is.
_ROWS = {"ranges": (str, float, float), "kept": (str, str)}
_BOOLEANS = ("ignore_performance", "simulate_gpu", "emulate_fp16")
_ITEM = re.compile(r'\s*([^=,"]*)=\s*("(?:[^"\\]|\\.)*"|[^,"]*)\s*(,|\Z)')


@dataclasses.dataclass(frozen=True, slots=True)
class NodeOverride:
    """The list that nodes with matching names are treated as being on, whatever their op.

    Attributes:
        pattern: Regular expression that matches the whole name of a node.
        color: The list; None = on no list: the nodes keep their types, and nothing spreads from them.
    """

    pattern: str
    color: Color | None

    def __str__(self) -> str:
        return f"{self.pattern}={self.color.value if self.color else 'none'}"


class NodeOverrides:
    """The node overrides of a policy, compiled, with a memory of which ones matched. Made by :meth:`Policy.overrides`."""

    def __init__(self, overrides: Iterable[NodeOverride]) -> None:
        self._rules = [(re.compile(rule.pattern).fullmatch, rule) for rule in overrides]
        self._matched: set[NodeOverride] = set()

    def __bool__(self) -> bool:
        return bool(self._rules)

    def find(self, name: str) -> NodeOverride | None:
        """Return the override for a node name, or None. Where several match, the last one holds; all count as used."""
        result = None
        for match, rule in self._rules:
            if match(name):
                self._matched.add(rule)
                result = rule
        return result

    def unused(self) -> tuple[NodeOverride, ...]:
        """Return the overrides that matched no name :meth:`find` was asked for."""
        return tuple(rule for _, rule in self._rules if rule not in self._matched)


@dataclasses.dataclass(frozen=True, slots=True)
class Policy:
    """What to rewrite, for what, and how carefully.

    The text form, printed by ``str`` and read by :meth:`parse`, is a line ``preset=safe,dtype=float16,…``; a value with a
    comma stands in double quotes, the keys of lists (``ops``, ``nodes``, ``preserve``) are repeated, and so is ``keep_io``
    with names, which always stand in double quotes.

    Attributes:
        preset: ``"safe"``, ``"grappler"`` (decisions equal to TensorFlow's) or ``"torch-autocast"``; for ONNX models also
            ``"tensorrt"`` and ``"onnxruntime"``, which for TensorFlow graphs are the same as ``"safe"``.
        dtype: ``"float16"`` or ``"bfloat16"``.
        target: A :class:`Target` or its text form.
        keep_io: Whether inputs and outputs of the graph keep their dtypes; or the names of those that do. Inputs of
            TensorFlow graphs always keep theirs.
        ops: Changes of the op lists: ``"gray:+Sin"``, ``"gray:-Softmax"``, ``"Softmax=deny"``.
        nodes: Lists for single nodes, ``"PATTERN=deny"`` (or allow, gray, clear, none); the pattern is a regular
            expression that matches the whole node name; the last match holds.
        preserve: Names of nodes that must not change.
        level: Grappler's level: one of :data:`~ampgraph.lists.LEVELS`, or empty.
        ignore_performance: Rewrite for GPUs without tensor cores too.
        simulate_gpu: Suppose a GPU where the target has none.
        emulate_fp16: Matters only for preset ``grappler`` on a CPU with float16: keep float32 kernels and round by casts.
        ranges: What was measured of values by name: ``(name, smallest, largest)``, the least and the largest magnitude that is
            neither 0 nor infinite. Where the low dtype has no such numbers the value stays float32.
        kept: Values whose nodes stay float32, by name, each with the reason: ``(name, why)``.

    Raises:
        PolicyError: If a field has a value that makes no sense, or fields contradict each other.
        OpListError: If an entry of ``ops`` cannot be read.

    Example:
        >>> policy = Policy.parse("dtype=bfloat16,ops=Softmax=deny")
        >>> str(policy)
        'preset=safe,dtype=bfloat16,target="gpu:8.0,cuda=12.5,cudnn=9.3",ops=Softmax=deny'
        >>> policy.lists().list_of("Softmax").title
        'DenyList'
    """

    preset: str = "safe"
    dtype: str = "float16"
    target: Target | str = "gpu"
    keep_io: bool | Collection[str] = True
    ops: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    preserve: tuple[str, ...] = ()
    level: str = ""
    ignore_performance: bool = False
    simulate_gpu: bool = False
    emulate_fp16: bool = True
    ranges: tuple[tuple[str, float, float], ...] = ()
    kept: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for name in ("preset", "dtype", "level"):
            if not isinstance(getattr(self, name), str):
                raise PolicyError(f"Field {name!r} of a policy is a string. Received: {getattr(self, name)!r}")
        if self.preset not in PRESETS:
            raise PolicyError(
                f"There is no preset {self.preset!r}: there are {', '.join(PRESETS)}.{did_you_mean(self.preset, PRESETS)}"
            )
        try:
            dtype = find_dtype(self.dtype)
        except GraphError as error:
            raise PolicyError(f"A policy needs dtype float16 or bfloat16. {error}") from None
        if dtype not in LOW_PRECISION:
            raise PolicyError(f"A policy needs dtype float16 or bfloat16. Received: {self.dtype!r}")
        level = self.level.upper()
        if level and level not in LEVELS:
            raise PolicyError(f"There is no level {self.level!r}: there are {', '.join(LEVELS)}.{did_you_mean(level, LEVELS)}")
        for name in _BOOLEANS:
            if not isinstance(getattr(self, name), bool):
                raise PolicyError(f"Field {name!r} of a policy is true or false. Received: {getattr(self, name)!r}")
        if not isinstance(self.target, str | Target):
            raise PolicyError(f"Field 'target' of a policy is a Target or its text form. Received: {self.target!r}")
        for name in _TUPLES:
            value = getattr(self, name)
            if isinstance(value, str) or not isinstance(value, Collection) or not all(isinstance(item, str) for item in value):
                raise PolicyError(f"Field {name!r} of a policy is a list of strings. Received: {value!r}")
        normal = {
            "dtype": dtype.name,
            "keep_io": _kept_names(self.keep_io),
            "level": level,
            "target": Target.parse(self.target),
            "ops": tuple(str(Edit.parse(text)) for text in self.ops),
            "nodes": tuple(str(_node_override(text)) for text in self.nodes),
            "preserve": tuple(self.preserve),
            **{name: _rows(name, getattr(self, name)) for name in _ROWS},
        }
        for name, value in normal.items():
            object.__setattr__(self, name, value)
        _ = self.mode  # contradictions show now, not when the graph has been read

    @property
    def _target(self) -> Target:
        return Target.parse(self.target)  # itself: it was parsed when the policy was made

    @property
    def device_type(self) -> str:
        """``"gpu"`` or ``"cpu"``: nodes on such devices may change."""
        return self._target.type

    @property
    def low(self) -> DType:
        """The dtype object of :attr:`dtype`."""
        return find_dtype(self.dtype)

    @property
    def mode(self) -> str:
        """The table of op lists for TensorFlow graphs: a key of :data:`~ampgraph.lists.MODES`.

        Raises:
            PolicyError: If preset ``grappler`` has no mode for this target and dtype.
        """
        if self.preset == "torch-autocast":
            return "torch_autocast_cuda" if self.device_type == "gpu" else "torch_autocast_cpu"
        if self.preset != "grappler":
            return "cuda_fp16"
        mode = _GRAPPLER_MODES.get((self.device_type, self.dtype))
        if mode is None:
            known = ", ".join(f"{target} with {dtype} ({name})" for (target, dtype), name in _GRAPPLER_MODES.items())
            raise PolicyError(
                f"Grappler has no mode for {self.device_type} with {self.dtype}: preset 'grappler' knows {known}. "
                f"Preset 'safe' takes every combination."
            )
        return mode

    @property
    def onnx_mode(self) -> str:
        """The table of op lists for ONNX models: a key of :data:`~ampgraph.lists.MODES`."""
        preset = "" if self.preset == "safe" else f"{self.preset.replace('-', '_')}_"
        return f"onnx_{preset}{self.dtype}"

    @property
    def hazards(self) -> bool:
        """Whether to look for what op lists cannot see, such as constants out of range (:mod:`~ampgraph.rewrite.hazards`)."""
        return self.preset not in ("grappler", "torch-autocast")

    @property
    def emulates(self) -> bool:
        """Whether types of a TensorFlow graph stay float32 and casts emulate the rounding, as Grappler does for float16 on CPUs."""
        return self.mode == "cpu_fp16" and self.emulate_fp16

    @property
    def devices(self) -> Target:
        """The target with the GPU that :attr:`simulate_gpu` supposes."""
        return self._target.with_simulated_gpu() if self.simulate_gpu and self.device_type == "gpu" else self._target

    @property
    def obstacle(self) -> str:
        """Why nothing can be rewritten for this target, a sentence; empty if something can."""
        if self.device_type == "cpu" or self.simulate_gpu:
            return ""
        if not self._target.has_gpu:
            return (
                f"The target {str(self.target)!r} has no GPU; simulate_gpu supposes one, and target 'cpu' rewrites for the CPU."
            )
        if self._target.has_tensor_cores or self.ignore_performance:
            return ""
        return (
            f"No GPU of the target {str(self.target)!r} has compute capability 7.0 or above, so low precision would not be "
            f"faster; ignore_performance rewrites anyway."
        )

    def may_change(self, device: str) -> bool:
        """Whether nodes with this device string may change: right kind of device, and fast in low precision.

        The answer depends on the string alone, so callers ask once per string.
        """
        devices = self.devices
        if self.obstacle or not devices.is_on(device, self.device_type):
            return False
        return self.device_type == "cpu" or self.ignore_performance or devices.capable(device)

    def keeps(self, name: str) -> bool:
        """Whether the input or output of this name keeps its dtype."""
        return name in self.keep_io if isinstance(self.keep_io, tuple) else bool(self.keep_io)

    def lists(self, *, onnx: bool = False) -> OpLists:
        """Return the op lists this policy asks for, those of TensorFlow or of ONNX.

        Raises:
            OpListError: If the changes leave an op on two lists, or the lists do not know the level.
        """
        versions = {"cuda": self.devices.cuda, "cudnn": self.devices.cudnn} if self.device_type == "gpu" else {}
        return OpLists.load(self.onnx_mode if onnx else self.mode, level=self.level, overlays=self.ops, **versions)

    def overrides(self) -> NodeOverrides:
        """Return the node overrides, compiled; they remember which of them matched."""
        return NodeOverrides(map(_node_override, self.nodes))

    def __str__(self) -> str:
        parts = []
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name == "keep_io" and isinstance(value, tuple):
                parts += [f"keep_io={json.dumps(item)}" for item in value]
            elif field.name in _ROWS:
                parts += [f"{field.name}={json.dumps(json.dumps(row, ensure_ascii=False))}" for row in value]
            elif field.name in _TUPLES:
                parts += [f"{field.name}={_quoted(item)}" for item in value]
            elif field.name in ("preset", "dtype", "target") or value != field.default:
                text = str(value).lower() if isinstance(value, bool) else str(value)
                parts.append(f"{field.name}={_quoted(text)}")
        return ",".join(parts)

    @classmethod
    def parse(cls, text: str) -> "Policy":
        """Read a policy from its text form; fields left out have their defaults.

        Raises:
            PolicyError: If the text cannot be read.
            OpListError: If an entry of ``ops`` cannot be read.
        """
        fields: dict[str, Any] = {}
        end = 0
        while end < len(text.rstrip()):
            found = _ITEM.match(text, end)
            if found is None:
                raise PolicyError(f'A policy is written key=value,key="value, quoted",… Cannot read {text[end:]!r} in {text!r}')
            name, value = found[1].strip(), found[2]
            quoted = value.startswith('"')
            if quoted:
                try:
                    value = json.loads(value)
                except ValueError:
                    raise PolicyError(f"A quoted value has JSON's escapes. Cannot read {value} in {text!r}") from None
            else:
                value = value.strip()
            _check_names([name], text)
            if name in _TUPLES or (name == "keep_io" and quoted and isinstance(fields.get(name, ()), tuple)):
                fields[name] = (*fields.get(name, ()), value)
            elif name in _ROWS:
                fields[name] = (*fields.get(name, ()), _row(name, value))
            elif name in fields:
                raise PolicyError(f"Field {name!r} stands twice in a policy. Received: {text!r}")
            elif name in (*_BOOLEANS, "keep_io"):
                fields[name] = {"true": True, "false": False}.get(value, value)
            else:
                fields[name] = value
            end = found.end()
        return cls(**fields)

    def to_toml(self) -> str:
        """Return the policy as TOML: a line for each field, and for each measured range and kept value; those only if any."""
        lines = []
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name in _ROWS:
                if value:
                    rows = "".join(f"  {json.dumps(row, ensure_ascii=False)},\n" for row in value)
                    lines.append(f"{field.name} = [\n{rows}]\n".replace("\x7f", "\\u007f"))
                continue
            value = list(value) if isinstance(value, tuple) else value if isinstance(value, bool) else str(value)
            lines.append(f"{field.name} = {json.dumps(value, ensure_ascii=False)}\n".replace("\x7f", "\\u007f"))
        return "".join(lines)

    @classmethod
    def from_toml(cls, text: str) -> "Policy":
        """Read a policy from TOML; fields left out have their defaults.

        Raises:
            PolicyError: If the text is no TOML or has fields that a policy has not.
            OpListError: If an entry of ``ops`` cannot be read.
        """
        try:
            fields = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise PolicyError(f'A policy file is TOML with fields like dtype = "float16". It cannot be read: {error}') from None
        except RecursionError:
            raise PolicyError(
                'A policy file is TOML with fields like dtype = "float16". This one is nested too deeply.'
            ) from None
        _check_names(fields, text)
        for name in _TUPLES:
            if not isinstance(fields.get(name, []), list):
                raise PolicyError(f"Field {name!r} of a policy is a list of strings. Received: {fields[name]!r}")
        return cls(**fields)

    def without_measurements(self) -> "Policy":
        """Return the policy without what calibration adds: :attr:`ranges` and :attr:`kept`."""
        return dataclasses.replace(self, ranges=(), kept=())

    @classmethod
    def from_env(cls, environ: Mapping[str, str] = os.environ, **fields: Any) -> "Policy":
        """Return a policy that also follows Grappler's ``TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_*`` variables.

        Args:
            environ: Where the variables stand.
            fields: Fields of the policy. They win over the variables; ``ops`` are applied after those of the variables.

        Raises:
            PolicyError: As for a policy.
            OpListError: If a variable cannot be read.
        """
        found = read_environment(environ)
        given = {
            "level": found.level,
            "ignore_performance": found.ignore_performance,
            "simulate_gpu": found.simulate_gpu,
            "emulate_fp16": found.emulate_fp16,
            **fields,
            "ops": (*map(str, found.edits), *fields.get("ops", ())),
        }
        return cls(**given)


def _kept_names(value: object) -> bool | tuple[str, ...]:
    """Return the normal form of ``keep_io``: a bool, or names, each once."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) or not isinstance(value, Collection) or not all(isinstance(name, str) for name in value):
        raise PolicyError(
            "Field 'keep_io' of a policy is true, false, or a list of names of inputs and outputs (as text: "
            f'keep_io="name",keep_io="other"). Received: {value!r}'
        )
    return tuple(dict.fromkeys(value)) or False


def _rows(name: str, value: Any) -> tuple[tuple[Any, ...], ...]:
    """Return the normal form of a field of :data:`_ROWS`."""
    kinds = _ROWS[name]
    if isinstance(value, list | tuple):
        rows = [tuple(row) if isinstance(row, list | tuple) else () for row in value]
        if all(len(row) == len(kinds) and all(map(_is_of, row, kinds)) for row in rows):
            found: tuple[tuple[Any, ...], ...] = tuple(
                tuple(kind(item) for item, kind in zip(row, kinds, strict=True)) for row in rows
            )
            if name == "kept" or all(smallest <= largest for _, smallest, largest in found):
                return found
    what = "(name, smallest, largest), two finite magnitudes in that order" if name == "ranges" else "(name, why)"
    raise PolicyError(f"Field {name!r} of a policy is a list of {what}. Received: {value!r:.200}")


def _is_of(item: object, kind: type) -> bool:
    if kind is str:
        return isinstance(item, str)
    return isinstance(item, int | float) and not isinstance(item, bool) and 0 <= item <= float_info.max


def _row(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise PolicyError(f"An item of field {name!r} of a policy is written as JSON. Received: {text!r}") from None


def _check_names(names: Iterable[str], received: str) -> None:
    known = [field.name for field in dataclasses.fields(Policy)]
    for name in names:
        if name not in known:
            raise PolicyError(f"A policy has no field {name!r}.{did_you_mean(name, known)} Received: {received!r}")


def _node_override(text: str) -> NodeOverride:
    pattern, equals, name = text.rpartition("=")
    names = [*(color.value for color in Color), "none"]
    if not equals or name not in names:
        hint = did_you_mean(name, names)
        raise PolicyError(
            f"A node override is written 'PATTERN=list' with a list of {', '.join(names)}.{hint} Received: {text!r}"
        )
    try:
        re.compile(pattern)
    except re.error as error:
        raise PolicyError(f"The pattern of a node override is a regular expression: {error}. Received: {text!r}") from None
    return NodeOverride(pattern, None if name == "none" else Color(name))


def _quoted(text: str) -> str:
    return text if text and text.isprintable() and not re.search(r'[,"]|^\s|\s$', text) else json.dumps(text)
