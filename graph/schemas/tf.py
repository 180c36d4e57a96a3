"""The TensorFlow vocabulary: the signatures of its ops and the kernels registered for them.

``tf.json.gz`` holds facts read from TensorFlow 2.21.0 (the GPU build): all 1,910 op definitions, and the registered
kernels with their attribute constraints for the ops of the mixed-precision lists and of common training graphs. For
the others it holds which type attributes some kernel accepts as half or bfloat16. Ops are expanded to
:class:`~ampgraph.graph.schema.OpSchema` when first asked for.
"""

import functools
import gzip
import json
import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from ..dtypes import DType, bfloat16, find_dtype, float16
from ..schema import REQUIRED, AttrSpec, Formal, OpSchema, TypeVar
from ..types import Shape

_KERNEL_SUFFIX = {float16: "half", bfloat16: "bfloat16"}


@functools.cache
def _data() -> Any:
    return json.loads(gzip.decompress((files(__name__.rpartition(".")[0]) / "tf.json.gz").read_bytes()))


def op_types() -> Iterable[str]:
    """Return the names of all ops TensorFlow defines."""
    ops: dict[str, Any] = _data()["ops"]
    return ops.keys()


@functools.cache
def find(op_type: str) -> OpSchema | None:
    """Return the schema of a TensorFlow op, or None when TensorFlow does not define it."""
    row = _data()["ops"].get(op_type)
    if row is None:
        return None
    allowed_sets = _data()["allowed"]
    type_vars, attributes = [], {}
    for name, spec in row["attrs"].items():
        allowed = allowed_sets[spec["allowed"]] if "allowed" in spec else None
        kind = spec["type"]
        if kind in ("type", "list(type)"):
            dtypes = None if allowed is None else frozenset(map(find_dtype, allowed))
            default = spec.get("default")
            if default is not None:
                default = tuple(map(find_dtype, default)) if kind == "list(type)" else find_dtype(default)
            type_vars.append(TypeVar(name, dtypes, default, kind == "list(type)", spec.get("min", 0)))
        else:
            strings = None if allowed is None else frozenset(s.encode() for s in allowed)
            default = _default(kind, spec["default"]) if "default" in spec else REQUIRED
            attributes[name] = AttrSpec(kind, default, strings, spec.get("min"))
    variables = {var.name for var in type_vars}
    return OpSchema(
        op_type,
        "tf",
        [_formal(text, variables) for text in row["in"]],
        [_formal(text, variables) for text in row["out"]],
        type_vars,
        attributes,
        stateful=row.get("stateful", False),
    )


def _formal(text: str, variables: set[str]) -> Formal:
    """Read one formal in the notation ``name:[&][count*|*]type``."""
    name, _, kind = text.partition(":")
    is_ref = kind.startswith("&")
    kind = kind.removeprefix("&")
    number, star, element = kind.rpartition("*")
    is_list = bool(star) and not number
    if element in variables:
        return Formal(name, var=element, number=number or None, is_list=is_list, is_ref=is_ref)
    return Formal(name, dtype=find_dtype(element), number=number or None, is_ref=is_ref)


def _default(kind: str, value: Any) -> Any:
    """Turn a JSON default into the form attributes have in a graph."""
    if kind.startswith("list("):
        return [_default(kind[5:-1], item) for item in value]
    if kind == "string":
        return value.encode()
    if kind == "shape":
        return Shape(value)
    if kind == "float":  # files hold float32, so that an explicit default equals this one
        return struct.unpack("f", struct.pack("f", value))[0]
    return value


@functools.cache
def kernel_strings() -> Mapping[str, tuple[str, ...]]:
    """Return, for the few ops whose kernels constrain string attributes, the names of those attributes."""
    found: dict[str, set[str]] = {}
    for op_type, devices in _data()["kernels"].items():
        attributes = _data()["ops"][op_type]["attrs"]
        names = {name for rows in devices.values() for row in rows for name in row}
        found[op_type] = {name for name in names if attributes.get(name, {}).get("type") == "string"}
    return {op_type: tuple(sorted(names)) for op_type, names in found.items() if names}


def kernels_accept(
    schema: OpSchema, device_type: str, types: Mapping[str, DType], attributes: Mapping[str, Any], dtype: DType
) -> dict[str, bool]:
    """Return, for every type of a node, whether a kernel is registered for the node with that one type replaced.

    Args:
        schema: A TensorFlow op.
        device_type: ``"GPU"`` or ``"CPU"``; kernels registered for every device count too.
        types: The node's types, such as ``{"T": float32}`` or ``{"T[0]": float32, "T[1]": int32}``.
        attributes: The node's other attributes; a few kernels constrain strings.
        dtype: What each type is replaced by, in turn.
    """
    if schema.op_type not in _data()["kernels"]:
        accepted = {} if schema.is_call else _data()["ops"][schema.op_type].get("kernels", {})
        some = accepted.get(f"{_KERNEL_SUFFIX.get(dtype)}_{device_type.lower()}", ())
        return {key: key.partition("[")[0] in some for key in types}
    counts: dict[str, Counter[str]] = {}
    for key, current in types.items():
        counts.setdefault(key.partition("[")[0], Counter())[current.name] += 1
    strings = []
    for name in kernel_strings().get(schema.op_type, ()):
        value = attributes.get(name, schema.default(name))
        strings.append((name, value.decode(errors="replace") if isinstance(value, bytes) else ""))

    @functools.cache
    def accepts(var: str, current: str) -> bool:
        values = {(name, found) for name, names in counts.items() for found in names}
        if counts[var][current] == 1:
            values.discard((var, current))
        return _some_row_accepts(schema.op_type, device_type, frozenset({*values, (var, dtype.name), *strings}))

    return {key: accepts(key.partition("[")[0], current.name) for key, current in types.items()}


@functools.lru_cache(maxsize=65536)
def _some_row_accepts(op_type: str, device_type: str, values: frozenset[tuple[str, str]]) -> bool:
    """Whether a registered kernel of the op meets every value its constraints speak of."""
    table = _data()["kernels"][op_type]
    for row in (*table.get(device_type, ()), *table.get("DEFAULT", ())):
        if all(value in row[name] for name, value in values if name in row) and row.keys() <= {name for name, _ in values}:
            return True
    return False
