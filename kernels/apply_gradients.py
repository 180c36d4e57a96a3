"""The node that ends a training step: ``ampgraph.ApplyGradients``.

It divides gradients by the loss scale, adds them up over several calls if it is to, looks for what is not finite, clips, updates
variables and slots, counts the step and moves the loss scale. All of its state is in variables, so that it lasts from run to run.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from ..graph.types import Tensor
from .apply_step import CLIPS, Update, apply_step, unscaled
from .handle import Handle
from .loss_scaling import ScaleRules, ScaleState, next_scale
from .registry import kernel
from .tf_variables import declared, store, stored
from .update_rules import UPDATE_RULES

if TYPE_CHECKING:
    from .call import Call


def apply_gradients_attributes(
    update: Update, rules: ScaleRules | None, count: int, *, scaled: bool = True, accumulation_steps: int = 1
) -> dict[str, Any]:
    """Return the attributes of an ``ApplyGradients`` node.

    Args:
        update: How gradients change variables; its rule is one of :data:`~ampgraph.kernels.update_rules.UPDATE_RULES`.
        rules: How the loss scale moves; None if it stays.
        count: Number of variables.
        scaled: Whether the gradients come multiplied by the loss scale.
        accumulation_steps: From how many calls gradients are averaged to make one step.
    """
    numbers = [update.numbers[name] for name in update.rule.numbers]
    return {
        "N": count,
        "M": count * len(update.rule.slots),
        "A": count if accumulation_steps > 1 else 0,
        "rule": update.rule.name.encode(),
        "numbers": Tensor.of(numbers, "float64"),
        "weight_decay": Tensor.of(update.weight_decay, "float64"),
        "clip": update.clip.encode(),
        "bound": Tensor.of(update.bound, "float64"),
        "skip_nonfinite": update.skip_nonfinite,
        "scale_rules": Tensor.of([] if rules is None else list(rules), "float64"),
        "scaled": scaled,
        "accumulation_steps": accumulation_steps,
    }


def read_attributes(attr: Callable[[str], Any]) -> tuple[Update, ScaleRules | None]:
    """Return what :func:`apply_gradients_attributes` wrote.

    Args:
        attr: Returns an attribute by its name: text as ``str``, tensors as arrays.

    Raises:
        KernelError: If the attributes make no sense.
    """
    name, clip = attr("rule"), attr("clip")
    rule = UPDATE_RULES.get(name)
    if rule is None:
        raise KernelError(f"ApplyGradients knows the rules {', '.join(UPDATE_RULES)}. Received: {name!r}")
    if clip not in CLIPS:
        raise KernelError(f"ApplyGradients clips by {', '.join(CLIPS[1:])}, or not at all. Received: {clip!r}")
    numbers, scale_rules = attr("numbers").tolist(), attr("scale_rules").tolist()
    if len(numbers) != len(rule.numbers) or len(scale_rules) not in (0, len(ScaleRules._fields)):
        raise KernelError(
            f"ApplyGradients needs the {len(rule.numbers)} numbers of rule {name}, and {len(ScaleRules._fields)} or no numbers that "
            f"say how the loss scale moves. Received: {numbers} and {scale_rules}"
        )
    update = Update(
        rule,
        dict(zip(rule.numbers, numbers, strict=True)),
        float(attr("weight_decay")),
        clip,
        float(attr("bound")),
        attr("skip_nonfinite"),
    )
    if not scale_rules:
        return update, None
    interval, growth, backoff, floor, ceiling, hysteresis = scale_rules
    return update, ScaleRules(int(interval), growth, backoff, floor, ceiling, int(hysteresis))


@kernel("ampgraph:ApplyGradients", moves=True)
def apply_gradients(call: "Call", *operands: Any) -> tuple[Any, ...]:
    """Apply gradients to variables, or drop them where one is not finite; return how that went."""
    xp = call.xp
    update, rules = read_attributes(call.attr)
    count, width, turns = call.attr("N"), len(update.rule.slots), call.attr("accumulation_steps")
    sizes = (count, count * width, count if turns > 1 else 0)
    if sizes != (count, call.attr("M"), call.attr("A")):
        raise KernelError(
            f"Rule {update.rule.name} has {width} slots for each of {count} variables, and each has an accumulator if there are "
            f"several calls to a step. Received: M={call.attr('M')}, A={call.attr('A')}, accumulation_steps={turns}"
        )
    handles, slots, sums, rest = _split(operands, sizes)
    scale, good_steps, bad_steps, calls, global_step, rate, *gradients = rest
    before = [stored(call, handle) for handle in handles]
    for handle, variable, gradient in zip(handles, before, gradients, strict=True):
        _check(handle, variable, gradient)
    state = ScaleState(float(stored(call, scale)), int(stored(call, good_steps)), int(stored(call, bad_steps)))
    step = int(stored(call, global_step))
    factor = state.scale if call.attr("scaled") else 1.0
    if turns > 1:
        gradients = _accumulate(call, sums, gradients, factor)
        factor = float(turns)
        done_calls = (int(stored(call, calls)) + 1) % turns
        store(call, calls, xp.asarray(done_calls), declared(stored(call, calls)))
        if done_calls:
            return _results(call, False, state.scale, step, math.nan)
        for handle, total in zip(sums, gradients, strict=True):
            store(call, handle, xp.zeros_like(total))
    held = [stored(call, slot) for slot in slots]
    done = apply_step(
        xp,
        update,
        before,
        [held[i * width : (i + 1) * width] for i in range(count)],
        gradients,
        step=step + 1,
        rate=float(rate),
        scale=factor,
    )
    if done.applied:
        step += 1
        store(call, global_step, xp.asarray(step), declared(stored(call, global_step)))
        for handle, variable in zip(handles, done.variables, strict=True):
            store(call, handle, variable)
        for slot, value in zip(slots, (value for row in done.slots for value in row), strict=True):
            store(call, slot, value)
    if rules is not None:
        state = next_scale(rules, state, done.finite)
        for handle, number in zip((scale, good_steps, bad_steps), state, strict=True):
            store(call, handle, xp.asarray(number), declared(stored(call, handle)))
    return _results(call, done.applied, state.scale, step, done.grad_norm)


def _split(operands: Sequence[Any], sizes: Sequence[int]) -> list[Sequence[Any]]:
    """Return operands in groups of these sizes, and the rest."""
    groups = []
    for size in sizes:
        groups.append(operands[:size])
        operands = operands[size:]
    return [*groups, operands]


def _accumulate(call: "Call", sums: Sequence[Handle], gradients: Sequence[Any], scale: float) -> list[Any]:
    """Add gradients, divided by the scale, to what was accumulated; return the sums."""
    totals = []
    for handle, gradient in zip(sums, gradients, strict=True):
        total = stored(call, handle)
        totals.append(call.xp.asarray(total + unscaled(gradient, scale, total.dtype)))
        store(call, handle, totals[-1])
    return totals


def _results(call: "Call", applied: bool, scale: float, step: int, norm: float) -> tuple[Any, ...]:
    results = (applied, scale, step, norm)
    return tuple(
        call.xp.asarray(result, dtype.numpy) for result, dtype in zip(results, call.dtypes, strict=True) if dtype is not None
    )


def _check(handle: Handle, variable: Any, gradient: Any) -> None:
    if variable.dtype.name not in ("float32", "float64") or variable.shape != gradient.shape:
        raise KernelError(
            f"Variable {handle.name!r} must be float32 or float64, and its gradient of its shape. Received: "
            f"{variable.dtype}{list(variable.shape)}, and a gradient of {gradient.dtype}{list(gradient.shape)}"
        )
