"""TensorFlow: stacks, on which loops of ops leave what their gradients' loops take. They change in place and last for a run."""

from typing import Any

from ..graph.errors import KernelError
from .call import Call
from .registry import kernel


class Stack:
    """A stack.

    Attributes:
        items: What lies on it.
        most: How many it may hold, or -1.
    """

    kind = "a stack"

    def __init__(self, most: int) -> None:
        self.items: list[Any] = []
        self.most = most


@kernel("tf:Stack", "tf:StackV2", moves=True)
def stack(call: Call, size: Any = None) -> Stack:
    """Return a new stack."""
    return Stack(-1 if size is None else int(size.reshape(())))


@kernel("tf:StackPush", "tf:StackPushV2", moves=True)
def push(call: Call, stack: Stack, item: Any) -> Any:
    """Lay a tensor on a stack, and return it."""
    if 0 <= stack.most <= len(stack.items):
        raise KernelError(f"{call.node.op_type}: the stack may hold {stack.most} tensors, and does.")
    stack.items.append(item)
    return item


@kernel("tf:StackPop", "tf:StackPopV2", moves=True)
def pop(call: Call, stack: Stack) -> Any:
    """Take the last tensor from a stack."""
    if not stack.items:
        raise KernelError(f"{call.node.op_type}: the stack is empty.")
    return stack.items.pop()


@kernel("tf:StackClose", "tf:StackCloseV2", moves=True)
def close(call: Call, stack: Stack) -> tuple[Any, ...]:
    """Forget what lies on a stack."""
    stack.items.clear()
    return ()
