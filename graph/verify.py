"""The invariants of a graph, one function for each.

Every function here takes a :class:`~ampgraph.graph.graph.Graph` and yields a sentence for every place that breaks its
rule; the rule's identifier stands in brackets at the front. What crosses function boundaries is in
:mod:`ampgraph.graph.verify_calls`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .collector import paused_collector
from .dtypes import DType
from .errors import GraphError, VerifyError, did_you_mean
from .graph import Graph, Node
from .schema import REQUIRED, AttrSpec, OpSchema, Signature
from .schemas.onnx_schema import OnnxSchema
from .types import FunctionRef, Placeholder, Shape, Tensor
from .verify_calls import calls_match, captures_match, functions_exist, lists_hold_one_dtype

#: How many violations an error's message shows; :attr:`VerifyError.violations` has them all.
SHOWN = 20

_NEXT_ITERATION = ("NextIteration", "RefNextIteration")
_MERGE = ("Merge", "RefMerge")


def verify(graph: Graph) -> None:
    """Check every invariant of a graph and of its functions.

    Linear in nodes and edges. Ops that nobody defined are only checked for their edges.

    Raises:
        VerifyError: If the graph breaks any; ``violations`` lists every place.
    """
    with paused_collector():
        found = list(violations(graph))
    if found:
        shown = "".join(f"\n  {text}" for text in found[:SHOWN])
        more = f"\n  and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        count = f"{len(found)} violation{'s' if len(found) > 1 else ''}"
        raise VerifyError(f"Graph {graph.name!r} is not valid ({count}):{shown}{more}", tuple(found))


def violations(graph: Graph) -> Iterator[str]:
    """Yield every violation of an invariant, as ``[rule] 'node' (Op) …``."""
    parts = graph.all_graphs()
    functions = {id(function) for function in graph.functions.values()}
    rules = [*_RULES, captures_match] if len(parts) > len(functions | {id(graph)}) else _RULES
    for part in parts:
        place = "" if part is graph else f" {'function' if id(part) in functions else 'body'} {part.name!r}:"
        for rule in rules:
            for text in rule(part):
                name, _, rest = text.partition("] ")
                yield f"{name}]{place} {rest}" if place else text
    yield from lists_hold_one_dtype(parts)


# ---- structure ------------------------------------------------------------------------------------------------------


def edges_sound(graph: Graph) -> Iterator[str]:
    """Operands and control edges come from nodes of this graph, results know where they stand, and no cycles run.

    One look at each node tells that of most graphs: those whose nodes stand behind all they read.
    """
    if not _is_sound_in_order(graph):
        for rule in (operands_defined, results_consistent, controls_in_graph, acyclic):
            yield from rule(graph)


def _is_sound_in_order(graph: Graph) -> bool:
    seen: set[Node] = set()
    for node in graph.all_nodes():
        if node.graph is not graph:
            return False
        for value in node.inputs:
            if value is None:
                if node.domain == "tf":
                    return False
                continue
            producer = value.producer
            if producer not in seen:
                return False
            results, index = producer.outputs, value.index
            if index >= len(results) or results[index] is not value:
                return False
        for source in node.controls:
            if source not in seen:
                return False
        for i, value in enumerate(node.outputs):
            if value.producer is not node or value.index != i:
                return False
        seen.add(node)
    return True


def operands_defined(graph: Graph) -> Iterator[str]:
    """Every operand is a result of a node or input of this graph; TensorFlow ops omit none."""
    members = set(graph.all_nodes())
    for node in graph.all_nodes():
        for slot, value in enumerate(node.inputs):
            if value is None:
                if node.domain == "tf":
                    yield f"[operand-defined] {node} omits input {slot}, but TensorFlow ops have no optional inputs."
                continue
            producer = value.producer
            if producer not in members:
                yield f"[operand-defined] {node} reads '{value}' at input {slot}, but {producer} is not in this graph."
            elif value.index >= len(producer.outputs) or producer.outputs[value.index] is not value:
                yield f"[operand-defined] {node} reads '{value}' at input {slot}, but that is no result of {producer}."


def results_consistent(graph: Graph) -> Iterator[str]:
    """A node's results know their producer and place, and a node knows its graph."""
    for node in graph.all_nodes():
        if node.graph is not graph:
            yield f"[result-consistent] {node} says it belongs to graph {node.graph.name!r}."
        for i, value in enumerate(node.outputs):
            if value.producer is not node or value.index != i:
                yield f"[result-consistent] Result {i} of {node} says it is result {value.index} of {value.producer}."


def names_unique(graph: Graph) -> Iterator[str]:
    """Value names are unique in a graph; so are the names of TensorFlow nodes, and none is empty."""
    names = [node.name for node in graph.all_nodes() if node.domain == "tf"]
    unique = len(set(names)) == len(names)
    # Names made from unique node names without a colon are unique: nothing to count in most graphs.
    plain = unique and not graph.inputs and len(names) == len(graph) and ":" not in "".join(names)
    if not plain or any(value._name is not None for node in graph.nodes for value in node.outputs):
        values = Counter([value.name for node in graph.all_nodes() for value in node.outputs])
        for name, count in values.items():
            if count > 1:
                yield f"[names-unique] {count} values are called '%{name}'."
    if not unique or "" in names:
        for name, count in Counter(names).items():
            if not name:
                yield f"[names-unique] {count} TensorFlow nodes have no name."
            elif count > 1:
                yield f"[names-unique] {count} nodes are called {name!r}."


def controls_in_graph(graph: Graph) -> Iterator[str]:
    """Every control edge comes from this graph."""
    members = set(graph.all_nodes())
    for node in graph.all_nodes():
        for source in node.controls:
            if source not in members:
                yield f"[control-in-graph] {node} waits for {source}, which is not in this graph."


def outputs_defined(graph: Graph) -> Iterator[str]:
    """Every graph output is a result of this graph and has a name."""
    members = set(graph.all_nodes()) if graph.outputs else set()
    for value in graph.outputs:
        producer = value.producer
        if producer not in members or value.index >= len(producer.outputs) or producer.outputs[value.index] is not value:
            yield f"[outputs-defined] Graph {graph.name!r} returns '{value}', but no node or graph input defines it."
    if len(graph.outputs) != len(graph.output_names):
        counts = f"{len(graph.outputs)} outputs and {len(graph.output_names)} output names"
        yield f"[outputs-defined] Graph {graph.name!r} has {counts}."


def acyclic(graph: Graph) -> Iterator[str]:
    """Cycles run only over a back edge of a loop, from ``NextIteration`` to ``Merge``."""
    if not _file_order_is_topological(graph):
        yield from _find_cycle(graph)


def _file_order_is_topological(graph: Graph) -> bool:
    seen: set[Node] = set()
    for node in graph.all_nodes():
        for value in node.inputs:
            if (
                value is not None
                and value.producer not in seen
                and not (node.op_type in _MERGE and value.producer.op_type in _NEXT_ITERATION)
            ):
                return False
        for source in node.controls:
            if source not in seen:
                return False
        seen.add(node)
    return True


def _find_cycle(graph: Graph) -> Iterator[str]:
    """Settle nodes whose sources are settled; what remains waiting is in a cycle or behind one."""
    waiting: dict[Node, int] = {}
    followers: dict[Node, list[Node]] = {}
    ready: list[Node] = []
    members = set(graph.all_nodes())
    for node in graph.all_nodes():
        count = 0
        for source in _sources(node):
            if source in members:
                followers.setdefault(source, []).append(node)
                count += 1
        if count:
            waiting[node] = count
        else:
            ready.append(node)
    while ready:
        for follower in followers.get(ready.pop(), ()):
            waiting[follower] -= 1
            if not waiting[follower]:
                del waiting[follower]
                ready.append(follower)
    if waiting:
        yield f"[acyclic] Graph {graph.name!r} has a cycle: {_describe_cycle(waiting)}."


def _sources(node: Node) -> list[Node]:
    """The nodes that must run before ``node``, back edges of loops left out."""
    sources = [value.producer for value in node.inputs if value is not None]
    if node.op_type in _MERGE:
        sources = [source for source in sources if source.op_type not in _NEXT_ITERATION]
    return [*sources, *node.controls] if node.controls else sources


def _describe_cycle(waiting: Mapping[Node, int]) -> str:
    node = next(iter(waiting))
    seen: dict[Node, int] = {}
    while node not in seen:
        seen[node] = len(seen)
        node = next(source for source in _sources(node) if source in waiting)
    cycle = [str(member) for member, place in seen.items() if place >= seen[node]][::-1]
    middle = [*cycle[:8], "…"] if len(cycle) > 8 else cycle
    return " -> ".join([*middle, cycle[0]])


# ---- operands and types ---------------------------------------------------------------------------------------------


def arity(graph: Graph) -> Iterator[str]:
    """A node has the operands and results that its op, attributes and types ask for."""
    for node in graph.all_nodes():
        signature = node.signature
        schema = signature.schema
        if schema is not None and schema.varies:
            try:
                signature = schema.signature(node.attributes, node.types, node.inputs, len(node.outputs))
            except GraphError as error:
                if not _has_placeholder(node):
                    yield f"[arity] {node}: {error}"
                continue
        if len(node.inputs) != len(signature.inputs):
            yield f"[arity] {node} has {len(signature.inputs)} inputs by its definition. Received: {len(node.inputs)}"
        if len(node.outputs) != len(signature.outputs):
            yield f"[arity] {node} has {len(signature.outputs)} results by its definition. Received: {len(node.outputs)}"
        if signature is not node.signature and not signature.equals(node.signature):
            yield f"[arity] {node} was changed, but its signature was not renewed."


def types_known(graph: Graph) -> Iterator[str]:
    """A node has a dtype for every type variable of its op, one that the op allows, and no other entry.

    Graph inputs may be of unknown type: a function's caller may supply it.
    """
    good: set[tuple[Signature, tuple[Any, ...], tuple[DType, ...]]] = set()
    for node in graph.nodes:
        signature, types = node.signature, node.types
        schema = signature.schema
        key = (signature, tuple(types), tuple(types.values()))
        if schema is None or key in good:
            continue
        is_complete = schema.domain in ("tf", "ampgraph")
        bad = list(_check_types(node, signature, schema) if is_complete else _check_onnx_types(node, signature))
        yield from bad
        if not bad and (is_complete or len(types) == len(signature.keys)):  # else the operands count too
            good.add(key)


def _check_types(node: Node, signature: Signature, schema: OpSchema) -> Iterator[str]:
    types = node.types
    for key in signature.keys:
        name = key.partition("[")[0]
        dtype = types.get(key)
        if dtype is None:
            if not isinstance(node.attributes.get(name), Placeholder):
                yield f"[types-complete] {node} has no dtype for its type variable {key}."
        elif not schema.type_vars[name].allows(dtype):
            allowed = ", ".join(sorted(other.name for other in schema.type_vars[name].allowed or ()))
            yield f"[type-allowed] {node} has {key}={dtype.name}, but its definition allows only {allowed}."
    for name, var in schema.type_vars.items():
        if var.is_list and var.minimum and f"{name}[{var.minimum - 1}]" not in types:
            yield f"[types-complete] {node} needs at least {var.minimum} dtypes for its type variable {name}."
    for key in types.keys() - set(signature.keys):
        yield f"[types-complete] {node} has a dtype for {key!r}, which is not a type variable of {schema.op_type}."


def _check_onnx_types(node: Node, signature: Signature) -> Iterator[str]:
    """Types of ONNX nodes may be unknown, after an op that nobody defined, but not where an operand tells."""
    schema = signature.schema
    assert schema is not None
    for key in signature.keys:
        dtype = node.types.get(key)
        if dtype is not None:
            var = schema.type_vars.get(key.partition("[")[0])
            if var is not None and not var.allows(dtype):
                allowed = ", ".join(sorted(other.name for other in var.allowed or ()))
                yield f"[type-allowed] {node} has {key}={dtype.name}, but its definition allows only {allowed}."
    if isinstance(schema, OnnxSchema):
        for name, (variable, default) in schema.type_attributes.items():
            if not default and variable not in node.types and not isinstance(node.attributes.get(name), Placeholder):
                yield f"[attribute-required] {node} has no attribute {name!r}, which says the dtype of its result."
    for port, value in zip(signature.inputs, node.inputs, strict=False):
        if isinstance(port, str) and port not in node.types and value is not None and value.dtype is not None:
            yield f"[types-complete] {node} has no dtype for its type variable {port}."
    for key in node.types.keys() - set(signature.keys):
        yield f"[types-complete] {node} has a dtype for {key!r}, which is not a type variable of {schema.op_type}."


def operand_types(graph: Graph) -> Iterator[str]:
    """An operand has the dtype that the op definition wants there."""
    for node in graph.all_nodes():
        if not node.inputs:
            continue
        types = node.types
        for slot, (port, value) in enumerate(zip(node.signature.inputs, node.inputs, strict=False)):
            if port is None or value is None:
                continue
            wanted = types.get(port) if isinstance(port, str) else port
            producer = value.producer
            results = producer.signature.outputs
            given = results[value.index] if value.index < len(results) else None
            found = producer.types.get(given) if isinstance(given, str) else given
            if found is not wanted and found is not None and wanted is not None:
                yield (
                    f"[dtype-matches-schema] {node} reads '{value}' at input {slot} as {wanted}, "
                    f"but {value.producer} gives {found.name}."
                )


def references(graph: Graph) -> Iterator[str]:
    """An operand that is a reference to a variable comes from a node that gives a reference."""
    inputs: dict[Signature, list[int]] = {}
    outputs: dict[Signature, list[int]] = {}
    for node in graph.nodes:
        signature = node.signature
        schema = signature.schema
        if schema is None or schema.domain != "tf":
            continue
        slots = inputs.get(signature)
        if slots is None:
            slots = inputs[signature] = _reference_slots(schema.split_inputs(signature), schema.inputs)
        for slot in slots:
            value = node.inputs[slot] if slot < len(node.inputs) else None
            if value is None:
                continue
            source = value.producer.signature
            if source.schema is None or source.schema.domain != "tf":
                continue
            given = outputs.get(source)
            if given is None:
                given = outputs[source] = _reference_slots(source.schema.split_outputs(source), source.schema.outputs)
            if value.index not in given:
                yield f"[reference] {node} needs a reference to a variable at input {slot}, but {value.producer} gives a value."


def _reference_slots(ranges: Mapping[str, range], formals: Any) -> list[int]:
    return [slot for formal in formals if formal.is_ref for slot in ranges[formal.name]]


# ---- attributes -----------------------------------------------------------------------------------------------------

_CLASSES: dict[str, type] = {
    "int": int,
    "float": float,
    "bool": bool,
    "string": bytes,
    "shape": Shape,
    "tensor": Tensor,
    "func": FunctionRef,
    "graph": Graph,
}


def attributes_fit(graph: Graph) -> Iterator[str]:
    """Attributes are of the kind, and within the limits, that the op definition says; required ones are there.

    Attributes that the definition does not know are the user's own business.
    """
    required: dict[OpSchema, list[str]] = {}
    for node in graph.nodes:
        schema = node.signature.schema
        if schema is None or not schema.attributes:
            continue
        attributes, specs = node.attributes, schema.attributes
        needed = required.get(schema)
        if needed is None:
            needed = required[schema] = [name for name, spec in specs.items() if spec.default is REQUIRED]
        for name in needed:
            if name not in attributes:
                near = did_you_mean(name, [other for other in attributes if other not in specs])
                yield f"[attribute-required] {node} has no attribute {name!r}, which its definition requires.{near}"
        for name, value in attributes.items():
            spec = specs.get(name)
            if spec is None or value.__class__ is Placeholder or spec.kind == "any":
                continue
            if spec.kind[0] == "l" and spec.kind.startswith("list("):
                yield from _check_list(node, name, spec, value)
            elif value.__class__ is not _CLASSES[spec.kind]:
                yield f"[attribute-kind] {node} needs a {spec.kind} for attribute {name!r}. Received: {value!r}"
            elif spec.allowed is not None or spec.minimum is not None:
                yield from _check_limits(node, name, spec, value)


def _check_list(node: Node, name: str, spec: AttrSpec, value: Any) -> Iterator[str]:
    wanted = _CLASSES[spec.kind[5:-1]]
    if value.__class__ is not list or not all(item.__class__ is wanted for item in value):
        yield f"[attribute-kind] {node} needs a {spec.kind} for attribute {name!r}. Received: {value!r}"
        return
    if spec.minimum is not None and len(value) < spec.minimum:
        yield f"[attribute-value] {node} needs at least {spec.minimum} items in attribute {name!r}. Received: {value!r}"
    if spec.allowed is not None and not spec.allowed.issuperset(value):
        yield f"[attribute-value] {node} allows only {_names(spec)} in attribute {name!r}. Received: {value!r}"


def _check_limits(node: Node, name: str, spec: AttrSpec, value: Any) -> Iterator[str]:
    if spec.allowed is not None and value not in spec.allowed:
        yield f"[attribute-value] {node} allows only {_names(spec)} for attribute {name!r}. Received: {value!r}"
    if spec.minimum is not None and spec.kind == "int" and value < spec.minimum:
        yield f"[attribute-value] {node} needs at least {spec.minimum} for attribute {name!r}. Received: {value!r}"


def _names(spec: AttrSpec) -> str:
    return ", ".join(sorted(repr(item.decode(errors="replace")) for item in spec.allowed or ()))


def _has_placeholder(node: Node) -> bool:
    return any(isinstance(value, Placeholder) for value in node.attributes.values())


#: Ops whose tensor-valued attribute is of the dtype of a type variable.
_CONSTANTS = {
    ("tf", "Const"): ("value", "dtype"),
    ("ampgraph", "Initializer"): ("value", "T"),
    ("ampgraph", "Input"): ("default", "T"),
    ("", "Constant"): ("value", "T"),
    ("", "ConstantOfShape"): ("value", "T2"),
}
_HOLDERS = frozenset(op for _, op in _CONSTANTS)


def constants_match(graph: Graph) -> Iterator[str]:
    """A constant's tensor has the dtype that the node declares, and as many bytes as its shape needs."""
    for node in graph.all_nodes():
        if not node.attributes or node.op_type not in _HOLDERS:
            continue
        name, key = _CONSTANTS.get((node.domain, node.op_type), ("", ""))
        if name in node.attributes:
            tensor, dtype = node.attributes.get(name), node.types.get(key)
            if isinstance(tensor, Tensor) and dtype is not None and tensor.dtype is not dtype:
                yield f"[constant-matches] {node} declares {dtype.name}, but its tensor is {tensor.dtype.name}."
            if isinstance(tensor, Tensor) and (problem := tensor.problem()):
                yield f"[constant-matches] The tensor of {node} {problem}."


def nx_agrees(graph: Graph) -> Iterator[str]:
    """The NetworkX view, once built, shows the same nodes and edges."""
    view = graph._nx
    if view is None:
        return
    members = set(graph.all_nodes())
    # The plain dicts: the public views cost ten times as much.
    sources: Mapping[Node, Mapping[Node, Mapping[Any, Any]]] = vars(view)["_pred"]
    for node in view:
        if node not in members:
            yield f"[nx-agrees] {node} is in graph.nx, but not among the nodes of graph {graph.name!r}."
    for node in graph.all_nodes():
        if node not in view:
            yield f"[nx-agrees] {node} is not in graph.nx."
            continue
        shown = sources[node]
        same = True
        for slot, value in enumerate(node.inputs):
            same = same and (value is None or slot in shown.get(value.producer, ()))
        for i, source in enumerate(node.controls):
            same = same and ("control", i) in shown.get(source, ())
        if not same or sum(map(len, shown.values())) != len(node.inputs) - node.inputs.count(None) + len(node.controls):
            yield f"[nx-agrees] The edges into {node} are not those of graph.nx; change nodes through the graph's methods."


_RULES: tuple[Callable[[Graph], Iterator[str]], ...] = (
    edges_sound,
    names_unique,
    outputs_defined,
    arity,
    types_known,
    operand_types,
    references,
    attributes_fit,
    constants_match,
    functions_exist,
    calls_match,
    nx_agrees,
)
