"""ONNX models for rewrite tests: written in the standard's text form, shown after a rewrite as a few lines with dtypes."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, checker, helper, numpy_helper, parser, shape_inference
from onnx.reference import ReferenceEvaluator

from ampgraph.graph import Graph
from ampgraph.graph.formats.onnx import read_model, write_model
from ampgraph.rewrite import RewriteResult, auto_mixed_precision

_SHORT = {"FLOAT": "f32", "FLOAT16": "f16", "BFLOAT16": "bf16", "DOUBLE": "f64", "INT64": "i64", "BOOL": "bool"}


def model(graph: str, *, opset: int = 21, imports: str = "", ir: int = 10, weights: dict[str, Any] | None = None) -> ModelProto:
    """Parse a graph (and functions behind it); ``weights`` are added as initializers: a shape means random float32 numbers."""
    text = f'<ir_version: {ir}, opset_import: ["": {opset}{imports}]>\n{graph}'
    proto = parser.parse_model(text)
    assert isinstance(proto, ModelProto)
    rng = np.random.default_rng(0)
    for name, value in (weights or {}).items():
        if isinstance(value, tuple):
            value = (rng.standard_normal(value) / np.sqrt(max(value[0], 1))).astype(np.float32)
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return proto


def check(proto: ModelProto) -> None:
    """Fail unless the standard's checker and its strict shape inference accept a model."""
    checker.check_model(proto)
    shape_inference.infer_shapes(proto, check_type=True, strict_mode=True, data_prop=True)


def rewrite(proto: ModelProto, **policy: Any) -> tuple[RewriteResult, ModelProto]:
    """Rewrite a valid model and check the result: valid, same inputs and outputs, no Cast on a constant, stable."""
    check(proto)
    result = auto_mixed_precision(read_model(proto), **policy)
    if not result.modified:
        return result, proto
    written = write_model(result.graph)
    check(written)
    if policy.get("keep_io", True) is True:
        assert signature(written) == signature(proto)
    again = auto_mixed_precision(result.graph, **policy)
    assert not again.modified
    assert again.graph is result.graph
    return result, written


def signature(proto: ModelProto) -> list[tuple[str, str]]:
    """Return names and types of the inputs and outputs of a model; those of constants that are listed as inputs left out."""
    constants = {tensor.name for tensor in proto.graph.initializer}
    values = (*(value for value in proto.graph.input if value.name not in constants), *proto.graph.output)
    return [(value.name, helper.printable_type(value.type).split(",")[0]) for value in values]


def lines(proto: ModelProto) -> str:
    """Show a model: ``name:dtype = Op(operands)`` for every node, by the standard's inference, and constants that are floats.

    Bodies follow their node, indented; functions follow the graph, without dtypes.
    """
    inferred = shape_inference.infer_shapes(proto, strict_mode=True)
    text = list(_graph(inferred.graph, {}, ""))
    for function in inferred.functions:
        text.append(f"{function.name}({', '.join(function.input)}) -> {', '.join(function.output)}")
        for node in function.node:
            text += _node(node, {}, "  ")
    return "\n".join(text)


def _graph(graph: GraphProto, outer: dict[str, str], indent: str) -> Iterator[str]:
    types = dict(outer)
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.HasField("tensor_type"):
            types[value.name] = short(value.type.tensor_type.elem_type)
    for tensor in graph.initializer:
        types[tensor.name] = short(tensor.data_type)
        if types[tensor.name][-2:] in ("16", "32", "64") and types[tensor.name] != "i64":
            yield f"{indent}{tensor.name}:{types[tensor.name]}"
    for node in graph.node:
        yield from _node(node, types, indent)


def _node(node: Any, types: dict[str, str], indent: str) -> Iterator[str]:
    results = ", ".join(f"{name}:{types[name]}" if name in types else name for name in node.output)
    yield f"{indent}{results} = {node.op_type}({', '.join(node.input)})"
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield f"{indent}  {attribute.name}({', '.join(_typed(attribute.g.input))}) -> {', '.join(_typed(attribute.g.output))}"
            yield from _graph(attribute.g, types, indent + "    ")


def _typed(values: Any) -> list[str]:
    return [f"{value.name}:{short(value.type.tensor_type.elem_type)}" for value in values]


def short(number: int) -> str:
    """Return the short name of a dtype given by the standard's number."""
    name = TensorProto.DataType.Name(number)
    return _SHORT.get(name, name.lower())


def dtypes(proto: ModelProto) -> dict[str, str]:
    """Return the dtype of every value of the main graph, constants included."""
    graph = shape_inference.infer_shapes(proto, strict_mode=True).graph
    found = {value.name: short(value.type.tensor_type.elem_type) for value in (*graph.input, *graph.value_info, *graph.output)}
    return {**found, **{tensor.name: short(tensor.data_type) for tensor in graph.initializer}}


def run(proto: ModelProto, feeds: dict[str, Any]) -> list[Any]:
    """Compute a model with the standard's reference evaluator, which rounds every result to its dtype."""
    with np.errstate(all="ignore"):
        return [np.asarray(value) for value in ReferenceEvaluator(proto).run(None, feeds)]


def casts(proto: ModelProto) -> int:
    """Return the number of Casts in the main graph."""
    return sum(node.op_type == "Cast" for node in proto.graph.node)


def graph_of(proto: ModelProto) -> Graph:
    """Read a model into the IR."""
    return read_model(proto)


__all__ = ["casts", "check", "dtypes", "graph_of", "lines", "model", "onnx", "rewrite", "run", "short", "signature"]
