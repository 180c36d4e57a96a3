"""Calls of functions and functional branches.

What the gradient needs of the inside of a function becomes further results of the call. Nothing is computed twice, and
random numbers stay what they were. A branch that was not taken gives FakeParam in the place of what it would keep.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..dtypes import DType
from ..errors import GraphError
from ..graph import Graph, Node, Value
from ..types import FunctionRef, Shape
from .body import Body
from .builder import Builder, operands
from .editing import append_outputs, extend, finish, new_function
from .variables import zeros_of

if TYPE_CHECKING:
    from .rules import Rule

#: Attribute of a call that names the function to take as its gradient: of the operands and the gradients of the results.
CUSTOM = "_gradient_function"


def types_of(name: str, values: Sequence[Value]) -> dict[str, DType]:
    """Return the entries of a list variable."""
    return {f"{name}[{i}]": value.dtype for i, value in enumerate(values) if value.dtype is not None}


def function_of(node: Node, reference: object) -> str:
    """Return the name of a function of the library.

    Raises:
        GraphError: If there is no such function.
    """
    if not isinstance(reference, FunctionRef) or reference.name not in node.graph.functions:
        raise GraphError(f"Node {node} is differentiated through its function, and there is none. Received: {reference!r}")
    return reference.name


def _call(b: Builder, node: Node, *dys: Value | None) -> Sequence[Value | None]:
    """A call of the function's gradient."""
    custom = node.attributes.get(CUSTOM)
    if custom is not None:
        return _custom(b, node, custom, dys)
    direct = node.op_type in node.graph.functions
    reference = FunctionRef(node.op_type) if direct else node.attr("f")
    return _derive(b, node, operands(node), [reference], dys)


def _custom(b: Builder, node: Node, reference: object, dys: Sequence[Value | None]) -> Sequence[Value | None]:
    """A call of the function that the node says is its gradient."""
    function = node.graph.functions[function_of(node, reference)]
    given = [b.zeros_like(y) if dy is None else dy for y, dy in zip(node.outputs, dys, strict=True)]
    values = [*operands(node), *given]
    if len(function.inputs) != len(values) or len(function.outputs) != len(node.inputs):
        takes, gives = len(function.inputs), len(function.outputs)
        raise GraphError(
            f"The gradient of {node} takes its operands and the gradients of its results, {len(values)} values, and gives one "
            f"for each operand, {len(node.inputs)}. Received: function {function.name!r} from {takes} to {gives}"
        )
    op = node.op_type if node.op_type.endswith("PartitionedCall") else "StatefulPartitionedCall"
    types = {**types_of("Tin", values), **types_of("Tout", function.outputs)}
    return b.node(op, values, {"f": reference}, types).outputs


def _branch(b: Builder, node: Node, *dys: Value | None) -> Sequence[Value | None]:
    """A branch over the gradients of the functions."""
    if node.op_type.endswith("Case"):
        references = list(node.attr("branches") or ())
    else:
        references = [node.attr("then_branch"), node.attr("else_branch")]
    found = _derive(b, node, operands(node)[1:], references, dys)
    return [None, *found]


def _derive(
    b: Builder, node: Node, values: Sequence[Value], references: Sequence[Any], dys: Sequence[Value | None]
) -> list[Value | None]:
    """Return the gradients of the operands of a node that calls one of some functions.

    Args:
        b: The builder.
        node: The node; it will give more results than before.
        values: Operands that it hands to the function.
        references: The functions.
        dys: Gradients of its results.
    """
    given = {k: dy for k, dy in enumerate(dys) if dy is not None}
    wanted = [k for k, value in enumerate(values) if value in b.active]
    facts = b.facts(values)
    bodies = [Body(b, function_of(node, ref), facts, given, wanted) for ref in references]
    results = [k for k in wanted if any(k in body.gradients for body in bodies)]
    if not results:
        for body in bodies:
            del b.graph.functions[body.forward.name]
        return []
    for body in bodies:
        _fill(body, results, bodies)
        body.settle()
    kept = _keep(b, node, bodies, references)
    used = sorted({k for body in bodies for k in body.inputs})
    named = [
        FunctionRef(_backward(body, given, used, kept, results).name, ref.attributes)
        for body, ref in zip(bodies, references, strict=True)
    ]
    inputs = [*given.values(), *(values[k] for k in used), *(node.outputs[place] for _, place in kept)]
    types = types_of("Tin", inputs)
    like = [next(body.gradients[k] for body in bodies if k in body.gradients) for k in results]
    types |= types_of("Tout", like)
    if len(named) == 1 and not node.op_type.endswith("Case"):
        op = node.op_type if node.op_type.endswith("PartitionedCall") else "StatefulPartitionedCall"
        outputs = b.node(op, inputs, {"f": named[0]}, types).outputs
    else:
        outputs = b.node(node.op_type, [operands(node)[0], *inputs], _functions(node, named), types).outputs
    found: list[Value | None] = [None] * len(values)
    for k, output in zip(results, outputs, strict=True):
        found[k] = output
    return found


def _functions(node: Node, named: Sequence[FunctionRef]) -> dict[str, Any]:
    """Return the attributes with which a node calls these functions."""
    if node.op_type.endswith("Case"):
        return {"branches": list(named)}
    if "f" in node.attributes or len(named) == 1:
        return {"f": named[0]}
    return {"then_branch": named[0], "else_branch": named[1]}


def _fill(body: Body, results: Sequence[int], bodies: Sequence[Body]) -> None:
    """Give zeros for operands that a function has no gradient by, where another one has."""
    inner = body.inner
    for k in results:
        if k not in body.gradients:
            value = body.forward.inputs[k]
            like = next(other.gradients[k] for other in bodies if k in other.gradients)
            handle = value.dtype is not None and value.dtype.name == "resource"
            body.gradients[k] = zeros_of(inner, value, like.dtype) if handle else inner.zeros_like(value)
    body.gradients = {k: body.gradients[k] for k in results}


def _keep(b: Builder, node: Node, bodies: Sequence[Body], references: Sequence[Any]) -> list[tuple[Value, int]]:
    """Let a node return what the gradients keep; return each value inside and which result of the node it is."""
    found: list[tuple[Value, int]] = []
    fresh: list[tuple[Body, Value]] = []
    for body in bodies:
        there = {value: k for k, value in enumerate(body.forward.outputs)}
        for value in body.kept:
            if value in there:
                found.append((value, there[value]))
            else:
                found.append((value, len(node.outputs) + len(fresh)))
                fresh.append((body, value))
    for body in bodies:
        more = [value if owner is body else _absent(body.forward, value) for owner, value in fresh]
        append_outputs(body.forward, more)
    dtypes = [value.dtype for _, value in fresh if value.dtype is not None]
    named = [FunctionRef(body.forward.name, ref.attributes) for body, ref in zip(bodies, references, strict=True)]
    if node.op_type in node.graph.functions:
        _redirect(node, bodies[0].forward)
    else:
        attributes = {**node.attributes, **_functions(node, named)}
        if attributes.get("output_shapes"):
            attributes["output_shapes"] = [*attributes["output_shapes"], *(value.shape for _, value in fresh)]
        attributes.pop("_output_shapes", None)
        extend(node, attributes, "Tout", dtypes)
    b.follow(node)
    return found


def _redirect(node: Node, function: Graph) -> None:
    """Let a node that is named after a function be named after another, which gives more results."""
    node.op_type = function.name
    start = len(node.outputs)
    extend(node, node.attributes, "", [])
    node.outputs += [Value(node, start + i) for i in range(len(function.outputs) - start)]


def _absent(graph: Graph, value: Value) -> Value:
    """Return what stands for a value of another branch."""
    assert value.dtype is not None
    attributes = {"shape": Shape(value.shape.dims)}
    return graph.add("FakeParam", attributes=attributes, types={"dtype": value.dtype}).outputs[0]


def _backward(
    body: Body, given: dict[int, Value], used: Sequence[int], kept: Sequence[tuple[Value, int]], results: Sequence[int]
) -> Graph:
    """Return the function that is the gradient of another."""
    graph = new_function(body.forward, f"{body.forward.name.removesuffix('_forward')}_backward")
    known: dict[Value, Value] = {}
    seeds = body.seeds()
    for k in given:
        known[seeds[k]] = graph.add_input(f"grad_{k}", seeds[k].dtype, seeds[k].shape)
    for k in used:
        value = body.forward.inputs[k]
        known[value] = graph.add_input(f"input_{k}", value.dtype, value.shape)
    for i, (value, _) in enumerate(kept):
        known[value] = graph.add_input(f"kept_{i}", value.dtype, value.shape)
    moved = body.move_to(graph, known)
    finish(graph, [moved[k] for k in results])
    return graph


RULES: dict[str, "Rule"] = {
    **dict.fromkeys(["Case", "If", "StatelessCase", "StatelessIf"], _branch),
    **dict.fromkeys(["PartitionedCall", "StatefulPartitionedCall"], _call),
}
