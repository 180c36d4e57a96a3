"""Reverse-mode differentiation: one sweep from the results to what they are differentiated by.

Only nodes that lie between the two are looked at. Each is visited once, after all nodes that use its results, so the
time is linear in their number. Where a value has several uses the gradients are added up by one AddN.
"""

from collections.abc import Collection, Iterable, Sequence

from ..errors import GraphError
from ..graph import Graph, Node, Value
from .builder import Builder, needed, operands
from .cycles import make_functional
from .rules import CONSTANT, find_rule


def gradients(
    ys: Value | Sequence[Value],
    xs: Value | Sequence[Value],
    grad_ys: Value | Sequence[Value | None] | None = None,
    stop_gradients: Value | Sequence[Value] = (),
) -> list[Value | None]:
    """Add nodes to a graph that compute the gradient of the sum of ``ys`` with respect to each of ``xs``.

    The nodes have the names and the order of operands that TensorFlow's own gradients have, ``ReluGrad``,
    ``Conv2DBackpropFilter`` and so on, and the dtypes of what they differentiate. They stand in the graph that ``ys`` are
    in, after all others; a call, branch or loop in between becomes one that also returns what its gradient needs.

    Args:
        ys: Values of a TensorFlow graph, of floating dtype.
        xs: Values of the same graph; for a variable its handle, or what was read of it.
        grad_ys: For each of ``ys`` the gradient of what is finally differentiated by it, of the same shape and dtype; ones
            where it is None.
        stop_gradients: Values that count as constants.

    Returns:
        For each of ``xs`` a value of its shape and dtype (for a handle: of the variable's), or None where no ``y`` depends
        on it by a differentiable path. Integers have no gradient.

    Raises:
        GraphError: If values are in different graphs or of a wrong dtype, or an op in between has no gradient.

    Example:
        >>> from ampgraph.graph import Graph, find_dtype
        >>> graph = Graph()
        >>> x = graph.add("Placeholder", types={"dtype": find_dtype("f32")}).outputs[0]
        >>> y = graph.add("Relu", [x]).outputs[0]
        >>> [dx] = gradients(y, x)
        >>> dx.producer
        <Node ReluGrad 'gradients/Relu_grad/ReluGrad'>
    """
    ys, xs, stops = _values(ys, "ys"), _values(xs, "xs"), _values(stop_gradients, "stop_gradients")
    graph = _check(ys, xs, stops)
    make_functional(graph, ancestors(ys))
    for value in (*xs, *stops):
        if value.producer not in graph and value not in graph.inputs:
            raise GraphError(f"A value inside of a loop that is a cycle of ops cannot be differentiated by. Received: {value}")
    builder = Builder(graph)
    seeds = _seeds(builder, ys, grad_ys)
    found = differentiate(builder, ys, xs, seeds, set(stops))
    prune(builder, [value for value in found if value is not None])
    return found


def differentiate(
    builder: Builder, ys: Sequence[Value], xs: Sequence[Value], seeds: Sequence[Value | None], stops: Collection[Value] = ()
) -> list[Value | None]:
    """Add the nodes that compute the gradient of ``ys`` by ``xs``, given those of something by ``ys``."""
    order = ancestors((value for value, seed in zip(ys, seeds, strict=True) if seed is not None), stops)
    outer, builder.active = builder.active, depending(order, xs, stops)
    active = builder.active
    parts: dict[Value, list[Value]] = {}
    for y, seed in zip(ys, seeds, strict=True):
        if y in active and seed is not None:
            parts.setdefault(y, []).append(seed)
    totals: dict[Value, Value] = {}
    for node in reversed(order):
        given: list[Value | None] = []
        builder.at(node)
        for value in node.outputs:
            found = parts.pop(value, None)
            if found is not None:
                totals[value] = builder.total(found)
            given.append(totals.get(value) if value not in stops else None)
        if all(value is None for value in given) or active.isdisjoint(node.inputs):
            continue
        for operand, gradient in zip(list(node.inputs), find_rule(node)(builder, node, *given), strict=False):
            if gradient is not None and operand in active:
                parts.setdefault(operand, []).append(gradient)
    builder.active = outer
    return [totals.get(x) for x in xs]


def ancestors(ys: Iterable[Value], stops: Collection[Value] = ()) -> list[Node]:
    """Return the nodes that compute ``ys``, each after those it depends on.

    What computes one of ``stops`` is among them, but not what that depends on.
    """
    ys = list(ys)
    order = needed(ys, stops)
    own = set(order)
    read = [*ys, *(value for node in order for value in operands(node))]
    ends = dict.fromkeys(value.producer for value in read if value in stops and value.producer not in own)
    return [*ends, *order]


def depending(order: Iterable[Node], xs: Iterable[Value], stops: Collection[Value] = ()) -> set[Value]:
    """Return ``xs`` and the values that depend on them, by way of floating numbers, variables and lists of tensors.

    Args:
        order: Nodes, each after those it depends on.
        xs: Where paths start.
        stops: Where they end.

    Raises:
        GraphError: If a complex value depends on ``xs``.
    """
    active = {x for x in xs if differentiable(x)}
    for node in order:
        if not active.isdisjoint(node.inputs) and node.op_type not in CONSTANT:
            active.update(value for value in node.outputs if value not in stops and differentiable(value))
    return active


def differentiable(value: Value) -> bool:
    """Whether a value can have a gradient: a floating number, or a handle, which may stand for some."""
    dtype = value.dtype
    if dtype is not None and dtype.kind == "complex":
        raise GraphError(f"Gradients of complex numbers are not supported. Received: {value} ({dtype})")
    return dtype is not None and dtype.kind in ("float", "handle")


def prune(builder: Builder, results: Iterable[Value]) -> None:
    """Remove nodes that were added and turned out not to be needed."""
    needed = set(ancestors(results))
    for node in list(needed):
        needed.update(node.controls)
    builder.graph.remove_all([node for node in builder.added if node not in needed])


def _values(values: Value | Sequence[Value], what: str) -> list[Value]:
    found = [values] if isinstance(values, Value) else list(values)
    for value in found:
        if not isinstance(value, Value):
            raise GraphError(f"{what} are values of a graph. Received: {type(value).__name__}")
    return found


def _check(ys: Sequence[Value], xs: Sequence[Value], stops: Sequence[Value]) -> Graph:
    """Return the graph that all values are in."""
    if not ys:
        raise GraphError("There is nothing to differentiate. Received: no ys")
    graph = ys[0].producer.graph
    for value in (*ys, *xs, *stops):
        if value.producer.graph is not graph:
            other = value.producer.graph.name
            raise GraphError(f"Values are differentiated inside of one graph. Received: {value} of {other!r}, not {graph.name!r}")
    if graph.opsets:
        raise GraphError(f"Gradients are those of TensorFlow's ops. Received: graph {graph.name!r} of ONNX ops")
    for y in ys:
        if y.dtype is None or y.dtype.kind != "float":
            raise GraphError(f"Only floating numbers have a gradient. Received: {y} ({y.dtype})")
    return graph


def _seeds(builder: Builder, ys: Sequence[Value], given: Value | Sequence[Value | None] | None) -> list[Value]:
    """Return the gradient that each of ``ys`` starts with."""
    seeds: list[Value | None] = [None] * len(ys) if given is None else [given] if isinstance(given, Value) else list(given)
    if len(seeds) != len(ys):
        raise GraphError(f"grad_ys has one entry for each of ys, {len(ys)}. Received: {len(seeds)}")
    found = []
    for y, seed in zip(ys, seeds, strict=True):
        if seed is None:
            assert y.dtype is not None
            seed = builder.op("Fill", builder.shape(y), builder.number(1.0, y.dtype))
        elif not isinstance(seed, Value) or seed.producer.graph is not builder.graph:
            raise GraphError(f"grad_ys are values of graph {builder.graph.name!r}. Received: {seed!r}")
        elif seed.dtype is not y.dtype:
            raise GraphError(f"The gradient of {y} is {y.dtype}, as it is. Received: {seed} ({seed.dtype})")
        found.append(seed)
    return found
