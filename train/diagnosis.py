"""Where numbers stop being finite: a training step is run once more, and followed back."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..graph.graph import Node, Value
from ..kernels.program import Program


class Diagnosis:
    """A run of a graph that can be looked into.

    Args:
        program: What ran.
        inputs: On which arrays, in the order of its inputs.
        state: What it held before: variables, and where random numbers go on.
        step: The node that applies gradients.
        loss: The loss.
    """

    def __init__(self, program: Program, inputs: Sequence[Any], state: Mapping[Any, Any], step: Node, loss: Value | None) -> None:
        self._program = program
        self._inputs = inputs
        self._state = state
        self._step = step
        self._loss = loss

    def origin(self) -> str:
        """Return a sentence that names the first node whose operands are finite while its result is not, on the way to the loss."""
        assert self._loss is not None
        bad = self._bad_values()
        value = self._loss
        seen = {value}
        while True:
            before = next((x for x in value.producer.inputs if x is not None and x in bad and x not in seen), None)
            if before is None:
                break
            value = before
            seen.add(value)
        node = value.producer
        if node.op_type in ("Placeholder", "ReadVariableOp"):
            what = f"input {node.name!r}" if node.op_type == "Placeholder" else f"variable {node.inputs[0].producer.name!r}"  # type: ignore[union-attr]
            return f"The first values that are not finite are those of {what}."
        return f"The first node whose result is not finite is {node.name!r} ({node.op_type}, {value.dtype})."

    def bad_gradients(self) -> list[str]:
        """Return the names of the variables whose gradients are not finite."""
        bad = self._bad_values()
        count = self._step.attributes["N"]
        variables, gradients = self._step.inputs[:count], self._step.inputs[-count:]
        return [v.producer.name for v, gradient in zip(variables, gradients, strict=True) if v is not None and gradient in bad]

    def _bad_values(self) -> set[Value]:
        """Run once more; return all values of the graph that are not finite."""
        bad: set[Value] = set()

        def look(value: Value, array: Any) -> None:
            if is_bad(array):
                bad.add(value)

        feeds = dict(zip(self._program.input_names, self._inputs, strict=True))
        now = dict(self._program.state)
        self._program.state.clear()
        self._program.state.update(self._state)
        try:
            self._program(feeds, on_value=look)
        finally:
            self._program.state.clear()
            self._program.state.update(now)
        graph = self._program.graph
        return bad | {graph.value(name) for name, array in feeds.items() if is_bad(array)}


def is_bad(array: Any) -> bool:
    """Whether something is an array of floats that are not all finite."""
    if not isinstance(array, np.ndarray | np.generic) or array.dtype.kind not in "fV":
        return False
    return not np.isfinite(array.astype(np.float32) if array.dtype.kind == "V" else array).all()
