"""Adding casts to a graph, in the vocabulary of TensorFlow or of ONNX."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from ..graph.dtypes import DType, float32
from ..graph.graph import Graph, Node, Value
from ..graph.schemas import find_schema
from ..graph.schemas.onnx import find
from .constants import constant_of, low_tensor
from .hazards import Clamp

_ATTRIBUTES: Mapping[str, object] = {"Truncate": False}
#: The standard's version for the casts of a model of vendor ops only, which imports none: they are the same since.
_MODEL_OPSET = 13
_NAMES = {"float16": "Fp16", "bfloat16": "Bf16", "float32": "Fp32"}


class Caster(ABC):
    """Adds casts to a graph, placed right after their value's producer in file order.

    A value has one dtype and there are two, so one shared cast per value is enough.

    Attributes:
        casts: Value -> the same value in the other dtype.
        followers: Node -> what was added and must stand behind it.
        added: The casts.
        stored: The constants (ONNX) that were added instead of one.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.casts: dict[Value, Value] = {}
        self.followers: dict[Node, list[Node]] = {}
        self.added: list[Node] = []
        self.stored: list[Node] = []

    def cast(self, value: Value, source: DType, target: DType) -> Value:
        """Return ``value`` converted to ``target``, by the cast that is already there or a new one."""
        found = self.casts.get(value)
        if found is None:
            found = self.casts[value] = self.new(value, source, target)
        return found

    @abstractmethod
    def new(self, value: Value, source: DType, target: DType) -> Value:
        """Add a cast of ``value``, whose dtype is ``source``, to ``target``."""


class TensorFlowCaster(Caster):
    """Names casts as Grappler does."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        schema = find_schema("tf", "Cast")
        assert schema is not None
        self._signature = schema.signature({}, {})
        self._types: dict[DType, Mapping[str, DType]] = {}
        self._taken = {node.name for node in graph.all_nodes() if node.name.endswith("-AutoMixedPrecision")}
        self._next: dict[str, int] = {}

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


class OnnxCaster(Caster):
    """Casts say their dtype by ``to``, and a constant gets a copy in the other dtype instead of a cast.

    Args:
        graph: The main graph of a model, a function or a body.
        opset: The version of the standard that the main graph imports; for functions of vendor ops only, which import none.
        clamps: Constants to clamp.
    """

    def __init__(self, graph: Graph, opset: int | None, clamps: Mapping[Node, Clamp]) -> None:
        super().__init__(graph)
        self.clamps = clamps
        graph.opsets.setdefault("", opset or _MODEL_OPSET)
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
            attributes = {"value": low_tensor(tensor, target, bound_of(self.clamps, value.producer))}
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


def bound_of(clamps: Mapping[Node, Clamp], node: Node) -> float | None:
    """Return the magnitude to which a node's constant is clamped, or None."""
    clamp = clamps.get(node)
    return None if clamp is None else clamp.bound
