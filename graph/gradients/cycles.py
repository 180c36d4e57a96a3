"""Loops that are cycles of ops, made into functional ones, through which gradients go.

Such a loop is a frame: an Enter leads into it, an Exit out of it. A loop variable is a Merge of what entered and of what
the last turn gave (NextIteration); a Switch sends it on to the next turn or to its Exit, as LoopCond says. The functional
loop has an operand for each Merge, then one for each Enter whose value stays the same. Its results take the places of the
Exits.
"""

from collections.abc import Iterable, Sequence

from ..dtypes import DType
from ..errors import GraphError
from ..graph import Graph, Node, Value
from ..types import FunctionRef
from .builder import needed, operands
from .editing import finish, new_function

#: The names of a frame and of those around it, outermost first.
Frame = tuple[object, ...]


def make_functional(graph: Graph, order: Iterable[Node]) -> None:
    """Make the loops of a graph functional, if one of some nodes is an Exit.

    Raises:
        GraphError: If a loop lacks a part.
    """
    if not any(_is(node, "Exit") for node in order):
        return
    frames = _frames(graph)
    members: dict[Frame, list[Node]] = {}
    for node, frame in frames.items():
        if frame:
            members.setdefault(frame, []).append(node)
    for frame in sorted(members, key=len, reverse=True):
        loop = _Loop(graph, frame, members[frame])
        around = members.setdefault(frame[:-1], []) if len(frame) > 1 else []
        around += [loop.make(), *loop.exits]


def _is(node: Node, op: str) -> bool:
    return node.domain == "tf" and node.op_type in (op, f"Ref{op}")


def _frames(graph: Graph) -> dict[Node, Frame]:
    """Return the frame of every node; an Exit is in the frame that it leaves."""
    frames: dict[Node, Frame] = {}
    for node in graph.topological():
        frame: Frame = ()
        for source in (*(value.producer for value in operands(node)), *node.controls):
            if source in frames:
                around = frames[source][:-1] if _is(source, "Exit") else frames[source]
                frame = around if len(around) > len(frame) else frame
        frames[node] = (*frame, node.attributes.get("frame_name")) if _is(node, "Enter") else frame
    return frames


class _Loop:
    """One frame, in which there are no others."""

    def __init__(self, graph: Graph, frame: Frame, nodes: Sequence[Node]) -> None:
        """Find the parts of a frame."""
        self.graph = graph
        self.nodes = list(nodes)
        self.name = "_".join(part.decode("utf-8", "replace") if isinstance(part, bytes) else str(part) for part in frame)
        self.exits = [node for node in nodes if _is(node, "Exit")]
        conditions = [node for node in nodes if _is(node, "LoopCond")]
        if len(conditions) != 1:
            raise GraphError(
                f"A loop has one LoopCond. Received: {len(conditions)} in loop {self.name!r} of graph {graph.name!r}"
            )
        self.condition = conditions[0]
        self.merges: dict[Node, tuple[Node, Node]] = {}
        for node in nodes:
            sources = [value.producer for value in operands(node)]
            enter = next((source for source in sources if _is(source, "Enter")), None)
            back = next((source for source in sources if _is(source, "NextIteration")), None)
            if enter is not None and back is not None:
                self.merges[node] = (enter, back)
        started = {enter for enter, _ in self.merges.values()}
        self.constants = [node for node in nodes if _is(node, "Enter") and node not in started]
        self.switches = {
            node: node.inputs[0].producer
            for node in nodes
            if _is(node, "Switch")
            and node.inputs[0] is not None
            and node.inputs[0].producer in self.merges
            and node.inputs[1] is self.condition.outputs[0]
        }

    def make(self) -> Node:
        """Put a functional loop in the place of the frame; return it."""
        starts = [operands(enter)[0] for enter, _ in self.merges.values()] + [operands(enter)[0] for enter in self.constants]
        condition, body = (new_function(self.graph, f"{self.name}_{part}") for part in ("cond", "body"))
        # Constants of the frame hang on it by control edges only: they belong to both functions.
        finish(condition, self._copied(condition, starts, operands(self.condition)))
        ends = [operands(back)[0] for _, back in self.merges.values()]
        constants = [enter.outputs[0] for enter in self.constants]
        finish(body, self._copied(body, starts, [*ends, *constants]))
        types: dict[str, DType] = {f"T[{k}]": value.dtype for k, value in enumerate(starts) if value.dtype is not None}
        attributes = {"cond": FunctionRef(condition.name), "body": FunctionRef(body.name), "output_shapes": []}
        name = self.graph.fresh_name(self.name)
        loop = self.graph.add("While", starts, name=name, attributes=attributes, types=types)
        places = {merge: k for k, merge in enumerate(self.merges)}
        for node in self.exits:
            switch = operands(node)[0].producer
            if switch not in self.switches:
                raise GraphError(
                    f"Node {node} of graph {self.graph.name!r} does not leave a loop by the Switch of a loop variable."
                )
            _become_identity(node, loop.outputs[places[self.switches[switch]]])
        controls = {source for node in self.nodes if _is(node, "Enter") for source in node.controls}
        self.graph.set_control(loop, [node for node in controls if node not in self.nodes])
        kept = set(self.exits)
        self.graph.remove_all([node for node in self.nodes if node not in kept])
        return loop

    def _copied(self, function: Graph, starts: Sequence[Value], results: Sequence[Value]) -> list[Value]:
        """Copy what computes values in one turn to a function; return them there."""
        values: dict[Value, Value] = {}
        sources = [*self.merges, *self.constants]
        for k, (node, start) in enumerate(zip(sources, starts, strict=True)):
            values[node.outputs[0]] = function.add_input(f"input_{k}", start.dtype, start.shape)
        for switch, merge in self.switches.items():
            values[switch.outputs[1]] = values[merge.outputs[0]]
        twins: dict[Node, Node] = {}
        for node in needed(results, values):
            twin = function.add(
                node.op_type,
                [values[value] for value in operands(node)],
                domain=node.domain,
                name=function.fresh_name(node.name),
                attributes=node.attributes,
                types=node.types,
                device=node.device,
                controls=[twins[source] for source in node.controls if source in twins],
            )
            twins[node] = twin
            for old, new in zip(node.outputs, twin.outputs, strict=True):
                values[old] = new
                new.shape = old.shape
        return [values[value] for value in results]


def _become_identity(node: Node, value: Value) -> None:
    """Let a node hand on a value."""
    schema = node.graph.find_schema("tf", "Identity")
    assert schema is not None
    node.op_type, node.attributes, node.meta = "Identity", {}, None
    node.signature = schema.signature({}, node.types)
    node.graph.set_inputs(node, [value])
    node.graph.set_control(node, [])
