"""Tensor lists keep one element type, whatever way their handle takes."""

import pytest

from ampgraph.graph import FunctionRef, Graph, Shape, Value
from ampgraph.graph.dtypes import bool_, float32, int32, variant
from ampgraph.graph.verify import verify
from ampgraph.rewrite import Policy, auto_mixed_precision

POLICIES = [Policy(), Policy(preset="grappler"), Policy(preset="grappler", dtype="bfloat16", target="cpu")]


class Lists:
    """A list that is written low, takes some way, and is read where only float32 will do."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.x = self.graph.add("Placeholder", name="x", types={"dtype": float32}).outputs[0]
        self.i = self.graph.add("Placeholder", name="i", types={"dtype": int32}).outputs[0]
        self.b = self.graph.add("Placeholder", name="b", types={"dtype": bool_}).outputs[0]
        product = self.graph.add("MatMul", [self.x, self.x]).outputs[0]
        self.handle = self.graph.add("TensorListFromTensor", [product, self.i], name="from").outputs[0]

    def function(self, name: str, arguments: int = 1, order: tuple[int, ...] = (0,)) -> FunctionRef:
        """Add a function that returns its arguments in some order."""
        body = Graph(name, self.graph.functions)
        self.graph.functions[name] = body
        values = [body.add_input(f"a{k}", variant) for k in range(arguments)]
        body.outputs = [body.add("Identity", [values[k]]).outputs[0] for k in order]
        body.output_names = [f"r{k}" for k in range(len(order))]
        return FunctionRef(name)

    def read(self, handle: Value) -> tuple[str, str]:
        """Read the list behind ``handle`` and return both element types after the rewrite; None stays None."""
        item = self.graph.add("TensorListStack", [handle, self.i], types={"element_dtype": float32}, name="stack").outputs[0]
        out = self.graph.add("Identity", [self.graph.add("Exp", [item]).outputs[0]], name="out").outputs[0]
        self.graph.outputs, self.graph.output_names = [out], ["out"]
        return self.element_types(Policy())

    def element_types(self, policy: Policy) -> tuple[str, str]:
        verify(self.graph)
        result = auto_mixed_precision(self.graph, policy).graph
        verify(result)
        first, last = (str(result.node(name).types["element_dtype"]) for name in ("from", "stack"))
        return first, last


VARIANT_PAIRS = {"Tin[0]": variant, "Tout[0]": variant}


def through_if(lists: Lists, then: FunctionRef, other: FunctionRef) -> Value:
    attributes = {"then_branch": then, "else_branch": other}
    return lists.graph.add("If", [lists.b, lists.handle], types=VARIANT_PAIRS, attributes=attributes).outputs[0]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("branches", ["one", "two"])
def test_a_branch_that_passes_the_list_on(policy: Policy, branches: str) -> None:
    lists = Lists()
    first = lists.function("f")
    lists.read(through_if(lists, first, first if branches == "one" else lists.function("g")))
    first_type, last_type = lists.element_types(policy)
    assert first_type == last_type


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_a_loop_that_swaps_two_lists(policy: Policy) -> None:
    lists = Lists()
    condition = lists.graph.functions["c"] = Graph("c", lists.graph.functions)
    for k in range(2):
        condition.add_input(f"a{k}", variant)
    condition.outputs = [condition.add("Placeholder", types={"dtype": bool_}).outputs[0]]
    condition.output_names = ["r"]
    other = lists.graph.add("TensorListFromTensor", [lists.x, lists.i], name="other").outputs[0]
    attributes = {"cond": FunctionRef("c"), "body": lists.function("f", 2, (1, 0))}
    loop = lists.graph.add("While", [lists.handle, other], types={"T[0]": variant, "T[1]": variant}, attributes=attributes)
    lists.read(loop.outputs[1])
    first_type, last_type = lists.element_types(policy)
    assert first_type == last_type


def test_an_op_nobody_defined() -> None:
    lists = Lists()
    assert lists.read(lists.graph.add("MyOp", [lists.handle], outputs=1).outputs[0]) == ("float32", "float32")


def test_a_variable() -> None:
    lists = Lists()
    variable = lists.graph.add("VarHandleOp", types={"dtype": variant}, attributes={"shape": Shape(())}).outputs[0]
    lists.graph.add("AssignVariableOp", [variable, lists.handle])
    read = lists.graph.add("ReadVariableOp", [variable], types={"dtype": variant}).outputs[0]
    first_type, last_type = lists.read(read)
    assert first_type == last_type


def test_a_list_of_lists() -> None:
    lists = Lists()
    outer = lists.graph.add("TensorListReserve", [lists.i, lists.i], types={"element_dtype": variant}).outputs[0]
    outer = lists.graph.add("TensorListSetItem", [outer, lists.i, lists.handle]).outputs[0]
    item = lists.graph.add("TensorListGetItem", [outer, lists.i, lists.i], types={"element_dtype": variant}).outputs[0]
    assert lists.read(item) == ("float32", "float32")


def test_a_list_the_graph_returns() -> None:
    lists = Lists()
    lists.read(lists.handle)
    out = lists.graph.add("Identity", [lists.handle], name="list").outputs[0]
    lists.graph.outputs.append(out)
    lists.graph.output_names.append("list")
    assert lists.element_types(Policy()) == ("float32", "float32")


def test_without_any_of_that_the_list_is_low() -> None:
    lists = Lists()
    assert lists.read(lists.graph.add("Identity", [lists.handle]).outputs[0]) == ("float16", "float16")


def test_deeply_nested_branches_and_recursion() -> None:
    lists = Lists()
    inner = lists.function("f0")
    for depth in range(1, 2000):
        body = Graph(f"f{depth}", lists.graph.functions)
        lists.graph.functions[body.name] = body
        argument = body.add_input("a", variant)
        branch = body.add("Placeholder", types={"dtype": bool_}).outputs[0]
        attributes = {"then_branch": inner, "else_branch": FunctionRef(body.name)}
        body.outputs = [body.add("If", [branch, argument], types=VARIANT_PAIRS, attributes=attributes).outputs[0]]
        body.output_names = ["r"]
        inner = FunctionRef(body.name)
    lists.read(through_if(lists, inner, inner))
    first_type, last_type = lists.element_types(Policy(preset="grappler"))
    assert first_type == last_type


@pytest.mark.parametrize("override", ["c=allow", "w=allow", "p=clear", "v=allow", "assign=allow", "c=clear"])
def test_types_that_cannot_change_alone_do_not(override: str) -> None:
    """A constant's value, a call's operands and variables by reference keep their types whatever an override says."""
    from ampgraph.graph.text import parse_graph

    graph = parse_graph("""
        graph g() {
          %x: f32 = tf.Placeholder<dtype=f32>()
          %c: f32 = tf.Const<dtype=f32>() {value=dense<f32[], [2.0]>}
          %v: f32 = tf.VariableV2<dtype=f32>() {shape=shape[]}
          %a: f32 = tf.MatMul<T=f32>(%x, %x)
          %assign: f32 = tf.Assign<T=f32>(%v, %a)
          %p: f32 = tf.PartitionedCall<Tin=[f32], Tout=[f32]>(%a) {f=@f}
          %w: f32 = tf.StatelessWhile<T=[f32]>(%p) {cond=@go, body=@f}
          %m: f32 = tf.Mul<T=f32>(%w, %c)
          %b: f32 = tf.MatMul<T=f32>(%m, %m)
          %out: f32 = tf.Identity<T=f32>(%b)
          return %out
        }
        function f(%y: f32) {
          %r: f32 = tf.Identity<T=f32>(%y)
          return r=%r
        }
        function go(%y: f32) {
          %t: bool = tf.Const<dtype=bool>() {value=dense<bool[], [true]>}
          return r=%t
        }
    """)
    result = auto_mixed_precision(graph, nodes=(override,)).graph
    verify(result)
    name = override.partition("=")[0]
    assert result.node(name).types == graph.node(name).types


def test_a_node_with_very_many_types_takes_no_quadratic_time() -> None:
    graph = Graph()
    x = graph.add("Placeholder", types={"dtype": float32}).outputs[0]
    a = graph.add("MatMul", [x, x]).outputs[0]
    many = graph.add("IdentityN", [a] * 20_000, name="many")
    b = graph.add("MatMul", [many.outputs[0], many.outputs[-1]]).outputs[0]
    graph.outputs, graph.output_names = [graph.add("Identity", [b]).outputs[0]], ["out"]
    result = auto_mixed_precision(graph).graph
    assert {str(dtype) for dtype in result.node("many").types.values()} == {"float16"}
