"""Loops of TensorFlow graphs, which are cycles of ops (Enter, Merge, Switch, NextIteration, Exit), as one item each.

An Enter leads into the frame that its attribute names, an Exit out of it; what lies between belongs to the frame.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
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


def find_frames(order: Iterable[Node]) -> dict[Node, Frame]:
    """Return the frame of every node; an Exit is in the frame that it leaves."""
    frames: dict[Node, Frame] = {}
    for node in order:
        frame: Frame = ()
        for source in sources_of(node):
            if source in frames:
                outside = frames[source][:-1] if _is(source, "Exit") else frames[source]
                frame = max(frame, outside, key=len)
        if _is(node, "Enter"):
            frame = (*frame, str(node.attributes.get("frame_name")))
        elif _is(node, "Exit") and not frame:
            raise KernelError(f"Node {node} leaves a loop that no Enter leads into.")
        frames[node] = frame
    return frames


def sources_of(node: Node) -> Iterator[Node]:
    """Yield the nodes that must run before a node, those of the next iteration left out."""
    for value in node.inputs:
        if value is not None and not _is(value.producer, "NextIteration"):
            yield value.producer
    yield from (source for source in node.controls if not _is(source, "NextIteration"))


def items_of(order: Sequence[Node], frames: dict[Node, Frame], here: Frame) -> list[Item]:
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


def _complete(loop: Loop, frames: dict[Node, Frame]) -> None:
    """Find the ends of a loop among its nodes."""
    own = [node for node in loop.nodes if frames[node] == loop.frame]
    loop.enters = [node for node in own if _is(node, "Enter")]
    loop.exits = [node for node in own if _is(node, "Exit")]
    for node in own:
        back = next((v for v in node.inputs if v is not None and _is(v.producer, "NextIteration")), None)
        if back is not None:
            loop.merges.append(node)
            loop.ends.append(back)


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
                raise KernelError(f"{_name(following)} needs its own results.")
            else:
                path.add(following)
                stack.append((following, iter(needed[following])))


def _name(item: Item) -> str:
    return f"Loop {item.frame[-1]!r}" if isinstance(item, Loop) else f"Node {item}"


def _is(node: Node, op: str) -> bool:
    return node.domain == "tf" and node.op_type in (op, f"Ref{op}")
