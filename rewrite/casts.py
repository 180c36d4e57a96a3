"""Applying a painting: types are set, and a Cast stands wherever an edge changes color."""

import dataclasses
import itertools
from collections.abc import Mapping

import numpy as np

from ..graph.dtypes import DType, float16, float32
from ..graph.errors import PassError
from ..graph.graph import Graph, Node, Value
from ..graph.schemas import find_schema
from ..graph.schemas.onnx import find
from .constants import clamped, constant_of, low_tensor, replace_tensor, store_low, tensor_of
from .hazards import Clamp
from .painting import Painting

_ATTRIBUTES: Mapping[str, object] = {"Truncate": False}
#: The standard's version for the casts of a function that imports none: they are the same since.
_MODEL_OPSET = 13
_NAMES = {"float16": "Fp16", "bfloat16": "Bf16", "float32": "Fp32"}


@dataclasses.dataclass
class Applied:
    """What applying a painting did to one graph.

    Attributes:
        changed: Nodes of the graph with at least one type changed.
        casts: The casts that were added.
        stored: Constants (ONNX) that are now stored in the low dtype, those added for it included.
        clamped: Constants (ONNX) whose elements were clamped to what the low dtype can hold.
    """

    changed: list[Node] = dataclasses.field(default_factory=list)
    casts: list[Node] = dataclasses.field(default_factory=list)
    stored: list[Node] = dataclasses.field(default_factory=list)
    clamped: list[Node] = dataclasses.field(default_factory=list)


class _Caster:
    """Adds casts to a graph, placed right after their value's producer in file order.

    A value has one dtype and there are two, so one shared cast per value is enough.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.casts: dict[Value, Value] = {}
        self.followers: dict[Node, list[Node]] = {}
        self.added: list[Node] = []
        self.stored: list[Node] = []
        self._prepare()

    def _prepare(self) -> None:
        schema = find_schema("tf", "Cast")
        assert schema is not None
        graph = self.graph
        self._signature = schema.signature({}, {})
        self._types: dict[DType, Mapping[str, DType]] = {}
        self._taken = {node.name for node in graph.all_nodes() if node.name.endswith("-AutoMixedPrecision")}
        self._next: dict[str, int] = {}

    def cast(self, value: Value, source: DType, target: DType) -> Value:
        """Return ``value`` converted to ``target``, by the cast that is already there or a new one."""
        found = self.casts.get(value)
        if found is None:
            found = self.casts[value] = self.new(value, source, target)
        return found

    def give_name(self, value: Value, result: Value) -> None:
        """Let ``result``, a cast of ``value`` that the graph returns instead of it, have its name (ONNX)."""

    def new(self, value: Value, source: DType, target: DType) -> Value:
        """Add a cast of ``value``, whose dtype is ``source``, to ``target``."""
        producer = value.producer
        stem = f"{producer.name}-{value.index}-CastTo{_NAMES[target.name]}"
        k = self._next.get(stem, 0)
        while (name := f"{stem}-{k}-AutoMixedPrecision") in self._taken:
            k += 1
        self._next[stem] = k + 1
        types = self._types.get(target)
        if types is None:
            types = self._types[target] = {"SrcT": source, "DstT": target}
        node = Node(self.graph, "Cast", "tf", name, self._signature, _ATTRIBUTES, types, producer.device, None)
        result = Value(node, 0, None, value.shape)
        node.outputs = [result]
        node.inputs = [value]
        self.graph.append(node)
        self.followers.setdefault(producer, []).append(node)
        self.added.append(node)
        return result


class _OnnxCaster(_Caster):
    """The same for ONNX: casts say their dtype by ``to``, and a constant gets a copy in the other dtype instead of a cast."""

    def __init__(self, graph: Graph, clamps: Mapping[Node, Clamp]) -> None:
        self.clamps = clamps
        super().__init__(graph)

    def _prepare(self) -> None:
        graph = self.graph
        if "" not in graph.opsets:  # a function of vendor ops only
            graph.opsets[""] = _MODEL_OPSET
        schema = find("", "Cast", graph.opsets[""])
        own = find_schema("ampgraph", "Initializer")
        assert schema is not None
        assert own is not None
        self._signature = schema.signature({}, {}, [True], 1)
        self._constant = own.signature({}, {})
        self._taken = {value.name for node in graph.all_nodes() for value in node.outputs}
        self._taken.update(node.name for node in graph.all_nodes())
        self._taken.update(graph.output_names)

    def fresh(self, base: str) -> str:
        """Return a name that no node and no value has, and take it."""
        k, name = 0, base
        while name in self._taken:
            k += 1
            name = f"{base}_{k}"
        self._taken.add(name)
        return name

    def new(self, value: Value, source: DType, target: DType) -> Value:
        """Add a cast of ``value``; a constant that becomes low is stored a second time instead."""
        tensor = constant_of(value) if source is float32 else None
        name = self.fresh(f"{value.name}_{target.name}")
        if tensor is None:
            types = {"T2": target} if value.dtype is None else {"T1": source, "T2": target}
            node = Node(self.graph, "Cast", "", name, self._signature, {}, types, "", None)
            node.inputs = [value]
            self.added.append(node)
        else:
            attributes = {"value": low_tensor(tensor, target, _bound_of(self.clamps, value.producer))}
            node = Node(self.graph, "Initializer", "ampgraph", name, self._constant, attributes, {"T": target}, "", None)
            self.stored.append(node)
        result = Value(node, 0, name, value.shape)
        node.outputs = [result]
        self.graph.append(node)
        self.followers.setdefault(value.producer, []).append(node)
        return result

    def give_name(self, value: Value, result: Value) -> None:
        """Let ``result``, a cast of ``value`` that the graph returns instead of it, have its name."""
        if value.producer.op_type == "Input" and value.producer.domain == "ampgraph":
            return
        name, dtype = value.name, value.dtype
        value.name = self.fresh(f"{name}_{dtype}")
        result.name = name


def _is_left_out(value: Value | None) -> bool:
    """Whether a value is an input of a function that no call gives."""
    return value is not None and value.dtype is None and value.producer.op_type == "Input"


def _bound_of(clamps: Mapping[Node, Clamp], node: Node) -> float | None:
    """Return the magnitude to which a node's constant is clamped, or None."""
    clamp = clamps.get(node)
    return None if clamp is None else clamp.bound


def apply(painting: Painting, target: DType) -> Applied:
    """Make the painted vertices ``target`` and put casts between them and the others. Edits the painted graph.

    Args:
        painting: The decisions; its graph must not have changed since.
        target: The low dtype.

    Raises:
        PassError: If a painted type is fixed by the op's definition.
    """
    typegraph = painting.typegraph
    changed = _set_types(painting, target)
    low = painting.allowed()
    sources, targets = typegraph.sources, typegraph.targets
    may_be_float = (typegraph.is_float | typegraph.unknown).astype(bool)
    edges = np.flatnonzero((sources >= 0) & (low[sources] != low[targets]) & may_be_float[sources])
    clamps = painting.facts.clamps
    casters = {part: _OnnxCaster(part, clamps) if part.opsets else _Caster(part) for part in typegraph.parts}
    nodes = typegraph.nodes
    for owner, slot, to_low in zip(*typegraph.operands(edges), low[targets[edges]].tolist(), strict=True):
        before, after = (float32, target) if to_low else (target, float32)
        if owner == len(nodes):
            part, position = typegraph.results[slot]
            value = part.outputs[position]
            part.outputs[position] = result = casters[part].cast(value, before, after)
            if part.opsets and value.name == part.output_names[position] and result.name != value.name:
                casters[part].give_name(value, result)
        else:
            user = nodes[owner]
            caster = casters[user.graph]
            if user.graph.is_function and _is_left_out(user.inputs[slot]):
                continue
            caster.graph.set_input(user, slot, caster.cast(user.inputs[slot], before, after))  # type: ignore[arg-type]  # the edge exists
    for caster in casters.values():
        if caster.followers:
            caster.graph.place_after(caster.followers)
    stored = [node for node in changed if tensor_of(node) is not None]
    for node in stored:
        store_low(node, target, _bound_of(clamps, node))
    masks = []
    for node, clamp in clamps.items():
        is_low = low[typegraph.vertex(node.outputs[0])]
        if is_low or any(not low[v] and any(low[u] for u in typegraph.successors(v)) for v in clamp.way):
            masks.append(node)
            if not is_low:  # the mask is made in float32 and then cast
                replace_tensor(node, clamped(node, clamp.bound))
    return Applied(
        [node for node in changed if node.domain != "ampgraph"],
        [node for caster in casters.values() for node in caster.added],
        stored + [node for caster in casters.values() for node in caster.stored],
        masks,
    )


def _set_types(painting: Painting, target: DType) -> list[Node]:
    """Set the painted entries of ``Node.types``; nodes whose types were one mapping share one afterwards."""
    typegraph = painting.typegraph
    rows = np.flatnonzero(painting.allowed() & typegraph.is_float.astype(bool)).tolist()
    replaced: dict[tuple[object, ...], tuple[Mapping[str, DType], Mapping[str, DType]]] = {}
    changed: list[Node] = []
    for owner, vertices in itertools.groupby(rows, typegraph.owner.__getitem__):
        if owner >= len(typegraph.nodes):
            break
        node = typegraph.nodes[owner]
        types = node.types
        keys = tuple(map(typegraph.key, vertices))
        pair = replaced.get((id(types), *keys))
        if pair is None:  # the old mapping is kept too, so that its id stays taken
            new = dict(types)
            for key in keys:
                if not isinstance(key, str):
                    raise PassError(
                        f"Failed to set a type attribute: {node} has an operand that its definition fixes to float32. "
                        "UNSAFE_FORCE_ALL does not work on such a graph; deny the op or drop the level."
                    )
                new[key] = target
            pair = replaced[id(types), *keys] = types, new
        node.types = pair[1]
        changed.append(node)
    return changed


def emulate(painting: Painting) -> Applied:
    """Keep float32 kernels and round where a float16 kernel would: casts to float16 and back around painted ports.

    This is Grappler's ``cpu_fp16`` mode. A painted operand is read through its own cast from float16, a painted result is
    rounded to float16 for all its users, and those that are not painted share one cast back to float32.

    Raises:
        PassError: If a painted user stands before its producer in the file (any loop does): Grappler fails there too.
    """
    typegraph, graph = painting.typegraph, painting.typegraph.parts[0]
    caster = _Caster(graph)
    low = painting.allow
    rounded: dict[Value, Value] = {}
    place = {node: i for i, node in enumerate(typegraph.nodes)}
    read = {value for node in typegraph.nodes for value in node.inputs} | {*(graph.outputs if graph.is_function else ())}
    for i, node in enumerate(typegraph.nodes):
        for value, port in zip(node.outputs, typegraph.ports_of(i)[1], strict=True):
            vertex = typegraph.first[i] + port
            if typegraph.is_float[vertex] and low[vertex] and value in read:
                rounded[value] = caster.new(value, float32, float16)
    for i, node in enumerate(typegraph.nodes):
        base = typegraph.first[i]
        for slot, port in enumerate(typegraph.ports_of(i)[0]):
            operand, vertex = node.inputs[slot], base + port
            if operand is None or not typegraph.is_float[vertex]:
                continue
            if low[vertex]:
                if place[operand.producer] >= i:
                    raise PassError(
                        f"Node {node} reads {operand.producer}, which stands later in the file. float16 emulation on CPUs "
                        "(cpu_fp16) needs nodes in topological order and no loops; use dtype='bfloat16', or target='gpu'."
                    )
                half = rounded.get(operand) or caster.cast(operand, float32, float16)
                graph.set_input(node, slot, caster.new(half, float16, float32))
            elif operand in rounded:
                graph.set_input(node, slot, caster.cast(rounded[operand], float16, float32))
    for position, value in enumerate(graph.outputs if graph.is_function else []):
        if value in rounded:
            graph.outputs[position] = caster.cast(rounded[value], float16, float32)
    graph.place_after(caster.followers)
    return Applied([], caster.added)
