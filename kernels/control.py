"""Control flow: If, Loop, Scan and SequenceMap run the graphs that they own.

A body takes its formal operands, then the outer values that it uses. The owner has those as its own last operands, each
once though several bodies may use it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ..graph.errors import KernelError
from ..graph.graph import Graph
from ..graph.schemas.onnx_schema import capture_labels
from ..graph.types import UNKNOWN, Shape
from .call import Call
from .gather import axis_of
from .registry import kernel

#: Runs a body on its formal operands.
Body = Callable[[Sequence[Any]], list[Any]]


def _split(call: Call, operands: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Split the operands of an owner into the formal ones and the outer values of its bodies."""
    labels = capture_labels(call.node.attributes)
    count = len(operands) - len(labels)
    return list(operands[:count]), dict(zip(labels, operands[count:], strict=True))


def _bind(call: Call, name: str, captured: dict[str, Any]) -> tuple[Graph, Body]:
    """Return the body called ``name`` and what runs it."""
    body: Graph = call.attr(name)
    outer = [captured[label] for label in body.captures]
    formals = len(body.inputs) - len(outer)

    def run(operands: Sequence[Any]) -> list[Any]:
        if len(operands) != formals:
            raise KernelError(
                f"{call.node.op_type}: its graph {body.name!r} takes {formals} inputs. Received: {len(operands)} operands"
            )
        return list(call.run(body, [*operands, *outer]))

    return body, run


def _truth(condition: Any) -> bool:
    """Return a condition, which may be a scalar or of one element."""
    return bool(condition.reshape(-1)[0])


def _stack(call: Call, body: Graph, index: int, parts: Sequence[Any], axis: int = 0) -> Any:
    """Return what result ``index`` of a body was in each step, along a new axis; of no step, an array without elements."""
    xp, value = call.xp, body.outputs[index]
    if not parts:
        shape = UNKNOWN if value.shape is None else value.shape
        sizes = [dim if isinstance(dim, int) else 0 for dim in (shape.dims or ())]
        sizes.insert(axis_of(call, axis, len(sizes) + 1), 0)
        return xp.empty(sizes, dtype=xp.float32 if value.dtype is None else value.dtype.numpy)
    if any(part.shape != parts[0].shape for part in parts):
        raise KernelError(
            f"{call.node.op_type}: result {value.name!r} of its graph has another shape in one step than in another and cannot be "
            f"stacked. Received: {sorted({str(Shape(part.shape)) for part in parts})}"
        )
    return xp.stack(parts, axis=axis)


@kernel("If", moves=True)
def if_(call: Call, condition: Any, *operands: Any) -> tuple[Any, ...]:
    """Run one of two graphs."""
    rest, captured = _split(call, [condition, *operands])
    _, run = _bind(call, "then_branch" if _truth(rest[0]) else "else_branch", captured)
    return tuple(run(()))


@kernel("Loop", moves=True)
def loop(call: Call, *operands: Any) -> tuple[Any, ...]:
    """Run a graph up to ``M`` times while its condition holds; return the last state, then the stacked other results."""
    (limit, condition, *states), captured = _split(call, operands)
    body, run = _bind(call, "body", captured)
    most = None if limit is None else int(limit.reshape(-1)[0])
    going, step, count = condition is None or _truth(condition), 0, len(states)
    parts: list[list[Any]] = [[] for _ in body.outputs[1 + count :]]
    while going and (most is None or step < most):
        results = run([call.xp.asarray(step, dtype=call.xp.int64), call.xp.asarray(True), *states])
        going, states = _truth(results[0]), results[1 : 1 + count]
        for part, result in zip(parts, results[1 + count :], strict=True):
            part.append(result)
        step += 1
    return (*states, *(_stack(call, body, 1 + count + i, part) for i, part in enumerate(parts)))


def _scan(run: Body, states: Sequence[Any], scanned: Sequence[Any]) -> tuple[list[Any], list[list[Any]]]:
    """Run a body over the first axis of ``scanned``; return the last states, and per step the other results."""
    states, steps = list(states), []
    for elements in zip(*scanned, strict=True):
        results = run([*states, *elements])
        states = results[: len(states)]
        steps.append(results[len(states) :])
    return states, steps


def _directions(call: Call, name: str, count: int, default: int = 0) -> list[int]:
    """Return an attribute with one integer for each of ``count`` tensors."""
    found = call.attr(name, None) or [default] * count
    if len(found) != count:
        raise KernelError(
            f"{call.node.op_type}: the attribute {name} has one entry for each of {count} tensors. Received: {found}"
        )
    return list(found)


@kernel("Scan", moves=True)
def scan(call: Call, *operands: Any) -> tuple[Any, ...]:
    """Run a graph over slices of tensors, carrying a state; return the last state, then the stacked other results."""
    operands_, captured = _split(call, operands)
    body, run = _bind(call, "body", captured)
    if call.opset < 9:
        return _batch_scan(call, body, run, operands_)
    count = len(operands_) - call.attr("num_scan_inputs")
    states, scanned = operands_[:count], operands_[count:]
    axes = _directions(call, "scan_input_axes", len(scanned))
    backward = _directions(call, "scan_input_directions", len(scanned))
    turned = []
    for x, axis, is_backward in zip(scanned, axes, backward, strict=True):
        moved = call.xp.moveaxis(x, axis_of(call, axis, x.ndim), 0)
        turned.append(moved[::-1] if is_backward else moved)
    _check_lengths([x.shape[0] for x in turned])
    states, steps = _scan(run, states, turned)
    others = len(body.outputs) - count
    axes = _directions(call, "scan_output_axes", others)
    backward = _directions(call, "scan_output_directions", others)
    results = []
    for i in range(others):
        parts = [step[i] for step in steps]
        results.append(_stack(call, body, count + i, parts[::-1] if backward[i] else parts, axes[i]))
    return (*states, *results)


def _check_lengths(lengths: list[int]) -> None:
    if len(set(lengths)) > 1:
        raise KernelError(f"Scan: all scanned tensors have the same number of steps. Received: {lengths}")


def _batch_scan(call: Call, body: Graph, run: Body, operands: list[Any]) -> tuple[Any, ...]:
    """Scan as it was first defined: axis 0 is a batch of independent scans, axis 1 the steps, of which each may have fewer.

    Results of steps that an entry of the batch does not have are zeros.
    """
    xp = call.xp
    lengths, operands = operands[0], operands[1:]
    count = len(operands) - call.attr("num_scan_inputs")
    states, scanned = operands[:count], operands[count:]
    backward = _directions(call, "directions", len(scanned))
    _check_lengths([x.shape[1] for x in scanned])
    batch, most = scanned[0].shape[:2]
    rows: list[tuple[list[Any], list[list[Any]]]] = []
    for entry in range(batch):
        length = most if lengths is None else int(lengths[entry])
        parts = [x[entry, :length][::-1] if turn else x[entry, :length] for x, turn in zip(scanned, backward, strict=True)]
        rows.append(_scan(run, [state[entry] for state in states], parts))
    final = [xp.stack([row[0][i] for row in rows]) if rows else states[i] for i in range(count)]
    results = []
    for i in range(len(body.outputs) - count):
        stacked = [_stack(call, body, count + i, [step[i] for step in steps]) for _, steps in rows]
        full = max(stacked, key=len, default=_stack(call, body, count + i, []))
        out = xp.zeros((batch, most, *full.shape[1:]), dtype=full.dtype)
        for entry, part in enumerate(stacked):
            if len(part):
                out[entry, : len(part)] = part
        results.append(out)
    return (*final, *results)


@kernel("SequenceMap", moves=True)
def sequence_map(call: Call, *operands: Any) -> tuple[Any, ...]:
    """Run a graph on each element of a sequence, beside elements of further sequences and whole tensors."""
    inputs, captured = _split(call, operands)
    body, run = _bind(call, "body", captured)
    length = len(inputs[0])
    if any(isinstance(x, list) and len(x) != length for x in inputs):
        lengths = [len(x) for x in inputs if isinstance(x, list)]
        raise KernelError(f"SequenceMap: all sequences have the same length. Received: lengths {lengths}")
    steps = [run([x[i] if isinstance(x, list) else x for x in inputs]) for i in range(length)]
    return tuple([step[i] for step in steps] for i in range(len(body.outputs)))
