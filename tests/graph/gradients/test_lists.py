"""Gradients through lists of tensors agree with differences, twice."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ampgraph.graph import Graph, Value, find_dtype
from ampgraph.graph.types import Shape
from tests.graph.gradients.check import agree, constant

F64 = find_dtype("float64")
ELEMENT = {"element_dtype": F64}


def _add(name: str, *values: Value, typed: bool = False, results: int = 1, **attributes: Any) -> Any:
    graph = values[0].producer.graph
    outputs = graph.add(name, values, attributes=attributes, types=ELEMENT if typed else None).outputs
    return outputs[0] if results == 1 else outputs


def _ints(graph: Graph, *items: int) -> Value:
    return constant(graph, list(items), "int32")


def _from(x: Value) -> Any:
    return _add("TensorListFromTensor", x, _ints(x.producer.graph, 3))


def _stack(items: Value) -> Any:
    return _add("TensorListStack", items, _ints(items.producer.graph, 3), typed=True)


def _one(graph: Graph, k: int) -> Value:
    return constant(graph, k, "int32")


def push(g: Graph, x: Value, y: Value) -> list[Value]:
    items = _from(x)
    for k in range(2):
        items = _add("TensorListPushBack", items, _add("GatherV2", y, _one(g, k), _one(g, 0)))
    return [_stack(items)]


def pop(g: Graph, x: Value, y: Value) -> list[Value]:
    rest, item = _add("TensorListPopBack", _from(x), _ints(g, 3), typed=True, results=2)
    return [_stack(rest), _add("Mul", item, y)]


def pop_item_only(g: Graph, x: Value, y: Value) -> list[Value]:
    return [_add("Mul", _add("TensorListPopBack", _from(x), _ints(g, 3), typed=True, results=2)[1], y)]


def pop_rest_only(g: Graph, x: Value, y: Value) -> list[Value]:
    return [_add("Mul", _stack(_add("TensorListPopBack", _from(x), _ints(g, 3), typed=True, results=2)[0]), y)]


def get_and_set(g: Graph, x: Value, y: Value) -> list[Value]:
    item = _add("TensorListGetItem", _from(x), _one(g, 1), _ints(g, 3), typed=True)
    items = _add("TensorListSetItem", _from(y), _one(g, 0), _add("Sin", item))
    return [_stack(items)]


def set_beyond_the_end(g: Graph, x: Value, y: Value) -> list[Value]:
    item = _add("TensorListGetItem", _from(x), _one(g, 1), _ints(g, 3), typed=True)
    return [_stack(_add("TensorListSetItem", _from(y), _one(g, 3), item, resize_if_index_out_of_bounds=True))]


def resize(g: Graph, x: Value, y: Value) -> list[Value]:
    return [_stack(_add("TensorListResize", _from(x), _one(g, 1))), _stack(_add("TensorListResize", _from(y), _one(g, 4)))]


def gather(g: Graph, x: Value, y: Value) -> list[Value]:
    return [_add("TensorListGather", items, _ints(g, 1), _ints(g, 3), typed=True) for items in (_from(x), _from(y))]


def scatter(g: Graph, x: Value, y: Value) -> list[Value]:
    return [_stack(_add("TensorListScatter", _add("Mul", x, y), _ints(g, 1, 0), _ints(g, 3)))]


def scatter_v2(g: Graph, x: Value, y: Value) -> list[Value]:
    return [_stack(_add("TensorListScatterV2", _add("Mul", x, y), _ints(g, 2, 0), _ints(g, 3), _one(g, 4)))]


def scatter_into(g: Graph, x: Value, y: Value) -> list[Value]:
    row = _add("Slice", y, _ints(g, 1, 0), _ints(g, 1, 3))
    return [_stack(_add("TensorListScatterIntoExistingList", _from(x), row, _ints(g, 1)))]


def split_and_concat(g: Graph, x: Value, y: Value) -> list[Value]:
    items = _add("TensorListSplit", _add("Mul", x, y), _ints(g, -1, 3), constant(g, [2, 0], "int64"))
    lead = constant(g, np.zeros(0), "int64")
    joined = _add("TensorListConcatV2", items, _ints(g, -1, 3), lead, typed=True, results=2)[0]
    return [joined, _add("TensorListConcat", items, typed=True, results=2)[0]]


@pytest.mark.parametrize(
    "body",
    [
        *(push, pop, pop_item_only, pop_rest_only, get_and_set, set_beyond_the_end, resize, gather, scatter, scatter_v2),
        *(scatter_into, split_and_concat),
    ],
)
def test_agrees_with_differences(body: Callable[..., list[Value]]) -> None:
    graph = Graph()
    x, y = (graph.add_input(name, F64, Shape((2, 3))) for name in "xy")
    rng = np.random.default_rng(1)
    feeds = {name: rng.uniform(-1, 1, (2, 3)) for name in "xy"}
    results = body(graph, x, y)
    if body is pop_item_only:
        feeds["y"] = feeds["y"][0]
        y.shape = Shape((3,))
    agree(graph, results, [x, y], feeds)
