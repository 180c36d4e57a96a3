"""TensorFlow: optionals; conditions that must hold, and messages."""

import dataclasses
import sys
from collections.abc import Callable
from typing import Any, ClassVar

from ..graph.errors import KernelError
from .call import Call
from .registry import kernel


@dataclasses.dataclass(frozen=True, eq=False)
class Perhaps:
    """An optional.

    Attributes:
        values: The tensors that it holds, or None if it holds nothing.
    """

    kind: ClassVar[str] = "an optional"
    values: tuple[Any, ...] | None

    def mapped(self, function: Callable[[Any], Any]) -> "Perhaps":
        """Return an optional with every tensor changed, those in lists inside too."""
        if self.values is None:
            return self
        return Perhaps(tuple(item.mapped(function) if hasattr(item, "mapped") else function(item) for item in self.values))

    def __add__(self, other: "Perhaps") -> "Perhaps":
        """Return the sums of the tensors."""
        if self.values is None or other.values is None:
            raise KernelError("Optionals that hold nothing are not added.")
        return Perhaps(tuple(a + b for a, b in zip(self.values, other.values, strict=True)))


@kernel("tf:OptionalFromValue", moves=True)
def optional_of(call: Call, *values: Any) -> Perhaps:
    """Return an optional that holds tensors."""
    return Perhaps(values)


@kernel("tf:OptionalNone", moves=True)
def optional_none(call: Call) -> Perhaps:
    """Return an optional that holds nothing."""
    return Perhaps(None)


@kernel("tf:OptionalHasValue", moves=True)
def optional_has_value(call: Call, optional: Perhaps) -> Any:
    """Whether an optional holds something."""
    return call.xp.asarray(optional.values is not None)


@kernel("tf:OptionalGetValue", moves=True)
def optional_value(call: Call, optional: Perhaps) -> tuple[Any, ...]:
    """Return what an optional holds."""
    if optional.values is None:
        raise KernelError("OptionalGetValue: the optional holds nothing.")
    return optional.values


@kernel("tf:Assert", moves=True)
def assert_(call: Call, condition: Any, *data: Any) -> tuple[Any, ...]:
    """Refuse to go on if a condition does not hold."""
    if not condition:
        raise KernelError(f"Assert: the condition does not hold. Received: {_summary(call, data)}")
    return ()


@kernel("tf:Print", moves=True)
def print_(call: Call, x: Any, *data: Any) -> Any:
    """Write a message to the standard error stream, and hand a value on."""
    sys.stderr.write(f"{call.attr('message', '')}{_summary(call, data)}\n")
    return x


@kernel("tf:PrintV2", moves=True)
def print_v2(call: Call, text: Any) -> tuple[Any, ...]:
    """Write a text to the standard error or output stream; what says a log level or a file goes to the first."""
    stream = sys.stdout if call.attr("output_stream", "stderr") == "stdout" else sys.stderr
    stream.write(f"{text.item()}{call.attr('end')}")
    return ()


def _summary(call: Call, data: tuple[Any, ...]) -> str:
    """Return the first elements of tensors, as many as the op's attribute says, -1 for all."""
    count = call.attr("summarize", 3)
    shown = []
    for x in data:
        flat = x.reshape(-1)[: None if count < 0 else count].tolist()
        more = " ..." if len(flat) < x.size else ""
        shown.append(f"[{' '.join(map(str, flat))}{more}]")
    return "".join(shown)
