"""Switches, loops and function calls: results are joined over the ways a value can come."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..types import FunctionRef
from .dims import Content, Dims, Element, join, join_content, merge

if TYPE_CHECKING:
    from .call import Call, Rule

#: What is known about a value.
Fact = tuple[Dims, Content]

NOTHING: Fact = (None, None)


def join_fact(a: Fact, b: Fact) -> Fact:
    """Return what holds for a value that is one or the other."""
    return a if a == b else (join(a[0], b[0]), join_content(a[1], b[1]))


def switch(call: "Call") -> list[Dims]:
    """The operand, at every exit."""
    return [call.shape(0)] * len(call.node.outputs)


def each(call: "Call") -> list[Dims]:
    """Operand k for result k."""
    return list(call.dims)


def _facts(call: "Call", start: int) -> list[Fact]:
    """The operands from ``start`` on; integers stay out, because a branch or loop that never runs may not accept them."""
    contents = (content if isinstance(content, Element) else None for content in call.contents[start:])
    return list(zip(call.dims[start:], contents, strict=True))


def _declared(call: "Call", facts: list[Fact]) -> list[Fact]:
    """Refine results by the attribute ``output_shapes``."""
    shapes = call.declared_list("output_shapes")
    if len(shapes) != len(facts):
        return facts
    return [(merge(declared, dims), content) for declared, (dims, content) in zip(shapes, facts, strict=True)]


def _nothing(call: "Call") -> list[Fact]:
    return [NOTHING] * len(call.node.outputs)


def function_call(call: "Call") -> list[Fact]:
    """What the function returns for these operands."""
    function = call.function("f")
    if function is None:
        return _nothing(call)
    return call.scope.infer_function(
        call, function.name, list(zip(call.dims, call.contents, strict=True)), len(call.node.outputs)
    )


def direct_call(call: "Call") -> list[Fact]:
    """What the function that the op is named after returns."""
    return call.scope.infer_function(
        call, call.node.op_type, list(zip(call.dims, call.contents, strict=True)), len(call.node.outputs)
    )


def branches(call: "Call") -> list[Fact]:
    """Whatever branch is taken."""
    refs = [call.function("then_branch"), call.function("else_branch")]
    if call.node.op_type in ("Case", "StatelessCase"):
        value = call.node.attr("branches")
        refs = [ref for ref in value if isinstance(ref, FunctionRef)] if isinstance(value, list) else []
    result: list[Fact] | None = None
    for ref in refs:
        facts = (
            _nothing(call) if ref is None else call.scope.infer_function(call, ref.name, _facts(call, 1), len(call.node.outputs))
        )
        result = facts if result is None else list(map(join_fact, result, facts))
    return _declared(call, _nothing(call) if result is None else result)


def loop(call: "Call") -> list[Fact]:
    """What holds before the loop and after every turn: the body's results are joined until nothing changes.

    After three turns a value that still changes is given up, after six all are.
    """
    body, condition = call.function("body"), call.function("cond")
    if body is None:
        return _nothing(call)
    facts = _facts(call, 0)
    for turn in range(8):
        after = call.scope.infer_function(call, body.name, facts, len(facts))
        joined = list(map(join_fact, facts, after))
        if joined == facts:
            break
        if turn >= 6:
            joined = [NOTHING] * len(facts)
        elif turn >= 3:
            joined = [new if new == old else NOTHING for old, new in zip(facts, joined, strict=True)]
        facts = joined
    if condition is not None:
        call.scope.infer_function(call, condition.name, facts, 1)
    return _declared(call, facts)


def symbolic_gradient(call: "Call") -> list[Dims]:
    """The gradient of a function has the shapes of its operands, which come first."""
    return [call.shape(i) for i in range(len(call.node.outputs))]


RULES: "dict[str, Rule]" = {
    "IdentityN": each,
    "RefSwitch": switch,
    "Switch": switch,
    "SymbolicGradient": symbolic_gradient,
    "_SwitchN": switch,
}

FLOW = {
    **dict.fromkeys(["Case", "If", "StatelessCase", "StatelessIf"], branches),
    **dict.fromkeys(["PartitionedCall", "StatefulPartitionedCall"], function_call),
    **dict.fromkeys(["StatelessWhile", "While"], loop),
}


def merged(facts: Sequence[Fact]) -> Fact:
    """What a Merge knows of the value it passes on, whichever operand arrives."""
    result = facts[0]
    for fact in facts[1:]:
        result = join_fact(result, fact)
    dims, content = result
    return (dims, content if isinstance(content, Element) else None)
