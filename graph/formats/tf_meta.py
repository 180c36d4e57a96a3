"""What a GraphDef says beyond the IR, kept in ``Node.meta`` and ``Graph.meta`` so that writing it back loses nothing.

All of it is shared between copies of a graph and never changed.
"""

from collections.abc import Mapping
from typing import Any

_NONE: Mapping[Any, Any] = {}


class NodeMeta:
    """Facts about one node of the file.

    Attributes:
        implicit: Type attributes the file left to the op definition's default.
        spelling: Input slot -> (plain spelling, the file's spelling) where they differ (``"x"``, ``"x:0"``).
        odd: Attribute -> (value, ``AttrValue``) where the value alone would not restore the message.
        template: ``NodeDef`` with only debug info and full type set, or None.
        source: The file's ``NodeDef`` if unknown fields are somewhere in it, or None.
    """

    __slots__ = ("implicit", "odd", "source", "spelling", "template")

    def __init__(
        self,
        implicit: frozenset[str] = frozenset(),
        spelling: Mapping[int, tuple[str, str]] = _NONE,
        odd: Mapping[str, tuple[Any, Any]] = _NONE,
        template: Any = None,
        source: Any = None,
    ) -> None:
        self.implicit = implicit
        self.spelling = spelling
        self.odd = odd
        self.template = template
        self.source = source


class GraphMeta:
    """Facts about a main graph or function body of the file.

    Attributes:
        template: The ``GraphDef`` without nodes and functions, or the ``FunctionDef`` without nodes.
        spelling: For function results, plain spelling -> the file's spelling where they differ.
        saved_model: The :class:`~.saved_model.Source` of a graph that came from a SavedModel, or None.
    """

    __slots__ = ("saved_model", "spelling", "template")

    def __init__(self, template: Any, spelling: Mapping[str, str] = _NONE, saved_model: Any = None) -> None:
        self.template = template
        self.spelling = spelling
        self.saved_model = saved_model


def without(proto: Any, *fields: str) -> Any:
    """Return a copy of a message without some fields, unknown fields included, without copying those fields."""
    copy = type(proto)()
    for descriptor, value in proto.ListFields():
        if descriptor.name in fields:
            continue
        if descriptor.message_type is not None and not hasattr(value, "append") and not hasattr(value, "add"):
            target = getattr(copy, descriptor.name)
            if hasattr(value, "keys"):
                target.MergeFrom(value)
            else:
                target.CopyFrom(value)
        elif hasattr(value, "MergeFrom"):
            getattr(copy, descriptor.name).MergeFrom(value)
        else:
            setattr(copy, descriptor.name, value)
    return copy
