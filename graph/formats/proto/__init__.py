"""Message classes made at first use from ``tensorflow.proto``.

The classes live in a descriptor pool of their own: no generated code that only some protobuf releases accept, and no
clash with TensorFlow in the same process.
"""

import functools
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FileDescriptorProto

PACKAGE = "ampgraph.tf"

# Words, punctuation and strings; comments vanish.
_TOKEN = re.compile(r"//[^\n]*|\"[^\"]*\"|[\w.]+|[{}<>=,;]")
_SCALARS = {
    "double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5, "fixed64": 6, "bool": 8, "string": 9, "bytes": 12, "uint32": 13
}  # fmt: skip
_MESSAGE, _ENUM = 11, 14
_OPTIONAL, _REPEATED = 1, 3


@functools.cache
def message(name: str) -> Any:
    """Return the message class ``name`` (``"GraphDef"``)."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{PACKAGE}.{name}"))


@functools.cache
def _pool() -> Any:
    from google.protobuf import descriptor_pool

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file_descriptor().SerializeToString())
    return pool


def file_descriptor() -> "FileDescriptorProto":
    """Return the descriptor of ``tensorflow.proto``."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    text = (files(__name__) / "tensorflow.proto").read_text(encoding="utf-8")
    tokens = [token for token in _TOKEN.findall(text) if not token.startswith("//")]
    tokens.reverse()
    file = FileDescriptorProto(name="ampgraph/tensorflow.proto", package=PACKAGE, syntax="proto3")
    while tokens:
        keyword = tokens.pop()
        if keyword == "message":
            _read_message(tokens, file.message_type.add())
        elif keyword == "enum":
            _read_enum(tokens, file.enum_type.add())
        else:  # syntax, package
            _skip(tokens, ";")
    _resolve(file)
    return file


def _skip(tokens: list[str], until: str) -> None:
    while tokens.pop() != until:
        pass


def _read_message(tokens: list[str], target: "DescriptorProto") -> None:
    target.name = tokens.pop()
    _skip(tokens, "{")
    while (word := tokens.pop()) != "}":
        if word == "message":
            _read_message(tokens, target.nested_type.add())
        elif word == "enum":
            _read_enum(tokens, target.enum_type.add())
        elif word == "oneof":
            target.oneof_decl.add().name = tokens.pop()
            _skip(tokens, "{")
            while (kind := tokens.pop()) != "}":
                _read_field(tokens, target, kind, _OPTIONAL).oneof_index = len(target.oneof_decl) - 1
        elif word == "repeated":
            _read_field(tokens, target, tokens.pop(), _REPEATED)
        elif word == "map":
            _read_map(tokens, target)
        else:
            _read_field(tokens, target, word, _OPTIONAL)


def _read_field(tokens: list[str], target: "DescriptorProto", kind: str, label: int) -> Any:
    """Read ``name = number;`` after the type word."""
    field = target.field.add()
    field.name, _, number, _ = (tokens.pop() for _ in range(4))
    field.number, field.label = int(number), label  # type: ignore[assignment]
    if kind in _SCALARS:
        field.type = _SCALARS[kind]  # type: ignore[assignment]
    else:
        field.type_name = kind
    return field


def _read_map(tokens: list[str], target: "DescriptorProto") -> None:
    """Read ``<key, value> name = number;``; a map is a repeated nested message ``NameEntry``."""
    _, key, _, value, _ = (tokens.pop() for _ in range(5))
    name = tokens[-1]
    entry = target.nested_type.add()
    entry.name = "".join(part.capitalize() for part in name.split("_")) + "Entry"
    entry.options.map_entry = True
    _read_field(["", "1", "", "key"], entry, key, _OPTIONAL)
    _read_field(["", "2", "", "value"], entry, value, _OPTIONAL)
    _read_field(tokens, target, f"{target.name}.{entry.name}", _REPEATED)


def _read_enum(tokens: list[str], target: "EnumDescriptorProto") -> None:
    target.name = tokens.pop()
    _skip(tokens, "{")
    while (name := tokens.pop()) != "}":
        _, number, _ = (tokens.pop() for _ in range(3))
        target.value.add(name=name, number=int(number))


def _resolve(file: "FileDescriptorProto") -> None:
    """Replace the type words by full names and say whether each is a message or an enum."""
    kinds: dict[str, int] = {}

    def collect(scope: str, holder: Any, nested: Any) -> None:
        for enum in holder.enum_type:
            kinds[f"{scope}.{enum.name}"] = _ENUM
        for inner in nested:
            kinds[f"{scope}.{inner.name}"] = _MESSAGE
            collect(f"{scope}.{inner.name}", inner, inner.nested_type)

    def apply(scope: str, inner: "DescriptorProto") -> None:
        for field in inner.field:
            if field.type_name:
                outer = scope
                while f"{outer}.{field.type_name}" not in kinds:  # innermost scope first
                    outer = outer.rpartition(".")[0]
                field.type_name = f".{outer}.{field.type_name}"
                field.type = kinds[field.type_name[1:]]  # type: ignore[assignment]
        for deeper in inner.nested_type:
            apply(f"{scope}.{deeper.name}", deeper)

    collect(PACKAGE, file, file.message_type)
    for top in file.message_type:
        apply(f"{PACKAGE}.{top.name}", top)
