"""Every rule of shape inference on small cases, written as text in ``tests/data/infer/rules.txt``."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from ampgraph.graph import Graph, GraphError, Shape, Tensor, find_dtype
from ampgraph.graph.infer import infer_shapes

TABLE = Path(__file__).parents[2] / "data" / "infer" / "rules.txt"
ROWS = [line for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]


def parse_shape(text: str) -> Shape:
    """Read ``[2,?,n]`` or ``[*]``."""
    if text == "[*]":
        return Shape(None)
    dims = text[1:-1].split(",") if text != "[]" else []
    return Shape(None if dim == "?" else int(dim) if dim.lstrip("-").isdecimal() else dim for dim in dims)


def parse_attribute(text: str) -> Any:
    """Read ``true``, ``'text'``, ``[2,?]``, ``3`` or ``1,2``."""
    if text in ("true", "false"):
        return text == "true"
    if text.startswith("'"):
        return text.strip("'").encode()
    if text.startswith("["):
        return parse_shape(text)
    numbers = [int(number) for number in text.split(",")]
    return numbers if "," in text else numbers[0]


LISTS = {"squeeze_dims"}


def build(text: str) -> tuple[Graph, Any]:
    """Make a graph of one node from a row."""
    graph, inputs, attributes, types = Graph(), [], {}, {}
    op, *tokens = text.split()
    for i, token in enumerate(tokens):
        if token.startswith("@"):
            tensor = Tensor.of(ast.literal_eval(token[1:]), "int64" if "4611" in token else "int32")
            constant = graph.add("Const", attributes={"value": tensor})
            inputs.append(constant.outputs[0])
        elif match := re.fullmatch(r"([ib]?)(\[.*\])", token):
            dtype = {"": "float32", "i": "int32", "b": "bool"}[match[1]]
            inputs.append(graph.add_input(f"x{i}", find_dtype(dtype), parse_shape(match[2])))
        elif match := re.fullmatch(r"(\w+):(\w+)", token):
            types[match[1]] = find_dtype(match[2])
        else:
            name, _, value = token.partition("=")
            attribute = parse_attribute(value)
            attributes[name] = [attribute] if name in LISTS and isinstance(attribute, int) else attribute
    return graph, graph.add(op, inputs, attributes=attributes, types=types, name="node")


@pytest.mark.parametrize("row", ROWS)
def test_rule(row: str) -> None:
    text, _, expected = row.partition(" -> ")
    graph, node = build(text)
    if expected.startswith("!"):
        with pytest.raises(GraphError, match=re.escape(expected[2:])) as caught:
            infer_shapes(graph)
        assert f"node 'node' ({node.op_type})" in str(caught.value)
        assert "Received operand shapes: " in str(caught.value)
        assert all(value.shape.dims is None for value in node.outputs)
    else:
        infer_shapes(graph)
        assert " ".join(str(value.shape) for value in node.outputs) == expected
