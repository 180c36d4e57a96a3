"""How ONNX ops are defined: what :class:`OpSchema` lacks, and what the standard leaves to prose.

Operands may be omitted or repeated, bodies add operands of their own, and attributes say dtypes (:data:`TYPE_ATTRIBUTES`). How
dtypes of results follow from attributes and bodies stands in :meth:`OnnxSchema.complete`.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from ..dtypes import BY_ONNX, DTYPES, DType
from ..errors import GraphError
from ..schema import AttrSpec, Formal, OpSchema, Port, Signature, TypeVar
from ..types import Tensor

if TYPE_CHECKING:
    from ..graph import Graph, Value

#: Attributes that are a type variable: (op, attribute) -> the variables it may be, the first that the op has counts, and
#: what it is when left out: a dtype, or the variable it then equals.
TYPE_ATTRIBUTES: Mapping[tuple[str, str], tuple[tuple[str, ...], str]] = {
    ("Bernoulli", "dtype"): (("T2",), "T1"),
    ("BitCast", "to"): (("T2",), ""),
    ("BlackmanWindow", "output_datatype"): (("T2",), "float32"),
    ("Cast", "to"): (("T2",), ""),
    ("DequantizeLinear", "output_dtype"): (("T3",), "T2"),
    ("EyeLike", "dtype"): (("T2",), "T1"),
    ("HammingWindow", "output_datatype"): (("T2",), "float32"),
    ("HannWindow", "output_datatype"): (("T2",), "float32"),
    ("MelWeightMatrix", "output_datatype"): (("T3",), "float32"),
    ("Multinomial", "dtype"): (("T2",), "int32"),
    ("QuantizeLinear", "output_dtype"): (("T3", "T2"), "uint8"),
    ("RandomNormal", "dtype"): (("T",), "float32"),
    ("RandomNormalLike", "dtype"): (("T2",), "T1"),
    ("RandomUniform", "dtype"): (("T",), "float32"),
    ("RandomUniformLike", "dtype"): (("T2",), "T1"),
    ("SequenceEmpty", "dtype"): (("S",), "float32"),
}

#: Results whose dtype follows from which attribute is given: op -> (variable, {attribute: dtype}).
_BY_ATTRIBUTE = {
    "LabelEncoder": (
        "T2",
        {"values_strings": "string", "values_int64s": "int64", "values_floats": "float32", "classes_strings": ""},
    ),
    "LinearClassifier": ("T2", {"classlabels_strings": "string", "classlabels_ints": "int64"}),
    "SVMClassifier": ("T2", {"classlabels_strings": "string", "classlabels_ints": "int64"}),
    "TreeEnsembleClassifier": ("T2", {"classlabels_strings": "string", "classlabels_int64s": "int64"}),
}
_CONSTANT = {
    "value_float": "float32",
    "value_floats": "float32",
    "value_int": "int64",
    "value_ints": "int64",
    "value_string": "string",
    "value_strings": "string",
}
#: Into how many groups of tensors (parameters, gradients, states) an optimizer's repeated operands fall.
_GROUPS = {"Adagrad": 3, "Adam": 4, "Gradient": 1, "Momentum": 3}
_MAX_CACHED = 4096
#: What most attributes, and items of those that are lists, are.
_PLAIN = frozenset([int, float, bytes, Tensor])


def capture_labels(attributes: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the labels of the outer values that the bodies among ``attributes`` use, each once, in order."""
    labels: tuple[str, ...] = ()
    for value in attributes.values():
        if value.__class__ in _PLAIN:
            continue
        bodies = value if value.__class__ is list else (value,)
        if bodies and bodies[0].__class__ not in _PLAIN:
            for body in bodies:
                labels = (*labels, *getattr(body, "captures", ()))
    return tuple(dict.fromkeys(labels)) if labels else ()


class OnnxSchema(OpSchema):
    """The definition of an ONNX op: operands may be omitted or repeated, and bodies add operands of their own.

    Keys of ``Node.types``: the type variables; ``"V[0]"``, ``"V[1]"`` … for operands that may each be of another type;
    ``"V_out[0]"`` … where results of such a variable are not tied to operands; ``"capture:<label>"`` for outer values.

    Attributes:
        type_attributes: Attributes that are type variables: name -> (variable, what it is when left out).
        has_bodies: Whether attributes hold graphs.
        least_outputs: Number of results that no node can leave out, at least 1.
    """

    def __init__(
        self,
        op_type: str,
        domain: str,
        inputs: Iterable[Formal],
        outputs: Iterable[Formal],
        type_vars: Iterable[TypeVar] = (),
        attributes: Mapping[str, AttrSpec] | None = None,
        *,
        is_call: bool = False,
        stateful: bool = False,
    ) -> None:
        super().__init__(op_type, domain, inputs, outputs, type_vars, attributes, is_call=is_call, stateful=stateful)
        self.type_attributes: dict[str, tuple[str, str]] = {}
        for (op, name), (variables, default) in TYPE_ATTRIBUTES.items():
            variable = next((v for v in variables if v in self.type_vars), None)
            if op == op_type and name in self.attributes and variable is not None:
                self.type_attributes[name] = (variable, default)
        self.attributes = {name: spec for name, spec in self.attributes.items() if name not in self.type_attributes}
        self.has_bodies = any("graph" in spec.kind for spec in self.attributes.values())
        self.least_outputs = max(1, sum(not formal.optional and not formal.variadic for formal in self.outputs))
        lists = {formal.var for formal in self.inputs if formal.is_list}
        self._split = {f.var for f in self.outputs if f.is_list and f.var in {i.var for i in self.inputs}}
        for var in self._split:
            if var is not None:
                allowed = self.type_vars[var].allowed
                self.type_vars[f"{var}_out"] = TypeVar(f"{var}_out", allowed, is_list=True)
                if var not in lists:  # one operand, several results
                    self.type_vars[var] = TypeVar(var, allowed)
        self._known: dict[tuple[Any, ...], Signature] = {}

    @property
    def varies(self) -> bool:
        """Whether nodes of this op differ in their signatures."""
        return True

    def formal_of(self, slot: int, *, result: bool = False) -> Formal | None:
        """Return the formal at which an operand (or result) stands; None beyond the last."""
        formals = self.outputs if result else self.inputs
        if slot < len(formals):
            return formals[slot]
        return formals[-1] if formals and formals[-1].variadic else None

    def signature(
        self, attributes: Mapping[str, Any], types: Mapping[str, DType], inputs: Sequence[object] = (), outputs: int | None = None
    ) -> Signature:
        """Expand the formals for one node; see :meth:`OpSchema.signature`.

        Raises:
            GraphError: If there are too many or too few operands or results.
        """
        labels = capture_labels(attributes) if self.has_bodies else ()
        count = len(inputs) - len(labels)
        results = self.least_outputs if outputs is None else outputs
        carried = self._carried(attributes, count) if self.has_bodies else 0
        key = (tuple([value is not None for value in inputs]), results, labels, carried)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MAX_CACHED:
                self._known.clear()
            self._check_count("inputs", self.inputs, count)
            self._check_count("outputs", self.outputs, results)
            found = self._known[key] = self._make(inputs, count, results, labels, carried)
        return found

    def _check_count(self, what: str, formals: tuple[Formal, ...], count: int) -> None:
        least = max((i + 1 for i, formal in enumerate(formals) if not formal.optional), default=0)
        most = None if formals and formals[-1].variadic else len(formals)
        if what == "outputs":
            least = min(least, 1)
        if count < least or (most is not None and count > most):
            wanted = f"at least {least}" if most is None else str(least) if least == most else f"{least} to {most}"
            raise GraphError(f"Op {self.op_type} has {wanted} {what}. Received: {max(count, 0)}")

    def _carried(self, attributes: Mapping[str, Any], count: int) -> int:
        """Return how many results are, one by one, of the types of as many list operands: the state of a loop."""
        if self.op_type == "Loop":
            return max(0, count - 2)
        if self.op_type == "Scan":
            scanned = attributes.get("num_scan_inputs", 0)
            first = next((i for i, formal in enumerate(self.inputs) if formal.is_list), 0)
            return max(0, count - first - scanned) if isinstance(scanned, int) else 0
        return 0

    def _make(self, inputs: Sequence[object], count: int, results: int, labels: tuple[str, ...], carried: int) -> Signature:
        ports: list[Port] = []
        for slot in range(count):
            formal = self.formal_of(slot)
            ports.append(None if formal is None or inputs[slot] is None else self._port(formal, slot - len(self.inputs) + 1))
        ports += [f"capture:{label}" for label in labels]
        out: list[Port] = []
        for slot in range(results):
            formal = self.formal_of(slot, result=True)
            if formal is None:
                out.append(None)
            elif formal.is_list and formal.var in self._split:
                place = slot - len(self.outputs) + 1
                out.append(f"{formal.var}[{place}]" if place < carried else f"{formal.var}_out[{place - carried}]")
            else:
                out.append(self._port(formal, slot - len(self.outputs) + 1))
        used = dict.fromkeys(port for port in (*ports, *out) if isinstance(port, str))
        return Signature(self, tuple(ports), tuple(out), tuple(used))

    @staticmethod
    def _port(formal: Formal, place: int) -> Port:
        if formal.is_list:
            return f"{formal.var}[{place}]"
        return formal.var if formal.var is not None else formal.dtype

    def split_inputs(self, signature: Signature) -> dict[str, range]:
        """Return, for each formal input, the range of operand indices it covers."""
        return _ranges(self.inputs, len(signature.inputs) - sum(str(key).startswith("capture:") for key in signature.inputs))

    def split_outputs(self, signature: Signature) -> dict[str, range]:
        """Return, for each formal output, the range of result indices it covers."""
        return _ranges(self.outputs, len(signature.outputs))

    # ---- dtypes ---------------------------------------------------------------------------------------------------

    def complete(
        self, types: Mapping[str, DType], attributes: Mapping[str, Any], inputs: Sequence["Value | None"], outputs: int
    ) -> dict[str, DType]:
        """Return ``types`` with the missing variables as operands, attributes and bodies give them; the unknown stay out.

        Raises:
            GraphError: If there are too many or too few operands or results.
        """
        return self.complete_for(self.signature(attributes, types, inputs, outputs), types, attributes, inputs)

    def complete_for(
        self, signature: Signature, types: Mapping[str, DType], attributes: Mapping[str, Any], inputs: Sequence["Value | None"]
    ) -> dict[str, DType]:
        """Do what :meth:`complete` does for a node whose signature is known."""
        found = dict(types)
        for port, value in zip(signature.inputs, inputs, strict=True):
            if port.__class__ is str and value is not None and port not in found:
                dtype = value.dtype
                if dtype is not None:
                    found[str(port)] = dtype
        missing = [key for key in signature.keys if key not in found]
        if missing:
            self._complete_results(found, missing, signature, attributes, inputs)
        elif len(found) == len(signature.keys):
            return found
        keys = set(signature.keys)
        return {key: dtype for key, dtype in found.items() if key in keys}

    def _complete_results(
        self,
        found: dict[str, DType],
        missing: Iterable[str],
        signature: Signature,
        attributes: Mapping[str, Any],
        inputs: Sequence["Value | None"],
    ) -> None:
        """Find the variables that no operand gives."""
        self._from_attributes(found, attributes, inputs)
        for port, dtype in zip(signature.outputs, self._from_bodies(attributes), strict=False):
            if isinstance(port, str) and dtype is not None:
                found.setdefault(port, dtype)
        if self.op_type in _GROUPS:
            self._from_optimized(found, signature, inputs)
        for key in missing:
            if key not in found and not key.startswith("capture:"):
                allowed = self.type_vars[key.partition("[")[0]].allowed
                if allowed is not None and len(allowed) == 1:
                    found[key] = next(iter(allowed))

    def _from_attributes(self, found: dict[str, DType], attributes: Mapping[str, Any], inputs: Sequence["Value | None"]) -> None:
        op = self.op_type
        for name, (variable, default) in self.type_attributes.items():
            if variable not in found and default and name not in attributes:
                dtype = DTYPES.get(default) or found.get(default)
                if dtype is not None:
                    found[variable] = dtype
        if op == "Constant":
            for name, value in attributes.items():
                tensor = value.dtype if isinstance(value, Tensor) else DTYPES.get(_CONSTANT.get(name, ""))
                if tensor is not None:
                    found.setdefault("T", tensor)
        elif op == "ConstantOfShape":
            value = attributes.get("value")
            if isinstance(value, Tensor):
                found.setdefault("T2", value.dtype)
            elif value is None:
                found.setdefault("T2", DTYPES["float32"])
        elif op in ("LayerNormalization", "SimplifiedLayerNormalization") and "U" in self.type_vars:
            number = attributes.get("stash_type", 1)
            if isinstance(number, int) and number in BY_ONNX:
                found.setdefault("U", BY_ONNX[number])
        elif op == "CastMap":
            names = {b"TO_FLOAT": "float32", b"TO_INT64": "int64", b"TO_STRING": "string"}
            found.setdefault("T2", DTYPES[names.get(attributes.get("cast_to", b"TO_FLOAT"), "float32")])
        elif op == "CategoryMapper" and "T1" in found:
            found.setdefault("T2", DTYPES["int64" if found["T1"].kind == "string" else "string"])
        elif op == "DictVectorizer" and "T1" in found:
            found.setdefault("T2", found["T1"])
        elif op == "ZipMap":
            found.setdefault("T", DTYPES["float32"])
        elif op == "LinearAttention" and "T" in found:
            found.setdefault("S", found["T"])
        elif op == "Optional" and "type" in attributes:
            element = getattr(attributes["type"], "dtype", None)
            if element is not None:
                found.setdefault("V", element)
        elif op in _BY_ATTRIBUTE:
            variable, names_to = _BY_ATTRIBUTE[op]
            for name, value in attributes.items():
                if name == "values_tensor" and isinstance(value, Tensor):
                    found.setdefault(variable, value.dtype)
                elif names_to.get(name):
                    found.setdefault(variable, DTYPES[names_to[name]])
            if op == "LabelEncoder" and "classes_strings" in attributes and "T1" in found:
                found.setdefault("T2", DTYPES["int64" if found["T1"].kind == "string" else "string"])

    def _from_optimized(self, found: dict[str, DType], signature: Signature, inputs: Sequence["Value | None"]) -> None:
        """Results of optimizers are new parameters and states, of the types of the old; the gradients between them are left out."""
        first = next((i for i, formal in enumerate(self.inputs) if formal.is_list), 0)
        size = (len(inputs) - first) // _GROUPS[self.op_type]
        for i, port in enumerate(signature.outputs):
            place = first + (i if i < size else i + size)
            value = inputs[place] if place < len(inputs) else None
            if isinstance(port, str) and value is not None and value.dtype is not None:
                found.setdefault(port, value.dtype)

    def _from_bodies(self, attributes: Mapping[str, Any]) -> list[DType | None]:
        """Return the dtypes of the results as far as bodies give them."""
        if self.op_type == "If":
            one, other = (_results(attributes.get(name)) for name in ("then_branch", "else_branch"))
            return [a or b for a, b in zip_longest(one, other)]
        if self.op_type in ("Loop", "Scan", "SequenceMap"):
            return _results(attributes.get("body"))[1 if self.op_type == "Loop" else 0 :]
        return []

    def derived(self, name: str, types: Mapping[str, DType]) -> DType | None:
        """Return what type attribute ``name`` means when a node with these types leaves it out; None if it must be given."""
        default = self.type_attributes[name][1]
        return DTYPES.get(default) or types.get(default)


def _results(body: Any) -> list[DType | None]:
    """Return the dtypes that a body returns; none if it is no graph."""
    return [value.dtype for value in getattr(body, "outputs", ())]


def _ranges(formals: tuple[Formal, ...], count: int) -> dict[str, range]:
    result = {}
    for i, formal in enumerate(formals):
        result[formal.name] = range(min(i, count), count if formal.variadic else min(i + 1, count))
    return result


def function_schema(function: "Graph") -> OnnxSchema:
    """Return the schema of calls of a model-local function: every operand has a type variable called as the operand."""
    return call_schema(function.name, [value.name for value in function.inputs], function.output_names)


def call_schema(name: str, input_names: Iterable[str], output_names: Iterable[str]) -> OnnxSchema:
    """Return the schema of calls of the model-local function ``name`` (``"domain:op"``)."""
    inputs = [Formal(name, var=name, optional=True, container=None) for name in input_names]
    outputs = [Formal(name, var=name, optional=True, container=None) for name in output_names]
    names = dict.fromkeys([formal.name for formal in (*inputs, *outputs)])
    domain, _, op_type = name.partition(":")
    return OnnxSchema(op_type, domain, inputs, outputs, [TypeVar(name) for name in names], is_call=True, stateful=True)
