"""Reading the attribute values of the text form."""

import struct
from collections.abc import Mapping
from typing import Any

from .dtypes import BY_SHORT, DType
from .errors import did_you_mean
from .text_print import print_tensor
from .text_tokens import Tokens
from .types import UNKNOWN, Dim, FunctionRef, Placeholder, Shape, Tensor, ValueType

_MAX_NESTING = 64
_MAX_ELEMENTS = 2**47


class ValueReader(Tokens):
    """Reads types, shapes, attribute values and constants.

    Args:
        text: The whole text.
        constants: Constants that print as a hash, by that hash.
    """

    def __init__(self, text: str, constants: Mapping[str, Tensor]) -> None:
        super().__init__(text)
        self.constants = constants
        self.depth = 0

    def dtype(self) -> DType:
        """Read a dtype by its short name."""
        token = self.tokens[self.i]
        found = BY_SHORT.get(token)
        if found is None:
            self.fail(f"Unknown dtype {self.received()}.{did_you_mean(token, BY_SHORT)}")
        self.i += 1
        return found

    def shape(self) -> Shape:
        """Read the sizes of a shape: ``[2,?,n]``."""
        self.expect("[")
        dims: list[Dim] = []
        while not self.accept("]"):
            token = self.tokens[self.i]
            if self.accept("?"):
                dims.append(None)
            elif token[:1] == "-" or token[:1].isdecimal():
                dims.append(self.integer("a dimension"))
            else:
                dims.append(self.word("a dimension: a number, ? or a name"))
            if not self.accept(","):
                self.expect("]")
                break
        return Shape(dims)

    def type(self) -> tuple[DType | None, Shape]:
        """Read a dtype and shape: ``f32[2,?]``, ``?``, ``f32[2] in seq``."""
        dtype = None if self.accept("?") else self.dtype()
        shape = self.shape() if self.tokens[self.i] == "[" else UNKNOWN
        return dtype, Shape(shape.dims, self.word("a container")) if self.accept("in") else shape

    def block(self, first: bool) -> Any:
        """Read a graph."""
        raise NotImplementedError

    def items(self, closing: str) -> dict[str, Any]:
        """Read ``name=value`` pairs up to the token ``closing``."""
        result: dict[str, Any] = {}
        while not self.accept(closing):
            at = self.i
            name = self.word("an attribute name")
            if name in result:
                self.fail(f"Attribute {name!r} is given twice.", at)
            self.expect("=")
            result[name] = self.attribute()
            if not self.accept(","):
                self.expect(closing)
                break
        return result

    def attribute(self) -> Any:
        """Read the value of an attribute, of any kind."""
        if self.depth >= _MAX_NESTING:
            self.fail(f"An attribute is nested more than {_MAX_NESTING} deep.")
        self.depth += 1
        value = self._attribute()
        self.depth -= 1
        return value

    def _attribute(self) -> Any:
        token = self.tokens[self.i]
        first = token[:1]
        if first == '"':
            return self.byte_string()
        if first == "-" or first.isdecimal() or token in ("inf", "nan"):
            return self.number(token)
        self.i += 1
        if token == "true" or token == "false":
            return token == "true"
        if token == "none":
            return None
        if token == "s":
            return self.word("a string in double quotes")
        if token == "shape":
            return self.attribute_shape()
        if token == "dense":
            return self.tensor()
        if token == "type":
            self.expect("<")
            dtype, shape = self.type()
            self.expect(">")
            return ValueType(dtype, shape)
        if token == "graph":
            self.i -= 1
            return self.block(first=True)
        if token == "dtype":
            self.expect(":")
            return self.dtype()
        if token == "$":
            return Placeholder(self.word("an attribute name"))
        if token == "@":
            name = self.word("a function name")
            return FunctionRef(name, self.items("}") if self.accept("{") else None)
        if token == "[":
            items: list[Any] = []
            while not self.accept("]"):
                items.append(self.attribute())
                if not self.accept(","):
                    self.expect("]")
                    break
            return items
        self.i -= 1
        self.fail(f"Expected an attribute value. Received: {self.received()}")

    def attribute_shape(self) -> Shape:
        """Read the sizes of a shape that may be of unknown rank: ``[*]``."""
        if self.tokens[self.i : self.i + 3] == ["[", "*", "]"]:
            self.i += 3
            return UNKNOWN
        return self.shape()

    def number(self, token: str) -> int | float:
        """Read an integer or a float, of which ``token`` is the current token."""
        if token[-1] not in "fn" and not set(token).isdisjoint(".ed"):
            try:
                value = float(token.removesuffix("d"))
            except ValueError:
                self.fail(f"Expected a number. Received: {self.received()}")
            self.i += 1
            return value if token.endswith("d") else _float32(value)
        if token in ("inf", "-inf", "nan"):
            self.i += 1
            return float(token)
        return self.integer("a number")

    def tensor(self) -> Tensor:
        """Read a constant after ``dense``."""
        import numpy as np

        at = self.i
        self.expect("<")
        dtype = self.dtype()
        dims = self.shape().dims or ()
        shape = tuple(dim for dim in dims if isinstance(dim, int) and dim >= 0)
        if len(shape) != len(dims) or len(shape) > 64:
            self.fail("A constant needs a shape of at most 64 known sizes.", at)
        self.expect(",")
        size = 1
        for dim in shape:
            size *= dim
        if size > _MAX_ELEMENTS:
            self.fail(f"A constant of {size} elements is too large.", at)
        token = self.tokens[self.i]
        if token[:1] == "#":
            self.i += 1
            self.expect(">")
            return self.stored(token[1:], dtype, shape, at)
        if dtype.kind == "handle":
            self.fail(f"A {dtype.name} constant can only be given by its hash.")
        splat = self.accept("splat")
        items = [self.element(dtype)] if splat else self.element_list(dtype)
        self.expect(">")
        if not splat and len(items) != size:
            self.fail(f"A constant of shape {list(shape)} has {size} elements. Received: {len(items)}", at)
        array = np.empty(len(items), dtype.numpy)
        for i, item in enumerate(items):
            array[i] = item
        data = np.broadcast_to(array.reshape(()), shape) if splat else array.reshape(shape)
        return Tensor(dtype, shape, lambda: data)

    def stored(self, key: str, dtype: DType, shape: tuple[int, ...], at: int) -> Tensor:
        """Return the constant that the text names by its hash ``key``; token ``at`` is blamed in errors."""
        found = self.constants.get(key)
        if found is None:
            self.fail(f"The text names the constant #{key} by its hash only; pass it in 'constants' (see constants_of).", at)
        if found.dtype is not dtype or found.shape != shape:
            self.fail(f"Constant #{key} is {dtype.short}{list(shape)} here. Received: {print_tensor(found)}", at)
        return found

    def element_list(self, dtype: DType) -> list[Any]:
        """Read the elements of a constant in brackets."""
        self.expect("[")
        items: list[Any] = []
        while not self.accept("]"):
            items.append(self.element(dtype))
            if not self.accept(","):
                self.expect("]")
                break
        return items

    def element(self, dtype: DType) -> Any:
        """Read one element of a constant."""
        if dtype.kind == "string":
            return self.byte_string()
        if dtype.kind == "bool":
            if self.tokens[self.i] not in ("true", "false"):
                self.fail(f"Expected true or false. Received: {self.received()}")
            self.i += 1
            return self.tokens[self.i - 1] == "true"
        if dtype.kind == "complex":
            import numpy as np

            self.expect("(")
            half = BY_SHORT["f32" if dtype.bits == 64 else "f64"]
            real = self.float_element(half)
            self.expect(",")
            pair = np.array([real, self.float_element(half)], half.numpy).view(dtype.numpy)[0]
            self.expect(")")
            return pair
        if dtype.kind == "float":
            return self.float_element(dtype)
        value = self.integer(f"a {dtype.name}")
        signed = dtype.name.startswith(("int", "qint"))
        low, high = (-(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1) if signed else (0, (1 << dtype.bits) - 1)
        if not low <= value <= high:
            self.i -= 1
            self.fail(f"{value} does not fit {dtype.name}.")
        return value

    def float_element(self, dtype: DType) -> Any:
        """Read a float, given in decimal or by its bits in hexadecimal."""
        import numpy as np

        token = self.tokens[self.i]
        if token.startswith("0x"):
            size = dtype.numpy.itemsize
            bits = int(token, 16) if len(token) <= 18 else 1 << 64
            if bits >= 1 << 8 * size:
                self.fail(f"{token[:60]} has more bits than {dtype.name}.")
            self.i += 1
            return np.frombuffer(bits.to_bytes(size, "little"), dtype.numpy)[0]
        if not (token[:1] == "-" or token[:1].isdecimal() or token in ("inf", "nan")) or token == "-":
            self.fail(f"Expected a {dtype.name}. Received: {self.received()}")
        self.i += 1
        try:
            value = float(token.removesuffix("d"))
        except ValueError:
            self.i -= 1
            self.fail(f"Expected a {dtype.name}. Received: {self.received()}")
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return np.array(value, np.float64).astype(dtype.numpy)[()]


def _float32(value: float) -> float:
    """Round to float32, as TensorFlow and ONNX store float attributes."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
