"""Sequences and optionals: a sequence is a Python list, which is never changed in place; an empty optional is None."""

from itertools import accumulate
from typing import Any

from ..graph.errors import KernelError
from .call import Call
from .gather import axis_of
from .registry import kernel


def _place(call: Call, sequence: list[Any], position: Any, end: int) -> int:
    """Return a position counted from the front; it must lie before ``end``."""
    place, length = int(position.reshape(-1)[0]), len(sequence)
    if not -length <= place < end:
        raise KernelError(f"{call.node.op_type}: a sequence of {length} tensors has no such position. Received: {place}")
    return place + length if place < 0 else place


@kernel("SequenceConstruct", moves=True)
def sequence_construct(call: Call, *tensors: Any) -> tuple[list[Any]]:
    """Return a sequence of the operands."""
    return (list(tensors),)


@kernel("SequenceEmpty", moves=True)
def sequence_empty(call: Call) -> tuple[list[Any]]:
    """Return a sequence without elements."""
    return ([],)


@kernel("SequenceLength", moves=True)
def sequence_length(call: Call, sequence: list[Any]) -> Any:
    """Return the number of elements."""
    return call.xp.asarray(len(sequence), dtype=call.xp.int64)


@kernel("SequenceAt", moves=True)
def sequence_at(call: Call, sequence: list[Any], position: Any) -> Any:
    """Return the element at a position; negative ones count from the end."""
    return sequence[_place(call, sequence, position, len(sequence))]


@kernel("SequenceInsert", moves=True)
def sequence_insert(call: Call, sequence: list[Any], tensor: Any, position: Any = None) -> tuple[list[Any]]:
    """Return the sequence with a tensor put in before a position, or at the end."""
    place = len(sequence) if position is None else _place(call, sequence, position, len(sequence) + 1)
    return ([*sequence[:place], tensor, *sequence[place:]],)


@kernel("SequenceErase", moves=True)
def sequence_erase(call: Call, sequence: list[Any], position: Any = None) -> tuple[list[Any]]:
    """Return the sequence without the element at a position, or without the last."""
    last = call.xp.asarray(-1)
    place = _place(call, sequence, last if position is None else position, len(sequence))
    return ([*sequence[:place], *sequence[place + 1 :]],)


@kernel("SplitToSequence", moves=True)
def split_to_sequence(call: Call, x: Any, split: Any = None) -> tuple[list[Any]]:
    """Return the parts of a tensor along an axis: of the given lengths, of one length, or of length 1."""
    xp = call.xp
    axis = axis_of(call, call.attr("axis", 0), x.ndim)
    size = x.shape[axis]
    if split is not None and split.ndim:
        lengths = [int(length) for length in split]
        if sum(lengths) != size or min(lengths, default=0) < 0:
            raise KernelError(f"SplitToSequence: the lengths of the parts add up to {size}. Received: {lengths}")
    else:
        step = 1 if split is None else int(split)
        if step < 1:
            raise KernelError(f"SplitToSequence: a part has at least one element. Received: split={step}")
        lengths = [min(step, size - start) for start in range(0, size, step)]
    parts = list(xp.split(x, [*accumulate(lengths[:-1])], axis=axis)) if lengths else []
    if split is None and not call.attr("keepdims", 1):
        parts = [xp.squeeze(part, axis=axis) for part in parts]
    return (parts,)


@kernel("ConcatFromSequence", moves=True)
def concat_from_sequence(call: Call, sequence: list[Any]) -> Any:
    """Return the elements joined along an axis, a new one if ``new_axis`` says so."""
    if not sequence:
        raise KernelError("ConcatFromSequence: a sequence without elements cannot be joined. Received: an empty sequence")
    axis = call.attr("axis")
    return call.xp.stack(sequence, axis=axis) if call.attr("new_axis", 0) else call.xp.concatenate(sequence, axis=axis)


@kernel("Optional", moves=True)
def optional(call: Call, element: Any = None) -> tuple[Any]:
    """Return an optional that holds the operand; an empty one when there is none."""
    return (element,)


@kernel("OptionalHasElement", moves=True)
def optional_has_element(call: Call, element: Any = None) -> Any:
    """Return whether an optional holds something."""
    return call.xp.asarray(element is not None)


@kernel("OptionalGetElement", moves=True)
def optional_get_element(call: Call, element: Any = None) -> tuple[Any]:
    """Return what an optional holds.

    Raises:
        KernelError: If it is empty.
    """
    if element is None:
        raise KernelError("OptionalGetElement: the optional is empty. Ask OptionalHasElement first. Received: None")
    return (element,)
