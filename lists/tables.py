"""The op lists: which ops compute in low precision, which never do, and why.

Each mode has a table beside this file (``tf_cuda_fp16.toml`` …). A table is read once; :meth:`OpLists.load` picks the
entries whose CUDA and cuDNN conditions the target meets, applies the edits it is given and checks that no op is left on
two lists. The semantics of levels and edits are those of Grappler's auto_mixed_precision (TensorFlow 2.21).
"""

import dataclasses
import enum
import functools
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files

from ..graph.errors import OpListError, did_you_mean

Version = tuple[int, ...]


class Color(enum.Enum):
    """The four lists. A vertex of the type graph is painted with the color of its op's list."""

    ALLOW = "allow"
    DENY = "deny"
    GRAY = "gray"
    CLEAR = "clear"

    @property
    def title(self) -> str:
        """The name of the list in reports: ``"AllowList"`` …"""
        return f"{self.value.capitalize()}List"


#: Mode -> file name of its table.
MODES = {
    "cuda_fp16": "tf_cuda_fp16",
    "onednn_bf16": "tf_onednn_bf16",
    "cpu_fp16": "tf_cpu_fp16",
    "torch_autocast_cuda": "torch_autocast_cuda",
    "torch_autocast_cpu": "torch_autocast_cpu",
    "onnx_float16": "onnx_float16",
    "onnx_bfloat16": "onnx_bfloat16",
    "onnx_tensorrt_float16": "onnx_tensorrt_float16",
    "onnx_tensorrt_bfloat16": "onnx_tensorrt_bfloat16",
    "onnx_onnxruntime_float16": "onnx_onnxruntime_float16",
    "onnx_onnxruntime_bfloat16": "onnx_onnxruntime_bfloat16",
    "onnx_torch_autocast_float16": "onnx_torch_autocast_float16",
    "onnx_torch_autocast_bfloat16": "onnx_torch_autocast_bfloat16",
    "onnx_grappler_float16": "onnx_grappler_float16",
    "onnx_grappler_bfloat16": "onnx_grappler_bfloat16",
}

#: Levels that change something. Any other string is the same as no level.
LEVELS = ("TREAT_INFER_AS_DENY", "TENSOR_CORES_ONLY", "UNSAFE_FORCE_ALL")

_EDIT = re.compile(r"(?P<list>[a-z]+):(?P<sign>[+-])(?P<op>.+)", re.DOTALL)
_MOVE = re.compile(r"(?P<op>(?:(?!(?:allow|deny|gray|clear):)[^:=]+:)?[^:=]+)=(?P<list>[a-z]+)", re.DOTALL)


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """One op of a table.

    Attributes:
        op: Op type; that of an ONNX op outside domain ai.onnx with its domain: ``"com.microsoft:Gelu"``.
        color: Its list; None where a table puts an op on no list, or takes one of its base off.
        why: The reason, a sentence without its full stop.
        cuda, cudnn: Least versions for which the entry holds; empty = always.
    """

    op: str
    color: Color | None
    why: str
    cuda: Version = ()
    cudnn: Version = ()

    @property
    def condition(self) -> str:
        """The condition as text: ``"CUDA >= 9.1"``; empty when there is none."""
        least = [("CUDA", self.cuda), ("cuDNN", self.cudnn)]
        return " and ".join(f"{name} >= {'.'.join(map(str, version))}" for name, version in least if version)


@dataclasses.dataclass(frozen=True, slots=True)
class Edit:
    """A change of the lists by the user, written in one of three ways.

    ``gray:+Sin`` puts an op on a list, ``gray:-Softmax`` takes it off that list, ``Softmax=deny`` moves it from
    whatever list it stands on (``Softmax=none``: off all lists).

    Attributes:
        op: Op type.
        color: The list; None = no list.
        sign: ``"+"``, ``"-"`` or ``"="``.
    """

    op: str
    color: Color | None
    sign: str

    def __str__(self) -> str:
        name = self.color.value if self.color else "none"
        return f"{self.op}={name}" if self.sign == "=" else f"{name}:{self.sign}{self.op}"

    @classmethod
    def parse(cls, text: "str | Edit") -> "Edit":
        """Read an edit from its text form.

        Raises:
            OpListError: If the text has none of the three forms or names an unknown list.
        """
        if isinstance(text, Edit):
            return text
        found = _EDIT.fullmatch(text) or _MOVE.fullmatch(text)
        if found is None:
            raise OpListError(
                "A change of the op lists is written 'gray:+Op' (add), 'gray:-Op' (take off) or 'Op=deny' (move). "
                f"Received: {text!r}"
            )
        name, sign = found["list"], found.groupdict().get("sign", "=")
        if name == "none" and sign == "=":
            return cls(found["op"], None, sign)
        names = [color.value for color in Color]
        if name not in names:
            raise OpListError(
                f"There is no list {name!r}: they are {', '.join(names)}.{did_you_mean(name, names)} Received: {text!r}"
            )
        return cls(found["op"], Color(name), sign)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class OpLists:
    """The four lists as they hold for one mode, one target and one user. Made by :meth:`load` or :meth:`from_env`.

    Attributes:
        mode: ``"cuda_fp16"`` … (a key of :data:`MODES`).
        level: One of :data:`LEVELS`, or ``""``.
        allow, deny, gray, clear: The op types on each list; no op is on two.
        edits: The changes that were asked for.
        ineffective: Those of them that changed nothing (an op taken off a list it was not on …).
    """

    mode: str
    level: str
    allow: frozenset[str]
    deny: frozenset[str]
    gray: frozenset[str]
    clear: frozenset[str]
    edits: tuple[Edit, ...]
    ineffective: tuple[Edit, ...]
    _colors: Mapping[str, Color]
    _whys: Mapping[str, str]

    @classmethod
    def load(
        cls,
        mode: str,
        *,
        cuda: Version = (12, 5),
        cudnn: Version = (9, 3),
        level: str = "",
        overlays: Iterable[str | Edit] = (),
    ) -> "OpLists":
        """Return the lists of a mode.

        Args:
            mode: A key of :data:`MODES`.
            cuda, cudnn: Versions the conditions are tested against; empty = absent, no condition is met.
                ``cpu_fp16`` always acts as CUDA 10.0 and cuDNN 8.0.
            level: One of :data:`LEVELS` in any case; any other string changes nothing.
            overlays: Edits (:class:`Edit`), applied in order. With level TENSOR_CORES_ONLY only the AllowList exists,
                so edits of the others have no effect; with TREAT_INFER_AS_DENY the GrayList joins the DenyList last.

        Raises:
            OpListError: If the mode is unknown, an edit cannot be read, an op is left on two lists, or the level is
                UNSAFE_FORCE_ALL in a oneDNN mode.
        """
        return _load(mode, cuda, cudnn, level.upper() if level.upper() in LEVELS else "", tuple(overlays))

    @classmethod
    def _build(cls, mode: str, cuda: Version, cudnn: Version, level: str, overlays: tuple[str | Edit, ...]) -> "OpLists":
        if mode not in MODES:
            raise OpListError(f"There are no op lists for {mode!r}: there are {', '.join(MODES)}.{did_you_mean(mode, MODES)}")
        if level == "UNSAFE_FORCE_ALL" and mode.startswith("onednn"):
            raise OpListError(
                "Level UNSAFE_FORCE_ALL cannot be used with the oneDNN lists: too many ops have no bfloat16 kernel on CPUs. "
                f"Use another level or the CUDA lists. Received: mode {mode!r}"
            )
        entries, fixed_cuda, fixed_cudnn = _table(MODES[mode])
        lists: dict[Color, set[str]] = {color: set() for color in Color}
        whys: dict[str, str] = {}
        cores_only = level == "TENSOR_CORES_ONLY" and not mode.startswith("onednn")
        for entry in entries:
            whys[entry.op] = entry.why
            if entry.color is None:
                continue
            if not (_meets(fixed_cuda or cuda, entry.cuda) and _meets(fixed_cudnn or cudnn, entry.cudnn)):
                whys[entry.op] = f"on the {entry.color.title} only with {entry.condition}: {entry.why}"
            elif cores_only and entry.color is not Color.ALLOW:
                whys[entry.op] = f"taken off the {entry.color.title} by level TENSOR_CORES_ONLY"
            else:
                lists[entry.color].add(entry.op)
        edits = tuple(map(Edit.parse, overlays))
        effective = set()
        for edit in edits:
            if _apply(edit, lists, cores_only):
                effective.add(edit)
                whys[edit.op] = f"by your change {str(edit)!r}"
        ineffective = tuple(edit for edit in edits if edit not in effective)
        if level == "TREAT_INFER_AS_DENY":
            for op in lists[Color.GRAY]:
                whys[op] = f"level TREAT_INFER_AS_DENY moved it here from the GrayList: {whys[op]}"
            lists[Color.DENY] |= lists[Color.GRAY]
            lists[Color.GRAY] = set()
        colors = _colors(lists, edits)
        allow, deny, gray, clear = (frozenset(lists[color]) for color in Color)
        return cls(mode, level, allow, deny, gray, clear, edits, ineffective, colors, whys)

    @classmethod
    def from_env(
        cls, mode: str, environ: Mapping[str, str] = os.environ, *, cuda: Version = (12, 5), cudnn: Version = (9, 3)
    ) -> "OpLists":
        """Return the lists as Grappler would see them under these ``TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_*`` variables.

        Raises:
            OpListError: As :meth:`load`, or if a variable cannot be read.
        """
        from .environment import read_environment

        found = read_environment(environ)
        return cls.load(mode, cuda=cuda, cudnn=cudnn, level=found.level, overlays=found.edits)

    def list_of(self, op: str) -> Color | None:
        """Return the list an op type is on, or None."""
        return self._colors.get(op)

    def why(self, op: str) -> str:
        """Return the reason for an op's place: a sentence without its full stop.

        Ops that a condition or a level keeps off a list say so; for an op no table knows it is ``"on no list"``.
        """
        return self._whys.get(op, "on no list")

    def __iter__(self) -> Iterator[tuple[Color, str, str]]:
        """Iterate over (list, op, why), list by list, ops sorted."""
        for color, ops in zip(Color, (self.allow, self.deny, self.gray, self.clear), strict=True):
            for op in sorted(ops):
                yield color, op, self.why(op)

    @property
    def force_all(self) -> bool:
        """Whether level UNSAFE_FORCE_ALL is on: the pass then paints nearly every op."""
        return self.level == "UNSAFE_FORCE_ALL"

    def unused(self, ops_in_graph: Iterable[str]) -> tuple[Edit, ...]:
        """Return the edits that had no effect on a graph with these op types: no such op, or nothing to change."""
        present = set(ops_in_graph)
        return tuple(edit for edit in self.edits if edit.op not in present or edit in self.ineffective)

    def unknown(self, vocabulary: Iterable[str]) -> tuple[Edit, ...]:
        """Return the edits that name an op which neither the vocabulary nor any table knows: likely misspelt."""
        known = {*vocabulary, *(entry.op for entry in _table(MODES[self.mode])[0])}
        return tuple(edit for edit in self.edits if edit.op not in known)


@functools.lru_cache(maxsize=64)
def _load(mode: str, cuda: Version, cudnn: Version, level: str, overlays: tuple[str | Edit, ...]) -> OpLists:
    """Lists do not change once made, so those asked for again are the same object."""
    return OpLists._build(mode, cuda, cudnn, level, overlays)


def _apply(edit: Edit, lists: dict[Color, set[str]], cores_only: bool) -> bool:
    """Apply one edit in place; return whether it changed anything."""
    before = [edit.op in lists[color] for color in Color]
    if edit.sign == "=":
        for ops in lists.values():
            ops.discard(edit.op)
    if edit.color is not None and (edit.color is Color.ALLOW or not cores_only):
        if edit.sign == "-":
            lists[edit.color].discard(edit.op)
        else:
            lists[edit.color].add(edit.op)
    return before != [edit.op in lists[color] for color in Color]


def _colors(lists: dict[Color, set[str]], edits: Iterable[Edit]) -> dict[str, Color]:
    """Return op -> list; raise if an op is on two lists."""
    colors: dict[str, Color] = {}
    conflicts: list[tuple[str, Color, Color]] = []
    for color, ops in lists.items():
        for op in sorted(ops):
            if op in colors:
                conflicts.append((op, colors[op], color))
            colors[op] = color
    if conflicts:
        found = "; ".join(f"{op!r} is on the {first.title} and on the {second.title}" for op, first, second in conflicts)
        op, first, second = conflicts[0]
        if any(edit == Edit(op, first, "+") for edit in edits):
            first, second = second, first
        raise OpListError(
            f"Op lists have conflicting entries: {found}. An op has one list: also take it off the other "
            f"('{first.value}:-{op}'), or move it with '{op}={second.value}'. Received: {', '.join(map(str, edits))}"
        )
    return colors


@functools.cache
def _table(name: str) -> tuple[tuple[Entry, ...], Version, Version]:
    """Read a table and its bases: its entries, and the CUDA and cuDNN versions it is fixed to (empty: none)."""
    data = tomllib.loads((files("ampgraph.lists") / f"{name}.toml").read_text(encoding="utf-8"))
    entries: dict[str, Entry] = {}
    bases = data.get("base", [])
    for base in [bases] if isinstance(bases, str) else bases:
        entries.update((entry.op, entry) for entry in _table(base)[0])
    for list_name in [*(color.value for color in Color), "none"]:
        color = None if list_name == "none" else Color(list_name)
        for row in data.get(list_name, ()):
            cuda, cudnn = (version(row.get(key, ">=").removeprefix(">=")) for key in ("cuda", "cudnn"))
            for op in row["ops"]:
                entries[op] = Entry(op, color, row["why"], cuda, cudnn)
    return tuple(entries.values()), version(data.get("cuda", "")), version(data.get("cudnn", ""))


def _meets(found: Version, least: Version) -> bool:
    """Whether a version is at least another; ``(8,)`` counts as ``(8, 0)``, the empty version as the oldest of all."""
    return not least or (bool(found) and found + (0,) * (len(least) - len(found)) >= least)


def version(text: str) -> Version:
    """Return ``"9.1"`` as ``(9, 1)``; empty text as ``()``."""
    return tuple(int(part) for part in text.split(".")) if text else ()
