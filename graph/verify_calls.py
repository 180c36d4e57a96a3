"""The invariants that concern functions: references to them, calls of them, and tensor lists that pass through them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from .dtypes import DType, variant
from .errors import did_you_mean
from .graph import Graph, Node, Value
from .schema import OpSchema, list_length
from .schemas import find_schema
from .schemas.onnx_schema import capture_labels
from .types import FunctionRef

#: Ops that give the elements of a variant on unchanged (or combine lists of one dtype), apart from the list ops.
_PASS_ON = frozenset(
    ["AddN", "Enter", "Exit", "Identity", "Merge", "NextIteration", "StopGradient", "Switch", "ZerosLike"],
)


def function_refs(node: Node) -> Iterator[tuple[str, FunctionRef]]:
    """Yield the function-valued attributes that the op definition knows."""
    schema = node.signature.schema
    if schema is None:
        return
    for name, value in node.attributes.items():
        if value.__class__ is FunctionRef:
            if name in schema.attributes:
                yield name, value
        elif value.__class__ is list and value and value[0].__class__ is FunctionRef and name in schema.attributes:
            for item in value:
                if isinstance(item, FunctionRef):
                    yield name, item


def _callers(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield the nodes whose op definition knows a function-valued attribute, or is itself a function's."""
    calls: dict[OpSchema, bool] = {}
    for node in nodes:
        schema = node.signature.schema
        if schema is None:
            continue
        is_call = calls.get(schema)
        if is_call is None:
            has_function = any(spec.kind in ("func", "list(func)") for spec in schema.attributes.values())
            is_call = calls[schema] = schema.is_call or has_function
        if is_call:
            yield node


def functions_exist(graph: Graph) -> Iterator[str]:
    """A function that an attribute names is in the library, or is an op."""
    for node in _callers(graph.nodes):
        for name, reference in function_refs(node):
            if reference.name in graph.functions or not reference.name or find_schema("tf", reference.name):
                continue
            near = did_you_mean(reference.name, graph.functions)
            yield f"[function-exists] {node} names function {reference.name!r} in attribute {name!r}, but there is none.{near}"


class _Call:
    """One use of a function: which values and dtypes stand at its inputs and outputs."""

    __slots__ = ("function", "outputs", "tin", "tout", "values")

    def __init__(
        self,
        function: Graph,
        tin: Sequence[DType | None],
        tout: Sequence[DType | None] | None,
        values: Sequence[Value | None],
        outputs: Sequence[Value],
    ) -> None:
        self.function = function
        self.tin = tin
        self.tout = tout
        self.values = values
        self.outputs = outputs


def _calls(node: Node) -> Iterator[_Call]:
    """Yield the calls that a node makes and whose signature is known."""
    functions = node.graph.functions
    op = node.op_type
    if node.domain != "tf":
        function = functions.get(f"{node.domain}:{op}")
        if function is not None and node.signature.schema is not None and node.signature.schema.is_call:
            tin = [None if value is None else value.dtype for value in node.inputs]
            tin += [None] * (len(function.inputs) - len(tin))
            given = [value.dtype for value in node.outputs]
            yield _Call(function, tin, [*given, *[None] * (len(function.outputs) - len(given))], node.inputs, node.outputs)
        return
    if node.signature.schema is not None and node.signature.schema.is_call and op in functions:
        ports = node.signature
        tin = [port if isinstance(port, DType) else None for port in ports.inputs]
        tout = [port if isinstance(port, DType) else None for port in ports.outputs]
        yield _Call(functions[op], tin, tout, node.inputs, node.outputs)
        return
    if op in ("PartitionedCall", "StatefulPartitionedCall"):
        in_var, out_var, first = "Tin", "Tout", 0
    elif op in ("While", "StatelessWhile"):
        in_var, out_var, first = "T", "T", 0
    elif op in ("If", "StatelessIf", "Case", "StatelessCase"):
        in_var, out_var, first = "Tin", "Tout", 1
    else:
        return
    tin = [node.types[f"{in_var}[{i}]"] for i in range(list_length(node.types, in_var))]
    tout = [node.types[f"{out_var}[{i}]"] for i in range(list_length(node.types, out_var))]
    for name, reference in function_refs(node):
        function = functions.get(reference.name)
        if function is not None:
            is_condition = name == "cond"
            yield _Call(function, tin, None if is_condition else tout, node.inputs[first:], () if is_condition else node.outputs)


def calls_match(graph: Graph) -> Iterator[str]:
    """A call site gives and expects the dtypes that the function takes and returns."""
    for node in _callers(graph.nodes):
        for call in _calls(node):
            name = call.function.name
            yield from _compare(node, name, "takes", call.tin, [value.dtype for value in call.function.inputs])
            given = [value.dtype for value in call.function.outputs]
            if call.tout is not None:
                yield from _compare(node, name, "returns", call.tout, given)
            elif len(given) != 1:
                yield f"[call-signature] {node} needs one result of its condition {name!r}. Received: {len(given)}"


def captures_match(graph: Graph) -> Iterator[str]:
    """The bodies of a node take outer values of the dtypes that the node hands to them."""
    for node, name, body in graph.bodies():
        formals = len(body.inputs) - len(body.captures)
        labels = capture_labels(node.attributes)
        if formals < 0 or len(node.inputs) < len(labels):
            yield f"[captures-match] {node} has fewer operands than its bodies use outer values: {', '.join(labels)}."
            continue
        yield from _compare_results(node, name, body)
        outer = dict(zip(labels, node.inputs[len(node.inputs) - len(labels) :], strict=True))
        for label, inner in zip(body.captures, body.inputs[formals:], strict=True):
            value = outer[label]
            if value is None:
                yield f"[captures-match] {node} hands nothing to its {name} for {label!r}."
            elif value.dtype is not inner.dtype and value.dtype is not None and inner.dtype is not None:
                yield f"[captures-match] {node} hands {value.dtype} to its {name} for {label!r}, which is {inner.dtype} there."


def _compare_results(node: Node, name: str, body: Graph) -> Iterator[str]:
    """What a body of the standard's control flow ops returns is what its owner gives."""
    if node.domain or node.op_type not in ("If", "Loop", "Scan", "SequenceMap") or node.schema is None:
        return
    given = body.outputs[1:] if node.op_type == "Loop" else body.outputs
    if len(given) != len(node.outputs):
        yield f"[body-results] {node} has {len(node.outputs)} results, but its {name} gives {len(given)}."
    for i, (inner, value) in enumerate(zip(given, node.outputs, strict=False)):
        if inner.dtype is not value.dtype and inner.dtype is not None and value.dtype is not None:
            yield f"[body-results] {node} gives {value.dtype} as result {i}, but its {name} gives {inner.dtype}."


def _compare(node: Node, name: str, verb: str, site: Sequence[DType | None], own: Sequence[DType | None]) -> Iterator[str]:
    if len(site) != len(own):
        yield f"[call-signature] Function {name!r} {verb} {len(own)} tensors, but {node} declares {len(site)}."
        return
    for i, (a, b) in enumerate(zip(site, own, strict=True)):
        if a is not b and a is not None and b is not None:
            yield f"[call-signature] Function {name!r} {verb} {b.name} at place {i}, but {node} declares {a.name}."


# ---- tensor lists ---------------------------------------------------------------------------------------------------


def lists_hold_one_dtype(parts: Sequence[Graph]) -> Iterator[str]:
    """All list ops that one tensor list reaches, through loops and calls too, have the same ``element_dtype``.

    A function that is called from several places is looked at by itself, as each caller may pass another list.
    """
    nodes = [node for part in parts for node in part.nodes]
    if not any("TensorList" in node.op_type for node in nodes):
        return
    calls = [call for node in _callers(nodes) for call in _calls(node)]
    callers = Counter([id(call.function) for call in calls])
    lists = _Lists()
    for call in calls:
        if callers[id(call.function)] == 1:
            lists.join_pairs(call.values, call.function.inputs)
            lists.join_pairs(call.outputs, call.function.outputs)
    for node in nodes:
        if node.op_type in ("While", "StatelessWhile", "IdentityN"):
            lists.join_pairs(node.inputs, node.outputs)
        elif node.domain == "tf" and node.op_type in _PASS_ON:
            lists.join([value for value in (*node.inputs, *node.outputs) if value is not None and _is_variant(value)])
        elif "TensorList" in node.op_type:
            lists.join(_handles(node))
    owners: dict[Value, Node] = {}
    for node in nodes:
        dtype = node.types.get("element_dtype")
        if dtype is None or "TensorList" not in node.op_type:
            continue
        for value in _handles(node):
            owner = owners.setdefault(lists.find(value), node)
            if owner.types["element_dtype"] is not dtype:
                other = owner.types["element_dtype"].name
                place = "" if node.graph is parts[0] else f" function {node.graph.name!r}:"
                yield f"[list-dtype]{place} {node} has element_dtype={dtype.name}, but {owner} of the same list has {other}."
                break


def _handles(node: Node) -> list[Value]:
    """The lists a list op works on: results and operands that its definition makes handles (not lists it holds as elements)."""
    signature = node.signature
    pairs = (*zip(node.outputs, signature.outputs, strict=False), *zip(node.inputs, signature.inputs, strict=False))
    return [value for value, port in pairs if value is not None and port is variant]


def _is_variant(value: Value) -> bool:
    try:
        return value.dtype is variant
    except IndexError:
        return False


class _Lists:
    """Union-find over the values that hold the same list."""

    def __init__(self) -> None:
        self.parent: dict[Value, Value] = {}

    def find(self, value: Value) -> Value:
        parent = self.parent
        root = value
        while (above := parent.get(root, root)) is not root:
            root = above
        while (above := parent.get(value, value)) is not root:
            parent[value], value = root, above
        return root

    def join(self, values: Sequence[Value]) -> None:
        for value in values[1:]:
            a, b = self.find(values[0]), self.find(value)
            if a is not b:
                self.parent[b] = a

    def join_pairs(self, values: Sequence[Value | None], others: Sequence[Value]) -> None:
        for a, b in zip(values, others, strict=False):
            if a is not None and _is_variant(a) and _is_variant(b):
                self.join([a, b])
