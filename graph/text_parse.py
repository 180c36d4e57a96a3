"""Parsing the text form; :mod:`ampgraph.graph.text` describes it.

The text is split into tokens once; blocks are read to statements; :mod:`ampgraph.graph.text_build` makes them a graph.
"""

from collections.abc import Mapping

from .collector import paused_collector
from .dtypes import DType
from .graph import Graph
from .text_build import Block, Result, Statement, build
from .text_values import ValueReader
from .types import UNKNOWN, Tensor


def parse_graph(text: str, constants: Mapping[str, Tensor] | None = None) -> Graph:
    """Return the graph that ``text`` describes, with its functions.

    Args:
        text: A ``graph`` block, then any number of ``function`` blocks.
        constants: The constants that print as a hash, by that hash (:func:`~ampgraph.graph.text.constants_of`).

    Raises:
        ParseError: If the text cannot be read; the message shows where.

    Example:
        >>> graph = parse_graph("graph g(%x: f32[2]) { %y = tf.Relu(%x) return %y }")
        >>> graph.value("y").dtype
        float32
    """
    with paused_collector():
        parser = _Parser(text, constants or {})
        blocks = [parser.block(first=True)]
        while parser.tokens[parser.i]:
            blocks.append(parser.block(first=False))
        return build(blocks, parser.fail)


class _Parser(ValueReader):
    def block(self, first: bool) -> Block:
        keyword = self.tokens[self.i]
        if keyword != "function" and not (first and keyword == "graph"):
            expected = "'graph NAME(...) {'" if first else "'function NAME(...) {'"
            self.fail(f"Expected {expected}. Received: {self.received()}")
        self.i += 1
        block = Block(self.i, keyword == "function", "graph" if self.tokens[self.i] == "(" else self.word("a graph name"))
        self.expect("(")
        while not self.accept(")"):
            statement = Statement(self.i, [self.result()], "ampgraph", "Input")
            self.suffix(statement)
            block.inputs.append(statement)
            if not self.accept(","):
                self.expect(")")
                break
        if self.accept("<"):
            block.attributes = self.items(">")
        if self.accept("opset"):
            self.expect("[")
            while not self.accept("]"):
                domain = self.word("a domain in double quotes")
                self.expect("=")
                block.opsets[domain] = self.integer("a version")
                if not self.accept(","):
                    self.expect("]")
                    break
        if self.accept("capture"):
            self.expect("[")
            while not self.accept("]"):
                block.captures.append(self.word("a value's name in double quotes"))
                if not self.accept(","):
                    self.expect("]")
                    break
        self.expect("{")
        while self.tokens[self.i] not in ("}", "return", ""):
            block.statements.append(self.statement())
        if self.accept("return"):
            self.returned(block)
        self.expect("}")
        return block

    def returned(self, block: Block) -> None:
        while self.tokens[self.i] != "}":
            name = None
            if self.tokens[self.i][:1] != "%":
                name = self.word("a value or 'return'")
                self.expect("=")
            block.returns.append((self.i, name, self.value()))
            if not self.accept(","):
                break

    def value(self) -> tuple[str, int]:
        """Read ``%name`` or ``%name#1``."""
        token = self.tokens[self.i]
        if token[:1] != "%" or len(token) < 2:
            self.fail(f"Expected a value such as %x. Received: {self.received()}")
        name, ordinal = token[1:], 0
        if name[0] == '"':
            end = name.rindex('"') + 1
            if end < len(name):
                ordinal = self.ordinal(name[end + 1 :])
            name = self.unquote(name[:end])
        elif "#" in name:
            name, _, digits = name.partition("#")
            ordinal = self.ordinal(digits)
        self.i += 1
        return name, ordinal

    def ordinal(self, digits: str) -> int:
        if len(digits) > 12:
            self.fail(f"Expected a smaller number. Received: #{digits[:60]}")
        return int(digits)

    def result(self) -> Result:
        at = self.i
        name, ordinal = self.value()
        dtype: DType | None = None
        shape = UNKNOWN
        if self.accept(":"):
            dtype, shape = self.type()
        return Result(at, name, ordinal, dtype, shape)

    def statement(self) -> Statement:
        start = self.i
        results: list[Result] = []
        if self.tokens[start][:1] == "%":
            results.append(self.result())
            while self.accept(","):
                results.append(self.result())
            self.expect("=")
        at = self.i
        path = [self.word("an op such as tf.MatMul")]
        while self.accept("."):
            path.append(self.word("an op name"))
        statement = Statement(at, results, ".".join(path[:-1]), path[-1])
        if self.accept("<"):
            self.types(statement)
        self.expect("(")
        while not self.accept(")"):
            statement.operands.append((self.i, None) if self.accept("_") else (self.i, self.value()))
            if not self.accept(","):
                self.expect(")")
                break
        self.suffix(statement)
        return statement

    def types(self, statement: Statement) -> None:
        while not self.accept(">"):
            at = self.i
            name = self.word("a type variable")
            if name in statement.types or name in statement.untyped:
                self.fail(f"Type variable {name!r} is given twice.", at)
            self.expect("=")
            if self.accept("?"):
                statement.untyped.append(name)
            elif self.accept("["):
                statement.untyped.append(name)
                count = 0
                while not self.accept("]"):
                    statement.types[f"{name}[{count}]"] = self.dtype()
                    count += 1
                    if not self.accept(","):
                        self.expect("]")
                        break
            else:
                statement.types[name] = self.dtype()
            if not self.accept(","):
                self.expect(">")
                break

    def suffix(self, statement: Statement) -> None:
        if self.accept("{"):
            statement.attributes = self.items("}")
        while self.tokens[self.i] in ("name", "device", "control") and self.tokens[self.i + 1] == "=":
            keyword = self.tokens[self.i]
            self.i += 2
            if keyword == "control":
                self.expect("[")
                while not self.accept("]"):
                    statement.controls.append((self.i, self.control()))
                    if not self.accept(","):
                        self.expect("]")
                        break
            elif keyword == "name":
                statement.name = self.word("a node name")
            else:
                statement.device = self.word("a device")

    def control(self) -> str | int:
        token = self.tokens[self.i]
        if token[:1] == "#" and token[1:].isdecimal():
            self.i += 1
            return self.ordinal(token[1:])
        return self.word("a node name")
