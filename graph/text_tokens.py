"""The tokens of the text form, and errors that show where they stand."""

import re
from typing import NoReturn

from .errors import ParseError

_STRING = r'"(?:[^"\\\n]++|\\.)*+"'
_TOKEN = re.compile(
    rf"{_STRING}|%(?:[A-Za-z0-9_][A-Za-z0-9_.]*|{_STRING})(?:\#[0-9]+)?"
    r"|-?0x[0-9a-f]+|-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?d?|-inf|[A-Za-z_][A-Za-z0-9_]*|\#[0-9a-f]+|//[^\n]*|\S",
    re.ASCII,
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u\{([0-9a-fA-F]{1,6})\}|(.))", re.DOTALL)
_SIMPLE_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}


class Tokens:
    """The tokens of a text and a position among them; the last token is empty."""

    def __init__(self, text: str) -> None:
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise ParseError(f"The text is no Unicode: {error}") from error
        self.text = text
        self.tokens: list[str] = _TOKEN.findall(text)
        if "//" in text:
            self.tokens = [token for token in self.tokens if not token.startswith("//")]
        self.tokens.append("")
        self.i = 0

    # ---- errors and small steps -------------------------------------------------------------------------------------

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        """Raise an error that shows the line of token ``at`` (the current one by default) with a caret."""
        wanted = self.i if at is None else at
        position = len(self.text.rstrip())
        seen = 0
        for match in _TOKEN.finditer(self.text):
            if match[0].startswith("//"):
                continue
            if seen == wanted:
                position = match.start()
                break
            seen += 1
        start = self.text.rfind("\n", 0, position) + 1
        end = self.text.find("\n", position)
        line = self.text[start : len(self.text) if end < 0 else end]
        column = position - start
        cut = max(0, column - 80)
        shown = line[cut : cut + 160].replace("\t", " ")
        number = self.text.count("\n", 0, position) + 1
        raise ParseError(f"{message}\n  at line {number}, column {column + 1}:\n  {shown}\n  {' ' * (column - cut)}^")

    def received(self) -> str:
        """Return the current token as errors show it."""
        token = self.tokens[self.i]
        return repr(token if len(token) <= 60 else token[:60] + "…") if token else "the end of the text"

    def expect(self, token: str) -> None:
        """Step over ``token``, which must be next."""
        if self.tokens[self.i] != token:
            self.fail(f"Expected {token!r}. Received: {self.received()}")
        self.i += 1

    def accept(self, token: str) -> bool:
        """Step over ``token`` if it is next; return whether it was."""
        if self.tokens[self.i] == token:
            self.i += 1
            return True
        return False

    def word(self, what: str) -> str:
        """Read a plain or quoted word; errors call it ``what``."""
        token = self.tokens[self.i]
        if token[:1] == '"' and len(token) > 1:
            text = self.unquote(token)
        elif token and (token[0].isalpha() or token[0] == "_"):
            text = token
        else:
            self.fail(f"Expected {what}. Received: {self.received()}")
        self.i += 1
        return text

    def unquote(self, token: str) -> str:
        """Return what a quoted string stands for; ``\\xNN`` is the character of that number."""
        inner = token[1:-1]
        return inner if "\\" not in inner else _ESCAPE.sub(self.unescape, inner)

    def unescape(self, match: re.Match[str]) -> str:
        """Return the character that an escape sequence stands for."""
        code = match[1] or match[2]
        if code is None:
            if match[3] not in _SIMPLE_ESCAPES:
                self.fail(f"Unknown escape '\\{match[3]}' in a string; use \\n, \\t, \\r, \\\", \\\\, \\xNN or \\u{{...}}.")
            return _SIMPLE_ESCAPES[match[3]]
        if int(code, 16) > 0x10FFFF or 0xD800 <= int(code, 16) < 0xE000:
            self.fail(f"No character has the number 0x{code}.")
        return chr(int(code, 16))

    def byte_string(self) -> bytes:
        """Read a quoted string as bytes: ``\\xNN`` is one byte, other characters are UTF-8."""
        token = self.tokens[self.i]
        if token[:1] != '"' or len(token) < 2:
            self.fail(f"Expected a string in double quotes. Received: {self.received()}")
        inner, result, last = token[1:-1], b"", 0
        parts: list[bytes] = []
        for match in _ESCAPE.finditer(inner):
            parts.append(inner[last : match.start()].encode("utf-8", "surrogatepass"))
            char = self.unescape(match)
            parts.append(bytes([ord(char)]) if match[1] else char.encode("utf-8", "surrogatepass"))
            last = match.end()
        result = b"".join(parts) + inner[last:].encode("utf-8", "surrogatepass")
        self.i += 1
        return result

    def integer(self, what: str) -> int:
        """Read an integer; errors call it ``what``."""
        token = self.tokens[self.i]
        digits = token[1:] if token[:1] == "-" else token
        if not digits.isdecimal() or len(digits) > 400:
            self.fail(f"Expected {what}. Received: {self.received()}")
        self.i += 1
        return int(token)
