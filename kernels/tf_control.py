"""TensorFlow: branches, calls of functions, loops as functions, and variables.

Loops that are cycles of ops are put together by :mod:`~ampgraph.kernels.frames`.
"""

from collections.abc import Sequence
from typing import Any

from ..graph.errors import KernelError
from ..graph.graph import Graph
from .call import Call
from .registry import kernel
from .room import blank
from .values import DEAD


@kernel(
    *("tf:Identity", "tf:Snapshot", "tf:StopGradient", "tf:PreventGradient", "tf:LoopCond", "tf:PlaceholderWithDefault"),
    *("tf:RefIdentity", "tf:DeepCopy", "tf:GuaranteeConst", "tf:Copy", "tf:CopyHost"),
    moves=True,
)
def identity(call: Call, x: Any) -> Any:
    """Hand a value on."""
    return x


@kernel("tf:EnsureShape", moves=True)
def ensure_shape(call: Call, x: Any) -> Any:
    """Hand a value on whose shape is as the attribute says."""
    dims = call.attr("shape").dims
    fits = dims is None or len(dims) == x.ndim
    if not fits or any(isinstance(dim, int) and dim != size for dim, size in zip(dims or (), x.shape, strict=False)):
        raise KernelError(f"EnsureShape: the shape is {call.attr('shape')}. Received: {list(x.shape)}")
    return x


@kernel("tf:IdentityN", moves=True)
def identity_n(call: Call, *values: Any) -> tuple[Any, ...]:
    """Hand values on."""
    return values


@kernel("tf:Const", moves=True)
def const(call: Call) -> Any:
    """A constant in a branch."""
    return call.attr("value")


@kernel("tf:NoOp", "tf:ControlTrigger", moves=True)
def no_op(call: Call) -> tuple[Any, ...]:
    """Be waited for."""
    return ()


@kernel("tf:Placeholder", "tf:PlaceholderV2", moves=True)
def placeholder(call: Call) -> Any:
    """An input inside of a function, which nothing can feed."""
    raise KernelError("a Placeholder inside of a function cannot be fed.")


@kernel("tf:Switch", "tf:RefSwitch", moves=True)
def switch(call: Call, data: Any, taken: Any) -> tuple[Any, Any]:
    """Hand a value to one of two branches: the first if false, the second if true."""
    return (DEAD, data) if taken else (data, DEAD)


@kernel("tf:_SwitchN", moves=True)
def switch_n(call: Call, data: Any, index: Any) -> tuple[Any, ...]:
    """Hand a value to one of several branches; the last if there is no such branch."""
    chosen = int(index)
    chosen = chosen if 0 <= chosen < call.results else call.results - 1
    return tuple(data if i == chosen else DEAD for i in range(call.results))


@kernel("tf:Merge", "tf:RefMerge", moves=True)
def merge(call: Call, *values: Any) -> tuple[Any, Any]:
    """Return the value of the branch that was taken, and which it was."""
    if not values:
        raise KernelError("Merge: there is nothing to choose from.")
    index = next(i for i, value in enumerate(values) if value is not DEAD)
    return values[index], call.xp.asarray(index, call.xp.int32)


@kernel("tf:PartitionedCall", "tf:StatefulPartitionedCall", moves=True)
def partitioned_call(call: Call, *operands: Any) -> tuple[Any, ...]:
    """Call a function."""
    return results_of(call, call.attr("f"), operands, call.results)


@kernel("tf:If", "tf:StatelessIf", "tf:_If", moves=True)
def if_(call: Call, condition: Any, *operands: Any) -> tuple[Any, ...]:
    """Call one of two functions."""
    return results_of(call, call.attr("then_branch" if truth(condition) else "else_branch"), operands, call.results)


@kernel("tf:Case", "tf:StatelessCase", moves=True)
def case(call: Call, index: Any, *operands: Any) -> tuple[Any, ...]:
    """Call one of several functions; the last if there is no such function."""
    branches = call.attr("branches")
    if not branches:
        raise KernelError("Case: there are no functions to choose from.")
    chosen = int(index)
    return results_of(call, branches[chosen if 0 <= chosen < len(branches) else -1], operands, call.results)


@kernel("tf:While", "tf:StatelessWhile", "tf:_While", moves=True)
def while_(call: Call, *values: Any) -> tuple[Any, ...]:
    """Call one function as long as another returns true."""
    condition, body = call.attr("cond"), call.attr("body")
    while truth(results_of(call, condition, values, 1)[0]):
        values = results_of(call, body, values, len(values))
    return values


@kernel("tf:For", moves=True)
def for_(call: Call, start: Any, limit: Any, delta: Any, *values: Any) -> tuple[Any, ...]:
    """Call a function for each number from one up, or down, to another."""
    body, step = call.attr("body"), int(delta)
    if not step:
        raise KernelError("For: the step is not 0.")
    for i in range(int(start), int(limit), step):
        values = results_of(call, body, [call.xp.asarray(i, call.xp.int32), *values], len(values))
    return values


@kernel("tf:FakeParam", moves=True)
def fake_param(call: Call) -> Any:
    """Stand for what the other branch of a condition returns, which nobody reads: zeros, of no elements where a size is open."""
    dtype, sizes = call.dtype("dtype"), call.attr("shape").dims or ()
    if dtype.kind == "handle":
        return None
    return blank(call.xp, [size if isinstance(size, int) else 0 for size in sizes], dtype.numpy)


@kernel("tf:ToBool", moves=True)
def to_bool(call: Call, x: Any) -> Any:
    """Return whether a condition holds."""
    return call.xp.asarray(truth(x))


def results_of(call: Call, function: Graph, operands: Sequence[Any], count: int) -> tuple[Any, ...]:
    """Call a function.

    Args:
        call: The call of the node.
        function: What it calls.
        operands: Arrays, as many as the function has inputs.
        count: How many results the node needs.

    Raises:
        KernelError: If the function takes or gives another number.
    """
    takes, gives = len(function.inputs), len(function.outputs)
    if takes != len(operands) or gives != count:
        wanted = f"takes {takes} operands and gives {gives} results"
        raise KernelError(f"{call.node.op_type}: function {function.name!r} {wanted}. Received: {len(operands)}, for {count}")
    return tuple(call.run(function, operands))


def truth(condition: Any) -> bool:
    """Return a condition as TensorFlow takes it: a number that is not 0, a text or an array that is not empty."""
    if condition.ndim:
        return bool(condition.size)
    value = condition.item()
    return bool(len(value)) if isinstance(value, str | bytes) else bool(value)
