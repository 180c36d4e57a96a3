"""Regular expressions as RE2 has them: matched in time proportional to the text, whatever the pattern.

A pattern becomes a nondeterministic automaton, whose states are followed all at once [Thompson, Regular Expression Search
Algorithm, 1968]; Python's own matcher tries one way after another, exponentially many for patterns such as ``(a*)*b``. Only
single characters and places between them are left to it. Classes such as ``\\w`` are of ASCII, as in RE2.
"""

import re
from typing import Any, NamedTuple

from ..graph.errors import KernelError

_MOST_STATES = 20_000
_MOST_NESTING = 100
_MOST_REPEATS = 1000
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x\{([0-9A-Fa-f]{1,6})\}|x[0-9A-Fa-f]{2}|0?[0-7]{2}|.)", re.DOTALL)
_REPEAT = re.compile(r"(?:([*+?])|\{(\d{1,6})(,?)(\d{0,6})\})\??")
_GROUP = re.compile(r"\((?:\?(?:P?<\w+>|([imsU]*)(?:-([imsU]+))?([:)])))?")
_PLACES = {"^", "$", "\\A", "\\z", "\\b", "\\B"}
_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "U": re.RegexFlag(0)}


class _Edge(NamedTuple):
    """A way to another state: for a character that ``test`` matches, at a place that it matches, or (None) at any time."""

    target: int
    test: "re.Pattern[str] | None"
    is_place: bool


class Pattern:
    """A pattern that can be matched with texts.

    Args:
        text: The pattern, in RE2's syntax; of classes by name, ``\\pL`` and ``[[:alpha:]]``, there are none.

    Raises:
        KernelError: If the pattern cannot be read, or is too large.
    """

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._edges: list[list[_Edge]] = []
        try:
            tree = self._choices(0, re.ASCII)
            if self._at < len(text):
                raise self._error("a ')' without its '('")
            self._last = self._build(tree, self._state())
        except re.error as error:
            raise self._error(str(error)) from error
        self._known: dict[tuple[Any, str], bool] = {}

    def fullmatch(self, text: str) -> bool:
        """Return whether the pattern matches the whole text."""
        states = {0}
        for at, character in enumerate(text):
            states = {
                edge.target
                for state in self._reached(states, text, at)
                for edge in self._edges[state]
                if edge.test is not None and not edge.is_place and self._fits(edge.test, character)
            }
            if not states:
                return False
        return self._last in self._reached(states, text, len(text))

    def _reached(self, states: set[int], text: str, at: int) -> set[int]:
        """Return the states, and those that are reached from them without a character."""
        found, todo = set(states), list(states)
        while todo:
            for edge in self._edges[todo.pop()]:
                is_free = edge.test is None or (edge.is_place and edge.test.match(text, at) is not None)
                if is_free and edge.target not in found:
                    found.add(edge.target)
                    todo.append(edge.target)
        return found

    def _fits(self, test: "re.Pattern[str]", character: str) -> bool:
        key = test, character
        if key not in self._known:
            self._known[key] = test.match(character) is not None
        return self._known[key]

    # ---- reading: a tree of ("one", test, is_place), ("all", parts), ("any", parts), ("repeat", part, least, most or None) ---

    def _choices(self, depth: int, flags: int) -> Any:
        if depth > _MOST_NESTING:
            raise self._error(f"groups nested more than {_MOST_NESTING} deep")
        choices: list[list[Any]] = [[]]
        while self._at < len(self._text) and self._text[self._at] != ")":
            if self._text[self._at] == "|":
                self._at += 1
                choices.append([])
                continue
            if self._text[self._at] == "(":
                part, flags = self._group(depth, flags)
            else:
                part = self._one(flags)
            if part is not None:
                choices[-1].append(self._repeated(part))
        return "any", [("all", parts) for parts in choices]

    def _group(self, depth: int, flags: int) -> tuple[Any, int]:
        found = _GROUP.match(self._text, self._at)
        if found is None or (self._text.startswith("(?", self._at) and found.end() == self._at + 1):
            raise self._error("a group of a kind that RE2 does not have")
        self._at = found.end()
        inner = flags
        for name in found[1] or "":
            inner |= _FLAGS[name]
        for name in found[2] or "":
            inner &= ~_FLAGS[name]
        if found[3] == ")":
            return None, inner
        part = self._choices(depth + 1, inner)
        if self._at == len(self._text):
            raise self._error("a '(' without its ')'")
        self._at += 1
        return part, flags

    def _one(self, flags: int) -> Any:
        """Read a character, class or place."""
        first = self._text[self._at]
        found = {"[": _CLASS, "\\": _ESCAPE}.get(first, re.compile(".", re.DOTALL)).match(self._text, self._at)
        if found is None or first in "*+?" or "[:" in found[0][1:]:
            raise self._error("a quantifier of nothing" if first in "*+?" else "a class that cannot be read")
        self._at = found.end()
        source = found[0]
        is_place = source in _PLACES
        if first == "\\" and found[1]:
            source = re.escape(chr(int(found[1], 16)))
        elif source == "\\z" or (source == "$" and not flags & re.MULTILINE):
            source = "\\Z"
        elif first not in "[\\.^$":
            source = re.escape(source)
        return "one", re.compile(source, flags), is_place

    def _repeated(self, part: Any) -> Any:
        found = _REPEAT.match(self._text, self._at)
        if found is None:
            return part
        self._at = found.end()
        if found[1]:
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[found[1]]
        else:
            least = int(found[2])
            most = int(found[4]) if found[4] else None if found[3] else least
        if max(least, most or 0) > _MOST_REPEATS or (most is not None and most < least):
            raise self._error(f"a quantifier that is not from 0 to {_MOST_REPEATS}")
        if _REPEAT.match(self._text, self._at):
            raise self._error("a quantifier of a quantifier")
        return "repeat", part, least, most

    def _error(self, what: str) -> KernelError:
        return KernelError(f"RegexFullMatch: the pattern has {what} at {self._at}. Received: {self._text[:200]!r}")

    # ---- building --------------------------------------------------------------------------------------------------------

    def _state(self) -> int:
        if len(self._edges) >= _MOST_STATES:
            raise self._error(f"more than {_MOST_STATES} characters and repetitions, counted as often as they may repeat,")
        self._edges.append([])
        return len(self._edges) - 1

    def _join(self, start: int, end: int) -> None:
        self._edges[start].append(_Edge(end, None, False))

    def _build(self, tree: Any, start: int) -> int:
        """Add the states of a part behind ``start``; return its last."""
        kind = tree[0]
        if kind == "one":
            end = self._state()
            self._edges[start].append(_Edge(end, tree[1], tree[2]))
        elif kind == "all":
            end = start
            for part in tree[1]:
                end = self._build(part, end)
        elif kind == "any":
            ends = []
            for part in tree[1]:
                first = self._state()
                self._join(start, first)
                ends.append(self._build(part, first))
            end = self._state()
            for each in ends:
                self._join(each, end)
        else:
            _, part, least, most = tree
            end = start
            for _ in range(least):
                end = self._build(part, end)
            if most is None:
                loop = self._state()
                self._join(end, loop)
                self._join(self._build(part, loop), loop)
                return loop
            last = self._state()
            for _ in range(most - least):
                self._join(end, last)
                end = self._build(part, end)
            self._join(end, last)
            end = last
        return end
