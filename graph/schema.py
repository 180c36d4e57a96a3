"""Op schemas: which type variable each operand and result of an op has.

Everything about types follows from schemas: inference, verification, what may become low precision and
where a cast goes. An :class:`OpSchema` speaks of formal parameters; :meth:`OpSchema.signature` expands it,
for one node, to a :class:`Signature` with one entry per actual operand.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from .dtypes import DType
from .errors import GraphError

#: What the dtype of an operand is: a key of ``Node.types``, a fixed dtype, or None when nothing is known.
Port = str | DType | None


class Formal:
    """A formal input or output.

    Attributes:
        name: Name in the op definition.
        var: The type variable its dtype is, or None when the dtype is fixed.
        dtype: The fixed dtype, or None.
        number: The integer attribute that says how many tensors stand here, or None.
        is_list: Whether ``var`` is a list variable with one dtype per tensor.
        is_ref: Whether the tensor is a reference to a variable's buffer.
        optional: Whether a node may omit it.
        variadic: Whether any number of tensors may stand here (the last formal only).
        container: What holds the tensors, as :attr:`Shape.container` says; None when several are possible.
    """

    __slots__ = ("container", "dtype", "is_list", "is_ref", "name", "number", "optional", "var", "variadic")

    def __init__(
        self,
        name: str,
        *,
        var: str | None = None,
        dtype: DType | None = None,
        number: str | None = None,
        is_list: bool = False,
        is_ref: bool = False,
        optional: bool = False,
        variadic: bool = False,
        container: str | None = "",
    ) -> None:
        self.name = name
        self.var = var
        self.dtype = dtype
        self.number = number
        self.is_list = is_list
        self.is_ref = is_ref
        self.optional = optional
        self.variadic = variadic
        self.container = container

    def __repr__(self) -> str:
        count = f"{self.number}*" if self.number else "*" if self.is_list else ""
        return f"{self.name}:{count}{self.var or self.dtype}"


class TypeVar:
    """A type variable: a type-valued attribute of the op.

    Attributes:
        name: Attribute name.
        allowed: Dtypes it may take, or None for all.
        default: Dtype (or tuple of dtypes for a list variable) used when a node leaves it out.
        is_list: Whether it holds a list of dtypes.
        minimum: Least length of a list variable.
    """

    __slots__ = ("allowed", "default", "is_list", "minimum", "name")

    def __init__(
        self,
        name: str,
        allowed: frozenset[DType] | None = None,
        default: DType | tuple[DType, ...] | None = None,
        is_list: bool = False,
        minimum: int = 0,
    ) -> None:
        self.name = name
        self.allowed = allowed
        self.default = default
        self.is_list = is_list
        self.minimum = minimum

    def allows(self, dtype: DType) -> bool:
        """Whether the op definition lets the variable be ``dtype``."""
        return self.allowed is None or dtype in self.allowed


class AttrSpec:
    """An attribute that is not a type.

    Attributes:
        kind: ``"int"``, ``"float"``, ``"bool"``, ``"string"``, ``"shape"``, ``"tensor"``, ``"func"``, ``"graph"``,
            or ``"list(...)"`` of these; ``"any"`` for what is not checked.
        default: Value used when a node leaves it out; :data:`REQUIRED` when it must be given.
        allowed: Allowed strings, or None.
        minimum: Least integer or least list length, or None.
    """

    __slots__ = ("allowed", "default", "kind", "minimum")

    def __init__(self, kind: str, default: Any, allowed: frozenset[bytes] | None = None, minimum: int | None = None) -> None:
        self.kind = kind
        self.default = default
        self.allowed = allowed
        self.minimum = minimum


REQUIRED = object()


class Signature:
    """The operands of one node: for each, a key of ``Node.types``, a fixed dtype, or None.

    Shared by all nodes of the same op with the same operand counts.

    Attributes:
        schema: The op's schema, or None for an op nobody defined.
        inputs: One :data:`Port` per operand.
        outputs: One :data:`Port` per result.
        keys: All keys that ``Node.types`` must have, in the order of the op definition.
        counts: Values of the count attributes and lengths of the list variables it was made for.
    """

    __slots__ = ("counts", "inputs", "keys", "outputs", "schema")

    def __init__(
        self,
        schema: "OpSchema | None",
        inputs: tuple[Port, ...],
        outputs: tuple[Port, ...],
        keys: tuple[str, ...],
        counts: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.counts = counts
        self.schema = schema
        self.inputs = inputs
        self.outputs = outputs
        self.keys = keys

    def equals(self, other: "Signature") -> bool:
        """Whether ``other`` says the same of the same number of operands."""
        return self.inputs == other.inputs and self.outputs == other.outputs and self.keys == other.keys


class OpSchema:
    """The definition of an op.

    Attributes:
        op_type, domain: Which op.
        inputs, outputs: Formal parameters.
        type_vars: Type variables by name, in definition order.
        attributes: The other attributes by name.
        stateful: Whether running it twice may differ or have effects.
        is_call: Whether it stands for a function of the graph's library.
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
        stateful: bool = False,
        is_call: bool = False,
    ) -> None:
        self.op_type = op_type
        self.domain = domain
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.type_vars = {var.name: var for var in type_vars}
        self.attributes: Mapping[str, AttrSpec] = attributes or {}
        self.stateful = stateful
        self.is_call = is_call
        formals = self.inputs + self.outputs
        self._numbers = tuple(sorted({f.number for f in formals if f.number}))
        self._lists = tuple(name for name, var in self.type_vars.items() if var.is_list)
        self._signatures: dict[tuple[int, ...], Signature] = {}

    def __repr__(self) -> str:
        return f"OpSchema({self.domain}.{self.op_type})"

    @property
    def varies(self) -> bool:
        """Whether nodes of this op differ in their signatures."""
        return bool(self._numbers or self._lists)

    def signature(
        self, attributes: Mapping[str, Any], types: Mapping[str, DType], inputs: Sequence[object] = (), outputs: int | None = None
    ) -> Signature:
        """Expand the formals for a node with these attributes and these type variables.

        Args:
            attributes: The node's attributes; counts (``N``) are read from here.
            types: The node's types; the lengths of list variables are read from its keys.
            inputs, outputs: The node's operands and number of results; only ONNX ops, which may omit some, look at them.

        Raises:
            GraphError: If a count attribute is missing, no integer, negative or absurdly large.
        """
        if not self._numbers and not self._lists:
            counts: tuple[int, ...] = ()
        else:
            counts = tuple(self._count(name, attributes) for name in self._numbers) + tuple(
                list_length(types, name) for name in self._lists
            )
        found = self._signatures.get(counts)
        if found is None:
            found = self._signatures[counts] = self._expand(dict(zip(self._numbers + self._lists, counts, strict=True)))
        return found

    def _count(self, name: str, attributes: Mapping[str, Any]) -> int:
        spec = self.attributes.get(name)
        count = attributes.get(name, spec.default if spec else REQUIRED)
        if type(count) is not int or not 0 <= count <= 1_000_000:
            received = "nothing" if count is REQUIRED else repr(count)
            raise GraphError(f"Op {self.op_type} needs an integer attribute {name!r} that counts operands. Received: {received}")
        return count

    def _expand(self, counts: dict[str, int]) -> Signature:
        def ports(formals: tuple[Formal, ...]) -> tuple[Port, ...]:
            result: list[Port] = []
            for formal in formals:
                if formal.is_list:
                    result += [f"{formal.var}[{i}]" for i in range(counts[formal.var or ""])]
                else:
                    port: Port = formal.var if formal.var is not None else formal.dtype
                    result += [port] * (counts[formal.number] if formal.number else 1)
            return tuple(result)

        keys: list[str] = []
        for name, var in self.type_vars.items():
            keys += [f"{name}[{i}]" for i in range(counts[name])] if var.is_list else [name]
        return Signature(self, ports(self.inputs), ports(self.outputs), tuple(keys), counts)

    def default(self, name: str) -> Any:
        """Return the default of attribute ``name``; None when it has none or does not exist."""
        spec = self.attributes.get(name)
        return None if spec is None or spec.default is REQUIRED else spec.default

    def split_outputs(self, signature: Signature) -> dict[str, range]:
        """Return, for each formal output, the range of result indices it covers."""
        return _split(self.outputs, signature.counts)

    def split_inputs(self, signature: Signature) -> dict[str, range]:
        """Return, for each formal input, the range of operand indices it covers."""
        return _split(self.inputs, signature.counts)


def _split(formals: tuple[Formal, ...], counts: Mapping[str, int]) -> dict[str, range]:
    result: dict[str, range] = {}
    start = 0
    for formal in formals:
        count = counts[formal.var or ""] if formal.is_list else counts[formal.number] if formal.number else 1
        result[formal.name] = range(start, start + count)
        start += count
    return result


def list_length(types: Mapping[str, DType], name: str) -> int:
    """Return how many entries ``name[0]``, ``name[1]`` … the mapping has."""
    length = 0
    while f"{name}[{length}]" in types:
        length += 1
    return length


@functools.lru_cache(maxsize=256)
def untyped_signature(inputs: int, outputs: int) -> Signature:
    """Return the signature of an op that no schema describes: nothing is known about its operands."""
    return Signature(None, (None,) * inputs, (None,) * outputs, ())
