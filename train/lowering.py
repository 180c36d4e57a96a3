"""Training steps in ops of TensorFlow, which does not know ``ampgraph.ApplyGradients``.

The formulas are those of the node: what :mod:`ampgraph.kernels` computes on arrays becomes nodes on symbolic ones.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..graph.errors import GraphError
from ..graph.graph import Graph, Node, Value
from ..graph.tracing.context import Trace, tracing
from ..graph.tracing.operations import apply, value_of
from ..kernels.apply_gradients import read_attributes
from ..kernels.apply_step import Update, clipped, updated
from ..kernels.call import readable_attributes
from ..kernels.loss_scaling import ScaleRules

#: Squares of larger numbers overflow float64.
_SMALL = 2.0**-512


def lower_apply_gradients(graph: Graph) -> Graph:
    """Write the training steps of a graph in ops of TensorFlow.

    An ``ApplyGradients`` becomes an ``IdentityN`` of its name and results, which waits for the assignments that the step comes to.
    A step that is dropped assigns what variables held before.

    Args:
        graph: The graph, which stays as it is.

    Returns:
        The graph with other nodes, or itself if it has no training step.

    Raises:
        GraphError: If a step changes something else than variables of the graph that it is in.
        KernelError: If the attributes of a step make no sense.
    """
    if not any(True for part in graph.all_graphs() for _ in _steps(part)):
        return graph
    graph = graph.copy()
    for part in graph.all_graphs():
        for node in list(_steps(part)):
            _lower(Trace(part), node)
    return graph


def _steps(graph: Graph) -> Iterator[Node]:
    return (node for node in graph.nodes if node.op_type == "ApplyGradients" and node.domain == "ampgraph")


def _lower(trace: Trace, node: Node) -> None:
    """Put nodes before a step that do what it does, and make it the one that hands on their results."""
    graph = trace.graph
    order = list(graph.nodes)
    trace.prefix = f"{node.name}/"
    with tracing(trace):
        values, assigned = _add_step(trace, node)
    schema = graph.find_schema("tf", "IdentityN")
    assert schema is not None
    node.op_type, node.domain, node.attributes, node.meta = "IdentityN", "tf", {}, None
    node.types = {f"T[{i}]": value.dtype for i, value in enumerate(values) if value.dtype is not None}
    node.signature = schema.signature(node.attributes, node.types, values)
    graph.set_inputs(node, values)
    graph.set_control(node, assigned)
    new = list(graph.nodes)[len(order) :]
    for added in new:
        added.device = node.device
    before = order.index(node) - 1
    if before >= 0:
        graph.place_after({order[before]: new})


def _add_step(trace: Trace, node: Node) -> tuple[list[Value], list[Node]]:
    """Add the nodes of a step; return the results of the node that it was, and the assignments."""
    update, rules = read_attributes(readable_attributes(node, {}).get)
    turns = node.attr("accumulation_steps") or 1
    given = _operands(node)
    rate, *gradients = (trace.wrap(value) for value in (*given.pop("learning_rate"), *given.pop("gradients")))
    held = {name: [_read(trace, node, handle) for handle in handles] for name, handles in given.items()}
    after: dict[str, list[Any]] = dict(held)
    (scale,), (step,) = held["loss_scale"], held["global_step"]

    gradients = [_cast(gradient, variable.dtype) for gradient, variable in zip(gradients, held["variables"], strict=True)]
    if node.attr("scaled"):
        gradients = [gradient / scale.astype(gradient.dtype) for gradient in gradients]
    done: Any = True
    if turns > 1:
        after["calls"] = [(held["calls"][0] + 1) % turns]
        done = after["calls"][0] == 0
        totals = [total + gradient for total, gradient in zip(held["accumulators"], gradients, strict=True)]
        after["accumulators"] = [np.where(done, np.zeros((), total.dtype), total) for total in totals]
        gradients = [total / turns for total in totals]
    finite: Any = np.all(np.stack([np.all(np.isfinite(gradient)) for gradient in gradients]))
    applied = _both(done, finite if update.skip_nonfinite else True)
    *norms, norm = _norms(gradients)
    if not update.skip_nonfinite:
        norms = [np.where(finite, own, norm) for own in norms]
    gradients = [clipped(np, update, gradient, own, norm) for gradient, own in zip(gradients, norms, strict=True)]
    after["variables"], after["slots"] = _updated(update, held["variables"], held["slots"], gradients, step + 1, rate)
    after["global_step"] = [step + 1]
    for name in ("variables", "slots", "global_step"):
        after[name] = [_where(applied, new, old) for new, old in zip(after[name], held[name], strict=True)]
    if rules is not None:
        names = ("loss_scale", "good_steps", "bad_steps")
        moved = _next_scale(rules, finite, *(held[name][0] for name in names))
        after |= {name: [_where(done, new, held[name][0])] for name, new in zip(names, moved, strict=True)}
    assigned = [
        trace.emit("AssignVariableOp", [handle, value_of(new, old.dtype)])
        for name, handles in given.items()
        for handle, old, new in zip(handles, held[name], after[name], strict=True)
        if new is not old
    ]
    norm = _where(done, norm.astype(np.float32), np.float32(np.nan))
    return [value_of(x) for x in (applied, *after["loss_scale"], *after["global_step"], norm)], assigned


def _operands(node: Node) -> dict[str, list[Value]]:
    """Return the operands of a step by the names that its definition has for them."""
    assert node.schema is not None
    spans = node.schema.split_inputs(node.signature)
    return {name: [value for value in node.inputs[span.start : span.stop] if value is not None] for name, span in spans.items()}


def _updated(
    update: Update, variables: Sequence[Any], slots: Sequence[Any], gradients: Sequence[Any], step: Any, rate: Any
) -> tuple[list[Any], list[Any]]:
    """Return variables and slots as the update rule leaves them."""
    width = len(update.rule.slots)
    rows = [slots[i * width : (i + 1) * width] for i in range(len(variables))]
    found = [
        updated(np, update, variable, row, gradient, step.astype(variable.dtype), rate.astype(variable.dtype))
        for variable, row, gradient in zip(variables, rows, gradients, strict=True)
    ]
    return [first for first, *_ in found], [slot for _, *rest in found for slot in rest]


def _cast(x: Any, dtype: Any) -> Any:
    """Return a gradient in a dtype, by a Cast even if it has it: no op list names it, so float16 does not go on behind it."""
    return apply("Cast", x, types={"DstT": dtype})


def _both(a: Any, b: Any) -> Any:
    return b if a is True else a if b is True else a & b


def _where(condition: Any, new: Any, old: Any) -> Any:
    return new if condition is True else np.where(condition, new, old)


def _read(trace: Trace, node: Node, handle: Value) -> Any:
    """Return what a variable holds when all that the step waits for is done."""
    variable = handle.producer
    if variable.op_type != "VarHandleOp":
        raise GraphError(
            f"Training step {node} can be written for TensorFlow where it changes variables of its own graph. Received: {variable}"
        )
    trace.wrap(handle)
    types = {"dtype": variable.types["dtype"]}
    return trace.wrap(trace.emit("ReadVariableOp", [handle], types=types, controls=node.controls).outputs[0])


def _norms(gradients: Sequence[Any]) -> list[Any]:
    """Return the norm of each gradient, then that of all of them, in float64."""
    wide = [gradient.astype(np.float64) for gradient in gradients]
    found = _roots(wide)
    if all(gradient.dtype == np.float32 for gradient in gradients):
        return found
    small = [root / _SMALL for root in _roots([gradient * _SMALL for gradient in wide])]
    return [np.where(np.isfinite(root), root, other) for root, other in zip(found, small, strict=True)]


def _roots(gradients: Sequence[Any]) -> list[Any]:
    squares = [np.sum(np.square(gradient)) for gradient in gradients]
    return [np.sqrt(square) for square in [*squares, np.sum(np.stack(squares))]]


def _next_scale(rules: ScaleRules, finite: Any, scale: Any, good_steps: Any, bad_steps: Any) -> tuple[Any, Any, Any]:
    """Return what :func:`~ampgraph.kernels.loss_scaling.next_scale` does."""
    wide = scale.astype(np.float64)
    grown, lower = ((wide * factor).astype(scale.dtype) for factor in (rules.growth_factor, rules.backoff_factor))
    grows, waits = good_steps + 1 >= rules.growth_interval, bad_steps + 1 < rules.hysteresis
    higher: Any = np.where(grows & (grown.astype(np.float64) <= rules.ceiling), grown, scale)
    return (
        np.where(finite, higher, np.where(waits, scale, np.maximum(lower, np.float32(rules.floor)))),
        np.where(finite & ~grows, good_steps + 1, 0),
        np.where(finite, np.where(grows, 0, bad_steps), np.where(waits, bad_steps + 1, bad_steps)),
    )
