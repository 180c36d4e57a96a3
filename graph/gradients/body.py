"""A function taken apart for its gradient: what it computes forward, and what comes back.

The gradient is built inside of a copy of the function, as anywhere else. Then its nodes move to a function of their own,
and what they use of the copy becomes further results of it.
"""

from collections.abc import Iterable, Mapping, Sequence

from ..graph import Graph, Node, Value
from ..infer.control import Fact
from ..infer.dims import Dims
from ..types import Shape
from .builder import Builder, operands
from .cycles import make_functional
from .editing import private_copy
from .sweep import depending, differentiate, prune


class Body:
    """A function and its gradient.

    Attributes:
        forward: A copy of the function, in the library.
        inner: Builds in it.
        gradients: By index of the input, its gradient.
        inputs: Indices of the inputs that the gradient uses; set by :meth:`settle`.
        kept: Values in ``forward`` that the gradient uses, other than those.
    """

    def __init__(self, b: Builder, name: str, facts: Sequence[Fact], dys: Mapping[int, Value], wanted: Iterable[int]) -> None:
        """Differentiate a function.

        Args:
            b: Builds the graph that calls it.
            name: Its name.
            facts: What is known about its inputs.
            dys: By index of the result, the gradient of what is finally differentiated; in the calling graph.
            wanted: Indices of the inputs to differentiate by.
        """
        self.forward = private_copy(b.graph, name)
        graph = self.forward
        make_functional(graph, graph.nodes)
        self._seeds: dict[int, Value] = {}
        for k, dy in dys.items():
            assert dy.dtype is not None
            dims = b.dims(dy)
            self._seeds[k] = graph.add(
                "Placeholder", name=graph.fresh_name(f"grad_{k}"), types={"dtype": dy.dtype}, attributes={"shape": Shape(dims)}
            ).outputs[0]
        self.inner = Builder(graph, facts)
        wanted = list(wanted)
        ys = [graph.outputs[k] for k in dys]
        found = differentiate(self.inner, ys, [graph.inputs[k] for k in wanted], list(self._seeds.values()))
        self.gradients = {k: g for k, g in zip(wanted, found, strict=True) if g is not None}
        self.inputs: list[int] = []
        self.kept: list[Value] = []
        self._alias: dict[Value, Value] = {}
        self._moving: list[Node] = []

    def settle(self) -> None:
        """Find what the gradients use, and leave in ``forward`` only what is not part of them.

        Constants, and what a Switch may leave without a value, are not kept: they are computed again.
        """
        inner, graph = self.inner, self.forward
        results = list(self.gradients.values())
        prune(inner, results)
        own = [node for node in inner.added if node in graph]
        inside = {*own, *(seed.producer for seed in self._seeds.values())}
        place = {value: k for k, value in enumerate(graph.inputs)}
        depths = _branch_depths(graph)
        again: dict[Node, None] = {}
        inputs: dict[int, None] = {}
        kept: dict[Value, None] = {}
        todo = [*(value for node in own for value in operands(node)), *results]
        for value in todo:  # grows while it is walked
            if value.producer in inside or value in self._alias:
                continue
            source = self._alias[value] = through_identity(value)
            node = source.producer
            if source in place:
                inputs[place[source]] = None
            elif node.op_type == "Const" or depths[node]:
                if node not in again:
                    todo += operands(node)
                again[node] = None
            else:
                kept[source] = None
        for value in kept:
            value.shape = Shape(_whole(inner.dims(value)))
        self.inputs, self.kept = sorted(inputs), list(kept)
        position = {node: i for i, node in enumerate(depths)}
        self._moving = [*sorted(again, key=position.__getitem__), *own]
        graph.remove_all(inside)

    def seeds(self) -> dict[int, Value]:
        """Return, by index of the result, what stands for its gradient."""
        return self._seeds

    def move_to(self, graph: Graph, known: Mapping[Value, Value]) -> dict[int, Value]:
        """Add the nodes of the gradient to another graph.

        Args:
            graph: The graph.
            known: What stands there for the seeds, the inputs and the kept values.

        Returns:
            By index of the input, its gradient there.
        """
        values = dict(known)

        def find(value: Value) -> Value:
            found = values.get(value)
            return values[self._alias[value]] if found is None else found

        for node in self._moving:
            twin = graph.add(
                node.op_type,
                [find(value) for value in operands(node)],
                domain=node.domain,
                name=graph.fresh_name(node.name),
                attributes=node.attributes,
                types=node.types,
                device=node.device,
            )
            for old, new in zip(node.outputs, twin.outputs, strict=True):
                values[old] = new
                new.shape = old.shape
        return {k: find(value) for k, value in self.gradients.items()}


def _branch_depths(graph: Graph) -> dict[Node, int]:
    """Return for each node, each after those it depends on, in how many branches made of Switch and Merge it lies."""
    depths: dict[Node, int] = {}
    for node in graph.topological():
        depth = max((depths.get(value.producer, 0) for value in operands(node)), default=0)
        step = 1 if node.op_type in ("Switch", "RefSwitch") else -1 if node.op_type in ("Merge", "RefMerge") else 0
        depths[node] = max(depth + step, 0)
    return depths


def _whole(dims: Dims) -> Dims:
    """Return a shape without symbols, which mean nothing outside."""
    return None if dims is None else tuple(dim if isinstance(dim, int) else None for dim in dims)


def through_identity(value: Value) -> Value:
    """Return the value that another one is handed on from."""
    while value.producer.op_type == "Identity" and value.producer.inputs[0] is not None:
        value = value.producer.inputs[0]
    return value


def outputs_by_input(graph: Graph, starts: Iterable[int], order: Sequence[Node]) -> dict[int, set[int]]:
    """Return for some inputs of a function which of its results depend on each by a differentiable path."""
    found = {}
    for k in starts:
        active = depending(order, [graph.inputs[k]])
        found[k] = {i for i, value in enumerate(graph.outputs) if value in active}
    return found
