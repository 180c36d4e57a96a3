"""What a rule of shape inference sees of a node: operand shapes, known integer operands, attributes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import GraphError
from ..types import Dim, FunctionRef, Placeholder, Shape
from .dims import Conflict, Content, Dims, Element, show, with_rank

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..graph import Node
    from .engine import Scope


class Call:
    """One node with what is known about its operands.

    Attributes:
        node: The node.
        dims: Shapes of the operands; None for unknown and for omitted ones.
        contents: What is known about the elements of the operands.
        outputs: Shapes of the results; set for the rules about contents.
        scope: The inference of the graph this node is in; rules for calls ask it to infer functions.
    """

    __slots__ = ("contents", "dims", "node", "outputs", "scope")

    def __init__(self, node: "Node", dims: list[Dims], contents: list[Content], scope: "Scope") -> None:
        self.node = node
        self.dims = dims
        self.contents = contents
        self.outputs: Sequence[Dims] = ()
        self.scope = scope

    def error(self, problem: str) -> GraphError:
        """Return the error that says what is wrong with this node."""
        operands = ", ".join(map(show, self.dims[:16])) + (", …" if len(self.dims) > 16 else "")
        return GraphError(
            f"Shapes do not fit at node {self.node} of graph {self.node.graph.name!r}: {problem}. "
            f"Received operand shapes: {operands or 'none'}."
        )

    # ---- operands -----------------------------------------------------------------------------------------------

    def shape(self, index: int) -> Dims:
        """Return the shape of an operand; None when it is unknown or not there."""
        return self.dims[index] if index < len(self.dims) else None

    def ranked(self, index: int, rank: int) -> tuple[Dim, ...]:
        """Return the shape of an operand that must have this rank."""
        return with_rank(self.shape(index), rank)

    def ints(self, index: int) -> tuple[Dim, ...] | None:
        """Return the elements of an integer operand as far as known; None when even their number is not."""
        content = self.contents[index] if index < len(self.contents) else None
        return None if isinstance(content, Element) else content

    def known(self, index: int) -> list[int] | None:
        """Return the elements of an integer operand when every one is known."""
        content = self.ints(index)
        if content is None:
            return None
        result = [item for item in content if isinstance(item, int)]
        return result if len(result) == len(content) else None

    def scalar(self, index: int) -> Dim:
        """Return the only element of an integer operand, if known."""
        content = self.ints(index)
        return content[0] if content is not None and len(content) == 1 else None

    def element(self, index: int) -> Element:
        """Return what a handle operand holds."""
        content = self.contents[index] if index < len(self.contents) else None
        return content if isinstance(content, Element) else Element(None)

    def as_shape(self, index: int) -> Dims:
        """Read an integer operand as a shape; -1 and what is not known become unknown sizes.

        Raises:
            Conflict: If an element is below -1, or the operand is no vector.
        """
        dims = self.shape(index)
        content = self.ints(index)
        if content is None:
            if dims is not None and len(dims) == 1 and isinstance(dims[0], int) and dims[0] <= 254:
                return (None,) * dims[0]
            if dims is not None and len(dims) > 1:
                raise Conflict(f"operand {index} should be a vector of sizes")
            return None
        if dims == ():
            if content[0] == -1 or not isinstance(content[0], int):
                return None
            raise Conflict(f"operand {index} should be a vector of sizes, or the scalar -1 for an unknown shape")
        for item in content:
            if isinstance(item, int) and item < -1:
                raise Conflict(f"operand {index} holds the negative size {item}")
        return tuple(None if item == -1 else item for item in content)

    # ---- attributes ---------------------------------------------------------------------------------------------

    def _attr(self, name: str, kind: type, what: str) -> Any:
        value = self.node.attr(name)
        if value is None or isinstance(value, Placeholder):
            return None
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.error(f"attribute {name!r} should be {what}, not {value!r}")
        return value

    def integer(self, name: str) -> int | None:
        """Return an integer attribute or its default; None when absent or left to the caller of the function."""
        value: int | None = self._attr(name, int, "an integer")
        return value

    def flag(self, name: str) -> bool | None:
        """Return a boolean attribute or its default."""
        value: bool | None = self._attr(name, bool, "true or false")
        return value

    def text(self, name: str) -> str:
        """Return a string attribute or its default; empty when absent."""
        value: bytes | None = self._attr(name, bytes, "a string")
        return "" if value is None else value.decode("utf-8", "replace")

    def integers(self, name: str) -> list[int] | None:
        """Return an attribute that is a list of integers."""
        value: list[Any] | None = self._attr(name, list, "a list of integers")
        if value is not None and any(type(item) is not int for item in value):
            raise self.error(f"attribute {name!r} should be a list of integers, not {value[:8]!r}")
        return value

    def declared(self, name: str) -> Dims:
        """Return a shape attribute."""
        value: Shape | None = self._attr(name, Shape, "a shape")
        return None if value is None else value.dims

    def declared_list(self, name: str) -> list[Dims]:
        """Return an attribute that is a list of shapes."""
        value: list[Any] | None = self._attr(name, list, "a list of shapes")
        return [item.dims for item in value or () if isinstance(item, Shape)]

    def function(self, name: str) -> FunctionRef | None:
        """Return an attribute that names a function."""
        value: FunctionRef | None = self._attr(name, FunctionRef, "a function")
        return value


if TYPE_CHECKING:
    #: Returns the shape of every result.
    Rule = Callable[[Call], Sequence[Dims]]
    #: Returns what is known about the elements of every result, after the shapes are known.
    ContentRule = Callable[[Call], Sequence[Content]]
