"""Functional loops.

The loop counts its turns and collects, in a list for each, the values that its gradient needs of every turn; values that
stay the same all along are handed on as they are. The gradient is a loop that takes the last items off the lists until
the count is 0. This is how TensorFlow does it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import GraphError
from ..graph import Graph, Node, Value
from ..types import FunctionRef, Shape, Tensor
from .body import Body, outputs_by_input, through_identity
from .builder import INT32, VARIANT, Builder, operands
from .editing import append_outputs, extend, finish, new_function, private_copy
from .functions import function_of, types_of
from .sweep import ancestors, differentiable
from .variables import zeros_of

if TYPE_CHECKING:
    from .rules import Rule


def _loop(b: Builder, node: Node, *dys: Value | None) -> Sequence[Value | None]:
    """A loop that goes backward."""
    reference = node.attr("body")
    name = function_of(node, reference)
    carried = _carried(b, node, node.graph.functions[name], dys)
    # Variables are not written over: their gradients are added up on the side.
    handles = [k for k in carried if _is_variable(node.outputs[k])]
    values = [k for k in carried if k not in handles]
    starts = {k: _start(b, node.outputs[k], dys[k]) for k in values}
    if not carried:
        return []
    body = Body(b, name, b.facts(node.outputs), starts, carried)
    for k in values:
        body.gradients.setdefault(k, body.inner.zeros_like(body.forward.inputs[k]))
    handles = [k for k in handles if k in body.gradients]
    carried = [*values, *handles]
    for k in handles:
        given = dys[k]
        starts[k] = zeros_of(b, operands(node)[k], body.gradients[k].dtype) if given is None else given
    body.settle()
    same = [k for k in body.inputs if through_identity(body.forward.outputs[k]) is body.forward.inputs[k]]
    collected = [*(body.forward.inputs[k] for k in body.inputs if k not in same), *body.kept]
    count, lists = _collect(b, node, body, collected)
    back = new_function(node.graph, f"{name}_backward")
    condition = new_function(node.graph, f"{name}_backward_cond")
    operands_back = [count, *(starts[k] for k in carried), *lists, *(operands(node)[k] for k in same)]
    for graph in (back, condition):
        for i, value in enumerate(operands_back):
            graph.add_input(f"input_{i}", value.dtype, Shape(()) if i == 0 else Shape(None))
    _fill_backward(back, body, carried, collected, same)
    zero = _constant(condition, 0)
    finish(condition, condition.add("Greater", [condition.inputs[0], zero]).outputs)
    attributes = {
        "body": FunctionRef(back.name, reference.attributes),
        "cond": FunctionRef(condition.name, node.attr("cond").attributes),
        "output_shapes": [],
        "parallel_iterations": node.attr("parallel_iterations"),
    }
    outputs = b.node(node.op_type, operands_back, attributes, types_of("T", operands_back)).outputs
    found: list[Value | None] = [None] * len(node.inputs)
    for k, output in zip(carried, outputs[1:], strict=False):
        found[k] = output
    return found


def _is_variable(value: Value) -> bool:
    return value.dtype is not None and value.dtype.name == "resource"


def _start(b: Builder, value: Value, dy: Value | None) -> Value:
    return b.zeros_like(value) if dy is None else dy


def _carried(b: Builder, node: Node, body: Graph, dys: Sequence[Value | None]) -> list[int]:
    """Return which values of a loop have a gradient: they depend on what is active, and on them depends what has one."""
    order = ancestors(body.outputs)
    possible = [k for k, value in enumerate(body.inputs) if differentiable(value)]
    reach = outputs_by_input(body, possible, order)
    active = _closure({k for k in possible if node.inputs[k] in b.active}, reach)
    backward: dict[int, set[int]] = {}
    for k, outputs in reach.items():
        for i in outputs:
            backward.setdefault(i, set()).add(k)
    return sorted(active & _closure({k for k, dy in enumerate(dys) if dy is not None}, backward))


def _closure(start: set[int], steps: dict[int, set[int]]) -> set[int]:
    """Return all that can be reached by steps."""
    found, todo = set(start), list(start)
    while todo:
        new = steps.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found


def _collect(b: Builder, node: Node, body: Body, collected: Sequence[Value]) -> tuple[Value, list[Value]]:
    """Let a loop count its turns and collect values of its body; return the count and the lists."""
    forward = body.forward
    first = b.constant(0, INT32)
    empty = []
    for value in collected:
        assert value.dtype is not None
        shape = b.constant(_known(value), INT32)
        empty.append(b.op("EmptyTensorList", shape, b.constant(-1, INT32), types={"element_dtype": value.dtype}))
    condition = node.attr("cond")
    twin = private_copy(node.graph, function_of(node, condition))
    dtypes = [INT32, *[VARIANT] * len(collected)]
    added = []
    for graph in (forward, twin):
        added = [graph.add_input(graph.fresh_name(f"more_{i}"), dtype, Shape(())) for i, dtype in enumerate(dtypes)]
        if graph is forward:
            one = _constant(graph, 1)
            pushed = [graph.add("AddV2", [added[0], one]).outputs[0]]
            pushed += [
                graph.add("TensorListPushBack", [items, value]).outputs[0]
                for items, value in zip(added[1:], collected, strict=True)
            ]
            append_outputs(graph, pushed)
    attributes = {
        **node.attributes,
        "body": FunctionRef(forward.name, node.attr("body").attributes),
        "cond": FunctionRef(twin.name, condition.attributes),
    }
    if attributes.get("output_shapes"):
        attributes["output_shapes"] = [*attributes["output_shapes"], *[Shape(())] * len(dtypes)]
    attributes.pop("_output_shapes", None)
    for value in (first, *empty):
        b.leave(value)
    node.graph.set_inputs(node, [*node.inputs, first, *empty])
    count, *lists = extend(node, attributes, "T", dtypes)
    b.follow(node)
    return count, lists


def _known(value: Value) -> int | list[int]:
    """Return what is known of a shape as the ops on lists take it."""
    dims = value.shape.dims if not (value.dtype is not None and value.dtype.kind == "handle") else ()
    return -1 if dims is None else [dim if isinstance(dim, int) else -1 for dim in dims]


def _fill_backward(graph: Graph, body: Body, carried: Sequence[int], collected: Sequence[Value], same: Sequence[int]) -> None:
    """Make the body of the loop that goes backward: of count, gradients, lists, and values that stay the same."""
    inputs = iter(graph.inputs)
    count = next(inputs)
    results = [graph.add("Sub", [count, _constant(graph, 1)]).outputs[0]]
    known: dict[Value, Value] = {}
    before = {k: next(inputs) for k in carried}
    for k, seed in body.seeds().items():
        known[seed] = before[k]
    rest = []
    for value in collected:
        assert value.dtype is not None
        shape = _constant(graph, _known(value))
        popped = graph.add("TensorListPopBack", [next(inputs), shape], types={"element_dtype": value.dtype})
        rest.append(popped.outputs[0])
        known[value] = popped.outputs[1]
        popped.outputs[1].shape = value.shape
    for k in same:
        value = next(inputs)
        known[body.forward.inputs[k]] = value
        rest.append(value)
    moved = body.move_to(graph, known)
    for k in carried:
        # To a variable each turn adds; other values' gradients replace each other.
        result = moved[k] if k in body.seeds() else graph.add("AddV2", [before[k], moved[k]]).outputs[0]
        results.append(result)
    finish(graph, [*results, *rest])


def _constant(graph: Graph, value: int | list[int]) -> Value:
    return graph.add("Const", attributes={"value": Tensor.of(value, INT32)}).outputs[0]


def _cyclic(b: Builder, node: Node, *dys: Value | None) -> Sequence[Value | None]:
    raise GraphError(
        f"Node {node} lies inside of a loop that is a cycle of ops; only what leaves one can be differentiated, by what enters it."
    )


RULES: dict[str, "Rule"] = {
    **dict.fromkeys(["Enter", "Exit", "NextIteration", "RefEnter", "RefExit", "RefNextIteration"], _cyclic),
    **dict.fromkeys(["StatelessWhile", "While"], _loop),
}
