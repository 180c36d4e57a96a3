"""Nested arguments and results: dicts, lists, tuples, named tuples and dataclasses with arrays at their ends."""

import dataclasses
import re
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import TraceError

_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\-/]*")


def is_name(text: str) -> bool:
    """Whether a text can be the name of a node of a TensorFlow graph."""
    return bool(_NAME.fullmatch(text))


def as_name(text: str) -> str:
    """Return a text with everything replaced that cannot stand in the name of a node."""
    name = re.sub(r"[^A-Za-z0-9_.\-/]", "_", text)
    return name if is_name(name) else f"x{name}"


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Iterate over what stands at the ends of nested containers, with its path: ``params/layers/0``.

    Raises:
        TraceError: If the keys of a dict are no text or integers.
    """
    children = _children(tree)
    if children is None:
        yield path, tree
        return
    for key, child in children:
        yield from leaves(child, f"{path}/{key}" if path else str(key))


def layout(tree: Any) -> Any:
    """Return what tells apart nested containers, whatever stands at their ends: hashable."""
    children = _children(tree)
    return None if children is None else (type(tree), *[(key, layout(child)) for key, child in children])


def rebuild(tree: Any, make: Callable[[str, Any], Any], path: str = "") -> Any:
    """Return the same containers with what stands at each end replaced by ``make(path, leaf)``."""
    children = _children(tree)
    if children is None:
        return make(path, tree)
    return _with(tree, children, [rebuild(child, make, f"{path}/{key}" if path else str(key)) for key, child in children])


def rebuilder(tree: Any, make: Callable[[Any], Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """Return a function that returns the same containers, what stands at each end replaced by ``make(leaf)`` of its argument."""
    children = _children(tree)
    if children is None:
        return make(tree)
    makers, kind = [rebuilder(child, make) for _, child in children], type(tree)
    if hasattr(tree, "_fields"):
        return lambda given: kind(*[maker(given) for maker in makers])
    return lambda given: _with(tree, children, [maker(given) for maker in makers])


def _with(tree: Any, children: list[tuple[str, Any]], found: list[Any]) -> Any:
    """Return a container of the same kind, given what it held and what it shall hold."""
    if isinstance(tree, dict):
        return dict(zip(tree, found, strict=True))
    if hasattr(tree, "_fields"):
        return type(tree)(*found)
    if dataclasses.is_dataclass(tree):
        return dataclasses.replace(tree, **{key: value for (key, _), value in zip(children, found, strict=True)})  # type: ignore[type-var]
    return type(tree)(found)


def _children(tree: Any) -> list[tuple[str, Any]] | None:
    """Return what a container holds, by key; None for what is no container."""
    if isinstance(tree, dict):
        if any(not isinstance(key, str | int) for key in tree):
            wrong = next(key for key in tree if not isinstance(key, str | int))
            raise TraceError(f"Keys of a dict of arrays are text or integers. Received: {wrong!r}")
        return [(str(key), value) for key, value in tree.items()]
    if isinstance(tree, list | tuple):
        fields = getattr(tree, "_fields", None) or range(len(tree))
        return [(str(key), value) for key, value in zip(fields, tree, strict=True)]
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return [(field.name, getattr(tree, field.name)) for field in dataclasses.fields(tree) if field.init]
    return None
