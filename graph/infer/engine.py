"""The sweep over a graph that applies the rules, and the loops and functions in it.

Nodes are visited in topological order. A Merge at the head of a loop first believes what enters the loop; what comes
back around is joined to it, and what depends on it is visited again. Facts only ever get weaker, and a node visited
too often says nothing any more, so the number of visits is linear in the size of the graph.
"""

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from ..dtypes import DType
from ..errors import GraphError
from ..types import Dim, FunctionRef, Shape
from . import contents, control, conv, elementwise, index, list_ops, matmul, nn, reduce, shape_ops, state
from .call import Call
from .control import NOTHING, Fact, join_fact
from .dims import MAX_DIM, MAX_RANK, Conflict, Content, Dims, Element, merge, show

if TYPE_CHECKING:
    from ..graph import Graph, Node, Value
    from .call import ContentRule, Rule

RULES: "dict[str, Rule]" = {}
for _family in (elementwise, nn, matmul, conv, shape_ops, index, reduce, state, list_ops, control):
    RULES.update(_family.RULES)
CONTENTS: "dict[str, ContentRule]" = {**contents.CONTENTS, **state.CONTENTS, **list_ops.CONTENTS}

_MAX_VISITS = 8
_MAX_RUNS = 8
_MAX_DEPTH = 40


class Library:
    """The functions of a graph, inferred once for each distinct list of operands.

    Attributes:
        found: For every function inferred, what is known about its values however it is called.
        opaque: Functions that are also called in ways that are not followed.
    """

    def __init__(self, functions: "dict[str, Graph]") -> None:
        self.functions = functions
        self.found: dict[str, dict[Value, Fact]] = {}
        self.opaque: set[str] = set()
        self._runs: dict[str, dict[tuple[Fact, ...], list[Fact]]] = {}
        self._active: list[str] = []

    def forget(self, name: str) -> None:
        """Drop what is known about a function, whose name may come to stand for another one."""
        self.found.pop(name, None)
        self.opaque.discard(name)
        self._runs.pop(name, None)

    def infer(self, name: str, facts: list[Fact]) -> list[Fact]:
        """Return what is known about the results of a function when it is called with such operands."""
        function = self.functions[name]
        if name in self._active or len(self._active) >= _MAX_DEPTH:
            self.opaque.add(name)
            return [NOTHING] * len(function.outputs)
        runs = self._runs.setdefault(name, {})
        if len(runs) >= _MAX_RUNS and tuple(facts) not in runs:
            facts = [NOTHING] * len(facts)
        key = tuple(facts)
        if key in runs:
            return runs[key]
        self._active.append(name)
        try:
            scope = Scope(function, self, facts)
            scope.run()
        finally:
            self._active.pop()
        runs[key] = [scope.facts.get(value, NOTHING) for value in function.outputs]
        found = self.found.get(name)
        if found is None:
            self.found[name] = scope.facts
        else:
            for value, fact in scope.facts.items():
                found[value] = join_fact(found.get(value, fact), fact)
        return runs[key]


class Scope:
    """The inference of one graph for one list of inputs.

    Attributes:
        facts: What is known about each value.
    """

    def __init__(self, graph: "Graph", library: Library, inputs: list[Fact]) -> None:
        self.graph = graph
        self.library = library
        self.facts: dict[Value, Fact] = {}
        for value, (dims, content) in zip(graph.inputs, inputs, strict=True):
            try:
                self.facts[value] = (merge(value.shape.dims, dims), content)
            except Conflict as conflict:
                raise GraphError(f"Input {value} of graph {graph.name!r} is called with another shape: {conflict}.") from None

    def run(self) -> None:
        """Apply the rules until nothing changes.

        Raises:
            GraphError: If operand shapes do not fit an op, or contradict a shape that the graph states.
        """
        order = self.graph.topological()
        loops = any(node.op_type.endswith("NextIteration") for node in order)
        readers = self._readers(order) if loops else {}
        visits = [0] * len(order)
        again: list[int] = []
        queued: set[int] = set()
        position = 0
        while position < len(order) or again:
            if again and (again[0] < position or position >= len(order)):
                i = heappop(again)
                queued.discard(i)
                if visits[i] > _MAX_VISITS:
                    continue
            else:
                i = position
                position += 1
            visits[i] += 1
            changed = self._visit(order[i], visits[i])
            for value in changed if loops else ():
                for reader in readers.get(value, ()):
                    if reader < position and reader not in queued:
                        queued.add(reader)
                        heappush(again, reader)

    def follow(self, node: "Node") -> None:
        """Infer a node that was added, or changed, after :meth:`run`, whose operands are known already.

        Raises:
            GraphError: As for :meth:`run`.
        """
        self._visit(node, 1)

    def infer_function(self, call: Call, name: str, facts: list[Fact], count: int) -> list[Fact]:
        """Return what is known about the ``count`` results of a function; used by the rules for calls."""
        function = self.library.functions.get(name)
        if function is None:
            return [NOTHING] * count
        if len(facts) != len(function.inputs):
            raise call.error(f"function {name!r} takes {len(function.inputs)} operands, not {len(facts)}")
        results = self.library.infer(name, facts)
        if len(results) != count:
            raise call.error(f"function {name!r} returns {len(results)} values, not {count}")
        return results

    @staticmethod
    def _readers(order: "list[Node]") -> "dict[Value, list[int]]":
        readers: dict[Value, list[int]] = {}
        for i, node in enumerate(order):
            for value in node.inputs:
                if value is not None:
                    readers.setdefault(value, []).append(i)
        return readers

    def _visit(self, node: "Node", visit: int) -> "list[Value]":
        """Infer one node; return the results about which less is known than before."""
        outputs = node.outputs
        if not outputs or node.op_type == "Input":
            return []
        known = self.facts
        changed: list[Value] = []
        facts = self._apply(node) if visit <= _MAX_VISITS else [NOTHING] * len(outputs)
        for value, (dims, content) in zip(outputs, facts, strict=True):
            stated = value.shape.dims
            if stated is not None:
                try:
                    dims = merge(stated, dims)
                except Conflict as conflict:
                    raise GraphError(
                        f"Value {value} of node {node} in graph {self.graph.name!r} is stated to have another shape than "
                        f"follows from its operands: {conflict}."
                    ) from None
            fact = (dims, content)
            if visit > 1:
                old = known[value]
                fact = join_fact(old, fact)
                if fact == old:
                    continue
            known[value] = fact
            changed.append(value)
        return changed

    def _apply(self, node: "Node") -> list[Fact]:
        """Apply the rules of an op to what is known about its operands."""
        known, op = self.facts, node.op_type
        if node.domain != "tf":
            return [NOTHING] * len(node.outputs)
        if op == "Merge" or op == "RefMerge":
            # At the head of a loop, what comes back around is not known at first.
            arrived = [known[value] for value in node.inputs if value in known]
            return [control.merged(arrived) if arrived else NOTHING, ((), None)]
        dims: list[Dims] = []
        held: list[Content] = []
        for value in node.inputs:
            fact = known.get(value, NOTHING)  # type: ignore[arg-type]
            dims.append(fact[0])
            held.append(fact[1])
        call = Call(node, dims, held, self)
        expected = len(node.signature.inputs)
        if len(dims) != expected:
            raise call.error(f"it should have {expected} operands, and has {len(dims)}")
        try:
            flow = control.FLOW.get(op)
            if flow is None and op in self.library.functions:
                flow = control.direct_call
            if flow is not None:
                return flow(call)
            if self.library.functions:
                self._note_functions(node)
            return self._results(call)
        except Conflict as conflict:
            raise call.error(str(conflict)) from None

    def _note_functions(self, node: "Node") -> None:
        """Remember functions that an op calls with operands we do not follow."""
        for attribute in node.attributes.values():
            for item in attribute if isinstance(attribute, list) else (attribute,):
                if isinstance(item, FunctionRef):
                    self.library.opaque.add(item.name)

    def _results(self, call: Call) -> list[Fact]:
        node = call.node
        rule, content_rule = RULES.get(node.op_type), CONTENTS.get(node.op_type)
        count = len(node.outputs)
        if rule is None:
            return [NOTHING] * count
        shapes = rule(call)
        if len(shapes) != count:
            raise Conflict(f"{node.op_type} has {len(shapes)} results, but the node has {count}")
        for dims in shapes:
            if dims is not None:
                _check(dims)
        if content_rule is None or all(_never_followed(value.dtype) for value in node.outputs):
            return [(dims, None) for dims in shapes]
        call.outputs = shapes
        found = content_rule(call)
        return [
            _fit(dims, content, value.dtype)
            for dims, content, value in zip(shapes, [*found, *[None] * (count - len(found))], node.outputs, strict=True)
        ]


def _check(dims: tuple[Dim, ...]) -> None:
    """Refuse shapes that no tensor can have."""
    if len(dims) > MAX_RANK:
        raise Conflict(f"the result would have {len(dims)} dimensions, and at most {MAX_RANK} are possible")
    for dim in dims:
        if isinstance(dim, int) and not 0 <= dim <= MAX_DIM:
            raise Conflict(f"the result would have a dimension of size {dim}: {show(dims)}")


def _never_followed(dtype: DType | None) -> bool:
    """Whether elements of this type are not followed, so that rules about them need not be asked."""
    return dtype is not None and dtype.kind in ("float", "complex", "string")


def _fit(dims: Dims, content: Content, dtype: DType | None) -> Fact:
    """Drop elements that do not fit the shape or the dtype; take the length of a vector from its elements."""
    if content is None or isinstance(content, Element):
        return (dims, content)
    if dims == (None,):
        dims = (len(content),)
    size = None if dims is None else Shape(dims).size
    if size != len(content) or dtype is None or dtype.kind not in ("int", "uint", "bool"):
        return (dims, None)
    low, high = (-(1 << dtype.bits - 1), 1 << dtype.bits - 1) if dtype.kind == "int" else (0, 1 << dtype.bits)
    if any(isinstance(item, int) and not low <= item < high for item in content):
        content = tuple(item if not isinstance(item, int) or low <= item < high else None for item in content)
    return (dims, content)
