"""The ONNX vocabularies: op schemas from the installed ``onnx`` package, at the version a model asks for.

``com.microsoft`` ops, which that package does not know, stand in ``microsoft.toml``.
"""

import functools
from typing import Any

from ..dtypes import BY_ONNX, DType, find_dtype
from ..errors import GraphError
from ..schema import REQUIRED, AttrSpec, Formal, TypeVar
from .onnx_schema import OnnxSchema

_NAMES = {
    "float": "float32",
    "double": "float64",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e8m0": "float8_e8m0fnu",
    "float4e2m1": "float4_e2m1fn",
    "float6e2m3": "float6_e2m3fn",
    "float6e3m2": "float6_e3m2fn",
}
_KINDS = {
    "INT": "int",
    "FLOAT": "float",
    "STRING": "string",
    "TENSOR": "tensor",
    "GRAPH": "graph",
    "INTS": "list(int)",
    "FLOATS": "list(float)",
    "STRINGS": "list(string)",
    "TENSORS": "list(tensor)",
    "GRAPHS": "list(graph)",
}

#: Variables of which one is a container of the other: op -> (dropped, kept).
_SAME = {
    "ConcatFromSequence": ("T", "S"),
    "Optional": ("O", "V"),
    "OptionalGetElement": ("V", "O"),
    "SequenceAt": ("T", "S"),
    "SequenceConstruct": ("S", "T"),
    "SequenceInsert": ("T", "S"),
    "SplitToSequence": ("S", "T"),
}


#: Ops that may give another result each time.
_RANDOM = frozenset(
    ["Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"]
)


@functools.cache
def latest(domain: str) -> int:
    """Return the newest version of a domain that the installed ``onnx`` package defines; 0 if it knows no such domain."""
    from onnx.onnx_cpp2py_export import defs

    return int(defs.schema_version_map().get(domain, (0, 0))[1])


@functools.cache
def op_names() -> tuple[str, ...]:
    """Return the names of all ops the standard and onnxruntime define, as op lists write them: with their domain if it has one."""
    from onnx import defs

    standard = (schema.name if not schema.domain else f"{schema.domain}:{schema.name}" for schema in defs.get_all_schemas())
    return (*standard, *(f"com.microsoft:{op}" for op in _microsoft_rows()))


@functools.cache
def find(domain: str, op_type: str, version: int) -> OnnxSchema | None:
    """Return the schema of an op at ``version`` of its domain, or None when nobody defines it."""
    if domain == "com.microsoft":
        return _microsoft(op_type)
    from onnx import defs

    try:
        schema = defs.get_schema(op_type, version, domain)
    except (defs.SchemaError, TypeError, RuntimeError):
        # onnxruntime also defines these two in the standard's own domain, at versions that do not have them.
        return _microsoft(op_type) if not domain and op_type in ("LayerNormalization", "SimplifiedLayerNormalization") else None
    return _find_since(domain, op_type, schema.since_version)


@functools.cache
def _find_since(domain: str, op_type: str, since_version: int) -> OnnxSchema:
    """Read one definition; versions of the vocabulary that share it share the schema."""
    from onnx import defs

    schema = defs.get_schema(op_type, since_version, domain)
    constraints = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    dropped, kept = _SAME.get(op_type, ("", "")) if not domain else ("", "")
    variables = {name: [_parse(text) for text in texts] for name, texts in constraints.items()}
    lists = set()

    def formal(row: Any) -> Formal:
        variadic = row.option.name == "Variadic"
        optional = row.option.name == "Optional" or (variadic and row.min_arity == 0)
        if row.type_str not in variables:
            container, dtype = _parse(row.type_str)
            return Formal(row.name, dtype=dtype, optional=optional, variadic=variadic, container=container)
        containers = {container for container, _ in variables[row.type_str]}
        name = kept if row.type_str == dropped else row.type_str
        if variadic and not row.is_homogeneous:
            lists.add(name)
        return Formal(
            row.name,
            var=name,
            optional=optional,
            variadic=variadic,
            is_list=variadic and not row.is_homogeneous,
            container=containers.pop() if len(containers) == 1 else None,
        )

    inputs, outputs = [formal(row) for row in schema.inputs], [formal(row) for row in schema.outputs]
    type_vars = [
        TypeVar(name, frozenset(dtype for _, dtype in variables[name]), is_list=name in lists)
        for name in variables
        if name != dropped
    ]
    specs = {name: _spec(attribute) for name, attribute in schema.attributes.items()}
    return OnnxSchema(op_type, domain, inputs, outputs, type_vars, specs, stateful=op_type in _RANDOM)


def _parse(text: str) -> tuple[str, DType]:
    """Split a type of the standard, such as ``seq(map(string, float))``, into container and element dtype."""
    if text.startswith("tensor("):
        element = text[7:-1]
        return "", find_dtype(_NAMES.get(element, element))
    if text.startswith("map("):
        key, value = text[4:-1].split(", ", 1)
        inner, dtype = _parse(value if "(" in value else f"tensor({value})")
        return f"map({find_dtype(_NAMES.get(key, key)).short}{f', {inner}' if inner else ''})", dtype
    if text.startswith("sparse_tensor("):
        return "sparse", _parse(text[7:])[1]
    outer, _, rest = text.partition("(")
    if not rest:
        return "", find_dtype(_NAMES.get(outer, outer))
    inner, dtype = _parse(rest[:-1])
    return f"{outer}({inner})" if inner else outer, dtype


def _spec(attribute: Any) -> AttrSpec:
    kind = _KINDS.get(attribute.type.name, "any")
    if attribute.required:
        return AttrSpec(kind, REQUIRED)
    default = attribute.default_value
    value: Any = None
    if default.type:
        from onnx.helper import get_attribute_value

        value = get_attribute_value(default)
        value = list(value) if kind.startswith("list(") else value
    return AttrSpec(kind, value)


# ---- ops of onnxruntime -------------------------------------------------------------------------------------------------


@functools.cache
def _microsoft_rows() -> dict[str, Any]:
    import tomllib
    from importlib.resources import files

    return tomllib.loads((files(__name__.rpartition(".")[0]) / "microsoft.toml").read_text("utf-8"))


@functools.cache
def _microsoft(op_type: str) -> OnnxSchema | None:
    row = _microsoft_rows().get(op_type)
    if row is None:
        return None
    variables = {name: frozenset(map(find_dtype, texts.split())) for name, texts in row.get("types", {}).items()}

    def formal(text: str) -> Formal:
        name, _, kind = text.partition(":")
        optional, variadic, is_list = name.endswith("?"), name.endswith("*"), name.endswith("**")
        name = name.rstrip("?*")
        if is_list:
            lists.add(kind)
        if kind in variables:
            return Formal(name, var=kind, optional=optional, variadic=variadic, is_list=is_list)
        return Formal(name, dtype=find_dtype(kind), optional=optional, variadic=variadic)

    lists: set[str] = set()
    inputs, outputs = [formal(text) for text in row["in"]], [formal(text) for text in row["out"]]
    return OnnxSchema(
        op_type,
        "com.microsoft",
        inputs,
        outputs,
        [TypeVar(name, allowed, is_list=name in lists) for name, allowed in variables.items()],
        {name: AttrSpec("int", None) for name in row.get("type_attributes", ())},
    )


def dtype_of(number: int, where: str) -> DType:
    """Return the dtype of an ONNX number.

    Raises:
        GraphError: If the standard defines no such number.
    """
    found = BY_ONNX.get(number)
    if found is None:
        raise GraphError(f"{where} has dtype number {number}, which ONNX does not define.")
    return found
