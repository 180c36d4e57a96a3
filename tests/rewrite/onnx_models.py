"""Random ONNX models for properties: chains of steps over float, integer and boolean values, with bodies, functions and sequences."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from onnx import ModelProto, helper, numpy_helper

from .onnx_text import check

D, ROWS = 16, 4
_SHAPE = (ROWS, D)
_INFO = {"f": (1, _SHAPE), "i": (7, (ROWS,)), "b": (9, ()), "m": (9, _SHAPE)}
_IR = {11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11}
_UNARY = (
    "Tanh",
    "Sigmoid",
    "Relu",
    "Exp",
    "Neg",
    "Abs",
    "LeakyRelu",
    "Erf",
    "Identity",
    "Sin",
    "HardSigmoid",
    "Softsign",
    "Sqrt",
    "Log",
)
_BINARY = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Pow")
_NAMES = ("v{}", "v{}_float16", "v{}_float32", "v/{}:0", "ü{}", "x_bfloat16_{}")


class Scope:
    """One graph under construction: its nodes and initializers, and the values it may read, outer ones included."""

    def __init__(self, model: "Builder", outer: "Scope | None" = None) -> None:
        self.model, self.outer = model, outer
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.values: dict[str, list[str]] = {kind: list(outer.values[kind]) if outer else [] for kind in _INFO}

    def op(self, op: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: Any) -> str:
        """Add a node and return the name of its first result; those of the others follow in ``last``."""
        self.last = [self.model.name() for _ in range(outputs)]
        name = self.model.draw(st.sampled_from(["", "n", f"n{len(self.nodes)}"]))
        self.nodes.append(helper.make_node(op, inputs, self.last, name=name, domain=domain, **attributes))
        return self.last[0]

    def constant(self, value: Any) -> str:
        """Add a constant: an initializer of this graph or of the model, or a node."""
        array = np.asarray(value)
        name = self.model.name()
        place = self.model.draw(st.sampled_from(["here", "outside", "node"]))
        if place == "node":
            self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array)))
        else:
            scope = self
            while place == "outside" and scope.outer:
                scope = scope.outer
            scope.weights.append(numpy_helper.from_array(array, name))
        return name

    def pick(self, kind: str) -> str:
        """Return a value of a kind, rather a late one."""
        return self.model.draw(st.sampled_from(self.values[kind][-5:] + self.values[kind][:1]))

    def graph(self, name: str, inputs: list[Any], outputs: list[Any]) -> Any:
        return helper.make_graph(self.nodes, name, inputs, outputs, self.weights)


class Builder:
    """A model under construction."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw
        self.opset = draw(st.sampled_from(sorted(_IR)))
        self.count = 0
        self.functions: dict[str, Any] = {}
        self.weights: list[str] = []

    def name(self) -> str:
        """Return a new name, which may look like one of ours."""
        self.count += 1
        return self.draw(st.sampled_from(_NAMES)).format(self.count)

    def step(self, scope: Scope, depth: int) -> None:
        """Add a few nodes that make a value."""
        steps = [*_STEPS, *(_NESTED if depth < 2 else ())]
        made = self.draw(st.sampled_from(steps))(self, scope, depth)
        if made is not None:
            scope.values["f"].append(made)

    def body(self, outer: Scope, depth: int) -> Scope:
        """Return a graph inside another one."""
        scope = Scope(self, outer)
        for _ in range(self.draw(st.integers(1, 3))):
            self.step(scope, depth + 1)
        return scope


def info(name: str, kind: str) -> Any:
    """Return the entry of an input or output."""
    return helper.make_tensor_value_info(name, *_INFO[kind])


def _unary(model: Builder, scope: Scope, _: int) -> str:
    return scope.op(model.draw(st.sampled_from(_UNARY)), scope.pick("f"))


def _binary(model: Builder, scope: Scope, _: int) -> str:
    return scope.op(model.draw(st.sampled_from(_BINARY)), scope.pick("f"), scope.pick("f"))


def _weight(model: Builder, scope: Scope) -> str:
    rng = np.random.default_rng(model.count)
    return scope.constant((rng.standard_normal((D, D)) / 4).astype(np.float32))


def _product(model: Builder, scope: Scope, _: int) -> str:
    op = model.draw(st.sampled_from(["MatMul", "Gemm"]))
    return scope.op(op, scope.pick("f"), _weight(model, scope))


def _scalar(model: Builder, scope: Scope, _: int) -> str:
    value = model.draw(st.sampled_from([0.5, 1e-7, 1e6, 3000.0, -3.4e38, 0.0]))
    return scope.op(model.draw(st.sampled_from(_BINARY[:6])), scope.pick("f"), scope.constant(np.float32(value)))


def _norm(model: Builder, scope: Scope, _: int) -> str:
    x = scope.pick("f")
    square = scope.op("Mul", x, x)
    mean = scope.op("ReduceMean", square, axes=[1]) if model.opset < 18 else scope.op("ReduceMean", square, scope.constant([1]))
    return scope.op("Div", x, scope.op("Sqrt", scope.op("Add", mean, scope.constant(np.float32(1e-6)))))


def _softmax(model: Builder, scope: Scope, _: int) -> str:
    return scope.op(model.draw(st.sampled_from(["Softmax", "LogSoftmax", "Hardmax"])), scope.pick("f"), axis=1)


def _shapes(model: Builder, scope: Scope, _: int) -> str:
    turned = scope.op("Transpose", scope.pick("f"), perm=[1, 0])
    if model.draw(st.booleans()):
        return scope.op("Transpose", turned, perm=[1, 0])
    return scope.op("Reshape", turned, scope.constant(np.array(_SHAPE)))


def _halves(model: Builder, scope: Scope, _: int) -> str:
    if model.opset < 13:
        scope.op("Split", scope.pick("f"), outputs=2, axis=1, split=[D // 2] * 2)
    else:
        scope.op("Split", scope.pick("f"), scope.constant(np.array([D // 2] * 2)), outputs=2, axis=1)
    return scope.op("Concat", *scope.last[::-1], axis=1)


def _cast(model: Builder, scope: Scope, _: int) -> str:
    there = model.draw(st.sampled_from([1, 7, 10, 11]))
    x = scope.op("Cast", scope.pick("f"), to=there)
    return x if there == 1 else scope.op("Cast", x, to=1)


def _mask(model: Builder, scope: Scope, _: int) -> str:
    scope.values["m"].append(
        scope.op(model.draw(st.sampled_from(["Less", "Greater", "Equal"])), scope.pick("f"), scope.pick("f"))
    )
    return scope.op("Where", scope.pick("m"), scope.pick("f"), scope.constant(np.float32(model.draw(st.sampled_from([0, -1e9])))))


def _gather(model: Builder, scope: Scope, _: int) -> str:
    index = scope.op("Mod", scope.pick("i"), scope.constant(np.array(8)))
    scope.values["i"].append(index)
    return scope.op("Gather", scope.constant(np.ones((8, D), np.float32)), index)


def _indices(model: Builder, scope: Scope, _: int) -> None:
    best = scope.op("ArgMax", scope.pick("f"), axis=1, keepdims=0)
    scope.values["i"].append(best)


def _sequence(model: Builder, scope: Scope, _: int) -> str:
    kind = model.draw(st.sampled_from(["list", "empty", "split", "identity"]))
    if kind == "split":
        return scope.op(
            "ConcatFromSequence", scope.op("SplitToSequence", scope.pick("f"), scope.constant(np.array(8)), axis=1), axis=1
        )
    if kind == "empty":
        items = scope.op("SequenceInsert", scope.op("SequenceEmpty"), scope.pick("f"))
    else:
        items = scope.op("SequenceConstruct", scope.pick("f"), scope.pick("f"))
        if kind == "identity" and model.opset >= 14:
            items = scope.op("Identity", items)
    return scope.op("SequenceAt", items, scope.constant(np.array(0)))


def _if(model: Builder, scope: Scope, depth: int) -> str:
    bodies = []
    for name in ("then_branch", "else_branch"):
        inner = model.body(scope, depth)
        result = inner.op(model.draw(st.sampled_from(["Identity", "Relu", "Exp"])), inner.pick("f"))
        bodies.append(inner.graph(name, [], [info(result, "f")]))
    return scope.op("If", scope.pick("b"), then_branch=bodies[0], else_branch=bodies[1])


def _loop(model: Builder, scope: Scope, depth: int) -> str:
    start = scope.pick("f")
    inner = Scope(model, scope)
    number, go, state = (model.name() for _ in range(3))
    inner.values["f"].append(state)
    for _ in range(model.draw(st.integers(1, 3))):
        model.step(inner, depth + 1)
    after = inner.op(model.draw(st.sampled_from(["Identity", "Tanh"])), inner.pick("f"))
    scanned = inner.op("Identity", inner.pick("f"))
    on = inner.op("Identity", go)
    entries = [helper.make_tensor_value_info(number, 7, []), info(go, "b"), info(state, "f")]
    body = inner.graph("body", entries, [info(on, "b"), info(after, "f"), info(scanned, "f")])
    scope.op("Loop", scope.constant(np.array(2)), scope.pick("b"), start, outputs=2, body=body)
    return scope.last[0]


def _call(model: Builder, scope: Scope, _: int) -> str:
    name = model.draw(st.sampled_from(["once", "twice", "clip"]))
    imports = [helper.make_opsetid("", model.opset), helper.make_opsetid("l", 1)]
    if name == "clip":
        nodes = [helper.make_node("Clip", ["a", "lo", "hi"], ["b"])]
        model.functions["clip"] = helper.make_function("l", "clip", ["a", "lo", "hi"], ["b"], nodes, imports)
        return scope.op("clip", scope.pick("f"), "", scope.constant(np.float32(1)), domain="l")
    once = [helper.make_node("MatMul", ["a", "v"], ["t"]), helper.make_node("Relu", ["t"], ["b"])]
    model.functions["once"] = helper.make_function("l", "once", ["a", "v"], ["b"], once, imports)
    if name == "twice":
        twice = [helper.make_node("once", ["a", "v"], ["t"], domain="l"), helper.make_node("once", ["t", "v"], ["b"], domain="l")]
        model.functions["twice"] = helper.make_function("l", "twice", ["a", "v"], ["b"], twice, imports)
    return scope.op(name, scope.pick("f"), _weight(model, scope), domain="l")


_STEPS = [_unary, _binary, _product, _product, _product, _scalar, _norm, _softmax, _shapes, _halves, _cast, _mask, _gather]
_STEPS += [_indices, _sequence, _call]  # type: ignore[list-item]
_NESTED = [_if, _loop]


@st.composite
def models(draw: Any, steps: int = 12) -> ModelProto:
    """Return models that the standard's checker and strict shape inference accept."""
    model = Builder(draw)
    scope = Scope(model)
    inputs = []
    for kind in ("f", "f", "i", "b", "m"):
        name = model.name()
        scope.values[kind].append(name)
        inputs.append(info(name, kind))
    for _ in range(draw(st.integers(1, steps))):
        model.step(scope, 0)
    results = draw(st.lists(st.sampled_from(scope.values["f"]), min_size=1, max_size=3, unique=True))
    results = list(dict.fromkeys([scope.values["f"][-1], *results]))
    outputs = [info(name, "f") for name in results]
    graph = scope.graph("g", inputs, outputs)
    imports = [helper.make_opsetid("", model.opset), *([helper.make_opsetid("l", 1)] if model.functions else [])]
    ir = max(_IR[model.opset], 8) if model.functions else _IR[model.opset]
    proto = helper.make_model(graph, opset_imports=imports, functions=list(model.functions.values()), ir_version=ir)
    check(proto)
    return proto
