"""Loops of TensorFlow graphs, which are cycles of ops (Enter, Merge, Switch, NextIteration, Exit), as one item each.

An Enter leads into the frame that its attribute names, an Exit out of it; what lies between belongs to the frame.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Union

from ..graph.errors import KernelError
from ..graph.graph import Node, Value

#: The names of a frame and of those around it, outermost first.
Frame = tuple[str, ...]
Item = Union[Node, "Loop"]


@dataclasses.dataclass(eq=False)
class Loop:
    """A frame.

    Attributes:
        frame: Its names.
        nodes: Its nodes and those of frames inside.
        enters: Its Enters; what they read comes from outside.
        merges: The Merges of its loop variables.
        ends: For each of them the result of the NextIteration that leads back to it.
        exits: Its Exits; what they return is read outside.
    """

    frame: Frame
    nodes: list[Node] = dataclasses.field(default_factory=list)
    enters: list[Node] = dataclasses.field(default_factory=list)
    merges: list[Node] = dataclasses.field(default_factory=list)
    ends: list[Value] = dataclasses.field(default_factory=list)
    exits: list[Node] = dataclasses.field(default_factory=list)

    @property
    def inner(self) -> list[Node]:
        """What one iteration computes."""
        ends = {*self.enters, *self.merges, *self.exits, *(value.producer for value in self.ends)}
        return [node for node in self.nodes if node not in ends]


def find_frames(order: Iterable[Node], outputs: Iterable[Value]) -> dict[Node, Frame]:
    """Return the frame of every node; an Exit is in the frame that it leaves.

    Args:
        order: The nodes, each behind those that it reads.
        outputs: What the graph returns.

    Raises:
        KernelError: If a node reads values of different frames, leaves none, or the graph returns a value inside of one.
    """
    frames: dict[Node, Frame] = {}
    for node in order:
        around = {source: _outside(source, frames) for source in sources_of(node)}
        frame = next(iter(around.values()), ())
        other = next((source for source, found in around.items() if found != frame), None)
        if other is not None:
            places = f"{_place(frame)}, and {other} {_place(around[other])}"
            raise KernelError(f"Node {node} waits for {next(iter(around))} {places}; an Enter or an Exit is missing.")
        if _is(node, "Enter"):
            name = node.attributes.get("frame_name")
            frame = (*frame, name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name))
        elif _is(node, "Exit") and not frame:
            raise KernelError(f"Node {node} leaves a loop that no Enter leads into.")
        frames[node] = frame
    for value in outputs:
        if inside := _outside(value.producer, frames):
            raise KernelError(f"Result {value.name!r} is {_place(inside)}; only an Exit leads out of it.")
    return frames


def _outside(node: Node, frames: Mapping[Node, Frame]) -> Frame:
    """Return the frame in which a node's results are read."""
    return frames[node][:-1] if _is(node, "Exit") else frames[node]


def _place(frame: Frame) -> str:
    return f"in loop {'/'.join(frame)!r}" if frame else "outside of loops"


def sources_of(node: Node) -> Iterator[Node]:
    """Yield the nodes that must run before a node, those of the next iteration left out."""
    for value in node.inputs:
        if value is not None and not _is(value.producer, "NextIteration"):
            yield value.producer
    yield from (source for source in node.controls if not _is(source, "NextIteration"))


def items_of(order: Sequence[Node], frames: Mapping[Node, Frame], here: Frame) -> list[Item]:
    """Return what a frame computes itself, loops inside it as one item, each behind what it depends on."""
    owner: dict[Node, Item] = {}
    loops: dict[Frame, Loop] = {}
    for node in order:
        frame = frames[node]
        if frame == here:
            owner[node] = node
        else:
            loop = loops.setdefault(frame[: len(here) + 1], Loop(frame[: len(here) + 1]))
            loop.nodes.append(node)
            owner[node] = loop
    if not loops:
        return list(order)
    for loop in loops.values():
        _complete(loop, frames)
    needed: dict[Item, list[Item]] = {item: [] for item in owner.values()}
    for node, item in owner.items():
        needed[item] += [owner[source] for source in sources_of(node) if source in owner and owner[source] is not item]
    return list(_sorted(needed))


def _complete(loop: Loop, frames: Mapping[Node, Frame]) -> None:
    """Find the ends of a loop among its nodes."""
    own = [node for node in loop.nodes if frames[node] == loop.frame]
    loop.enters = [node for node in own if _is(node, "Enter")]
    loop.exits = [node for node in own if _is(node, "Exit")]
    members = set(loop.nodes)
    for node in loop.enters:
        if again := next((source for source in sources_of(node) if source in members), None):
            raise KernelError(f"Node {node} enters loop {'/'.join(loop.frame)!r} with what leaves it at {again}.")
    for node in own:
        back = next((v for v in node.inputs if v is not None and _is(v.producer, "NextIteration")), None)
        if back is not None:
            loop.merges.append(node)
            loop.ends.append(back)


def check_loops(order: Iterable[Node]) -> None:
    """Refuse loops that cannot begin.

    Raises:
        KernelError: If a NextIteration leads to anything but a Merge that an Enter leads to as well.
    """
    for node in order:
        sources = [value.producer for value in node.inputs if value is not None]
        if not any(_is(source, "NextIteration") for source in sources):
            continue
        if not _is(node, "Merge") or not any(_is(source, "Enter") for source in sources):
            ops = ", ".join(source.op_type for source in sources)
            raise KernelError(f"A NextIteration leads to a Merge, and so does an Enter. Received: {node} of {ops}")


def _sorted(needed: dict[Item, list[Item]]) -> Iterator[Item]:
    """Yield items, each behind those that it needs."""
    done: set[Item] = set()
    for first, before in needed.items():
        stack = [(first, iter(before))] if first not in done else []
        path = {first}
        while stack:
            item, rest = stack[-1]
            following = next((other for other in rest if other not in done), None)
            if following is None:
                stack.pop()
                path.discard(item)
                if item not in done:
                    done.add(item)
                    yield item
            elif following in path:
                raise KernelError(f"{_name(following)} waits for what needs its results: {_name(item)}.")
            else:
                path.add(following)
                stack.append((following, iter(needed[following])))


def _name(item: Item) -> str:
    return f"Loop {item.frame[-1]!r}" if isinstance(item, Loop) else f"Node {item}"


def _is(node: Node, op: str) -> bool:
    return node.domain == "tf" and node.op_type in (op, f"Ref{op}")
