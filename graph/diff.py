"""What differs between two graphs.

Nodes are compared by name; nodes without a name of their own by their place among those. ::

    ~ dense/MatMul: T f32 -> f16
    + x-0-CastToFp16-0-AutoMixedPrecision = Cast(x)
    - old = Relu(x)
"""

from collections.abc import Iterator, Mapping
from typing import Any

from .graph import Graph, Node, Value
from .schema import REQUIRED
from .text_print import print_attribute, same_attribute

_ABSENT = object()


def diff(a: Graph, b: Graph) -> list[str]:
    """Return the differences from ``a`` to ``b``, one line each: ``+`` is only in ``b``, ``-`` only in ``a``.

    Attributes at their default equal absent ones. File order, shapes and ``meta`` do not count.

    Example:
        >>> from ampgraph.graph.text import parse_graph
        >>> a = parse_graph("graph g(%x: f32) { %y = tf.Relu(%x) return %y }")
        >>> b = parse_graph("graph g(%x: f16) { %y = tf.Relu(%x) return %y }")
        >>> diff(a, b)
        ['~ input x: f32 -> f16', '~ y: T f32 -> f16']
    """
    lines = list(_diff_graphs(a, b))
    for name, function in a.functions.items():
        if name not in b.functions:
            lines.append(f"- function {name}")
        elif function is not a:
            lines += [f"{line[:2]}function {name}: {line[2:]}" for line in _diff_graphs(function, b.functions[name])]
    lines += [f"+ function {name}" for name in b.functions if name not in a.functions]
    return lines


def structurally_equal(a: Graph, b: Graph, *, order: bool = False) -> bool:
    """Whether :func:`diff` finds nothing.

    Args:
        a, b: The graphs.
        order: Whether nodes must also stand in the same file order, in functions too.
    """
    if diff(a, b):
        return False
    pairs = [(a, b), *((function, b.functions[name]) for name, function in a.functions.items())]
    return not order or all(list(_by_key(x)) == list(_by_key(y)) for x, y in pairs)


def _by_key(graph: Graph) -> dict[tuple[str, int], Node]:
    """Nodes by name, and by how many of the same name stand before."""
    count: dict[str, int] = {}
    result: dict[tuple[str, int], Node] = {}
    for node in graph.nodes:
        place = count[node.name] = count.get(node.name, -1) + 1
        result[node.name, place] = node
    return result


def _diff_graphs(a: Graph, b: Graph) -> Iterator[str]:
    yield from _diff_mapping("graph", a.attributes, b.attributes)
    yield from _diff_inputs(a, b)
    old, new = _by_key(a), _by_key(b)
    for key, node in old.items():
        other = new.get(key)
        if other is None:
            yield f"- {_definition(node)}"
        else:
            yield from _diff_nodes(node, other)
    for key, node in new.items():
        if key not in old:
            yield f"+ {_definition(node)}"
    returned = [[f"{name}={_name(value)}" for name, value in zip(g.output_names, g.outputs, strict=False)] for g in (a, b)]
    if returned[0] != returned[1]:
        yield f"~ outputs: {', '.join(returned[0])} -> {', '.join(returned[1])}"


def _diff_inputs(a: Graph, b: Graph) -> Iterator[str]:
    names = [[value.name for value in graph.inputs] for graph in (a, b)]
    if names[0] != names[1]:
        yield f"~ inputs: {', '.join(names[0])} -> {', '.join(names[1])}"
        return
    for old, new in zip(a.inputs, b.inputs, strict=True):
        if old.dtype is not new.dtype:
            yield f"~ input {old.name}: {_short(old.dtype)} -> {_short(new.dtype)}"


def _diff_nodes(a: Node, b: Node) -> Iterator[str]:
    name = _label(a)
    if (a.domain, a.op_type) != (b.domain, b.op_type):
        yield f"~ {name}: op {_op(a)} -> {_op(b)}"
    if a.types is not b.types and a.types != b.types:
        for key in dict.fromkeys([*a.types, *b.types]):
            old, new = a.types.get(key), b.types.get(key)
            if old is not new:
                yield f"~ {name}: {key} {_short(old)} -> {_short(new)}"
    if a.attributes is not b.attributes:
        yield from _diff_mapping(name, _with_defaults(a, b), _with_defaults(b, a))
    for slot in range(max(len(a.inputs), len(b.inputs))):
        before = _name(a.inputs[slot]) if slot < len(a.inputs) else "nothing"
        after = _name(b.inputs[slot]) if slot < len(b.inputs) else "nothing"
        if before != after:
            yield f"~ {name}: input {slot} {before} -> {after}"
    if a.device != b.device:
        yield f"~ {name}: device {a.device!r} -> {b.device!r}"
    controls = [sorted(_label(source) for source in node.controls) for node in (a, b)]
    if controls[0] != controls[1]:
        yield f"~ {name}: control {', '.join(controls[0]) or 'nothing'} -> {', '.join(controls[1]) or 'nothing'}"
    results = [[value.name for value in node.outputs] for node in (a, b)]
    if results[0] != results[1]:
        yield f"~ {name}: results {', '.join(results[0])} -> {', '.join(results[1])}"


def _with_defaults(node: Node, other: Node) -> Mapping[str, Any]:
    """The attributes of ``node``, with the defaults of those that only ``other`` gives."""
    specs = {} if node.schema is None else node.schema.attributes
    missing = {
        name: specs[name].default
        for name in other.attributes
        if name not in node.attributes and name in specs and specs[name].default is not REQUIRED
    }
    return {**node.attributes, **missing} if missing else node.attributes


def _diff_mapping(owner: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys([*a, *b]):
        old, new = a.get(name, _ABSENT), b.get(name, _ABSENT)
        if old is not new and not same_attribute(old, new):
            yield f"~ {owner}: {name} {_attribute(old)} -> {_attribute(new)}"


def _attribute(value: Any) -> str:
    text = "nothing" if value is _ABSENT else print_attribute(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _definition(node: Node) -> str:
    operands = [*map(_name, node.inputs), *(f"^{_label(source)}" for source in node.controls)]
    return f"{_label(node)} = {_op(node)}({', '.join(operands)})"


def _label(node: Node) -> str:
    return node.name or (node.outputs[0].name if node.outputs else f"unnamed {node.op_type}")


def _op(node: Node) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain not in ("tf", "") else node.op_type


def _name(value: Value | None) -> str:
    return "_" if value is None else value.name


def _short(dtype: Any) -> str:
    return "nothing" if dtype is None else dtype.short
